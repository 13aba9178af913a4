"""What the first call of a whole program costs: CPU seconds of each stage for those of tests/programs.

In: names of programs, or none for all; `--keep FOLDER` leaves the emitted text and the C there. Out: a table
of CPU seconds (staging, simplifying, scheduling, emitting, Cython, the C compiler) and the lines of the
emitted text. Example:

    python benchmarks/program_stages.py ising nelder_mead

Nothing comes from the disk. The time that a process needs before its first program (imports, Cython's start)
is not counted. `--against FOLDER` compares with a checkout of another commit, whose extension is built there: of
both, in turn, each round in fresh processes, the least CPU seconds of staging, simplifying and scheduling.

    python benchmarks/program_stages.py --against ../other --rounds 3
"""

from __future__ import annotations

import argparse
import copy
import importlib
import json
import os
import pkgutil
import resource
import subprocess
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
    answer = timed(lambda: cython_build.translate(emitted.text, "program"), of_translator)
    source = folder / f"{name}.c"
    source.with_suffix(".pyx").write_text(emitted.text)
    source.write_text(answer["c"])
    whole = answer["form"] == "extension"
    timed(
        lambda: compile_shared(find_compiler(), source, source.with_suffix(".so"), flags(), python=whole), of_children
    )
    return seconds, emitted.text.count("\n")


def own_stages(names: list[str]) -> dict[str, list[float]]:
    """CPU seconds of staging, simplifying and scheduling; all modules are imported before."""
    from test_programs import RUNS

    package = importlib.import_module("metaphrase.astpasses")
    for module in pkgutil.walk_packages(package.__path__, "metaphrase.astpasses."):
        importlib.import_module(module.name)
    mp.grad(lambda x: np.sum(x * x))(np.ones(2))
    found = {}
    for name in names or list(RUNS):
        call = take_apart(copy.deepcopy(RUNS[name].args), {})
        clock = [time.process_time()]
        program = pipeline.run("core", program_of, RUNS[name].function, call.structure, call.specs)
        clock.append(time.process_time())
        finished = pipeline.finished(program.function)
        clock.append(time.process_time())
        pipeline.loops(finished)
        clock.append(time.process_time())
        found[name] = [end - start for start, end in zip(clock, clock[1:])]
    return found


def compare(other: Path, names: list[str], rounds: int) -> None:
    """A table of both: ours, and those of the package in another checkout."""
    least: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="program-stages-") as folder:
        package = Path(folder) / "metaphrase"
        package.mkdir()
        for source in [*(other / "pysrc").iterdir(), *(other / room for room in ("astpasses", "runtime", "cli"))]:
            (package / source.name).symlink_to(source.resolve())
        for _ in range(rounds):
            for side, path in (("there", folder), ("here", "")):
                done = subprocess.run(
                    [sys.executable, "-P", __file__, "--own", *names],
                    env=os.environ | {"PYTHONPATH": path},
                    stdout=subprocess.PIPE,
                    check=True,
                )
                for name, seconds in json.loads(done.stdout).items():
                    known = least.setdefault(name, {}).setdefault(side, seconds)
                    least[name][side] = [min(a, b) for a, b in zip(known, seconds)]
    print("| program | stage, there | simplify | schedule | stage, here | simplify | schedule | here / there |")
    print("|---" * 8 + "|")
    sums = {side: [sum(parts) for parts in zip(*(row[side] for row in least.values()))] for side in ("there", "here")}
    for name, row in [*least.items(), ("all", sums)]:
        cells = " | ".join(f"{s:.2f}" for s in (*row["there"], *row["here"]))
        print(f"| {name} | {cells} | {sum(row['here']) / sum(row['there']):.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU seconds of each stage for textbook programs.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep", type=Path, help="leave texts and libraries in this folder")
    parser.add_argument("--against", type=Path, help="compare with this checkout")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--own", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.own:
        print(json.dumps(own_stages(options.names)))
        return
    if options.against:
        compare(options.against, options.names, options.rounds)
        return
    from test_programs import RUNS

    mp.grad(lambda x: np.sum(x * x))(np.ones(2))  # imports are not what is measured
    cython_build.translate(cython_translate.WARM_TEXT, "warm")
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
