"""What translating costs: a function of 500 lines with 50 calls, deep nests, and loops of any trip count.

In: programs written here by rules, in the style of a simulation step: helpers, branches, loops, stores.
Out: a table of seconds by stage. Run: `python benchmarks/staging.py`, with `--native` to compile as well,
with `--profile long` for the profile of one program.

The figures that must hold: the long function is staged (source to core) in under a second; a nest of depth d
costs a constant more for each level; 10 and 100,000 iterations cost the same.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import pstats
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

HELPERS = """
def limited(x, low, high):
    if low > high:
        low, high = high, low
    return np.minimum(np.maximum(x, low), high)


def smooth(x, rate):
    y = x.copy()
    for i in range(1, x.shape[0] - 1):
        y[i] = (1 - rate) * x[i] + rate * 0.5 * (x[i - 1] + x[i + 1])
    return y


def energy(x, v, mass=1.0):
    kinetic = 0.5 * mass * np.sum(v * v)
    potential = np.sum(1.0 - np.cos(x))
    return kinetic + potential


def settle(x, goal, tolerance=1e-6):
    steps = 0
    while abs(x - goal) > tolerance and steps < 50:
        x = x + 0.5 * (goal - x)
        steps += 1
    return x


def pushed(state, force, dt):
    x, v = state
    v = v + dt * force
    x = x + dt * v
    return x, v
"""
# One block: ten lines, one call, each time with names of its own.
BLOCKS = (
    """
    f{k} = np.sin(x) * {c} + np.tanh(v) / (1.0 + t * t)
    g{k} = np.where(f{k} > 0.1, f{k}, 0.1 * f{k})
    if np.sum(g{k}) > limit:
        x = x - 0.01 * g{k}
        v = v * 0.99
    else:
        x = x + 0.01 * g{k}
    x, v = pushed((x, v), -g{k} + 0.1 * f{k}, dt)
    t = t + dt * {c}
    total += np.mean(g{k} ** 2) + t
""",
    """
    r{k} = smooth(x, 0.1 + 0.01 * {k})
    d{k} = np.abs(r{k} - x)
    worst{k} = d{k}.max()
    if worst{k} > limit:
        limit = 0.5 * (limit + worst{k})
    s{k} = 0.0
    for j in range(x.shape[0]):
        s{k} += d{k}[j] * v[j]
    v = v - 1e-3 * s{k} * np.cos(x)
    total = total + s{k} / (1.0 + worst{k})
""",
    """
    a{k} = limited(v, -{c}, {c})
    b{k} = a{k} * np.exp(-a{k} * a{k})
    y{k} = np.zeros_like(x)
    y{k}[1:] = b{k}[:-1]
    y{k}[0] = b{k}[-1]
    n{k} = np.sum(y{k} * b{k})
    v = v + 1e-2 * (y{k} - b{k})
    x[0] = x[0] * 0.999
    limit = limit if n{k} < 0.5 else limit * 1.01
    total += n{k}
""",
    """
    e{k} = energy(x, v, {c})
    if e{k} > 1e6:
        return x, v, total
    h{k} = np.sqrt(1.0 + e{k} * e{k})
    scale{k} = 1.0 / h{k} if h{k} > 1.0 else 1.0
    v = v * (1.0 - 1e-3 * scale{k})
    m{k} = np.argmax(np.abs(v))
    v[m{k}] = 0.9 * v[m{k}]
    w{k} = x @ v
    total += 1e-3 * w{k}
""",
    """
    q{k} = settle(t, {c})
    u{k} = x.reshape(2, -1)
    z{k} = u{k}.sum(axis=0) * q{k}
    p{k} = np.concatenate([z{k}, z{k}])
    k{k} = 0
    while k{k} < 3 and p{k}[k{k}] > 0:
        p{k}[k{k}] = -p{k}[k{k}]
        k{k} += 1
    x = x + 1e-3 * p{k}
    total -= 1e-3 * np.sum(p{k})
""",
)


def long_function(lines: int = 500) -> str:
    """A function of about this many lines, a tenth as many calls of helpers."""
    blocks = [BLOCKS[k % len(BLOCKS)].strip("\n").format(k=k, c=f"{0.5 + k % 7 / 10}") for k in range(lines // 10)]
    head = "def long_function(x, v, t, dt, limit):\n    total = 0.0\n    x = x.copy()\n    v = v.copy()\n"
    return HELPERS + "\n\n" + head + "\n".join(blocks) + "\n    return x, v, total\n"


def nest(depth: int, kind: str) -> str:
    """`for` or `if` in one another to this depth, a carried value changed at each."""
    lines = ["def nested(x, n):", "    total = 0.0"]
    for level in range(depth):
        indent = "    " * (level + 1)
        lines.append(f"{indent}for i{level} in range(n):" if kind == "for" else f"{indent}if x[{level}] > total:")
        lines.append(f"{indent}    total = total + x[{level}] * {level + 1}.0")
    return "\n".join(lines) + "\n    return total\n"


def counted(trips: int) -> str:
    return f"""def counted(x):
    for i in range({trips}):
        x = x + np.sin(x) * 1e-6 * i
        if x[0] > 10.0:
            break
    return x
