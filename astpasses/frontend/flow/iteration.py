"""`for` and `while` at staging: which loops are rolled, which run in Python, and what they run over.

In: an iterable or a test, the body, the state. Out: one `loop` Let where rolling works; else the body,
staged as often as the loop runs, which is logged with the reason.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.dims import DimLike, Sym, dim_max, floordiv, fresh_symbol
from metaphrase.core.ir import Atom
from metaphrase.core.types import i64
from metaphrase.late import dataclass, log
from metaphrase.ops.arithmetic import add, max_, mul
from metaphrase.ops.compare import ne
from metaphrase.ops.effects import check
from metaphrase.source import SourceError, UnsupportedError

from ..operators.arithmetic import dim_of
from ..staging.demand import roots_of, whole_numbers
from ..staging.journal import BoxLocation, Location
from ..staging.literals import elements as all_elements
from ..staging.literals import known_value, load_item
from ..staging.session import Session, session
from ..staging.signals import ListRead, NeedConcrete, PeelFirst, Restart, TrialOver
from ..values.staged_values import Number, Poison, StagedArray
from .branches import branch, negated, nothing, run_branch, state_in, static_truth, truth_atom
from .gathering import ListGrows, Rows, is_gathered, one_of_all, refuse_read, unflattened
from .iterators import Ranged, around_loops, even_steps, has_loop, started, without_first
from .joins import nonnegative
from .lazy import lazily
from .loops import Loop, RowsWritten, roll
from .stacks import NeedStack, become_stack, is_stack, older_loop

UNROLL = 3
NEST = 6
LIMIT = 4096
APART = 2  # so many iterations of a `while` are run apart at most: `a, b = f(a), a` needs two
TURNS = 64  # a loop of at most so many iterations is unrolled for each count that the caller gives


def staged_range(here: Session, *bounds: Any) -> Any:
    """`range(...)`: Python's own when the bounds are known."""
    bounds = tuple(here.wrap(b.read()) if isinstance(b, StagedArray) and b.ndim == 0 else b for b in bounds)
    for bound in bounds:
        if not isinstance(bound, (int, np.integer)) and not (isinstance(bound, Number) and bound.dtype.kind in "iu"):
            python = getattr(bound, "python", None)
            name = python.__name__ if python else getattr(bound, "dtype", type(bound).__name__)
            raise TypeError(f"'{name}' object cannot be interpreted as an integer")
    if not any(isinstance(b, Number) for b in bounds):
        return range(*map(int, bounds))
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = bounds[2] if len(bounds) > 2 else 1
    if isinstance(step, Number):
        known = known_value(here, step)
        if known is None:
            _refuse_no_step(here, here.emit(ne, here.atom(step, i64), literal(0)))
            count = _count_by(here, start, stop, step)
            return Ranged(count, lambda k, rows: _item(here, start, stop, step, k), bounds=(start, stop, step))
        step = int(known)
    if not int(step):
        _refuse_no_step(here, literal(False))
    length = _count(here, start, stop, int(step)) if int(step) else 0
    return Ranged(length, lambda k, rows: start + step * k, bounds=(start, stop, step))


def _refuse_no_step(here: Session, is_one: Atom) -> None:
    here.emit(check, is_one, exception="ValueError", message="range() arg 3 must not be zero")


def _count_by(here: Session, start: Any, stop: Any, step: Number) -> DimLike:
    """How many items a range of staged step has, whatever the step's sign."""
    towards = 1 if nonnegative(here, step) else np.sign(step)
    count = (stop - start + step - towards) // step
    atom = here.emit(max_, here.atom(count, i64), literal(0))
    return here.as_dim(here.wrap(atom, int), "the number of iterations", "count")


def _item(here: Session, start: Any, stop: Any, step: Any, k: Any) -> Any:
    """An item of a range of staged step, which 64 bits hold: it lies between the first one and the end."""
    if isinstance(k, int):
        return start + step * k
    atoms = [here.atom(v, i64) for v in (start, step, k)]
    atom = here.emit(add, atoms[0], here.emit(mul, *atoms[1:]))
    if not nonnegative(here, step):
        return here.wrap(atom, int)
    name = fresh_symbol("item#")
    end = dim_of(stop)
    here.facts.learn(name, dim_of(start), None if end is None else end - 1)
    return here.wrap(atom, int, Sym(name))


