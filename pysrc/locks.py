"""Locks that a forked child finds free: it has none of the threads of its parent that could release them.

In: a lock that another thread holds while this one forks. Out: in the child, a lock that nobody holds. What it guards
must bear that somebody was in the midst of it. Example:

    _lock = lock()
    with _lock:
        table.setdefault(key, make())
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

_locks: weakref.WeakSet[Any] = weakref.WeakSet()


def lock() -> Any:
    """One that its thread may take again."""
    one = threading.RLock()
    _locks.add(one)
    return one


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    def cached_property(function: Any) -> Any:
        """Python's, which has a lock before Python 3.12: one for all objects of a class."""
        one = functools.cached_property(function)
        if hasattr(one, "lock"):
            _locks.add(one.lock)
        return one


def _release() -> None:
    for one in list(_locks):
        if not one._is_owned():  # the thread that forks goes on in the child
            one._at_fork_reinit()


os.register_at_fork(after_in_child=_release)

__all__ = ["cached_property", "lock"]
