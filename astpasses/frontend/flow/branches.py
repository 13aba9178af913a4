"""Branches on staged values: both sides are staged, and what they leave different is joined by one `cond`
Let.

In: a staged test, two functions, the state they share. Out: the state after the branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from metaphrase import tree_util
from metaphrase.core.build import literal
from metaphrase.core.ir import Atom, Literal
from metaphrase.ops.compare import ne, not_
from metaphrase.ops.regions import cond
from metaphrase.ops.shape import reshape
from metaphrase.source import OutOfBounds, ShapeError, SourceError

from ..rewrite.plain import Undefined
from ..staging.captured import guard_structure
from ..staging.closing import close, free_variables
from ..staging.faults import is_users
from ..staging.journal import BoxLocation, ItemLocation, Location, StructureLocation
from ..staging.knowledge import assuming, implied, narrowed
from ..staging.positions import place_of_error
from ..staging.session import Region, Session, session
from ..staging.signals import BranchRaised, TrialOver
from ..values.staged_values import Maybe, Number, OneOf, Staged, StagedArray, Truth
from .agreement import Agreement, behind_branch
from .attempts import Fork, MustFork, catcher, events, in_reach
from .changed_places import is_outer
from .ends import End, as_it_was
from .gathering import ListGrows, is_gathered, refuse_read
from .gathering import length as gathered_length
from .merging import Merger
from .raised import emit_raise, has_effects, kept
from .stacks import NeedStack, item_of_list, joined, make_stacks, older_loop
from .unlike import negated_test


def _answered(value: Any) -> Any:
    """What a user's `__bool__` (or `__len__`) says of an object; other values are asked themselves."""
    if isinstance(value, (Truth, OneOf)):
        return value.flag
    if type(value) is list:
        refuse_read(session(), value)
        return gathered_length(session(), value) != 0 if is_gathered(value) else value
    if type(value).__module__ == "builtins" or isinstance(value, Staged):
        guard_structure(session(), value)
        return value
    from ..operators.protocols import call_written, written

    for name in ("__bool__", "__len__"):
        method = written(value, name)
        if method is not None:
            return call_written(method, value)
    return value


def truth_atom(here: Session, value: Any) -> Atom:
    """`bool(value)` as a bool atom."""
    if isinstance(value, StagedArray):
        if any(d != 1 for d in value.type.dims):
            what = "empty array" if 0 in value.type.dims else "array with more than one element"
            raise here.dtype_error(
                f"The truth value of an {what} is ambiguous", remedy="use a.size, a.any() or a.all()"
            )
        atom = value.read()
        atom = here.emit(reshape, atom, shape=()) if atom.type.dims else atom
    else:
        atom = here.atom(_answered(value))
    return atom if atom.type.dtype == bool else here.emit(ne, atom, literal(0, atom.type.dtype))


def static_truth(value: Any) -> bool | None:
    """The truth of a value that staging knows; None for a staged one."""
    if isinstance(value, Number) and value.dim is not None and value._atom is None:
        facts = session().facts
        return True if facts.less(0, value.dim) else None
    value = _answered(value)
    if isinstance(value, Number) and value._atom in session().truths:
        return session().truths[value._atom]
    return None if isinstance(value, (Staged, Maybe)) else bool(value)


def negated(value: Any) -> Any:
    """`not value`."""
    known = static_truth(value)
    if known is not None:
        return not known
    here = session()
    return negated_test(here, truth_atom(here, value))


def run_side(here: Session, name: str, side: Callable, get: Callable, entry: list, set_: Callable) -> End:
    """Stage one side in a region of its own, then put everything back."""
    mark, depth = here.journal.mark(), len(here.regions)
    end = End(Region(name, mark))
    fresh: list[tuple[Location, Any]] = []
    try:
        with here.inside(end.region):
            try:
                side()
            except BranchRaised as raised:
                end.raised = raised
            except Exception as error:
                end.raised = raised_here(here, error)
            end.values = list(get())
            for location in here.journal.since(mark):
                if not is_outer(here, location, depth):
                    fresh.append((location, location.read()))
                    continue
                end.written[location.key()] = (location, location.read())
                if isinstance(location, ItemLocation) and isinstance(location.owner, list | dict):
                    end.contents[id(location.owner)] = location.owner.copy()
            end.agreement = Agreement.since(here, mark)
    finally:
        here.journal.undo(mark)
        set_(tuple(entry))
    for location, value in fresh:  # what this side made itself keeps what it holds
        location.write(value)
    end.agreement.put(lambda phi: phi.region not in here.regions)
    return end