def _count(here: Session, start: Any, stop: Any, step: int) -> DimLike:
    """How many items a range has."""
    a, b, grows = _size_or_dim(here, start), _size_or_dim(here, stop), False
    if a is not None and b is not None:
        distance = b - a if step > 0 else a - b
        known = distance if step in (1, -1) else floordiv(distance + abs(step) - 1, abs(step))
        if here.facts.less_equal(distance, 0):
            return 0
        if here.is_bound(known):
            return known if here.facts.less_equal(0, distance) else dim_max(known, 0)
        grows = here.facts.less_equal(0, distance)
    gap = stop - start if step > 0 else start - stop
    if step not in (1, -1):
        gap = (gap + (abs(step) - 1)) // abs(step)
    if not grows:
        gap = here.wrap(here.emit(max_, here.atom(gap, i64), literal(0)), int)
    return here.as_dim(gap, "the number of iterations", "count")


def _size_or_dim(here: Session, value: Any) -> DimLike | None:
    """The expression an integer equals: the size that was made of it, where there is one."""
    dim = dim_of(value)
    if not isinstance(value, Number) or dim is not None and here.is_bound(dim):
        return dim
    known = here.size_of(here.atom(value))
    return dim if known is None else known


def ranged(here: Session, iterable: Any) -> Ranged | None:
    """An iterable whose items a rolled loop can make from the iteration's number; None for others."""
    if isinstance(iterable, Ranged):
        return started(here, iterable)
    if type(iterable) is list:
        refuse_read(here, iterable)
        if is_gathered(iterable):
            return ranged_rows(here, iterable[0] if len(iterable) == 1 else one_of_all(here, iterable))
    if isinstance(iterable, range):
        start, step = iterable.start, iterable.step
        return Ranged(len(iterable), lambda k, rows: start + step * k if (start, step) != (0, 1) else k)
    if isinstance(iterable, np.ndarray):
        iterable = here.lift(iterable)
    if isinstance(iterable, StagedArray):
        if iterable.ndim == 0:
            raise TypeError("iteration over a 0-d array")

        def item(k: Any, rows: list) -> Any:  # unrolled, that of an `np.arange(5)` is known
            known = iterable.box.known if isinstance(k, int) and iterable.ndim == 1 and not iterable.chain else None
            return rows[0] if known is None else known[k]

        size = iterable.type.dims[0]
        return Ranged(size, item, [iterable], Ranged(size, lambda k, rows: iterable[k]))
    return None


def ranged_rows(here: Session, rows: Any) -> Ranged:
    """The items of a list that a loop gathered."""

    def item(k: Any, given: list) -> Any:
        return unflattened(here, rows, given)

    return Ranged(rows.arrays[0].type.dims[0], item, list(rows.arrays))


def iterate_array(array: StagedArray) -> Iterator:
    """Python's own iteration over an array: unrolled. An element is read when its turn comes."""
    if array.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return (array[k] for k in range(len(array)))


# --- for ---


@dataclass
class For:
    """`for element in ...: body(element); if stop(): break`, and where it stands."""

    body: Callable[[Any], Any]
    get: Callable[[], tuple]
    set: Callable[[tuple], None]
    names: tuple
    stop: Callable[[], Any] | None
    span: Any
    target: str
    site: tuple


def run_for(iterable: Any, body: Callable, get: Callable, set_: Callable, names: tuple, stop: Callable | None) -> None:
    """`for element in iterable: body(element); if stop(): break`."""
    here = session()
    span, target = here.place()
    loop = For(body, get, set_, names, stop, span, target or "i", (span, tuple(here.path)))
    if type(iterable) is list and is_stack(iterable):
        mark, entry, before = here.journal.mark(), get(), iterable[0]
        run_over(here, iterable, loop)
        if iterable[0] is before:
            return
        here.journal.undo(mark)  # the list has changed while the loop ran over what it was
        set_(entry)
    elif type(iterable) is not list or is_gathered(iterable) or not here.decisions.rolls(loop.site, here.rolling):
        run_over(here, iterable, loop)
        return
    over_growing(here, iterable, loop)


