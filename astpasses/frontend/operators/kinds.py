"""Whose numbers are: Python's, NumPy's, of two types, or not known yet; and what NumPy's promotion makes of that.

In: numbers, staged or not. Out: their kinds. What is doubtful (see `values/doubts.py`) stays so where it may.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom

from ..staging.session import Session
from ..values.doubts import Doubt
from ..values.staged_values import Number

WEAK = {bool: np.dtype(bool), int: np.dtype("int64"), float: np.dtype("float64"), complex: np.dtype("complex128")}
RANK = [bool, int, float, complex]
# With these a number of Python's is as wide as one of NumPy's.
_WIDE = {int: "?ldD", float: "?bhilBHILdD", bool: "?bhilqBHILQefdgFDG"}


def is_doubtful(value: Any) -> bool:
    return isinstance(value, Number) and bool(value.doubts)


def doubtful(
    session: Session,
    atom: Atom,
    kind: type,
    doubts: frozenset[Doubt],
    among: tuple | None = None,
    dim: DimLike | None = None,
) -> Number:
    """A number, or a bool made of some, of which a pass is to find out whether it is Python's: where none of them is
    NumPy's. `dim`: of an int that is Python's."""
    made = Number(session, atom, None)
    made.doubts, made.weak, made.weak_dim, made.among = doubts, kind, dim, among
    del made.python  # asked for it, it says what the doubts have come to
    if kind is int:
        del made.dim
    return made


def is_number(value: Any) -> bool:
    """Python numbers, NumPy scalars, staged numbers."""
    return isinstance(value, (Number, bool, int, float, complex, np.generic))


def weak_type(value: Any) -> type | None:
    """The Python type of a Python number, staged or not; None for all else."""
    if isinstance(value, Number):
        return value.python
    if isinstance(value, np.generic):
        return None
    return next((t for t in RANK if isinstance(value, t)), None)


def is_wide(value: Any) -> bool:
    """An int that 64 bits do not hold."""
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def dtype_of(value: Any) -> Any:
    """What NumPy's promotion sees: a dtype, or a Python type for weak numbers."""
    weak = weak_type(value)
    if weak is not None:
        return np.dtype(bool) if weak is bool else weak
    return value.dtype


def is_strong(value: Any, dtype: np.dtype) -> bool:
    """Whether a number is NumPy's for sure, and of this type."""
    if is_doubtful(value) or is_of_two_types(value):
        return False
    return isinstance(value, (Number, np.generic)) and weak_type(value) is None and value.dtype == dtype


def settled_kinds(values: Sequence[Any], numpys: bool = False) -> Sequence[Any]:
    """Operands, of which doubtful ones (see `Doubt`) are NumPy's where what is made of them all is the same:
    where the others are, or the result is (`numpys`)."""
    others = [v for v in values if not is_doubtful(v)]
    if len(others) == len(values):
        return values
    strong = [v for v in others if weak_type(v) is None]
    same = (numpys or 0 < len(strong) == len(others)) and all(
        v.dtype.char in _WIDE[d.weak] for v in strong for d in values if is_doubtful(d)
    )
    return [v.either() if is_doubtful(v) else v for v in values] if same else values


def common_doubts(left: Any, right: Any, beside: type = float) -> frozenset[Doubt]:
    """The doubts of two numbers, where each is doubtful, or Python's, a float or of the type `beside`."""
    doubts = frozenset[Doubt]().union(*(v.doubts for v in (left, right) if is_doubtful(v)))
    if any(is_doubtful(v) and v.weak is int for v in (left, right)):
        return frozenset()
    if doubts and not is_wide(left) and not is_wide(right):
        kinds = {v.weak if is_doubtful(v) else weak_type(v) for v in (left, right)}
        if kinds <= {float, beside} and kinds != {int}:
            return doubts
    return frozenset()


def is_of_two_types(value: Any) -> bool:
    return isinstance(value, Number) and value.narrow is not None
