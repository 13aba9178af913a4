"""Jacobians of functions whose results have sizes that only the run knows."""

import numpy as np
import pytest

import metaphrase as mp


def unit(x, n):
    return np.eye(n) * x[0] * x[1]


def some(x, n):
    return x[x > 0] * x[0] * x[1]


def gathered(x, n):
    values, s = [], x[0]
    while abs(s) < 5 * n:
        s = s * 1.3 + x[1]
        values.append(s * x[0])
    return np.array(values)


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", [unit, some, gathered])
@pytest.mark.parametrize(
    "transform", [mp.jacfwd, mp.jacrev, lambda f: mp.jit(mp.jacfwd(f)), lambda f: mp.jit(mp.jacrev(f))]
)
def test_of_sizes_of_the_run(function, transform):
    derivative = transform(function)
    for x in (np.array([1.0, 2.0, 0.5]), np.array([-1.0, 0.2])):
        steps = 1e-6 * np.eye(len(x))
        want = np.stack([(function(x + e, 3) - function(x - e, 3)) / 2e-6 for e in steps], -1)
        found = derivative(x, 3)
        assert found.shape == want.shape and np.allclose(found, want)


def test_of_several_arguments_and_results():
    def f(x, y, n):
        return np.zeros(n) + x[0] * y, {"some": x[x > y] ** 2}

    x, y = np.array([1.0, 2.0, 0.4]), 0.5
    for transform in (mp.jacfwd, mp.jacrev):
        (by_x, by_y), found = transform(f, (0, 1))(x, y, 2)
        assert by_x.tolist() == [[0.5, 0.0, 0.0]] * 2 and by_y.tolist() == [1.0, 1.0]
        assert found["some"][0].tolist() == [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0]]
        assert found["some"][1].tolist() == [0.0, 0.0]
