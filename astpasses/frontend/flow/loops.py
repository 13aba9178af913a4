"""Rolling a loop: its body is staged once (a few times, until what it carries is known) and becomes one
`loop` Let.

In: a `Loop`: functions for its test and its body, its state, its length. Out: the state after the loop; or
`TrialOver` with everything undone, and the caller runs the loop in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.dims import DimLike, Sym, fresh_symbol
from metaphrase.core.ir import Atom, Literal, Roles, Var
from metaphrase.core.types import Array, i64
from metaphrase.late import dataclass, field
from metaphrase.ops.regions import loop as core_loop
from metaphrase.source import SourceError, Span

from ..rewrite.plain import Undefined
from ..staging.closing import close, free_variables
from ..staging.faults import is_users
from ..staging.journal import BoxLocation, ItemLocation, Location, StructureLocation
from ..staging.knowledge import assuming, narrowed
from ..staging.session import Region, Session
from ..staging.signals import BranchRaised, ListRead, NeedConcrete, PeelFirst, StagerSignal, TrialOver
from ..values.staged_values import Box, Number, Staged, StagedArray
from .agreement import Agreement, agree, bring_up_to_date
from .appends import Slot, appended, is_table, rows_of, worth_gathering
from .branches import static_truth, truth_atom
from .carries import Pass
from .changed_places import first_in, is_outer, labels_of, places_of, remembered
from .foreseen import ALL, Foreseen, foresee
from .gathering import FEW, TABLE, ListGrows, all_known, refuse_read
from .loop_aliases import check_aliases, link_results, note_held, refuse_kept
from .loop_objects import Known, link_objects
from .loop_swaps import put_back, refuse_reads
from .specs import Carry
from .stacks import NeedStack, item_of_list, item_of_slots, joined, make_stacks, older_loop

_PASSES = 24


@dataclass
class Loop:
    """`step(index, rows)` runs the body once; `header()` is asked before an iteration, None if there is no test."""

    site: tuple
    names: tuple[str, ...]
    body: Any  # what an iteration runs of the user's text
    get: Callable[[], tuple]
    set: Callable[[tuple], None]
    step: Callable[[Number, list], None]
    header: Callable[[], Any] | None = None
    length: DimLike | None = None
    rows: list[StagedArray] = field(default_factory=list)
    target: str = "i"
    span: Span | None = None
    rest: int = 0  # so many iterations are run apart before: what is carried is of types of its own
    peels: bool = False  # whether the first iteration can be run apart where only that changes a type


@dataclass
class StagedBody:
    """The outcome of a pass that changed nothing."""

    work: Pass
    body: Region
    test: Region
    inside: list
    outside: list
    heap: list[tuple[Location, Any, Any]]
    left: dict[int, list[str]]  # see agreement.py
    index: Var
    rows: list[Var]
    condition: Atom | None
    dirty: set[int]
    gathered: list[tuple[list, list[Slot]]]
    kept: tuple[list[Box], list[StagedArray]]  # of which lists hold copies: older arrays, carried ones
    compared: list[tuple[Any, Any]]  # of which the body asks whether they are one
    row_values: list  # what stands for the rows in the body, as `rows` do in the program
    swaps: dict[int, int] = field(default_factory=dict)  # names that pass arrays round, see loop_swaps.py
    ran: Any = None  # how many iterations there were


def roll(here: Session, loop: Loop) -> None:
    """Make one `loop` Let of it, or raise TrialOver with no trace left."""
    mark, entry = here.journal.mark(), [narrowed(here, value) for value in loop.get()]
    key = (loop.site, loop.rest)
    plan, labels = here.decisions.solutions.setdefault(key, ({}, []))
    guessed = any(label is not None and label[0] == "attribute" for label in labels)
    missed = here.decisions.unforeseen.get(key, set())
    foreseen = Foreseen() if plan or labels else foresee(here, loop, entry, missed)
    foreseen.runs = bool(foreseen.known) and loop.header is not None and _surely_runs(here, loop)
    before, staged = here.decisions.of_loops(), None
    here.rolling.append(loop.site)
    try:
        with here.holding(lambda: entry):
            staged = _fixpoint(here, loop, entry, plan, labels, mark, foreseen)
        if staged is not None:
            _finish(here, loop, entry, staged)
    except BaseException as error:
        here.journal.undo(mark)
        loop.set(tuple(entry))
        if staged is not None:
            staged.work.forget()
        verdict = _verdict(error, here)
        if not (guessed or foreseen.used) or not isinstance(verdict, TrialOver):
            raise verdict from error
        if foreseen.used:
            here.decisions.forget_loops(before)
            here.decisions.unforeseen.setdefault(key, set()).update(foreseen.missed or {ALL})
        del verdict  # its traceback holds what the loop made
    else:
        return
    finally:
        here.rolling.pop()
    here.decisions.solutions[key] = ({}, [])  # what it changes may be less than in another pass, or than its text says
    roll(here, loop)


def _verdict(error: BaseException, here: Session) -> BaseException:
    """What a failed trial means to whoever tried."""
    if isinstance(error, TrialOver):
        return error
    if isinstance(error, NeedConcrete):
        over = TrialOver(
            f"{error.why} is needed, and it changes from one iteration to the next",
            error.span,
            error.remedy or "use arrays, and index them by what changes",
        )
        return error.handed_on(over)
    if isinstance(error, BranchRaised) or getattr(error, "code", "") == "empty":
        return PeelFirst("an iteration always raises", error.span)  # type: ignore[attr-defined]
    if isinstance(error, SourceError):
        over = TrialOver(error.message, error.span, error.remedy)
        over.otherwise = getattr(error, "otherwise", None)
        return over
    if isinstance(error, (StagerSignal, KeyboardInterrupt, AssertionError)) or not isinstance(error, Exception):
        return error
    if isinstance(error, (AttributeError, NameError)) and not is_users(error):
        return error  # a fault of ours: a trial must not hide it
    return TrialOver(f"{type(error).__name__}: {error}", here.span())


def _fixpoint(
    here: Session, loop: Loop, entry: list, plan: dict, labels: list, mark: int, foreseen: Foreseen
) -> StagedBody | None:
    heap = places_of(here, plan, labels)
    heap += foreseen.places
    labels += [remembered(here, location) for location in foreseen.places]
    grown: list[list] = list(here.filling)
    stacks: list[tuple[list, Any]] = []
    items: dict[int, Any] = {}  # what earlier passes put into lists
    base, objects = mark, Known()
    for _ in range(_PASSES):
        around, work = here.growing, Pass(here, plan, labels_of(here, heap), foreseen)
        staged = None
        try:
            here.growing = [*around, *grown]
            staged = _pass(here, loop, entry, work, objects, heap, labels, mark, grown)
        except ListGrows as over:
            if any(over.list is known for known in grown) or here.is_fresh(over.list, len(here.regions)):
                raise
            here.journal.undo(mark)
            loop.set(tuple(entry))
            grown.append(over.list)
            continue
        except NeedStack as need:
            if older_loop(here, need.list):
                raise
            if _few(here, loop):
                if all_known(need.list):
                    raise ListRead(need.why, need.span) from need
                # unrolled, the list would not be one of known length
                here.decisions.must_roll(loop.site, here.rolling)
            need.item = joined(here, need.item, item_of_list(here, need.list))  # as far as the pass came
            here.journal.undo(base)
            loop.set(tuple(entry))
            grown[:] = [g for g in grown if g is not need.list]
            need.item = need.item or items.get(id(need.list))
            make_stacks(here, stacks, need, loop.site)
            mark = here.journal.mark()
            continue
        finally:
            here.growing = around
            if staged is None or work.changed:
                work.forget()
        foreseen.used = False  # it has come true, or is not what the next pass begins with
        if staged is None or not staged.work.changed:
            return staged
        items.update({id(owner): item_of_slots(slots) for owner, slots in staged.gathered})
        del staged, work  # it holds objects that nothing else does
    raise TrialOver("what the loop carries does not settle", loop.span)


def _pass(
    here: Session,
    loop: Loop,
    entry: list,
    work: Pass,
    objects: Known,
    heap: list[Location],
    labels: list,
    mark: int,
    grown: list[list],
) -> StagedBody | None:
    """Stage test and body once; None if the test is false whatever the state."""
    known = {loc.key(): k for k, loc in enumerate(heap)}
    body, test = Region("body", mark), Region("test", mark)
    depth = len(here.regions)
    bring_up_to_date(here, heap)
    with here.inside(body):
        inside = [work.enter((name,), value) for name, value in zip(loop.names, entry)]
        for loc in heap:  # a number that was found there is a parameter of the program, in each staging
            here.before_write(loc)
        originals = [loc.read() for loc in heap]
        placed = [_enter_place(work, loc, k, originals[k]) for k, loc in enumerate(heap)]
        for k, loc in enumerate(heap):  # a place may be in an object that stands in another
            here.journal.note(loc, again=True)
            loc.write(placed[k])
        agree(here, heap, {})
        objects.tell(work)
        loop.set(tuple(inside))
        index, counter = _index(here, loop)
        rows = [Var(getattr(r.box.atom, "name", "row"), r.type.with_dims(r.type.dims[1:])) for r in loop.rows]
    after_entry, mixed, questions = here.journal.mark(), here.mixed, len(here.journal.shared.asked)
    compared = len(here.compared)
    condition = None
    endless = False
    if loop.header is not None:
        with here.inside(test):
            loop.set(tuple(work.sizes.again(value) for value in inside))
            condition = loop.header()
            if not isinstance(condition, Staged) and (truth := static_truth(condition)) is not None:
                condition = truth
            if isinstance(condition, (bool, np.bool_)):
                if not condition:
                    here.journal.undo(mark)
                    loop.set(tuple(entry))
                    return None
                endless = loop.length is None  # so far: what the pass assumes may not hold
                condition = None
            else:
                condition = truth_atom(here, condition)
        if [loc for loc in here.journal.since(after_entry) if is_outer(here, loc, depth)]:
            raise TrialOver("the loop's test writes to an array or object", loop.span, "write before the test")
        loop.set(tuple(inside))
    held = (lambda: inside, lambda: originals, lambda: placed, work.kept, objects.kept)
    with here.inside(body), here.holding(*held):
        values = [here.wrap(v) if not v.type.dims else StagedArray(Box(here, v)) for v in rows]
        with assuming(here, condition, True):
            loop.step(counter, list(values))
        outside = list(loop.get())
        for k, name in enumerate(loop.names):
            work.leave((name,), entry[k], inside[k], outside[k])
            inside[k] = work.entered.get((name,), inside[k])
        bring_up_to_date(here, heap)
        written = here.journal.since(after_entry)
        kept_word = not work.foreseen.used or work.foreseen.are_true(work.carries, written, test, condition, body)
        if not kept_word or work.foreseen.used and len(here.compared) > compared:
            raise TrialOver("the loop does other things than its text says", loop.span)
        gathered: list[tuple[list, list[Slot]]] = []
        for loc in written:
            if not is_outer(here, loc, depth):
                continue
            if isinstance(loc, StructureLocation):
                slots = appended(here, loc.owner, first_in(here, loc, after_entry), loop.span)
                if _few(here, loop):  # a branch on staged values that appends asks for it to be rolled
                    numbers = any(not atom.type.dims for slot in slots for atom in slot.atoms)
                    kinds = numbers and here.mixed != mixed  # unrolled, each keeps the type that it has in Python
                    if kinds or here.decisions.plain_lists or not worth_gathering(here, slots, index):
                        raise TrialOver(f"{loc.describe()} changes in the loop", loop.span)
                    here.gathers_few = True
                elif _few(here, loop, TABLE) and is_table(here, slots, index):
                    raise TrialOver(f"{loc.describe()} changes in the loop", loop.span)
                if not any(loc.owner is known_list for known_list in grown):
                    grown.append(loc.owner)
                    work.changed = True
                gathered.append((loc.owner, slots))
                continue
            if isinstance(loc, ItemLocation) and any(loc.owner is known_list for known_list in grown):
                refuse_read(here, loc.owner)
            if loc.key() not in known:
                known[loc.key()] = len(heap)
                first = first_in(here, loc, after_entry)
                if not isinstance(loc, BoxLocation) and not isinstance(first, Undefined):  # the class may have it
                    work.foresee(("heap", len(heap)), first, loc.read())
                heap.append(loc)
                labels.append(remembered(here, loc))
                work.changed = True
        triples = [(loc, made, loc.read()) for loc, made in zip(heap, placed)]
        for k, triple in enumerate(triples):
            _leave_place(work, k, originals[k], *triple)
        work.numbers.settle()
        left = {key: states for key, (_, _, states) in Agreement.since(here, mark).found.items()}
        if not work.changed:
            made = {key for region in here.regions[depth:] for key in region.fresh}
            asked = {*here.journal.shared.asked[questions:], *(id(loc.owner) for loc in written)}
            work.changed = objects.settle(work, made, asked)
        dirty = {id(loc.owner) for loc in written if isinstance(loc, BoxLocation)}
        kept = refuse_kept(here, work, body, dirty)
        note_held(work, body, values, gathered)
        for source, value in zip(loop.rows, values):
            if isinstance(value, StagedArray) and id(value.box) in dirty or id(source.box) in dirty:
                raise RowsWritten("the loop writes to the array it runs over", loop.span)
    here.journal.undo(mark)
    loop.set(tuple(entry))
    if endless and not work.changed:
        raise TrialOver("the test does not depend on a staged value", loop.span)
    ends = (dirty, gathered, kept, here.compared[compared:], values)
    return StagedBody(work, body, test, inside, outside, triples, left, index, rows, condition, *ends)


def _few(here: Session, loop: Loop, most: int = FEW) -> bool:
    """Whether a loop that changes a list is unrolled, so that the list stays a list."""
    few = isinstance(loop.length, int) and loop.length <= most and loop.header is None
    return few and not here.decisions.rolls(loop.site, here.rolling)


class RowsWritten(TrialOver):
    """Rows must be views of the array, not slices handed to the iteration."""


def _enter_place(work: Pass, loc: Location, k: int, value: Any) -> Any:
    if isinstance(loc, BoxLocation):
        return work.carry(("heap", k), value.type.plain, lambda: value)
    return work.enter(("heap", k), value)


def _leave_place(work: Pass, k: int, value: Any, loc: Location, made: Any, out: Any) -> None:
    if isinstance(loc, BoxLocation):
        work.by_path[("heap", k)].final = out
    else:
        work.leave(("heap", k), value, made, out)


def _index(here: Session, loop: Loop) -> tuple[Var, Number]:
    index = Var(loop.target, Array(i64))
    name = fresh_symbol(loop.target + "#")
    here.facts.learn(name, 0, None if loop.length is None else loop.length - 1)
    return index, Number(here, index, int, Sym(name))


def _finish(here: Session, loop: Loop, entry: list, staged: StagedBody) -> None:
    """Close the regions and bind the Let; put the state after the loop in place."""
    work = staged.work
    sure = _surely_runs(here, loop)
    if loop.peels and (work.turns == "number" or sure and work.turns):
        raise PeelFirst("the first iteration changes the type of a variable", loop.span)
    seen = check_aliases(here, loop, entry, staged)
    carries = [c for c in work.carries if c.final is not c.param]
    kept: dict[Var, Any] = {}
    renamed: dict[Var, Atom] = {}
    for carry in work.carries:
        if carry.final is carry.param:
            renamed[carry.param] = carry.initial()
            kept[carry.param] = renamed[carry.param] if carry.entry is None else carry.entry
    initial = [c.initial() for c in carries]
    params = [c.param for c in carries]
    finals: list[Atom] = [c.final for c in carries]  # type: ignore[misc]
    slots = [slot for _, found in staged.gathered for slot in found]
    finals += [a for s in slots for a in (*s.atoms, *((s.flag,) if s.flag is not None else ()))]
    own = [staged.index, *params, *staged.rows]
    free = free_variables(staged.body, own, finals)
    if staged.condition is not None:
        free += [v for v in free_variables(staged.test, [staged.index, *params], [staged.condition]) if v not in free]
    refuse_reads(staged.swaps, entry, free, loop)
    consts: list[Var] = []
    for var in free:
        outer = renamed.get(var, var)
        if isinstance(outer, Var) and outer not in consts:
            consts.append(outer)
    body = close(staged.body, "body", [staged.index, *consts, *params, *staged.rows], finals, renamed)
    condition = size = None
    if staged.condition is not None:
        condition = close(staged.test, "test", [staged.index, *consts, *params], [staged.condition], renamed)
        size = fresh_symbol("trips")
    attributes: dict[str, Any] = dict(
        body=body, cond=condition, length=loop.length, roles=Roles(len(consts), len(params), 0, len(loop.rows))
    )
    if size is not None:
        attributes["size"] = size
    outs = here.emit(core_loop, *consts, *initial, *(r.read() for r in loop.rows), **attributes)
    trips = None
    if size is not None:
        trips, outs = outs[0], outs[1:]
        trips.name = "trips"
        here.region.symbols.add(size)
    staged.ran = trips if trips is not None else loop.length
    for carry in carries if sure else ():
        if isinstance(carry.final, Literal):
            kept[carry.param] = carry.final
    _place_results(here, loop, entry, staged, carries, outs, kept, trips if not sure else None, sure, seen)


def _surely_runs(here: Session, loop: Loop) -> bool:
    """Whether the first iteration runs whatever the arguments are."""
    if loop.length is not None and not here.facts.less(0, loop.length):
        return False
    if loop.header is None:
        return True
    mark = here.journal.mark()
    try:
        with here.inside(Region("test", mark)):
            return loop.header() in (True, np.True_)
    except (NeedConcrete, BranchRaised, TrialOver, Exception):  # the test itself needs what is not known
        return False
    finally:
        here.journal.undo(mark)


def _place_results(
    here: Session,
    loop: Loop,
    entry: list,
    staged: StagedBody,
    carries: list[Carry],
    outs: Any,
    kept: dict,
    trips: Atom | None,
    sure: bool,
    seen: dict[int, Any],
) -> None:
    results: dict[Var, Any] = {}
    for carry, out in zip(carries, outs):
        out.name = carry.param.name
        results[carry.param] = out
        if isinstance(carry.entry, (int, float)):
            here.origins[out] = ("loop", loop.site)
    results.update(kept)
    final = [staged.work.after(value, results) for value in staged.inside]
    loop.set(tuple(final))
    for loc, made, _ in staged.heap:
        here.journal.note(loc, again=True)
        if isinstance(loc, BoxLocation):
            loc.write(results[made])
        else:
            loc.write(staged.work.after(made, results))
    agree(here, [loc for loc, _, _ in staged.heap], staged.left)
    link_results(here, loop, staged, trips, sure, seen)
    if staged.swaps:
        put_back(here, entry, final, staged.swaps, staged.ran)
        loop.set(tuple(final))
    link_objects(here, loop, staged, sure)
    older, carried = staged.kept
    here.keep_items([*older, *(staged.work.finals.get(id(array)) for array in carried)])
    at = len(carries)
    for owner, slots in staged.gathered:
        count = sum(len(s.atoms) + (s.flag is not None) for s in slots)
        for out in outs[at : at + count]:
            out.name = "element"
            if _few(here, loop):
                here.origins[out] = ("list",)
        here.journal.note(StructureLocation(owner))
        owner.append(rows_of(here, slots, list(outs[at : at + count])))
        at += count
    staged.work.forget()
