"""What a primitive is to native code: structured, never text, never a loop.

In: a declaration's `native=` field. Out: data that `schedule/lower.py` turns into loop nests.

    sin.native == Point("sin")                          # out[i] = sin(x[i])
    relu.native == Point(lambda x: E.select(...))       # a composite of scalar operations
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..late import dataclass, field
from ..source import Span
from .scalars import facts


class E:
    """A scalar expression; `+ - * < <= > >=`, unary minus and `E.operation` build larger ones."""

    dtype: np.dtype

    def __add__(self, other: Any) -> E:
        return operation("add", self, other)

    def __radd__(self, other: Any) -> E:
        return operation("add", constant_like(other, self), self)

    def __sub__(self, other: Any) -> E:
        return operation("sub", self, other)

    def __rsub__(self, other: Any) -> E:
        return operation("sub", constant_like(other, self), self)

    def __mul__(self, other: Any) -> E:
        return operation("mul", self, other)

    def __rmul__(self, other: Any) -> E:
        return operation("mul", constant_like(other, self), self)

    def __truediv__(self, other: Any) -> E:
        return operation("div", self, other)

    def __rtruediv__(self, other: Any) -> E:
        return operation("div", constant_like(other, self), self)

    def __neg__(self) -> E:
        return operation("neg", self)

    def __lt__(self, other: Any) -> E:
        return operation("lt", self, other)

    def __le__(self, other: Any) -> E:
        return operation("le", self, other)

    def __gt__(self, other: Any) -> E:
        return operation("gt", self, other)

    def __ge__(self, other: Any) -> E:
        return operation("ge", self, other)

    def equals(self, other: Any) -> E:
        return operation("eq", self, other)

    @staticmethod
    def operation(name: str, *operands: Any, dtype: Any = None) -> E:
        return operation(name, *operands, dtype=dtype)

    @staticmethod
    def select(condition: E, a: Any, b: Any) -> E:
        """`a` where `condition`, else `b`; both are evaluated."""
        return operation("select", condition, a, b)


@dataclass(frozen=True)
class Const(E):
    """A NumPy scalar. Equal by dtype and bits."""

    value: Any

    @property
    def dtype(self) -> np.dtype:  # type: ignore[override]
        return self.value.dtype

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const)
            and self.value.dtype == other.value.dtype
            and self.value.tobytes() == other.value.tobytes()
        )

    def __hash__(self) -> int:
        return hash((self.value.dtype, self.value.tobytes()))


@dataclass(frozen=True)
class Op(E):
    """One scalar operation. `name` is that of an elementwise primitive: add, sin, lt, select, convert, ... `span`: the
    place in the user's source that it comes from, where that is known."""

    name: str
    args: tuple[E, ...]
    dtype: np.dtype
    span: Span | None = field(default=None, compare=False, repr=False)


def constant(value: Any, dtype: Any) -> Const:
    """A literal of the given dtype."""
    return Const(np.asarray(value, dtype=dtype)[()])


def constant_like(value: Any, like: E) -> E:
    return value if isinstance(value, E) else constant(value, like.dtype)


def operation(name: str, *operands: Any, dtype: Any = None) -> E:
    """`name(*operands)`; plain numbers take the dtype of the first expression among the (value) operands.

    The result dtype is bool for predicates, else that of the last operand, unless `dtype` says otherwise.
    """
    values = operands[1:] if name == "select" else operands
    like = next((x for x in values if isinstance(x, E)), None)
    if like is None:
        raise TypeError(f"operation {name!r} needs an expression among its operands")
    args = tuple(x if isinstance(x, E) else constant(x, like.dtype) for x in operands)
    if dtype is None:
        dtype = np.dtype(bool) if facts(name).predicate else args[-1].dtype
    return Op(name, args, np.dtype(dtype))


@dataclass(frozen=True)
class Point:
    """One scalar operation an element; all operands have the result's dims.

    `expression` is the name of a scalar operation (`"sin"`), or a function of scalar expressions `E`
    (and the primitive's attributes) that builds one from such operations. It is applied at the result's
    dtype.
    """

    expression: str | Callable[..., Any]


@dataclass(frozen=True)
class Piece:
    """Where one region of a Move's result comes from: operand number and the index to read there.

    `index` has one entry a dim of the operand: a dim expression over the result's index symbols.
    `guard` lists (lo, expression, hi) ranges, lo <= expression < hi, outside which the piece does not apply.
    """

    operand: int
    index: tuple[Any, ...]
    guard: tuple[tuple[Any, Any, Any], ...] = ()


@dataclass(frozen=True)
class Move:
    """The result is its operands' elements in other places.

    `pieces(index, types, **attributes)` takes the result's index symbols (Dims), the operand types, and
    returns Pieces; the first whose guard holds gives the element.
    """

    pieces: Callable[..., tuple[Piece, ...]]


@dataclass(frozen=True)
class Iota:
    """The result is a function of its own index: `expression(index, **attributes)` gives a dim or a scalar
    expression."""

    expression: Callable[..., Any] | str


@dataclass(frozen=True)
class Reduce:
    """Combine over attribute `axes` with a monoid (core/scalars.py), or find where its extreme is: argmax,
    argmin. `numpy`: what NumPy calls it, where that is another name ("bitwise_xor.reduce")."""

    monoid: str
    numpy: str | None = None

    @property
    def spelled(self) -> str:
        return self.numpy or self.monoid


@dataclass(frozen=True)
class Scan:
    """Running combination along attribute `axis` (and `reverse`) with a monoid."""

    monoid: str


@dataclass(frozen=True)
class Put:
    """Write a part of operand 0: at indices (operands of a gather-like map), assigning or combining.

    `kind` is "slice" (static starts and strides), "dynamic_slice" (staged starts), "scatter" (integer
    arrays). `monoid` None assigns; "sum" adds. `unique` promises that no index occurs twice.
    """

    kind: str
    monoid: str | None = None
    unique: bool = False


@dataclass(frozen=True)
class Gather:
    """Read operand 0 at staged integer indices. `kind` as in Put."""

    kind: str


@dataclass(frozen=True)
class Lib:
    """A library routine with an expansion for small sizes, both known to the scheduler by `name`."""

    name: str


@dataclass(frozen=True)
class Region:
    """cond, loop, call: scheduled by their own rule, by name."""

    kind: str


@dataclass(frozen=True)
class Composite:
    """`rule(*args, **attributes)` writes the operation in other primitives; expanded before scheduling, unless a
    library of the target has the routine `library`."""

    rule: Callable[..., Any]
    library: str | None = None


@dataclass(frozen=True)
class EffectCall:
    """A check, a raise, a print, a call of a Python function: kept in program order."""

    kind: str


Native = Point | Move | Iota | Reduce | Scan | Put | Gather | Lib | Region | Composite | EffectCall