def raised_here(here: Session, error: Exception) -> BranchRaised:
    """What Python raises on a path, `None.x` or `table["b"]`, is raised when the program takes that path; of
    shapes and types that never fit, and of faults of ours, we tell now."""
    if isinstance(error, (ShapeError, OutOfBounds)) and error.code == "empty":  # so it is at a size of the run, too
        kind = IndexError if isinstance(error, OutOfBounds) else ValueError
        error = kind(error.message).with_traceback(error.__traceback__)
    if isinstance(error, (SourceError, RecursionError, MemoryError)):
        raise error
    if isinstance(error, (AttributeError, NameError, AssertionError)) and not is_users(error):
        raise error
    in_reach(here, error)
    here.raises += 1
    span = place_of_error(error) or here.span()
    return BranchRaised(error.with_traceback(None), span)


def nothing(*state: Any) -> None:
    """No state, and no statement."""


State: TypeAlias = tuple[Callable, Callable, tuple]  # what reads the variables of a loop, what sets them, their names
STATELESS: State = (tuple, nothing, ())


def state_in(held: list, *names: str, beside: State = STATELESS) -> State:
    """The state whose variables are the items of a list, and those of another one before them."""
    get, set_, others = beside

    def restore(state: tuple) -> None:
        set_(state[: len(others)])
        held[:] = state[len(others) :]

    return lambda: (*get(), *held), restore, (*others, *names)


def run_branch(test: Any, then: Callable, otherwise: Callable, get: Callable, set_: Callable, names: tuple) -> None:
    """`if test: then() else: otherwise()`, where staging may know the test."""
    known = static_truth(test)
    if known is None:
        branch(test, then, otherwise, get, set_, names)
    else:
        (then if known else otherwise)()


def branch(test: Any, then: Callable, otherwise: Callable, get: Callable, set_: Callable, names: tuple) -> None:
    """`if test: then() else: otherwise()` for a staged test."""
    here, entry = session(), list(get())
    mark, stacks = here.journal.mark(), []  # type: ignore[var-annotated]
    while True:
        try:
            with here.holding(lambda: entry):
                _branch(here, test, then, otherwise, get, set_, names)
            return
        except NeedStack as need:
            if _loop_around(here, need.list):
                raise
            here.journal.undo(mark)
            set_(tuple(entry))
            make_stacks(here, stacks, need, (here.span(), tuple(here.path)))


def _branch(
    here: Session, test: Any, then: Callable, otherwise: Callable, get: Callable, set_: Callable, names: tuple[str, ...]
) -> None:
    test = truth_atom(here, test)
    if isinstance(test, Literal):
        (then if test.value else otherwise)()
        return
    met = events(here)
    for attempt, event in met:
        decided = attempt.decision(event, here.span())
        if decided is not None:
            (then if decided else otherwise)()
            return
    entry = list(get())
    here.tests.append(test)
    try:
        with here.holding(lambda: entry), assuming(here, test, True):
            first = run_side(here, "then", then, get, entry, set_)
        with here.holding(lambda: entry, first.kept), assuming(here, test, False):
            second = run_side(here, "otherwise", otherwise, get, entry, set_)
        for end in (first, second):
            if end.raised and (taker := catcher(here, type(end.raised.exception))) is not None:
                raise MustFork(taker, here)
    except MustFork as must:
        for attempt, event in met:
            if attempt is must.attempt:
                raise Fork(attempt, event, test, here.span()) from None
        raise
    finally:
        here.tests.pop()
    if first.raised or second.raised:
        with here.holding(lambda: entry, first.kept, second.kept):
            _one_raises(here, test, first, second, then, otherwise)
        return
    merger = Merger(here, test, (first, second))
    _narrow(here, test, first, second)
    makers = [merger.merge(a, b, name) for a, b, name in zip(first.values, second.values, names)]
    places = _places(first, second)
    place_makers = [_place_maker(here, merger, *place) for place in places]
    outs = _emit(here, test, first, second, merger)
    agree = behind_branch(here, [(end.agreement, end.written) for end in (first, second)])
    after = [(place[0], maker(outs)) for place, maker in zip(places, place_makers)]
    for location, value in after:
        here.journal.note(location, again=True)
        location.write(value)
    agree()
    set_(tuple(maker(outs) for maker in makers))
    merger.link_twins()
    merger.link_objects()
    for end in (first, second):
        here.region.fresh.update(end.region.fresh)


def _narrow(here: Session, test: Any, first: End, second: End) -> None:
    """What the test says of variables that may be missing."""
    for k, (a, b) in enumerate(zip(first.values, second.values)):
        if a is not b:
            with assuming(here, test, True):
                first.values[k] = narrowed(here, a)
            with assuming(here, test, False):
                second.values[k] = narrowed(here, b)


def _place_maker(here: Session, merger: Merger, location: Location, a: Any, b: Any) -> Callable:
    if isinstance(location, BoxLocation):
        return merger.content(a, b)
    if isinstance(location, StructureLocation):
        return _structure(here, merger, location, a, b)
    return merger.merge(a, b, location.describe())


