"""NumPy's functions that rearrange: reshaping, joining, splitting.

In: operands as a user gave them (see promotion.py) and static parameters. Out: core atoms.

    y = stack([a, b], axis=-1)
    left, right = split(x, 2, axis=0)
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.build import known_facts, literal
from ..core.dims import DimLike, floordiv, product
from ..core.ir import Atom, Var
from ..core.types import i64
from ..source import ShapeError, UnsupportedError
from .compare import and_, ge, gt
from .effects import check
from .indexing import slice as slice_region
from .indexing import start
from .promotion import (
    Operand,
    axes_of,
    axis_of,
    broadcast_arrays,
    dim_of,
    lift,
    promote,
    scalar_dim,
    shape_of,
    sized,
    surely_differ,
    to_dtype,
)
from .promotion import broadcast_to as broadcast_atom
from .shape import broadcast, permute
from .shape import reshape as reshape_primitive
from .structure import concatenate as concatenate_primitive


def reshape(x: Operand, *shape: Any, order: str = "C") -> Atom:
    """One size may be -1: it is computed."""
    x = lift(x)
    wanted = list(shape_of(shape[0] if len(shape) == 1 else shape))
    if order == "F":
        return transpose(reshape(transpose(x), tuple(reversed(wanted))))
    have = product(x.type.dims)
    unknown = [k for k, d in enumerate(wanted) if isinstance(d, int) and d == -1]
    if len(unknown) > 1:
        raise ShapeError("only one size of a reshape can be -1", code="reshape")
    if unknown:
        known = product(d for k, d in enumerate(wanted) if k not in unknown)
        if known == 0:
            raise ShapeError(f"cannot tell the size -1 in a reshape to {tuple(wanted)}", code="reshape")
        wanted[unknown[0]] = floordiv(have, known)
    missing = have - product(wanted)
    if isinstance(missing, int) and missing != 0:
        raise ShapeError(
            f"cannot reshape an array of shape {_shown(x.type.dims)} into {_shown(wanted)}",
            remedy="the numbers of elements must agree",
            code="reshape",
        )
    return reshaped(x, tuple(wanted))


def _shown(dims: Sequence[DimLike]) -> str:
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


def reshaped(x: Atom, dims: tuple) -> Atom:
    return x if dims == x.type.dims else reshape_primitive(x, shape=dims)


def ravel(x: Operand, order: str = "C") -> Atom:
    return reshape(x, (-1,), order=order) if lift(x).type.dims else reshape(x, (1,))


def in_a_row(x: Atom, axis: Any) -> Atom:
    """What a function that runs along `axis` takes: all elements where that is None, a number as the only one."""
    return ravel(x) if axis is None or not x.type.dims else x


def transpose(x: Operand, *axes: Any) -> Atom:
    x = lift(x)
    given = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (list, tuple))) else axes or None
    order = tuple(reversed(range(x.type.ndim))) if given is None else tuple(axis_of(a, x.type.ndim) for a in given)
    if sorted(order) != list(range(x.type.ndim)):
        raise ShapeError(f"axes {order} do not match an array of {x.type.ndim} dimensions", code="axis")
    return permuted(x, order)


def permuted(x: Atom, order: Sequence[int]) -> Atom:
    return x if tuple(order) == tuple(range(len(order))) else permute(x, axes=tuple(order))


def matrix_transpose(x: Operand) -> Atom:
    return swapaxes(x, -1, -2)


def swapaxes(x: Operand, axis1: int, axis2: int) -> Atom:
    x = lift(x)
    order = list(range(x.type.ndim))
    a, b = axis_of(axis1, len(order)), axis_of(axis2, len(order))
    order[a], order[b] = order[b], order[a]
    return permuted(x, order)


def moveaxis(x: Operand, source: Any, destination: Any) -> Atom:
    x = lift(x)
    rank = x.type.ndim
    sources = [axis_of(a, rank) for a in (source if isinstance(source, (list, tuple)) else [source])]
    targets = [axis_of(a, rank) for a in (destination if isinstance(destination, (list, tuple)) else [destination])]
    order = [k for k in range(rank) if k not in sources]
    for target, origin in sorted(zip(targets, sources)):
        order.insert(target, origin)
    return permuted(x, order)


def rollaxis(x: Operand, axis: int, start: int = 0) -> Atom:
    rank = lift(x).type.ndim
    axis, start = axis_of(axis, rank), start + rank if start < 0 else start
    return moveaxis(x, axis, start - 1 if axis < start else start)


def expand_dims(x: Operand, axis: Any) -> Atom:
    x = lift(x)
    axes = axis if isinstance(axis, (list, tuple)) else (axis,)
    rank = x.type.ndim + len(axes)
    new = {axis_of(a, rank) for a in axes}
    rest = iter(x.type.dims)
    shape = tuple(1 if k in new else next(rest) for k in range(rank))
    return broadcast(x, shape=shape, axes=tuple(k for k in range(rank) if k not in new))


def squeeze(x: Operand, axis: Any = None) -> Atom:
    x = lift(x)
    dims = x.type.dims
    gone = {k for k, d in enumerate(dims) if d == 1} if axis is None else set(axes_of(axis, len(dims)))
    if wide := [dims[k] for k in gone if dims[k] != 1]:
        raise ShapeError(f"cannot squeeze an axis of size {wide[0]}: only size 1 can go", code="squeeze")
    return reshaped(x, tuple(d for k, d in enumerate(dims) if k not in gone))


def broadcast_to(x: Operand, shape: Any, subok: bool = False) -> Atom:
    x, dims = lift(x), shape_of(shape)
    wanted = dims[len(dims) - x.type.ndim :]
    if x.type.ndim > len(dims) or any(d != 1 and surely_differ(d, w) for d, w in zip(x.type.dims, wanted)):
        raise ShapeError(f"cannot broadcast {_shown(x.type.dims)} to {_shown(dims)}", code="broadcast")
    return broadcast_atom(x, dims)


def broadcast_all(*xs: Operand, subok: bool = False) -> tuple:
    return tuple(broadcast_arrays(*xs))


def atleast(rank: int) -> Any:
    def call(*xs: Operand) -> Any:
        made = []
        for x in map(lift, xs):
            if x.type.ndim < rank:
                # NumPy's atleast_3d puts a vector in the middle, a matrix in front
                front = (0,) * (rank - x.type.ndim) if rank < 3 else {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[x.type.ndim]
                x = expand_dims(x, tuple(range(len(front))) if rank < 3 else front)
            made.append(x)
        return made[0] if len(made) == 1 else tuple(made)

    call.__name__ = f"atleast_{rank}d"
    return call


atleast_1d, atleast_2d, atleast_3d = atleast(1), atleast(2), atleast(3)


# --- joining and cutting -----------------------------------------------------------------------------------


def concatenate(xs: Any, axis: Any = 0, dtype: Any = None, casting: str = "same_kind") -> Atom:
    if isinstance(axis, (np.ndarray, list, tuple)) or isinstance(axis, Var) and axis.type.dims:
        raise ShapeError(
            "np.concatenate takes the arrays as one list, and then the axis",
            code="concatenate",
            remedy="write np.concatenate([a, b])",
        )
    if not isinstance(xs, (list, tuple)):
        return _rows_joined(lift(xs), axis, dtype)
    atoms = list(promote(*xs))
    if not atoms:
        raise ShapeError("concatenate needs at least one array", code="concatenate")
    if dtype is not None:
        atoms = [to_dtype(a, dtype) for a in atoms]
    if axis is None:
        atoms, axis = [ravel(a) for a in atoms], 0
    ranks = {a.type.ndim for a in atoms}
    if ranks == {0}:
        raise ShapeError("numbers cannot be concatenated", remedy="use numpy.stack", code="concatenate")
    if len(ranks) > 1:
        raise ShapeError(
            f"arrays of {' and '.join(map(str, sorted(ranks)))} dimensions cannot be concatenated", code="concatenate"
        )
    axis = axis_of(axis, atoms[0].type.ndim)
    first = atoms[0].type.dims
    for n, a in enumerate(atoms[1:], 1):
        for k, (d, e) in enumerate(zip(a.type.dims, first)):
            if k != axis and surely_differ(d, e):
                raise ShapeError(
                    f"arrays of shapes {_shown(first)} and {_shown(a.type.dims)} cannot be "
                    f"concatenated along axis {axis}: {e} against {d}",
                    code="concatenate",
                )
            if k != axis:
                atoms[n] = sized(atoms[n], k, e, "arrays to concatenate have sizes {} and {}")
    return atoms[0] if len(atoms) == 1 else concatenate_primitive(*atoms, axis=axis)


def part(x: Atom, axis: int, first: DimLike, length: DimLike, step: int = 1, squeezed: bool = False) -> Atom:
    """`length` elements of one axis from `first` on; checked where it isn't known that there are as many."""
    dims = x.type.dims
    last, size, known = first + (length - 1) * step, dims[axis], known_facts()
    if not (
        isinstance(last, int)
        and isinstance(size, int)
        or known.less_equal(0, first)
        and known.less_equal(0, length)
        and known.less(last, size)
    ):
        have = scalar_dim(size, i64)
        enough = and_(
            and_(ge(scalar_dim(first, i64), literal(0)), ge(scalar_dim(length, i64), literal(0))),
            gt(have, scalar_dim(last, i64)),
        )
        check(enough, have, exception="ValueError", message=f"axis {axis} has too few elements: {{}}")
    shape = tuple(length if k == axis else d for k, d in enumerate(dims))
    out = slice_region(
        x,
        *(start(first if k == axis else 0) for k in range(len(dims))),
        shape=shape,
        step=tuple(step if k == axis else 1 for k in range(len(dims))),
    )
    return squeeze(out, axis) if squeezed else out


