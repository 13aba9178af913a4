"""What the methods of a list do to a Stack.

In: a list that holds a Stack (`stacks.py`), and what its methods are given. Out: stores into the buffer, a
new Stack in the list, the items that are read.

    stack.append(v)       check(stop < room); buffer[stop] = v; stop = stop + 1
    v = stack.pop()       check(start < stop); v = buffer[stop - 1]; stop = stop - 1
    v = stack[-1]         check(1 <= stop - start); v = buffer[stop - 1]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.build import literal
from metaphrase.core.ir import Atom, Literal
from metaphrase.core.types import i64
from metaphrase.ops.arithmetic import add
from metaphrase.ops.compare import and_, ge, le, lt, select
from metaphrase.ops.effects import check
from metaphrase.source import UnsupportedError

from ..staging.session import Session
from ..staging.settling import settled
from ..values.staged_values import Number, StagedArray
from ..values.views import Pick
from .branches import nothing
from .gathering import all_known, make_plain, snapshot, unflattened
from .iteration import run_for
from .stacks import (
    FULL,
    Stack,
    after,
    become_stack,
    count,
    is_stack,
    item_of_value,
    joined,
    put_at,
    put_rows,
    replace,
    unknown_items,
)


def _changing(here: Session, owner: list) -> None:
    """Another name for the list may stand for another list: what is written here would be missed there."""
    here.journal.shared.refuse(owner, here.span())


def _moved(here: Session, owner: list, start: Any, stop: Any) -> None:
    _changing(here, owner)
    old = owner[0]
    replace(here, owner, Stack(old.item, old.room, (start, stop, *old.buffers)))


def push(here: Session, owner: list, value: Any) -> None:
    """`owner.append(value)`."""
    stack, value = owner[0], settled(value)
    item = item_of_value(here, value)
    if joined(here, stack.item, item) != stack.item:
        become_stack(here, owner, item, "the items of a list change their type")
        stack = owner[0]
    here.keep_items(tree_util.tree_leaves(value))
    stop = here.atom(stack.stop, i64)
    here.emit(check, here.emit(lt, stop, here.dim_atom(stack.room[1])), exception=FULL, message=stack.room[0])
    put_at(here, stack, stop, value)
    _moved(here, owner, stack.start, after(here, stack.stop, 1))


def _checked(here: Session, ok: Atom, message: str) -> None:
    here.emit(check, ok, exception="IndexError", message=message)


def pop(here: Session, owner: list, index: Any = -1) -> Any:
    """`owner.pop()` and `owner.pop(0)`."""
    stack = owner[0]
    if stack.item is None:
        raise unknown_items(here)
    if not (isinstance(index, int) and index in (-1, 0)):
        raise refused(here, "pop(k) for a k that is neither 0 nor -1")
    _checked(here, here.emit(lt, here.atom(stack.start, i64), here.atom(stack.stop, i64)), "pop from empty list")
    if index == -1:
        last = after(here, stack.stop, -1)
        value = _picked(here, stack, here.atom(last, i64))
        _moved(here, owner, stack.start, last)
    else:
        value = _picked(here, stack, here.atom(stack.start, i64))
        _moved(here, owner, after(here, stack.start, 1), stack.stop)
    return value


def _picked(here: Session, stack: Stack, position: Atom) -> Any:
    step = Pick((position,), (0,))
    leaves = [here.wrap(step.read(here, buffer.read())) for buffer in stack.buffers]
    leaves = [
        leaf if not isinstance(leaf, Number) or kind is not np.ndarray else here.array(leaf.atom)
        for leaf, kind in zip(leaves, stack.item.python)
    ]
    here.keep_items(leaves)
    here.items.update((id(leaf.box), leaf.box) for leaf in leaves if isinstance(leaf, StagedArray))
    return unflattened(here, stack, leaves)


def position_of(here: Session, stack: Stack, index: Any, what: str = "list index") -> Atom:
    """Where in the buffer `owner[index]` stands, checked."""
    start, stop = here.atom(stack.start, i64), here.atom(stack.stop, i64)
    size = count(here, stack)
    if isinstance(index, (int, np.integer)):
        if index < 0:
            _checked(here, here.emit(le, literal(-int(index)), size), f"{what} out of range")
            return here.emit(add, stop, literal(int(index)))
        _checked(here, here.emit(lt, literal(int(index)), size), f"{what} out of range")
        return _from_start(here, start, literal(int(index)))
    if isinstance(index, StagedArray) and index.ndim == 0:
        index = here.wrap(index.read())
    if not isinstance(index, Number) or index.dtype.kind not in "iu":
        raise TypeError(f"list indices must be integers or slices, not {type(index).__name__}")
    atom = here.atom(index, i64)
    atom = here.emit(select, here.emit(lt, atom, literal(0)), here.emit(add, atom, size), atom)
    inside = here.emit(and_, here.emit(ge, atom, literal(0)), here.emit(lt, atom, size))
    _checked(here, inside, f"{what} out of range")
    return _from_start(here, start, atom)


def _from_start(here: Session, start: Atom, atom: Atom) -> Atom:
    return atom if isinstance(start, Literal) and not start.value else here.emit(add, start, atom)


def item_at(here: Session, stack: Stack, index: Any) -> Any:
    """`owner[index]`."""
    if stack.item is None:
        raise unknown_items(here)
    return _picked(here, stack, position_of(here, stack, index))


def store_at(here: Session, owner: list, index: Any, value: Any) -> None:
    """`owner[index] = value`."""
    _changing(here, owner)
    stack, value = owner[0], settled(value)
    if isinstance(index, slice):
        raise refused(here, "a store into a slice")
    item = item_of_value(here, value)
    if stack.item is None:
        raise unknown_items(here)
    if joined(here, stack.item, item) != stack.item:
        become_stack(here, owner, item, "the items of a list change their type")
        stack = owner[0]
    here.keep_items(tree_util.tree_leaves(value))
    put_at(here, stack, position_of(here, stack, index, "list assignment index"), value)


def stored_in_rows(here: Session, owner: list, index: Any, value: Any) -> bool:
    """Whether the store was made; not into a gathered list whose length is known, which is a list again."""
    if not is_stack(owner) and all_known(owner) and isinstance(index, int):
        make_plain(here, owner)
        return False
    if not is_stack(owner):
        become_stack(here, owner, None, "an item of a list is replaced")
    store_at(here, owner, index, value)
    return True


def clear(here: Session, owner: list) -> None:
    _moved(here, owner, 0, 0)


def reverse(here: Session, owner: list) -> None:
    """`owner.reverse()`."""
    _refill(here, owner, [array[::-1] for array in owner[0].arrays], 0)


def sort(here: Session, owner: list, *, key: Any = None, reverse: bool = False) -> None:
    """`owner.sort()` of a list of numbers."""
    from ..calls.call import call_value

    if key is not None or owner[0].item is not None and not owner[0].tree.is_leaf():
        raise refused(here, "sort with a key, or of tuples,")
    arrays = [call_value(np.sort, (array,), {"axis": 0}) for array in owner[0].arrays]
    _refill(here, owner, [array[::-1] for array in arrays] if reverse else arrays, 0)


def insert(here: Session, owner: list, index: Any, value: Any) -> None:
    """`owner.insert(0, value)`: the others move on by one."""
    if not (isinstance(index, int) and index == 0):
        raise refused(here, "insert(k, value) for a k that is not 0")
    arrays = owner[0].arrays if owner[0].item is not None else []
    push(here, owner, value)  # there is room for it, and its type fits
    _refill(here, owner, arrays, 1)
    put_at(here, owner[0], here.atom(owner[0].start, i64), value)


def _refill(here: Session, owner: list, arrays: list[StagedArray], gap: int) -> None:
    """Put arrays of items in the places from `start + gap` on."""
    _changing(here, owner)
    stack = owner[0]
    put_rows(here, stack, here.atom(after(here, stack.start, gap), i64), arrays)


def extend(here: Session, owner: list, values: Any) -> None:
    """`owner.extend(values)`, one by one: in a loop if there are many."""

    def each(value: Any) -> None:
        push(here, owner, value)

    if isinstance(values, list) and values is owner:
        raise refused(here, "extending a list by itself")
    run_for(values, each, tuple, nothing, (), None)


METHODS: dict[str, Callable[..., Any]] = {
    "append": push,
    "pop": pop,
    "clear": clear,
    "extend": extend,
    "insert": insert,
    "reverse": reverse,
    "sort": sort,
    "copy": snapshot,
}


def refused(here: Session, what: str) -> UnsupportedError:
    return here.unsupported(
        f"{what} of a list whose length is only known at run time is not supported",
        "use append, extend, pop(), pop(0), clear, len, indices, or make an array: np.array(values)",
        code="gathered",
    )
