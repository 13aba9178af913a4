"""Small calls of BLAS and LAPACK wake no threads of the library: where other processes want the cores, its threads are
waited for a time slice or more, and a solve of 50 unknowns took 14 ms in place of 0.04.

In: linear algebra of some sizes, in a process that has one thread of its own. Out: CPU time of its other threads.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import time
import numpy as np
import metaphrase as mp

rng = np.random.default_rng(0)

def definite(n):
    a = rng.normal(size=(n, n))
    return a @ a.T + n*np.eye(n)

wide = rng.normal(size=(2, 2)) + 0j, rng.normal(size=(2, 16384)) + 0j
solved = definite(60), rng.normal(size=(60, 60))
CASES = {
    "solve": (lambda a, b: np.linalg.solve(a, b), solved),
    "complex solve": (lambda a, b: np.linalg.solve(a, b), tuple(1j*a + a.T for a in solved)),
    "gradient of solve": (mp.grad(lambda a, b: np.sum(np.linalg.solve(a, b))), solved),
    "inverse": (lambda a: np.linalg.inv(a), (definite(80),)),
    "cholesky": (lambda a: np.linalg.cholesky(a), (definite(150),)),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], (definite(220),)),
    "qr": (lambda a: np.linalg.qr(a)[1], (definite(100),)),
    "eigh": (lambda a: np.linalg.eigh(a)[0], (definite(100),)),
    "svd": (lambda a: np.linalg.svd(a)[1], (definite(100),)),
    "eig": (lambda a: np.linalg.eig(a)[0], (definite(60),)),
    "product": (lambda a, b: a @ b, wide),
    "product with itself": (lambda a: a @ a.T, (definite(100),)),
}
for name, (function, arguments) in CASES.items():
    jitted = mp.jit(function)
    jitted(*arguments)
    time.sleep(0.1)  # threads that have just worked look for more for a while
    all_threads, own = time.process_time(), time.thread_time()
    for _ in range(20):
        jitted(*arguments)
    own = time.thread_time() - own
    print(name, time.process_time() - all_threads - own, own, sep=",")
"""
CASES = (
    *("solve", "complex solve", "gradient of solve", "inverse", "cholesky", "slogdet", "qr", "eigh", "svd", "eig"),
    *("product", "product with itself"),
)


@pytest.fixture(scope="module")
def times(tmp_path_factory):
    """CPU seconds of other threads and of the caller's, by case."""
    file = tmp_path_factory.mktemp("threads") / "program.py"
    file.write_text(PROGRAM)
    settings = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-P", file],
        env=settings | {"METAPHRASE_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    rows = (line.split(",") for line in done.stdout.splitlines())
    return {name: (float(others), float(own)) for name, others, own in rows}


@pytest.mark.parametrize("case", CASES)
def test_only_the_caller_works(case, times):
    others, own = times[case]
    assert others < 0.1 * own + 0.002
