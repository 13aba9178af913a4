"""What a stage needs of the interpreter: room for deep calls, and a collector that looks at new objects only.

In: a stage that is about to begin. Out: until it is over, this thread may be deeper in calls: staging a call
of a user's function takes some sixteen frames, running it one. No other thread can go deeper for that, and
`sys.getrecursionlimit()` says what it said. What was there before the stage is left out of collections of
garbage: a program makes many objects, and a collection that goes through all of a process may take longer
than the stage.

    with deep_calls():
        ...
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Protocol

from .late import freeze, unfreeze

_FRAMES = 16  # of a call that is staged
_MOST = 20_000  # frames
_BYTES = 256  # of the C stack that a frame may take: up to 122 were seen
_BETWEEN_COLLECTIONS = 250  # stages
_RESERVE = 2**17  # bytes of it for what else runs there


class Stack(Protocol):
    """What the runtime knows of this thread's calls (runtime/stack.pxi)."""

    def frames_at_most(self, most: int) -> None: ...
    def frames_deep(self) -> int: ...
    def stack_left(self) -> int: ...


class _Mine(threading.local):
    """How many stages this thread is in."""

    stages = 0


_mine = _Mine()
_stack: Stack | None = None
_staging: set[int] = set()  # the threads that are in a stage
_stages_ended = 0


def _collect_at_times() -> None:
    """What stages leave behind becomes old without being counted: Python would not look for garbage among it."""
    global _stages_ended
    _stages_ended += 1
    if _stages_ended % _BETWEEN_COLLECTIONS == 0 and gc.isenabled():
        gc.collect()


def collect_all() -> None:
    """Collect garbage that is older than the stage, too."""
    unfreeze()
    gc.collect()
    if _staging:
        freeze()


def use_stack(stack: Stack) -> None:
    """Called by who knows the runtime."""
    global _stack
    _stack = stack


@contextlib.contextmanager
def deep_calls() -> Iterator[None]:
    """Around a stage: this thread may be as deep as its stack has room for, or sixteen times the limit, and
    collections look at new objects only."""
    if _mine.stages or _stack is None:
        yield
        return
    limit = sys.getrecursionlimit()
    room = _stack.frames_deep() + (_stack.stack_left() - _RESERVE) // _BYTES
    _stack.frames_at_most(max(limit, min(_FRAMES * limit, _MOST, room)))
    _mine.stages = 1
    _staging.add(threading.get_ident())
    freeze()
    try:
        yield
    finally:
        _mine.stages = 0
        _staging.discard(threading.get_ident())
        if not _staging:
            unfreeze()
            _collect_at_times()
        _stack.frames_at_most(sys.getrecursionlimit())


def signature_of(function: Callable) -> inspect.Signature:
    """`inspect.signature`, which asks an object with `__call__` whether it is equal to classes."""
    call = getattr(type(function), "__call__", None)  # noqa: B004
    written = all(isinstance(method, types.FunctionType) for method in (call, type(function).__eq__))
    return inspect.signature(types.MethodType(call, function) if call and written else function)


__all__ = ["collect_all", "deep_calls", "signature_of", "use_stack"]
