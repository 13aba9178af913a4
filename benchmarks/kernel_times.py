"""The kernels and a few rows beside them, against NumPy, Numba and JAX: ratios of medians in one process.

In: names of rows, or none for all; `--write` renews the tables in docs/benchmarks.md, `--bounds` times what
checks of indices cost, which a run of all rows does anyway, `--verbose` says more. Out: a table. Example:

    python benchmarks/kernel_times.py lu spmv
    python benchmarks/kernel_times.py --write

Every form is checked against NumPy before it is timed. A tool that offers several forms (arrays or loops,
parallel, fastmath) is timed in its best; where that is Numba's `fastmath` and it wins, our `fastmath` is timed
beside it. Arguments are made anew for every call, outside the time; JAX's lie on the device, are awaited, and
those that the program changes are donated. Tools not installed are left out.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np

import metaphrase as mp

sys.path.insert(0, str(Path(__file__).parent))
from kernels import KERNELS  # noqa: E402
from peers.models import models  # noqa: E402
from peers.seeds import seeds  # noqa: E402
from peers.timing import Form, Result, Row, each_array, fresh, measure  # noqa: E402

HUGE_PAGES = "glibc.malloc.hugetlb=1"  # as JAX likes it; for everybody, since all share the process
TABLE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
TOOLS = ("numpy", "metaphrase", "numba", "jax")


def installed(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    if name == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    return True


def on_device(arguments: tuple) -> tuple:
    import jax

    return each_array(lambda a: jax.block_until_ready(jax.device_put(a)), arguments)


def awaited(out):
    import jax

    return jax.block_until_ready(out)


def kernel_row(name: str, peers: set[str]) -> Row:
    kernel = KERNELS[name]
    row = Row(name, kernel.function, kernel.arguments(kernel.large))
    row.tools["numpy"] = [Form("", kernel.function)]
    row.tools["metaphrase"] = [Form("jit", mp.jit(kernel.function))]
    if "numba" in peers:
        import numba
        from peers import numba_loops

        warnings.simplefilter("ignore", numba.NumbaPerformanceWarning)

        helpers = {"mlp": ("relu", "softmax"), "nbody": ("acceleration", "energy")}
        forms = row.tools["numba"] = []
        for kind, function in (("arrays", kernel.function), ("loops", getattr(numba_loops, name, None))):
            if function is None:
                continue
            for label, options in (
                ("", {}),
                (" fastmath", {"fastmath": True}),
                (" parallel fastmath", {"fastmath": True, "parallel": True}),
            ):
                if kind == "arrays" and name in helpers:
                    function = with_compiled_helpers(function, helpers[name], numba.njit(**options))
                forms.append(Form(kind + label, numba.njit(**options)(function)))
    if "jax" in peers:
        import jax
        from peers import jax_kernels

        static, donated = jax_kernels.STATIC.get(name, ()), tuple(row.changes)
        forms = [
            (f.__name__, jax.jit(f, static_argnums=static, donate_argnums=donated)) for f in jax_kernels.FORMS[name]
        ]
        row.tools["jax"] = [Form(label, f, on_device, awaited, pure=True) for label, f in forms]
    return row


def with_compiled_helpers(function, names, compile_):
    """The same function with the functions it calls compiled: Numba asks for that."""
    import types

    scope = dict(function.__globals__)
    for name in names:
        found = scope[name]
        scope[name] = compile_(getattr(found, "py_func", found))
    return types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__)


def seed_row(seed, peers: set[str]) -> Row:
    row = Row(seed.name, seed.reference, seed.arguments, rtol=seed.rtol)
    row.tools["numpy"] = [Form("", seed.reference)]
    row.tools["metaphrase"] = [Form("jit", seed.ours)]
    if "numba" in peers:
        row.tools["numba"] = [Form(label, function) for label, function in seed.numba()]
    if "jax" in peers:
        row.tools["jax"] = [Form(label, function, on_device, awaited, pure=True) for label, function in seed.jax()]
    return row


def shown(result: Result | None) -> str:
    if result is None or result.median != result.median:
        return "-"
    return f"{result.median * 1e3:.3g}"


def verdict(results: dict[str, Result]) -> tuple[str, float]:
    """The best peer and how many times its time is ours."""
    peers = {t: r.median for t, r in results.items() if t in TOOLS and t != "metaphrase" and r.median == r.median}
    best = min(peers, key=lambda t: peers[t])
    return best, peers[best] / results["metaphrase"].median


def with_fastmath(row: Row, results: dict[str, Result]) -> dict[str, Result]:
    """Where Numba's `fastmath` is faster than strict arithmetic: ours with the same licence, and Numba's again."""
    best, ratio = verdict(results)
    if best != "numba" or ratio >= 1 or "fastmath" not in results["numba"].label:
        return {}
    relaxed = mp.jit(row.tools["metaphrase"][0].function.__wrapped__)
    with mp.config(fastmath=True):
        relaxed(*fresh(row.arguments))
    again = [form for form in row.tools["numba"] if form.label == results["numba"].label]
    row.tools = {"ours": [Form("fastmath", relaxed)], "theirs": again}
    found = measure(row)
    return {"fast": found["ours"], "numba fast": found["theirs"]}


def said(ratio: float) -> str:
    if ratio >= 1.5:
        return f"{ratio:.1f}x faster"
    return "tie" if ratio > 1 / 1.5 else f"{1 / ratio:.1f}x slower"


def table(rows: list[tuple[str, dict[str, Result]]]) -> list[str]:
    lines = [
        "| row | NumPy | metaphrase | Numba | JAX | against the best of the three | Numba's best form |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, results in rows:
        best, ratio = verdict(results)
        cells = " | ".join(shown(results.get(tool)) for tool in TOOLS)
        form = results["numba"].label if "numba" in results else "-"
        relaxed = f"; with our `fastmath` {_relaxed(results)}" if "fast" in results else ""
        lines.append(f"| {name} | {cells} | {said(ratio)} ({best}){relaxed} | {form} |")
    return lines


def _relaxed(results: dict[str, Result]) -> str:
    return f"{shown(results['fast'])}, {said(results['numba fast'].median / results['fast'].median)}"


def summary(rows: list[tuple[str, dict[str, Result]]]) -> list[str]:
    """Wins, ties and losses, and the geometric mean over each tool."""
    verdicts = {name: verdict(results)[1] for name, results in rows}
    won = [n for n, r in verdicts.items() if r >= 1.5]
    lost = [f"{n} ({1 / r:.1f}x)" for n, r in verdicts.items() if r <= 1 / 1.5]
    lines = [
        f"Against the best of NumPy, Numba and JAX: {len(won)} rows won by 1.5x or more, "
        f"{len(verdicts) - len(won) - len(lost)} ties, {len(lost)} lost" + (f": {', '.join(lost)}." if lost else ".")
    ]
    for tool in ("numpy", "numba", "jax"):
        ratios = [
            r[tool].median / r["metaphrase"].median for _, r in rows if tool in r and r[tool].median == r[tool].median
        ]
        if ratios:
            mean = np.exp(np.mean(np.log(ratios)))
            lines.append(f"Geometric mean over {tool}: {mean:.2f}x ({len(ratios)} rows).")
    for tool in ("metaphrase", "numba", "jax"):
        firsts = [r[tool].first for _, r in rows if tool in r and r[tool].first == r[tool].first]
        if firsts:
            lines.append(f"First call, median of the rows, {tool}: {np.median(firsts):.2f} s.")
    return lines


def write(lines: list[str], section: str, path: Path = TABLE) -> None:
    """Put `lines` between the section's markers."""
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    text = path.read_text()
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    path.write_text(f"{head}{begin}\n" + "\n".join(lines) + f"\n{end}{tail}")


