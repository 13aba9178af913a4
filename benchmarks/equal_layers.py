"""What a program of many equal layers costs to compile, beside one of three: CPU seconds of each stage.

In: nothing, or numbers of layers. Out: the table of docs/benchmarks.md, with what a call takes.
A layer is a product of matrices, a tanh and a layer norm. Nothing comes from the disk. Example:

    python benchmarks/equal_layers.py 3 64
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import timeit
from collections.abc import Callable

import numpy as np
from program_stages import of_children, of_translator

import metaphrase as mp
from metaphrase import pipeline
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of

WIDTH, ROWS = 16, 8
STAGES = ("stage", "simplify", "schedule", "emit", "Cython and compiler")


def layer(x, w, b, g):
    h = np.tanh(x @ w + b)
    mean = h.mean(axis=-1, keepdims=True)
    spread = ((h - mean) ** 2).mean(axis=-1, keepdims=True)
    return x + g * (h - mean) / np.sqrt(spread + 1e-5)


def network(x, layers):
    for w, b, g in layers:
        x = layer(x, w, b, g)
    return (x * x).mean()


def arguments(count: int) -> tuple:
    rng = np.random.default_rng(0)
    shapes = (WIDTH, WIDTH), WIDTH, WIDTH
    return rng.normal(size=(ROWS, WIDTH)), [tuple(rng.normal(size=s) / 4 for s in shapes) for _ in range(count)]


def seconds(function: Callable, count: int) -> list[float]:
    """CPU seconds of each stage."""
    call = take_apart(arguments(count), {})
    found: list[float] = []

    def timed(run: Callable, clock: Callable[[], float] = time.process_time):
        start = clock()
        made = run()
        found.append(clock() - start)
        return made

    program = timed(lambda: program_of(function, call.structure, call.specs))
    core = timed(lambda: pipeline.finished(program.function))
    nests = timed(lambda: pipeline.loops(core))
    emitted = timed(lambda: pipeline.cython(nests))
    timed(lambda: pipeline.build(emitted.text, name="layers"), lambda: of_children() + of_translator())
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("counts", nargs="*", type=int, default=[3, 64])
    given = options.parse_args()
    os.environ["METAPHRASE_CACHE_DIR"] = tempfile.mkdtemp()
    print("| layers |", " | ".join(STAGES), "| all | a call, us |")
    print("|---" * (len(STAGES) + 3) + "|")
    for name, function in (("value", network), ("gradient", mp.grad(network, argnums=(0, 1)))):
        seconds(function, 2)  # imports, and the translator's start
        for count in given.counts:
            row = seconds(function, count)
            jitted, data = mp.jit(function), arguments(count)
            jitted(*data)
            call = min(timeit.repeat(lambda: jitted(*data), number=100, repeat=5)) / 100  # noqa: B023
            numbers = [f"{s:.3f}" for s in (*row, sum(row))]
            print(f"| {count}, {name} |", " | ".join(numbers), f"| {1e6 * call:.0f} |")


if __name__ == "__main__":
    main()
