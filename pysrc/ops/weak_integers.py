"""Where Python's integers meet NumPy's: what does not fit raises, comparisons are exact.

In: integer atoms. Out: checks in the current program, and atoms.

    check_range(k, i8)                         # OverflowError unless -128 <= k <= 127, as numpy.int8(1) + 300
    compare(np.less, x, k, weak_first=False)   # x: u8[n], k: a staged Python int of any value
    check_exponents(b)                         # ValueError for a negative one
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import literal
from ..core.ir import Atom
from ..core.primitive import REGISTRY, Primitive
from ..core.types import i64
from .compare import and_, ge, le, lt, select
from .effects import check
from .families import broadcast_to, like
from .shape import convert

COMPARISONS = frozenset((np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal))
NEGATIVE_POWER = "Integers to negative integer powers are not allowed."


def is_narrow(dtype: np.dtype) -> bool:
    """Integer dtypes that do not hold every 64-bit int."""
    return dtype.kind in "iu" and dtype != i64


def check_range(atom: Atom, dtype: Any) -> None:
    """A staged Python int that takes a narrower integer dtype must fit."""
    dtype = np.dtype(dtype)
    limits = np.iinfo(dtype)
    ok = ge(atom, literal(int(limits.min), i64))
    if limits.max < 2**63 - 1:
        ok = and_(ok, le(atom, literal(int(limits.max), i64)))
    check(ok, atom, exception="OverflowError", message=f"Python integer {{}} out of bounds for {dtype}")


def check_exponents(exponent: Atom) -> None:
    """NumPy refuses integers to negative integer powers."""
    if exponent.type.dtype.kind == "i":
        check(ge(exponent, like(exponent, 0)), exception="ValueError", message=NEGATIVE_POWER)


def compare(function: np.ufunc, strong: Atom, weak: Any, weak_first: bool) -> Atom:
    """A comparison of NumPy integers with a Python int, by value, whether or not the int fits their dtype."""
    primitive: Primitive = next(p for p in REGISTRY.values() if function in p.spellings)
    dims = strong.type.dims

    def ordered(of_strong: Atom, of_weak: Atom) -> Atom:
        of_weak = broadcast_to(of_weak, dims)
        return primitive(of_weak, of_strong) if weak_first else primitive(of_strong, of_weak)

    def always(above: bool) -> Atom:
        """The result where the Python int is above, or below, all numbers of the dtype."""
        low, high = literal(0, i64), literal(1, i64)
        a, b = (low, high) if above != weak_first else (high, low)
        return broadcast_to(literal(bool(primitive.numpy(a.value, b.value))), dims)

    limits = np.iinfo(strong.type.dtype)
    if isinstance(weak, int):
        if limits.min <= weak <= limits.max:
            return ordered(strong, literal(weak, strong.type.dtype))
        return always(weak > limits.max)
    if strong.type.dtype != np.uint64:
        return ordered(convert(strong, dtype=i64), weak)
    weak = broadcast_to(weak, dims)
    negative = lt(weak, like(weak, 0))
    usual = ordered(strong, convert(select(negative, like(weak, 0), weak), dtype=strong.type.dtype))
    return select(negative, always(False), usual)


__all__ = ["COMPARISONS", "NEGATIVE_POWER", "is_narrow", "check_range", "check_exponents", "compare"]
