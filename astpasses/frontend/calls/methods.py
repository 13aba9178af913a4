"""Methods and attributes of staged arrays and NumPy scalars: `x.sum(...)`, `x.T`, `x.at[i].set(v)`.

In: a staged value and a name. Out: the attribute, or a function bound to the value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.dims import product
from metaphrase.ops.shape import bitcast, convert
from metaphrase.source import SourceError, close_name

from ..flow.gathering import items_of_array
from ..operators.python_numbers import to_integer
from ..staging.demand import need_concrete
from ..staging.python_names import python_name
from ..staging.session import session
from ..values.layout import is_contiguous
from ..values.staged_values import Number, Staged, StagedArray
from ..values.views import Bits, Reshape
from ..values.views import view as seen_through
from .call import call_value, handles
from .creation import dtype_given
from .numpy_shapes import flatten as flat
from .places import At

FUNCTIONS: dict[str, Callable] = {
    name: getattr(np, name)
    for name in (
        "sum mean prod max min argmax argmin any all var std cumsum cumprod dot reshape transpose ravel "
        "squeeze swapaxes clip repeat take diagonal trace argsort searchsorted nonzero "
        "round choose argpartition"
    ).split()
}


class NoAttribute(SourceError, AttributeError):
    """An attribute that arrays do not have while they are staged."""


def users_attribute(value: Any, name: str) -> Any:
    """`value.name` where a user wrote it: Python's numbers have no attributes of arrays."""
    python = value.python if isinstance(value, Number) else None
    if python is not None and not hasattr(python, name):
        raise NoAttribute(
            f"'{python.__name__}' object has no attribute {name!r}",
            session().span(),
            code="no-attribute",
            remedy="it is a number of Python: use a function of NumPy, or np.asarray(...) of it",
        )
    return getattr(value, name)


def attribute(value: Any, name: str) -> Any:
    """`value.name`."""
    python = value.python if isinstance(value, Number) else None
    if python is not None and name in _OF_NUMBERS and hasattr(python, name):
        return _of_python(value, python, name)
    if name in ("numerator", "denominator") and isinstance(value, Number) and value.dtype.kind in "iu":
        return value if name == "numerator" else 1
    found = PROPERTIES.get(name)
    if found is not None:
        return found(value)
    own = METHODS.get(name)
    if own is not None:
        return functools.partial(own, value)
    function = FUNCTIONS.get(name)
    if function is None:
        said, remedy = f"'{python_name(value)}' object has no attribute {name!r}", "use a function of NumPy's"
        if hasattr(np.ndarray, name):
            said, remedy = f"{said} that metaphrase translates", "use a NumPy function that does the same"
        elif close := close_name(name, dir(np.ndarray)):
            remedy = f"did you mean {close!r}?"
        raise NoAttribute(said, session().span(), code="no-attribute", remedy=remedy)
    if name in ("reshape", "transpose"):
        return functools.partial(_spread_arguments, function, value)
    return lambda *args, **keywords: call_value(function, (value, *args), keywords)


_OF_NUMBERS = (
    *("real", "imag", "conjugate", "numerator", "denominator", "is_integer"),
    *("bit_length", "bit_count", "as_integer_ratio", "hex", "to_bytes"),
)


def _of_python(value: Number, python: type, name: str) -> Any:
    """What Python's numbers have: parts that are Python's; what looks at their digits needs the value."""
    here, kind = session(), float if python is float else complex if python is complex else int
    if name == "is_integer" and python is not complex:
        return lambda: call_value(bool, (is_integer(value),), {})
    if name in ("real", "imag", "conjugate") and python is complex:
        made = {"real": np.real, "imag": np.imag, "conjugate": np.conjugate}[name]
        part = here.wrap(here.atom(call_value(made, (value,), {})), complex if name == "conjugate" else float)
        return (lambda: part) if name == "conjugate" else part
    if name in ("real", "numerator", "conjugate"):
        part = call_value(kind, (value,), {})
        return (lambda: part) if name == "conjugate" else part
    if name in ("imag", "denominator"):
        return kind(name == "denominator")
    return getattr(need_concrete(value, f"{name!r} of a number", python), name)


