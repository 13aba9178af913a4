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
from typing import Any

import numpy as np

from ..late import dataclass

# What an operation costs, in additions, about.
FREE, CHEAP, MEDIUM, CALLED = 0, 1, 8, 16


@dataclass(frozen=True)
class Text:
    """The body of a function that computes an operation, in what C and CUDA C have in common.

    `kinds`: of which operands: letters (f: float and double, h: the halves, i, u, c, b: bool) or one dtype ("u64").
    `body`: statements, or one expression without a semicolon. `parameters`: "a, b"; one of another type than T is
    "b1 c". `result`: its type, where it is another than T.

    T is the type of the operands, R of the parts of a complex T, U the unsigned integer as wide as T. T_sin(x) is the
    operation sin of T, fabs$(x) the instruction fabs of its width; inf$() and nan$("") are constants. pair(x, y) is a
    complex number, re(z) and im(z) its parts.
    """

    kinds: str
    body: str
    parameters: str = "x"
    result: str | None = None

    def fits(self, dtype: str) -> bool:
        """Whether it computes the operation on operands of a dtype, by its short name."""
        kind = "h" if dtype in ("f16", "bf16") else dtype[0]
        return self.kinds == dtype if self.kinds[-1].isdigit() else kind in self.kinds


@dataclass(frozen=True)
class Scalar:
    """One scalar operation.

    `cost`: FREE (made again rather than kept), CHEAP, MEDIUM (a division, a root) or CALLED (a function).
    `commutes`: its operands may change places, bit for bit but for the payload of a NaN.
    `safe`: of integers it has a result whatever they are.
    `predicate`: the result is a bool.
    `side_by_side`: compilers and vector libraries do several at once.
    `in_lanes`: what this operation of i64 is called in a loop that becomes vectors, where the second operand is a
    constant from 3 to 2**31 - 1, and no power of two.
    `sign`: the operator that it is in C and in Python.
    `library`: the name that C's and CUDA's mathematics have for it, of doubles.
    `ours`: in C it is a function of runtime/maths.h, of f32 and f64.
    `circular`: in C its vector functions are in runtime/circular.h, of f32 and f64.
    `of_complex`: they have it for complex numbers, too.
    `builtin`: the name of its instruction, of doubles.
    `cuda`: the name that CUDA's mathematics have for it, where C's have none.
    `operands`: how many a library function or an instruction takes.
    `texts`: its text, for operands of which no library has it.
    `of_bools`: the operation of bits that it is of bools.
    `of_power`: the operation of bits that it is of integers where the second operand is a constant power of two: "and"
    with that less one, or a shift by its exponent.
    `powers`: by a constant second operand, the operation of the first that it is.
    `outside`: where Python's `math` raises ValueError: how the operand compares ("lt" "le" "eq" "gt" "ge") with a
    number; behind "size" its absolute value.
    `overflows`: Python's `math` raises OverflowError where a finite operand has an infinite result.
    """

    cost: int = CALLED
    commutes: bool = False
    safe: bool = False
    predicate: bool = False
    side_by_side: bool = False
    in_lanes: str = ""
    sign: str | None = None
    library: str | None = None
    ours: bool = False
    circular: bool = False
    of_complex: bool = False
    builtin: str | None = None
    cuda: str | None = None
    operands: int = 1
    texts: tuple[Text, ...] = ()
    of_bools: str | None = None
    of_power: str | None = None
    powers: tuple[tuple[float, str], ...] = ()
    outside: tuple[str, float] | tuple[str, str, float] | None = None
    overflows: bool = False

    def text(self, dtype: str) -> Text | None:
        """The text for operands of a dtype, by its short name."""
        return next((text for text in self.texts if text.fits(dtype)), None)


def library(name: str, *texts: Text, side_by_side: bool = True, **more: Any) -> Scalar:
    """A function of C's mathematical library; `texts` for what the library does not take."""
    return Scalar(library=name, side_by_side=side_by_side, texts=texts, **more)


def ours(name: str, *texts: Text, **more: Any) -> Scalar:
    """A function of C's mathematical library that compilers get to see as a text of ours (runtime/maths.h)."""
    return library(name, *texts, ours=True, **more)


def instruction(cost: int = CHEAP, *texts: Text, **more: Any) -> Scalar:
    """An operation of a few instructions, which vector units have."""
    return Scalar(cost, side_by_side=True, safe=True, texts=texts, **more)


_SCALARS: dict[str, Scalar] = {}


def declare(operation: str, scalar: Scalar) -> Scalar:
    """Say what is known of an operation. Raises TypeError when something else was said before."""
    if _SCALARS.setdefault(operation, scalar) != scalar:
        raise TypeError(f"the scalar operation {operation!r} is declared twice")
    return scalar


def facts(operation: str) -> Scalar:
    """What is known of an operation; the least for one that was not declared."""
    return _SCALARS.get(operation) or Scalar()


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
    `of_nothing`: NumPy has a value for an array without elements.
    """

    name: str
    combine: str
    identity: Callable[[np.dtype], Any]
    first: Callable[[np.dtype], Any] | None = None
    regroups: bool = False
    assigns: str | None = None
    openmp: str | None = None
    exact: bool = False
    of_nothing: bool = True

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
monoid("max", "max", extreme(False), regroups=True, exact=True, of_nothing=False)
monoid("min", "min", extreme(True), regroups=True, exact=True, of_nothing=False)
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
    "ours",
    "monoid",
    "negative_zero",
    "number",
]
