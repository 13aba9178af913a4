"""`try` with `except` around what may fail when the program runs: its body is staged once for each way to go.

In: the body, handlers and all, as a function, and the state around it. Out: the state after it. Where a
check in the body may fail with an exception that a handler takes, the statement becomes a branch on that
check, and its body is staged again on each side: there the check is known. On the side where it fails
Python's own exception is raised, and Python's own `except` takes it.

    try:                            ok = x != 0
        y = 1 / x                   if ok:
    except ZeroDivisionError:           y = 1 / x
        y = 0.0                     else:
                                        y = 0.0

What the body computes before the check stands before the branch, for both sides; what it prints and stores
belongs to the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from metaphrase.core.build import operation
from metaphrase.core.ir import Atom, Let, Literal
from metaphrase.exceptions import ListFull, exception_class, made_exception, raised_with
from metaphrase.ops.reduce import reduce_all
from metaphrase.source import SourceError, Span, UnsupportedError

from ..calls.text import formatted
from ..operators.python_numbers import OURS
from ..staging.closing import all_lets
from ..staging.session import Session
from ..staging.signals import BranchRaised, Refusal, StagerSignal, TrialOver, forget_frames
from ..values.staged_values import Number

MOST = 12  # ways that one statement may be taken apart into
_WHAT = "an operation that can fail when the program runs stands in {}"
_TRY = "`try` with `except`"
_ASTRAY = "the body of a `try` takes another way each time it is translated"
_REMEDY = "test for the case with `if` instead of catching the exception"


Decisions = dict[int, tuple[bool, Span | None]]


class Attempt:
    """The body of one `try` under way. Its events are the checks and branches that it meets, in order;
    `decisions` says of some how they went, and where they stand; None: it can't be taken apart."""

    def __init__(self, decisions: Decisions | None, place: str = _TRY, remedy: str = _REMEDY):
        self.decisions, self.count, self.depth = decisions, 0, -1
        self.what, self.remedy = _WHAT.format(place), remedy
        self.classes: Callable[[], Any] = lambda: BaseException
        self.met: set[int] = set()

    def event(self) -> int:
        self.count += 1
        return self.count - 1

    def decision(self, event: int, span: Span | None) -> bool | None:
        """How an event went, if that is decided."""
        if not self.decisions or event not in self.decisions:
            return None
        known, place = self.decisions[event]
        if place != span:
            raise _refused(_ASTRAY, span)
        self.met.add(event)
        return known

    def catches(self, kind: type) -> bool:
        return issubclass(kind, self.classes())


def _refused(message: str, span: Span | None, remedy: str = _REMEDY) -> Refusal:
    """No error that the user's handlers might take."""
    return Refusal(UnsupportedError(message, span, code="try", remedy=remedy))


class Fork(StagerSignal):
    """The body of `attempt` goes on in two ways from its event number `event`, as `test` says."""

    def __init__(self, attempt: Attempt, event: int, test: Atom, span: Span | None):
        super().__init__("the body of a `try` goes on in two ways")
        self.attempt, self.event, self.test, self.span = attempt, event, test, span


class MustFork(TrialOver):
    """Inside a branch or loop something may fail that `attempt` takes: the branch has to be its event."""

    code = "try"

    def __init__(self, attempt: Attempt, here: Session):
        super().__init__(attempt.what, here.span(), attempt.remedy)
        self.attempt = attempt


def catcher(here: Session, kind: type) -> Attempt | None:
    """The innermost `try` whose handlers take exceptions of a class."""
    return next((a for a in reversed(here.attempts) if a.catches(kind)), None)


def in_reach(here: Session, error: BaseException) -> None:
    """An exception that leaves a region must not be taken outside of it: there it would be certain."""
    if isinstance(error, Exception) and not isinstance(error, UnsupportedError):
        attempt = catcher(here, type(error))
        if attempt is not None and attempt.depth < len(here.regions):
            raise MustFork(attempt, here) from error


def is_decided(here: Session, args: tuple, attributes: dict) -> bool:
    """Whether a check that is about to be recorded is known to pass. Raises what it raises where it is known
    to fail, and the signal that takes the statement apart where neither is known."""
    kind = exception_class(attributes["exception"])
    attempt = None if _is_ours(attributes) else catcher(here, kind)
    if attempt is None:
        return False
    if attempt.decisions is None:
        raise _refused(attempt.what, here.span(), attempt.remedy)
    if len(here.regions) != attempt.depth:
        raise MustFork(attempt, here)
    ok = args[0]
    known = bool(ok.value) if isinstance(ok, Literal) else None
    if known is None:
        event = attempt.event()
        known = attempt.decision(event, here.span())
        if known is None:
            raise Fork(attempt, event, ok, here.span())
    if not known:
        raise _staged(here, kind, attributes, args[1:])
    return True


def _staged(here: Session, kind: type, attributes: dict, values: tuple) -> BaseException:
    """What a check raises, of staged values."""
    if holds := attributes.get("holds"):
        numbers = {"bool": bool, "int": int, "float": float, "complex": complex}
        return raised_with(
            kind,
            holds,
            values,
            lambda name, atom: here.wrap(atom, numbers.get(name)),
            lambda template, shown: formatted(template, tuple(map(here.wrap, shown))),
        )
    message = attributes["message"]
    return made_exception(kind, formatted(message, tuple(map(here.wrap, values))) if values else message)


