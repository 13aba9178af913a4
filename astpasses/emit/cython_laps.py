"""A program whose parts are timed, as Cython: at each `Lap` a clock is read.

In: a Program with laps (schedule/laps.py). Out: the text of a module as `emit` gives it, whose library also exports
`mp_lap_nanoseconds`, with a place for each part. Example:

    mp_lap(0)
    for i in range(n):
        y[i] = f64_sin(x[i])
    mp_lap(1)
"""

from __future__ import annotations

from metaphrase.astpasses.schedule.nest import Lap, Program, walk

from .cython_function import FunctionWriter
from .cython_text import EmittedText, emit

SYMBOL = "mp_lap_nanoseconds"
CLOCK = """\
extern int clock_gettime(int clock, void *now);
__attribute__((visibility("default"))) long long mp_lap_nanoseconds[{count}];
static long long mp_lap_begun;
static int mp_lap_part = {last};
static void mp_lap(long long part) {{
    struct {{ long seconds, nanoseconds; }} now;
    clock_gettime(1 /* monotonic */, &now);
    long long time = 1000000000LL*now.seconds + now.nanoseconds;
    mp_lap_nanoseconds[mp_lap_part] += time - mp_lap_begun;
    mp_lap_part = (int)part;
    mp_lap_begun = time;
}}
"""


class _TimedWriter(FunctionWriter):
    def stmt_Lap(self, depth: int, stmt: Lap) -> None:
        last = sum(isinstance(one, Lap) for one in walk(self.program.entry.body)) - 1  # what is between two calls
        self.routines["mp_lap"] = CLOCK.format(count=last + 1, last=last), "void mp_lap(i64 part)"
        self.line(depth, f"mp_lap({stmt.number})")


def emit_timed(program: Program) -> EmittedText:
    """See the head of this file."""
    return emit(program, _TimedWriter)


__all__ = ["SYMBOL", "emit_timed"]