def stack(xs: Any, axis: int = 0, dtype: Any = None, casting: str = "same_kind") -> Atom:
    if not isinstance(xs, (list, tuple)):
        x = _some_rows(lift(xs), "stack")
        return moveaxis(x if dtype is None else to_dtype(x, dtype), 0, axis)
    atoms = promote(*map(lift, xs))
    if not atoms:
        raise ShapeError("stack needs at least one array", code="concatenate")
    if odd := [
        a
        for a in atoms
        if a.type.ndim != atoms[0].type.ndim or any(map(surely_differ, a.type.dims, atoms[0].type.dims))
    ]:
        raise ShapeError(
            f"arrays to stack must have one shape, got {_shown(atoms[0].type.dims)} and {_shown(odd[0].type.dims)}",
            code="concatenate",
        )
    axis = axis_of(axis, atoms[0].type.ndim + 1)
    return concatenate([expand_dims(a, axis) for a in atoms], axis, dtype)


# Where `vstack` and its like put new axes into operands of few, by their rank; then they concatenate.
_ROWS: dict[int, tuple] = {0: (0, 1), 1: (0,)}
_VECTORS: dict[int, tuple] = {0: (0,)}
_COLUMNS: dict[int, tuple] = {0: (0, 1), 1: (1,)}
_SHEETS: dict[int, tuple] = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}


