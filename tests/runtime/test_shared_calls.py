"""Rows, columns and stacks that a library works on, shared among threads: NumPy's numbers, the same bits from any
number of threads, NumPy's exceptions, and BLAS's own threads as they were."""

from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest
from thread_counts import own_threads, thread_counts

import metaphrase as mp
from metaphrase.astpasses.schedule.dependence import in_rows
from metaphrase.astpasses.schedule.nest import Buf, View
from metaphrase.core.dims import Sym
from metaphrase.core.facts import Facts

random = np.random.default_rng(5)
SQUARES = random.normal(size=(90, 12, 12)) + 12 * np.eye(12)
SYMMETRIC = SQUARES + SQUARES.swapaxes(-1, -2)
RIGHT = random.normal(size=(90, 12, 3))
COMPLEX = SQUARES + 1j * random.normal(size=SQUARES.shape)
TABLE = random.normal(size=(160, 230))

CALLS = {
    "sort rows": (lambda x: np.sort(x, axis=1), TABLE),
    "sort columns": (lambda x: np.sort(x, axis=0), TABLE),
    "sort a middle dim": (lambda x: np.sort(x, axis=1), TABLE.reshape(16, 10, 230)),
    "argsort": (lambda x: np.argsort(x, axis=-1, kind="stable"), np.round(TABLE, 1)),
    "median": (lambda x: np.median(x, axis=1), TABLE),
    "fft of rows": (lambda x: np.fft.fft(x), TABLE + 1j),
    "fft of columns": (lambda x: np.fft.fft(x, axis=0), TABLE + 1j),
    "fft of all": (lambda x: np.fft.fftn(x), TABLE.reshape(16, 10, 230)),
    "rfft and back": (lambda x: np.fft.irfft(np.fft.rfft(x, axis=0), axis=0), TABLE),
    "solve": (lambda a, b: np.linalg.solve(a, b), SQUARES, RIGHT),
    "inv": (np.linalg.inv, COMPLEX),
    "det": (np.linalg.det, SQUARES),
    "cholesky": (np.linalg.cholesky, SYMMETRIC + 40 * np.eye(12)),
    "qr": (lambda a: abs(np.linalg.qr(a)[1]), SQUARES),
    "eigh": (lambda a: np.linalg.eigh(a)[0], SYMMETRIC),
    "svd": (lambda a: np.linalg.svd(a)[1], SQUARES),
    "eig": (lambda a: np.sort(abs(np.linalg.eigvals(a)), axis=-1), SQUARES),
    "products": (lambda a, b: a @ b, random.normal(size=(40, 33, 34)), random.normal(size=(40, 34, 35))),
    "products of a few": (lambda a: a @ a, random.normal(size=(5, 100, 100))),
    "attention": (
        lambda q, k: np.exp(q @ k.swapaxes(-1, -2) / 9).sum(-1),
        random.normal(size=(4, 6, 40, 30)),
        random.normal(size=(4, 6, 40, 30)),
    ),
    "a gradient": (mp.grad(lambda a: np.sum(np.log(np.linalg.det(a)))), SYMMETRIC + 40 * np.eye(12)),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CALLS)
def test_numbers_and_bits(name):
    function, *args = CALLS[name]
    jitted, before = mp.jit(function), own_threads()
    if name == "a gradient":
        want = np.linalg.inv(args[0]).swapaxes(-1, -2)
    else:
        want = function(*args)
    results = {jitted(*args).tobytes() for _ in thread_counts(1, 2, 3, 8)}
    np.testing.assert_allclose(jitted(*args), want, rtol=1e-9, atol=1e-9)
    assert len(results) == 1 and own_threads() == before


@pytest.mark.parametrize("name", ["sort rows", "sort columns", "fft of rows", "fft of columns", "products", "solve"])
def test_sizes_that_are_known_at_run_time_only(name):
    function, *args = CALLS[name]
    jitted = mp.jit(function)
    jitted(*(x[:7] for x in args)), jitted(*(x[:9] for x in args))  # from now on for any number of rows
    for rows in (0, 1, 2, 40, len(args[0])):
        parts = [x[:rows] for x in args]
        if name == "fft of columns" and not rows:
            continue  # NumPy refuses it
        for _ in thread_counts(1, 3):
            np.testing.assert_allclose(jitted(*parts), function(*parts), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("products of a few", "fft of all")])
