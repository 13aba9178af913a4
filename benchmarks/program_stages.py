"""What the first call of a whole program costs: CPU seconds of each stage for those of tests/programs.

In: names of programs, or none for all; `--keep FOLDER` leaves the emitted text and the C there. Out: a table
of CPU seconds (staging, simplifying, scheduling, emitting, Cython, the C compiler) and the lines of the
emitted text. Example:

    python benchmarks/program_stages.py ising nelder_mead

Nothing comes from the disk. The time that a process needs before its first program (imports, Cython's start)
is not counted.
"""

from __future__ import annotations

import argparse
import copy
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import metaphrase as mp
from metaphrase import pipeline
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.runtime import cython_build, cython_translate
from metaphrase.runtime.compiler import compile_shared, find_compiler, flags

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "programs")]
STAGES = ("stage", "simplify", "schedule", "emit", "cython", "compiler")


def of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def of_translator() -> float:
    """CPU seconds of the process that runs Cython, so far; it lives on."""
    with open(f"/proc/{cython_build._start_worker().process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(function: Callable, arguments: tuple, folder: Path, name: str) -> tuple[list[float], int]:
    """CPU seconds by stage, and lines of the emitted text."""
    seconds: list[float] = []

    def timed(run: Callable, clock: Callable[[], float] = time.process_time) -> object:
        start = clock()
        made = run()
        seconds.append(clock() - start)
        return made

    call = take_apart(copy.deepcopy(arguments), {})
    program = timed(lambda: pipeline.run("core", program_of, function, call.structure, call.specs))
    finished = timed(lambda: pipeline.finished(program.function))
    loops = timed(lambda: pipeline.loops(finished))
    emitted = timed(lambda: pipeline.cython(loops))
    answer = timed(lambda: cython_build.translate(emitted.text), of_translator)
    source = folder / f"{name}.c"
    source.with_suffix(".pyx").write_text(emitted.text)
    source.write_text(answer["c"])
    whole = answer["form"] == "extension"
    timed(
        lambda: compile_shared(find_compiler(), source, source.with_suffix(".so"), flags(), python=whole),
        of_children,
    )
    return seconds, emitted.text.count("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU seconds of each stage for textbook programs.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path, help="leave texts and libraries in this folder")
    options = parser.parse_args()
    from test_programs import RUNS

    mp.grad(lambda x: np.sum(x * x))(np.ones(2))  # imports are not what is measured
    cython_build.translate(cython_translate.WARM_TEXT)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="program-stages-"))
    folder.mkdir(parents=True, exist_ok=True)
    print("| program | " + " | ".join(STAGES) + " | all | lines emitted |")
    print("|---" * (len(STAGES) + 3) + "|")
    for name, run in RUNS.items():
        if options.names and name not in options.names:
            continue
        seconds, lines = measured(run.function, run.args, folder, name)
        cells = " | ".join(f"{s:.2f}" for s in (*seconds, sum(seconds)))
        print(f"| {name} | {cells} | {lines} |", flush=True)


if __name__ == "__main__":
    main()
