"""Functions that give views: reshape, transpose, squeeze, broadcast_to, split, flip, ...

In: arrays. Out: views where NumPy gives views, copies where it copies. Functions that only copy are
answered by the library of `ops`.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.dims import dim_max, dim_min, floordiv, product
from metaphrase.ops.compare import gt
from metaphrase.ops.effects import check
from metaphrase.ops.limits import reshape_sizes, shape_in_words
from metaphrase.ops.shape import reshape as core_reshape
from metaphrase.source import UnsupportedError

from ..operators.arithmetic import broadcast_dims, require_equal
from ..staging.demand import need_concrete
from ..staging.session import Session, session
from ..values.layout import is_contiguous, reshaped
from ..values.orders import lies_by_rows
from ..values.phi import UnknownAlias, bind
from ..values.staged_values import Number, StagedArray
from ..values.views import Broadcast, Diagonal, Part, Permute, Rectangle, Reshape, view
from .call import handles
from .creation import array_from, dims_given
from .library_calls import call_library, run_rule


def as_array(value: Any) -> StagedArray:
    """Numbers as arrays of rank 0, lists as arrays."""
    return value if isinstance(value, StagedArray) else array_from(value)


def refused(message: str, remedy: str) -> UnsupportedError:
    return session().unsupported(message, remedy, code="numpy-function")


def several(axis: Any) -> tuple:
    """One axis, or the axes that a sequence names."""
    return tuple(axis) if isinstance(axis, (tuple, list, range)) else (axis,)


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """`axis` as sorted, non-negative axes."""
    if axis is None:
        return tuple(range(rank))
    out = []
    for item in several(axis):
        if not -rank <= int(item) < rank:
            raise np.exceptions.AxisError(int(item), rank)
        out.append(int(item) % rank)
    if len(set(out)) != len(out):
        raise ValueError("duplicate value in 'axis'")
    return tuple(sorted(out))


def folded_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes of a reduction: 0 and -1 are none of a number's."""
    return axes_of(axis, rank) if rank or not isinstance(axis, int) else axes_of(axis, 1)[1:]


def _is_size(here: Session, value: Number) -> bool:
    """Whether a number is known to be no -1, which would stand for what is left of the elements."""
    dim = here.size_of(value.atom) if value.dim is None or not here.is_bound(value.dim) else value.dim
    return dim is not None and here.facts.less_equal(0, dim)