def _is_ours(attributes: Any) -> bool:
    """Whether a check is about translated code, where Python would go on: no handler is for it."""
    return OURS in attributes["message"] or exception_class(attributes["exception"]) is ListFull


def events(here: Session) -> list[tuple[Attempt, int]]:
    """A branch, as an event of each `try` whose body it stands in directly."""
    depth = len(here.regions)
    return [(a, a.event()) for a in here.attempts if a.depth == depth and a.decisions is not None]


@contextmanager
def under_way(here: Session, classes: Callable[[], Any] | None) -> Iterator[None]:
    """Around the body itself, without handlers."""
    mine, here.planned = here.planned or Attempt(None), None
    mine.depth, mine.classes = len(here.regions), classes or mine.classes
    lets = here.region.builder.lets
    start = len(lets)
    here.attempts.append(mine)
    try:
        yield
    except UnsupportedError as error:  # ours: Python would not raise it
        raise Refusal(error) from None
    except SourceError as error:
        if not mine.catches(type(error)):
            raise
        plain: Any = next(kind for kind in type(error).__mro__ if not issubclass(kind, SourceError))
        raise made_exception(plain, error.message) from None  # as Python's own, without our remedy
    finally:
        here.attempts.pop()
    for let in lets[start:]:
        inside = all_lets(inner for function in let.regions() for inner in function.lets)
        if any(_is_taken(inner, mine) for inner in inside):  # those of the body itself were asked before
            raise _refused(mine.what, let.span or here.span())


def _is_taken(let: Let, attempt: Attempt) -> bool:
    """Whether `attempt` takes what a Let may raise."""
    fails = let.primitive.effect == "failing" and not _is_ours(let.attributes)
    return fails and attempt.catches(exception_class(let.attributes["exception"]))


def attempted(here: Session, decisions: Decisions, body: Callable, get: Callable, set_: Callable, names: tuple) -> None:
    """The whole statement, with what is decided of its body."""
    from .branches import branch

    entry, mark, start = tuple(get()), here.journal.mark(), len(here.region.builder.lets)
    born = len(here.region.fresh)
    before = here.facts, here.truths
    mine = here.planned = Attempt(decisions)
    try:
        body()
        if mine.met != set(decisions):
            raise _refused(_ASTRAY, here.span())
        for thing in islice(here.region.fresh.values(), born, None):
            if isinstance(thing, BaseException):  # kept as all that user code makes, but not its frames
                forget_frames(thing)
        return
    except Fork as fork:
        if fork.attempt is not mine:
            raise
        found = fork
    except MustFork as must:
        if must.attempt is not mine:
            raise
        raise _refused(mine.what, must.span) from None
    here.journal.undo(mark)
    set_(entry)
    again = _only_values(here, start)
    if len(decisions) == MOST:
        many = f"more than {MOST} operations that can fail stand in one `try`"
        raise _refused(many, here.span(), "catch less in one statement")
    depth = len(here.regions)
    facts, truths = before if again else (here.facts, before[1])

    def side(known: bool) -> Callable[[], None]:
        def run() -> None:
            learned = here.facts, here.truths
            here.facts, here.truths = facts, truths  # or the body would meet fewer events than before
            try:
                attempted(here, {**decisions, found.event: (known, found.span)}, body, get, set_, names)
            except Exception as error:
                if len(here.regions) == depth or isinstance(error, UnsupportedError):
                    raise
                raise BranchRaised(error, here.span()) from None
            finally:
                here.facts, here.truths = learned

        return run

    done = here.done
    here.done = {**done, **_computed(here.region.builder.lets[start:])}
    test = found.test
    if test.type.dims:
        test = here.emit(reduce_all, test, axes=tuple(range(len(test.type.dims))))
    try:
        branch(Number(here, test, bool), side(True), side(False), get, set_, names)
    finally:
        here.done = done


def _computed(lets: list[Let]) -> dict[Any, Any]:
    """The operations of the body before the fork: its sides find them done."""
    keyed = ((operation(let.primitive, let.args, let.attributes), let) for let in lets)
    return {key: let.outs for key, let in keyed if key is not None}


def _only_values(here: Session, start: int) -> bool:
    """Of what was staged before the fork the values stay; what it prints is printed in the branch, and from
    there on what may fail fails there. Whether something is checked again."""
    lets, printed, again = here.region.builder.lets, False, False
    kept = []
    for let in lets[start:]:
        here.region.symbols |= let.own_symbols()
        if let.primitive.effect is None and ("ordered" in let.effects or printed and "failing" in let.effects):
            raise _refused(
                "what stands in a `try` prints in a branch or loop before an operation that can fail",
                let.span or here.span(),
                "print after the `try` statement",
            )
        again = again or printed and let.primitive.effect == "failing"
        printed = printed or let.primitive.effect == "ordered"
        if let.primitive.effect != "ordered" and not (printed and let.primitive.effect == "failing"):
            kept.append(let)
    lets[start:] = kept
    return again
