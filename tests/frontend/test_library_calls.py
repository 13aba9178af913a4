"""User code that calls what only the library of ops knows: staged, it computes what NumPy computes."""

import numpy as np
import pytest

from metaphrase.astpasses.frontend.calls.library_calls import library_handler
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.evaluate import evaluate
from metaphrase.source import ShapeError


def kron_of_norms(x, y):
    return np.kron(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=0))


def updates(x, y):
    filled = np.concatenate([x, y])
    np.fill_diagonal(filled, 7.0)
    np.put_along_axis(filled, np.array([[0], [1], [2], [3], [0], [1]]), -1.0, 1)
    return filled


def scattered(x, y):
    total = np.zeros(3)
    np.put(total, [0, 2], np.median(x))
    return total + np.diff(y, axis=1)[:, 0]


def several(x, y):
    left, right = np.array_split(x, 2, axis=1)
    whole, rest = np.divmod(np.cumsum(left), 2)
    return np.interp(right, np.linspace(-3.0, 3.0, 7), np.hanning(7)), whole, rest


def interpolated(x, y):
    counts, edges = np.histogram(x, bins=4)
    return counts, np.trapezoid(edges), np.unwrap(y)


CASES = [kron_of_norms, updates, scattered, several, interpolated]
X, Y = np.cos(np.arange(12.0)).reshape(3, 4), np.sin(np.arange(12.0)).reshape(3, 4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_staged_calls(case):
    staged = stage(case, (X, Y))
    used = [a for a, p in zip((X, Y), "xy") if any(v.name == p for v in staged.function.params)]
    got = evaluate(staged.function, *used)
    want = case(X, Y)
    want = want if isinstance(want, tuple) else (want,)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)
        assert np.asarray(g).dtype == w.dtype


def test_an_error_of_the_library_names_the_users_line():
    def wrong(x):
        return np.kron(x, np.linalg.norm(x, axis=5))

    with pytest.raises(ShapeError, match="axis 5 is out of bounds") as caught:
        stage(wrong, (X,))
    assert caught.value.span.file == __file__ and "axis=5" in str(caught.value)


def test_functions_that_the_library_does_not_know_have_no_handler():
    assert library_handler(np.load) is None
