"""Loops whose rounds the host starts on a GPU before it knows whether they are wanted.

In: solvers with `while` around loops over arrays. Out: NumPy's values, however many rounds there are, with arrays that
change places and numbers that are counted; failures at the round they belong to; few waits, and few launches a round.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import stand_in as cupy
from emulated import SMALL, run

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.pipeline import finished
from metaphrase.runtime.cuda import Run

random = np.random.default_rng(3)


def conjugate_gradients(A, b, tolerance):
    x = np.zeros_like(b)
    r = b - A @ x
    p = r
    rs = r @ r
    while np.sqrt(rs) > tolerance:
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x = x + alpha * p
        r = r - alpha * Ap
        new = r @ r
        p = r + (new / rs) * p
        rs = new
    return x


def relaxed(x, tolerance):
    change, rounds = 1.0, 0
    while change > tolerance:
        y = x.copy()
        y[1:-1] = 0.5 * (x[:-2] + x[2:])
        change = np.abs(y - x).max()
        x = y
        rounds += 1
    return x, rounds


def halved(x):
    while x.sum() > 1:
        x = x / 2
    return x


def weighted(x, w):
    """The number of the round picks a weight: the last ones are missing."""
    k = 0
    while x.sum() > 1:
        x = x * w[k]
        k += 1
    return x, k


def goes_on(x, a):
    """Numbers that each round takes on from the one before, in several kernels."""
    t, k, s, y = 1.0, 0, 0.0, x
    while s < 50:
        t = t * 0.5 + a
        y = y * t + x[k % 3]
        k = k + 1
        s = s + y.sum() * t * k
        t = t + a * k
    return y, t, k, s


def nested(x):
    """A loop in a round of another one, which therefore waits."""
    while x.max() > 1:
        while x.sum() > 4:
            x = x * 0.9
        x = x * 0.7
    return x


def evaluated(f, *args):
    call = take_apart(args, {})
    return run(finished(program_of(f, call.structure, call.specs).function), list(args), SMALL)


S = random.normal(size=(20, 20))
CASES = {
    conjugate_gradients: [(S @ S.T + np.eye(20), random.normal(size=20), tolerance) for tolerance in (1e9, 1.0, 1e-6)],
    relaxed: [(random.random(12), tolerance) for tolerance in (2.0, 0.1, 1e-2, 1e-3)],
    halved: [(np.full(9, 2.0**k),) for k in range(-4, 12, 3)],
    weighted: [(np.full(9, 2.0**k), np.full(50, 0.5)) for k in (-4, 0, 5)],
    goes_on: [(np.arange(1, 9.0) / 9, 0.3)],
    nested: [(np.arange(12.0),)],
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_values(f, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    for args in CASES[f]:
        wanted = f(*args)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        for got, want in zip(evaluated(f, *args), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_a_round_that_fails_is_told_and_rounds_behind_the_last_do_not_fail():
    x = np.full(9, 4.0)
    (got, rounds) = evaluated(weighted, x, np.full(6, 0.5))  # rounds 6 and 7 were started, and would find no weight
    assert rounds == 6 and got.sum() <= 1
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        evaluated(weighted, x, np.full(5, 0.5))


def test_the_host_waits_for_a_few_rounds_at_a_time(monkeypatch):
    looks, record = [], Run._record
    monkeypatch.setattr(Run, "_record", lambda self: (looks.append(1), record(self))[1])
    _, rounds = evaluated(relaxed, CASES[relaxed][-1][0], 1e-3)
    assert rounds > 40 and len(looks) < 12


def test_launches_of_a_round():
    text = mp.source(conjugate_gradients, "f64[2000, 2000]", "f64[2000]", "f64", stage="cuda")
    body = re.search(r"def round_1\(\):\n(.*?)        return", text, re.S)
    assert body is not None and body[1].count("c.") == 3, text
    assert len(re.findall(r"mp_end\(c, mp_launch \+ 1\);", text)) == 1
    text = mp.source(relaxed, "f64[1000000]", "f64", stage="cuda")
    assert "def round_1(x_2, x_3):" in text and "x_2, x_3 = c.rounds(round_1, answer_at, (x_2, x_3))" in text


def test_a_branch_and_a_store_that_all_lanes_share_are_in_their_kernel():
    def logged(x, y):
        log = np.zeros(8)
        for k in range(200):
            x, y = x + 0.01 * (x - 0.1 * x * y), y + 0.01 * (0.02 * x * y - 0.4 * y)
            if k % 25 == 0:
                log[k // 25] = x
        return log

    text = mp.source(mp.vmap(logged), "f64[100000]", "f64[100000]", stage="cuda")
    assert len(re.findall(r"    c\.\w+\('", text)) == 1
    lanes = random.random(10), random.random(10)
    (got,) = evaluated(mp.vmap(logged), *lanes)
    np.testing.assert_allclose(got, [logged(x, y) for x, y in zip(*lanes)], rtol=1e-12)


def sums_of_like_names(x, n):
    s, s_2, out = 0.0, 1.0, np.zeros(n)
    for k in range(n):
        for i in range(len(x)):
            s += x[i] * k
            s_2 += x[i]
        for i in range(len(x)):
            s += x[i]
            s_2 += x[i] * x[i]
        out[k] = s + s_2 + (out[k - 1] if k else 0.0)
    return out


def test_what_is_kept_before_a_loop_has_a_name_of_its_own():
    """`s` before the second loop is not called as `s_2` before the first one."""
    x = np.linspace(0.0, 1.0, 500)
    with cupy.installed():
        got = mp.jit(sums_of_like_names)(cupy.asarray(x), 6).get()
    np.testing.assert_allclose(got, sums_of_like_names(x, 6), rtol=1e-12)
