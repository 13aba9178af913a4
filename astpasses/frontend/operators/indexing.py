"""`x[index]` and `x[index] = value` on staged arrays, with NumPy's meaning: views for basic indices, copies
else.

In: an array and an index. Out: a view, a scalar or a copy; writes replace the content of the box.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike
from metaphrase.core.facts import LONGEST
from metaphrase.core.ir import Atom, Literal
from metaphrase.late import dataclass, module
from metaphrase.ops.arithmetic import add
from metaphrase.ops.compare import and_, ge, lt, select
from metaphrase.ops.effects import check
from metaphrase.ops.indexing import gather, scatter
from metaphrase.ops.shape import permute, reshape
from metaphrase.source import OutOfBounds

from ..flow.gathering import gathered, is_gathered
from ..staging.journal import BoxLocation
from ..staging.knowledge import narrowed_inside
from ..staging.session import Session, session
from ..staging.signals import BranchRaised
from ..values.orders import rely_on_order
from ..values.phi import write_through
from ..values.staged_values import Number, Staged, StagedArray, Unsettled
from ..values.views import Pick, Rectangle, Reshape, view
from .arithmetic import broadcast_dims, dims_of, is_range, operand, spread
from .kinds import is_number
from .python_numbers import LONE_ELEMENTS, held
from .slices import resolve_slice, spaced, unknown_step

masks: Any = module("metaphrase.astpasses.frontend.operators.masks")


def out_of_bounds(here: Session, index: int, dim: DimLike, axis: int) -> BaseException:
    """The refusal of such an index; on a path that the program may not take, what that path raises."""
    message = f"index {index} is out of bounds for axis {axis} with size {dim}"
    if here.in_region() and not here.attempts:
        return BranchRaised(IndexError(message), here.span())
    known = f"the indices of this axis are {-dim} to {dim - 1}"
    return _bad_index(here, message, known if dim != 0 else "the axis has no elements: test its size first")


def _bad_index(here: Session, message: str, remedy: str) -> OutOfBounds:
    return OutOfBounds(message, here.span(), remedy=remedy, code="index")


@dataclass
class Parsed:
    """An index cut into one entry a dim: a slice, an integer or an index array; and where new axes go. `masked`: the
    entries that its masks are."""

    entries: list[Any]
    new_axes: list[int]
    masked: list[list[Any]]

    @property
    def advanced(self) -> list[int]:
        return [k for k, e in enumerate(self.entries) if isinstance(e, StagedArray)]


def parse(array: StagedArray, index: Any) -> Parsed:
    """Spread an index over the dims of `array`."""
    here = session()
    items = list(index) if isinstance(index, tuple) else [index]
    items = [_entry(here, narrowed_inside(here, i)) for i in items]
    used = sum(
        i.ndim if isinstance(i, StagedArray) and i.dtype == bool else 1
        for i in items
        if i is not None and i is not Ellipsis
    )
    if used > array.ndim:
        said = f"too many indices for array: array is {array.ndim}-dimensional, but {used} were indexed"
        raise _bad_index(here, said, f"give at most {array.ndim}, or make an axis with numpy.newaxis")
    if sum(i is Ellipsis for i in items) > 1:
        raise _bad_index(here, "an index can only have a single ellipsis", "leave one out")
    if not any(i is Ellipsis for i in items):
        items.append(Ellipsis)
    entries: list[Any] = []
    new_axes: list[int] = []
    masked: list[list[Any]] = []
    for item in items:
        if item is Ellipsis:
            entries += [slice(None)] * (array.ndim - used)
        elif item is None:
            new_axes.append(len(entries))
        elif isinstance(item, StagedArray) and item.dtype == bool:
            masked.append(masks.positions(here, array, item, len(entries)))
            entries += masked[-1]
        else:
            entries.append(item)
    return Parsed(entries, new_axes, masked)


def _has_ellipsis(index: Any) -> bool:
    return any(i is Ellipsis for i in index) if isinstance(index, tuple) else index is Ellipsis


def _is_lone_bool(index: Any) -> bool:
    """Whether a truth value is the whole index: NumPy takes it as a mask of a new first axis."""
    if isinstance(index, (np.ndarray, StagedArray)):
        return index.ndim == 0 and index.dtype == bool
    return isinstance(index, (bool, np.bool_)) or isinstance(index, Number) and index.dtype == bool


def _mask_of_one(truth: Any) -> Any:
    """Known ones take part as slices would, but for their being copies."""
    here = session()
    if isinstance(truth, Staged):
        return here.array(here.atom(truth)).reshape((1,))
    return [0] if truth else np.zeros(0, int)


def range_as_array(item: Any) -> Any:
    """`x[range(n), k]`, `x[kept]`: of a range, a gathered list and what has an `__array__` an array."""
    from .protocols import array_of

    if is_gathered(item):
        return gathered(session(), item)
    if is_range(item):
        return operand(item)
    if type(item) in (list, tuple):
        made = [array_of(value) for value in item]
        return item if all(map(operator.is_, made, item)) else type(item)(made)
    return array_of(item)


def _entry(here: Session, item: Any) -> Any:
    if item is None or item is Ellipsis or isinstance(item, slice):
        return item
    if isinstance(item, (bool, np.bool_)):
        raise here.dtype_error(
            "a bool beside other indices is not supported", remedy="index with the others under `if`"
        )
    if isinstance(item, (int, np.integer)):
        return int(item)
    if isinstance(item, Number):
        if item.dtype.kind not in "iu":
            raise _bad_index(
                here,
                "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
                f"boolean arrays are valid indices, not a {item.dtype} scalar",
                "make it an integer: int(...)",
            )
        return item
    if isinstance(item, Unsettled):
        from ..staging.settling import settled

        return _entry(here, settled(item))
    array = operand(range_as_array(item))
    if isinstance(item, (list, tuple)) and isinstance(array, StagedArray) and 0 in array.type.dims:
        array = operand(np.zeros(array.type.dims, int))
    if not isinstance(array, StagedArray) or array.dtype.kind not in "iub":
        said = f"arrays used as indices must be of integer (or boolean) type, not {item!r}"
        raise _bad_index(here, said, "make it integers: .astype(int), or int(...)")
    return here.wrap(array.read()) if array.ndim == 0 else array


# --- basic indices ---


def position(here: Session, index: Any, dim: DimLike, axis: int) -> Atom:
    """An integer index as an atom in 0 .. dim - 1: wrapped if it may be negative, checked unless it is known to fit."""
    known = index if isinstance(index, int) else index.dim
    facts = here.facts
    longest = dim if isinstance(dim, int) else LONGEST
    if isinstance(index, int) and not -longest <= index < longest:
        raise out_of_bounds(here, index, dim, axis)
    if isinstance(index, int) and index < 0:
        if not facts.less_equal(-index, dim):
            _check_bounds(here, here.dim_atom(dim + index), dim, axis, literal(index))
        return here.dim_atom(dim + index)
    atom = literal(index) if isinstance(index, int) else here.atom(index, np.dtype("int64"))
    if known is not None and facts.less_equal(0, known):
        if not facts.less(known, dim):
            _check_bounds(here, atom, dim, axis, atom, low=False)
        return atom
    if known is not None and facts.less(known, 0):
        wrapped = here.emit(add, atom, here.dim_atom(dim))
        if not facts.less_equal(0, known + dim):
            _check_bounds(here, wrapped, dim, axis, atom, high=False)
        return wrapped
    size = here.dim_atom(dim)
    negative = here.emit(lt, atom, literal(0))
    wrapped = here.emit(select, negative, here.emit(add, atom, size), atom)
    _check_bounds(here, wrapped, dim, axis, atom)
    return wrapped


def _check_bounds(
    here: Session, atom: Atom, dim: DimLike, axis: int, shown: Atom, low: bool = True, high: bool = True
) -> None:
    tests = [here.emit(ge, atom, literal(0))] if low else []
    tests += [here.emit(lt, atom, here.dim_atom(dim))] if high else []
    ok = tests[0] if len(tests) == 1 else here.emit(and_, *tests)
    _require_inside(here, ok, shown, here.dim_atom(dim), axis)


def _require_inside(here: Session, ok: Atom, index: Atom, size: Atom, axis: int) -> None:
    message = f"index {{}} is out of bounds for axis {axis} with size {{}}"
    here.emit(check, ok, index, size, exception="IndexError", message=message)


def basic(array: StagedArray, parsed: Parsed) -> StagedArray:
    """The view that integers, slices and new axes pick."""
    here = session()
    out, entries = array, list(parsed.entries)
    for k, entry in enumerate(entries):
        if unknown_step(entry):
            out, entries[k] = view(out, spaced(here, entry, k, array.type.dims[k])), slice(None)
    dims = out.type.dims
    integers = [k for k, e in enumerate(entries) if not isinstance(e, slice)]
    left = [k for k in range(len(dims)) if k not in integers]
    cut = [k for k, e in enumerate(entries) if isinstance(e, slice) and e != slice(None)]
    if not cut and integers:
        out = view(out, Pick(tuple(position(here, entries[k], dims[k], k) for k in integers), tuple(integers)))
    elif cut:
        picked = [
            resolve_slice(here, e, dim) if isinstance(e, slice) else (position(here, e, dim, k), 1, 1)
            for k, (e, dim) in enumerate(zip(entries, dims))
        ]
        starts, dims, step = zip(*picked)
        out = view(out, Rectangle(starts, dims, step))
    if parsed.new_axes or (cut and integers):
        final: list[DimLike] = []
        for k in range(len(entries) + 1):
            final += [1] * parsed.new_axes.count(k)
            if k in left:
                final.append(dims[k])
        out = view(out, Reshape(tuple(final)))
    return out


def get_item(array: StagedArray, index: Any) -> Any:
    """`array[index]`."""
    if _is_lone_bool(index):
        return get_item(array[None], _mask_of_one(index))
    parsed = parse(array, index)
    if parsed.advanced:
        return _get_advanced(array, parsed)
    out = basic(array, parsed)
    if out is array:  # a view of all of it is another object
        out = StagedArray(array.box, array.chain, array.type, array.writeable)
    return out if out.ndim or _has_ellipsis(index) else session().wrap(out.read())


# --- integer arrays ---


@dataclass
class Advanced:
    """What is left to do once slices are views: gather along `axes`, then move the new dims to `target`."""

    base: StagedArray
    indices: tuple[Atom, ...]
    axes: tuple[int, ...]
    dims: tuple
    target: int


def _advanced(array: StagedArray, parsed: Parsed) -> Advanced:
    here = session()
    entries = parsed.entries
    axes = [k for k, e in enumerate(entries) if not isinstance(e, slice)]
    slices = [e if isinstance(e, slice) else slice(None) for e in entries]
    base = basic(array, Parsed(slices, parsed.new_axes, []))
    dims = broadcast_dims([dims_of(entries[k]) for k in axes])
    indices = tuple(spread(here, _positions(here, entries[k], array.type.dims[k], k), dims) for k in axes)
    picked = [k + sum(new <= k for new in parsed.new_axes) for k in axes]  # new axes are slices of size 1
    adjacent = picked == list(range(picked[0], picked[0] + len(picked)))
    return Advanced(base, indices, tuple(picked), dims, picked[0] if adjacent else 0)


def _positions(here: Session, index: Any, dim: DimLike, axis: int) -> Atom:
    """An index array (or integer) in 0 .. dim - 1."""
    if not isinstance(index, StagedArray):
        return position(here, index, dim, axis)
    known = index.box.known if not index.chain else None
    if index.box.origin == "positions":
        return index.read()
    if known is not None and known.size and isinstance(dim, int):
        if not (-dim <= known.min() and known.max() < dim):
            bad = int(known.min() if known.min() < -dim else known.max())
            raise out_of_bounds(here, bad, dim, axis)
        if known.min() >= 0:
            return here.atom(index, np.dtype("int64"))
    atom = here.atom(index, np.dtype("int64"))
    dims = atom.type.dims
    size, zero = spread(here, here.dim_atom(dim), dims), spread(here, literal(0), dims)
    least = spread(here, here.dim_atom(-dim), dims)
    ok = here.emit(and_, here.emit(ge, atom, least), here.emit(lt, atom, size))
    _require_inside(here, ok, atom, size, axis)
    return here.emit(select, here.emit(lt, atom, zero), here.emit(add, atom, size), atom)


def _get_advanced(array: StagedArray, parsed: Parsed) -> StagedArray:
    here = session()
    plan = _advanced(array, parsed)
    out = here.emit(gather, plan.base.read(), *plan.indices, axes=plan.axes)
    return here.wrap(_moved(here, out, len(plan.dims), plan.target))


def _moved(here: Session, atom: Atom, count: int, target: int) -> Atom:
    """Move the first `count` dims behind the next `target` ones."""
    if target == 0 or count == 0:
        return atom
    rank = atom.type.ndim
    return here.emit(permute, atom, axes=(*range(count, count + target), *range(count), *range(count + target, rank)))


# --- writing ---


def set_item(array: StagedArray, index: Any, value: Any) -> None:
    """`array[index] = value`."""
    here = session()
    value = operand(value)
    if _is_lone_bool(index):
        array, index = array[None], _mask_of_one(index)
    if (mask := masks.mask_of(index)) is not None:
        masks.store_mask(here, array, mask, value)
        return
    parsed = parse(array, index)
    if parsed.advanced:
        plan = _advanced(array, parsed)
        base = plan.base.read()
        rest = tuple(d for k, d in enumerate(plan.base.type.dims) if k not in plan.axes)
        shape = (*rest[: plan.target], *plan.dims, *rest[plan.target :])
        atom = _fit(here, value, shape, array.dtype)
        atom = _moved(here, atom, plan.target, len(plan.dims))  # back to the front
        unique = [len(m) for m in parsed.masked] == [len(parsed.advanced)]  # a mask names no place twice
        write_view(plan.base, here.emit(scatter, base, atom, *plan.indices, axes=plan.axes, unique=unique))
        return
    target = basic(array, parsed)
    if not target.ndim and isinstance(value, StagedArray) and value.ndim and not LONE_ELEMENTS:
        if not _has_ellipsis(index):
            raise here.shape_error(
                "setting an array element with a sequence.", remedy="store its element: v[0], or v.item()"
            )
    if isinstance(value, StagedArray) and value.box is target.box and value.chain == target.chain:
        return
    write_view(target, _fit(here, value, target.type.dims, array.dtype))


def _fit(here: Session, value: Any, shape: Sequence[DimLike], dtype: np.dtype) -> Atom:
    """A value to be stored: converted, leading 1s dropped, broadcast."""
    if not isinstance(value, StagedArray) and not is_number(value):
        raise here.dtype_error(f"a {type(value).__name__} can't be stored into an array of {dtype}")
    atom = held(here, value, dtype)
    shape = tuple(shape)
    dims = atom.type.dims
    while len(dims) > len(shape) and dims[0] == 1:
        dims = dims[1:]
    if dims != atom.type.dims:
        atom = here.emit(reshape, atom, shape=dims)
    fits = len(dims) <= len(shape) and all(
        d == 1 or d == s or not (isinstance(d, int) and isinstance(s, int))
        for d, s in zip(reversed(dims), reversed(shape))
    )
    if not fits:
        raise here.shape_error(
            f"could not broadcast input array from shape {dims} into shape {shape}",
            remedy="store a number, or an array whose sizes are those of the place, or 1",
        )
    return spread(here, atom, shape)


def write_view(target: StagedArray, value: Atom) -> None:
    """Put a new value into a view; everything that shares its box sees it."""
    here = session()
    if target.session is not here or isinstance(target.box.origin, StagedArray):
        raise here.dtype_error(
            "a function under grad, vmap or a nested jit stores into an array from outside it",
            remedy="return the new value, or copy the array inside the function first",
        )
    if target.writeable is None:
        raise here.unsupported(
            "an array is stored into that is read-only on one path and not on the other",
            "copy the read-only one: x = x.copy()",
            code="alias",
        )
    if not target.writeable:
        raise ValueError("assignment destination is read-only")
    box = target.box
    here.refresh(box)
    name = getattr(box.atom, "name", None)
    value = write_through(here, box.atom, target.chain, value)
    if name and not isinstance(value, Literal) and target.chain:
        value.name = name
    write_box(here, box, value)


def write_box(here: Session, box: Any, atom: Atom) -> None:
    """Replace the content of a box."""
    if id(box) in here.kept:
        raise here.refuse_kept()
    rely_on_order(here, box)
    location = BoxLocation(box)
    here.journal.note(location)
    box.stored = box.stored or atom is not box.atom
    location.write(atom)
    if box.phi is not None:
        box.phi.written(here, box)
