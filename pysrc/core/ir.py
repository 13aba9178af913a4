"""The core language: immutable programs, one operation a Let.

In: nothing below it but types. Out: `Var`, `Literal`, `Let`, `Function`, `Roles`, `ConstantArray`.

A program in full, printed:

    def area(r: f64) -> f64:
        r2: f64 = mul(r, r)
        a: f64 = mul(3.141592653589793, r2)
        return a
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..late import dataclass, field
from ..source import Span
from .dims import NO_SYMBOLS, Dim, Sym, symbols
from .types import Array, type_symbols

if TYPE_CHECKING:
    from .primitive import Primitive


class Var:
    """A value. Identity is the object; `name` is a wish that the printer makes unique."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: Array):
        self.name, self.type = name, type

    def __repr__(self) -> str:
        return f"{self.name}: {self.type}"


class Literal:
    """A rank-0 constant. Equal by dtype and bits: 0.0 is not -0.0, 1 is not True, nan is itself."""

    __slots__ = ("value", "type", "_key")

    def __init__(self, value: Any):
        self.value = np.asarray(value)[()]
        self.type = Array(self.value.dtype, ())
        self._key = (self.value.dtype, self.value.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)


Atom = Var | Literal


class ConstantArray:
    """An array inside a program, equal by dtype, shape and bits. Do not write to `value`."""

    __slots__ = ("value", "_key")

    def __init__(self, value: Any):
        self.value = np.array(value)
        self.value.flags.writeable = False
        self._key = (self.value.dtype, self.value.shape, self.value.tobytes())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstantArray) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@dataclass(frozen=True, slots=True)
class Roles:
    """How many operands of a `loop` play each role, in this order. `segments` counts the last results of the
    body: arrays whose lengths differ from iteration to iteration, put behind one another."""

    consts: int = 0
    carries: int = 0
    accumulators: int = 0
    rows: int = 0
    segments: int = 0

    def parts(self, operands: Sequence[Any]) -> tuple[tuple, tuple, tuple, tuple]:
        """Cut a sequence of operands into consts, carries, accumulators, rows."""
        operands = tuple(operands)
        a, b, c = self.consts, self.consts + self.carries, self.consts + self.carries + self.accumulators
        assert len(operands) == c + self.rows, (self, len(operands))
        return operands[:a], operands[a:b], operands[b:c], operands[c:]


@dataclass(frozen=True, eq=False)
class Let:
    """`outs = primitive(*args, **attributes)`. Do not write to `attributes`."""

    outs: tuple[Var, ...]
    primitive: Primitive
    args: tuple[Atom, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    span: Span | None = None
    # What is found when it is first asked for.
    _uses = None  # type: frozenset[str] | None
    _effects = None  # type: frozenset[str] | None
    _regions = None  # type: tuple[Function, ...] | None
    _loop = None  # type: Any  # of a loop, see loops.py
    _typed = False  # whether its types were found right, see check.py

    @property
    def out(self) -> Var:
        """The only result."""
        (out,) = self.outs
        return out

    def regions(self) -> tuple[Function, ...]:
        """Functions among the attributes."""
        if self._regions is None:
            values = (v if isinstance(v, tuple) else (v,) for v in self.attributes.values())
            object.__setattr__(self, "_regions", tuple(f for v in values for f in v if isinstance(f, Function)))
        return self._regions  # type: ignore[return-value]

    def with_regions(self, change: Callable[[Function], Function]) -> Let:
        """The Let with `change` of each of its functions; itself where none changes."""
        attributes = {key: _with_functions(value, change) for key, value in self.attributes.items()}
        if all(new is self.attributes[key] for key, new in attributes.items()):
            return self
        return Let(self.outs, self.primitive, self.args, attributes, self.span)

    def _run(self) -> tuple[Function, ...]:
        """The regions that run where this Let stands: of a function with derivative rules, not these."""
        if self.primitive.transient:
            return (self.attributes["function"],) if "function" in self.attributes else ()
        return self.regions()

    @property
    def effects(self) -> frozenset[str]:
        """The effects of the primitive and of all that happens in regions."""
        if self._effects is None:
            inside = (inner.effects for region in self._run() for inner in region.lets)
            own = NO_SYMBOLS if self.primitive.effect is None else frozenset([self.primitive.effect])
            object.__setattr__(self, "_effects", own.union(*inside))
        return self._effects  # type: ignore[return-value]

    def own_symbols(self) -> frozenset[str]:
        """The size symbols this Let binds, named by its attributes `size` and `segment_sizes`: for each, some
        result has type size[symbol]. Those of a loop are its first results."""
        size, more = self.attributes.get("size"), self.attributes.get("segment_sizes")
        if size is None and not more:
            return NO_SYMBOLS
        return frozenset([size] if isinstance(size, str) else []).union(more or ())

    def handed_symbols(self) -> frozenset[str]:
        """The size symbols that only regions know: those of residuals whose sizes a forward rule binds, which the
        backward rule takes."""
        forward, backward = self.attributes.get("forward"), self.attributes.get("backward")
        if forward is None or backward is None:
            return NO_SYMBOLS
        taken = NO_SYMBOLS.union(*(type_symbols(t) for t in backward.param_types))
        return taken - function_symbols(forward)

    def binder(self, symbol: str) -> Var:
        """The result that binds a size symbol of this Let."""
        return next(v for v in self.outs if v.type.value == Sym(symbol))

    def uses_symbols(self) -> frozenset[str]:
        """Size symbols that this Let mentions and does not bind."""
        if self._uses is None:
            mentioned = [attribute_symbols(value) for value in self.attributes.values()]
            mentioned += (type_symbols(out.type) for out in self.outs)
            own = self.own_symbols() | self.handed_symbols()
            object.__setattr__(self, "_uses", frozenset().union(*mentioned) - own)
        return self._uses  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Function:
    """A closed program: every Var used is a parameter or the result of an earlier Let."""

    name: str
    params: tuple[Var, ...]
    lets: tuple[Let, ...]
    results: tuple[Atom, ...]
    _symbols = None  # type: frozenset[str] | None
    _derived = None  # type: dict | None  # see calls.py

    @property
    def param_types(self) -> tuple[Array, ...]:
        return tuple(p.type for p in self.params)

    @property
    def result_types(self) -> tuple[Array, ...]:
        return tuple(r.type for r in self.results)

    def __str__(self) -> str:
        from .show import show

        return show(self)


def _with_functions(value: Any, change: Callable[[Function], Function]) -> Any:
    if isinstance(value, Function):
        return change(value)
    if isinstance(value, tuple):
        new = tuple(_with_functions(part, change) for part in value)
        return value if all(a is b for a, b in zip(new, value)) else new
    return value


def attribute_symbols(value: Any) -> frozenset[str]:
    """Size symbols free in an attribute value (dims, types, tuples of them, Functions)."""
    if isinstance(value, Dim):
        return symbols(value)
    if isinstance(value, Array):
        return type_symbols(value)
    if isinstance(value, tuple):
        return NO_SYMBOLS.union(*map(attribute_symbols, value))
    if isinstance(value, Function):
        return function_symbols(value)
    return NO_SYMBOLS


def function_symbols(function: Function) -> frozenset[str]:
    """Size symbols free in a region: mentioned in it and not bound by a Let of it."""
    if function._symbols is None:
        mentioned = [type_symbols(param.type) for param in function.params]
        mentioned += (let.uses_symbols() for let in function.lets)
        bound = (let.own_symbols() for let in function.lets)
        object.__setattr__(function, "_symbols", frozenset().union(*mentioned).difference(*bound))
    return function._symbols  # type: ignore[return-value]
