"""A function that is written out twice: what is known of the loop of one copy is not known of the other's.

In: functions with loops and branches, called twice in a row in wrappers that stage them once, with what each call is
given of its own. Out: values and derivatives of the same calls without a wrapper, and of differences.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend import stage
from metaphrase.core.build import with_own_regions
from metaphrase.core.calls import written_out
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function


def squares(y):
    z = np.zeros(len(y))
    for i in range(len(y)):
        z[i] = y[i] * y[i]
    return z


def carried(y):
    s = 1.0
    for i in range(len(y)):
        s = s * y[i]
    return y * s / 8


def chosen(y):
    z = np.zeros(len(y))
    for i in range(len(y)):
        if y[i] > 1.5:
            z[i] = y[i] ** 2 / 4
        else:
            z[i] = np.sin(y[i]) + y[i - 1]
    return z


def halved(y):
    while np.sum(y * y) > 4.0:
        y = y * np.cos(y) / 2 + 0.1
    return y


def nested(y):
    z = y * 1.0
    for i in range(len(y)):
        for j in range(i):
            z[i] = z[i] + y[j] * y[i] / 4
    return z


FUNCTIONS = [squares, carried, chosen, halved, nested]
X = np.array([1.0, 2.0, 1.7, 0.6, 1.3])
WRAPPERS = {
    "checkpoint": mp.checkpoint,
    "jit": mp.jit,
    "vmap": lambda f: lambda y: mp.vmap(f)(y[None])[0],
    "jvp": lambda f: lambda y: mp.jvp(f, (y,), (np.ones(len(y)),))[1] + y,
}


def twice(f):
    return lambda x: np.sum(f(f(x) * 0.75))


def slopes(f, x, step=1e-6):
    return np.array([(f(x + s) - f(x - s)) / (2 * step) for s in step * np.eye(len(x))])


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("native", [True, False])
def test_derivatives_of_two_calls(function, wrapper, native):
    wrapped = twice(WRAPPERS[wrapper](function))
    plain = twice((lambda y: mp.jvp(function, (y,), (np.ones(len(y)),))[1] + y) if wrapper == "jvp" else function)
    with mp.config(native=native):
        gradient = mp.jit(mp.grad(wrapped))(X)
        np.testing.assert_allclose(gradient, slopes(plain, X), rtol=2e-5, atol=1e-7)
        along = mp.grad(lambda x: mp.jvp(wrapped, (x,), (np.ones(len(x)),))[1])(X)
        np.testing.assert_allclose(along, slopes(lambda x: np.sum(mp.grad(plain)(x)), X), rtol=2e-4, atol=1e-6)
        lanes = mp.jit(mp.vmap(mp.grad(wrapped)))(np.stack([X, X[::-1] / 2]))
        np.testing.assert_allclose(lanes[0], gradient, rtol=1e-9)


def wrapped_round(a, b):
    c = np.zeros(4)
    for p in range(0, 7, 2):
        c[(p + 1) % 4] += (b[-1] if p > 1 else a[p * 2 % 7]) * b[-1]
    return c


@pytest.mark.parametrize("called", [wrapped_round, mp.checkpoint(wrapped_round)])
def test_what_is_simplified_in_one_copy_stays_in_the_other(called):
    a, b = np.array([0.2, -0.4, 0.6, 1.0, 2.0, 3.0, 0.1]), np.array([1.5, 0.7, -0.3, 2.0, 0.2, 1.1, 0.4])
    slope = mp.grad(lambda b: np.sum(called(a, b)) + np.sum(called(2 * a, b)))
    assert mp.grad(lambda b: np.sum(slope(b)))(b)[-1] == 12.0


def counted(x, n):
    y = np.zeros(20)
    for i in range(n):
        y[i] = x * i
    return y


def test_loops_of_other_lengths_share_a_body():
    once = mp.jit(counted)

    def both(x, n, m):
        return once(x, n) + 3 * once(2 * x, m)

    for n, m in ((3, 7), (7, 3), (0, 5), (12, 20)):
        np.testing.assert_array_equal(mp.jit(both)(1.5, n, m), counted(1.5, n) + 3 * counted(3.0, m))


def regions(function: Function) -> list[Function]:
    return [r for let in function.lets for region in let.regions() for r in (region, *regions(region))]


def test_each_region_is_in_one_place():
    inner = mp.jit(nested)
    function = written_out(stage(lambda x: inner(inner(x)) + inner(x * 2), (X,)).function, lambda callee: False)
    assert len({*regions(function)}) < len(regions(function))
    own = check(with_own_regions(function))
    assert len({*regions(own)}) == len(regions(own)) == len(regions(function))
    assert with_own_regions(own) is own
    np.testing.assert_array_equal(evaluate(own, X), evaluate(function, X))
