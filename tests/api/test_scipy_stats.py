"""`scipy.stats.norm` in translated functions beside SciPy itself: values, derivatives, numbers and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import metaphrase as mp
from metaphrase.source import UnsupportedError

norm = scipy.stats.norm
X = np.array([-40.0, -21.0, -19.0, -3.0, -0.5, 0.0, 0.25, 2.0, 9.0, 38.0, np.inf, -np.inf, np.nan])
Q = np.array([1e-300, 1e-30, 1e-9, 0.01, 0.3, 0.5, 0.9, 1.0 - 1e-12, 0.0, 1.0, -0.5, 1.5, np.nan])


def densities(x, m, s):
    return norm.pdf(x), norm.logpdf(x, m, s), norm.cdf(x, loc=m), norm.logcdf(x, m, scale=s)


def tails(x, m, s):
    return norm.sf(x, m, s), norm.logsf(x, m), norm.pdf(x, m, s), norm.cdf(x, m, s)


def quantiles(q, m, s):
    return norm.ppf(q), norm.ppf(q, m, s), norm.isf(q, loc=m, scale=s)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("function, x", [(densities, X), (tails, X), (quantiles, Q)])
def test_values_are_scipys(function, x, native):
    with mp.config(native=native):
        for m, s in ((0.5, 2.0), (0.5, -1.0)):
            for got, want in zip(mp.jit(function)(x, m, s), function(x, m, s), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-300)


def test_numbers_and_lists_give_what_scipy_gives():
    with mp.config(native=False):
        for call in (lambda x: norm.cdf(x), lambda x: norm.pdf([x, 1]), lambda x: norm.ppf(x / 4, scale=[1, 2])):
            for x in (1, 0.5, np.float32(0.5)):
                got, want = mp.jit(call)(x), call(x)
                assert np.shape(got) == np.shape(want) and got.dtype == want.dtype
                np.testing.assert_allclose(got, want, rtol=1e-8)  # SciPy takes quantiles of float32 as such


def call_price(spot, strike, years, rate, spread):
    root = spread * np.sqrt(years)
    first = (np.log(spot / strike) + (rate + spread**2 / 2) * years) / root
    return spot * norm.cdf(first) - strike * np.exp(-rate * years) * norm.cdf(first - root)


def test_derivatives_are_those_of_the_distribution():
    with mp.config(native=False):
        x = np.array([-30.0, -3.0, -0.5, 0.25, 2.0])
        slopes = mp.jit(mp.grad(lambda x: norm.cdf(x).sum()))(x)
        np.testing.assert_allclose(slopes, norm.pdf(x), rtol=1e-12)
        slopes = mp.jit(mp.grad(lambda x: norm.logcdf(x).sum()))(x)
        np.testing.assert_allclose(slopes, np.exp(norm.logpdf(x) - norm.logcdf(x)), rtol=1e-11)
        q = np.array([1e-12, 0.01, 0.3, 0.5, 0.9])
        slopes = mp.jit(mp.grad(lambda q: norm.ppf(q).sum()))(q)
        np.testing.assert_allclose(slopes, 1.0 / norm.pdf(norm.ppf(q)), rtol=1e-8)
        given = 100.0, 95.0, 0.5, 0.02, 0.3
        root = 0.3 * np.sqrt(0.5)
        first = (np.log(100.0 / 95.0) + (0.02 + 0.3**2 / 2) * 0.5) / root
        np.testing.assert_allclose(mp.jit(mp.grad(call_price))(*given), norm.cdf(first), rtol=1e-12)


def test_what_has_no_translation_is_refused():
    with pytest.raises(UnsupportedError, match="no translation"):
        mp.jit(lambda x: norm.moment(2, x))(0.5)
