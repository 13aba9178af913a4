"""What a call costs beside its kernel: the dispatcher, measured with a kernel that does nothing and with a
sum.

In: nothing; `python benchmarks/dispatch.py [--repeat N]`. Out: a table of nanoseconds a call (the median of N
runs of 20,000 calls), beside NumPy's own addition. Ends in an assert: under 1 us over the kernel for one to
three small arrays.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np

from metaphrase.core.dims import Sym
from metaphrase.runtime import abi, cython_build
from metaphrase.runtime import entry as E
from metaphrase.runtime.dispatch import Dispatcher

n = Sym("n")
HEAD = abi.DECLARATIONS + "cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:\n"
NOTHING = HEAD + "    return 0\n"
ADD = (
    HEAD
    + """\
    cdef int64_t i
    cdef double* x = <double*>buffers[0]
    cdef double* y = <double*>buffers[1]
    cdef double* out = <double*>buffers[2]
    for i in range(sizes[0]):
        out[i] = x[i] + y[i]
    return 0
"""
)


def arrays(address: int, count: int, outputs: int = 1) -> Dispatcher:
    """f(a0, ...) of `count` arrays f64[n] that gives `outputs` arrays f64[n]."""
    leaves = tuple(E.ArrayLeaf("f8", (n,)) for _ in range(count))
    results = tuple(E.Result(index) for index in range(outputs))
    call = Dispatcher(None, tuple(f"a{index}" for index in range(count)))
    call.add(
        E.Entry(
            address,
            tuple(E.Root(E.Position(index), leaf) for index, leaf in enumerate(leaves)),
            leaves,
            ("n",),
            (E.Fresh("f8", (n,)),) * outputs,
            results[0] if outputs == 1 else E.Sequence(tuple, results),
        )
    )
    return call


def parameters(address: int) -> Dispatcher:
    """f({"w", "b"}, x, k) -> a scalar: a dict of two arrays, an array, a Python float."""
    w, b, x, k = (E.ArrayLeaf("f8", (n, n)), E.ArrayLeaf("f8", (n,)), E.ArrayLeaf("f8", (n,)), E.NumberLeaf(float))
    call = Dispatcher(None, ("p", "x", "k"))
    call.add(
        E.Entry(
            address,
            (
                E.Root(E.Position(0), E.Dictionary(("w", "b"), (w, b))),
                E.Root(E.Position(1), x),
                E.Root(E.Position(2), k),
            ),
            (w, b, x, k),
            ("n",),
            (E.Fresh("f8"),),
            E.Result(0),
        )
    )
    return call


def nanoseconds(call: Callable, args: tuple, repeat: int) -> float:
    """The median over `repeat` runs of the time of one call, loop included."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter_ns()
        for _ in range(20_000):
            call(*args)
        times.append((time.perf_counter_ns() - start) / 20_000)
    return statistics.median(times)


FIRST = """
import time
start = time.perf_counter()
from metaphrase.runtime import cython_build
imported = time.perf_counter()
import sys
text = open(sys.argv[1]).read().replace("i] +", "i] + %s +" % time.time())
if sys.argv[2] == "warm":
    cython_build.warm()
    time.sleep(0.5)
built = time.perf_counter()
cython_build.build(text, name="first")
print(imported - start, time.perf_counter() - built)
"""


def first_build(tmp: str, mode: str) -> tuple[float, float]:
    """(import, build) in seconds of a text that no cache holds, in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST, tmp, mode],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ, METAPHRASE_CACHE="0"),
    )
    imported, built = map(float, done.stdout.split())
    return imported, built


def main() -> None:
    """Measure, print, and hold the promise."""
    options = argparse.ArgumentParser(description="nanoseconds a call")
    options.add_argument("--repeat", type=int, default=7)
    repeat = options.parse_args().repeat
    nothing = cython_build.build(NOTHING, name="nothing")
    add = cython_build.build(ADD, name="add")
    x, y, w = np.ones(4), np.ones(4), np.ones((4, 4))
    loop = nanoseconds(lambda *args: None, (x, y), repeat)
    rows = [
        ("an empty Python function of two arguments", lambda *args: None, (x, y)),
        ("numpy: x + y, n = 4", np.add, (x, y)),
        ("no kernel, 1 array -> 1 array", arrays(nothing.address, 1), (x,)),
        ("no kernel, 2 arrays -> 1 array", arrays(nothing.address, 2), (x, y)),
        ("no kernel, 3 arrays -> 1 array", arrays(nothing.address, 3), (x, y, x)),
        ("no kernel, 2 arrays -> 2 arrays", arrays(nothing.address, 2, 2), (x, y)),
        ("no kernel, {w, b}, x, float -> scalar", parameters(nothing.address), ({"w": w, "b": y}, x, 1.0)),
        ("x + y, n = 4", arrays(add.address, 2), (x, y)),
        ("x + y, n = 1000", arrays(add.address, 2), (np.ones(1000), np.ones(1000))),
    ]
    worst = 0.0
    for name, call, args in rows:
        taken = nanoseconds(call, args, repeat)
        print(f"{name:45} {taken:8.0f} ns")
        if name.startswith("no kernel"):
            worst = max(worst, taken)
    print(f"{'(of which the measuring loop)':45} {loop:8.0f} ns")
    with tempfile.NamedTemporaryFile("w", suffix=".pyx") as file:
        file.write(ADD)
        file.flush()
        for mode in ("cold", "warm"):
            imported, built = first_build(file.name, mode)
            print(f"first build, {mode} translator: {built * 1e3:.0f} ms (import: {imported * 1e3:.0f} ms)")
    assert worst < 1000, f"a call costs {worst:.0f} ns over its kernel"


if __name__ == "__main__":
    main()
