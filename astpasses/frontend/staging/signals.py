"""How the parts of the stager speak to each other. None of these is an `Exception`: user code can't swallow
them.

In: what was met. Out: who catches it: a trial (`TrialOver`), the staging loop (`Restart`), the caller
(`SourceError`).
"""

from __future__ import annotations

from typing import Any

from metaphrase.source import Span


def forget_frames(error: BaseException) -> None:
    """An exception that is kept must not keep what the frames it came through hold."""
    found: list[BaseException] = [error]
    for one in found:
        one.__traceback__ = None
        for other in (one.__cause__, one.__context__):
            if other is not None and all(other is not known for known in found):
                found.append(other)


class StagerSignal(BaseException):
    """Control flow of the stager itself. `otherwise`: a place that can do without the value that was asked
    for, where it can't be had: it reads an item of a list. What comes of the signal is told."""

    otherwise: tuple | None = None

    def handed_on(self, error: Any) -> Any:
        error.otherwise = self.otherwise
        return error


class NeedConcrete(StagerSignal):
    """Python asked for the value of something that is only known when the program runs. `roots`: where it
    comes from. `refusal`: the error where it can't be had, or is above `most`."""

    def __init__(
        self,
        roots: set[tuple],
        why: str,
        span: Span | None,
        remedy: str = "",
        *,
        refusal: BaseException | None = None,
        most: int | None = None,
    ):
        super().__init__(why)
        self.roots, self.why, self.span, self.remedy = roots, why, span, remedy
        self.refusal, self.most = refusal, most


class TrialOver(StagerSignal):
    """A trial can't go on; what it did is undone. `reason` goes into the log, or into the error of last resort."""

    code = "loop"
    sizes: frozenset[tuple] = frozenset()  # where the sizes come from that do not fit

    def __init__(self, reason: str, span: Span | None = None, remedy: str = "", notes: tuple = ()):
        super().__init__(reason)
        self.reason, self.span, self.remedy, self.notes = reason, span, remedy, notes

    def without_frames(self) -> TrialOver:
        """Itself, to be kept: its frames hold what the trial made, and who else holds an array is asked."""
        forget_frames(self)
        return self


class PeelFirst(TrialOver):
    """The first iteration may be unlike the others: it changes the type of a variable, or touches an array
    that others can see. It is run apart."""


class ListRead(TrialOver):
    """The loop reads a list that it changes: unrolled, its items are known."""


class Restart(StagerSignal):
    """Staging begins again with one more decision made (a pinned argument, a loop that is not rolled)."""


class Refusal(StagerSignal):
    """Carries a SourceError out of user code that might catch exceptions."""

    def __init__(self, error: BaseException):
        super().__init__(str(error))
        self.error = error


class BranchRaised(StagerSignal):
    """User code raised inside a staged region: that path ends in an error at run time. `told`: the program
    raises already, on every path that leads here."""

    def __init__(self, exception: BaseException, span: Span | None, told: bool = False):
        super().__init__(repr(exception))
        self.exception, self.span, self.told = exception, span, told


class CallsBack(StagerSignal):
    """A jitted function calls one that called it, which an outer session stages: it is a part of that one."""

    def __init__(self, code: Any):
        super().__init__(code.co_name)
        self.code = code