def run_over(here: Session, iterable: Any, loop: For) -> None:
    """`for element in iterable` for what does not change in the loop."""
    source: Any = ranged(here, iterable)
    steps = even_steps(iterable) if source is None else None
    if steps is not None:
        source, loop = ranged(here, steps), replace(loop, body=around_loops(here, iterable, loop.body))
    reason, peeled, site = None, 0, loop.site

    def first() -> bool:
        element = source.item(0, [r[0] for r in source.rows])
        return _python_iterations(here, [element], loop)

    def first_then_rest() -> None:
        if first():
            _roll_for(here, loop, without_first(source), 1)

    def apart() -> bool:
        """`if len(iterable): ...`: the first iteration, where there is one, apart from the rest."""
        try:
            branch(here.size(source.length) > 0, first_then_rest, nothing, loop.get, loop.set, loop.names)
        except TrialOver:
            return False
        return True

    if source is not None and source.length == 0:
        return
    if source is not None and _worth_rolling(here, site, source.length):
        for attempt in (0, 1):
            current = source
            if attempt and isinstance(source.length, int):
                current, peeled = without_first(source), 1
                if not first():
                    return
            try:
                _roll_for(here, loop, current, peeled, not attempt)
                return
            except PeelFirst as over:
                reason = over.without_frames()
                if not attempt and not isinstance(source.length, int) and apart():
                    return
            except TrialOver as over:
                reason = over.without_frames()
                break
        assert reason is not None
        _pin_sizes(here, reason)
        if not isinstance(source.length, int):
            raise _count_needed(here, here.dim_atom(source.length), not_rolled(here, reason, "for"))
        here.decisions.unrolled[site] = reason
        log.info("%s: loop unrolled: %s", loop.span, reason.reason)
        if source.length - peeled > LIMIT:
            raise not_rolled(here, reason, "for", too_long=True)
    elements = iter(source if source is not None and steps is None else all_elements(here, iterable))
    _python_iterations(here, itertools.islice(elements, peeled, None), loop)
    if loop.stop is not None and static_truth(loop.stop()) is None:  # how far iterators are depends on the run
        here.left.update({id(i): (i, loop.span) for i in (iterable, elements) if hasattr(type(i), "__next__")})


def over_growing(here: Session, items: list, loop: For) -> None:
    """`for v in items:` where the body appends to `items`, as `while k < len(items): v = items[k]; ...`."""
    from ..calls.builtin_calls import len_

    if not is_stack(items):
        become_stack(here, items, None, "a list is changed in the loop that runs over it")
    at = [0]

    def test() -> Any:
        going = lambda: at[0] < len_(items)  # noqa: E731
        return going() if loop.stop is None else lazily("and", negated(loop.stop()), going)

    def step() -> None:
        element = load_item(here, items, at[0])
        at[0] = at[0] + 1
        loop.body(element)

    run_while(test, step, *state_in(at, "position", beside=(loop.get, loop.set, loop.names)))


def _worth_rolling(here: Session, site: tuple, length: DimLike) -> bool:
    if not isinstance(length, int) or here.decisions.rolls(site, here.rolling):
        return True
    if site in here.decisions.unrolled:
        return False
    return length > UNROLL or math.prod(here.unrolling, start=length) > NEST


def _roll_for(here: Session, loop: For, source: Ranged, rest: int, peels: bool = False) -> None:
    header = None if loop.stop is None else lambda: negated(loop.stop())  # type: ignore[misc]

    def attempt(ranged_: Ranged) -> None:
        def step(index: Number, rows: list) -> None:
            loop.body(ranged_.item(index, rows))

        length, rows, place = ranged_.length, ranged_.rows, (loop.target, loop.span, rest, peels)
        roll(here, Loop(loop.site, loop.names, loop.body, loop.get, loop.set, step, header, length, rows, *place))

    try:
        attempt(source)
    except RowsWritten:
        if source.by_view is None:
            raise
        attempt(source.by_view)


def _python_iterations(here: Session, elements: Any, loop: For) -> bool:
    """Run the loop in Python; whether it was not stopped."""
    site, stop, body = loop.site, loop.stop, loop.body
    here.unrolling.append(2)
    here.unrolled.append(site)
    moved: list[Location] = []
    try:
        count, following = 0, iter(elements)
        while True:
            stopped = False if stop is None else stop()
            known = static_truth(stopped)
            if known:
                return False
            if known is None and count > LIMIT:
                raise not_rolled(here, here.decisions.unrolled.get(site), "for", too_long=True)
            effects, mark = _effects(here) if known is None else 0, here.journal.mark()
            try:
                element = next(following)
            except StopIteration:
                return True
            written = here.journal.since(mark) if known is None else []
            moved += written
            stores = any(isinstance(location, BoxLocation) for location in written)
            if known is None and (_effects(here) != effects or stores):
                raise here.unsupported(
                    "a generator that prints, checks or stores into arrays runs in a loop that is left on a "
                    "staged test",
                    "make a list of its items before the loop",
                    code="generator",
                )
            count += 1
            here.unrolling[-1], start = count + 1, len(here.region.builder.lets)
            try:
                if isinstance(element, Rows):  # the body has appended as many as only the run knows
                    raise ListGrows([], "a list grows in the loop that runs over it", here.span(), "")
                if known is None:
                    branch(stopped, lambda: None, lambda element=element: body(element), loop.get, loop.set, loop.names)
                else:
                    body(element)
                    if count == 1 and isinstance(here.decisions.unrolled.get(site), ListRead):
                        if not here.decisions.plain_lists and has_loop(here.region.builder.lets[start:]):
                            here.decisions.rolls_few = True
                            raise ListGrows([], "a list is read in a loop that has loops inside", here.span(), "")
            except (ListGrows, NeedStack) as need:
                if here.decisions.rolls(site, here.rolling) or older_loop(here, need.list):
                    raise
                # as many items as only the run knows: the loop must stay one
                here.decisions.must_roll(site, here.rolling)
                here.decisions.unrolled.pop(site, None)
                raise Restart() from None
    finally:
        here.unrolling.pop()
        here.unrolled.pop()
        for location in moved:
            here.journal.note(location)
            why = "how often an iterator wrote this is only known when the program runs"
            location.write(Poison(why, here.span()))


