"""Arrays that a rolled loop carries by content, and what else may be the same array.

In: what names were bound to before the loop and at the end of an iteration. Out: a trial that ends where
contents would not do (`PeelFirst`, `TrialOver`); and after the loop, for each such name, which older arrays
it may be: by a flag where one says so, else writing to either is refused.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from metaphrase.core.build import literal
from metaphrase.core.ir import Atom, Var
from metaphrase.ops.arithmetic import sub
from metaphrase.ops.compare import eq, ne

from ..staging.session import Region, Session
from ..staging.signals import PeelFirst, TrialOver
from ..values.phi import Phi, UnknownAlias, bind, family
from ..values.staged_values import Box, StagedArray
from ..values.views import Pick
from .loop_swaps import round_of

if TYPE_CHECKING:
    from .appends import Slot
    from .carries import Pass
    from .loops import Loop, StagedBody
    from .specs import ArraySlot


def _slots(work: Pass) -> list[ArraySlot]:
    """The arrays carried by content, each with what it is at the end of an iteration."""
    return [slot for slot in work.arrays.values() if slot.outside is not None]


def check_aliases(here: Session, loop: Loop, entry: list, staged: StagedBody) -> dict[int, Box]:
    """The boxes (by number of the slot) that user code still sees apart from the loop's state; raises where
    carrying contents would break what is shared."""
    slots = _slots(staged.work)
    if not slots:
        return {}
    places = range(len(slots))
    dirty, span = staged.dirty, loop.span
    entered = {k: s.entry.box for k, s in enumerate(slots) if isinstance(s.entry, StagedArray)}
    inside = [slot.inside.box for slot in slots]
    outside = [slot.outside.box for slot in slots]
    ends = [family(box) for box in outside]
    written = [k for k in places if id(inside[k]) in dirty]
    for j in written:  # what is bound to a written name now is written to in the next iteration
        written += [k for k in places if outside[j] is inside[k] and k not in written]
    shared = any(entered[j] is entered[k] for k in written if k in entered for j in entered if j != k)
    merged = any(outside[j] is outside[k] for k in written for j in places if j != k)
    if shared or merged:
        raise TrialOver("two names share one array that the loop writes to", span, "copy one of them")
    for left, right in staged.compared:
        if isinstance(left, StagedArray) and left is not right and not left.chain and not right.chain:
            _tell_apart(loop, staged.work, slots, ends, left.box, right.box)
    for k in places:
        others = [b for b in ends[k] if _reached(here, b, k, inside, ends)]
        older = [b for b in others if b.region in here.regions or any(b is i for i in inside)]
        # What the body makes is made anew each time: only what is written to later matters.
        part = slots[k].path[1:] not in ((), ("value",)) and not isinstance(slots[k].entry, StagedArray)
        older = [] if part else older  # a part of what the loop leaves once, as an early return does
        if any(id(b) in dirty for b in older) or others and k in written:
            raise TrialOver(
                f"'{staged.work.label(slots[k].path)}' becomes another array, and one of them is written to",
                span,
                "copy it",
            )
    loop.set((None,) * len(entry))
    try:
        seen = {k: box for k, box in entered.items() if _seen_elsewhere(entry, slots[k])}
        if any(box.origin is None and box.phi is None for box in seen.values()):
            gc.collect()  # garbage that refers to itself holds nothing
            seen = {k: box for k, box in entered.items() if _seen_elsewhere(entry, slots[k])}
    finally:
        loop.set(tuple(entry))
    named = {loop.names.index(s.path[0]): k for k, s in enumerate(slots) if len(s.path) == 1}
    swaps = round_of(entry, staged, list(named))
    passed = [named[n] for n in swaps]
    plain = any(k in seen and k in written for k in passed) and not any(id(entered[k]) in dirty for k in passed)
    staged.swaps = swaps if plain else {}
    for k, box in entered.items():
        reached = any(id(b) in dirty for b in family(box))
        if plain and k in passed and not reached:
            seen.pop(k, None)
            continue
        if k in written and (k in seen or slots[k].entry.chain) or reached:
            raise PeelFirst(
                f"'{staged.work.label(slots[k].path)}' is written to and bound to another array in one loop",
                span,
                "copy the array in the loop, before storing into it: x = x.copy()",
            )
    return seen


def _tell_apart(loop: Loop, work: Pass, slots: list[ArraySlot], ends: list[list[Box]], *asked: Box) -> None:
    """Raise where two arrays of the body may be one in some iteration: it was asked, and they are two there."""
    begin: list[list[Box]] = []
    later: list[list[Box]] = []
    for box in asked:
        k = next((k for k, slot in enumerate(slots) if slot.inside.box is box), None)
        entry = None if k is None else slots[k].entry
        begin.append([box] if k is None else family(entry.box) if isinstance(entry, StagedArray) else [])
        later.append([box] if k is None else ends[k])
    first, any_other = (any(x is y for x in both[0] for y in both[1]) for both in (begin, later))
    if first or any_other:
        text = "whether two arrays are one depends on the iteration"
        raise (TrialOver if any_other else PeelFirst)(text, loop.span, "compare their contents, or keep a flag")


def _reached(here: Session, box: Box, k: int, inside: list[Box], ends: list[list[Box]]) -> bool:
    """Whether the next iteration, or what comes after the loop, can reach an array of the body by another way
    than slot `k`."""
    if box is inside[k]:
        return False
    if box.region in here.regions or any(box is b for b in inside):
        return not (box is ends[k][0] and any(box is b for b in inside))
    return any(box in end for j, end in enumerate(ends) if j != k)


def _seen_elsewhere(entry: list, slot: ArraySlot) -> bool:
    """Whether anything but the loop's own state holds the array."""
    value = slot.entry
    if value.box.origin is not None or value.box.phi is not None:
        return True
    if len([h for h in value.box.handles if h() is not None]) > 1:
        return True
    place = slot.path[:2] if slot.path[0] == "heap" else slot.path[:1]
    if slot.path != place:  # in a container, which others may hold
        return True
    # The closure that makes the first value, the slot, this variable, getrefcount's argument; and the list of
    # entries, or the object that holds the array.
    own = sum(other is value for other in entry) or 1
    return sys.getrefcount(value) > 4 + own


