"""NumPy's functions one by one: a million numbers, native code against NumPy, in one process.

In: nothing, or a part of the expressions wanted. Out: a table, the slowest of ours against NumPy first: milliseconds of
each (the least of five calls) and their ratio. Every result is compared with NumPy's before it is timed. Example:

    python benchmarks/numpy_functions.py sort

Wherever a BLAS with threads of its own is at work (products, linear algebra) a busy machine tells nothing.
"""

from __future__ import annotations

import linecache
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

import metaphrase as mp

EXPRESSIONS = """
np.sort(x)
np.sort(k)
np.sort(M, axis=0)
np.sort(M, axis=1)
np.argsort(x, kind="stable")
np.argsort(M, axis=1, kind="stable")
np.unique(x)
np.unique(k)
np.median(x)
np.percentile(x, [5, 50, 95])
np.quantile(M, 0.3, axis=1)
np.isin(k, k[:50])
np.searchsorted(marks, x)
np.digitize(x, marks)
np.interp(x, marks, np.sin(marks))
np.histogram(x, marks)[0]
np.bincount(k, minlength=100)
np.bincount(k, weights=x, minlength=100)
x[x > 0.5]
x[x > 0.5].sum()
np.nonzero(x > 0.9)[0]
np.where(x > 0.5, x, y)
np.take(x, p)
x[p]
np.cumsum(x)
np.cumsum(M, axis=0)
np.diff(x)
np.argmax(x)
np.argmax(M, axis=1)
np.max(M, axis=0)
np.sum(M, axis=0)
np.mean(M, axis=1)
np.std(x)
np.nanmean(x)
np.dot(x, y)
M.T.copy()
np.einsum("ij,ij->i", M, M)
np.outer(x[:1000], y[:1000])
np.exp(x)
np.log1p(x)
np.sin(x)
np.tanh(x)
np.arctan2(x, y)
np.hypot(x, y)
np.power(x, 2.5)
x**3
np.mod(x, 0.3)
k // 7
k % 7
np.abs(c)
c * c
np.fft.fft(c[:65536])
np.fft.rfft(x[:65536])
np.fft.irfft(c[:32769])
np.convolve(x, y[:64], "same")
np.gradient(x)
np.polyval([1.0, 2.0, 3.0], x)
np.clip(x, 0.2, 0.8)
np.repeat(x, 3)
np.concatenate([x, y])
np.stack([x, y], axis=1)
x.astype(np.float32)
""".strip().splitlines()


def functions(expressions: list[str]) -> list[Callable]:
    """A function for each expression."""
    rows = [f"def f{i}(x, y, M, k, p, c, marks):\n    return {e}\n" for i, e in enumerate(expressions)]
    text, name = "import numpy as np\n\n\n" + "\n\n".join(rows), "<numpy functions>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict = {"__name__": "numpy_functions"}
    exec(compile(text, name, "exec"), scope)
    return [scope[f"f{i}"] for i in range(len(expressions))]


def least(function: Callable, arguments: tuple) -> float:
    """Milliseconds of the quickest of five calls."""
    found = []
    for _ in range(5):
        start = time.perf_counter()
        function(*arguments)
        found.append(time.perf_counter() - start)
    return min(found) * 1e3


def main() -> None:
    wanted = [e for e in EXPRESSIONS if all(word in e for word in sys.argv[1:])]
    r, n = np.random.default_rng(0), 1_000_000
    x, y, table = r.random(n), r.random(n), r.random((1000, 1000))
    c = r.random(n) + 1j * r.random(n)
    arguments = x, y, table, r.integers(0, 100, n), r.permutation(n), c, np.linspace(0, 1, 101)
    rows = []
    warnings.simplefilter("ignore")
    for expression, function in zip(wanted, functions(wanted)):
        jitted = mp.jit(function)
        np.testing.assert_allclose(jitted(*arguments), function(*arguments), rtol=1e-9, atol=1e-9, err_msg=expression)
        rows.append((least(jitted, arguments), least(function, arguments), expression))
    print("| | NumPy, ms | metaphrase, ms | ratio |\n|---|---|---|---|")
    for ours, theirs, expression in sorted(rows, key=lambda row: row[1] / row[0]):
        print(f"| `{expression}` | {theirs:.2f} | {ours:.2f} | {theirs / ours:.2f} |")
    print(f"\ngeometric mean {np.exp(np.mean([np.log(theirs / ours) for ours, theirs, _ in rows])):.2f}")


if __name__ == "__main__":
    main()
