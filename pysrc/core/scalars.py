"""What is known of a scalar operation and of a monoid, whatever they are compiled to.

In: one declaration each, beside the primitive that lifts the operation over arrays or reduces with the
monoid. Out: `facts(operation)` and `MONOIDS`, which passes and emitters ask: no list of operations stands
anywhere else.

>>> declare("half", Scalar(cost=CHEAP, side_by_side=True)).cost, facts("half").side_by_side
(1, True)
>>> MONOIDS["prod"].combine, MONOIDS["prod"].identity(np.dtype("float64"))
('mul', np.float64(1.0))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# What an operation costs, in additions, about.
FREE, CHEAP, MEDIUM, CALLED = 0, 1, 8, 16


@dataclass(frozen=True)
class Text:
    """The body of a C function that computes an operation. T stands for the type of its operands, T_x for the
    operation x of them, and $ for the suffix of the C library's names: sin$ is sinf for a float."""

    result: str
    parameters: str
    body: str


@dataclass(frozen=True)
class Scalar:
    """One scalar operation.

    `cost`: FREE (made again rather than kept), CHEAP, MEDIUM (a division, a root) or CALLED (a function).
    `commutes`: its operands may change places, bit for bit but for the payload of a NaN.
    `safe`: of integers it has a result whatever they are.
    `predicate`: the result is a bool.
    `side_by_side`: compilers and vector libraries do several at once.
    `library`: the name that C's and CUDA's mathematics have for it, of doubles.
    `builtin`: the name that compilers have for its instruction, of doubles.
    `of_complex`: the name that C's mathematics have for it, of complex doubles.
    `operands`: how many a library function or an instruction takes.
    `texts`: its C by the kind of its operands ("f" "i" "u" "c" "b"), where no library has it.
    """

    cost: int = CALLED
    commutes: bool = False
    safe: bool = False
    predicate: bool = False
    side_by_side: bool = False
    library: str | None = None
    builtin: str | None = None
    of_complex: str | None = None
    operands: int = 1
    texts: tuple[tuple[str, Text], ...] = ()


def library(
    name: str, of_complex: str | None = None, *, operands: int = 1, side_by_side: bool = True
) -> Scalar:
    """A function of C's mathematical library, and the one for complex numbers."""
    return Scalar(library=name, of_complex=of_complex, operands=operands, side_by_side=side_by_side)


def instruction(cost: int = CHEAP, **more: Any) -> Scalar:
    """An operation of a few instructions, which vector units have."""
    return Scalar(cost, side_by_side=True, safe=True, **more)


_UNKNOWN = Scalar()
_SCALARS: dict[str, Scalar] = {}


def declare(operation: str, scalar: Scalar) -> Scalar:
    """Say what is known of an operation. Raises TypeError when something else was said before."""
    if _SCALARS.setdefault(operation, scalar) != scalar:
        raise TypeError(f"the scalar operation {operation!r} is declared twice")
    return scalar


def facts(operation: str) -> Scalar:
    """What is known of an operation; the least for one that was not declared."""
    return _SCALARS.get(operation, _UNKNOWN)


# --- monoids ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Monoid:
    """A way to make one value of many, in any grouping.

    `combine`: the scalar operation.
    `identity(dtype)`: the value that changes nothing.
    `first(dtype)`: what a running combination begins with, where that is another value.
    `regroups`: floats may be combined in another order than written, as NumPy's own reductions do.
    `assigns`: how C combines in place ("+=").
    `openmp`: the name that OpenMP has for it.
    `exact`: the result does not depend on the order, so atomic operations may combine and results repeat.
    """

    name: str
    combine: str
    identity: Callable[[np.dtype], Any]
    first: Callable[[np.dtype], Any] | None = None
    regroups: bool = False
    assigns: str | None = None
    openmp: str | None = None
    exact: bool = False

    def before_first(self, dtype: np.dtype) -> Any:
        return (self.first or self.identity)(dtype)


MONOIDS: dict[str, Monoid] = {}


def monoid(name: str, combine: str, identity: Callable[[np.dtype], Any], **more: Any) -> str:
    """Declare a monoid; its name, which `Reduce`, `Scan` and `Put` take."""
    if name in MONOIDS:
        raise TypeError(f"the monoid {name!r} is declared twice")
    MONOIDS[name] = Monoid(name, combine, identity, **more)
    return name


def number(value: Any) -> Callable[[np.dtype], Any]:
    """`value` in every dtype."""
    return lambda dtype: np.asarray(value).astype(dtype)[()]


def extreme(largest: bool) -> Callable[[np.dtype], Any]:
    """The largest or the smallest value of each dtype."""

    def value(dtype: np.dtype) -> Any:
        if dtype.kind == "b":
            return np.bool_(largest)
        if dtype.kind in "iu":
            return dtype.type(np.iinfo(dtype).max if largest else np.iinfo(dtype).min)
        return np.asarray(np.inf if largest else -np.inf).astype(dtype)[()]

    return value


def negative_zero(dtype: np.dtype) -> Any:
    """-0.0 of inexact dtypes, to which -0.0 is added without a trace; 0 of others."""
    value: Any = complex(-0.0, -0.0) if dtype.kind == "c" else 0 if dtype.kind in "iub" else -0.0
    return np.asarray(value).astype(dtype)[()]


monoid("sum", "add", number(0), first=negative_zero, regroups=True, assigns="+=", openmp="sum")
monoid("prod", "mul", number(1), regroups=True, assigns="*=", openmp="prod")
monoid("max", "max", extreme(False), regroups=True, exact=True)
monoid("min", "min", extreme(True), regroups=True, exact=True)
monoid("any", "or", number(0), openmp="any", exact=True)
monoid("all", "and", number(1), openmp="all", exact=True)

__all__ = [
    "CALLED",
    "CHEAP",
    "FREE",
    "MEDIUM",
    "MONOIDS",
    "Monoid",
    "Scalar",
    "Text",
    "declare",
    "extreme",
    "facts",
    "instruction",
    "library",
    "monoid",
    "negative_zero",
    "number",
]
