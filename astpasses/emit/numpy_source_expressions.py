"""Python expressions under construction: text, how tightly it binds, and what NumPy will make of it.

In: literals, names, and smaller expressions. Out: `Expr`, whose text has exactly the parentheses it needs.

>>> x = name("x", Array(np.dtype("float64")))
>>> infix("-", name("a", x.type), infix("-", x, literal(np.float64(1.0)), x.type), x.type).text
'a - (x - 1.0)'
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metaphrase.core.dims import Dim, DimLike
from metaphrase.core.types import NAMES, Array, is_bfloat16

TERNARY, OR, AND, NOT, COMPARE, BITOR, BITXOR, BITAND, SHIFT, SUM, PRODUCT, UNARY, POWER, ATOM = range(1, 15)
LEVELS = {
    "or": OR,
    "and": AND,
    "==": COMPARE,
    "!=": COMPARE,
    "<": COMPARE,
    "<=": COMPARE,
    ">": COMPARE,
    ">=": COMPARE,
    "|": BITOR,
    "^": BITXOR,
    "&": BITAND,
    "<<": SHIFT,
    ">>": SHIFT,
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
    "//": PRODUCT,
    "%": PRODUCT,
    "@": PRODUCT,
    "**": POWER,
}
INDEX_BITS = 40  # no array has more than 2**40 elements; Python integers that stay below 2**62 agree with i64


class Storage:
    """The memory of an array. `owned`: made by this code and known by no one else, so it may be written in
    place."""

    __slots__ = ("owned", "members", "block", "names")

    def __init__(self, owned: bool):
        self.owned = owned
        self.members: list[Any] = []  # (block, Var) of values that are this memory or a view of it
        self.block: Any = None  # the region that made it
        self.names: set[str] = set()  # Python variables that have held it

    def add(self, block: Any, var: Any) -> None:
        """One more value in this memory; those that nobody reads any more are forgotten."""
        if self.block is None:
            self.block = block
        if len(self.members) > 8:
            self.members = self.live()
        self.members.append((block, var))

    def live(self) -> list[Any]:
        """The values in this memory that are read later."""
        return [(b, v) for b, v in self.members if b.live_after(v) and (v not in b.env or self in b.env[v].storages)]


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """`type` is that of the value the text makes. `weak`: None for a NumPy value; for a Python number, the
    bits it may need. `loose`: a cheaper form that equals it after NumPy's broadcasting and promotion with
    another operand.
    """

    text: str
    level: int
    type: Array
    weak: int | None = None
    reads: frozenset[str] = frozenset()
    operations: int = 0
    loose: Expr | None = None
    storages: tuple[Storage, ...] = ()
    kept: Expr | None = None  # of a reduction: the same with keepdims=True
    narrow: Expr | None = None  # of a reshape that only adds or drops dims of size 1: what it reshapes
    parts: Any = None  # what it is made of: ("infix", a, operator, b), ("nonzero", mask) and others
    cheap: bool = False  # may be written several times: its work has a name already
    maybe_python: bool = False  # a scalar argument, which the caller may give as a Python number

    def at(self, level: int) -> str:
        """The text for a place that needs binding at least as tight as `level`."""
        return self.text if self.level >= level else f"({self.text})"

    @property
    def is_name(self) -> bool:
        return self.level == ATOM and self.text.isidentifier()


def name(text: str, type_: Array, **more: Any) -> Expr:
    return Expr(text, ATOM, type_.plain, reads=frozenset([text]), **more)


def dtype_text(dtype: np.dtype) -> str:
    """`np.float64`; for bool `bool`, as NumPy spells both."""
    if is_bfloat16(np.dtype(dtype)):
        return "bfloat16"
    return "np.bool_" if np.dtype(dtype).kind == "b" else f"np.{np.dtype(dtype).name}"


def float_text(value: Any) -> str:
    """The shortest Python float that becomes `value` in its own dtype."""
    number = float(value)
    if math.isnan(number):
        return "np.nan"
    if math.isinf(number):
        return "np.inf" if number > 0 else "-np.inf"
    dtype = np.asarray(value).dtype
    for text in (str(value), repr(number)):
        try:
            if "e" not in text and "." not in text:
                text += ".0"
            if dtype.type(float(text)) == value:
                return text
        except ValueError:
            continue
    return repr(number)


def literal(value: Any) -> Expr:
    """A NumPy scalar as a Python number: its dtype comes from the operand beside it."""
    type_ = Array(np.asarray(value).dtype)
    kind = type_.dtype.kind
    if kind == "b":
        return Expr(str(bool(value)), ATOM, type_, weak=1)
    if kind in "iu":
        return Expr(str(int(value)), UNARY if value < 0 else ATOM, type_, weak=int(value).bit_length())
    if kind == "c":
        return _complex(value, type_)
    if math.isnan(float(value)) and value.tobytes() != np.asarray(np.nan, type_.dtype).tobytes():
        width = type_.dtype.itemsize
        bits = f"np.uint{width * 8}({np.frombuffer(value.tobytes(), f'u{width}')[0]})"
        return Expr(f"{bits}.view({dtype_text(type_.dtype)})", ATOM, type_)
    text = float_text(value)
    if is_bfloat16(type_.dtype):  # beside which a Python float makes NumPy compute in float32
        return Expr(f"{dtype_text(type_.dtype)}({text})", ATOM, type_)
    return Expr(text, UNARY if text.startswith("-") else ATOM, type_, weak=0)


def _complex(value: Any, type_: Array) -> Expr:
    real, imag = float_text(value.real), float_text(value.imag)
    if value.real == 0 and not np.signbit(value.real) and np.isfinite(value.imag) and not np.signbit(value.imag):
        return Expr(f"{imag}j", ATOM, type_, weak=0)
    return Expr(f"complex({real}, {imag})", ATOM, type_, weak=0)


def strong(expr: Expr) -> Expr:
    """The same as a NumPy value."""
    if expr.weak is None:
        return expr
    return Expr(f"{dtype_text(expr.type.dtype)}({expr.text})", ATOM, expr.type, None, expr.reads, expr.operations)


def bits_after(operator: str, a: Expr, b: Expr) -> int | None:
    """Bits a Python-integer result needs, or None when it must be computed by NumPy to wrap as i64 does."""
    if a.weak is None or b.weak is None or a.type.dtype.kind not in "ib" or a.type.dtype.itemsize not in (1, 8):
        return None
    if LEVELS[operator] == COMPARE or operator in ("and", "or"):
        return 1
    if a.type.dtype == bool:
        return 1 if operator in ("&", "|", "^") else None
    if operator in ("//", "%"):
        return a.weak + 1 if b.text.isdigit() and int(b.text) > 0 else None
    needed = {"+": max(a.weak, b.weak) + 1, "-": max(a.weak, b.weak) + 1, "*": a.weak + b.weak}.get(operator)
    return needed if needed is not None and needed <= 62 else None


def infix(operator: str, a: Expr, b: Expr, type_: Array, storages: tuple = ()) -> Expr:
    """`a operator b`, computed by NumPy's rules."""
    weak = bits_after(operator, a, b)
    if weak is None and a.weak is not None and b.weak is not None:
        a = strong(a)
    level = LEVELS[operator]
    comparing = level == COMPARE
    left, right = (a.at(level + (comparing or operator == "**")), b.at(UNARY if operator == "**" else level + 1))
    return Expr(
        f"{left} {operator} {right}",
        level,
        type_.plain,
        weak,
        a.reads | b.reads,
        a.operations + b.operations + 1,
        storages=storages,
        parts=("infix", a, operator, b),
    )


