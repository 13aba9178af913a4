"""Sizes whose products leave 64 bits, and arrays that no process has room for: an exception, not a number.

In: programs called with small arrays first, so that their sizes are symbols then. Out: Python's number where
it fits, OverflowError where it doesn't; MemoryError before any loop runs.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate

MANY = np.ones(3_000_000, np.uint8)  # n**2 fits in 64 bits, n**3 does not


def cube_less(x):
    n = len(x)
    return n * (n * n - 1)


def spread(x):
    n = len(x)
    return x.sum() / (n * (n * n - 1))


def remainder_of_power(x):
    n = len(x)
    return n * n * n * n % 1000


def negative_power(x):
    n = len(x)
    return -n * n * n * n


def power_as_bound(x):
    n = len(x)
    return x[: n * n * n // 2].sum()


def rounds_of_power(x):
    n = len(x)
    rounds = 0
    for _ in range(n * n * n):
        rounds += 1
        if rounds == 3:
            break
    return rounds


def index_times_size(x):
    n = len(x)
    total = 0
    for i in range(min(n, 20)):
        total += (i * n) * (n * n + 1)
    return total


def taken_on_one_side(x):
    n = len(x)
    return n * n * n if n < 1000 else n * n


def in_a_loop(x):
    n = len(x)
    total = 0
    for i in range(3):
        if n < 1000:
            total += n * n * n + i
    return total


OVERFLOWS = [
    cube_less, spread, remainder_of_power, negative_power, power_as_bound, rounds_of_power, index_times_size,
]  # fmt: skip


@pytest.fixture(params=[True, False], ids=["native", "NumPy"])
def way(request):
    with mp.config(native=request.param):
        yield


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", [*OVERFLOWS, taken_on_one_side, in_a_loop])
def test_products_of_sizes_are_pythons(function, way):
    translated = mp.jit(function)
    for size in (3, 4, 2, 900):
        assert translated(MANY[:size]) == function(MANY[:size])


@pytest.mark.parametrize("function", OVERFLOWS)
def test_products_of_sizes_that_leave_64_bits_raise(function):
    translated = mp.jit(function)
    translated(MANY[:3])
    with pytest.raises(OverflowError, match="64 bits"):
        translated(MANY)


@pytest.mark.parametrize("function", [taken_on_one_side, in_a_loop])
def test_what_is_not_computed_does_not_raise(function):
    translated = mp.jit(function)
    assert [translated(MANY[:k]) for k in (3, 4)] == [function(MANY[:k]) for k in (3, 4)]
    assert translated(MANY) == function(MANY)


def test_the_number_of_elements_is_not_tested():
    """An argument has them: their product fits."""

    def mean(x):
        return x.sum() / (x.shape[0] * x.shape[1])

    text = mp.source(mean, mp.ShapeDtypeStruct((Sym("n"), Sym("m")), np.float64), stage="loops")
    assert "Failed" not in text


def sum_of_zeros(n):
    return np.zeros(n).sum()


def sum_of_table(n):
    return (np.ones((n, 3)) * 2).sum()


def sum_of_range(n):
    return np.arange(n + 2).sum()


def first_of_identity(n):
    return np.eye(n, 5)[0, 0]


def made_in_a_loop(n):
    total = 0.0
    for k in range(2):
        total += np.full(n + k, 0.5).sum()
    return total


def runs(function, way):
    """The function as one of the stages has it."""
    if way == "core":
        staged = stage(function, (3,))
        return lambda n: evaluate(staged.function, *staged.arguments((n,)))[0]
    if way == "NumPy source":
        scope = {}
        exec(mp.source(function, 3), scope)
        return scope[function.__name__]
    return mp.jit(function)


@pytest.mark.parametrize("way", ["native", "NumPy", "NumPy source", "core"])
@pytest.mark.parametrize("function", [sum_of_zeros, sum_of_table, sum_of_range, first_of_identity, made_in_a_loop])
def test_arrays_that_no_process_has_room_for(function, way):
    run = runs(function, way)
    with mp.config(native=way == "native"):
        assert run(3) == function(3)
        for size in (2**50, 2**57):
            for called in (function, run):
                with pytest.raises(MemoryError, match="Unable to allocate|no memory for the arrays"):
                    called(size)


@pytest.mark.parametrize("size, shape", [(12, (-1, 5)), (12, (-1, 0)), (0, (0, -1)), (12, (-1, -2)), (12, (5, 4))])
def test_a_shape_of_numbers_into_which_the_elements_do_not_fit(size, shape, way):
    def reshaped(x, n, m):
        return x.reshape(n, m)

    for run in (reshaped, mp.jit(reshaped)):
        with pytest.raises(ValueError, match="cannot reshape array of size|one unknown dimension"):
            run(np.zeros(size), *shape)
