"""The interpreter's own settings while something is translated: how deep calls may go, and what is garbage.

In: a stage that is about to begin. Out: until it is over

* a higher recursion limit: staging a call of a user's function takes some sixteen frames, running it one;
* the objects of before out of the garbage collector's sight, which else looks at everything alive again and
  again while many objects are made. What a stage collects (to tell who holds an array) costs what it made.

    with undisturbed():
        ...
"""
from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from collections.abc import Iterator

_FRAMES = 16          # of a call that is staged
_MOST = 20_000        # frames: what a thread's stack of 8 MiB surely holds
_SELDOM = 100_000     # objects made before the collector looks at them

_lock = threading.Lock()
_inside = 0           # stages under way, of all threads: the settings are the process's
_limit = 0
_thresholds = (0, 0, 0)
_frozen = False
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _limit, _thresholds, _frozen
    with _lock:
        if _inside == 0:
            _limit, _thresholds = sys.getrecursionlimit(), gc.get_threshold()
            sys.setrecursionlimit(max(_limit, min(_FRAMES * _limit, _MOST)))
            if _thresholds[0]:                            # 0: the user collects, or nobody does
                gc.set_threshold(max(_SELDOM, _thresholds[0]), *_thresholds[1:])
            _frozen = gc.get_freeze_count() == 0          # else the user froze what there is, and knows why
            if _frozen:
                gc.freeze()
        _inside += 1


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            if _frozen:
                gc.unfreeze()
            gc.set_threshold(*_thresholds)
            with contextlib.suppress(RecursionError):     # it stands deeper than that: as it was
                sys.setrecursionlimit(_limit)


__all__ = ["undisturbed"]
