"""What a loop appends to a list: the slots of its body, and the rows of all iterations.

In: a list that the body of a loop appended to, and what it held before. Out: a `Slot` for each append; after
the loop, `Rows` of its results. Example:

    for v in x:                     appended(trace) is [Slot(v*v, if v > 0)]
        if v > 0:
            trace.append(v * v)     rows_of(slots, results) is Rows(squares[mask])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.dims import symbols
from metaphrase.core.ir import Atom, Let, Literal, Var
from metaphrase.late import dataclass, field

from ..operators.kinds import is_number
from ..staging.session import Session
from ..staging.signals import TrialOver
from ..values.staged_values import Box, Maybe, StagedArray
from .gathering import Rows, containers_in, python_kind
from .stacks import NeedStack


@dataclass
class Slot:
    """What one `append` of the body makes: its leaves, and the flag that it is made, if it is in a branch."""

    tree: Any
    atoms: list[Atom]
    python: list[type | None]
    flag: Atom | None
    many: bool = False  # an inner loop makes them: each leaf has a row for each of its iterations
    boxes: list[Box] = field(default_factory=list)  # the arrays among the leaves
    held: bool = False  # something else holds one of these, or it is part of another array


def appended(here: Session, owner: Any, before: Any, span: Any) -> list[Slot]:
    """The slots of what the body appended to a list, which held `before` at its start."""
    grown = isinstance(owner, list) and len(owner) >= len(before)
    if not grown or any(a is not b for a, b in zip(owner, before)):
        if isinstance(owner, list):
            raise NeedStack(owner, None, "items are taken from a list in a loop", span)
        raise TrialOver(
            f"the length of a {type(owner).__name__} changes in the loop",
            span,
            "make an array before the loop and store into it",
        )
    slots = []
    for item in owner[len(before) :]:
        flag = None
        if isinstance(item, Maybe) and item.missing is None:
            raise TrialOver("what the loop appends to a list is None on some paths", span, "append NaN")
        if isinstance(item, Maybe):
            item, flag = item.value, here.atom(item.flag, np.dtype(bool))
        many = isinstance(item, Rows)
        why = "a loop inside appends to the list, each time as often as only the run knows"
        if many and not isinstance(item.arrays[0], StagedArray):  # the paths append unequally often
            raise TrialOver(why, span, "make an array before the loop and store into it")
        if many and (len(owner) > len(before) + 1 or not here.settled_outside(item.arrays[0].type.dims[0])):
            raise NeedStack(owner, None, why, span)
        leaves, tree = tree_util.tree_flatten(item)
        if not leaves or not all(is_number(v) or isinstance(v, StagedArray) for v in leaves):
            raise TrialOver("what the loop appends to a list is no number or array", span, "append numbers")
        held = [] if many else list(containers_in(item))
        if not all(here.is_fresh(container, len(here.regions) - 1) for container in held):
            raise TrialOver("what a loop appends to a list is an older list or object", span, "copy it")
        for container in held:
            here.journal.shared.add_copy(container, span)
        boxes = [leaf.box for leaf in leaves if isinstance(leaf, StagedArray)]
        kept = any(id(box) in here.kept for box in boxes)
        here.keep_items(leaves)
        atoms = [here.atom(v) for v in leaves]
        if any(symbols(d) & here.region.symbols for a in atoms for d in a.type.dims):
            raise TrialOver(
                "what the loop appends has a size that is only known inside",
                span,
                "append arrays of one size; an argument that says the size can be static (static_argnames)",
            )
        kinds = item.python if many else list(map(python_kind, leaves))
        slots.append(Slot(item.tree if many else tree, atoms, kinds, flag, many, boxes, kept))
    if any(slot.tree != slots[0].tree for slot in slots):
        raise TrialOver("the loop appends items of several structures to a list", span, "use two lists")
    return slots


def worth_gathering(here: Session, slots: list[Slot], index: Var) -> bool:
    """Whether nothing is lost where few items become rows: each leaf depends on what only the run knows, and
    arrays are made in the loop. What follows from the loop's index alone stays known, and Python's own."""
    makers = {out: let for let in here.region.builder.lets for out in let.outs}
    atoms = [a for slot in slots for a in (*slot.atoms, *([] if slot.flag is None else [slot.flag]))]
    return all((not atom.type.dims or atom in makers) and _is_varied(atom, makers, index) for atom in atoms)


def is_table(here: Session, slots: list[Slot], index: Var) -> bool:
    """Whether the items are lists of constants, as of a table that is filled in later: they stay lists."""
    makers = {out: let for let in here.region.builder.lets for out in let.outs}
    objects = any(slot.tree.kind is not None and slot.tree.kind.type is not tuple for slot in slots)
    return objects and not any(_is_varied(atom, makers, index) for slot in slots for atom in slot.atoms)


def _is_varied(atom: Atom, makers: dict, index: Var) -> bool:
    """Whether a value of the body depends on more than its index and sizes."""
    todo, seen = [atom], set()
    while todo:
        var = todo.pop()
        if isinstance(var, Literal) or var in seen or var.type.value is not None:
            continue
        seen.add(var)
        if var in makers:
            todo += _sources(var, makers[var])
        elif var is not index:
            return True
    return False


def _sources(var: Var, let: Let) -> list[Atom]:
    """What a result of a Let comes from: of a branch, the test and what both sides give there."""
    if let.primitive.name != "cond":
        return list(let.args)
    place, found = let.outs.index(var), [let.args[0]]
    for branch in let.attributes["branches"]:
        result = branch.results[place]
        if result in branch.params:
            found.append(let.args[1 + branch.params.index(result)])
        elif not isinstance(result, Literal):
            return list(let.args)
    return found


def rows_of(here: Session, slots: list[Slot], outs: list[Atom]) -> Rows:
    """The rows of all iterations from the loop's results: those of each slot's leaves, then of its flag."""
    from ..calls.call import call_value

    here.gathers = True
    given, columns, flags = iter(outs), [], []
    for slot in slots:
        columns.append([here.wrap(next(given)) for _ in slot.atoms])
        flags.append(here.wrap(next(given)) if slot.flag is not None else None)
    several = len(slots) > 1
    if slots[0].many:
        columns = [[leaf.reshape((-1, *leaf.shape[2:])) for leaf in columns[0]]]
    mask = None
    if any(f is not None for f in flags):
        full = [np.True_ if f is None else f for f in flags]
        mask = full[0]
        if several:
            full = [call_value(np.ones, columns[0][0].shape[:1], {"dtype": bool}) if f is np.True_ else f for f in full]
            mask = call_value(np.stack, (full,), {"axis": 1}).reshape(-1)
    if mask is not None and len(slots[0].atoms) > 1:  # one count for all leaves
        mask = call_value(np.nonzero, (mask,), {})[0]
    arrays = []
    for leaf in zip(*columns):
        joined = leaf[0]
        if several:
            joined = call_value(np.stack, (list(leaf),), {"axis": 1})
            joined = joined.reshape((-1, *leaf[0].shape[1:]))
        arrays.append(joined if mask is None else joined[mask])
    here.items.update((id(array.box), array.box) for array in arrays if array.ndim > 1)
    if any(slot.held for slot in slots):
        here.keep_items(arrays)
    python = [None if len({s.python[k] for s in slots}) > 1 else p for k, p in enumerate(slots[0].python)]
    return Rows(slots[0].tree, arrays, python)