def _joined(xs: Any, places: dict[int, tuple], axis: int, dtype: Any = None) -> Atom:
    """The operands with the axes that they lack, joined along one; those of one array all at once."""
    if isinstance(xs, (list, tuple)):
        atoms = [lift(x) for x in xs]
        return concatenate([expand_dims(x, places.get(x.type.ndim, ())) for x in atoms], axis, dtype)
    x = lift(xs)
    return _rows_joined(expand_dims(x, tuple(k + 1 for k in places.get(x.type.ndim - 1, ()))), axis, dtype)


def _some_rows(x: Atom, name: str) -> Atom:
    """An array whose rows are joined: there must be one."""
    if not x.type.dims:
        raise ShapeError(f"{name} needs a sequence of arrays", code="concatenate")
    count = x.type.dims[0]
    if count == 0:
        raise ShapeError(f"{name} needs at least one array", code="concatenate")
    if not known_facts().less(0, count):
        some = gt(scalar_dim(count, i64), literal(0))
        check(some, exception="ValueError", message=f"need at least one array to {name}")
    return x


def _rows_joined(x: Atom, axis: Any, dtype: Any = None) -> Atom:
    """The rows of an array, however many, joined along an axis of theirs."""
    x = _some_rows(x if dtype is None else to_dtype(x, dtype), "concatenate")
    if axis is None:
        return ravel(x)
    if x.type.ndim == 1:
        raise ShapeError("numbers cannot be concatenated", remedy="use numpy.stack", code="concatenate")
    at = axis_of(axis, x.type.ndim - 1)
    moved = moveaxis(x, 0, at)
    dims = moved.type.dims
    return reshaped(moved, (*dims[:at], dims[at] * dims[at + 1], *dims[at + 2 :]))