@handles(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> StagedArray:
    here, x = session(), as_array(a)
    shape = newshape if shape is None else shape
    if order not in ("C", "F") and x.ndim > 1:
        raise here.dtype_error(
            f"order={order!r} depends on how an array lies in memory, which a translation does not know",
            remedy="say order='C' or order='F'",
        )
    total = product(x.type.dims)
    dims: list[Any] = [-1 if isinstance(d, (int, np.integer)) and d < 0 else d for d in several(shape)]
    numbers = [k for k, d in enumerate(dims) if isinstance(d, Number) and not _is_size(here, d)]
    sizes = {k: here.as_dim(d) for k, d in enumerate(dims) if k not in numbers}
    if numbers:
        rest = product(d for d in sizes.values() if d != -1)
        key: Any = (reshape_sizes, total, rest, -1 in sizes.values(), *(dims[k].atom for k in numbers))
        found: Any = here.done_before(key)
        if found is None:  # equal shapes have equal sizes
            known = here.size(total), here.size(rest), key[3], *(dims[k] for k in numbers)
            found = here.region.numbers[key] = run_rule(here, reshape_sizes, known, {}, False)
        sizes.update(zip(numbers, map(here.as_dim, found)))
    dims = [sizes[k] for k in range(len(dims))]
    if order == "F":
        return reshape(x.T, tuple(map(here.size, dims[::-1])), copy=copy).T
    shown, open_dims = shape_in_words(dims)
    message = f"cannot reshape array of size {{}} into shape {shown}"
    if -1 in dims:
        rest = product(d for d in dims if not (isinstance(d, int) and d == -1))
        if not isinstance(rest, int) and not here.facts.less(0, rest):
            some = here.emit(gt, here.dim_atom(rest), here.dim_atom(0))
            values = map(here.dim_atom, (total, *open_dims))
            here.emit(check, some, *values, exception="ValueError", message=message)
        dims[dims.index(-1)] = floordiv(total, rest) if rest != 0 else 0
    require_equal(
        here,
        total,
        product(dims),
        message,
        remedy="the numbers of elements must agree",
        code="reshape",
        values=(total, *open_dims),
    )
    made = _reshaped(here, x, tuple(dims), *reshaped(x, tuple(dims)))
    return here.array(made.read()) if copy else made


def _reshaped(here: Session, x: StagedArray, dims: tuple, verdict: str, relies: bool) -> StagedArray:
    """A view or a copy, as the layout says; `relies`: if the array at the base is contiguous."""
    if relies and x.box.origin is not None:
        here.layouts.contiguous.add(id(x.box))
    if verdict == "view":
        return view(x, Reshape(dims, relies))
    made = here.array(here.emit(core_reshape, x.read(), shape=dims))
    if verdict == "copy":
        here.layouts.reshaped.append((weakref.ref(made.box), x.box))
    if verdict == "unknown":
        name = getattr(x.box.atom, "name", "x")
        lies = "the array lies in memory, perhaps transposed or with gaps"
        why = "this runs" if lies_by_rows(here, x.box) else lies
        bind(made.box, UnknownAlias([x.box], f"a reshape of {name}", here.span(), f"it depends on how {why}"))
    return made


@handles(np.ravel)
def ravel(a: Any, order: str = "C") -> StagedArray:
    x = as_array(a)
    if order == "F":
        x = transpose(x)
    return _reshaped(session(), x, (product(x.type.dims),), *is_contiguous(x))


def flatten(a: Any, order: str = "C") -> StagedArray:
    return reshape(a, -1, order=order, copy=True)


@handles(np.transpose)
def transpose(a: Any, axes: Any = None) -> StagedArray:
    x = as_array(a)
    order = tuple(reversed(range(x.ndim))) if axes is None else tuple(int(k) % x.ndim for k in axes)
    if sorted(order) != list(range(x.ndim)):
        raise ValueError("axes don't match array")
    return x if order == tuple(range(x.ndim)) else view(x, Permute(order))


@handles(np.swapaxes)
def swapaxes(a: Any, axis1: int, axis2: int) -> StagedArray:
    x = as_array(a)
    order = list(range(x.ndim))
    (i,), (j,) = axes_of(axis1, x.ndim), axes_of(axis2, x.ndim)
    order[i], order[j] = order[j], order[i]
    return transpose(x, order)


@handles(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> StagedArray:
    x = as_array(a)
    froms, tos = ([axes_of(k, x.ndim)[0] for k in several(axes)] for axes in (source, destination))
    order = [k for k in range(x.ndim) if k not in froms]
    for to, at in sorted(zip(tos, froms)):
        order.insert(to, at)
    return transpose(x, order)


@handles(np.rollaxis)
def rollaxis(a: Any, axis: int, start: int = 0) -> StagedArray:
    x = as_array(a)
    (at,) = axes_of(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    order = [k for k in range(x.ndim) if k != at]
    order.insert(start - 1 if at < start else start, at)
    return transpose(x, order)


@handles(np.matrix_transpose)
def matrix_transpose(a: Any) -> StagedArray:
    return swapaxes(a, -1, -2)


@handles(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> StagedArray:
    x = as_array(a)
    gone = [k for k, d in enumerate(x.type.dims) if d == 1] if axis is None else folded_axes(axis, x.ndim)
    if any(x.type.dims[k] != 1 for k in gone):
        raise session().shape_error(
            "cannot select an axis to squeeze out which has size not equal to one",
            remedy="index the axis instead",
            code="squeeze",
        )
    return view(x, Reshape(tuple(d for k, d in enumerate(x.type.dims) if k not in gone)))


@handles(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> StagedArray:
    x = as_array(a)
    axes = several(axis)
    rank = x.ndim + len(axes)
    places = axes_of(tuple(axes), rank)
    rest = iter(x.type.dims)
    return view(x, Reshape(tuple(1 if k in places else next(rest) for k in range(rank))))


@handles(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> StagedArray:
    here, x = session(), as_array(array)
    dims = dims_given(here, shape, "all elements of broadcast shape must be non-negative")
    offset = len(dims) - x.ndim
    pairs = list(zip(x.type.dims, dims[offset:])) if offset >= 0 else []
    if offset < 0 or any(d not in (1, to) and isinstance(d, int) and isinstance(to, int) for d, to in pairs):
        raise here.shape_error(
            f"operands could not be broadcast together with remapped shapes: {x.type.dims} and {dims}"
        )
    if x.type.dims == dims:
        return StagedArray(x.box, x.chain, x.type, False)
    same = tuple(1 if d == 1 else to for d, to in pairs)
    if x.type.dims != same:
        for have, wanted in zip(x.type.dims, same):
            require_equal(here, have, wanted, "operands could not be broadcast together: sizes {} and {}")
        x = view(x, Rectangle((literal(0),) * x.ndim, same, (1,) * x.ndim))
    keep = [k for k, d in enumerate(x.type.dims) if d != 1 or dims[offset + k] == 1]
    if len(keep) != x.ndim:
        x = view(x, Reshape(tuple(x.type.dims[k] for k in keep)))
    return view(x, Broadcast(dims, tuple(offset + k for k in keep)))


@handles(np.broadcast_arrays)
def broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple:
    arrays = tuple(map(as_array, arrays))
    dims = broadcast_dims([x.type.dims for x in arrays])
    return tuple(broadcast_to(x, [session().size(d) for d in dims]) for x in arrays)


def _of_each(view_of: Callable[[StagedArray], StagedArray]) -> Callable:
    """A function of one array, or of several, for which it gives as many."""

    def handler(*arrays: Any) -> Any:
        made = tuple(map(view_of, map(as_array, arrays)))
        return made[0] if len(made) == 1 else made

    return handler


handles(np.atleast_1d)(_of_each(lambda x: x if x.ndim else reshape(x, 1)))
handles(np.atleast_2d)(_of_each(lambda x: x if x.ndim > 1 else reshape(x, (1, -1))))
handles(np.atleast_3d)(
    _of_each(lambda x: x if x.ndim > 2 else expand_dims(x, 2) if x.ndim == 2 else reshape(x, (1, -1, 1)))
)


# --- parts ---


@handles(np.real)
def real(val: Any) -> Any:
    return _part(val, "real")


@handles(np.imag)
def imag(val: Any) -> Any:
    return _part(val, "imag")


def _part(a: Any, name: str) -> Any:
    if isinstance(a, Number) or not isinstance(a, StagedArray) and np.ndim(a) == 0:
        return call_library(getattr(np, name), (a,), {})
    x = as_array(a)
    if x.dtype.kind == "c":
        return view(x, Part(name))
    return x if name == "real" else call_library(np.imag, (x,), {})


@handles(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> StagedArray:
    x = as_array(a)
    (i,), (j,) = axes_of(axis1, x.ndim), axes_of(axis2, x.ndim)
    rows, columns = x.type.dims[i], x.type.dims[j]
    offset = operator.index(offset)
    length = dim_min(rows - max(-offset, 0), columns - max(offset, 0))
    return view(x, Diagonal(offset, (i, j), length if offset == 0 else dim_max(length, 0)))


@handles(np.einsum)
def einsum(subscripts: Any, *operands: Any, **keywords: Any) -> Any:
    """Sums of products; what sums nothing of one array is a view of it, as in NumPy."""
    if isinstance(subscripts, str) and len(operands) == 1 and not keywords and "." not in subscripts:
        given, arrow, out = subscripts.replace(" ", "").partition("->")
        x = as_array(operands[0])
        if len(given) == x.ndim and arrow and sorted(given) == sorted(out):
            return transpose(x, tuple(given.index(label) for label in out))
        if given == 2 * out and x.ndim == 2 and x.type.dims[0] == x.type.dims[1]:
            made = diagonal(x)
            return StagedArray(made.box, made.chain, made.type, x.writeable)
    return call_library(np.einsum, (subscripts, *operands), keywords)


@handles(np.diag)
def diag(v: Any, k: int = 0) -> StagedArray:
    x = as_array(v)
    return diagonal(x, k) if x.ndim == 2 else call_library(np.diag, (x, k), {})


# --- splitting and turning ---


@handles(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list:
    return _parts(as_array(ary), indices_or_sections, axis, equal=True)


@handles(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list:
    return _parts(as_array(ary), indices_or_sections, axis, equal=False)


def _parts(x: StagedArray, sections: Any, axis: int, equal: bool) -> list:
    """Views of the parts along an axis: so many of them, or from place to place."""
    here = session()
    (at,) = axes_of(axis, x.ndim)
    lead = (slice(None),) * at
    if isinstance(sections, Number):
        sections = need_concrete(sections, "the number of parts", int)
    if isinstance(sections, (int, np.integer)):
        total, count = x.type.dims[at], int(sections)
        if count <= 0 and not equal:
            raise ValueError("number sections must be larger than 0.")
        if equal:
            each = floordiv(total, count)
            require_equal(
                here,
                total,
                each * count,
                "array split does not result in an equal division",
                remedy="use numpy.array_split, or another number of parts",
                code="split",
            )
            bounds: list = [here.size(each * k) for k in range(count)]
        else:  # the first parts are the longer ones
            lengths = [floordiv(total + (count - 1 - k), count) for k in range(count)]
            bounds = [here.size(sum(lengths[:k])) for k in range(count)]
    else:
        bounds = [0, *list(sections)]
    bounds.append(None)
    return here.born([x[(*lead, slice(bounds[k], bounds[k + 1]))] for k in range(len(bounds) - 1)])


@handles(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list:
    return split(ary, indices_or_sections, 0 if as_array(ary).ndim == 1 else 1)


handles(np.vsplit)(lambda ary, indices_or_sections: split(ary, indices_or_sections, 0))
handles(np.dsplit)(lambda ary, indices_or_sections: split(ary, indices_or_sections, 2))


@handles(*[f for f in (getattr(np, "unstack", None),) if f is not None])
def unstack(x: Any, /, *, axis: int = 0) -> tuple:
    moved = moveaxis(x, axis, 0)
    return tuple(moved[k] for k in range(len(moved)))


@handles(np.flip)
def flip(m: Any, axis: Any = None) -> StagedArray:
    x = as_array(m)
    axes = axes_of(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(x.ndim))]


handles(np.flipud)(lambda m: flip(m, 0))
handles(np.fliplr)(lambda m: flip(m, 1))


@handles(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> StagedArray:
    x = as_array(m)
    i, j = (axes_of(v, x.ndim)[0] for v in axes)
    if i == j:
        raise ValueError("Axes must be different.")
    k %= 4
    if k == 2:
        return flip(flip(x, i), j)
    if k == 0:
        return x[...]
    return swapaxes(flip(x, j), i, j) if k == 1 else flip(swapaxes(x, i, j), j)


@handles(np.shape)
def shape(a: Any) -> tuple:
    return as_array(a).shape


@handles(np.ndim)
def ndim(a: Any) -> int:
    return as_array(a).ndim


@handles(np.size)
def size(a: Any, axis: Any = None) -> Any:
    x = as_array(a)
    return session().size(product(x.type.dims) if axis is None else x.type.dims[axis])
