"""How many threads a compiled program may use.

In: METAPHRASE_NUM_THREADS, else OMP_NUM_THREADS, else the CPUs this process may run on. Out: the number in every
call's context. Example:

    threads.use(4)                # from now on
    threads.count()               # 4

No thread is started here or at import, but by the first loop that is shared (pool.h). Its parts follow from sizes
alone, so that a result does not depend on this number.
"""

from __future__ import annotations

import os

from . import dispatch


def available() -> int:
    """CPUs that this process may run on."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def requested() -> int:
    """METAPHRASE_NUM_THREADS, else OMP_NUM_THREADS (of a list its first number), else all available CPUs, which 0 asks
    for, too. ValueError when the first of these is no number; what OMP_NUM_THREADS means is OpenMP's affair."""
    text = os.environ.get("METAPHRASE_NUM_THREADS", "")
    if not text:
        text = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        text = text if text.isdecimal() else "0"
    if not text.isdecimal():
        raise ValueError(f"METAPHRASE_NUM_THREADS is {text!r}; it must be an integer (0: all processors)")
    return int(text) or available()


def use(count: int) -> int:
    """Let programs use `count` threads; the number before."""
    if count < 1:
        raise ValueError(f"the number of threads must be positive, not {count}")
    before = dispatch.get_threads()
    dispatch.set_threads(count)
    return before


def count() -> int:
    """The number of threads that programs may use now."""
    return dispatch.get_threads()


use(requested())