def vstack(xs: Any, dtype: Any = None, casting: str = "same_kind") -> Atom:
    return _joined(xs, _ROWS, 0, dtype)


def hstack(xs: Any, dtype: Any = None, casting: str = "same_kind") -> Atom:
    first = lift(xs[0]).type.ndim if isinstance(xs, (list, tuple)) and xs else lift(xs).type.ndim - 1
    return _joined(xs, _VECTORS, 0 if first <= 1 else 1, dtype)


def dstack(xs: Any) -> Atom:
    return _joined(xs, _SHEETS, 2)


def column_stack(xs: Any) -> Atom:
    return _joined(xs, _COLUMNS, 1)


def block(xs: Any) -> Atom:
    def join(value: Any, depth: int, deepest: int) -> Atom:
        if not isinstance(value, list):
            return lift(value)
        return concatenate([join(v, depth + 1, deepest) for v in value], depth - deepest)

    def depth_of(value: Any) -> int:
        return 1 + builtins.max(map(depth_of, value)) if isinstance(value, list) else 0

    deepest = depth_of(xs)
    rank = builtins.max(deepest, *(a.type.ndim for a in _leaves(xs)))
    lifted = _map(
        xs, lambda x: expand_dims(x, tuple(range(rank - lift(x).type.ndim))) if lift(x).type.ndim < rank else x
    )
    return join(lifted, 0, deepest)


def _leaves(xs: Any) -> list:
    return [a for x in xs for a in _leaves(x)] if isinstance(xs, list) else [lift(xs)]


def _map(xs: Any, function: Any) -> Any:
    return [_map(x, function) for x in xs] if isinstance(xs, list) else function(xs)


def append(x: Operand, values: Operand, axis: Any = None) -> Atom:
    return concatenate([ravel(x), ravel(values)] if axis is None else [x, values], axis or 0)


def split(x: Operand, sections: Any, axis: int = 0) -> list[Atom]:
    x = lift(x)
    axis = axis_of(axis, x.type.ndim)
    size = x.type.dims[axis]
    if isinstance(sections, (int, np.integer)):
        if isinstance(size, int) and size % int(sections):
            raise ShapeError(f"cannot split {size} elements into {sections} equal parts", code="split")
        each = floordiv(size, int(sections))
        return [part(x, axis, each * k, each) for k in range(int(sections))]
    return _cut(x, [dim_of(s) for s in sections], axis)


def array_split(x: Operand, sections: Any, axis: int = 0) -> list[Atom]:
    x = lift(x)
    axis = axis_of(axis, x.type.ndim)
    size = x.type.dims[axis]
    if not isinstance(sections, (int, np.integer)):
        return _cut(x, [dim_of(s) for s in sections], axis)
    if not isinstance(size, int):
        raise UnsupportedError(f"array_split of {size} elements: the sizes of the parts are not known", code="split")
    each, extra = divmod(size, int(sections))
    ends = [0, *np.cumsum([each + (k < extra) for k in range(int(sections))]).tolist()]
    return [part(x, axis, a, b - a) for a, b in zip(ends, ends[1:])]


def _cut(x: Atom, places: list, axis: int) -> list[Atom]:
    size = x.type.dims[axis]
    if isinstance(size, int) and builtins.all(isinstance(p, int) for p in places):
        places = [builtins.max(0, builtins.min(p if p >= 0 else p + size, size)) for p in places]
        ends = [0, *places, size]
        return [part(x, axis, a, builtins.max(b - a, 0)) for a, b in zip(ends, ends[1:])]
    ends = [0, *places, size]
    return [part(x, axis, a, b - a) for a, b in zip(ends, ends[1:])]


def _split_along(axis: int, name: str) -> Any:
    def call(x: Operand, sections: Any) -> list[Atom]:
        x = lift(x)
        return split(x, sections, axis if axis != 1 or x.type.ndim > 1 else 0)

    call.__name__ = name
    return call


vsplit, hsplit, dsplit = _split_along(0, "vsplit"), _split_along(1, "hsplit"), _split_along(2, "dsplit")


def unstack(x: Operand, axis: int = 0) -> tuple[Atom, ...]:
    rows = moveaxis(x, axis, 0)
    if not isinstance(rows.type.dims[0], int):
        raise ShapeError("unstack needs a number of rows that is known", code="concatenate")
    return tuple(part(rows, 0, k, 1, squeezed=True) for k in range(rows.type.dims[0]))