def unchecked(function, arguments: tuple):
    """The same function without checks of indices: the setting holds while it is compiled."""
    jitted = mp.jit(function)
    with mp.config(bounds=False):
        jitted(*fresh(arguments))
    return jitted


def bounds_rows(names) -> list[tuple[str, float, float]]:
    """For the kernels whose native code checks indices: the medians with checks and without."""
    rows = []
    for name in names:
        kernel = KERNELS[name]
        arguments = kernel.arguments(kernel.large)
        if "mp_fail(" not in mp.source(kernel.function, *arguments, stage="cython"):
            continue
        row = Row(name, kernel.function, arguments)
        row.tools = {
            "on": [Form("on", mp.jit(kernel.function))],
            "off": [Form("off", unchecked(kernel.function, arguments))],
        }
        found = measure(row)
        rows.append((name, found["on"].median, found["off"].median))
    return rows


def bounds_table(rows: list[tuple[str, float, float]], total: int) -> list[str]:
    lines = ["| kernel | checked | not checked | cost |", "|---|---|---|---|"]
    for name, on, off in rows:
        lines.append(f"| {name} | {on * 1e3:.3g} | {off * 1e3:.3g} | {(on / off - 1) * 100:+.0f} % |")
    rest = f"The other {total - len(rows)} kernels have no check left: every index is shown to be in range."
    return [*lines, "", rest]


