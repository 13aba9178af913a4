"""How long the parts of a function take, by a clock that is read between them.

In: an explained function and the arguments of a call. Out: its facts with times: `measured` for the call and each part,
and for each line its share. Example:

    measure(of, call)
    of.told["measured"]["parts"][0]       # {"part": "for i in range(n)", "milliseconds": 0.21, "share": 61.2, ...}

What is timed is the program that costs are counted in, whose loops are whole; threads share the loops of the call
itself, which is timed beside it. The best run is taken. A part that several lines have made is one loop, of which no
clock tells whose time it is: it is divided by their counted costs. A function that prints, or calls Python, runs once.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..api.arguments import Call
from ..api.compile import Compiled, FlatRunner, compile_program
from ..astpasses.emit.cython_laps import SYMBOL, emit_timed
from ..astpasses.schedule.costs import ONE_THREAD, Costs, Place
from ..astpasses.schedule.laps import Part, with_laps
from ..config import config
from ..pipeline import loops
from ..runtime import threads
from ..runtime.cython_build import build
from .lines import weighed

if TYPE_CHECKING:
    from .facts import Explained


class NotTimed(TypeError):
    """There is no time to be told: of types, of other arguments than those of the program, of calls on a GPU."""


SECONDS, FEWEST, MOST = 0.3, 3, 1000  # of runs, how long and how many
LONG = 4000  # arithmetic operations of a round that is long beside a look at the clock


def sizes_of(of: Explained, call: Call) -> dict[str, int]:
    """What the sizes of the program are in a call."""
    params = of.function.params[len(of.program.captures) :]
    sizes: dict[str, int] = {}
    for param, dims in zip(params, call.dims):
        for dim, size in zip(param.type.dims, dims):
            if getattr(dim, "is_sym", False) and isinstance(size, int):
                sizes[str(dim)] = size
    return sizes


def measure(of: Explained, call: Call) -> None:
    """See the head of this file."""
    if call.device is not None or any(write.kind == "capture" for write in of.program.writes):
        what = "it runs on a GPU" if call.device is not None else "it stores into an array that it is not given"
        raise NotTimed(f"{of.told['name']} can't be timed: {what}")
    parts: list[Part] = []
    assumed = of.told["assumed"]

    def timed(function: Any, name: str, writes: Any) -> Any:
        def is_long(costs: Mapping[Place, Costs]) -> bool:
            return sum(weighed(one, assumed) for one in costs.values()) >= LONG

        program, found = with_laps(loops(function, writes, ONE_THREAD), is_long)
        parts.extend(found)
        emitted = emit_timed(program)
        library = build(emitted.text, name=f"timed_{name}", contract=config.contract, fastmath=config.fastmath)
        return library, emitted

    compiled = compile_program(of.program, of.call.specs, of.told["name"], make=timed)
    assert compiled.library.handle is not None
    clock = (ctypes.c_longlong * (len(parts) + 1)).in_dll(compiled.library.handle, SYMBOL)
    runs = _runs(compiled, call, lambda: [*clock], lambda: ctypes.memset(clock, 0, ctypes.sizeof(clock)))
    best = min(runs, key=lambda run: sum(run[1][:-1]))[1][:-1]
    as_called = runs
    if not _has_effects(compiled):
        as_called = _runs(compile_program(of.program, of.call.specs, of.told["name"]), call)
    whole = sum(best) or 1
    rows = [_row(part, spent / whole, spent / 1e6, assumed) for part, spent in zip(parts, best)]
    counted = sum(row["counted"] for row in rows) or 1.0
    for row in rows:
        row["counted"] *= 100 / counted
    of.told["measured"] = {
        "milliseconds": whole / 1e6,
        "as called": 1e3 * min(seconds for seconds, _ in as_called),
        "threads": threads.count(),
        "runs": len(runs),
        "parts": rows,
    }
    _lines(of, rows)


def _runs(
    compiled: Compiled, call: Call, read: Callable[[], list[int]] = list, begin: Callable[[], Any] = int
) -> list[tuple[float, list[int]]]:
    """(seconds, what a clock says) of each run. The first one, which finds no memory in its place, is left out. What
    is stored into is a copy."""
    runner, made = FlatRunner(compiled), list[tuple[float, list[int]]]()
    if not runner.serves(call):
        given = ", ".join(spec.text() for spec in call.specs)
        raise NotTimed(f"{compiled.name} was made for other sizes than those of ({given})")
    fewest = 1 if _has_effects(compiled) else FEWEST
    until = time.perf_counter() + SECONDS
    while len(made) < fewest or fewest > 1 and len(made) < MOST and time.perf_counter() < until:
        leaves = compiled.owned_leaves(call)
        begin()
        start = time.perf_counter()
        runner.dispatcher.run(runner.entry, leaves)
        made.append((time.perf_counter() - start, read()))
    return made[1:] or made


def _has_effects(compiled: Compiled) -> bool:
    return any(site.kind != "check" for site in compiled.sites)


def _row(part: Part, share: float, milliseconds: float, assumed: Mapping[str, int]) -> dict[str, Any]:
    lines: dict[tuple[str, int], float] = {}
    total = 0.0
    for place, costs in part.costs.items():
        weight = weighed(costs, assumed)
        total += weight
        if place is not None:
            lines[place[:2]] = lines.get(place[:2], 0.0) + weight
    whole = sum(lines.values())
    return {
        "part": part.text,
        "milliseconds": milliseconds,
        "share": 100 * share,
        "counted": total,
        "lines": [[*line, 100 * (lines[line] / whole if whole else 1 / len(lines))] for line in sorted(lines)],
    }


def _lines(of: Explained, rows: list[dict[str, Any]]) -> None:
    """The measured share of each line, and whether it is that of parts which are its own."""
    for line in of.told["lines"]:
        own = [(row, part[2]) for row in rows for part in row["lines"] if part[:2] == [line["file"], line["line"]]]
        line["measured"] = sum(row["share"] * percent / 100 for row, percent in own)
        line["divided"] = any(len(row["lines"]) > 1 for row, _ in own)


__all__ = ["NotTimed", "measure", "sizes_of"]