def _effects(here: Session) -> int:
    """How many Lets of the region print or may fail."""
    return sum(let.primitive.effect is not None for let in here.region.builder.lets)


# --- while ---


def run_while(test: Callable, body: Callable, get: Callable, set_: Callable, names: tuple) -> None:
    """`while test(): body()`."""
    here = session()
    span, _ = here.place()
    site = (span, tuple(here.path))
    reason = here.decisions.unrolled.get(site)
    if reason is None:
        loop = Loop(site, names, body, get, set_, lambda index, rows: body(), test, None, [], "i", span, 0, True)
        try:
            roll(here, loop)
            return
        except PeelFirst as over:
            reason = over.without_frames()
            if _peel_while(here, loop, body):
                return
        except TrialOver as over:
            reason = over.without_frames()
    count = 0
    here.unrolling.append(1)
    try:
        while True:
            truth = test()
            known = static_truth(truth)
            if known is None:
                _pin_sizes(here, reason)
                raise _count_needed(here, truth_atom(here, truth), not_rolled(here, reason, "while"))
            if not known:
                break
            if count == 0 and reason is not None and site not in here.decisions.unrolled:
                here.decisions.unrolled[site] = reason
                log.info("%s: loop run in Python: %s", span, reason.reason)
            count += 1
            here.unrolling[-1] = count + 1
            if count > LIMIT:
                raise not_rolled(here, reason, "while", too_long=True)
            body()
    finally:
        here.unrolling.pop()


def _peel_while(here: Session, loop: Loop, body: Callable) -> bool:
    """`if test(): body(); while ...`: the first iteration apart from the rest."""

    def where_true(then: Callable[[], None]) -> None:
        run_branch(loop.header(), then, nothing, loop.get, loop.set, loop.names)  # type: ignore[misc]

    def rest() -> None:
        later = replace(loop, rest=loop.rest + 1, peels=False)
        try:
            roll(here, later)
        except PeelFirst as over:
            if later.rest == APART or not _peel_while(here, later, body):
                raise over.without_frames() from None

    def first_then_rest() -> None:
        body()
        where_true(rest)  # a variable that may be of the type it had before is none there

    try:
        where_true(first_then_rest)
    except TrialOver:
        return False
    return True


def _pin_sizes(here: Session, over: TrialOver | None) -> None:
    """Where a loop can't be rolled because sizes do not fit that numbers give, their values may settle it."""
    roots = over.sizes if over is not None else None
    if roots and all(root[0] == "argument" for root in roots):
        raise NeedConcrete(set(roots), "the size of an array that a loop carries", here.span())


def _count_needed(here: Session, asked: Atom, refusal: BaseException) -> BaseException:
    """A loop that can't be rolled is unrolled if its count, or its test, is made of small integers that the caller
    gives, or that an earlier loop counts, which may be run in Python. In a rolled loop it is that one that would be."""
    rolled = any(region.builder.name in ("body", "test") for region in here.regions[1:])
    told = roots_of if asked.type.dtype != bool else whole_numbers
    roots = set() if rolled else set(told(here, asked))
    if not roots or any(root[0] not in ("argument", "outer", "loop") for root in roots):
        return refusal
    why = "the number of iterations of a loop that can't be rolled"
    return NeedConcrete(roots, why, here.span(), refusal=refusal, most=TURNS)


def not_rolled(here: Session, over: TrialOver | None, kind: str, too_long: bool = False) -> BaseException:
    """The error for a loop that must be rolled and can't be; `too_long`: as it runs more than LIMIT times."""
    if over is None:
        text = f"this `{kind}` runs more than {LIMIT} times in Python while it is translated"
        return UnsupportedError(text, here.span(), code="loop", remedy="let its test depend on array values")
    cause = over.__cause__
    if isinstance(cause, SourceError):
        return cause
    notes = over.notes
    if not notes and over.span and over.span != here.span():
        notes = (("the reason stands here", over.span),)
    what = f"runs more than {LIMIT} times, and can't be rolled" if too_long else "loop can't be translated"
    return over.handed_on(
        UnsupportedError(
            f"this `{kind}` {what}: {over.reason}",
            here.span(),
            code=over.code,
            remedy=over.remedy or "keep what the loop changes of one type",
            notes=notes,
        )
    )
