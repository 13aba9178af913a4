"""What became of each line of the user's: what it costs and why, its loops, and whether they are vectorised.

In: a scheduled Program, and the C compiler's report if there is one. Out: lists of dicts, of plain data. Example:

    costs_of_lines(program)[0][0]
    # {"file": "orbit.py", "line": 4, "text": "return np.sin(x)", "share": 100.0,
    #  "functions": "n", "read": "8*n", ..., "numbers": {"functions": 1000, ...}, "causes": {...}, "roles": {...}}

Costs are counted as `Lowered.cost_analysis` counts them, in the loops after fusion. Which line costs how much of the
whole is a number where sizes are numbers: sizes that are not known are taken for `SIZE`, rounds for what the scheduler
takes them for.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping
from typing import Any

from ..astpasses.schedule.costs import ONE_THREAD, Costs, Place, costs_by_place
from ..astpasses.schedule.explain import Loop, loops_of
from ..astpasses.schedule.nest import Program, While, walk
from ..core.dims import DimLike, Sym, substitute, symbols
from ..core.scalars import CALLED
from ..runtime.vectors import LoopReport, VectorReport

SIZE = 1000
# What a cost counts for beside one arithmetic operation: an element of 8 bytes as much, a function value as the
# scheduler takes it, a call of Python a microsecond.
WEIGHTS = {"arithmetic": 1.0, "functions": float(CALLED), "memory": 1 / 8, "libraries": 1 / 8, "Python": 1000.0}
UNITS = {  # one, and several
    "operations": ("arithmetic operation", "arithmetic operations"),
    "functions": ("function value", "function values"),
    "library": ("operation in libraries", "operations in libraries"),
    "read": ("byte of arrays read", "bytes of arrays read"),
    "written": ("byte of arrays written", "bytes of arrays written"),
    "temporaries": ("byte of temporary arrays", "bytes of temporary arrays"),
    "callbacks": ("call of Python", "calls of Python"),
}
KINDS = {
    "par": "independent iterations",
    "red": "iterations that are combined, in any order",
    "seq": "one iteration after the other",
    "while": "until a condition fails",
}


def costs_of_lines(
    program: Program, sizes: Mapping[str, int] | None = None
) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """A dict a line, in the order of the lines, that of no line last; and what was taken for each size and number of
    rounds. `program` is one for one thread. `sizes`: those that are known."""
    names = _rounds(program)
    of_place = {place: part.with_sizes(names) for place, part in costs_by_place(program).items()}
    assumed = {name: SIZE for name in program.sizes} | dict(sizes or {})
    for part in of_place.values():
        for name in sorted(set().union(*(symbols(v) for v in _quantities(part).values()))):
            assumed.setdefault(name, ONE_THREAD.unknown)
    of_line: dict[tuple[str, int] | None, dict[str, Costs]] = {}
    for place, part in of_place.items():
        line, role = (None, "") if place is None else (place[:2], place[2])
        of_line.setdefault(line, {})[role] = part
    rows = [_row(line, parts, assumed) for line, parts in sorted(of_line.items(), key=lambda x: (x[0] is None, x[0]))]
    whole = sum(row["weight"] for row in rows) or 1.0
    for row in rows:
        row["share"] = 100 * row.pop("weight") / whole
    used = {name for row in rows for name in row.pop("symbols")}
    return rows, {name: value for name, value in assumed.items() if name in used}


def _rounds(program: Program) -> dict[str, DimLike]:
    """The counter of each `while` by the name of its line: `rounds_19`."""
    names: dict[str, DimLike] = {}
    for fn in (*program.fns, program.entry):
        for stmt in walk(fn.body):
            if isinstance(stmt, While) and stmt.span is not None:
                names[stmt.counter] = Sym(f"rounds_{stmt.span.line}")
    return names


def _quantities(part: Costs) -> dict[str, DimLike]:
    """By the names of `UNITS`."""
    own = part.flops - part.library
    return {
        "operations": own,
        "functions": part.transcendentals,
        "library": part.library,
        "read": part.read,
        "written": part.written,
        "temporaries": part.temporaries,
        "callbacks": part.callbacks,
    }


def _causes(numbers: Mapping[str, float]) -> dict[str, float]:
    amounts = {
        "arithmetic": numbers["operations"],
        "functions": numbers["functions"],
        "memory": numbers["read"] + numbers["written"],
        "libraries": numbers["library"],
        "Python": numbers["callbacks"],
    }
    return {cause: WEIGHTS[cause] * max(amount, 0) for cause, amount in amounts.items()}


def weighed(costs: Costs, assumed: Mapping[str, int]) -> float:
    """What a cost counts for, in arithmetic operations."""
    return sum(_causes({name: _number(dim, assumed) for name, dim in _quantities(costs).items()}).values())


def _row(line: tuple[str, int] | None, parts: Mapping[str, Costs], assumed: Mapping[str, int]) -> dict[str, Any]:
    total = _quantities(sum(parts.values(), start=Costs()))
    numbers = {name: _number(dim, assumed) for name, dim in total.items()}
    causes = _causes(numbers)
    weight = sum(causes.values())
    roles = {role: weighed(part, assumed) for role, part in parts.items()}
    file, number = line or ("", 0)
    return {
        "file": file,
        "line": number,
        "text": linecache.getline(file, number).strip() if line else "",
        **{name: f"{dim:,}" if isinstance(dim, int) else str(dim) for name, dim in total.items()},
        "numbers": {name: int(value) for name, value in numbers.items()},
        "causes": {cause: 100 * value / weight for cause, value in causes.items() if value and weight},
        "roles": {role: 100 * value / weight for role, value in roles.items() if role and weight},
        "weight": weight,
        "symbols": sorted(set().union(*map(symbols, total.values()))),
    }


def _number(dim: DimLike, assumed: Mapping[str, int]) -> int:
    value = substitute(dim, {name: assumed.get(name, ONE_THREAD.unknown) for name in symbols(dim)})
    assert isinstance(value, int)
    return value


def quantities(row: Mapping[str, Any]) -> list[str]:
    """What a line costs, in words: what there is of `UNITS`."""
    return [f"{row[name]} {units[row[name] != '1']}" for name, units in UNITS.items() if row[name] != "0"]


def duration(milliseconds: float) -> str:
    """With three digits."""
    return f"{milliseconds:.3g} ms" if milliseconds >= 0.1 else f"{1e3 * milliseconds:.3g} µs"


def loops_in_words(program: Program, report: VectorReport | None) -> list[dict[str, Any]]:
    """A dict a loop of the program that is run: where it is from, what shares it, who divides it, its vectors."""
    loops = loops_of(program)
    number = {loop: k for k, loop in enumerate(loops)}
    words = []
    for loop in loops:
        words.append(
            {
                "function": loop.fn,
                "loop": loop.text,
                "kind": KINDS[loop.kind],
                "place": _line(loop.own),
                "lines": _lines(loop.does),
                "alone": _lines(loop.alone),
                "around": None if loop.around is None else number[loop.around],
                "threads": shared_parts(loop),
                "vectors": "" if report is None else _vectors(loop, report),
            }
        )
    return words


def shared_parts(loop: Loop) -> str:
    """What threads share of a loop; nothing if they do not."""
    return "" if loop.parts is None else f"{loop.parts.whole} iterations in parts of {loop.parts.length}"


def _line(place: Place) -> list[Any] | None:
    return None if place is None else [place[0], place[1]]


def _lines(found: Iterable[Place]) -> list[list[Any]]:
    """Files and lines, each once, whatever is computed of a line."""
    return [list(line) for line in dict.fromkeys(place[:2] for place in found if place is not None)]


def _vectors(loop: Loop, report: VectorReport) -> str:
    """Whether a loop is vectorised, or why it is not: what gcc says, and what the schedule knows."""
    if report.why:
        return f"not known whether it is vectorised: {report.why}"
    said = report.loops.get(loop.fn, [])
    if loop.number >= len(said):
        return "not known whether it is vectorised: gcc's loops are others than these"
    return in_words(said[loop.number], loop)


def in_words(said: LoopReport, loop: Loop) -> str:
    if said.vectors:
        return f"vectorised, {said.vectors}-byte vectors"
    if said.is_call:
        return "one call of memset or memcpy"
    packed = f"; statements in it are packed into {said.packed}-byte vectors" if said.packed else ""
    if said.is_unrolled:
        return f"written out by gcc{packed}"
    if loop.has_loops:
        return f"not vectorised itself, there are loops inside{packed}"
    reasons = [f"gcc: {reason}" for reason in said.reasons] or ["gcc gives no reason"]
    if loop.kind == "seq":
        reasons.append("its iterations are not known to be independent")
    elif loop.kind == "while":
        reasons.append("only the run knows how many rounds there are")
    return f"not vectorised ({'; '.join(reasons)}){packed}"


__all__ = [
    "WEIGHTS",
    "costs_of_lines",
    "duration",
    "in_words",
    "loops_in_words",
    "quantities",
    "shared_parts",
    "weighed",
]
