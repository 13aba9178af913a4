"""Functions that a loop calls of what does not wait are called in a loop of their own: the same numbers, to the bit.

In: loops as people write them. Out: what the core language's evaluation gives, with rows of a few iterations and of
many, for loops of no, few and many iterations; which loops are parted so, and which are not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.schedule.nest import touched, walk
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.core.evaluate import evaluate
from metaphrase.pipeline import finished

SHORT = replace(CPU, called_together=8, vector_from=2)
random = np.random.default_rng(14)


def growth(x, a):
    s, top = 1.0, 0.0
    for i in range(len(x)):
        s *= np.exp(0.1 * a - 0.2 * x[i])
        if s > top:
            top = s
    return s, top


def filtered(x, a):
    y, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        v = x[i] - a
        s = 0.9 * s + np.sin(v) * np.exp(-v * v)
        y[i] = s + v
    return y


def through_an_array(x, a):
    y = np.ones(len(x) + 1)
    for i in range(len(x)):
        y[i + 1] = 0.5 * y[i] + np.log(1 + a + abs(x[i]))
    return y


def random_walk(x, a):
    p = q = far = 0.0
    for i in range(len(x)):
        p += np.cos(a * x[i])
        q += np.sin(a * x[i])
        d = p * p + q * q
        if d > far:
            far = d
    return far


def in_rows(x, a):
    out = np.zeros(len(x))
    for i in range(len(x)):
        s = x[i]
        for j in range(i):
            s = s * np.exp(-a * x[j]) + 0.01 * np.tanh(x[j])
        out[i] = s
    return out


def behind_a_branch(x, a):
    """What is called on one side only stays there; the test is of every iteration."""
    s = 0.0
    for i in range(len(x)):
        if np.exp(x[i]) > s:
            s = s + np.sin(a * s)
        else:
            s = s * 0.5 + np.cos(x[i])
    return s


def in_single_precision(x, a):
    y, s = x.astype(np.float32), np.float32(0)
    for i in range(len(y)):
        s = s * np.float32(0.5) + np.exp(-y[i] * y[i])
    return s


def logistic_map(x, a):
    s = a
    for i in range(len(x)):
        s = np.sin(s + x[i])
    return s


def one_sum(x, a):
    """The C compiler makes vectors of it."""
    s = a
    for i in range(len(x)):
        s += np.exp(x[i])
    return s


def that_may_fail(x, a):
    s = 1.0
    for i in range(len(x)):
        if s > 1e30:
            raise OverflowError("too large")
        s *= np.exp(a * x[i])
    return s


def of_what_is_stored(x, a):
    y = x.copy()
    for i in range(len(x) - 1):
        y[i + 1] = y[i] * 0.3 + np.exp(y[i + 1] - a)
    return y


def along_memory(x, a):
    """Rows of a matrix, over which the inner loop goes down: it is turned inside out."""
    z, out = np.outer(x, x), np.zeros(len(x))
    for j in range(len(x)):
        s = 0.0
        for i in range(len(x)):
            s = s * a + np.exp(-z[i, j])
        out[j] = s
    return out


AHEAD = {
    f.__name__: f
    for f in (growth, filtered, through_an_array, random_walk, in_rows, behind_a_branch, in_single_precision)
}
WHOLE = {f.__name__: f for f in (logistic_map, one_sum, that_may_fail, of_what_is_stored)}


def core(function, *args):
    call = take_apart(args, {})
    return finished(program_of(function, call.structure, call.specs).function)


def is_parted(program) -> bool:
    inside = [s for fn in (program.entry, *program.fns) for s in walk(fn.body)]
    return any(buf.name.split("_")[0] == "row" for s in inside for buf in touched(s))


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31])
@pytest.mark.parametrize("name", AHEAD | WHOLE | {"along_memory": along_memory})
def test_the_same_to_the_bit(name, size):
    function = (AHEAD | WHOLE | {"along_memory": along_memory})[name]
    jitted, x = core(function, random.normal(size=size), 0.7), random.normal(size=size)
    for target in (SHORT, CPU):
        got = python_loops.run(schedule(jitted, target, checked=True), x, np.float64(0.7))
        for mine, theirs in zip(got, evaluate(jitted, x, np.float64(0.7)), strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("name", AHEAD | WHOLE)
def test_which_are_parted(name):
    x = random.normal(size=40)
    assert is_parted(schedule(core((AHEAD | WHOLE)[name], x, 0.7), CPU)) == (name in AHEAD)


def test_a_loop_that_will_run_along_memory_stays():
    assert "row" not in mp.source(along_memory, np.ones(40), 0.7, stage="cython")
    assert "row" in mp.source(in_rows, np.ones(40), 0.7, stage="cython")


def test_sizes_that_the_run_says():
    text = mp.source(filtered, "f64[n]", "f64", stage="cython")
    assert "row[256]" in text
    jitted = mp.jit(filtered)
    for size in (3, 5, 0, 1, 255, 256, 257, 1000):
        x = random.normal(size=size)
        np.testing.assert_allclose(jitted(x, 0.7), filtered(x, 0.7), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["growth", "filtered", "random_walk"])
def test_derivatives_and_batches(name):
    function, x = AHEAD[name], random.normal(size=12)
    total = lambda x, a: np.sum(function(x, a)) if name == "filtered" else last(function(x, a))
    slope, h = mp.jit(mp.grad(total, argnums=1))(x, 0.7), 1e-6
    np.testing.assert_allclose(slope, (total(x, 0.7 + h) - total(x, 0.7 - h)) / (2 * h), rtol=1e-5)
    batch = mp.jit(mp.vmap(total, in_axes=(None, 0)))(x, np.array([0.1, 0.7, 1.3]))
    np.testing.assert_allclose(batch, [total(x, a) for a in (0.1, 0.7, 1.3)], rtol=1e-12)


def last(result):
    return result[-1] if isinstance(result, tuple) else result
