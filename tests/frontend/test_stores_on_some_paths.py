"""Arrays that may be one of several, stored into in nested loops and branches; values computed before a store
that a nested branch makes, and read after it. As in Python: run on NumPy, and natively."""

import numpy as np
import pytest

import metaphrase as mp

X, Y = np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([2.0, 2.0, 2.0, 2.0, 1.0])


def replaced_on_one_path(x, y, n):
    y = y.copy()
    if x[1] > 1.0:
        y = x.copy()
    v = np.where(y > x, y, 1.0)
    for i in range(n):
        y[1] += y[i]
        for _ in range(n):
            v = abs(x)
    return y, x < v


def read_before_and_stored_inside(x, y, n):
    x = x.copy()
    w = y + y
    if np.max(y[1:]) > x[3]:
        x = x * 2.0
    v = x + y
    for _ in range(n):
        for k in range(n):
            x[k] += v[1]
            w = w.copy()
    return v, v + 3.0 * x + w


def one_of_two_names(x, y, n):
    v = x
    x = np.minimum(y, v)
    if y[0] <= v[2]:
        s = np.sum(x)
    else:
        x = x.copy()
        s = 0.0
    for _ in range(3):
        x[:] = np.roll(x, 1)
        if v[4] > v[3] + 5:
            return np.where(y > v, y, y), x.copy()
    return y + s, y + 5.0 * x


def two_steps_apart(x, y, n):
    x = x.copy()
    if np.max(y[1:]) < np.max(x[1:]):
        m = x > y
    else:
        x = x.copy()
        m = x < y
    if np.sum(y) <= x[1]:
        x = x.copy()
    v = x
    for _ in range(4):
        for _ in range(4):
            v[v > 1.0] = np.max(v[1:])
        for _ in range(n):
            x = x.copy()
    return v, np.where(m, 1.0, np.sum(x))


def stored_through_either(x, y, n):
    x, y = x.copy(), y.copy()
    both = x
    if y[0] > 1.0:
        both = y
    for i in range(n):
        if i > 0:
            both[i] = 9.0
        else:
            x[i] = 7.0
        y[i] += both[i]
    return x, y, both


def stored_in_an_inner_branch(x, y, n):
    a = np.minimum(x, 3.0)
    m = a[1:] == x[1:]
    if y[0] > 0:
        if x[1] > 0:
            a[0:2] = 5.0
            s = np.sum(a)
        else:
            s = 1.0
    else:
        s = 0.0
    return np.where(m, s, 0.0)


def rebound_in_a_branch(x, y, n):
    a = np.minimum(x, 3.0)
    m = a == x
    if y[0] > 0:
        for _ in range(4):
            a = a + 1
        s = np.sum(a)
    else:
        s = 0.0
    return np.where(m, s, 0.0)


PROGRAMS = (
    replaced_on_one_path,
    read_before_and_stored_inside,
    one_of_two_names,
    two_steps_apart,
    stored_through_either,
    stored_in_an_inner_branch,
    rebound_in_a_branch,
)


@pytest.mark.parametrize("native", (False, True))
@pytest.mark.parametrize("function", PROGRAMS)
def test_stores_on_some_paths(function, native):
    with mp.config(native=native):
        staged = mp.jit(function)
        for x, y, n in ((X, Y, 3), (Y, X, 2), (-X, Y - 2.0, 4), (X + 2.0, -Y, 0)):
            wanted, found = function(x.copy(), y.copy(), n), staged(x.copy(), y.copy(), n)
            for want, got in zip(np.atleast_1d(wanted), np.atleast_1d(found)):
                np.testing.assert_array_equal(got, want)


def test_a_mask_of_what_a_branch_stores_into():
    """The derivative of clip needs where it clipped, of the array before the store."""

    def function(x, y):
        u = np.array([2.0, 5.0, 8.0]) + np.sin(x)
        a = np.clip(u, -40.0, 40.0)
        if x > y:
            return 0.5 * x
        a[1:] -= a[:-1]
        return np.sum(np.tanh(a))

    x, step = -1.901, 1e-6
    wanted = (function(x + step, 0.5) - function(x - step, 0.5)) / (2 * step)
    for native in (False, True):
        with mp.config(native=native):
            assert mp.jit(mp.grad(function))(x, 0.5) == pytest.approx(wanted, rel=1e-7)


def test_rows_of_a_batch_do_not_change_places_with_a_buffer():
    """A carry that lives in one row of a batch, inside a branch: new values are copied into it."""

    def function(x, y, n):
        x = x.copy()
        if np.max(x[1:]) != 1.0:
            for _ in range(n):
                for _ in range(n):
                    x[x > 1.0] = np.max(x[1:])
        return np.sum(np.tanh(0.4 * y + 0.5 * x))

    grad = mp.grad(function)
    x = np.array([[2.02, -0.97, -2.95, 4.07, 4.09], [1.02, 0.03, 0.05, -0.93, 3.09]])
    y = np.array([[1.03, 0.06, -1.91, 2.12, 3.15], [0.03, -2.94, -2.91, -1.88, 1.15]])
    found = mp.jit(mp.vmap(grad, (0, 0, None)))(x, y, 2)
    with mp.config(native=False):
        wanted = [mp.jit(grad)(a, b, 2) for a, b in zip(x, y)]
    np.testing.assert_allclose(found, wanted, 1e-12)


def test_a_result_is_not_made_where_its_old_value_is_still_read():
    """The tangent of minimum compares with the array that the branch replaces."""

    def function(x, y):
        y = y.copy()
        low = x + y
        high = y * 1.0
        if y[0] < np.sum(y):
            y[0] = x[3]
        else:
            for _ in range(3):
                high = np.clip(y, -4.0, 9.0)
                low = np.minimum(high, low)
        return np.sum(low) + np.sum(high)

    def tangent(x, y, dx, dy):
        return mp.jvp(function, (x, y), (dx, dy))

    chance = np.random.default_rng(0)
    args = 0.5 * chance.standard_normal(5), -0.5 * chance.standard_normal(5), *chance.standard_normal((2, 5))
    with mp.config(native=False):
        wanted = mp.jit(tangent)(*args)
    with mp.config(contract=False):
        np.testing.assert_allclose(mp.jit(tangent)(*args), wanted, 1e-12)


def test_agreement_costs_nothing_in_the_loop():
    """The array is one of two: neither is read whole in each iteration."""

    def function(x, n):
        y = x.copy()
        if x[0] > 1.0:
            y = x * 2.0
        for i in range(n):
            y[i] += 1.0
        return y

    assert "where" not in mp.source(function, X, 3)