def test_threads_share_them(name):
    function, *args = CALLS[name]
    assert "part_" in mp.source(function, *(np.concatenate([x] * 6) for x in args), stage="loops")


def test_a_matrix_in_the_middle_that_is_singular():
    squares = SQUARES.copy()
    squares[50] = 0
    jitted = mp.jit(np.linalg.solve)
    for _ in thread_counts(1, 2, 3):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            jitted(squares, RIGHT)
        np.testing.assert_allclose(jitted(SQUARES, RIGHT), np.linalg.solve(SQUARES, RIGHT), rtol=1e-9)


def test_several_threads_of_python_call_them():
    jitted, before, results = mp.jit(np.linalg.inv), own_threads(), []
    want = jitted(SQUARES)
    workers = [threading.Thread(target=lambda: results.extend(jitted(SQUARES) for _ in range(30))) for _ in range(4)]
    [worker.start() for worker in workers], [worker.join() for worker in workers]
    assert len(results) == 120 and all(np.array_equal(one, want) for one in results) and own_threads() == before


@pytest.fixture
def keyboard():
    """Ctrl-C raises, which it does not where tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_ends_them(keyboard):
    jitted, before = mp.jit(lambda a: np.linalg.svd(a)[1]), own_threads()
    stack = np.broadcast_to(SQUARES, (2000, *SQUARES.shape)).reshape(-1, 12, 12)
    jitted(SQUARES)
    for _ in thread_counts(1, 2):
        timer = threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        begin = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            while time.perf_counter() < begin + 60:
                jitted(stack)
        assert own_threads() == before


# ---- what is known of views --------------------------------------------------------------------------------------

N, M, I = Sym("n"), Sym("m"), Sym("i")
CUBE = Buf("cube", np.dtype("f8"), (N, 4, M))
IN_ROWS = {
    "a matrix": (View(CUBE, (I, 0, 0), (4, M), (M, 1)), True),
    "a row": (View(CUBE, (I, 3, 0), (M,), (1,)), True),
    "a column": (View(CUBE, (0, 2, 5), (N,), (4 * M,)), False),  # of which nothing says that it is there
    "a number": (View(CUBE, (I, 2, 0), (), ()), False),
    "a part of a row": (View(CUBE, (I, 0, 0), (M,), (1,)), True),
    "a matrix read as a row": (View(CUBE, (I, 0, 0), (4 * M,), (1,)), True),
    "more than a matrix": (View(CUBE, (I, 0, 0), (8 * M,), (1,)), False),
    "a row from its end": (View(CUBE, (I, 0, 0), (M,), (-1,)), False),
    "a row that its number does not tell": (View(CUBE, (0, I, 0), (M,), (1,)), False),
    "behind the last": (View(CUBE, (N, 0, 0), (4, M), (M, 1)), False),
}


@pytest.mark.parametrize("name", IN_ROWS)
def test_what_lies_in_rows(name):
    view, lies = IN_ROWS[name]
    facts = Facts({"n": (0, None), "m": (0, None), "i": (0, N - 1)})
    access = in_rows(view.access(True), facts)
    assert access.whole is not lies
    if lies:
        assert access.index[0] == I


def test_a_loop_whose_lines_depend_on_one_another_stays_in_order():
    def cascade(x):
        for i in range(x.shape[0] - 1):
            x[i + 1] = np.fft.fft(x[i]) / 100
        return x

    x = (TABLE[:40] + 1j).copy()
    want = cascade(x.copy())
    for _ in thread_counts(1, 3):
        np.testing.assert_allclose(mp.jit(cascade)(x.copy()), want, rtol=1e-9)


def test_a_users_loop_over_matrices():
    def solved(a, b):
        out = np.empty_like(b)
        for i in range(a.shape[0]):
            out[i] = np.linalg.solve(a[i], b[i]) @ np.ones((3, 3))
        return out

    want, jitted = solved(SQUARES, RIGHT), mp.jit(solved)
    assert "part_" in mp.source(solved, SQUARES, RIGHT, stage="loops")
    assert len({jitted(SQUARES, RIGHT).tobytes() for _ in thread_counts(1, 2, 3)}) == 1
    np.testing.assert_allclose(jitted(SQUARES, RIGHT), want, rtol=1e-9)
