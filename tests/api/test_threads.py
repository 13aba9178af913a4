"""Threads share the loops of users' functions: the results are Python's, and to the bit those of one thread.

Parts are so small here that loops over a few numbers have several.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.schedule import target
from metaphrase.runtime import threads

rng = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(target, "CPU", replace(target.CPU, a_part=20, few=2))
    before = threads.use(3)
    yield
    threads.use(before)


# --- loops whose iterations do not depend on one another --------------------------------------------


def attraction(x, m):
    n = len(x)
    a = np.zeros((n, 2))
    for i in range(n):
        ax = 0.0
        ay = 0.0
        for j in range(n):
            dx = x[j, 0] - x[i, 0]
            dy = x[j, 1] - x[i, 1]
            r = (dx * dx + dy * dy + 1e-3) ** -1.5
            ax += m[j] * dx * r
            ay += m[j] * dy * r
        a[i, 0] = ax
        a[i, 1] = ay
    return a


def escape(c, steps):
    out = np.zeros(len(c), dtype=np.int64)
    for i in range(len(c)):
        z = 0j
        k = 0
        while k < steps and abs(z) < 2:
            z = z * z + c[i]
            k += 1
        out[i] = k
    return out


def sparse(starts, columns, values, x):
    y = np.zeros(len(starts) - 1)
    for i in range(len(starts) - 1):
        s = 0.0
        for k in range(starts[i], starts[i + 1]):
            s += values[k] * x[columns[k]]
        y[i] = s
    return y


def elimination(a):
    a = a.copy()
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


def rows_with_arrays(a, b):
    out = np.zeros(len(a))
    for i in range(len(a)):
        r = np.sort(a[i] - b)
        r = r * r
        out[i] = r[0] + r[-1]
    return out


def every_other(x):
    y = x.copy()
    for i in range(0, len(x) - 1, 2):
        y[i] = x[i + 1]
        y[i + 1] = x[i]
    return y


def in_place(x, s):
    for i in range(len(x)):
        x[i] = x[i] * s + 1.0
    return x


def powers(a, v):
    """The inner products are shared, though the loop around them has as many steps as there are rows."""
    w = np.zeros(len(v))
    for _ in range(len(v)):
        for i in range(len(v)):
            s = 0.0
            for j in range(len(v)):
                s += a[i, j] * v[j]
            w[i] = np.tanh(s)
        v = w.copy()
    return v


def branches(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        if x[i] > 0:
            t = x[i]
        else:
            t = -2.0 * x[i]
        y[i] = t
    return y


POINTS = rng.normal(size=(23, 2))
STARTS = np.array([0, 3, 3, 7, 12, 12, 15, 20, 31])
MATRIX = rng.normal(size=(14, 14)) + 14 * np.eye(14)
SHARED = [
    (attraction, (POINTS, rng.random(23))),
    (escape, (rng.normal(size=40) + 1j * rng.normal(size=40), 50)),
    (sparse, (STARTS, rng.integers(0, 9, 31), rng.random(31), rng.random(9))),
    (elimination, (MATRIX,)),
    (rows_with_arrays, (rng.normal(size=(12, 7)), rng.normal(size=7))),
    (every_other, (rng.random(30),)),
    (in_place, (rng.random(33), 2.5)),
    (branches, (rng.normal(size=31),)),
    (powers, (rng.normal(size=(12, 12)), rng.normal(size=12))),
]


# --- loops whose iterations depend on one another -----------------------------------------------------


def running(x):
    y = np.zeros(len(x))
    s = 0.0
    for i in range(len(x)):
        s = s * 0.5 + x[i]
        y[i] = s
    return y


def sometimes(x):
    """What an iteration without x[i] > 0 reads was left by an earlier one."""
    y = np.zeros(len(x))
    t = 0.0
    for i in range(len(x)):
        if x[i] > 0:
            t = x[i]
        y[i] = t
    return y


def neighbours(x):
    x = x.copy()
    for i in range(1, len(x)):
        x[i] = 0.5 * (x[i] + x[i - 1])
    return x


def to_the_front(x):
    x = x.copy()
    for i in range(len(x) - 1):
        x[i] = x[i + 1] - x[i]
    return x


def one_place(x):
    y = np.zeros(3)
    for i in range(len(x)):
        y[1] = x[i]
    return y


def gathered(x, where):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[where[i]] = y[where[i]] * 0.5 + x[i]
    return y


def moved_by_data(x, where):
    y = np.zeros(2 * len(x))
    for i in range(len(x)):
        k = where[i] % 7
        y[i + k] = y[i + k] * 0.5 + x[i]
    return y


def moved_by_a_count(x):
    y = np.zeros(2 * len(x))
    k = 0
    for i in range(len(x)):
        if x[i] > 0.5:
            k -= 1
        y[2 * i + k] = x[i]
    return y


def below_the_diagonal(a):
    """What an iteration reads right of the diagonal of its row another one may have stored left of that of its own."""
    b = a.copy()
    n = len(b)
    for i in range(n - 1, -1, -1):
        b[i, :i] += b[(2 * i) % n, i]
    return b


def last_one(x):
    k = -1
    for i in range(len(x)):
        if x[i] > 0.5:
            k = i
    return k


def last_row(a):
    row = np.zeros(a.shape[1])
    out = np.zeros(len(a))
    for i in range(len(a)):
        out[i] = row[0] + row[1]
        row = a[i] * 2.0
    return out, row


def kept_row(a):
    """A row of which an iteration writes a part, and reads what others wrote."""
    row = np.zeros(a.shape[1])
    out = np.zeros(len(a))
    for i in range(len(a)):
        row[i % 3] = a[i, 0]
        out[i] = row[0] + row[1] + row[2]
    return out


def mirrored(x):
    x = x.copy()
    for i in range(len(x)):
        x[i] = x[len(x) - 1 - i] + 1.0
    return x


def total(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
    return s


ORDERED = [
    (running, (rng.normal(size=41),)),
    (sometimes, (rng.normal(size=41),)),
    (neighbours, (rng.random(41),)),
    (to_the_front, (rng.random(41),)),
    (one_place, (rng.random(41),)),
    (gathered, (rng.random(41), rng.integers(0, 41, 41))),
    (moved_by_data, (rng.random(41), rng.integers(0, 41, 41))),
    (moved_by_a_count, (rng.random(41),)),
    (below_the_diagonal, (rng.random((13, 13)),)),
    (last_one, (rng.random(41),)),
    (last_row, (rng.random((17, 3)),)),
    (kept_row, (rng.random((17, 3)),)),
    (mirrored, (rng.random(41),)),
    (total, (rng.random(41),)),
]


def copied(args):
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)


def same(got, want):
    for g, w in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
        np.testing.assert_array_max_ulp(g, w, 64) if np.asarray(g).dtype == float else np.testing.assert_array_equal(
            g, w
        )


@pytest.mark.parametrize("function, args", SHARED, ids=lambda x: getattr(x, "__name__", ""))
def test_iterations_that_do_not_depend_on_one_another_are_shared(function, args):
    with mp.config(contract=False):
        compiled = mp.jit(function)
        want = function(*copied(args))
        for _ in range(5):
            arguments = copied(args)
            same(compiled(*arguments), want)
        text = mp.source(function, *copied(args), stage="cython")
        longest = text.split("cdef int entry(")[1]
        assert "mp_share(c, share_" in longest or "_of_nest" in text, text


@pytest.mark.parametrize("function, args", ORDERED, ids=lambda x: getattr(x, "__name__", ""))
def test_iterations_that_depend_on_one_another_run_in_their_order(function, args):
    with mp.config(contract=False):
        compiled = mp.jit(function)
        want = function(*copied(args))
        for _ in range(5):
            same(compiled(*copied(args)), want)


@pytest.mark.turns(4)
@pytest.mark.parametrize("function, args", [*SHARED, *ORDERED], ids=lambda x: getattr(x, "__name__", ""))
def test_gradients_and_batches_do_not_depend_on_the_number_of_threads(function, args):
    floats = [k for k, a in enumerate(args) if isinstance(a, np.ndarray) and a.dtype == float]
    if not floats or function in (escape, last_one):
        floats = []
    runs = []
    for count in (1, 3):
        threads.use(count)
        found = []
        if floats:
            loss = lambda *a: sum(np.sum(np.sin(leaf)) for leaf in mp.tree.leaves(function(*a)))  # noqa: E731
            found += mp.tree.leaves(mp.jit(mp.grad(loss, argnums=tuple(floats)))(*copied(args)))
        axes = tuple(0 if isinstance(a, np.ndarray) else None for a in args)
        many = tuple(np.stack([a] * 5) if isinstance(a, np.ndarray) else a for a in args)
        if function is not in_place:
            found += mp.tree.leaves(mp.jit(mp.vmap(function, in_axes=axes))(*many))
        runs.append(found)
    assert [np.asarray(a).tobytes() for a in runs[0]] == [np.asarray(a).tobytes() for a in runs[1]]
    assert runs[0]


def wrong_somewhere(x, where):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[where[i]]
    return y


def wrong_in_place(x, where):
    for i in range(len(where)):
        x[i] = x[i] + 1.0
        if where[i] < 0:
            raise ValueError(f"no place {i}")
    return x


def test_of_iterations_that_fail_the_first_is_told():
    compiled = mp.jit(wrong_somewhere)
    for _ in range(20):
        where = rng.integers(0, 50, 50)
        bad = sorted(rng.choice(50, size=3, replace=False))
        where[bad] = 1000 + np.array(bad)
        with pytest.raises(IndexError, match=f"{1000 + bad[0]}"):
            compiled(rng.random(50), where)


def test_what_is_stored_before_a_failure_does_not_depend_on_the_number_of_threads():
    for first in (0, 1, 17, 39):
        where = np.zeros(40, int)
        where[[first, 39]] = -1
        left = []
        for count in (1, 3):
            threads.use(count)
            x = np.zeros(40)
            with pytest.raises(ValueError, match=f"no place {first}$"):
                mp.jit(wrong_in_place)(x, where)
            left.append(x)
        np.testing.assert_array_equal(*left)


SCRIPT = """
import numpy as np, metaphrase as mp, os
@mp.jit
def f(x):
    y = np.sin(x) * np.cos(x) + np.exp(-x * x)
    return y, y.sum(), (x * x).reshape(-1, 8).sum(0)
x = np.random.default_rng(0).random(400_000)
print(*(np.asarray(r).tobytes()[:64].hex() for r in f(x)), hash(f(x)[0].tobytes()))
print(len(os.listdir("/proc/self/task")))
"""


def test_results_in_processes_with_other_numbers_of_threads(tmp_path):
    seen = set()
    for setting, count in (("METAPHRASE_NUM_THREADS", 1), ("METAPHRASE_NUM_THREADS", 2), ("OMP_NUM_THREADS", 5)):
        env = {k: v for k, v in os.environ.items() if k not in ("METAPHRASE_NUM_THREADS", "OMP_NUM_THREADS")}
        env |= {setting: str(count), "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        env["METAPHRASE_CACHE_DIR"] = str(tmp_path)
        done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=env, timeout=120)
        numbers, tasks = done.stdout.splitlines()
        seen.add(numbers)
        assert int(tasks) >= count, done.stderr
    assert len(seen) == 1
