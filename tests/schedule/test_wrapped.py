"""Places that wrap around (`np.roll`): NumPy's numbers whatever sizes and shifts, and no remainders inside of loops."""

import re

import numpy as np
import pytest

import metaphrase as mp

SIZES = (0, 1, 2, 3, 4, 7, 40)
random = np.random.default_rng(9)


def upwind(u, rounds):
    for _ in range(rounds):
        u = u - 0.3 * (u - np.roll(u, 1))
    return u


def spread(u):
    """A five-point star on a torus."""
    return np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, axis=1) - 4 * u


ONES = {
    "both ways": lambda x: np.roll(x, 1) * 2 - np.roll(x, -1),
    "far": lambda x: np.roll(x, 5) + np.roll(x, -3) * np.roll(x, 100),
    "a sum": lambda x: (x * np.roll(x, -1)).sum(),
    "a running sum": lambda x: np.cumsum(np.roll(x, 2)),
    "sorted": lambda x: np.sort(np.roll(x, 1) * x),
    "twice": lambda x: np.roll(np.roll(x, 1), 1) - np.roll(x, 2),
    "the inside": lambda x: np.roll(x, 1)[1:-1] - np.roll(x, -1)[1:-1],
    "picked": lambda x: np.roll(x, 1)[np.arange(len(x)) // 2],
    "in rounds": lambda x: upwind(x, 3),
    "as it is": lambda x: np.roll(x, 0),
    "integers": lambda x: np.roll((x * 9).astype(int), 1) % 4,
    "several axes": lambda x: np.roll(np.outer(x, x), (1, -2), (0, 1)),
    "of all": lambda x: np.roll(np.outer(x, x), 3),
    "of rows": lambda x: spread(np.outer(x, x[: len(x) // 2])),
    "stored": lambda x: stored(x),
    "extremes": lambda x: np.maximum.accumulate(np.roll(x, 1)[::-1]),
}


def stored(x):
    y = np.zeros_like(x)
    y[:] = np.roll(x, 1)
    y += np.roll(y, -2)
    return y


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", ONES)
def test_values(name):
    f = ONES[name]
    jitted = mp.jit(f)
    for n in SIZES:
        x = random.normal(size=n)
        got, want = jitted(x), f(x)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
        assert np.asarray(got).dtype == np.asarray(want).dtype


@pytest.mark.parametrize("name", ["both ways", "far", "twice", "in rounds", "of rows", "a running sum"])
def test_derivatives(name):
    f, x = ONES[name], random.normal(size=7)
    weights = random.normal(size=np.shape(f(x)))

    def weighted(x):
        return (f(x) * weights).sum()

    slope, step = mp.grad(weighted)(x), 1e-6
    for k in range(len(x)):
        moved = np.zeros_like(x)
        moved[k] = step
        assert slope[k] == pytest.approx((weighted(x + moved) - weighted(x - moved)) / (2 * step), abs=1e-6)
    np.testing.assert_allclose(
        mp.jvp(weighted, (x,), (weights.ravel()[:7],))[1], slope @ weights.ravel()[:7], rtol=1e-9
    )


def test_batches():
    x = random.normal(size=(5, 6))
    for axis in (0, 1):
        got = mp.vmap(lambda row: np.roll(row, 2) * row, in_axes=axis, out_axes=axis)(x)
        np.testing.assert_allclose(got, np.roll(x, 2, 1 - axis) * x, rtol=1e-12)


def test_shifts_that_are_numbers_of_the_run():
    x = random.normal(size=9)
    f = mp.jit(lambda x, k: np.roll(x, k))
    for k in (-20, -1, 0, 1, 4, 9):
        np.testing.assert_array_equal(f(x, k), np.roll(x, k))


def test_the_inside_of_a_row_has_no_remainders():
    """The rows have, once each: what stands around a loop over a row costs next to nothing."""
    for form, row in (("f64[n, m]", r"% \(m\)"), ("f64[200, 300]", r"% \(300\)")):
        text = mp.source(spread, form, stage="loops")
        stores = re.findall(r"\] = .*", text)
        assert len(stores) == 3 and sum(bool(re.search(row, s)) for s in stores) == (2 if "n" in form else 0), text
        assert text.count("= empty(") == 1
    assert "np.roll(u, 1, axis=0)" in mp.source(spread, "f64[n, m]", stage="numpy")


def test_rows_of_few_elements_have_no_remainders_either():
    text = mp.source(lambda x: x - np.roll(x, 1, 0), "f64[300, 3]", stage="loops")
    assert "%" not in text, text
