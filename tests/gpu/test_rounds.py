"""Loops in time on a GPU: a thread takes an element, or a lane, through all rounds, in one kernel.

In: functions with loops around arrays, and batches of functions with loops. Out: the CPU's numbers; how many kernels
there are, and whether the host has a loop left.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import stand_in as cupy
from device_calls import check, failure, put

import metaphrase as mp

random = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def installed():
    with cupy.installed():
        yield


def decay(y, k):
    for _ in range(30):
        y = y - 0.01 * (k * (y - 0.005 * (k * y)))
    return y


def swing(x, v):
    t = 0.0
    while t < 0.3:
        v = v + 0.01 * (0.1 * np.cos(t) - np.sin(x))
        x = x + 0.01 * v
        t += 0.01
    return x, v, t


def damped(u):
    v = np.zeros_like(u)
    for k in range(20):
        v = v * 0.9 - 0.1 * u
        u = u + v if k % 3 else u - v
    return u


def lorenz(u):
    for _ in range(20):
        u = u + 0.01 * np.array([10 * (u[1] - u[0]), u[0] * (28 - u[2]) - u[1], u[0] * u[1] - 8 / 3 * u[2]])
    return u


def saved(x, y):
    out = np.zeros(12)
    for k in range(12):
        x, y = x + 0.1 * y, y - 0.1 * x
        out[k] = x
    return out


def normed(x):
    for _ in range(9):
        x = x / np.sqrt(np.sum(x * x, axis=1, keepdims=True)) + 0.1
    return x


def picked(x, k):
    s = 0.0
    for j in range(10):
        s += x[j] * x[k[j]]
    return s


def settled(y0):
    y = np.array([y0, 0.0])
    for _ in range(100):
        new = y + 0.1 * np.array([y[1], -y[0] - y[1]])
        if np.max(np.abs(new - y)) < 1e-3:
            break
        y = new
    return y


def until(y0, end):
    y, t = np.array([y0, 0.0]), 0.0
    while True:
        new = y + 0.1 * np.array([y[1], -y[0]])
        t += 0.1
        if t > end:
            break
        y = new
    return y


VECTOR, OTHER, MATRIX = random.random(50), random.random(50) + 0.5, random.random((50, 3))
ONE = {  # that are one kernel of elements or lanes, beside those of numbers
    "decay": (decay, (VECTOR, OTHER), ("f64[n]", "f64[n]")),
    "decay of lanes": (mp.vmap(decay), (VECTOR, OTHER), ("f64[n]", "f64[n]")),
    "decay of a matrix": (decay, (MATRIX, MATRIX + 1), ("f64[n, m]", "f64[n, m]")),
    "slopes": (mp.vmap(mp.grad(decay)), (VECTOR, OTHER), ("f64[n]", "f64[n]")),
    "swing": (swing, (VECTOR, OTHER), ("f64[n]", "f64[n]")),
    "damped": (damped, (VECTOR,), ("f64[n]",)),
    "slopes of damped": (mp.grad(lambda u: damped(np.sin(u)).sum()), (VECTOR,), ("f64[n]",)),
    "lorenz": (mp.vmap(lorenz), (MATRIX,), ("f64[n, 3]",)),
    "tangents of lorenz": (mp.vmap(mp.jacfwd(lorenz)), (MATRIX,), ("f64[n, 3]",)),
    "a state that is kept or replaced": (mp.vmap(settled), (VECTOR,), ("f64[n]",)),
    "the same, in another time": (mp.vmap(until), (VECTOR, OTHER), ("f64[n]", "f64[n]")),
    "saved": (mp.vmap(saved), (VECTOR, OTHER), ("f64[n]", "f64[n]")),
    "picked": (
        mp.vmap(picked),
        (random.random((40, 10)), random.integers(-10, 10, (40, 10))),
        ("f64[n, 10]", "i64[n, 10]"),
    ),
    "rows": (normed, (random.random((40, 5)),), ("f64[n, 5]",)),
    "rows of a hundred": (normed, (random.random((40, 100)),), ("f64[n, 100]",)),
}


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", ONE)
def test_one_kernel(name):
    f, arrays, types = ONE[name]
    text = mp.source(f, *types, stage="cuda")
    host = text.partition("\ndef ")[2]
    assert "for " not in host and "while " not in host, host
    assert len(re.findall(r"c\.(?:each|rows)(?:_checked)?\(", host)) == 1, host
    jitted = mp.jit(f)
    for n in (2, 40, 1, 7):  # the second program serves all sizes from 2 on
        given = [a[:n] for a in arrays]
        check(jitted(*put(*given)), mp.jit(f)(*given), rtol=1e-11, atol=1e-12)


def test_slopes_of_a_state_that_is_kept_or_replaced():
    """What the way back needs grows in each lane."""
    f = mp.vmap(mp.jacrev(settled))
    check(mp.jit(f)(*put(VECTOR[:9])), mp.jit(f)(VECTOR[:9]), rtol=1e-11, atol=1e-12)


def heat(u):
    for _ in range(6):
        u = np.concatenate([u[:1], u[1:-1] + 0.1 * (u[2:] - 2 * u[1:-1] + u[:-2]), u[-1:]])
    return u


def mixed(u):
    for _ in range(6):
        u = u * 0.5 + u.sum()
    return u


@pytest.mark.parametrize("f", [heat, mixed])
def test_what_elements_need_of_one_another_stays_with_the_host(f):
    assert "for i in range(6)" in mp.source(f, "f64[n]", stage="cuda").partition("\ndef ")[2]
    for n in (4, 50):
        check(mp.jit(f)(*put(VECTOR[:n])), f(VECTOR[:n]), rtol=1e-12)


def exchanged(x, k):
    v = x + k
    for i in range(4):
        for _ in range(i):
            x, v = 0.5 * x + np.sin(v), k
    return x, v


def test_rows_of_arrays_that_change_places(monkeypatch):
    """A row's iteration keeps nothing for another one: the checker, and who looks for races, have nothing to say."""
    monkeypatch.setenv("METAPHRASE_CHECK", "1")
    monkeypatch.setenv("CUEMU_RACES", "1")
    x, k = random.random((9, 2)), random.random((9, 2))
    check(mp.jit(exchanged)(*put(x, k)), exchanged(x, k), rtol=1e-12)


