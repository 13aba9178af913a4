"""Functions that move elements: reshape, transpose, concatenate, split, pad, flip, take, ...

In: arrays. Out: views where NumPy gives views, copies where it copies.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.dims import floordiv, product
from metaphrase.ops.shape import broadcast
from metaphrase.ops.shape import reshape as core_reshape
from metaphrase.ops.structure import concatenate as core_concatenate
from metaphrase.ops.structure import pad as core_pad

from .arithmetic import broadcast_dims
from .calls import handles
from .creation import dims_given
from .numpy_reduce import as_array, axes_of
from .session import session
from .values import Number, StagedArray
from .views import Broadcast, Permute, Reshape, view


def is_contiguous(x: StagedArray) -> bool:
    """Whether a reshape of x is a view of it, as far as is known."""
    for step in x.chain:
        if isinstance(step, Reshape):
            continue
        return False
    return True


@handles(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> StagedArray:
    here, x = session(), as_array(a)
    shape = newshape if shape is None else shape
    given = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    dims = [-1 if isinstance(d, (int, np.integer)) and d == -1 else here.as_dim(d) for d in given]
    if order == "F":
        return reshape(x.T, tuple(dims[::-1])).T
    total = product(x.type.dims)
    if -1 in dims:
        rest = product(d for d in dims if not (isinstance(d, int) and d == -1))
        if isinstance(total, int) and isinstance(rest, int) and (rest == 0 or total % rest):
            raise here.shape_error(f"cannot reshape array of size {total} into shape {tuple(dims)}")
        dims[dims.index(-1)] = floordiv(total, rest)
    wanted = product(dims)
    if isinstance(total - wanted, int) and total != wanted:
        raise here.shape_error(f"cannot reshape array of size {total} into shape {tuple(dims)}")
    if tuple(dims) == x.type.dims and not x.chain:
        return view(x, Reshape(tuple(dims)))
    if is_contiguous(x):
        return view(x, Reshape(tuple(dims)))
    return here.array(here.emit(core_reshape, x.read(), shape=tuple(dims)))


@handles(np.ravel)
def ravel(a: Any, order: str = "C") -> StagedArray:
    return reshape(a, -1, order=order)


def flatten(a: Any, order: str = "C") -> StagedArray:
    made = reshape(a, -1, order=order)
    return session().array(made.read())


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
    froms = [s % x.ndim for s in (source if isinstance(source, (tuple, list)) else (source,))]
    tos = [d % x.ndim for d in (destination if isinstance(destination, (tuple, list)) else (destination,))]
    order = [k for k in range(x.ndim) if k not in froms]
    for to, at in sorted(zip(tos, froms)):
        order.insert(to, at)
    return transpose(x, order)


@handles(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> StagedArray:
    x = as_array(a)
    gone = [k for k, d in enumerate(x.type.dims) if isinstance(d, int) and d == 1] if axis is None else axes_of(
        axis, x.ndim)
    if any(x.type.dims[k] != 1 for k in gone):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one")
    return view(x, Reshape(tuple(d for k, d in enumerate(x.type.dims) if k not in gone)))


@handles(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> StagedArray:
    x = as_array(a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.ndim + len(axes)
    places = axes_of(tuple(axes), rank)
    rest = iter(x.type.dims)
    return view(x, Reshape(tuple(1 if k in places else next(rest) for k in range(rank))))


@handles(np.broadcast_to)
def broadcast_to(a: Any, shape: Any, subok: bool = False) -> StagedArray:
    here, x = session(), as_array(a)
    dims = dims_given(here, shape)
    if broadcast_dims([x.type.dims, dims]) != dims:
        raise here.shape_error(f"operands could not be broadcast together with remapped shapes: {x.type.dims} and {dims}")
    if x.type.dims == dims:
        return StagedArray(x.box, x.chain, x.type, False)
    offset = len(dims) - x.ndim
    keep = [k for k, d in enumerate(x.type.dims) if d != 1 or dims[offset + k] == 1]
    if len(keep) != x.ndim:
        x = view(x, Reshape(tuple(x.type.dims[k] for k in keep)))
    return view(x, Broadcast(dims, tuple(offset + k for k in keep)))


@handles(np.broadcast_arrays)
def broadcast_arrays(*arrays: Any, subok: bool = False) -> tuple:
    arrays = tuple(map(as_array, arrays))
    dims = broadcast_dims([x.type.dims for x in arrays])
    return tuple(broadcast_to(x, [session().size(d) for d in dims]) for x in arrays)


@handles(np.atleast_1d)
def atleast_1d(*arrays: Any) -> Any:
    made = tuple(x if x.ndim else reshape(x, 1) for x in map(as_array, arrays))
    return made[0] if len(made) == 1 else made


@handles(np.atleast_2d)
def atleast_2d(*arrays: Any) -> Any:
    made = tuple(x if x.ndim > 1 else reshape(x, (1, -1)) for x in map(as_array, arrays))
    return made[0] if len(made) == 1 else made


# --- joining and splitting ------------------------------------------------------------------------------------------

def _sequence(arrays: Any) -> list[StagedArray]:
    from .literals import elements
    return [as_array(a) for a in elements(session(), arrays)]


@handles(np.concatenate)
def concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, **ignored: Any) -> StagedArray:
    here, parts = session(), _sequence(arrays)
    if not parts:
        raise ValueError("need at least one array to concatenate")
    if any(p.ndim == 0 for p in parts):
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    if axis is None:
        parts, axis = [ravel(p) for p in parts], 0
    (at,) = axes_of(axis, parts[0].ndim)
    kind = np.result_type(*[p.dtype for p in parts]) if dtype is None else np.dtype(dtype)
    atoms = [here.atom(p, kind) for p in parts]
    from .arithmetic import equal_size
    for k, atom in enumerate(atoms):
        if atom.type.ndim != atoms[0].type.ndim:
            raise here.shape_error("all the input array dimensions except for the concatenation axis must match "
                                   f"exactly: {atoms[0].type} and {atom.type}")
        for d, (have, want) in enumerate(zip(atom.type.dims, atoms[0].type.dims)):
            if d != at and have != want:
                if isinstance(have, int) and isinstance(want, int):
                    raise here.shape_error("all the input array dimensions except for the concatenation axis must "
                                           f"match exactly: {atoms[0].type} and {atom.type}")
                atoms[k] = equal_size(here, atoms[k], d, want)
    made = here.array(atoms[0] if len(atoms) == 1 else here.emit(core_concatenate, *atoms, axis=at))
    if out is not None:
        from .numpy_calls import store_out
        return store_out(out, made)
    return made


@handles(np.stack)
def stack(arrays: Any, axis: int = 0, out: Any = None, **ignored: Any) -> StagedArray:
    parts = _sequence(arrays)
    return concatenate([expand_dims(p, axis) for p in parts], axis, out)


@handles(np.vstack)
def vstack(arrays: Any, **ignored: Any) -> StagedArray:
    return concatenate([atleast_2d(p) for p in _sequence(arrays)], 0)


@handles(np.hstack)
def hstack(arrays: Any, **ignored: Any) -> StagedArray:
    parts = [atleast_1d(p) for p in _sequence(arrays)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1)


@handles(np.column_stack)
def column_stack(arrays: Any) -> StagedArray:
    return concatenate([p if p.ndim > 1 else reshape(p, (-1, 1)) for p in _sequence(arrays)], 1)


@handles(np.append)
def append(a: Any, values: Any, axis: Any = None) -> StagedArray:
    return concatenate([as_array(a), as_array(values)], axis)


@handles(np.split, np.array_split)
def split(a: Any, sections: Any, axis: int = 0) -> list:
    here, x = session(), as_array(a)
    (at,) = axes_of(axis, x.ndim)
    lead = (slice(None),) * at
    if isinstance(sections, (int, np.integer)):
        total = x.type.dims[at]
        if not isinstance(total, int):
            from .demand import need_concrete
            total = need_concrete(here.size(total), "the size of the array that is split", int)
        if total % sections:
            each, extra = divmod(total, sections)
            sizes = [each + 1] * extra + [each] * (sections - extra)
        else:
            sizes = [total // sections] * sections
        bounds = list(np.cumsum([0, *sizes]))
    else:
        bounds = [0, *list(sections), None]
    return [x[(*lead, slice(bounds[k], bounds[k + 1]))] for k in range(len(bounds) - 1)]


@handles(np.hsplit)
def hsplit(a: Any, sections: Any) -> list:
    return split(a, sections, 0 if as_array(a).ndim == 1 else 1)


@handles(np.vsplit)
def vsplit(a: Any, sections: Any) -> list:
    return split(a, sections, 0)


# --- repeating, turning, padding ------------------------------------------------------------------------------------

@handles(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> StagedArray:
    here, x = session(), as_array(a)
    x = ravel(x) if axis is None else x
    (at,) = axes_of(0 if axis is None else axis, x.ndim)
    if isinstance(repeats, StagedArray) and repeats.box.known is not None:
        repeats = repeats.box.known
    if isinstance(repeats, (list, tuple, np.ndarray)):
        positions = np.repeat(np.arange(len(repeats)), repeats)
        from .numpy_picking import take
        return take(x, positions, at)
    count = here.as_dim(repeats)
    dims = x.type.dims
    wide = (*dims[:at + 1], count, *dims[at + 1:])
    axes = (*range(at + 1), *range(at + 2, len(wide)))
    atom = here.emit(broadcast, x.read(), shape=wide, axes=axes)
    return here.array(here.emit(core_reshape, atom, shape=(*dims[:at], dims[at] * count, *dims[at + 1:])))


@handles(np.tile)
def tile(a: Any, reps: Any) -> StagedArray:
    here, x = session(), as_array(a)
    counts = [here.as_dim(r) for r in (reps if isinstance(reps, (tuple, list)) else (reps,))]
    rank = max(len(counts), x.ndim)
    counts = [1] * (rank - len(counts)) + counts
    dims = (1,) * (rank - x.ndim) + x.type.dims
    atom = x.read()
    wide = tuple(d for pair in zip(counts, dims) for d in pair)
    have = [k for k in range(rank) if k >= rank - x.ndim]
    atom = here.emit(broadcast, atom, shape=wide, axes=tuple(2 * k + 1 for k in have))
    return here.array(here.emit(core_reshape, atom, shape=tuple(c * d for c, d in zip(counts, dims))))


@handles(np.flip)
def flip(a: Any, axis: Any = None) -> StagedArray:
    x = as_array(a)
    axes = axes_of(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(x.ndim))]


@handles(np.flipud)
def flipud(a: Any) -> StagedArray:
    return flip(a, 0)


@handles(np.fliplr)
def fliplr(a: Any) -> StagedArray:
    return flip(a, 1)


@handles(np.rot90)
def rot90(a: Any, k: int = 1, axes: Any = (0, 1)) -> StagedArray:
    x = as_array(a)
    i, j = (int(v) % x.ndim for v in axes)
    k %= 4
    if k == 2:
        return flip(flip(x, i), j)
    if k == 0:
        return x[...]
    return swapaxes(flip(x, j), i, j) if k == 1 else flip(swapaxes(x, i, j), j)


@handles(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> StagedArray:
    x = as_array(a)
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), x.shape)
    if isinstance(axis, (tuple, list)):
        for each, at in zip(shift if isinstance(shift, (tuple, list)) else [shift] * len(axis), axis):
            x = roll(x, each, at)
        return x
    (at,) = axes_of(axis, x.ndim)
    n = x.shape[at]
    if isinstance(n, int) and n == 0:
        return x
    lead = (slice(None),) * at
    if isinstance(shift, Number):
        from .creation import arange
        from .numpy_picking import take
        return take(x, (arange(n) - shift) % n, at)
    cut = (n - shift % n) % n if isinstance(n, int) else n - shift % n
    return concatenate([x[(*lead, slice(cut, None))], x[(*lead, slice(None, cut))]], at)


@handles(np.pad)
def pad(a: Any, pad_width: Any, mode: Any = "constant", *, constant_values: Any = 0, **ignored: Any) -> StagedArray:
    here, x = session(), as_array(a)
    widths = np.asarray(pad_width) if not isinstance(pad_width, dict) else None
    if widths is None:
        raise here.dtype_error("np.pad with a dict is not supported", remedy="give a pair for each axis")
    widths = np.broadcast_to(widths, (x.ndim, 2)).tolist()
    if mode == "constant":
        if isinstance(constant_values, (tuple, list)):
            raise here.dtype_error("np.pad with several constants is not supported", remedy="pad once for each")
        atom = here.emit(core_pad, x.read(), here.atom(constant_values, x.dtype), low=tuple(w[0] for w in widths),
                         high=tuple(w[1] for w in widths), interior=(0,) * x.ndim)
        return here.array(atom)
    if mode not in ("edge", "wrap", "reflect", "symmetric") or not all(isinstance(d, int) for d in x.type.dims):
        raise here.dtype_error(f"np.pad with mode {mode!r} is not supported for this array",
                               remedy="use mode='constant', or concatenate the borders")
    from .numpy_picking import take
    for axis, (low, high) in enumerate(widths):
        if low or high:
            x = take(x, np.pad(np.arange(x.type.dims[axis]), (low, high), mode=mode), axis)
    return x


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


@handles(np.meshgrid)
def meshgrid(*arrays: Any, indexing: str = "xy", sparse: bool = False, copy: bool = True) -> list:
    parts = [ravel(as_array(a)) for a in arrays]
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[0], order[1] = 1, 0
    shape_ = [None] * len(parts)
    for k, part in zip(order, parts):
        shape_[k] = part.shape[0]
    out = []
    for k, part in zip(order, parts):
        lone = reshape(part, tuple(part.shape[0] if j == k else 1 for j in range(len(parts))))
        out.append(lone if sparse else session().array(broadcast_to(lone, tuple(shape_)).read()))
    return out
