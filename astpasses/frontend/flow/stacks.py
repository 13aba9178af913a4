"""Lists that a rolled loop both changes and reads: a buffer with room for more items than there are, and
where the items stand in it.

In: a list that a loop appends to, pops from and reads. Out: the list holds one `Stack`; appending stores into
the buffer, reading picks from it. What the loop carries is the buffer's content and two numbers.

    stack = [root]                    stack is [Stack(start=0, stop=1, buffer i64[room])]
    while stack:                      while start < stop:
        v = stack.pop()                   v = buffer[stop - 1]; stop = stop - 1
        stack.append(left[v])             check(stop < room); buffer[stop] = left[v]; stop = stop + 1

How much room there has to be only the run knows. `room` is a hidden argument (see `values/sources.py`): a run
that needs more raises `ListFull`, and whoever runs the program makes the room larger and runs it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase._tree_registry import REGISTRY, Kind, number_keys
from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Literal, Var
from metaphrase.core.types import Array, i64
from metaphrase.exceptions import ListFull, exception_name
from metaphrase.late import dataclass
from metaphrase.ops.arithmetic import add, sub
from metaphrase.ops.arrays import undefined as core_undefined
from metaphrase.ops.compare import le
from metaphrase.ops.effects import check
from metaphrase.source import UnsupportedError

from ..operators.indexing import write_view
from ..operators.kinds import is_number
from ..staging.closing import all_lets
from ..staging.journal import ItemLocation, StructureLocation
from ..staging.session import Session, session
from ..staging.signals import StagerSignal, TrialOver
from ..values.capacities import used
from ..values.staged_values import Box, Maybe, Number, StagedArray
from ..values.views import Pick, Rectangle, view
from .gathering import Rows, all_known, expanded
from .joins import joined_number, number_of

FULL = exception_name(ListFull)


@dataclass(frozen=True)
class Item:
    """What every item of a list is: its structure, and for each leaf its dtype, its dims, its Python type."""

    tree: Any
    dtypes: tuple[np.dtype, ...]
    dims: tuple[tuple, ...]
    python: tuple[type | None, ...]


class NeedStack(StagerSignal):
    """A list is read in the loop that changes it: it has to be a `Stack` before the loop. `item`: what is to
    be put in, where that is known."""

    def __init__(self, owner: list, item: Item | None, why: str, span: Any, remedy: str = ""):
        super().__init__(why)
        self.list, self.item, self.why, self.span, self.remedy = owner, item, why, span, remedy


class Stack(tuple, Rows):
    """The items from `start` to `stop` of `buffers`, one array a leaf of an item."""

    item: Any  # an Item; None while nothing is known of the items
    room: tuple

    def __new__(cls, item: Item | None, room: tuple, parts: Any) -> Stack:
        made = super().__new__(cls, parts)
        made.item, made.room = item, room
        return made

    def __init__(self, *args: Any):
        pass

    start = property(lambda self: self[0])
    stop = property(lambda self: self[1])
    buffers = property(lambda self: self[2:])
    tree = property(lambda self: self.item.tree)  # type: ignore[assignment]
    python = property(  # type: ignore[assignment]
        lambda self: [None if k is np.ndarray else k for k in self.item.python]
    )

    __repr__ = Rows.__repr__
    __hash__ = None  # type: ignore[assignment]

    def length(self, here: Session) -> Any:
        return Number(here, count(here, self), int)

    def now(self) -> Rows:
        return Rows(self.tree, self.arrays, self.python)

    def item_at(self, here: Session, index: Any) -> tuple[Any] | None:
        from .stack_calls import item_at

        return (item_at(here, self, index),)

    @property
    def arrays(self) -> list[StagedArray]:  # type: ignore[override]
        """The items as arrays of the present number of rows."""
        here = self[2].session if len(self) > 2 else session()
        if self.item is None:
            raise unknown_items(here)
        first = here.atom(self.start, i64)
        rows = used(here, count(here, self), self.room[1], "count")
        made = []
        for buffer in self.buffers:
            dims = (rows, *buffer.type.dims[1:])
            starts = (first, *[literal(0)] * (len(dims) - 1))
            step = Rectangle(starts, dims, (1,) * len(dims))
            made.append(StagedArray(Box(here, step.read(here, buffer.read()))))
        return made


REGISTRY[Stack] = Kind(
    Stack,
    lambda s: (list(s), (s.item, s.room)),
    lambda metadata, children: Stack(*metadata, tuple(children)),
    number_keys,
)


def is_stack(value: Any) -> bool:
    return type(value) is list and len(value) == 1 and type(value[0]) is Stack


def count(here: Session, stack: Stack) -> Atom:
    """How many items there are."""
    start, stop = here.atom(stack.start, i64), here.atom(stack.stop, i64)
    return stop if isinstance(start, Literal) and not start.value else here.emit(sub, stop, start)


def after(here: Session, number: Any, step: int) -> Any:
    """The next place, or the one before: far from what an int holds."""
    if isinstance(number, int):
        return number + step
    return Number(here, here.emit(add, here.atom(number, i64), literal(step)), int)


# --- what items are ---


def item_of_value(here: Session, value: Any) -> Item:
    """What one item is."""
    leaves, tree = tree_util.tree_flatten(value)
    if not leaves or not all(is_number(v) or isinstance(v, (StagedArray, np.ndarray)) for v in leaves):
        raise _holds(here, "something that is no number or array", "keep numbers, arrays and tuples of them in it")
    kinds: list[tuple] = []  # of each leaf: its dtype, its dims, its Python type
    for leaf in leaves:
        if is_number(leaf):
            dtype, python = joined_number([leaf])
            kinds.append((dtype, (), python))
        else:
            array = here.lift(leaf) if isinstance(leaf, np.ndarray) else leaf
            kinds.append((array.dtype, array.type.dims, np.ndarray))
    return Item(tree, *zip(*kinds))


def joined(here: Session, a: Item | None, b: Item | None) -> Item | None:
    """What items of both kinds have in common."""
    if a is None or b is None:
        return a or b
    if a.tree != b.tree or a.dims != b.dims:
        what = "structures" if a.tree != b.tree else "shapes"
        raise _holds(here, f"items of several {what}", "use two lists, or arrays of one shape")
    kinds: list[tuple] = []
    for x, y, p, q in zip(a.dtypes, b.dtypes, a.python, b.python):
        if (p is np.ndarray) != (q is np.ndarray):
            raise _holds(here, "numbers and arrays", "use two lists, or float(x) of the array")
        numbers = p is not np.ndarray
        kinds.append(joined_number([number_of(x, p), number_of(y, q)]) if numbers else (np.result_type(x, y), p))
    dtypes, python = zip(*kinds)
    return Item(a.tree, dtypes, a.dims, python)


def _holds(here: Session, what: str, remedy: str) -> TrialOver:
    return TrialOver(f"a list of which only the run knows the length holds {what}", here.span(), remedy)


def unknown_items(here: Session) -> TrialOver:
    return TrialOver("a list is read before it is known what it holds", here.span(), "put a first item into the list")


# --- making one ---


def make_stack(here: Session, owner: list, item: Item | None, key: tuple) -> None:
    """Turn a list into one that holds a Stack, before a loop."""
    if is_stack(owner):  # its items turn out to be of a wider type
        stack = owner[0]
        wider = joined(here, stack.item, item)
        if wider == stack.item:
            raise TrialOver("a list can't be read where it grows", here.span())
        buffers = _buffers(here, wider, stack.room)
        if stack.item is not None:
            dtypes = wider.dtypes  # type: ignore[union-attr]
            buffers = [StagedArray(Box(here, here.atom(old.read(), t))) for old, t in zip(stack.buffers, dtypes)]
        replace(here, owner, Stack(wider, stack.room, (stack.start, stack.stop, *buffers)))
        return
    held = expanded(here, owner) if all_known(owner) else list(owner)
    item = joined(here, item, item_of_list(here, held))
    name = here.list_names.get(id(owner), ("values",))[0]
    made = _filled(here, held, item, here.room(key, len(held)), name)
    here.journal.keep(StructureLocation(owner))
    owner[:] = [made]
    here.gathers = True


def _filled(here: Session, held: list, item: Item | None, room: tuple, name: str = "values") -> Stack:
    """A Stack of these items."""
    buffers = _buffers(here, item, room)
    for buffer in buffers:
        if isinstance(buffer.box.atom, Var):
            buffer.box.atom.name = name
    made = Stack(item, room, (0, 0, *buffers))
    count: DimLike = sum((v.arrays[0].type.dims[0] if isinstance(v, Rows) else 1 for v in held), 0)
    if not here.facts.less_equal(count, room[1]):
        here.emit(check, here.emit(le, here.dim_atom(count), here.dim_atom(room[1])), exception=FULL, message=room[0])
    stop: Any = literal(0)
    for value in held:
        stop = _put(here, made, stop, value)
    end = int(stop.value) if isinstance(stop, Literal) else Number(here, stop, int)
    return Stack(item, room, (0, end, *buffers))


def make_stacks(here: Session, stacks: list[tuple[list, Item | None]], need: NeedStack, site: tuple) -> None:
    """Put Stacks into all lists that a loop needs them for, `need.list` among them, before the loop."""
    known = next((k for k, (owner, _) in enumerate(stacks) if owner is need.list), None)
    if known is None:
        stacks.append((need.list, need.item))
    else:
        wider = joined(here, stacks[known][1], need.item)
        if wider == stacks[known][1]:
            raise TrialOver(need.why, need.span, need.remedy)
        stacks[known] = (need.list, wider)
    for k, (owner, item) in enumerate(stacks):
        make_stack(here, owner, item, (site, k))


def fit_stack(here: Session, entry: list, out: list) -> None:
    """Where a loop replaces a list by one of another length: both become Stacks of one kind."""
    if not is_stack(entry):
        if not several_lengths(entry, out):
            return
        raise NeedStack(entry, item_of_list(here, out), "a loop replaces a list by a longer one", here.span())
    stack, item = entry[0], item_of_list(here, out)
    if joined(here, stack.item, item) != stack.item:
        raise NeedStack(entry, item, "a loop replaces a list by one of other items", here.span())
    made = stack_like(here, out, stack.item, stack.room)
    if not is_stack(out) or made is not out[0]:
        here.journal.keep(StructureLocation(out))
        out[:] = [made]


def several_lengths(a: list, b: list) -> bool:
    """Whether two lists can't be joined item by item."""
    return len(a) != len(b) or any(isinstance(v, Rows) for v in (*a, *b))


