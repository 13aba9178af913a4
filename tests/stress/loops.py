"""The corpus made long: each function's native code runs again and again until Ctrl-C ends it.

In: names of the corpus's cases. Out: for each the seconds from the signal to KeyboardInterrupt. Example:

    PYTHONPATH=tests python -P -m stress.loops whiles.gcd fors.triangle

What the program stores into its arguments is stored many times; the results are not looked at, but the same
function compiled as it is must give what Python gives, after its long form was left in the middle.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable

import corpus
import numpy as np

import metaphrase as mp
from metaphrase import pipeline
from metaphrase.runtime.cython_build import Library

AGAIN = """

cdef extern from "abi.h" nogil:
    ctypedef struct mp_again "mp_ctx":
        char* (*mark)(mp_again* c) noexcept nogil
        void (*release)(mp_again* c, char* mark) noexcept nogil
    int mp_again_poll "mp_poll"(mp_again* c, long long work)

cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:
    cdef char* before = (<mp_again*>c).mark(<mp_again*>c)
    cdef int status
    while True:
        if mp_again_poll(<mp_again*>c, 100):
            return -1
        status = once(c, buffers, sizes)
        if status:
            return status
        (<mp_again*>c).release(<mp_again*>c, before)
"""


def long_form(build: Callable) -> Callable:
    """`pipeline.build` for programs that do not end."""

    def build_long(text: str, **more) -> Library:
        return build(text.replace("cdef int entry(", "cdef int once(") + AGAIN, **more)

    return build_long


def interrupt(function: Callable, args: tuple, delay: float) -> float | None:
    """Seconds until a call that would not end raises KeyboardInterrupt; None when it ends by itself, since it
    raises or has no native code."""
    sent = [0.0]

    def send() -> None:
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    jitted = mp.jit(function)
    given = corpus.fresh(args)
    timer = threading.Timer(delay, send)
    try:
        jitted.lower(*given).compile()
        timer.start()
        jitted(*given)
        return None
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    except Exception:
        return None
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()


def main(names: list[str]) -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # a program of the corpus may print
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cases = {name: (function, args) for name, function, args in corpus.cases()}
    plain, draw = pipeline.build, random.Random(0)
    for name in names:
        function, args = cases[name]
        pipeline.build = long_form(plain)
        seconds = []
        with np.errstate(all="ignore"):
            while len(seconds) < 3 and (not seconds or min(seconds) > 0.05):  # others may hold the processor
                found = interrupt(function, args, draw.uniform(0.02, 0.06))
                if found is None:
                    break
                seconds.append(found)
            pipeline.build = plain
            got = corpus.outcome(mp.jit(function), args)
            is_right = corpus.alike(got, corpus.outcome(function, args), 1e-9)
        print(json.dumps([name, min(seconds) if seconds else None, is_right]), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
