"""Sums of floats that loops of the user's carry, whose iterations are long: threads work out what is added, and the sum
is Python's to the bit, whatever the number of iterations, threads and blocks.

In: loops as people write them. Out: Python's results; which loops are parted so.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from carried_loops import DIVIDED, INPUTS, ORDERED, flat
from thread_counts import thread_counts

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.pipeline import finished

SMALL = replace(CPU, a_part=20, few=2, terms_from=1)
random = np.random.default_rng(13)


def paths(x):
    """A price by simulation: an inner loop that waits, and a sum that a branch decides."""
    total, inside = 0.0, 0
    for i in range(len(x)):
        s = 1.0
        for j in range(5):
            s *= np.exp(0.1 * x[(i + j) % len(x)])
        if s > 1.0:
            total += s - 1.0
            inside += 1
    return total, inside


def several_at_a_time(x):
    s = -0.0
    p = 1.0
    for i in range(len(x)):
        a = np.sin(x[i])
        s = s + a + x[i] * x[i] - 0.25
        if a > 0.2:
            s -= a
            p *= 1 + a
        elif a < -0.2:
            p = 0.5 * p
    return s, p


def nothing_added(x):
    """A zero that has a sign keeps it."""
    s, t = -0.0, 0.0
    for i in range(len(x)):
        if np.tanh(x[i]) > 2:
            s += x[i]
        t += -0.0 * abs(x[i])
    return s, t


def with_an_extreme(x):
    total, best, where = 0.0, -np.inf, -1
    for i in range(len(x)):
        v = np.cos(x[i]) * x[i]
        total += v
        if v > best:
            best, where = v, i
    return total, best, where


def of_complex_numbers(x):
    z = 1j * x[0]
    for i in range(len(x)):
        z += np.exp(1j * x[i])
    return z.real, z.imag


def a_product_of_complex_numbers(x):
    z = complex(np.inf, 1.0)
    for i in range(len(x)):
        if np.sin(x[i]) > 0:
            z = z * np.exp(1j * x[i])
    return z.real, z.imag


def in_single_precision(x):
    y = x.astype(np.float32)
    s = np.float32(0)
    for i in range(len(y)):
        s = s + np.sqrt(abs(y[i]))
    return s


def in_rounds(x):
    out = np.zeros(3)
    for step in range(3):
        s = out[0]
        for i in range(len(x)):
            s += np.cos(x[i] * step)
        out[step] = s
    return out


def an_array_beside(x):
    y, s = np.zeros(len(x)), 0.0
    for i in range(len(x)):
        y[i] = np.sin(x[i])
        s += y[i] * x[i]
    return y, s


def added_in_an_inner_loop(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(3):
            s += np.sin(x[i] * j)
    return s


def read_between(x):
    s, y = 0.0, np.zeros(len(x))
    for i in range(len(x)):
        s += np.sin(x[i])
        y[i] = s
    return s, y


PARTED = {
    f.__name__: f
    for f in (
        paths,
        several_at_a_time,
        nothing_added,
        with_an_extreme,
        of_complex_numbers,
        in_single_precision,
        in_rounds,
        an_array_beside,
    )
} | {name: DIVIDED[name] for name in ("integral", "statistics", "sums_in_rounds")}
WHOLE = {"read_between": read_between, "a_product_of_complex_numbers": a_product_of_complex_numbers} | ORDERED


def program(function, x, target=SMALL):
    call = take_apart((x,), {})
    return schedule(finished(program_of(function, call.structure, call.specs).function), target, checked=True)


def is_parted(function, x):
    made = program(function, x)
    return any("_terms" in buf.name for fn in (made.entry, *made.fns) for buf in fn.bufs)


def same(mine, function, x):
    with np.errstate(all="ignore"):
        wanted = flat(function(x))
    for one, other in zip(mine, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
        if other.dtype.kind == "f":
            numbers = ~np.isnan(other)
            np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])


@pytest.mark.parametrize("target", [SMALL, replace(SMALL, noted=16)], ids=["one block", "blocks"])
@pytest.mark.parametrize("kind", [k for k in INPUTS if k != "infinities"])
@pytest.mark.parametrize("name", PARTED)
def test_python_has_the_same_sum(name, kind, target):
    with np.errstate(all="ignore"):
        same(python_loops.run(program(PARTED[name], INPUTS[kind], target), INPUTS[kind]), PARTED[name], INPUTS[kind])


@pytest.mark.parametrize("name", PARTED | WHOLE)
def test_which_are_parted(name):
    assert is_parted((PARTED | WHOLE)[name], INPUTS["many"]) == (name in PARTED)


def test_long_iterations_alone_are():
    assert "_terms" in mp.source(paths, "f64[n]", stage="cython")
    for function in (an_array_beside, added_in_an_inner_loop):
        assert "_terms" not in mp.source(function, "f64[n]", stage="cython")
    assert "_terms" not in mp.source(paths, np.zeros(50), stage="cython")


@pytest.mark.optimized
def test_threads_add_in_order():
    x = random.normal(size=150_000)
    slope = mp.jit(mp.grad(lambda x, a: paths(a * x)[0], argnums=1))
    jitted = mp.jit(paths)
    results = {(jitted(x)[0].tobytes(), slope(x, 0.5).tobytes()) for _ in thread_counts(1, 2, 3)}
    assert len(results) == 1
    h = 1e-6
    difference = (jitted((0.5 + h) * x)[0] - jitted((0.5 - h) * x)[0]) / (2 * h)
    np.testing.assert_allclose(slope(x, 0.5), difference, rtol=1e-5)
    for n in (0, 1, 65535, 65536, 65537):
        np.testing.assert_allclose(jitted(x[:n]), paths(x[:n]), rtol=1e-13)