def stack_like(here: Session, values: list, item: Item | None, room: tuple, name: str = "values") -> Stack:
    """The items of a list as a Stack of this kind."""
    if is_stack(values) and (values[0].item, values[0].room) == (item, room):
        return values[0]
    return _filled(here, [v.now() if isinstance(v, Rows) else v for v in values], item, room, name)


def item_of_list(here: Session, values: list) -> Item | None:
    """What the items of a list are; None if there are none."""
    item = None
    for value in values:
        if isinstance(value, Maybe) and value.missing is not None:  # what a branch of the loop has appended
            value = value.value
        if isinstance(value, Stack):
            item = joined(here, item, value.item)
        else:
            item = joined(here, item, item_of_rows(value) if isinstance(value, Rows) else item_of_value(here, value))
    return item


def become_stack(here: Session, owner: list, item: Item | None, why: str) -> None:
    """Put a Stack into a list now; or before the loop or branch, if the list was made before it."""
    here.journal.shared.refuse(owner, here.span())
    if _made_in(here, owner) < len(here.regions) - 1:
        raise NeedStack(owner, item, why, here.span())
    make_stack(here, owner, item, (here.span(), tuple(here.path), "list"))


def older_loop(here: Session, owner: list) -> bool:
    """Whether a list was made outside of the loop that goes round the present one."""
    return any(region.builder.name == "body" for region in here.regions[_made_in(here, owner) + 1 :])


