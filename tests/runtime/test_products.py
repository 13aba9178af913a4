"""Products of matrices in parts: NumPy's numbers for all shapes and layouts, and BLAS's own threads as they were."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from thread_counts import own_threads, thread_counts

import metaphrase as mp

SHAPES = [
    (300, 301, 302),
    (700, 90, 80),
    (65, 1000, 70),
    (8, 3000, 200),
    (200, 10, 3000),
    (3000, 10, 200),
    (64, 64, 64),
]
EMPTY = [(0, 3000, 300), (300, 0, 3000), (3000, 300, 0), (1, 70_000, 1)]
random = np.random.default_rng(3)


def product(a, b):
    return a @ b


def matrix(rows: int, columns: int, dtype: str) -> np.ndarray:
    made = random.normal(size=(rows, columns))
    return (made + 1j * random.normal(size=(rows, columns)) if dtype[0] == "c" else made).astype(dtype)


@pytest.mark.turns(3)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8"])
def test_shapes_and_layouts(dtype):
    jitted, before = mp.jit(product), own_threads()
    for m, k, n in SHAPES + EMPTY:
        a, b = matrix(m, k, dtype), matrix(k, n, dtype)
        want = a @ b
        bound = np.finfo(dtype).eps * 4 * (np.abs(a) @ np.abs(b))
        for left in (a, np.asfortranarray(a), matrix(m, 2 * k, dtype)[:, ::2]):
            for right in (b, np.asfortranarray(b)):
                left[:] = a
                for count in thread_counts(1, 2, 3):
                    assert (np.abs(jitted(left, right) - want) <= bound).all(), (m, k, n, count)
    assert own_threads() == before


def test_blas_has_its_threads_again_when_several_multiply():
    jitted, before = mp.jit(product), own_threads()
    a = random.normal(size=(200, 200))
    jitted(a, a)
    results: list = []

    def work():
        results.extend(jitted(a, a) for _ in range(100))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 400 and all(np.allclose(r, results[0], rtol=1e-13, atol=1e-12) for r in results)
    assert own_threads() == before


def test_a_child_process_multiplies():
    jitted, a = mp.jit(product), random.normal(size=(300, 300))
    want = jitted(a, a)
    child = os.fork()
    if not child:
        os._exit(0 if np.allclose(jitted(a, a), want) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_product_in_a_loop_that_threads_could_share_is_whole():
    stacks = mp.jit(lambda a: a @ a)
    a = random.normal(size=(5, 100, 100))
    np.testing.assert_allclose(stacks(a), a @ a, rtol=1e-12, atol=1e-11)
