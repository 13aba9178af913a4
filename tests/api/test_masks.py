"""Boolean masks as indices: what they pick and where they store, its derivatives, its batches, and how it reads."""

import numpy as np
import pytest

import metaphrase as mp


def picked(x, y, m):
    return x[m], y[:, m].sum(), np.flatnonzero(m), np.compress(m, x), np.mean(x[m] * 2)


def stored(x, y, m):
    x, y = x.copy(), y.copy()
    x[m] = x[m][::-1] * 2
    y[:, m] = y[:, m] + 1
    x[m] += 1.0
    return x, y


def of_tables(x, y, m):
    y = y.copy()
    high = y > 0.25
    y[high] = -y[high]
    return y, y[high], y[high, None], np.argwhere(high), np.count_nonzero(high)


def of_rows(x, y, m):
    y = y.T.copy()
    y[m] = y[m] * x[m][:, None]
    return y, y[m][:, 0]


MASKS = [[], [True], [False], [True, False, True, True, False], [False] * 4, [True] * 4]


@pytest.mark.turns(3)
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("function", [picked, stored, of_tables, of_rows])
def test_masks_mean_what_they_mean_to_numpy(function, native):
    jitted = mp.jit(function)
    with mp.config(native=native), np.errstate(all="ignore"):
        for mask in MASKS:
            m = np.array(mask, bool)
            x = np.linspace(-1.0, 2.0, len(m))
            y = np.cos(np.arange(3.0 * len(m))).reshape(3, -1)
            if function is picked and not m.any():
                continue  # the mean of nothing warns
            for got, want in zip(jitted(x, y, m), function(x, y, m), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-14)
            got, want = jitted(x[::-1], y[:, ::-1], m[::-1]), function(x[::-1], y[:, ::-1], m[::-1])
            for one, other in zip(got, want, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-14)


def loss(x, y):
    y = y.copy()
    m = x > 0.3
    y[m] = np.sin(x[m]) * y[m]
    return np.sum(y * y) + np.sum(x[~m]) * y[m].max()


def test_gradients_through_masks():
    x, y = np.array([0.9, -0.5, 0.31, 0.29, 2.0]), np.array([1.0, 0.5, -2.0, 3.0, 0.25])
    got = mp.jit(mp.grad(loss, argnums=(0, 1)))(x, y)
    for k, of in enumerate((x, y)):
        for i in range(5):
            step = np.zeros(5)
            step[i] = 1e-6
            ends = [loss(*(v + s * step if v is of else v for v in (x, y))) for s in (1, -1)]
            assert got[k][i] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def put(y, m, v):
    y = y.copy()
    y[m] = v
    return y


def test_each_lane_stores_at_its_own_places():
    m = np.array([[True, False, True, False], [False, True, True, False]])
    v = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(mp.jit(mp.vmap(put))(np.zeros((2, 4)), m, v), [[1, 0, 2, 0], [0, 3, 4, 0]])


@pytest.mark.parametrize("native", [True, False])
def test_as_many_values_as_places(native):
    jitted, y = mp.jit(put), np.zeros(4)
    with mp.config(native=native):
        for m, v in (([1, 0, 1, 1], [1.0, 2.0]), ([0, 0, 0, 0], [1.0, 2.0]), ([1, 1, 1, 1], [])):
            mask, values = np.array(m, bool), np.array(v)
            with pytest.raises(ValueError) as theirs:
                put(y, mask, values)
            with pytest.raises(ValueError, match="cannot assign") as ours:
                jitted(y, mask, values)
            assert str(ours.value) == str(theirs.value)


def test_a_mask_reads_as_one():
    source = mp.source(loss, "f64[n]", "f64[n]")
    assert "places = np.flatnonzero(m)\n    product = np.sin(x[places]) * y[places]\n" in source
    assert "y[places] = product" in source and "x[mask]" in source
    gradient = mp.source(mp.grad(lambda x: np.sum(x[x > 0] ** 3)), "f64[n]")
    assert "np.add.at" not in gradient and "argsort" not in gradient


# ---- a size that only the run knows, and that is 0 ----------------------------------------------------------


def at_places(counts, w):
    h = np.zeros(3)
    np.add.at(h, np.repeat(np.arange(len(counts)), counts), w * 2)
    return h


def counted_above(counts, w):
    return np.bincount(counts[counts > 0], weights=w * 2)


@pytest.mark.parametrize("function", [at_places, counted_above])
@pytest.mark.parametrize("native", [True, False])
def test_a_size_that_turns_out_to_be_that_of_an_array_without_elements(function, native):
    args = np.array([0, 0]), np.zeros(0)
    with mp.config(native=native):
        np.testing.assert_array_equal(mp.jit(function)(*args), function(*args))


def counted(w, rows):
    return np.sum(np.bincount(rows[rows >= 0], weights=w[rows >= 0], minlength=4))


@pytest.mark.parametrize("rows", [[-1, -1, -1], [-1, 2, 5]])
@pytest.mark.parametrize("native", [True, False])
def test_counts_of_no_elements_have_derivatives(rows, native):
    w, rows = np.array([2.0, 3.0, 5.0]), np.array(rows)
    with mp.config(native=native):
        for transformed in (mp.grad(counted), mp.jit(mp.grad(counted))):
            np.testing.assert_array_equal(transformed(w, rows), (rows >= 0) * 1.0)
        assert mp.jit(counted)(w, rows) == counted(w, rows)
        assert mp.jvp(counted, (w, rows), (np.ones(3), np.zeros(3, dtype=int)))[1] == (rows >= 0).sum()