def main(arguments: list[str]) -> int:
    wanted = [a for a in arguments if not a.startswith("--")]
    peers = {name for name in ("numba", "jax") if installed(name)}
    for name in sorted({"numba", "jax"} - peers):
        print(f"{name} is not installed: left out")
    makers = [(name, lambda name=name: kernel_row(name, peers)) for name in KERNELS]
    makers += [(seed.name, lambda seed=seed: seed_row(seed, peers)) for seed in (*seeds(), *models())]
    print(f"{'':50}" + "".join(f"{tool:>12}" for tool in TOOLS) + "  ms; against the best")
    rows, broken = [], []
    for name, make in makers:
        if wanted and not any(w in name for w in wanted):
            continue
        row = make()
        results = measure(row)
        if results["metaphrase"].median != results["metaphrase"].median:
            broken.append(name)
            print(f"{name:50} {results['metaphrase'].failures}")
            continue
        results |= with_fastmath(row, results)
        rows.append((name, results))
        best, ratio = verdict(results)
        print(
            f"{name:50}"
            + "".join(f"{shown(results.get(tool)):>12}" for tool in TOOLS)
            + f"  {said(ratio)} ({best})"
            + (f"; our fastmath: {_relaxed(results)}" if "fast" in results else ""),
            flush=True,
        )
        if "--verbose" in arguments:
            for tool, result in results.items():
                print(f"    {tool}: {result.label}, first call {result.first:.2f} s {result.failures or ''}")
    print()
    print("\n".join(summary(rows)))
    bounds = [] if wanted and "--bounds" not in arguments else bounds_rows(KERNELS)
    if bounds:
        print("\nindices checked and not checked, ms")
        for name, on, off in bounds:
            print(f"{name:50}{on * 1e3:>12.3g}{off * 1e3:>12.3g}{(on / off - 1) * 100:>+10.0f} %")
    if "--write" in arguments and bounds:
        write(bounds_table(bounds, len(KERNELS)), "bounds")
    if "--write" in arguments and not wanted:
        write([*table(rows), "", *(f"* {line}" for line in summary(rows))], "kernels")
    return 1 if broken else 0


if __name__ == "__main__":
    if HUGE_PAGES not in os.environ.get("GLIBC_TUNABLES", ""):
        os.environ["GLIBC_TUNABLES"] = HUGE_PAGES  # read by the C library when a process starts
        os.execv(sys.executable, [sys.executable, *sys.argv])
    sys.exit(main(sys.argv[1:]))
