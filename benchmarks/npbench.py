"""The programs of NPBench under `metaphrase.jit`, beside NumPy and the suite's own Numba forms.

In: a checkout of NPBench (github.com/spcl/npbench), whose code is not ours and stays outside of the repository, and
names of its programs (files of bench_info/), or none for all. Out: a table, the smallest ratio first: milliseconds of
each (the least of several calls, Numba's in its best form), and how many times NumPy's time and the best of the others
is ours; the geometric means; what was refused or wrong, with its message. Example:

    python benchmarks/npbench.py ../npbench gemm hdiff --preset S

Every program runs in a process of its own; without the form that crashed or hung, if one did, it runs once more.
Results (what is returned, and the suite's `output_args`) are compared with NumPy's before anything is timed: to 1e-6 of
the largest number, 1e-3 where float32 is about, or as loosely as the suite does. A Numba form that returns another
number of results than NumPy is compared by `output_args` alone. Arguments are copied for every call, outside the time.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import inspect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import metaphrase as mp

# The suite's names: nopython and object mode, alone, with `parallel` and with `prange`.
NUMBA = [f"numba_{form}" for form in ("n", "np", "npr", "o", "op", "opr") if importlib.util.find_spec("numba")]
PAUSE, BLOCK = 0.1, 0.05  # seconds: before a block of calls, for the threads of others to fall asleep; of a block
LONGEST = 10.0  # seconds: a form that has used so many gets no further block
TITLES = ["program", "NumPy, ms", "metaphrase, ms", "Numba, ms", "its form", "over NumPy", "over the best"]


def numbers(suite: dict[str, Any], module: str, preset: str, datatype: str) -> dict[str, Any]:
    """The suite's parameters, and what its initialiser makes of them."""
    real = np.dtype(datatype or "float64")
    kinds = {"np_float": real.type, "np_complex": np.result_type(real, np.complex64).type}
    sys.modules["npbench.infrastructure.framework"] = SimpleNamespace(**kinds)  # the suite's needs more packages
    values = dict(suite["parameters"][preset])
    if start := suite.get("init"):
        make = getattr(importlib.import_module(module), start["func_name"])
        choice = inspect.signature(make).parameters.get("datatype")
        given = {"datatype": real.type} if choice and (datatype or choice.default is choice.empty) else {}
        made = make(*(values[name] for name in start["input_args"]), **given)
        names = start["output_args"]
        values |= {names[0]: made} if len(names) == 1 else dict(zip(names, made, strict=True))
    return values


def leaves(value: Any) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if value is None else [np.asarray(value.toarray() if hasattr(value, "toarray") else value)]


def compare(found: list[np.ndarray], expected: list[np.ndarray], tolerance: float) -> None:
    shapes, right = [mine.shape for mine in found], [theirs.shape for theirs in expected]
    assert shapes == right, f"results of shapes {shapes}, not {right}"
    for mine, theirs in zip(found, expected):
        largest = np.max(np.abs(theirs), where=np.isfinite(theirs), initial=0)
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * float(largest))


def kind_and_first_lines(error: Exception) -> str:
    kind = "wrong" if isinstance(error, AssertionError) else type(error).__name__
    return f"{kind}: {'; '.join([line.strip() for line in str(error).splitlines() if line.strip()][:2])}"


def run_program(options: argparse.Namespace, tell: Callable[..., None]) -> None:
    """One program, in this process: `tell` is called with what begins, what is refused, and the seconds at the end."""
    suite = json.loads((options.checkout / "bench_info" / f"{options.one[0]}.json").read_text())["benchmark"]
    sys.path.insert(0, str(options.checkout.resolve()))
    module = f"npbench.benchmarks.{suite['relative_path'].replace('/', '.')}.{suite['module_name']}"
    values = numbers(suite, module, options.preset, options.datatype)
    names, outputs = suite["input_args"], [name for name in suite["output_args"] if name in suite["input_args"]]

    def text(form: str) -> Callable:
        return getattr(importlib.import_module(f"{module}_{form}"), suite["func_name"])

    def call(function: Callable) -> tuple[float, list[np.ndarray], list[np.ndarray]]:
        given = copy.deepcopy({name: values[name] for name in names})
        start = time.perf_counter()
        returned = function(*given.values())
        return time.perf_counter() - start, leaves(returned), leaves([given[name] for name in outputs])

    tell("begins", "numpy", "")
    _, expected, expected_changes = call(text("numpy"))
    single = {leaf.dtype.char for leaf in leaves([values[name] for name in names]) + expected} & {"f", "F"}
    tolerance = max(1e-3 if single else 1e-6, suite.get("rtol", 0), suite.get("norm_error", 0))
    forms = ["metaphrase", *(form for form in NUMBA if importlib.util.find_spec(f"{module}_{form}"))]
    ready: dict[str, Callable] = {"numpy": text("numpy")}
    for form in [form for form in forms if form not in options.one[1:]]:
        tell("begins", form, "")
        try:
            function = mp.jit(text("numpy")) if form == "metaphrase" else text(form)
            _, returned, changed = call(function)
            compare(changed, expected_changes, tolerance)
            if form == "metaphrase" or not outputs or len(returned) == len(expected):
                compare(returned, expected, tolerance)
            ready[form] = function
        except Exception as error:
            tell("refused", form, kind_and_first_lines(error))
    seconds: dict[str, list[float]] = {form: [] for form in ready}
    for _ in range(options.repeat):
        for form in (form for form in ready if sum(seconds[form]) < LONGEST):
            tell("begins", form, "")
            time.sleep(PAUSE)
            end = time.perf_counter() + BLOCK
            for _ in range(20):
                seconds[form].append(call(ready[form])[0])
                if time.perf_counter() > end:
                    break
    tell("times", "", {form: min(taken) * 1e3 for form, taken in seconds.items()})


