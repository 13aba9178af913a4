"""Derivatives against differences: `check_grads`, under the name and in the place that JAX gives it.

In: a function and a point. Out: nothing, or an AssertionError that names the leaf and the two numbers. Example:

    check_grads(softplus, (x,), order=2)      # first and second derivatives, in both modes

Along random directions x_dot and y_bar, forward mode is compared with a central difference of the function, and
reverse mode with forward mode: sum(x_bar * x_dot) is sum(y_bar * y_dot). (Griewank & Walther, Evaluating Derivatives,
ch. 3; the dot-product test.) Derivatives of order n are checked as the first ones of what computes those of order
n - 1, which is what a derivative rule of one's own may have wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .api.public import jvp, vjp
from .core.types import NAMES, is_inexact
from .source import SourceError, caller_span
from .tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_map, tree_structure

MODES = ("fwd", "rev")


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = MODES,
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of `f` at `args` up to `order`, in forward mode ("fwd") and reverse mode ("rev").

    `args` is a tuple of pytrees; integers, and what is no number, are held fixed. `eps` is the step of the central
    difference; without it, and without `atol` and `rtol`, these follow from the precision of the floats. Raises
    AssertionError, with the leaf, both numbers and the derivative in which they differ; SourceError for modes other
    than these two.
    """
    args = tuple(args)
    modes = (modes,) if isinstance(modes, str) else tuple(modes)
    if not modes or not set(modes) <= set(MODES):
        raise SourceError(
            f"check_grads: the modes are {modes}", caller_span(), code="check-modes", remedy='name "fwd", "rev" or both'
        )
    _check(f, args, order, modes, _Tolerance.of(args, atol, rtol, eps), "")


def _check(
    f: Callable[..., Any], args: tuple, order: int, modes: tuple[str, ...], tolerance: _Tolerance, of: str
) -> None:
    random = np.random.RandomState(0)
    directions = tree_map(lambda leaf: _direction(leaf, random), args)
    if "fwd" in modes:
        _check_forward(f, args, directions, tolerance, f"the jvp{of}")
        if order > 1:
            pushed = _pushed(f)
            _check(pushed, (args, directions), order - 1, modes, tolerance, f" of the jvp{of}")
    if "rev" in modes:
        y_bar = _check_reverse(f, args, directions, tolerance, f"the vjp{of}", "fwd" in modes, random)
        if order > 1:
            _check(_pulled(f), (args, y_bar), order - 1, modes, tolerance, f" of the vjp{of}")


def _pushed(f: Callable[..., Any]) -> Callable[..., Any]:
    def tangent(primals: Any, tangents: Any) -> Any:
        return jvp(f, primals, tangents)[1]

    return tangent


def _pulled(f: Callable[..., Any]) -> Callable[..., Any]:
    def cotangents(primals: Any, y_bar: Any) -> Any:
        return vjp(f, *primals)[1](y_bar)

    return cotangents


# ---- one derivative ---------------------------------------------------------------------------------------


def _check_forward(f: Callable[..., Any], args: tuple, directions: tuple, tolerance: _Tolerance, what: str) -> None:
    """The tangents of forward mode against central differences."""
    y, y_dot = jvp(f, args, directions)
    _compare_values(_value(f, args), y, tolerance, what)
    differences = _leaves(_difference(f, args, directions, tolerance.eps))
    for (path, have), want, leaf in zip(tree_flatten_with_path(y_dot)[0], differences, _leaves(y)):
        if not _has_tangent(leaf):
            continue
        have, want = np.asarray(have), np.asarray(want)
        wrong = ~np.isclose(have, want, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True)
        if wrong.any():
            off = np.where(wrong, np.nan_to_num(np.abs(have - want), nan=np.inf), -1)
            worst = np.unravel_index(np.argmax(off), off.shape)
            place = f"the result{keystr(path)}" + (str(list(map(int, worst))) if worst else "")
            raise AssertionError(
                f"{what}: the tangent of {place} is {have[worst]}, and a central difference gives {want[worst]}"
            )


def _check_reverse(
    f: Callable[..., Any],
    args: tuple,
    directions: tuple,
    tolerance: _Tolerance,
    what: str,
    forward: bool,
    random: np.random.RandomState,
) -> Any:
    """The cotangents of reverse mode against forward mode (or, where there is none, central differences), for one
    leaf of the arguments after the other; the cotangent of the result that was used."""
    y, pullback = vjp(f, *args)
    _compare_values(_value(f, args), y, tolerance, what)
    y_bar = tree_map(lambda leaf: _direction(leaf, random), y)
    bars = _leaves(pullback(y_bar))
    paths = [path for path, _ in tree_flatten_with_path(args)[0]]
    dots, structure = tree_flatten(directions)
    for k, (path, bar, leaf) in enumerate(zip(paths, bars, _leaves(args), strict=True)):
        if not _has_tangent(leaf):
            continue
        alone = structure.unflatten([dot if j == k else _nothing(dot) for j, dot in enumerate(dots)])
        y_dot = jvp(f, args, alone)[1] if forward else _difference(f, args, alone, tolerance.eps)
        have, size = _product([bar], [dots[k]])
        want, other = _product(_leaves(y_bar), _leaves(y_dot), _leaves(y))
        if not np.isclose(have, want, rtol=0, atol=tolerance.atol + tolerance.rtol * max(size, other), equal_nan=True):
            against = "forward mode gives" if forward else "a central difference gives"
            place = f"args{keystr(path)}"
            raise AssertionError(
                f"{what}: the cotangent of {place} times a direction is {have}, and {against} {want} for that "
                "direction times the cotangent of the result"
            )
    return y_bar


