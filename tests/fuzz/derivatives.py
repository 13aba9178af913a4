"""Derivatives of a case against differences of the Python function, and against each other.

In: a module with `program`, which gives one scalar, and `ARGUMENTS`. Out: nothing, or AssertionError.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import metaphrase as mp

from .outcomes import Outcome, difference, outcome

STEP = 1e-5


def moved(args: tuple, direction: list, step: float) -> tuple:
    return tuple(a if d is None else a + step * d for a, d in zip(args, direction))


def directions(args: tuple, seed: int = 0) -> list:
    """A random direction; None for what is no float."""
    random = np.random.default_rng(seed)
    return [random.standard_normal(np.shape(a))[()] if np.asarray(a).dtype.kind == "f" else None for a in args]


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
    if max(abs(wide - middle), abs(middle - narrow)) > 1e-5 * scale or abs(sides[0] - sides[1]) > 1e-3 * scale:
        return None
    return (4 * narrow - middle) / 3 / STEP


def numbers_of(args: tuple) -> tuple[int, ...]:
    return tuple(k for k, d in enumerate(directions(args)) if d is not None)


def inner(one: Any, two: Any) -> float:
    return float(sum(np.sum(np.asarray(a) * b) for a, b in zip(one, two)))


@dataclass
class Point:
    """A set of arguments: the value there, the gradient, and the direction along which others are compared."""

    args: tuple
    want: Outcome
    grad: Any = None
    direction: Any = ()
    along: float = 0.0  # the derivative along the direction
    smooth: bool = False  # whether value and gradient are finite numbers

    @property
    def tangents(self) -> tuple:
        return tuple(zero_tangent(a) if d is None else d for a, d in zip(self.args, self.direction))


class Derivatives:
    """jvp and grad, native and not, vmap of grad, and grad of grad on the first set."""

    def __init__(self, module: Any):
        self.sets, self.function = module.ARGUMENTS, module.program
        argnums = numbers_of(self.sets[0])
        self.picked = picked = [d for d in directions(self.sets[0]) if d is not None]
        self.axes = tuple(0 if k in argnums else None for k in range(len(self.sets[0])))
        self.grad = mp.grad(module.program, argnums)

        def forward(*args: Any) -> Any:
            return mp.jvp(module.program, args[0], args[1])

        def along(*args: Any) -> Any:
            total = 0.0
            for g, d in zip(mp.grad(module.program, argnums)(*args), picked):
                total = total + np.sum(g * d)
            return total

        self.jitted, self.forward = mp.jit(self.grad), mp.jit(forward)
        self.value_and_grad = mp.jit(mp.value_and_grad(module.program, argnums))
        self.second, self.batched = mp.jit(mp.grad(along, argnums)), mp.jit(mp.vmap(self.grad, self.axes))
        self.points: list[Point] = []

    def python(self) -> None:
        for args in self.sets:
            point = Point(args, outcome(self.function, args))
            self.points.append(point)
            if point.want.error:
                continue
            point.direction = directions(args)
            picked = [d for d in point.direction if d is not None]
            point.grad = self.grad(*copied(args))
            point.along = inner(point.grad, picked)
            expected = slope(self.function, args, point.direction)
            if expected is not None and finite(self.function, args):
                close("grad against differences", point.along, expected, 2e-4)
            point.smooth = all_finite(point.grad)

    def calls(self) -> list[tuple[Callable, tuple]]:
        smooth = [point for point in self.points if point.smooth]
        found: list[tuple[Callable, tuple]] = [(self.jitted, point.args) for point in self.points]
        found += [(self.value_and_grad, point.args) for point in smooth]
        found += [(self.forward, (point.args, point.tangents)) for point in smooth]
        if self.points[0].smooth:
            found.append((self.second, self.sets[0]))
            if not any(point.want.error for point in self.points[:2]):
                found.append((self.batched, self.lanes()[1]))
        return found

    def native(self) -> None:
        for point in self.points:
            args, want = point.args, point.want
            if want.error:
                near(f"grad of what raises {want!r}", outcome(self.jitted, args).error, want.error)
            elif point.smooth:
                same("native grad", point.grad, self.jitted(*copied(args)))
                same("value_and_grad", (want.result, point.grad), self.value_and_grad(*copied(args)))
                out, dot = self.forward(copied(args), point.tangents)
                close("jvp's value", float(out), float(want.result), 1e-9)
                close("jvp against grad", float(dot), point.along, 1e-7)
        if self.points[0].smooth:
            self.check_second()
            self.check_batch()

    def check_second(self) -> None:
        """The gradient of grad . direction against differences of grad . direction."""
        args = self.sets[0]
        got = self.second(*copied(args))
        expected = slope(lambda *a: inner(self.grad(*a), self.picked), args, directions(args))
        if expected is not None and all_finite(got):
            close("grad of grad", inner(got, self.picked), expected, 2e-3)

    def lanes(self) -> tuple[list[tuple], tuple]:
        """Two sets of arguments that differ in what is batched, and both as one."""
        first = self.sets[0]
        rows = [tuple(b if axis == 0 else a for a, b, axis in zip(first, other, self.axes)) for other in self.sets[:2]]
        stacked = [np.stack([row[k] for row in rows]) if axis == 0 else first[k] for k, axis in enumerate(self.axes)]
        return rows, tuple(stacked)

    def check_batch(self) -> None:
        """jit(vmap(grad)) over two lanes against the gradients one by one."""
        rows, stacked = self.lanes()
        wanted = [outcome(self.jitted, row) for row in rows]
        if any(w.error for w in wanted):
            return
        got = self.batched(*stacked)
        for number, want in enumerate(wanted):
            same(f"jit(vmap(grad)), lane {number}", want.result, tuple(g[number] for g in got))


def all_finite(grad: Any) -> bool:
    return bool(np.all(np.isfinite(np.concatenate([np.ravel(g) for g in grad]))))


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
