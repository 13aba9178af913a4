"""First calls and small calls beside JAX and Numba: each tool in fresh processes, in turn, in one run.

In: nothing; `--peers PYTHON` names an interpreter that has JAX and Numba where this one has not. Out: a table
of medians, and of ratios to metaphrase's, taken round by round so that a busy machine weighs on all alike.
`--rounds N` (5), `--markdown` for the table of docs/benchmarks.md.

    import              importing the tool in a new process, NumPy included
    first call, cold    of a process with an empty cache on disk: imports done, nothing compiled
    import + first      both together: what a script waits for
    first call, warm    as cold, in a second process that finds the first one's files
    second function     the first call of another function, cold, in a process that has compiled one
    100 lengths         one function called with 100 lengths of its argument, the first call included
    small call          a compiled call of three elements, median
    value_and_grad      the same of value and derivative (Numba has none)
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

TOOLS = ("metaphrase", "jax", "numba")
ROWS = (
    "import",
    "first call, cold",
    "import + first",
    "first call, warm",
    "second function",
    "100 lengths",
    "small call",
    "value_and_grad",
)


# ---- in a process of its own -------------------------------------------------------------------------------


def squares(x):
    return (x * x + 1).sum()


def waves(x, k):
    import numpy as np

    return (np.sin(x * k) - np.cos(x)).mean()


def timed(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def median_call(call: Callable[[], Any], repeats: int = 60, inner: int = 100) -> float:
    return statistics.median(timed(lambda: [call() for _ in range(inner)]) / inner for _ in range(repeats))


def child(tool: str, warm: bool) -> dict[str, float]:
    """What this process measures, by name."""
    import_start = time.perf_counter()
    grad: Any = None
    if tool == "metaphrase":
        import numpy as np

        import metaphrase as mp

        jit, grad, ready, array = mp.jit, mp.value_and_grad, (lambda y: y), np.asarray
    elif tool == "jax":
        import jax
        import jax.numpy as np

        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jit, grad, array = jax.jit, jax.value_and_grad, np.asarray
        ready = jax.block_until_ready
    else:
        import numba
        import numpy as np

        jit, ready, array = (lambda f: numba.njit(f, cache=True)), (lambda y: y), np.asarray
    seconds = {"import": time.perf_counter() - import_start}
    x = array([0.5, 1.5, -2.0])
    f = jit(squares)
    first = timed(lambda: ready(f(x)))
    if warm:
        return {"first call, warm": first}
    seconds |= {"first call, cold": first, "import + first": seconds["import"] + first}
    if tool == "jax":
        second = jit(lambda x, k: (np.sin(x * k) - np.cos(x)).mean())
    elif tool == "numba":

        def flat(x, k):
            return (np.sin(x * k) - np.cos(x)).mean()

        second = numba.njit(flat)
    else:
        second = jit(waves)
    seconds["second function"] = timed(lambda: ready(second(x, 2.0)))
    many = jit(squares)
    arrays = [array([0.5] * n) for n in range(2, 102)]
    seconds["100 lengths"] = timed(lambda: [ready(many(a)) for a in arrays])
    seconds["small call"] = median_call(lambda: ready(f(x)))
    if grad is not None:
        both = jit(grad(squares))
        ready(both(x))
        seconds["value_and_grad"] = median_call(lambda: ready(both(x)))
    return seconds


# ---- the table ---------------------------------------------------------------------------------------------


def run(python: str, tool: str, folder: str, warm: bool = False) -> dict[str, float] | None:
    """One process; None where the tool is not there."""
    caches = {
        "METAPHRASE_CACHE_DIR": f"{folder}/metaphrase",
        "JAX_COMPILATION_CACHE_DIR": f"{folder}/jax",
        "NUMBA_CACHE_DIR": f"{folder}/numba",
        "JAX_PLATFORMS": "cpu",
    }
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | caches
    done = subprocess.run(
        [python, "-P", __file__, "--child", tool, *["--warm"][:warm]], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        if "ModuleNotFoundError" not in done.stderr:
            raise RuntimeError(f"{tool}: {done.stderr}")
        return None
    return json.loads(done.stdout)


def measure(rounds: int, peers: str) -> dict[str, dict[str, list[float]]]:
    """tool -> row -> one number a round."""
    found: dict[str, dict[str, list[float]]] = {}
    pythons = {tool: sys.executable if tool == "metaphrase" else peers for tool in TOOLS}
    for number in range(rounds + 1):  # of the first only its files of bytecode count
        for tool in TOOLS:
            with tempfile.TemporaryDirectory(prefix="first-calls-") as folder:
                seconds = run(pythons[tool], tool, folder)
                if seconds is None:
                    if number == 0:
                        print(f"{tool} is not installed in {pythons[tool]}: left out", file=sys.stderr)
                    continue
                seconds |= run(pythons[tool], tool, folder, warm=True) or {}
            if number:
                for row, value in seconds.items():
                    found.setdefault(tool, {}).setdefault(row, []).append(value)
            if sys.stderr.isatty():
                print(f"\rround {number} of {rounds}: {tool:12}", end="", file=sys.stderr)
    return found


def shown(seconds: float) -> str:
    return (
        f"{seconds:.2f} s"
        if seconds >= 0.95
        else f"{seconds * 1e3:.0f} ms"
        if seconds >= 1e-3
        else f"{seconds * 1e6:.2f} us"
    )


def table(found: dict[str, dict[str, list[float]]], markdown: bool) -> str:
    """Medians, and medians of the ratios to metaphrase's number of the same round."""
    tools = [tool for tool in TOOLS if tool in found]
    rows = [["", *tools, *(f"{tool} / metaphrase" for tool in tools[1:])]]
    for row in ROWS:
        ours = found["metaphrase"][row]
        cells = [row]
        for tool in tools:
            cells.append(shown(statistics.median(found[tool][row])) if row in found[tool] else "-")
        for tool in tools[1:]:
            ratios = [theirs / mine for theirs, mine in zip(found[tool].get(row, ()), ours)]
            cells.append(f"{statistics.median(ratios):.1f}" if ratios else "-")
        rows.append(cells)
    if markdown:
        rows.insert(1, ["---"] * len(rows[0]))
        return "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
    widths = [max(len(cells[k]) for cells in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(c.rjust(w) if k else c.ljust(w) for k, (c, w) in enumerate(zip(cells, widths))) for cells in rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="First calls and small calls beside JAX and Numba.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--child", choices=TOOLS, help=argparse.SUPPRESS)
    parser.add_argument("--warm", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.warm)))
        return
    print(table(measure(options.rounds, options.peers), options.markdown))


if __name__ == "__main__":
    main()