def link_results(
    here: Session, loop: Loop, staged: StagedBody, trips: Atom | None, sure: bool, seen: dict[int, Box]
) -> None:
    """Tell the arrays after the loop which older arrays they may be."""
    slots = _slots(staged.work)
    final: list[Any] = [staged.work.finals.get(id(slot.inside)) for slot in slots]
    passed = {(loop.names[n],) for n in staged.swaps}
    places = [k for k in range(len(slots)) if final[k] is not None and slots[k].path not in passed]
    if not places:
        return
    inside = {id(slots[k].inside.box): k for k in places}
    never = False if sure else _ran_never(here, loop, trips)
    for k in places:
        box, out = final[k].box, slots[k].outside.box
        known: list[tuple] = []
        stayed = staged.work.stayed.get(id(slots[k].inside), never)
        told = k if id(slots[k].inside) in staged.work.stayed else None
        unknown: list[Box] = [b for b in family(out)[1:] if b.region in here.regions]
        unknown += [seen[j] for b in family(out)[1:] if (j := inside.get(id(b))) in seen and j != told]
        if out.region in here.regions:
            flag = never is False or here.emit(ne, here.dim_atom(loop.length) if trips is None else trips, literal(0))
            known += [(flag, out, out.atom)] if not slots[k].outside.chain else []
            unknown += [out] if slots[k].outside.chain else []
        elif (source := _source_of_row(loop, staged, out)) is not None:
            array, whole = source
            if sure and whole and not slots[k].outside.chain:
                steps = (*array.chain, _last_row(here, staged.ran))
                known += [(True, array.box, array.box.atom, steps)]
            else:
                unknown += [array.box]
        elif id(out) in inside and (before := _takes_over(here, loop, staged, inside, k)) is not None:
            times = [(_ran_times(here, staged.ran, m), j) for m, j in enumerate(before, 1) if j in seen]
            known += [_first(slots[j], seen[j], flag) for flag, j in times if flag is not False]
        elif id(out) in inside:
            unknown += _passed_on(here, loop, staged, inside, seen, k)
        if k in seen and seen[k] not in unknown and stayed is not False:
            known.append(_first(slots[k], seen[k], stayed))
        mine = {id(b) for b in family(out) if b.region not in here.regions}
        twins = [j for j in places if j != k and any(id(b) in mine for b in family(slots[j].outside.box))]
        unknown += [final[j].box for j in twins]
        unknown += [c[1] for c in known if not _fits(c, box)]
        known = [choice for choice in known if _fits(choice, box)]
        unknown = [b for b in unknown if b is not box]
        if unknown:
            bind(box, UnknownAlias(unknown + [c[1] for c in known], str(slots[k].path[0]), loop.span))
        elif known:
            bind(box, Phi(known))