def test_few_long_rows_stay_with_the_host():
    """Eight lanes of a long array are work for the whole device in each round, and for eight blocks of it otherwise."""
    assert "for i in range(6)" in mp.source(mp.vmap(heat), "f64[8, n]", stage="cuda").partition("\ndef ")[2]
    u = random.random((8, 300))
    check(mp.jit(mp.vmap(heat))(*put(u)), mp.vmap(heat)(u), rtol=1e-12)


def test_a_failure_in_rounds():
    x, k = random.random((40, 10)), random.integers(-10, 10, (40, 10))
    k[7, 3] = 12
    kind, message, file, line = failure(mp.jit(mp.vmap(picked)), *put(x, k))
    assert kind is IndexError and "12" in message and line == picked.__code__.co_firstlineno + 3


def test_what_is_stored_before_a_failure_is_seen():
    """The array is the caller's, who may catch the error: rounds stay one after the other."""

    def stepped(y, k):
        for t in range(5):
            y[:] = y + k[t]
            y[:] = y * y[k]
        return y.sum()

    y, k = np.ones(5), np.array([0, 1, 7, 0, 1])
    (device_y,) = put(y)
    failure(mp.jit(stepped), device_y, *put(k))
    with pytest.raises(IndexError):
        stepped(y, k)
    np.testing.assert_array_equal(device_y.get(), y)


def test_arrays_of_elements_are_variables():
    """Nothing goes through memory between rounds."""
    text = mp.source(mp.vmap(decay), "f64[n]", "f64[n]", stage="cuda")
    (loop,) = re.findall(r"\n        for \(i64 \w+ = 0; \w+ < 30.*?\n        }", text, re.S)
    assert "y_1[" not in loop and "k[i]" in loop
    large = mp.grad(lambda u: np.sum(np.sin(damped(np.sin(u) * u))))  # what the way back needs of each round
    u = random.random(60)
    check(mp.jit(large)(*put(u)), large(u), rtol=1e-11)
