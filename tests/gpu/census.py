"""The corpus counted: which of its programs a GPU runs, what their kernels take, and which are refused and why.

In: cases of the corpus. Out: for each way (values, derivatives in both modes, batches) the programs that kernels are
emitted and compiled for, and those that are refused, with the words of the refusal. The table in docs/gpu.md is
written from the whole corpus, which takes a quarter of an hour, and a test holds a part of it each day. Run:

    PYTHONPATH=tests:tests/gpu:tests/native python -P -m census [--workers 2] [--markdown]
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from batches import batched_function
from derivatives import derive
from emulated import emitted
from stages import CASES, CHUNKS, core

from metaphrase.core.ir import Function
from metaphrase.runtime import nvrtc
from metaphrase.runtime.nvrtc import KernelReport
from metaphrase.source import SourceError

ARCH = "90"
DOCUMENT = Path(__file__).parents[2] / "docs" / "gpu.md"
BEGIN, END = "<!-- written by tests/gpu/census.py -->", "<!-- end of the census -->"
WAYS = {"values": "values", "jvp": "forward derivatives", "vjp": "reverse derivatives", "vmap": "batches"}


@dataclass(frozen=True)
class Program:
    """A case in one of the ways. `refusal`: the words of the error, "" where kernels were compiled."""

    case: str
    way: str
    refusal: str = ""
    kernels: dict[str, KernelReport] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.case if self.way == "values" else f"{self.way} of {self.case}"


def functions_of(case: str) -> Iterator[tuple[str, Function | SourceError]]:
    """The ways of a case that there are: its core program in each, or why a transformation refuses it."""
    yield "values", core(case)
    derived = derive(case)
    if derived is not None:
        yield "jvp", derived.jvp
        if derived.vjp is not None:
            yield "vjp", derived.vjp
    try:
        batched = batched_function(case, only_floats=True)
    except SourceError as problem:
        yield "vmap", problem
        return
    if batched is not None:
        yield "vmap", batched[0]


def programs_of(case: str) -> Iterator[Program]:
    """What becomes of a case on a GPU of the real sizes."""
    for way, function in functions_of(case):
        if isinstance(function, SourceError):
            yield Program(case, way, refusal=cause(function))
            continue
        try:
            text = emitted(function)[1].kernels
        except NotImplementedError as problem:
            yield Program(case, way, refusal=cause(problem))
            continue
        yield Program(case, way, kernels=nvrtc.report(text, arch=ARCH) if text else {})


def cause(problem: Exception) -> str:
    """The first line of a message, without its place."""
    return re.sub(r"^\S+:\d+:\d+: ", "", str(problem).strip().partition("\n")[0])


def census(cases: Iterable[str], workers: int = 1) -> list[Program]:
    """Those of all cases; a theme's are made in one process, which keeps what they share."""
    chunks = [found for names in CHUNKS.values() if (found := [name for name in names if name in set(cases)])]
    with multiprocessing.Pool(workers, maxtasksperchild=8) as pool:
        return [program for found in pool.imap(_of_chunk, chunks, chunksize=1) for program in found]


def _of_chunk(names: list[str]) -> list[Program]:
    return [program for name in names for program in programs_of(name)]


def table(programs: list[Program]) -> str:
    """As Markdown: a line a way, then the refused ones."""
    lines = [
        "| way | programs | by libraries alone | kernels | refused | most registers | most shared memory | spills |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for way, title in WAYS.items():
        found = [program for program in programs if program.way == way]
        reports = [report for program in found for report in program.kernels.values()]
        refused = [program for program in found if program.refusal]
        bare = [program for program in found if not program.kernels and not program.refusal]
        spills = [report for report in reports if report.spill_stores or report.spill_loads]
        lines.append(
            f"| {title} | {len(found):,} | {len(bare):,} | {len(reports):,} | {len(refused):,} "
            f"| {max(report.registers for report in reports)} | {max(report.shared_bytes for report in reports):,} "
            f"| {len(spills)} |"
        )
    return "\n".join([*lines, "", *refusals(programs), "", *spilled(programs)])


def refusals(programs: list[Program]) -> list[str]:
    """A paragraph for each reason, with the functions that are refused for it, whatever they are given."""
    reasons: dict[str, dict[str, None]] = {}
    for program in programs:
        if program.refusal:
            reasons.setdefault(program.refusal, {})[f"`{of_function(program.name)}`"] = None
    rows = [f"* {reason}: {', '.join(names)}" for reason, names in reasons.items()]
    return [wrapped(row) for row in rows] or ["None of them is refused."]


def spilled(programs: list[Program]) -> list[str]:
    """A line for each program with a kernel that needs more registers than a thread can have."""
    rows = [(program.name, sum(r.spill_stores for r in program.kernels.values())) for program in programs]
    return [f"* `{name}` spills {spills:,} bytes of registers" for name, spills in rows if spills]


def of_function(name: str) -> str:
    """A program's name without the number of the arguments that it is given."""
    plain = re.sub(r"_\d+$", "", name)
    return plain if plain.split()[-1] in CASES else name


def wrapped(row: str) -> str:
    return textwrap.fill(row, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def told() -> tuple[set[str], set[str]]:
    """The functions that the document calls refused, and the programs that it says spill registers."""
    text = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = text.split("\n* ")[1:]
    refused, spill = (
        {n for row in rows if (" spills " in row) is spills for n in re.findall("`([^`]+)`", row)}
        for spills in (False, True)
    )
    return {" ".join(name.split()) for name in refused}, spill


def write(text: str) -> None:
    before, _, rest = DOCUMENT.read_text().partition(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cases", type=int, default=len(CASES), help="the first so many, which does not write")
    options = parser.parse_args()
    programs = census(list(CASES)[: options.cases], options.workers)
    print(table(programs))
    for program in programs:
        for kernel, report in program.kernels.items():
            if report.spill_stores or report.spill_loads:
                print(f"{program.name}: {kernel} spills: {report}")
    if options.cases == len(CASES):
        write(table(programs))


if __name__ == "__main__":
    main()
