"""Derivatives of a case against differences of the Python function, and against each other.

In: a module with `program`, which gives one scalar, and `ARGUMENTS`. Out: nothing, or AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import metaphrase as mp

from .outcomes import difference, outcome

STEP = 1e-5


def moved(args: tuple, direction: list, step: float) -> tuple:
    return tuple(a if d is None else a + step * d for a, d in zip(args, direction))


def directions(args: tuple, seed: int = 0) -> list:
    """A random direction; None for what is no float."""
    random = np.random.default_rng(seed)
    return [
        random.standard_normal(np.shape(a))[()] if np.asarray(a).dtype.kind == "f" else None for a in args
    ]


def steady(function: Callable, args: tuple, tolerance: float) -> bool:
    """Whether a disturbance in the last digits leaves the result where it is: what an inexact comparison
    needs."""
    want = outcome(function, args)
    for seed in range(2):
        direction = [None if d is None else d * np.abs(a) for a, d in zip(args, directions(args, seed))]
        if difference(want, outcome(function, moved(args, direction, 1e-13)), tolerance, "arguments"):
            return False
    return True


def value(function: Callable, args: tuple) -> float:
    found = outcome(function, args)
    return float("nan") if found.error else float(found.result)


def finite(function: Callable, args: tuple) -> bool:
    """Whether nothing on the way is infinite or NaN: what a division by zero gave is dropped by `if`, but in
    reverse mode the zero of what is dropped is multiplied by an infinite slope."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        try:
            function(*copied(args))
        except FloatingPointError:
            return False
    return True


def slope(function: Callable, args: tuple, direction: list) -> float | None:
    """The directional derivative by differences; None at a kink, a jump or an error."""
    at = {k: value(function, moved(args, direction, k * STEP)) for k in (-2, -1, -0.5, 0, 0.5, 1, 2)}
    wide, middle, narrow = (at[2] - at[-2]) / 4, (at[1] - at[-1]) / 2, at[0.5] - at[-0.5]
    sides = [(at[1] - at[0]), (at[0] - at[-1])]
    scale = STEP * (1 + abs(middle) / STEP)
    if not all(np.isfinite([*at.values()])):
        return None
    if (
        max(abs(wide - middle), abs(middle - narrow)) > 1e-5 * scale
        or abs(sides[0] - sides[1]) > 1e-3 * scale
    ):
        return None
    return (4 * narrow - middle) / 3 / STEP


def numbers_of(args: tuple) -> tuple[int, ...]:
    return tuple(k for k, d in enumerate(directions(args)) if d is not None)


def inner(one: Any, two: Any) -> float:
    return float(sum(np.sum(np.asarray(a) * b) for a, b in zip(one, two)))


def check(module: Any) -> None:
    """jvp and grad, native and not, vmap of grad, and grad of grad on the first set."""
    function = module.program
    argnums = numbers_of(module.ARGUMENTS[0])

    def program(*args: Any) -> Any:
        return module.program(*args)

    grad = mp.grad(function, argnums)
    native, value_and = mp.jit(grad), mp.jit(mp.value_and_grad(function, argnums))

    def forward(*args: Any) -> Any:
        return mp.jvp(function, args[0], args[1])

    for number, args in enumerate(module.ARGUMENTS):
        want = outcome(function, args)
        if want.error:
            near(f"grad of what raises {want!r}", outcome(native, args).error, want.error)
            continue
        direction = directions(args)
        picked = [direction[k] for k in argnums]
        found = grad(*copied(args))
        expected = slope(function, args, direction)
        if expected is not None and finite(function, args):
            close("grad against differences", inner(found, picked), expected, 2e-4)
        if not np.all(np.isfinite(np.concatenate([np.ravel(f) for f in found]))):
            continue
        same("native grad", found, native(*copied(args)))
        both = value_and(*copied(args))
        same("value_and_grad", (want.result, found), both)
        tangents = tuple(zero_tangent(a) if d is None else d for a, d in zip(args, direction))
        out, dot = mp.jit(forward)(tuple(copied(args)), tangents)
        close("jvp's value", float(out), float(want.result), 1e-9)
        close("jvp against grad", float(dot), inner(found, picked), 1e-7)
        if number == 0:
            second(function, args, argnums, picked, grad)
            batch(grad, native, module.ARGUMENTS, argnums)


def second(function: Callable, args: tuple, argnums: tuple, picked: list, grad: Callable) -> None:
    """The gradient of grad . direction against differences of grad . direction."""

    def along(*args: Any) -> Any:
        total = 0.0
        for g, d in zip(mp.grad(function, argnums)(*args), picked):
            total = total + np.sum(g * d)
        return total

    got = mp.jit(mp.grad(along, argnums))(*copied(args))
    expected = slope(lambda *a: inner(grad(*a), picked), args, directions(args))
    if expected is not None and np.all(np.isfinite(np.concatenate([np.ravel(g) for g in got]))):
        close("grad of grad", inner(got, picked), expected, 2e-3)


def batch(grad: Callable, native: Callable, sets: list, argnums: tuple) -> None:
    """jit(vmap(grad)) over two lanes against the gradients one by one."""
    axes = tuple(0 if k in argnums else None for k in range(len(sets[0])))
    lanes = [tuple(b if axis == 0 else a for a, b, axis in zip(sets[0], other, axes)) for other in sets[:2]]
    wanted = [outcome(native, lane) for lane in lanes]
    if any(w.error for w in wanted):
        return
    stacked = [
        np.stack([lane[k] for lane in lanes]) if axis == 0 else lanes[0][k] for k, axis in enumerate(axes)
    ]
    got = mp.jit(mp.vmap(grad, axes))(*stacked)
    for number, want in enumerate(wanted):
        same(f"jit(vmap(grad)), lane {number}", want.result, tuple(g[number] for g in got))


def zero_tangent(value: Any) -> Any:
    return np.zeros(np.shape(value), dtype=bool)[()]


def copied(args: tuple) -> tuple:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def same(name: str, want: Any, got: Any) -> None:
    wanted, found = (np.concatenate([np.ravel(x) for x in flat(tree)]) for tree in (want, got))
    if not np.allclose(wanted, found, 1e-8, 1e-9, equal_nan=True):
        raise AssertionError(f"{name}: {want!r} is not {got!r}")


def flat(tree: Any) -> list:
    return [x for part in tree for x in flat(part)] if isinstance(tree, (tuple, list)) else [tree]


def near(name: str, want: Any, got: Any) -> None:
    if want != got:
        raise AssertionError(f"{name}: {want!r} is not {got!r}")


def close(name: str, got: float, want: float, tolerance: float) -> None:
    if not abs(got - want) <= tolerance * (1 + abs(want)):
        raise AssertionError(f"{name}: {want!r} is not {got!r}")
