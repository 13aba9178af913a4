"""Room for recursion: staging a call of a user's function takes some sixteen frames, running it takes one.

In: a staging that is about to begin. Out: the interpreter's recursion limit raised until it is over, so that
functions that call themselves as deep as Python lets them are staged. Example:

    with room_for_recursion("depth"):      # depth(tree) of a tree of 500 levels
        ...
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

_FRAMES = 16  # of a call that is staged
_MOST = 20_000  # frames: what a thread's stack of 8 MiB surely holds

_lock = threading.Lock()
_inside = 0  # stagings under way, of all threads: the limit is one for the process
_usual = 0
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


@contextlib.contextmanager
def room_for_recursion(name: str) -> Iterator[None]:
    """Python's RecursionError of a function without end says which function it is."""
    global _inside, _usual
    with _lock:
        if _inside == 0:
            _usual = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_usual, min(_FRAMES * _usual, _MOST)))
        _inside += 1
    try:
        yield
    except RecursionError:
        raise RecursionError(
            f"maximum recursion depth exceeded while translating '{name}': a function calls itself too deep, "
            "or without end; write the recursion as a loop"
        ) from None
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0:
                with contextlib.suppress(RecursionError):  # it stands deeper than that: as it was
                    sys.setrecursionlimit(_usual)


__all__ = ["room_for_recursion"]