def in_its_own_process(name: str, timeout: float) -> tuple[dict[str, float], dict[str, str]]:
    """Least milliseconds by form, and why other forms have none."""
    lost: dict[str, str] = {}
    while True:
        command = [sys.executable, "-P", __file__, *sys.argv[1:], "--one", name, *lost]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        late = done.returncode == -signal.SIGALRM
        end = f"hangs: stopped after {timeout:.0f} s" if late else f"crashed: exit status {done.returncode}"
        told = [json.loads(line) for line in done.stdout.splitlines()]
        refused = lost | {form: text for kind, form, text in told if kind == "refused"}
        if told and told[-1][0] == "times":
            return told[-1][2], refused
        running = ["numpy", *(form for kind, form, _ in told if kind == "begins")][-1]
        lost.setdefault(running, end)
        if "numpy" in refused or running == "numpy":
            return {}, lost | refused


def row(name: str, times: dict[str, float], refused: dict[str, str]) -> tuple[list[str], list[float]]:
    """The cells of the table, and how many times NumPy's time and the best of the others is ours."""
    numba = [form for form in (*times, *refused) if form.startswith("numba")]
    best = min(numba, key=lambda form: times.get(form, np.inf), default="")
    forms = ("numpy", "metaphrase", best)
    shown = [f"{times[form]:.3g}" if form in times else refused.get(form, "-").split(":")[0] for form in forms]
    ours, numpy = times.get("metaphrase", 0), times.get("numpy", 0)
    ratios = [numpy / ours, min(numpy, times.get(best, numpy)) / ours] if ours else []
    return [name, *shown, best[6:] or "-", *([f"{ratio:.2f}" for ratio in ratios] or "--")], ratios


def main() -> None:
    parser = argparse.ArgumentParser(description="NPBench's programs: metaphrase, NumPy and Numba.")
    parser.add_argument("checkout", nargs="?", type=Path, help="a checkout of github.com/spcl/npbench; none: no rows")
    parser.add_argument("names", nargs="*", help="names of programs; none: all")
    parser.add_argument("--preset", default="S", help="sizes: S, M, L or paper")
    parser.add_argument("--datatype", default="", help="for initialisers that offer a choice; else what they choose")
    parser.add_argument("--repeat", type=int, default=5, help="blocks of calls of every form")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of a first call, or of a block of calls")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    if options.one:
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # what the suite prints is not for us

        def tell(*told: Any) -> None:
            print(json.dumps(told), file=answers, flush=True)
            signal.setitimer(signal.ITIMER_REAL, options.timeout)  # ends the process, whatever it does then

        try:
            run_program(options, tell)
        except Exception as error:
            tell("refused", "numpy", kind_and_first_lines(error))
        return
    rows, notes = [], []
    known = (options.checkout or Path("-")).glob("bench_info/*.json")
    for name in options.names or sorted(file.stem for file in known):
        times, refused = in_its_own_process(name, options.timeout)
        rows.append(row(name, times, refused))
        notes += [f"* {name}, {form}: {text}" for form, text in refused.items()]
        print(*rows[-1][0], file=sys.stderr, flush=True)
    rows.sort(key=lambda found: found[1][-1:] or [np.inf])
    table = [TITLES, *(["---"] * len(TITLES) for _ in range(options.markdown)), *(cells for cells, _ in rows)]
    widths = [max(map(len, column)) for column in zip(*table)]
    for cells in table:
        plain = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
        print(f"| {' | '.join(cells)} |" if options.markdown else plain)
    timed = np.array([ratios for _, ratios in rows if ratios])
    print("", *notes, f"\n{len(rows)} programs, {len(timed)} timed.", sep="\n")
    for title, ratios in zip(("NumPy", "the best of the others"), timed.T):
        print(f"Geometric mean over {title}: {np.exp(np.mean(np.log(ratios))):.2f}, {np.sum(ratios > 1)} faster.")


if __name__ == "__main__":
    main()