def _places(first: End, second: End) -> list[tuple[Location, Any, Any]]:
    """Every place that a side wrote, with what it holds at the end of each. Where a side changed the form of
    a list or dict, that is one place, and its items are none."""
    out = []
    written = {**first.written, **second.written}
    whole = {id(loc.owner) for loc, _ in written.values() if isinstance(loc, StructureLocation)}
    for key, (location, _) in written.items():
        owner = id(location.owner)
        if isinstance(location, ItemLocation) and owner in whole:
            continue
        now = location.read()
        ends = [
            end.written[key][1]
            if key in end.written
            else end.contents.get(owner, now)
            if isinstance(location, StructureLocation)
            else now
            for end in (first, second)
        ]
        out.append((location, *ends))
    return out


def _structure(here: Session, merger: Merger, location: Location, a: Any, b: Any) -> Callable:
    """What a container holds that sides changed: alike on both, or a list that the loop around gathers."""
    name, owner = location.describe(), location.owner
    if type(a) in (list, dict) and len(a) == len(b) and (type(a) is list or a.keys() == b.keys()):
        return merger.merge(a, b, name)
    over = (f"{name} changes in a branch on a staged value", here.span(), "give the container one length on every path")
    if type(owner) is not list:
        raise TrialOver(*over)
    same = len(owner)
    item = joined(here, item_of_list(here, a), item_of_list(here, b))
    if any(x is not y for side in (a, b) for x, y in zip(owner, side)) or min(len(a), len(b)) < same:
        raise NeedStack(owner, item, *over)
    if not any(owner is grown for grown in here.growing):
        if _loop_around(here, owner):
            raise ListGrows(owner, *over)
        raise NeedStack(owner, item, *over)
    makers: list[Callable] = []
    for k in range(same, max(len(a), len(b))):
        one, two = (side[k] if k < len(side) else Undefined("element") for side in (a, b))
        here.keep_items(tree_util.tree_leaves((one, two)))
        makers.append(merger.merge(one, two, "element"))
    kept = list(owner)
    return lambda outs: kept + [make(outs) for make in makers]


def _loop_around(here: Session, owner: list) -> bool:
    """Whether a loop around is to gather what is appended: one that is rolled, or may be."""
    unrolled = any(not here.decisions.rolls(site, here.rolling) for site in here.unrolled)
    return unrolled or older_loop(here, owner)


def _emit(here: Session, test: Atom, first: End, second: End, merger: Merger) -> tuple:
    atoms = []
    for side, end in enumerate((first, second)):
        with as_it_was(end), here.inside(end.region), assuming(here, test, side == 0):
            mark = here.journal.mark()
            atoms.append([task() for task in merger.tasks[side]])
            here.journal.undo(mark)
    if not merger.tasks[0] and not has_effects(first.region) and not has_effects(second.region):
        return ()
    free = free_variables(first.region, [], atoms[0])
    free += [v for v in free_variables(second.region, [], atoms[1]) if v not in free]
    functions = tuple(
        close(end.region, end.region.builder.name, free, results)
        for end, results in ((second, atoms[1]), (first, atoms[0]))
    )
    outs = here.emit(cond, test, *free, branches=functions)
    for out, name in zip(outs, merger.names):
        out.name = name
    return outs


def _one_raises(here: Session, test: Atom, first: End, second: End, then: Callable, otherwise: Callable) -> None:
    """A side that raises is a check before the other, which goes on as if there were no branch."""
    if first.raised is not None and second.raised is not None:
        _keep_effects(here, test, first, second)
        raise BranchRaised(second.raised.exception, second.raised.span, told=True)
    end, other = (first, otherwise) if first.raised is not None else (second, then)
    assert end.raised is not None
    inside = {out for let in end.region.builder.lets for out in let.outs}
    values = kept(here, end.raised.exception, end.raised.span).values
    if end.raised.told or has_effects(end.region) or any(here.atom(v) in inside for v in values):
        _keep_effects(here, test, first, second)
    else:
        emit_raise(here, here.emit(not_, test) if end is first else test, end.raised)
    here.truths = {**here.truths, **implied(here, test, end is second)}  # or it would not go on
    other()


def _keep_effects(here: Session, test: Atom, first: End, second: End) -> None:
    """A `cond` without results: what a side prints and checks, then raises. Nothing for a side that goes on,
    which is staged again after it."""
    regions = []
    for end in (second, first):
        if end.raised is None:
            regions.append(Region("goes_on", 0))
            continue
        if not end.raised.told:
            with here.inside(end.region):
                emit_raise(here, literal(False), end.raised)
        regions.append(end.region)
    free = list(dict.fromkeys(v for region in regions for v in free_variables(region, [], [])))
    functions = tuple(close(region, region.builder.name, free, []) for region in regions)
    here.emit(cond, test, *free, branches=functions)
