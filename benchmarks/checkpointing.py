"""What a gradient through a long loop costs in bounded memory, beside the plain gradient: steps run, time and peak.

In: nothing. Out: a table for a chain of pendulums (examples/long_loop.py), a loop of one number, and a `while`; by how
many steps they have and how many states may be kept. One thread, the least CPU time of several rounds. Example:

    python benchmarks/checkpointing.py
"""

import importlib.util
import math
import sys
import time
from pathlib import Path

import numpy as np

import metaphrase as mp

EXAMPLES = Path(__file__).parent.parent / "examples"


def example(name):
    sys.path.insert(0, str(EXAMPLES))
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def number(x, steps):
    for _ in range(steps):
        x = x + 0.001 * np.sin(x)
    return x


def until(x, steps):
    k = 0
    while k < steps:
        x = x + 0.001 * np.sin(x)
        k += 1
    return x


def replayed(chunks, states):
    """How many chunks the best schedule for so many states runs again (Griewank & Walther, 2000, prop. 1)."""
    if chunks <= 1:
        return 0
    times = 1
    while math.comb(states + times, states) < chunks:
        times += 1
    return times * chunks - math.comb(states + times, states + 1)


def steps_run(steps, slots, online):
    """How often a gradient runs a step: once to begin with, then as often as states are missing, then to go back."""
    stretch = max(slots, -(-steps // (slots + 1)))
    if online:
        stretch = slots
        while steps > (slots + 1) * stretch:
            stretch *= 2
    chunks = (-(-min(stretch, steps - k) // slots) for k in range(0, steps, stretch))
    return 2 * steps + sum(slots * replayed(c, slots + 1) for c in chunks)


def seconds(work, *args, rounds):
    work(*args)
    best = math.inf
    for _ in range(rounds):
        begin = time.process_time()
        work(*args)
        best = min(best, time.process_time() - begin)
    return best


def row(name, steps, slots, runs, spent, peak, plain=None):
    """One line of the table; `plain`: time and peak of the plain gradient."""
    line = f"{name:10} {steps:>10,} {slots:>6} {runs:>5.2f} {spent:>9.4f} s {peak:>13,} bytes"
    if plain is not None:
        line += f"   {spent / plain[0]:.2f}x the time, {peak / plain[1]:.2%} of the memory"
    print(line, flush=True)


def main():
    mp.config.num_threads = 1
    springs = np.linspace(0.5, 1.0, 8)
    loops = {"pendulums": (example("long_loop").motion, springs), "a number": (number, 0.3), "while": (until, 0.3)}
    print("loop            steps  slots  runs of a step, time and peak of the gradient")
    for name, (f, x) in loops.items():
        for steps in (10_000, 1_000_000):
            plain = seconds(mp.jit(mp.grad(f)), x, steps, rounds=7), mp.memory_report(f, x, steps).peak
            row(name, steps, "all", 1, *plain)
            for slots in (1000, 100, 20):
                few = mp.loop_checkpoint(f, slots=slots)
                runs = steps_run(steps, slots, online=f is until) / steps
                spent = seconds(mp.jit(mp.grad(few)), x, steps, rounds=5)
                row(name, steps, slots, runs, spent, mp.memory_report(few, x, steps).peak, plain)


if __name__ == "__main__":
    main()