def _first(slot: ArraySlot, box: Box, flag: Any) -> tuple:
    """The choice that a name is bound to what it was before the loop: an array, or a view of it."""
    assert isinstance(slot.entry, StagedArray)
    return flag, box, box.atom, slot.entry.chain


def _fits(choice: tuple, box: Box) -> bool:
    type_ = choice[1].atom.type.plain
    for step in choice[3] if len(choice) > 3 else ():
        type_ = step.type(type_)
    return type_ == box.atom.type.plain


def _source_of_row(loop: Loop, staged: StagedBody, out: Box) -> tuple[StagedArray, bool] | None:
    """The array of which the body's array is, or may be, a row; and whether it is."""
    for source, row in zip(loop.rows, staged.row_values):
        if isinstance(row, StagedArray) and any(box is row.box for box in family(out)):
            return source, out is row.box
    return None


def _last_row(here: Session, ran: Any) -> Pick:
    """The step to the row of the last iteration."""
    last = here.emit(sub, ran, literal(1)) if isinstance(ran, Var) else here.dim_atom(ran - 1)
    return Pick((last,), (0,))


def _takes_over(here: Session, loop: Loop, staged: StagedBody, inside: dict[int, int], k: int) -> list[int] | None:
    """The names whose arrays a name takes over, one iteration after the other, up to one that is made anew in
    each: `a, b = f(a, b), a` gives that of `a` for `b`. None where it is not as simple."""
    found: list[int] = []
    slots = _slots(staged.work)
    while (nearer := inside.get(id(slots[k].outside.box))) is not None:
        if slots[k].outside.chain or nearer == k or nearer in found:
            return None
        found.append(nearer)
        k = nearer
    out = slots[k].outside.box
    simple = out.region not in here.regions and out.phi is None
    return found if simple and _source_of_row(loop, staged, out) is None else None


def _ran_times(here: Session, ran: Any, times: int) -> Any:
    """Whether there were so many iterations: a Python bool, or an atom."""
    if isinstance(ran, int):
        return ran == times
    return here.emit(eq, ran if isinstance(ran, Var) else here.dim_atom(ran), literal(times))


def _passed_on(here: Session, loop: Loop, staged: StagedBody, inside: dict, seen: dict[int, Box], k: int) -> list[Box]:
    """What a name may be that takes over another name's array: all that the names before it may have been."""
    found: list[Box] = []
    names: list[int] = []
    slots = _slots(staged.work)
    while k not in names:
        names.append(k)
        out = slots[k].outside.box
        source = _source_of_row(loop, staged, out)
        found += [source[0].box] if source is not None else []
        found += [seen[k]] if k in seen else []
        found += [b for b in family(out) if b.region in here.regions]
        k = inside.get(id(out), k)
    return found


def _ran_never(here: Session, loop: Loop, trips: Atom | None) -> Any:
    """Whether no iteration ran: False, or a bool atom."""
    if trips is not None:
        return here.emit(eq, trips, literal(0))
    if isinstance(loop.length, int):
        return loop.length == 0
    assert loop.length is not None
    return False if here.facts.less(0, loop.length) else here.emit(eq, here.dim_atom(loop.length), literal(0))


def refuse_kept(here: Session, work: Pass, body: Region, dirty: set[int]) -> tuple[list[Box], list[StagedArray]]:
    """Lists that grow in a loop hold copies of what is appended: refuse arrays that Python would have changed
    in the list, too. Gives those that were there before the loop, and those that the loop carries on."""
    params = {id(slot.inside.box) for slot in work.arrays.values()}
    old = [box for box in here.kept.values() if box.region is not body or id(box) in params]
    later = [slot for slot in _slots(work) if id(slot.outside.box) in here.kept]
    if any(id(box) in dirty for box in old) or any(id(slot.inside.box) in dirty for slot in later):
        raise here.refuse_kept()
    before = [box for box in old if box.region in here.regions and box.region is not body]
    return before, [slot.inside for slot in later]


def note_held(work: Pass, body: Region, rows: list, gathered: list[tuple[list, list[Slot]]]) -> None:
    """Which items of lists are arrays that something else holds, too: rows can't stand for these where either
    is written to."""
    boxes = [box for _, slots in gathered for slot in slots for box in slot.boxes]
    times = Counter(map(id, boxes))
    held = {id(row.box) for row in rows if isinstance(row, StagedArray)}
    for slot in work.arrays.values():
        held |= {id(array.box) for array in (slot.inside, slot.outside) if array is not None}
    for _, slots in gathered:
        for item in slots:
            item.held |= any(
                box.region is not body or box.phi is not None or id(box) in held or times[id(box)] > 1
                for box in item.boxes
            )
