"""Carries that are always equal are one; those that only begin so, or change places with another one, are not."""

import re

import numpy as np
import pytest

import metaphrase as mp


def shrinking(z, c, steps):
    for _ in range(steps):
        z = z * z + c
        keep = z < 4.0
        z, c = z[keep], c[keep]
    return z


def twins(x, n):
    best, last = x, x
    for k in range(n):
        last = best * 0.5 + last * 0.25 + k
        best = last
    return best + last


def exchanged(x, n):
    a, b = x, x
    for _ in range(n):
        a, b = b, a
    return a - b + x


def apart_later(x, n):
    a, b, c = x, x, 0.0
    for k in range(n):
        a, b = a + c, b * 1.5
        c = c + k
    return a, b


def until(x):
    a, b = x * 0.01, x * 0.01
    while a < x and b < x:
        b = a * 3.0
        a = b
    return a + b


CALLS = {
    shrinking: (np.linspace(-2, 2, 50), np.linspace(-2, 2, 50), 5),
    twins: (np.arange(3.0), 4),
    exchanged: (np.arange(3.0), 3),
    apart_later: (2.0, 5),
    until: (50.0,),
}
CARRIES = {shrinking: 3, twins: 1, exchanged: 0, apart_later: 3, until: 1}


@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_values_and_carries(function):
    args = CALLS[function]
    want = function(*args)
    for jitted in (mp.jit(function), mp.jit(lambda *a: mp.jvp(lambda x: function(x, *a[1:]), a[:1], a[:1])[0])):
        got = jitted(*args)
        for a, b in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
            np.testing.assert_allclose(a, b, rtol=1e-11)
    text = mp.source(function, *args, stage="transformed")
    loops = re.findall(r"roles=Roles\(\d+, (\d+)", text)
    assert sum(map(int, loops)) == CARRIES[function], text


def test_arrays_that_shrink_together_have_one_length():
    text = mp.source(shrinking, "f64[n]", "f64[n]", "i64")
    assert "z_size" in text and "c_size" not in text and "could not be broadcast" not in text


def test_gradients_of_equal_carries():
    def total(x):
        return twins(x, 4).sum() + exchanged(x, 3).sum() + until(x[0])

    x = np.arange(1.0, 4.0)
    want = [(total(x + step) - total(x - step)) / 2e-3 for step in 1e-3 * np.eye(3)]  # it is linear
    np.testing.assert_allclose(mp.jit(mp.grad(total))(x), want, rtol=1e-9)
