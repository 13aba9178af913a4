"""What a call's arguments are to staging: which leaves are dynamic, of which types, with which symbolic dims.

In: (args, kwargs) as the user gave them. Out: `Call`: the leaves, their structure, a `Spec` a leaf, and the
key under which a specialisation is found again. Sizes are taken as they are at first; when a call comes with
others, the dims that changed become symbols, equal where the sizes are equal, and so much more where they stay so.

    f(ones(3))  ->  f64[3]        then f(ones(5))  ->  f64[n], which serves every later length from 2 on
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .. import tree_util
from ..astpasses.frontend import Number, StagedArray
from ..core.array_classes import is_foreign, is_on_device, plain_array, refuse_foreign
from ..core.dims import Dim, DimLike, Sym, solutions, symbols, symbols_of
from ..core.types import NAMES, Array
from ..interpreter import signature_of
from ..late import dataclass, field
from ..runtime.devices import Device
from ..source import SourceError, Span, caller_span
from .placement import is_exchanged, on_host, place_of, taken
from .statics import distinctions, static_key
from .types import ShapeDtypeStruct

Dims = tuple[DimLike, ...]


class Form(enum.Enum):
    """How a leaf looks to the user's program."""

    ARRAY = "array"  # a NumPy array, or a stand-in for one
    SCALAR = "scalar"  # a NumPy scalar
    NUMBER = "number"  # a Python int, float or complex: weak
    STATIC = "static"  # any other value: staging sees it as it is


@dataclass(frozen=True)
class Spec:
    """A leaf's type. `python`: the type of a NUMBER. `value`: of a STATIC leaf; of another, the leaf itself
    where staging may ask for its value (a Python number, a value of an outer staging)."""

    form: Form
    dtype: np.dtype | None = None
    dims: Dims = ()
    python: type | None = None
    value: Any = None
    shared: Any = None  # a front end's `Shared`: one object for all leaves that are the same memory

    @property
    def type(self) -> Array:
        assert self.dtype is not None
        return Array(self.dtype, self.dims)

    @property
    def dynamic(self) -> bool:
        return self.form is not Form.STATIC

    def with_dims(self, dims: Dims) -> Spec:
        return Spec(self.form, self.dtype, dims, self.python, self.value, self.shared)

    def key(self) -> tuple:
        """What two leaves must share to be served by one specialisation with symbolic dims."""
        if self.form is Form.STATIC:
            return (self.form, static_key(self.value))
        return (self.form, self.dtype, len(self.dims), self.python)

    def text(self) -> str:
        """For messages: f64[n, 3], int, 'relu'."""
        if self.form is Form.STATIC:
            return repr(self.value)
        return self.python.__name__ if self.python else repr(self.type)


_PYTHON_DTYPES = {int: np.dtype(np.int64), float: np.dtype(np.float64), complex: np.dtype(np.complex128)}


def spec_of(leaf: Any) -> Spec:
    """Python bools, strings, functions and the like are static; numbers and arrays are dynamic."""
    cls = type(leaf)
    if cls is np.ndarray or isinstance(leaf, np.ndarray):
        return Spec(Form.ARRAY, leaf.dtype, leaf.shape) if leaf.dtype in NAMES else Spec(Form.STATIC, value=leaf)
    if cls is int and not -(2**63) <= leaf < 2**63:  # no type of an array holds it: Python computes with it
        return Spec(Form.STATIC, value=leaf)
    if cls in _PYTHON_DTYPES:
        return Spec(Form.NUMBER, _PYTHON_DTYPES[cls], python=cls, value=leaf)
    if isinstance(leaf, np.generic):
        return Spec(Form.SCALAR, leaf.dtype) if leaf.dtype in NAMES else Spec(Form.STATIC, value=leaf)
    if isinstance(leaf, ShapeDtypeStruct):
        if leaf.weak_type:
            return Spec(Form.NUMBER, leaf.dtype, python={"i": int, "f": float, "c": complex}[leaf.dtype.kind])
        return Spec(Form.ARRAY if leaf.shape else Form.SCALAR, leaf.dtype, leaf.shape)
    if isinstance(leaf, (Number, StagedArray)):
        return _staged_spec(leaf)
    if is_on_device(leaf) and leaf.dtype in NAMES:
        return Spec(Form.ARRAY, leaf.dtype, leaf.shape)
    return Spec(Form.STATIC, value=leaf)


def _staged_spec(leaf: Number | StagedArray) -> Spec:
    """A value of a staging under way."""
    if isinstance(leaf, StagedArray):
        return Spec(Form.ARRAY, leaf.type.dtype, leaf.type.dims, value=leaf)
    assert isinstance(leaf, Number)
    if leaf.python is bool:
        return Spec(Form.SCALAR, leaf.dtype, value=leaf)
    form = Form.SCALAR if leaf.python is None else Form.NUMBER
    return Spec(form, leaf.dtype, python=leaf.python, value=leaf)


@dataclass
class Call:
    """One call, taken apart. `key` leaves out sizes; `dims` has them, for the dynamic leaves in order. `device`: the
    GPU that it runs on, or None."""

    leaves: list[Any]
    structure: tree_util.PyTreeDef
    specs: list[Spec]
    key: tuple
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    device: Device | None = None

    @property
    def dims(self) -> tuple[Dims, ...]:
        return tuple(s.dims for s in self.specs if s.dynamic)

    def dynamic_leaves(self) -> list[Any]:
        return [leaf for leaf, spec in zip(self.leaves, self.specs) if spec.dynamic]

    def with_dims(self, dims: Iterable[Dims]) -> list[Spec]:
        """The specs with other dims."""
        found = iter(dims)
        return [s.with_dims(next(found)) if s.dynamic else s for s in self.specs]


