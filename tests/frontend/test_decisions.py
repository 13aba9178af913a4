"""Whether values alone say which way a program takes."""

from __future__ import annotations

import numpy as np
import pytest

from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.decisions import decided


def branch_on_a_float(x, t, k):
    return np.sin(x) if t * 2.0 > 1.0 else x


def branch_on_both(x, t, k):
    return np.sin(x) if t * x[0] > 1.0 else x


def branch_on_an_integer_and_another_number(x, t, k):
    return np.sin(x) if k + 1 < x.argmax() else x


def branch_on_a_mean(x, t, k):
    return np.sin(x) if x[0] + k > 1.0 else x


def no_branch(x, t, k):
    return np.where(x > t, x * k, t)


def rounds(x, t, k):
    for i in range(k):
        x = x + i
    return x


def rounds_of_a_test(x, t, k):
    u = x.sum()
    while u > t:
        u = u - 1.0
    return u


def branch_in_a_loop(x, t, k):
    for i in range(3):
        if t > 1.0:
            x = x * i
    return x


def carried_through_a_loop(x, t, k):
    for i in range(3):
        t = t + 1.0
        if x[i] > 0.5:
            x = x * i
    return x, t


def sizes(x, t, k):
    return np.zeros(k)


@pytest.mark.parametrize(
    "function, by_t, by_k",
    [
        (branch_on_a_float, True, False),
        (branch_on_both, False, False),
        (branch_on_an_integer_and_another_number, False, True),
        (branch_on_a_mean, False, False),
        (no_branch, False, False),
        (rounds, False, True),
        (rounds_of_a_test, False, False),
        (branch_in_a_loop, True, False),
        (carried_through_a_loop, False, False),
        (sizes, False, True),
    ],
)
def test_what_values_decide(function, by_t, by_k):
    program = stage(function, (np.array([0.25, 0.5, 1.0]), np.float64(0.5), 2)).function
    params = {param.name: param for param in program.params}
    assert decided(program.lets, {params["t"]}) == by_t
    assert decided(program.lets, {params["k"]}) == by_k
