"""The interpreter's own settings while something is translated: how deep calls may go, and what is garbage.

In: a stage that is about to begin. Out: until it is over

* a higher recursion limit: staging a call of a user's function takes some sixteen frames, running it one;
* a garbage collector that looks seldom: it else goes through everything alive again and again while many
  objects are made. What a stage makes stays young meanwhile, so that `collect_young` finds its garbage at its
  own cost, not at that of all that the process holds.

    with undisturbed():
        ...
"""
from __future__ import annotations

import contextlib
import gc
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator

_FRAMES = 16          # of a call that is staged
_MOST = 20_000        # frames: what a thread's stack of 8 MiB surely holds
_SELDOM = 100_000     # objects made before the collector looks at them


def signature_of(function: Callable) -> inspect.Signature:
    """`inspect.signature`, which asks an object with `__call__` whether it is equal to classes."""
    call = getattr(type(function), "__call__", None)  # noqa: B004
    written = all(isinstance(method, types.FunctionType) for method in (call, type(function).__eq__))
    return inspect.signature(types.MethodType(call, function) if call and written else function)


class _Settings(threading.local):
    """How many stages this thread is in."""

    depth = 0


_mine = _Settings()
_lock = threading.Lock()
_inside = 0           # threads with stages under way: the settings are the process's
_limit = 0
_thresholds = (0, 0, 0)


def _after_fork() -> None:
    """In a forked child only this thread goes on."""
    global _lock, _inside
    _lock = threading.Lock()
    if _inside and not _mine.depth:
        _restore()
    _inside = 1 if _mine.depth else 0


os.register_at_fork(after_in_child=_after_fork)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    _mine.depth += 1
    if _mine.depth == 1:
        _enter()
    try:
        yield
    finally:
        _mine.depth -= 1
        if not _mine.depth:
            _leave()


def collect_young() -> None:
    """Collect garbage that refers to itself, of what was made since the stage began."""
    gc.collect(1)


def _enter() -> None:
    global _inside, _limit, _thresholds
    with _lock:
        if not _inside:
            _limit, _thresholds = sys.getrecursionlimit(), gc.get_threshold()
            sys.setrecursionlimit(max(_limit, min(_FRAMES * _limit, _MOST)))
            if _thresholds[0]:                            # 0: the user collects, or nobody does
                gc.set_threshold(max(_SELDOM, _thresholds[0]), *_thresholds[1:])
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if not _inside:
            _restore()


def _restore() -> None:
    gc.set_threshold(*_thresholds)
    with contextlib.suppress(RecursionError):             # it stands deeper than that: as it was
        sys.setrecursionlimit(_limit)


__all__ = ["undisturbed", "collect_young"]