def take_apart(
    args: tuple, kwargs: dict, static: Sequence[int | str] = (), in_order: bool = False, wanted: Device | None = None
) -> Call:
    """`static`: positions and names of arguments that are static whatever they are. `in_order`: whether the
    order of keyword arguments is part of the call (a function with **kwargs sees it). `wanted`: where it is to run."""
    given = args, kwargs
    if static:
        args = tuple(_Opaque(a) if k in static else a for k, a in enumerate(args))
        kwargs = {name: _Opaque(a) if name in static else a for name, a in kwargs.items()}
    leaves, structure = tree_util.tree_flatten((args, kwargs if in_order else dict(sorted(kwargs.items()))))
    specs = []
    for k, leaf in enumerate(leaves):
        if type(leaf) is _Opaque:
            leaves[k] = leaf = leaf.value
            specs.append(Spec(Form.STATIC, value=leaf))
            continue
        if isinstance(leaf, np.ndarray) and type(leaf) is not np.ndarray:
            leaves[k] = leaf = plain_array(leaf, caller_span())
        if isinstance(leaf, np.ndarray) and not leaf.dtype.isnative:
            leaves[k] = leaf = _in_our_order(leaf)
        specs.append(spec_of(leaf))
        if specs[-1].form is Form.STATIC and is_exchanged(leaf):
            leaves[k] = leaf = taken(leaf, wanted)
            specs[-1] = spec_of(leaf)
        if specs[-1].form is Form.STATIC and is_foreign(leaf):
            from .program import leaf_labels

            refuse_foreign(leaf, caller_span(), leaf_labels(structure)[k])
    device = place_of(leaves, wanted)
    if wanted is not None and wanted.platform == "cpu":
        leaves = on_host(leaves)
    key = (structure, tuple(s.key() for s in specs), distinctions(structure), device)
    return Call(leaves, structure, specs, key, *given, device)


def _in_our_order(array: np.ndarray) -> np.ndarray:
    """A copy in this machine's byte order, read-only: a store into it would not reach the caller's array."""
    own = array.astype(array.dtype.newbyteorder("="))
    own.flags.writeable = False
    return own


class _Opaque:
    """Keeps an argument whole while the others are flattened."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def takes_any_keywords(function: Any) -> bool:
    """Whether a function has a parameter like **kwargs."""
    try:
        parameters = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind is p.VAR_KEYWORD for p in parameters)


_LETTERS = "nmpqrstuvw"


def size_name(k: int, taken: Iterable[str] = ()) -> str:
    """n, m, p, ..., then n1, m1, ...; never one of `taken`."""
    taken = set(taken)
    names = (letter + (str(round_) if round_ else "") for round_ in range(1000) for letter in _LETTERS)
    free = [name for name, _ in zip((n for n in names if n not in taken), range(k + 1))]
    return free[k]


HALO = 8  # two sizes that are so far apart at most, before and now, are taken to stay so


def generalise(known: Sequence[Dims], now: Sequence[tuple[int, ...]]) -> tuple[Dims, ...]:
    """Dims that serve both an earlier specialisation and this call. Sizes 0 and 1 keep programs of their own. A size
    that was as much more than another one as it is now is that one and so much, as of a grid with its frame.

    >>> generalise([(3, 4), (3,)], [(5, 4), (5,)])
    ((n, 4), (n,))
    >>> generalise([(5,), (3,)], [(9,), (7,)])
    ((n + 2,), (n,))
    >>> generalise([(3,)], [(1,)])
    ((1,),)
    """
    pairs = dict.fromkeys(pair for each in zip(known, now, strict=True) for pair in zip(*each, strict=True))
    frames = _frames(pairs)
    dims: dict[tuple[DimLike, int], DimLike] = {}
    for pair in pairs:
        if pair not in frames:
            dims[pair] = pair[1]
        elif frames[pair][0] not in dims:
            dims[frames[pair][0]] = Sym(size_name(sum(not isinstance(dim, int) for dim in dims.values())))
    dims |= {pair: dims[base] + more for pair, (base, more) in frames.items()}
    return tuple(tuple(dims[pair] for pair in zip(*each, strict=True)) for each in zip(known, now, strict=True))


def _frames(pairs: Iterable[tuple[DimLike, int]]) -> dict[tuple, tuple[tuple, int]]:
    """Of each pair of a size before and now that is not the same: the pair of the size that it follows, perhaps itself,
    and how much more it is."""
    frames: dict[tuple, tuple[tuple, int]] = {}
    for old, size in sorted(pairs, key=lambda pair: pair[1]):
        if (isinstance(old, int) and (old == size or old in (0, 1))) or size in (0, 1):
            continue
        bases = ((base, size - base[1]) for base, more in frames.values() if more == 0)
        found = (one for one in bases if 0 < one[1] <= HALO and old - one[0][0] == one[1])
        frames[old, size] = next(found, ((old, size), 0))
    return frames


def refuse_unknown_sizes(name: str, dims: Iterable[Dims], span: Span | None) -> None:
    """Raises SourceError where calls with arrays of these dims don't tell a size."""
    given = [dim for each in dims for dim in each]
    left = symbols_of(given) - {dim.name for dim in given if isinstance(dim, Dim) and dim.is_sym}
    for size in sorted(left - {solved for solved, *_ in solutions(left, given)}):
        held = " and ".join(dict.fromkeys(str(dim) for dim in given if size in symbols(dim)))
        raise SourceError(
            f"{name} can't be compiled: the arrays of a call don't tell the size {size}, which is in {held}",
            span,
            code="size",
            remedy=f"let an array have the size {size}, or one like 2*{size} + 1; or call {held} by one name",
        )
