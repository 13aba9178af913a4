"""Tracebacks that show the user's frames only.

In: an exception on its way out of this package. Out: the same exception; frames of this package are left out
of its traceback, unless the fault is in this package. Example: `with user_frames(): ...` around what a public
function does.
"""

from __future__ import annotations

import os
import types

from ..astpasses.frontend import is_ours, is_users
from ..late import module
from ..source import SourceError

check = module("metaphrase.core.check")


class user_frames:
    """METAPHRASE_FULL_TRACEBACK=1 keeps every frame. (`contextlib` would put the old traceback back.)"""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and os.environ.get("METAPHRASE_FULL_TRACEBACK", "0") in ("", "0"):
            shorten(error)


def is_users_error(error: BaseException) -> bool:
    """Whether an exception is about the user's program: a SourceError, or one that their code raises."""
    return not isinstance(error, check.CheckError) and (isinstance(error, SourceError) or is_users(error))


def shorten(error: BaseException) -> None:
    """Leave out this package's frames, where the error is the user's: a SourceError, or one raised in their
    code. The frames that called this package join the traceback later, as the error goes up."""
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    theirs = [t for t in frames if not is_ours(t.tb_frame)]
    if not is_users_error(error):
        return
    chain: types.TracebackType | None = None
    for trace in reversed(theirs):
        chain = types.TracebackType(chain, trace.tb_frame, trace.tb_lasti, trace.tb_lineno)
    error.__traceback__ = chain
    if isinstance(error, SourceError):
        error.__suppress_context__ = True
