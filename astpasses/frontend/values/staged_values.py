"""Staged values: what user code holds in the place of numbers and arrays while it is staged.

In: atoms of the core program. Out: objects on which Python's operators, methods and iteration record
operations.

`Number`       a scalar, immutable. `python` is its Python type (weak: bool, int, float, complex) or None for a NumPy
               scalar. `dim`, for integers: the symbolic expression it equals, over sizes and loop indices. `narrow`:
               on some paths it is a NumPy scalar of this type, on others a Python number, which that may not hold.
               `among`: the Python numbers that it is one of, as far as staging knows (see flow/joins.py).
`StagedArray`  a NumPy array: a view (chain of steps) of a `Box`, which holds the current value.
`Maybe`        a value that only some paths have bound, with the staged flag that says so.
`Poison`       two values that could not be joined; using it is the error.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from metaphrase.core.dims import DimLike
from metaphrase.core.types import Array
from metaphrase.late import module
from metaphrase.source import UnsupportedError

from ..rewrite.plain import COMPARED, NAMES
from .doubts import SURE, Doubt

if TYPE_CHECKING:
    from metaphrase.core.ir import Atom

    from ..staging.session import Session

arithmetic: Any = module("metaphrase.astpasses.frontend.operators.arithmetic")
call: Any = module("metaphrase.astpasses.frontend.calls.call")
choices: Any = module("metaphrase.astpasses.frontend.flow.choices")
demand: Any = module("metaphrase.astpasses.frontend.staging.demand")
indexing: Any = module("metaphrase.astpasses.frontend.operators.indexing")
iteration: Any = module("metaphrase.astpasses.frontend.flow.iteration")
methods: Any = module("metaphrase.astpasses.frontend.calls.methods")
python_numbers: Any = module("metaphrase.astpasses.frontend.operators.python_numbers")
settling: Any = module("metaphrase.astpasses.frontend.staging.settling")
text: Any = module("metaphrase.astpasses.frontend.calls.text")

BINARY = {name: symbol for symbol, name in NAMES.items()}
_PYTHON = (None, bool, int, float, complex)
COMPARE = {name: symbol for symbol, name in COMPARED.items()}


class Staged:
    """What numbers and arrays share. Operators, and NumPy's own dispatch as a net behind the table of calls."""

    __slots__ = ()
    session: Session
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:  # the operators are set below; both classes ask `methods.attribute` for the rest
        __add__: Any
        __sub__: Any
        __mul__: Any
        __truediv__: Any
        __floordiv__: Any
        __mod__: Any
        __pow__: Any
        __matmul__: Any
        __and__: Any
        __or__: Any
        __lt__: Any
        __le__: Any
        __gt__: Any
        __ge__: Any

        def __getattr__(self, name: str) -> Any: ...

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        return call.call_value(ufunc if method == "__call__" else getattr(ufunc, method), args, keywords)

    def __array_function__(self, function: Any, types: Any, args: tuple, keywords: dict) -> Any:
        return call.call_value(function, args, keywords)

    def __metaphrase_bind__(self, primitive: Any, args: tuple, attributes: dict) -> Any:
        return self.__array_function__(primitive, (), args, attributes)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: dict) -> Any:
        return self.copy()

    def __bool__(self) -> bool:
        return demand.truth_value(self)

    def __str__(self) -> str:
        return text.shown(self).concrete()

    def __format__(self, spec: str) -> str:
        return text.shown(self, "", spec).concrete()

    def __index__(self) -> int:
        return demand.need_concrete(self, "the value of an integer (an index, a size, a count)", int)

    def __int__(self) -> int:
        return demand.need_concrete(self, "the value of an int", int)

    def __float__(self) -> float:
        return demand.need_concrete(self, "the value of a float", float)

    def __complex__(self) -> complex:
        return demand.need_concrete(self, "the value of a complex number", complex)

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        return demand.need_concrete(self, "the values of an array", np.ndarray)

    def __neg__(self) -> Any:
        return arithmetic.unary("neg", self)

    def __pos__(self) -> Any:
        return arithmetic.unary("pos", self)

    def __abs__(self) -> Any:
        return arithmetic.unary("abs", self)

    def __invert__(self) -> Any:
        return arithmetic.unary("invert", self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Any:
        return python_numbers.round_python(self, digits)


def _binary(symbol: str) -> tuple:
    def forward(self: Staged, other: Any) -> Any:
        return arithmetic.binary(symbol, self, other)

    def backward(self: Staged, other: Any) -> Any:
        return arithmetic.binary(symbol, other, self)

    return forward, backward


for _name, _symbol in BINARY.items():
    _forward, _backward = _binary(_symbol)
    setattr(Staged, f"__{_name}__", _forward)
    setattr(Staged, f"__r{_name}__", _backward)
for _name, _symbol in COMPARE.items():
    setattr(Staged, f"__{_name}__", _binary(_symbol)[0])


class Number(Staged):
    """A staged scalar."""

    __slots__ = ("session", "_atom", "python", "narrow", "dim", "among", "doubts", "weak", "weak_dim")

    def __init__(self, session: Session, atom: Atom | None, kind: type | None, dim: DimLike | None = None):
        self.session, self._atom, self.dim = session, atom, dim
        self.python: Any = kind if kind in _PYTHON else None
        self.narrow: Any = kind if kind not in _PYTHON else None
        self.among: tuple | None = None
        self.doubts: frozenset[Doubt] = SURE  # whether it is Python's depends on these
        self.weak: type | None = None  # what it is then, and by what expression of sizes
        self.weak_dim: DimLike | None = None

    @property
    def is_strong(self) -> bool:
        """Whether a doubtful one has been found to be NumPy's."""
        return any(doubt.strong for doubt in self.doubts)

    def ask(self) -> type | None:
        """Whose a doubtful one is, as far as is known: something depends on it."""
        if self.is_strong:
            return None
        for doubt in self.doubts:
            doubt.ask()
        return self.weak

    def as_pythons(self) -> Number:
        """A doubtful one as Python's, without asking."""
        return Number(self.session, self._atom, self.weak, self.weak_dim)

    def either(self) -> Number:
        """The number where it does not matter whose it is."""
        return Number(self.session, self._atom, None)

    @property
    def kind(self) -> type | None:
        """What its constructor takes: `python`, or `narrow`."""
        return self.python or self.narrow

    def __copy__(self) -> Number:
        return self  # a number is not changed

    def __deepcopy__(self, memo: dict) -> Number:
        return self

    def __hash__(self) -> int:  # type: ignore[override]
        return demand.hash_of(self)

    @property
    def atom(self) -> Atom:
        """The core value, in the session that owns it."""
        if self._atom is not None:
            return self._atom
        return self.session.dim_atom(self.dim)

    @property
    def dtype(self) -> np.dtype:
        return np.dtype("int64") if self._atom is None else self._atom.type.dtype

    @property
    def type(self) -> Array:
        return Array(self.dtype)

    shape, ndim, size, nbytes = (), 0, 1, 8

    def __repr__(self) -> str:
        return f"<staged {self.python.__name__ if self.python else self.dtype}>"

    def __getattr__(self, name: str) -> Any:
        if name in ("python", "dim"):
            weak = self.ask()
            return weak if name == "python" or weak is None else self.weak_dim
        if name.startswith("__"):
            raise AttributeError(name)
        return methods.attribute(self, name)


def counts(number: Number) -> bool:
    """Whether it is, on some path, an int of Python's, which never wraps."""
    return number.python is int or number.narrow is not None and np.dtype(number.narrow).kind in "iu"


class Box:
    """A place that holds an array. `origin` says where it comes from when it existed before the call;
    `by_rows` whether it lies in memory row after row, None where what made its `first` value says that."""

    __slots__ = (
        "session",
        "atom",
        "first",
        "by_rows",
        "version",
        "stored",
        "origin",
        "phi",
        "known",
        "handles",
        "label",
        "region",
        "dependents",
        "__weakref__",
    )

    def __init__(self, session: Session, atom: Atom, origin: Any = None):
        self.session, self.atom, self.version, self.origin = session, atom, 0, origin
        self.first, self.stored = atom, False
        self.by_rows: bool | None = None
        self.phi: Any = None
        self.known: np.ndarray | None = None
        self.handles: list[weakref.ref] = []
        self.dependents: list[weakref.ref] = []
        self.region = session.region
        self.label = session.label(self)

    def alive(self, asking: Box | None = None) -> bool:
        """Whether user code can still reach it: it came from outside, some array object views it, or (apart
        from `asking`) an array that may be this one, or that this one may be, is alive."""
        reached, todo = {id(asking), id(self)}, [self]
        while todo:
            box = todo.pop()
            box.handles = [h for h in box.handles if h() is not None]
            if box.origin is not None or box.handles:
                return True
            near = [other for d in box.dependents if (other := d()) is not None]
            near += box.phi.boxes if box.phi is not None else []
            todo += [other for other in near if id(other) not in reached]
            reached.update(map(id, near))
        return False


class StagedArray(Staged):
    """A view of a box. `chain` is the steps from the box's array to this one."""

    __slots__ = ("session", "box", "chain", "type", "writeable", "_cache", "__weakref__")

    def __init__(
        self, box: Box, chain: tuple = (), type: Array | None = None, writeable: bool | None = True
    ):  # `writeable` is None where the run decides
        self.session, self.box, self.chain, self.writeable = box.session, box, chain, writeable
        self.type = box.atom.type.plain if type is None else type
        self._cache: tuple = (None, None, None)
        box.handles.append(weakref.ref(self))

    def read(self) -> Atom:
        """The value now, in the current region."""
        return self.session.read_view(self)

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.ndim

    @property
    def shape(self) -> tuple:
        return tuple(self.session.size(d) for d in self.type.dims)

    def __len__(self) -> int:
        return demand.length(self)

    def __iter__(self) -> Iterator:
        return iteration.iterate_array(self)

    def __getitem__(self, index: Any) -> Any:
        return indexing.get_item(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        indexing.set_item(self, index, value)

    def __contains__(self, value: Any) -> Any:
        return (self == value).any()

    def __repr__(self) -> str:
        return f"<staged {self.type}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__array_wrap__":
            raise AttributeError(name)
        return methods.attribute(self, name)


def _inplace(symbol: str) -> Any:
    def operation(self: StagedArray, other: Any) -> StagedArray:
        return arithmetic.inplace(symbol, self, other)

    return operation


for _name, _symbol in BINARY.items():
    setattr(StagedArray, f"__i{_name}__", _inplace(_symbol))


class Unsettled:
    """A value whose use is a question first: operators, truth, items and attributes settle it."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def _settled(self) -> Any:
        return settling.settled(self)

    def __bool__(self) -> bool:
        return bool(self._settled())

    def __iter__(self) -> Iterator:
        return iter(self._settled())

    def __len__(self) -> int:
        return len(self._settled())

    def __getitem__(self, index: Any) -> Any:
        return self._settled()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._settled()[index] = value

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._settled()(*args, **keywords)

    def __neg__(self) -> Any:
        return -self._settled()

    def __abs__(self) -> Any:
        return abs(self._settled())

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        return getattr(ufunc, method)(*map(settling.settled, args), **keywords)


def _of_settled(name: str) -> tuple:
    operation = getattr(operator, f"__{name}__")

    def forward(self: Unsettled, other: Any) -> Any:
        return operation(self._settled(), other)

    def backward(self: Unsettled, other: Any) -> Any:
        return operation(other, self._settled())

    return forward, backward


for _name in (*BINARY, *COMPARE):
    _forward, _backward = _of_settled(_name)
    setattr(Unsettled, f"__{_name}__", _forward)
    if _name in BINARY:
        setattr(Unsettled, f"__r{_name}__", _backward)


class Maybe(Unsettled):
    """`missing` is what the variable is where `flag` is false: an `Undefined`, or None."""

    __slots__ = ("flag", "value", "missing")

    def __init__(self, flag: Any, value: Any, missing: Any):
        self.flag, self.value, self.missing = flag, value, missing


class Poison(Unsettled):
    """Two paths left values that have no common form."""

    __slots__ = ("reason", "span", "roots")
    remedy = "give it one type on every path"

    def __init__(self, reason: str, span: Any, roots: frozenset = frozenset()):
        self.reason, self.span = reason, span
        self.roots = roots  # the ints that are given, and alone say which of the two it is


class Unsized(Poison):
    """Arrays of two sizes, of which nothing outside says how large they get: where one is used, staging
    begins again and gives them room at `site`."""

    __slots__ = ("site",)

    def __init__(self, site: tuple, reason: str, span: Any):
        super().__init__(reason, span)
        self.site = site


class Truth(Poison):
    """`stack and x > 0` where the run decides which of the two it is: they have no common form, and nothing
    but the truth of it can be used."""

    __slots__ = ("flag",)
    remedy = "ask for its truth only (`if`, `while`, `not`), or write a[0] for an array, bool(a) for a list"

    def __init__(self, flag: Any, reason: str, span: Any):
        super().__init__(reason, span)
        self.flag = flag


class OneOf(Unsettled):
    """One of several Python values: that with the number `tag`, which the run knows."""

    __slots__ = ("values", "tag")

    def __init__(self, values: tuple, tag: Number):
        self.values, self.tag = values, tag

    def _settled(self) -> Any:
        shown = ", ".join(map(repr, self.values))
        raise UnsupportedError(
            f"which of {shown} this is, is only known when the program runs",
            self.tag.session.span(),
            code="join",
            remedy="test it with `if`, and use the value on each path",
        )

    def __hash__(self) -> int:  # type: ignore[override]
        return self._settled()

    __str__ = __repr__ = lambda self: self._settled()  # type: ignore[assignment, attr-defined]

    def __format__(self, spec: str) -> str:
        return self._settled()

    @property
    def flag(self) -> Any:
        return choices.truth(self)