"""


def straight(lines: int) -> str:
    """Numbers one after the other, each made of two elements, put together to an array."""
    made = [f"    v{k} = x[{k % 8}] * x[{(k + 3) % 8}] + {k}.0" for k in range(lines)]
    return (
        "def straight(x):\n"
        + "\n".join(made)
        + "\n    return np.array(["
        + ", ".join(f"v{k}" for k in range(lines))
        + "])\n"
    )


def matrix(size: int) -> str:
    """Comprehensions in comprehensions: a matrix of kernel values, its product with itself, their sum."""
    return f"""def matrix(x):
    n = {size}
    k = [[np.exp(-(x[i % 8] - x[j % 8]) ** 2) for j in range(n)] for i in range(n)]
    p = [[sum(k[i][m] * k[m][j] for m in range(n)) for j in range(n)] for i in range(n)]
    return np.array(p), sum(sum(row) for row in k)
"""


def load(text: str, name: str) -> Callable:
    """The function `name` of a module with this text, which stands in a file as users' code does."""
    path = Path(tempfile.mkdtemp(prefix="staging-")) / "program.py"
    path.write_text("import numpy as np\n\n\n" + text.lstrip("\n"))
    spec = importlib.util.spec_from_file_location(f"program_{abs(hash(text))}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def measured(text: str, name: str, args: tuple, native: bool) -> dict[str, float]:
    """CPU seconds of each stage, for a function that has not been seen before."""
    function = load(text, name)
    call = take_apart(args, {})
    seconds: dict[str, float] = {}

    def timed(stage: str, run: Callable) -> object:
        start = time.process_time()
        made = run()
        seconds[stage] = time.process_time() - start
        return made

    program = timed("stage", lambda: program_of(function, call.structure, call.specs))
    finished = timed("optimize", lambda: pipeline.finished(program.function))
    loops = timed("schedule", lambda: pipeline.loops(finished))
    emitted = timed("emit", lambda: pipeline.cython(loops))
    seconds["lets"] = len(finished.lets)
    seconds["lines"] = emitted.text.count("\n")
    if native:
        from metaphrase.runtime.cython_build import build

        start = time.perf_counter()
        library = build(emitted.text, name=name)
        seconds["build"] = time.perf_counter() - start
        seconds |= {f"  {k}": v for k, v in library.seconds.items() if k != "load"}
    return seconds


def programs() -> dict[str, tuple[str, str, tuple]]:
    x = np.linspace(0.1, 1.0, 8)
    step = (x, x * 0.5, 0.1, 0.01, 0.5)
    return {
        "long, 100 lines": (long_function(100), "long_function", step),
        "long, 500 lines": (long_function(500), "long_function", step),
        "for, 3 deep": (nest(3, "for"), "nested", (x, 4)),
        "for, 6 deep": (nest(6, "for"), "nested", (x, 4)),
        "if, 3 deep": (nest(3, "if"), "nested", (x, 4)),
        "if, 6 deep": (nest(6, "if"), "nested", (x, 4)),
        "6 by 6 values": (matrix(6), "matrix", (x,)),
        "60 by 60 values": (matrix(60), "matrix", (x,)),
        "100 numbers": (straight(100), "straight", (x,)),
        "400 numbers": (straight(400), "straight", (x,)),
        "10 iterations": (counted(10), "counted", (x,)),
        "100000 iterations": (counted(100_000), "counted", (x,)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Time the stages of generated programs.")
    parser.add_argument("--native", action="store_true", help="compile as well")
    parser.add_argument("--profile", metavar="PROGRAM", help="profile the programs whose name holds this")
    options = parser.parse_args()
    mp.grad(lambda x: np.sum(x * x))(np.ones(2))  # imports are not what is measured
    measured(counted(10), "counted", (np.ones(3),), options.native)
    for name, (text, function, args) in programs().items():
        if options.profile is not None:
            if options.profile in name:
                profile = cProfile.Profile()
                profile.runcall(measured, text, function, args, options.native)
                pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(30)
            continue
        seconds = measured(text, function, args, options.native)
        print(
            f"{name:18} "
            + "  ".join(
                f"{stage} {value:.0f}" if stage in ("lets", "lines") else f"{stage} {value:.3f} s"
                for stage, value in seconds.items()
            )
        )


if __name__ == "__main__":
    main()