def prefix(operator: str, a: Expr, type_: Array, weak: int | None = None, storages: tuple = ()) -> Expr:
    level = NOT if operator.strip() == "not" else UNARY
    return Expr(f"{operator}{a.at(level)}", level, type_.plain, weak, a.reads, a.operations + 1, storages=storages)


def call(function: str, args: list[Expr], type_: Array, extra: str = "", storages: tuple = ()) -> Expr:
    """`function(args, extra)`."""
    texts = [a.text for a in args] + ([extra] if extra else [])
    return Expr(
        f"{function}({', '.join(texts)})",
        ATOM,
        type_.plain,
        None,
        reads_of(args),
        operations_of(args) + 1,
        storages=storages,
    )


def suffix(a: Expr, text: str, type_: Array, storages: tuple = (), others: list[Expr] | None = None) -> Expr:
    """`a` with an index, an attribute or a method call behind it."""
    others = others or []
    return Expr(
        f"{a.at(ATOM)}{text}",
        ATOM,
        type_.plain,
        None,
        a.reads | reads_of(others),
        a.operations + operations_of(others) + 1,
        storages=storages,
    )


def reads_of(exprs: list[Expr]) -> frozenset[str]:
    return frozenset().union(*(e.reads for e in exprs)) if exprs else frozenset()