def _made_in(here: Session, owner: list) -> int:
    return max((k for k, region in enumerate(here.regions) if id(owner) in region.fresh), default=0)


def _put(here: Session, stack: Stack, stop: Atom, value: Any) -> Atom:
    """Store an item, or the many that a loop gathered, for which there is room; where the next goes."""
    if not isinstance(value, Rows):
        put_at(here, stack, stop, value)
        return literal(int(stop.value) + 1) if isinstance(stop, Literal) else here.emit(add, stop, literal(1))
    end = here.emit(add, stop, here.dim_atom(value.arrays[0].type.dims[0]))
    put_rows(here, stack, stop, value.arrays)
    return end


def put_rows(here: Session, stack: Stack, first: Atom, arrays: list[StagedArray]) -> None:
    """Store many items, which arrays hold, from the place `first` on."""
    for buffer, array, dtype in zip(stack.buffers, arrays, stack.item.dtypes if stack.item else ()):
        starts = (first, *[literal(0)] * (array.ndim - 1))
        target = view(buffer, Rectangle(starts, array.type.dims, (1,) * array.ndim))
        write_view(target, here.atom(array, dtype))


def item_of_rows(rows: Rows) -> Item:
    """What one item of a gathered list is."""
    return _item_of(rows.tree, [array.type.with_dims(array.type.dims[1:]) for array in rows.arrays], rows.python)


def item_of_slots(slots: Any) -> Item | None:
    """What one item of a list is that a loop appends to."""
    return _item_of(slots[0].tree, [atom.type for atom in slots[0].atoms], slots[0].python) if slots else None


def _item_of(tree: Any, types: list[Array], python: Sequence[type | None]) -> Item:
    """What an item is whose leaves have these types."""
    kinds = tuple(np.ndarray if type_.dims else kind for type_, kind in zip(types, python))
    return Item(tree, tuple(t.dtype for t in types), tuple(t.dims for t in types), kinds)


def _buffers(here: Session, item: Item | None, room: tuple) -> list[StagedArray]:
    if item is None:
        return []
    if not all(here.is_bound(d) for dims in item.dims for d in dims):
        what = "what a list holds has a size that is only known inside the loop"
        raise TrialOver(what, here.span(), "pad it")
    return [
        StagedArray(Box(here, here.emit(core_undefined, dtype=dtype, shape=(room[1], *dims))))
        for dtype, dims in zip(item.dtypes, item.dims)
    ]


def replace(here: Session, owner: list, stack: Stack) -> None:
    here.journal.note(ItemLocation(owner, 0))
    owner[0] = stack


def put_at(here: Session, stack: Stack, position: Atom, value: Any) -> None:
    for buffer, leaf, dtype in zip(stack.buffers, tree_util.tree_leaves(value), stack.item.dtypes):
        write_view(view(buffer, Pick((position,), (0,))), here.atom(leaf, dtype))


def refuse_printing(here: Session) -> None:
    """What a run has printed before it is begun again would be printed twice."""
    for let in all_lets(here.regions[0].builder.lets):
        if let.primitive.effect == "ordered" and let.primitive.name != "warn_":
            raise UnsupportedError(
                "a function prints whose run may begin again, because a list or an array in it grows as long as "
                "only the run knows",
                let.span,
                code="gathered",
                remedy="print in the caller of the function",
            )