def _spread_arguments(function: Callable, value: Any, *args: Any, **keywords: Any) -> Any:
    """`x.reshape(2, 3)` and `x.reshape((2, 3))`."""
    if len(args) > 1:
        args = (args,)
    return call_value(function, (value, *args), keywords)


# --- properties ---


def _transposed(value: Any) -> Any:
    return call_value(np.transpose, (value,), {}) if isinstance(value, StagedArray) else value


def _size(value: Any) -> Any:
    return session().size(product(value.type.dims))


PROPERTIES: dict[str, Callable] = {
    "T": _transposed,
    "mT": lambda x: call_value(np.swapaxes, (x, -1, -2), {}),
    "real": lambda x: call_value(np.real, (x,), {}),
    "imag": lambda x: call_value(np.imag, (x,), {}),
    "size": _size,
    "itemsize": lambda x: x.dtype.itemsize,
    "nbytes": lambda x: _size(x) * x.dtype.itemsize,
    "flat": lambda x: Flat(x),
    "base": lambda x: None,
    "device": lambda x: "cpu",
    "flags": lambda x: _Flags(x),
    "at": lambda x: At(x),
    "__array_wrap__": lambda x: _wrapped,
}


def _wrapped(array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """`x.__array_wrap__(array)`, of arrays that have no class of their own."""
    if not isinstance(array, (StagedArray, np.ndarray)):
        raise TypeError(f"__array_wrap__() argument 1 must be numpy.ndarray, not {python_name(array)}")
    made = call_value(np.asarray, (array,), {})
    return made[()] if return_scalar and np.ndim(made) == 0 else made


class Flat(StagedArray):
    """`x.flat`: all elements in C order, whatever the layout. What is read out of it is a copy."""

    __slots__ = ()

    def __init__(self, array: StagedArray):
        made = Reshape((product(array.type.dims),))
        super().__init__(array.box, (*array.chain, made), made.type(array.type), array.writeable)

    def __getitem__(self, index: Any) -> Any:
        picked = super().__getitem__(index)
        return picked if isinstance(picked, Number) else call_value(np.array, (picked,), {})


class _Flags:
    """`x.flags`, as far as programs ask."""

    def __init__(self, array: StagedArray):
        self.writeable = array.writeable
        self.c_contiguous = is_contiguous(array)[0] == "view"


# --- methods ---


def astype(
    value: Any, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: Any = True
) -> Any:
    """`x.astype(dtype)`: a converted copy; `x` itself where that is allowed and will do."""
    here, kind = session(), dtype_given(dtype)
    if not np.can_cast(value.dtype, kind, casting):
        raise TypeError(f"Cannot cast array data from {value.dtype!r} to {kind!r} according to the rule {casting!r}")
    if not copy and isinstance(value, StagedArray) and value.dtype == kind:
        return value
    atom = here.atom(value)
    made = here.emit(convert, atom, dtype=kind) if atom.type.dtype != kind else atom
    return here.array(made) if isinstance(value, StagedArray) else here.wrap(made)


handles(np.astype)(astype)


def flatten(value: StagedArray, order: str = "C") -> StagedArray:
    return flat(value, order)


def item(value: Any, *index: Any) -> Any:
    """`x.item()`: a Python number."""
    here = session()
    picked = value
    if index and isinstance(value, StagedArray) and value.ndim != 1 and not isinstance(index[0], tuple):
        picked = value[index] if len(index) > 1 else Flat(value)[index[0]]
    elif index:
        picked = value[index if len(index) > 1 else index[0]]
    kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[picked.dtype.kind]
    if isinstance(picked, StagedArray):
        picked = picked.reshape(())
    if kind is int:
        return here.wrap(to_integer(here, here.atom(picked)), int)
    dtype = {bool: "bool", float: "float64", complex: "complex128"}[kind]
    return here.wrap(here.atom(picked, np.dtype(dtype)), kind)


def tolist(value: Any) -> Any:
    if isinstance(value, Number) or value.ndim == 0:
        return item(value)
    kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[value.dtype.kind]
    if (items := items_of_array(session(), value, kind)) is not None:
        return items
    return session().born([tolist(value[k]) for k in range(len(value))])


def fill(value: StagedArray, with_: Any) -> None:
    value[...] = with_


def _refused(name: str, why: str, remedy: str) -> Callable:
    def method(value: Any, *args: Any, **keywords: Any) -> Any:
        raise session().unsupported(f"x.{name}(...) {why}", remedy, code="no-attribute")

    return method


_OUTSIDE = "call it on the result, outside of the translated function"
REFUSED: dict[str, tuple[str, str]] = {
    "tobytes": ("reads memory", _OUTSIDE),
    "tofile": ("writes a file", _OUTSIDE),
    "dump": ("writes a file", _OUTSIDE),
    "dumps": ("reads memory", _OUTSIDE),
    "byteswap": ("reads memory", _OUTSIDE),
    "getfield": ("reads memory", "use x.view or x.astype outside"),
    "setfield": ("writes memory", "use x.view or x.astype outside"),
    "setflags": ("changes an array object", _OUTSIDE),
    "resize": ("changes the size of an array in place", "use np.resize, which makes a new array"),
    "to_device": ("moves an array", "arrays are in the memory of the CPU"),
}


def is_integer(value: Number) -> Any:
    return value == call_value(np.floor, (value,), {})


def block_until_ready(value: Any) -> Any:
    return value


def conjugate(value: Any, *args: Any, **keywords: Any) -> Any:
    """`x.conj()`: of real arrays the array itself."""
    if isinstance(value, StagedArray) and value.dtype.kind != "c" and not args and not keywords:
        return value
    return call_value(np.conjugate, (value, *args), keywords)


def view(value: Staged, dtype: Any = None) -> Any:
    wanted = value.dtype if dtype is None else np.dtype(dtype)
    if wanted == value.dtype:
        return value[...] if isinstance(value, StagedArray) else value
    if wanted.itemsize != value.dtype.itemsize or {wanted.kind, value.dtype.kind} & set("bc"):
        raise session().dtype_error(
            f"x.view({wanted}) of {value.dtype} is not supported",
            remedy="take a real dtype of the same width, or x.astype(dtype)",
        )
    if isinstance(value, StagedArray):
        return seen_through(value, Bits(wanted))
    here = session()
    return here.wrap(here.emit(bitcast, here.atom(value, value.dtype), dtype=wanted))


METHODS: dict[str, Callable] = {
    "astype": astype,
    "copy": lambda x, order="C": call_value(np.copy, (x, order), {}),
    "flatten": flatten,
    "item": item,
    "tolist": tolist,
    "fill": fill,
    "sort": lambda x, axis=-1, **ignored: fill(x, call_value(np.sort, (x, axis), {})),
    "partition": lambda x, kth, axis=-1, **ignored: fill(x, call_value(np.partition, (x, kth, axis), {})),
    "conj": conjugate,
    "conjugate": conjugate,
    "put": lambda x, *args, **keywords: call_value(np.put, (x, *args), keywords),
    "compress": lambda x, condition, *args, **keywords: call_value(np.compress, (condition, x, *args), keywords),
    "is_integer": is_integer,
    "block_until_ready": block_until_ready,
    "view": view,
    **{name: _refused(name, *reason) for name, reason in REFUSED.items()},
}


def store_attribute(target: StagedArray, name: str, value: Any) -> None:
    """`x.real = ...`, `x.flat = ...`, `x.shape = ...`."""
    if name == "shape" and (target.box.origin is None or target.chain) and len(session().regions) == 1:
        seen = call_value(np.reshape, (target, value), {})
        if seen.box is not target.box and not target.chain:  # all of an array of our own
            seen = seen_through(target, Reshape(seen.type.dims, relies=True))
        if seen.box is not target.box:
            raise AttributeError("incompatible shape for in-place modification: use `.reshape()` instead")
        target.chain, target.type, target._cache = seen.chain, seen.type, (None, None, None)
        return
    if name == "flat":
        flat = Flat(target)
        if value is not flat and not isinstance(value, Flat):  # `x.flat[...] op= v` has stored already
            flat[...] = call_value(np.resize, (value, flat.shape), {})
        return
    if name == "real" or name == "imag" and target.dtype.kind == "c":
        part = call_value(getattr(np, name), (target,), {})
        if value is not part:
            part[...] = value
        return
    raise session().dtype_error(
        f"assignment to the attribute {name!r} of an array is not supported",
        remedy="use x = x.reshape(...) for another shape",
    )
