"""random: the numbers of JAX's default generator, by stored vectors; and what distributions promise."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import metaphrase as mp
from metaphrase import random
from metaphrase.source import UnsupportedError

VECTORS = [row.split("\t") for row in Path(__file__).with_name("random_vectors.txt").read_text().splitlines()]
# drawn through log, tan or erf_inv, which differ by platform in the last bits; all other draws are equal bit
# for bit
THROUGH_FUNCTIONS = (
    "normal truncated_normal exponential gumbel laplace logistic cauchy gamma loggamma beta dirichlet "
    "chisquare t multivariate_normal lognormal pareto rayleigh weibull_min"
).split()
TOLERANCE = {"float16": 2e-3, "float32": 1e-6, "float64": 2e-14, "complex128": 2e-14}


@pytest.mark.parametrize("expression, dtype, dims, text", VECTORS, ids=[row[0] for row in VECTORS])
def test_equals_jax(expression, dtype, dims, text):
    want = np.frombuffer(bytes.fromhex(text), dtype).reshape([int(d) for d in dims.split(",") if d])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = eval(expression, {**vars(random), "np": np, "k": random.PRNGKey(42)})
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    if expression.split("(")[0] in THROUGH_FUNCTIONS:
        np.testing.assert_allclose(got, want, rtol=TOLERANCE[dtype])
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "draw, law",
    [
        (lambda k: random.gamma(k, 0.3, (20000,)), stats.gamma(0.3)),
        (lambda k: random.gamma(k, 7.5, (20000,)), stats.gamma(7.5)),
        (lambda k: np.exp(random.loggamma(k, 1.5, (20000,))), stats.gamma(1.5)),
        (lambda k: random.beta(k, 0.5, 2.0, (20000,)), stats.beta(0.5, 2.0)),
        (lambda k: random.dirichlet(k, np.array([0.5, 2.0, 3.0]), (20000,))[:, 1], stats.beta(2.0, 3.5)),
        (lambda k: random.chisquare(k, 3.0, (20000,)), stats.chi2(3.0)),
        (lambda k: random.t(k, 4.0, (20000,)), stats.t(4.0)),
        (lambda k: random.lognormal(k, 0.5, (20000,)), stats.lognorm(0.5)),
        (lambda k: random.pareto(k, 3.0, (20000,)), stats.pareto(3.0)),
        (lambda k: random.rayleigh(k, 2.0, (20000,)), stats.rayleigh(scale=2.0)),
        (lambda k: random.weibull_min(k, 2.0, 1.5, (20000,)), stats.weibull_min(1.5, scale=2.0)),
        (lambda k: random.uniform(k, (20000,), minval=-1.0, maxval=3.0), stats.uniform(-1, 4)),
        (lambda k: random.normal(k, (20000,)), stats.norm()),
        (lambda k: random.exponential(k, (20000,)), stats.expon()),
        (lambda k: random.gumbel(k, (20000,)), stats.gumbel_r()),
        (lambda k: random.truncated_normal(k, -0.5, 2.0, (20000,)), stats.truncnorm(-0.5, 2.0)),
        (lambda k: random.laplace(k, (20000,)), stats.laplace()),
        (lambda k: random.logistic(k, (20000,)), stats.logistic()),
        (lambda k: random.cauchy(k, (20000,)), stats.cauchy()),
    ],
    ids="gamma_below_1 gamma loggamma beta dirichlet chisquare t lognormal pareto rayleigh weibull_min "
    "uniform normal exponential gumbel truncated_normal laplace logistic cauchy".split(),
)
def test_follows_its_law(draw, law):
    assert stats.kstest(draw(random.key(3)), law.cdf).pvalue > 1e-3


def test_keys_and_counts():
    keys = random.split(random.key(0), 100)
    assert keys.shape == (100, 2) and len({tuple(k) for k in keys}) == 100
    assert not np.array_equal(random.fold_in(random.key(0), 1), random.fold_in(random.key(0), 2))
    assert sorted(random.permutation(random.key(1), 50)) == list(range(50))
    frequency = np.bincount(random.randint(random.key(2), (60000,), 0, 6), minlength=6) / 60000
    np.testing.assert_allclose(frequency, 1 / 6, atol=0.01)
    share = np.bincount(random.categorical(random.key(2), np.log([0.2, 0.5, 0.3]), shape=(60000,))) / 60000
    np.testing.assert_allclose(share, [0.2, 0.5, 0.3], atol=0.01)


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_normal_vectors_by_each_factor(method):
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    drawn = random.multivariate_normal(random.key(5), np.array([1.0, -1.0]), cov, (40000,), method=method)
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.05)
    np.testing.assert_allclose(drawn.mean(axis=0), [1.0, -1.0], atol=0.03)


def test_normal_vectors_of_a_singular_covariance():
    def drawn(key):
        return random.multivariate_normal(key, np.zeros(2), np.ones((2, 2)), (50,), method="svd")

    made = mp.jit(drawn)(random.key(5))
    np.testing.assert_allclose(made[:, 0], made[:, 1], atol=1e-6)
    np.testing.assert_allclose(made, drawn(random.key(5)), atol=1e-6)


def test_empty_draws():
    assert random.uniform(random.key(0), (0, 3)).shape == (0, 3)
    assert random.permutation(random.key(0), 0).shape == (0,)
    assert random.split(random.key(0), 0).shape == (0, 2)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda k: random.uniform(np.zeros(2)), "takes one key, an array of two uint32, and got float64"),
        (lambda k: random.split(random.split(k, 3)), r"got uint32\[3, 2\]"),
        (lambda k: random.key(1.5), "takes an integer seed"),
        (lambda k: random.key(np.arange(3)), "one integer seed"),
        (lambda k: random.fold_in(k, np.arange(3)), "one integer"),
        (lambda k: random.uniform(k, (), int), "floating-point numbers, not int64"),
        (lambda k: random.bits(k, (), int), "unsigned integers, not int64"),
        (lambda k: random.randint(k, (), 0, 1, float), "integers, not float64"),
        (lambda k: random.choice(k, 3, (4,), replace=False), "4 of 3 items"),
        (lambda k: random.choice(k, 3, (4,), p=np.ones(2)), r"must have \(3,\)"),
        (lambda k: random.categorical(k, np.zeros((2, 3)), shape=(3,)), r"must end in \(2,\)"),
        (lambda k: random.multivariate_normal(k, np.zeros(2), np.eye(2), method="qr"), "not 'qr'"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(random.key(0))


@pytest.mark.parametrize(
    "draw, law",
    [
        (lambda k: random.poisson(k, 3.0, (20000,)), stats.poisson(3.0)),
        (lambda k: random.poisson(k, 40.0, (20000,)), stats.poisson(40.0)),
        (lambda k: random.geometric(k, 0.3, (20000,)), stats.geom(0.3)),
    ],
)
def test_counts_follow_their_laws(draw, law):
    counts = draw(random.key(3))
    assert counts.dtype == np.int64
    values = np.arange(int(law.ppf(1e-3)), int(law.ppf(0.999)) + 1)
    found = np.array([np.count_nonzero(counts <= v) for v in values]) / len(counts)
    # Kolmogorov and Smirnov, at 1 %
    assert np.max(np.abs(found - law.cdf(values))) < 1.63 / np.sqrt(len(counts))


def test_rejecting_samplers_are_compiled_and_batched():
    key, a = random.key(5), np.array([0.4, 3.0, 60.0])
    for draw in (
        lambda k, a: random.gamma(k, a),
        lambda k, a: random.poisson(k, a),
        lambda k, a: random.beta(k, a, 2.0),
        lambda k, a: random.dirichlet(k, a),
    ):
        np.testing.assert_allclose(mp.jit(draw)(key, a), draw(key, a), rtol=1e-12)
    keys = random.split(key, 4)
    lanes = mp.vmap(lambda k: random.gamma(k, a))(keys)
    np.testing.assert_allclose(lanes, np.stack([random.gamma(k, a) for k in keys]), rtol=1e-12)


def test_rejecting_samplers_have_no_derivative():
    key = random.key(0)
    with pytest.raises(UnsupportedError, match="drawn until one is accepted"):
        mp.grad(lambda a: random.gamma(key, a))(2.0)
    assert mp.grad(lambda s: s * random.gamma(key, 2.0))(3.0) == random.gamma(key, 2.0)
    slope = mp.grad(lambda s: random.lognormal(key, s))(0.5)
    assert slope == pytest.approx(random.normal(key) * random.lognormal(key, 0.5))