def operations_of(exprs: list[Expr]) -> int:
    return sum(e.operations for e in exprs)


def with_loose(expr: Expr, loose: Expr | None) -> Expr:
    return replace(expr, loose=loose)


def shapes_fit(dims: list[tuple], want: tuple) -> bool:
    """Whether NumPy's broadcasting of `dims` gives exactly `want`."""
    rank = len(want)
    found: list[DimLike] = [1] * rank
    for shape in dims:
        if len(shape) > rank:
            return False
        for k, d in enumerate(shape, rank - len(shape)):
            if d != 1:
                if d != want[k]:
                    return False
                found[k] = d
    return tuple(found) == tuple(want) and max((len(d) for d in dims), default=0) == rank


_PYTHON = {"b": bool, "f": float, "c": complex}


def promotes(forms: list[Expr], dtype: np.dtype) -> bool:
    """Whether NumPy computes with these operands in `dtype`."""
    solid = [e.type.dtype for e in forms if e.weak is None]
    if not solid or dtype not in solid and len(forms) > 1:
        return False
    if any(
        e.weak is not None and e.type.dtype != dtype and not (dtype == np.float64 and e.type.dtype.kind in "ib")
        for e in forms
    ):
        return False
    sure = [e.type.dtype for e in forms if e.weak is None and not e.maybe_python]
    numbers = [_PYTHON.get(e.type.dtype.kind, int)(0) for e in forms if e.maybe_python]
    try:
        if sure and numbers and np.result_type(*sure, *numbers) != dtype:
            return False
        return all(d == dtype for d in solid) or np.result_type(*solid) == dtype
    except TypeError:
        return False


def without_losses(expr: Expr, dtype: np.dtype) -> Expr:
    """An expression of this dtype without looser forms that hold more than the dtype does."""
    if expr.loose is None:
        return expr
    if not np.can_cast(expr.loose.type.dtype, dtype):
        return replace(expr, loose=None)
    inner = without_losses(expr.loose, dtype)
    return expr if inner is expr.loose else replace(expr, loose=inner)


def loosened(operands: list[Expr], dims: tuple, dtype: np.dtype) -> list[Expr]:
    """Each operand in its loose form where the others bring the shape and dtype that it leaves out."""
    forms = list(operands)
    for k, operand in enumerate(operands):
        loose = operand.loose
        while loose is not None:
            trial = forms[:k] + [loose] + forms[k + 1 :]
            if shapes_fit([e.type.dims for e in trial], dims) and promotes(trial, dtype):
                forms = trial
                break
            loose = loose.loose
    return forms


def dim_text(dim: DimLike) -> str:
    return str(dim) if isinstance(dim, (int, Dim)) else repr(dim)


__all__ = [
    "Expr",
    "Storage",
    "name",
    "literal",
    "strong",
    "infix",
    "prefix",
    "call",
    "suffix",
    "loosened",
    "with_loose",
    "without_losses",
    "dtype_text",
    "dim_text",
    "reads_of",
    "operations_of",
    "NAMES",
]
