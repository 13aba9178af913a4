"""The stagings under way in this thread, innermost last, and what their callers promise of sizes.

In: sessions that begin and end; `sizes_at_least({"n": 2})` around a staging whose program is only run for
such sizes; `numbers_change(keys)` around one whose captured numbers have changed. Out: `current_session()`,
`least_size("n")`, `changing_numbers()`. It stands apart from the session's own file so that
code outside of any staging can ask without importing the front end.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Hashable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import Session

_threads = threading.local()


def sessions() -> list[Session]:
    """The stack of this thread."""
    if not hasattr(_threads, "sessions"):
        _threads.sessions = []
    return _threads.sessions


def current_session() -> Session | None:
    """The session whose staging is under way in this thread."""
    stack = getattr(_threads, "sessions", None)
    return stack[-1] if stack else None


@contextlib.contextmanager
def sizes_at_least(least: Mapping[str, int]) -> Iterator[None]:
    """Stage for sizes that the symbols of the arguments' types stand for; of others nothing is promised."""
    before = getattr(_threads, "least", {})
    _threads.least = least
    try:
        yield
    finally:
        _threads.least = before


@contextlib.contextmanager
def numbers_change(keys: Collection[Hashable]) -> Iterator[None]:
    """Stage with the captured numbers at the sources of these keys as hidden arguments: they have changed."""
    before = changing_numbers()
    _threads.changing = frozenset(keys)
    try:
        yield
    finally:
        _threads.changing = before


def changing_numbers() -> frozenset[Hashable]:
    """Keys of the sources whose numbers are known to change from call to call."""
    return getattr(_threads, "changing", frozenset())


def least_size(name: str) -> int | None:
    """The least size that the symbol of an argument's type stands for; None if nothing was promised."""
    return getattr(_threads, "least", {}).get(name)
