"""A Python number on one path and a NumPy number of a narrower type on another: no value is lost."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp


def sentinel(a, s):
    m = 1e300
    for k in range(len(a)):
        if a[k] > 2:
            m = a[k]
    return m


def third(a, s):
    s = 1 / 3
    if a[0] < 2:
        s = a[1]
    return s * np.float64(3), a * s


def run_of_zeros(a, s):
    t = 0
    for v in a:
        if v == 0:
            t = t + 1
        else:
            t = v
    return t


def counted_behind_a_join(a, s):
    t = 0
    for v in a:
        if v != 0:
            t = v
        t = t + 1
    return t


def too_large(a, s):
    m = 999
    for k in range(len(a)):
        if a[k] > 2:
            m = a[k]
    return m, m == a


def halved(a, s):
    e = 1.0
    for _ in range(50):
        e = e * 0.5
        if a[0] > 3:
            e = a[0]
    return e


def nested(a, s):
    m = s
    for v in a:
        for w in a:
            if v > m * w:
                m = v
        m = m * 0.5
    return m


def argument_or_element(a, s):
    return (s if a[0] < 2 else a[1]) * 0.1


def returned_early(a, s):
    for v in a:
        if v > 2:
            return v
    return 1e-60


def stepped(a, s):
    h = s
    while h > 1e-3:
        if a[0] > h:
            h = h * a[1] * 0.25
        else:
            h = h / 3
    return h


def gathered(a, s):
    out, last = [], [s]
    for v in a:
        if v > 0:
            out.append((s if v > 2 else v, 1))
        last.append(s if v > 2 else last[-1])
        if v > 1:
            last.pop()
    return float(last[-1]), float(out[-1][0]) if len(out) > 0 else 0.0


WIDENED = [sentinel, third, run_of_zeros, counted_behind_a_join, too_large, halved, nested]
WIDENED += [argument_or_element, returned_early, stepped, gathered]


def accumulated(a, s):
    t = 0.0
    for v in a:
        t += v
    return t / 7


def best(a, s):
    m = 0
    for v in a:
        for w in a:
            if v * w > m:
                m = v * w
    return m


def with_argument(a, s):
    for v in a:
        s = s + v
    return s


def with_constant(a, s):
    t = 0.1
    k = 0
    while k < len(a):
        t = t * 0.5 + a[k]
        k += 1
    return t


def until(a, s):
    for v in a:
        s = s + v
        if s > 4:
            break
    return s


def hashed(a, s):
    h = 7
    for v in a:
        h = h * 3 + v
    return h


NARROW = [accumulated, best, with_argument, with_constant, until]


def values(dtype, n=6):
    return (np.array([1, 0, 3, 0, 0, 2], dtype) if n == 6 else np.zeros(n, dtype)), 1 / 3


def alike(wanted, got):
    if type(wanted) is not tuple:
        wanted, got = (wanted,), (got,)
    for one, other in zip(wanted, got, strict=True):
        single = np.asarray(one).dtype in (np.float16, np.float32)
        np.testing.assert_allclose(np.float64(other), np.float64(one), rtol=1e-3 if single else 1e-12)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("function", WIDENED)
def test_no_value_is_lost(function, native):
    with mp.config(native=native):
        jitted = mp.jit(function)
        for dtype in (np.float32, np.uint8, np.float16, np.int16, np.float64, np.uint32):
            a, s = values(dtype)
            alike(function(a, s), jitted(a, s))
            alike(function(a[::-1].copy(), s), jitted(a[::-1].copy(), s))
        a, s = values(np.uint8, 300)
        alike(function(a, s), jitted(a, s))


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("function", NARROW)
def test_what_is_narrow_in_numpy_stays_narrow(function, native):
    with mp.config(native=native):
        jitted = mp.jit(function)
        for dtype in (np.float32, np.float16, np.float64):
            a, s = values(dtype)
            wanted, got = function(a, s), jitted(a, s)
            assert got == wanted and (type(got) is type(wanted) or function is until)
            nothing = function(a[:0], s), jitted(a[:0], s)
            assert nothing[0] == nothing[1]


def test_integers_wrap_where_numpy_wraps():
    a = np.arange(9, dtype=np.uint16) * 977
    with np.errstate(over="ignore"):
        wanted = hashed(a, 0)
    assert mp.jit(hashed)(a, 0) == wanted and type(mp.jit(hashed)(a, 0)) is type(wanted)
    assert mp.jit(hashed)(a[:0], 0) == 7


def labels(x, c):
    found = np.zeros(len(x))
    for _ in range(5):
        found = np.argmin((x[:, None] - c[None]) ** 2, 1)
        c = c * 0.9
    return c[found]


def replaced(x, c):
    e = np.zeros(3)
    k = 0
    while True:
        e = np.exp(x[:3])
        k += 1
        if k > 4:
            return e


@pytest.mark.parametrize("function", [labels, replaced])
def test_an_array_replaced_in_each_iteration_has_its_new_type(function):
    x, c = np.arange(4, dtype=np.float32), np.array([0.5, 2.0], np.float32)
    wanted, got = function(x, c), mp.jit(function)(x, c)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def weighted(a, s):
    m = s
    for v in a:
        if v > 2:
            m = v * v
    return m * 3 + a[0]


@pytest.mark.parametrize("s", [0.1, 2.5])
def test_derivatives_and_lanes(s):
    a = np.array([1, 3, 2, 0.5], np.float32)
    assert mp.grad(weighted, 1)(a[::2], s) == 3 and mp.grad(weighted, 1)(a, s) == 0
    assert mp.grad(weighted, 0)(a, s).tolist() == [1, 18, 0, 0]
    rows = np.stack([a, a[::-1], a * 0.5])
    wanted = [weighted(row, s) for row in rows]
    np.testing.assert_allclose(mp.vmap(weighted, (0, None))(rows, s), wanted, rtol=1e-6)
    np.testing.assert_allclose(mp.vmap(weighted, (None, 0))(a[::2], np.array([s, 2 * s])), [3 * s + 1, 6 * s + 1])
    whole = np.array([[0, 0, 4], [0, 1, 0]], np.uint8)
    assert mp.vmap(run_of_zeros, (0, None))(whole, s).tolist() == [run_of_zeros(row, s) for row in whole]


def flag_or_element(x, t):
    s = True if t > 0 else x[0]
    return s - 2, s + 255, -s, s << 8


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2"])
def test_a_flag_of_pythons_counts(dtype):
    x = np.array([3, 7], dtype)
    assert [int(v) for v in mp.jit(flag_or_element)(x, 1)] == [-1, 256, -1, 256]