def _value(f: Callable[..., Any], args: tuple) -> Any:
    """f(*args), which may store into what it is given."""
    return f(*tree_map(lambda leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, args))


def _compare_values(want: Any, have: Any, tolerance: _Tolerance, what: str) -> None:
    """A derivative gives the value of the function, too."""
    if tree_structure(want) != tree_structure(have):
        raise AssertionError(
            f"{what}: the value is {tree_structure(have)}, and the function gives {tree_structure(want)}"
        )
    for (path, a), b in zip(tree_flatten_with_path(have)[0], _leaves(want)):
        if _is_number(a) and not np.allclose(a, b, rtol=tolerance.rtol, atol=tolerance.atol, equal_nan=True):
            raise AssertionError(f"{what}: the value of the result{keystr(path)} is {a}, and the function gives {b}")


def _difference(f: Callable[..., Any], args: tuple, directions: tuple, eps: float) -> Any:
    """(f(x + eps x_dot) - f(x - eps x_dot)) / (2 eps), along directions of length 1 at most."""
    dots = [np.abs(np.asarray(dot)) for dot in _leaves(directions)]
    step = eps / max([1.0, *(float(np.max(dot, initial=0)) for dot in dots)])
    ahead, behind = (f(*tree_map(functools.partial(_moved, step=h), args, directions)) for h in (step, -step))
    return tree_map(lambda a, b: (np.asarray(a) - b) / (2 * step) if _has_tangent(a) else False, ahead, behind)


# ---- leaves -----------------------------------------------------------------------------------------------


class _Tolerance:
    """The step of differences, and how far two derivatives may be apart."""

    def __init__(self, atol: float, rtol: float, eps: float):
        self.atol, self.rtol, self.eps = atol, rtol, eps

    @classmethod
    def of(cls, args: tuple, atol: float | None, rtol: float | None, eps: float | None) -> _Tolerance:
        """The error of a central difference is of order eps ** 2 + precision / eps: least where eps is the cube root
        of the precision, and then precision ** (2 / 3) times what third derivatives and values make of it."""
        floats = [np.asarray(leaf).dtype for leaf in _leaves(args) if _has_tangent(leaf)]
        precision = max((_precision(dtype) for dtype in floats), default=_precision(np.dtype(float)))
        found = precision**0.4
        return cls(
            found if atol is None else atol,
            found if rtol is None else rtol,
            precision ** (1 / 3) if eps is None else eps,
        )


def _precision(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 2.0**-7  # bfloat16 is no dtype that finfo knows


def _leaves(tree: Any) -> list[Any]:
    return tree_flatten(tree)[0]


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, (bool, int, float, complex, np.generic, np.ndarray)) and np.asarray(leaf).dtype in NAMES


def _has_tangent(leaf: Any) -> bool:
    return _is_number(leaf) and is_inexact(np.asarray(leaf).dtype)


def _direction(leaf: Any, random: np.random.RandomState) -> Any:
    """Normal numbers in the shape of a leaf; False where it has no tangent."""
    if not _has_tangent(leaf):
        return np.zeros(np.shape(leaf), bool) if _is_number(leaf) else False
    x = np.asarray(leaf)
    found = random.standard_normal(x.shape)
    if x.dtype.kind == "c":
        found = found + 1j * random.standard_normal(x.shape)
    return found.astype(x.dtype) if isinstance(leaf, (np.ndarray, np.generic)) else found[()].item()


def _nothing(dot: Any) -> Any:
    return np.zeros_like(dot) if isinstance(dot, (np.ndarray, np.generic)) else type(dot)()


def _moved(x: Any, dot: Any, step: float) -> Any:
    if not _has_tangent(x):
        return x
    moved = np.asarray(x) + step * np.asarray(dot)
    return moved.astype(np.asarray(x).dtype) if isinstance(x, (np.ndarray, np.generic)) else moved.item()


def _product(bars: list, dots: list, primals: list | None = None) -> tuple[float, float]:
    """The sum of the products, its real part; and that of their sizes, which its rounding errors go by."""
    total, size = 0.0, 0.0
    for bar, dot, primal in zip(bars, dots, primals or bars, strict=True):
        if _has_tangent(primal):
            terms = (np.asarray(bar) * np.asarray(dot)).real.astype(float)
            total, size = total + float(terms.sum()), size + float(np.abs(terms).sum())
    return total, size


__all__ = ["check_grads"]
