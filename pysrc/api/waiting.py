"""A word to a person who waits for a program to be made.

In: a function's name. Out: after two seconds a message of the log (level INFO), and on a terminal a line that goes
when the program is there. Example:

    with waited_for("hessian"):
        ...                                     # metaphrase: translating and compiling hessian ...
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from ..late import log

PATIENCE = 2.0  # seconds in which nothing is said
_lock = threading.Lock()  # held while somebody is waited for: of several, who waits first is told


@contextlib.contextmanager
def waited_for(name: str) -> Iterator[None]:
    """Around what makes the program of a function."""
    if not _lock.acquire(blocking=False):
        yield
        return
    shown: list[str] = []
    try:
        timer = threading.Timer(PATIENCE, _say, (name, shown))
        timer.daemon = True
        try:
            with contextlib.suppress(RuntimeError):  # no thread can be started
                timer.start()
            yield
        finally:
            timer.cancel()
            if timer.ident is not None:
                timer.join()
            if shown:
                _write("\r\x1b[K")
    finally:  # whatever Ctrl-C ends
        _lock.release()


def _say(name: str, shown: list[str]) -> None:
    text = f"translating and compiling {name} ..."
    log.info(text)
    if _write(f"metaphrase: {text}"):
        shown.append(text)


def _write(text: str) -> bool:
    """Write to a terminal, if stderr is one."""
    with contextlib.suppress(Exception):  # whatever stands in for stderr
        if sys.stderr.isatty():
            sys.stderr.write(text)
            sys.stderr.flush()
            return True
    return False


__all__ = ["waited_for"]
