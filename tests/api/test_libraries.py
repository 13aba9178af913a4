"""nn and lax, run at once on NumPy arrays: the values of JAX, by stored vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import special

import metaphrase as mp
from metaphrase import lax, nn, random
from metaphrase.source import UnsupportedError

VECTORS = [row.split("\t") for row in Path(__file__).with_name("library_vectors.txt").read_text().splitlines()]


@pytest.mark.parametrize("expression, dtype, dims, text", VECTORS, ids=[row[0] for row in VECTORS])
def test_equals_jax(expression, dtype, dims, text):
    want = np.frombuffer(bytes.fromhex(text), dtype).reshape([int(d) for d in dims.split(",") if d])
    x, i = np.linspace(-4.0, 4.0, 24).reshape(4, 6), np.arange(24).reshape(4, 6)
    with np.errstate(all="ignore"):
        got = np.asarray(eval(expression, {"np": np, "nn": nn, "lax": lax, "x": x, "i": i}))
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-15)


def test_top_k_of_equals_takes_the_first():
    values, places = lax.top_k(np.array([3, 1, 3, 3]), 2)
    assert values.tolist() == [3, 3] and places.tolist() == [0, 2]


def test_top_k_takes_nan_first():
    for top in (lax.top_k, mp.jit(lax.top_k, static_argnums=1)):
        values, places = top(np.array([1.0, np.nan, np.inf, np.nan, 3.0]), 4)
        assert places.tolist() == [1, 3, 2, 4] and values[2:].tolist() == [np.inf, 3]


def test_complex_of_infinite_parts():
    for made in (lax.complex, mp.jit(lax.complex)):
        z = made(np.array([np.inf, -0.0, 1.0]), np.array([1.0, -0.0, np.inf]))
        assert z.real.tolist() == [np.inf, 0, 1] and z.imag.tolist() == [1, 0, np.inf]
        assert np.signbit(z.imag).tolist() == [False, True, False]
    assert lax.complex(np.float32(1), np.float32(2)).dtype == np.complex64


def test_what_log_softmax_leaves_out_has_no_derivative():
    """As in JAX, whose numbers these are."""
    x = np.array([0.7, -1.3, 1.9, 0.4, -0.2, 1.1])
    got = mp.grad(lambda x: np.sum(nn.log_softmax(x, where=x > 0) * np.cos(np.arange(6))))(x)
    want = [1.01869093, 0, -0.35409078, -0.97614592, 0, 0.31154577]
    np.testing.assert_allclose(got, want, atol=1e-8)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: lax.scan(lambda c, x: (c, x), 0, None), "needs xs or a length"),
        (
            lambda: lax.scan(lambda c, x: (c, x), 0, (np.zeros(3), np.zeros(4))),
            r"differ in length: 3 and, at xs\[1\], 4",
        ),
        (lambda: lax.scan(lambda c, x: (c, x), 0, {"a": 1.0}), r"xs\['a'\] has rank 0"),
        (lambda: lax.scan(lambda c, x: (c, x), 0, np.zeros(3), length=4), "length is 4, and xs has 3 rows"),
        (lambda: lax.switch(0, []), "at least one branch"),
        (lambda: lax.select(True, np.zeros(3), np.zeros(4)), r"float64\[3\] and float64\[4\]"),
        (lambda: lax.dynamic_slice(np.zeros((2, 2)), (0,), (1, 1)), "1 starts and 2 sizes"),
        (lambda: lax.while_loop(lambda v: 1.0, lambda v: v, 0), r"one bool, is true, and got float64\[\]"),
        (lambda: lax.while_loop(lambda v: v, lambda v: v - 1, 3), "got int64"),
        (lambda: lax.while_loop(lambda v: v < 3, lambda v: v + 1, np.zeros(2)), r"got bool\[2\]"),
        (lambda: mp.jit(lambda n: lax.while_loop(lambda v: 0.5, lambda v: v + 1, n))(1), "got float64"),
        (lambda: nn.glu(np.zeros(3)), "size 3 is odd"),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


INSIDE = np.concatenate([np.linspace(-0.95, 0.95, 20), [0.0, 0.9999, -0.99999999]])
WIDE = np.array([-800, -31, -5.5, -2.9, -1.1, -0.7, -1e-9, 1e-9, 0.3, 0.98, 1.2, 2.9, 5.9, 7.0, 31, 800])
SMOOTH = {
    "relu": WIDE,
    "relu6": WIDE,
    "sigmoid": WIDE,
    "log_sigmoid": WIDE,
    "softplus": WIDE,
    "sparse_plus": WIDE,
    "silu": WIDE,
    "mish": WIDE,
    "leaky_relu": WIDE,
    "elu": WIDE,
    "celu": WIDE,
    "selu": WIDE,
    "hard_tanh": WIDE,
    "hard_sigmoid": WIDE,
    "hard_silu": WIDE,
    "soft_sign": WIDE,
    "squareplus": WIDE,
    "tanh": WIDE,
    "gelu": WIDE,
    "erf_inv": INSIDE[:20],
    "logistic": WIDE,
    "rsqrt": np.array([0.1, 1.5, 80.0]),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_differences(name):
    """Where one side of a choice overflows, the derivative is that of the other side."""
    function, x = getattr(nn, name, None) or getattr(lax, name), SMOOTH[name]
    step = 1e-6 * np.maximum(np.abs(x), 1e-3)
    want = (function(x + step) - function(x - step)) / (2 * step)
    got = mp.grad(lambda x: function(x).sum())(x)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=3e-7)


def test_derivative_of_erf_inv():
    got = mp.grad(lambda x: lax.erf_inv(x).sum())(INSIDE)
    np.testing.assert_allclose(got, np.sqrt(np.pi) / 2 * np.exp(special.erfinv(INSIDE) ** 2), rtol=1e-8)
    assert mp.grad(lax.erf_inv)(1.0) == np.inf and mp.grad(lax.erf_inv)(-1.0) == np.inf
    twice = mp.vmap(mp.grad(mp.grad(lax.erf_inv)))(INSIDE[:20])
    inverse = special.erfinv(INSIDE[:20])
    np.testing.assert_allclose(twice, np.pi / 2 * inverse * np.exp(2 * inverse**2), rtol=1e-9)


def test_derivative_by_the_bounds_of_a_truncated_normal():
    key = random.key(3)

    def drawn(lower, upper):
        return random.truncated_normal(key, lower, upper, (50,)).sum()

    for which in (0, 1):
        got = mp.grad(drawn, which)(-1.0, 0.5)
        step = np.eye(2)[which] * 1e-6
        want = (drawn(*np.array([-1.0, 0.5]) + step) - drawn(*np.array([-1.0, 0.5]) - step)) / 2e-6
        assert got == pytest.approx(want, rel=1e-6)


@pytest.mark.parametrize(
    "function, kinks, slopes",
    [
        (nn.relu6, [0.0, 6.0], [0, 0]),
        (nn.hard_sigmoid, [-3.0, 3.0], [0, 0]),
        (nn.hard_silu, [-3.0, 3.0], [0, 1]),
        (nn.relu, [0.0], [0]),
        (nn.elu, [0.0], [1]),
        (nn.hard_tanh, [-1.0, 1.0], [1, 1]),
    ],
)
def test_slopes_at_kinks_are_those_of_jax(function, kinks, slopes):
    assert [mp.grad(function)(x) for x in kinks] == slopes


@pytest.mark.parametrize("order", [0, 1, 2, 4])
def test_polygamma(order):
    def f(x):
        return special.polygamma(order, x)

    x = np.array([0.3, 1.0, 2.5, 7.0, -0.5])
    np.testing.assert_allclose(mp.jit(f)(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(mp.vmap(mp.grad(f))(x), special.polygamma(order + 1, x), rtol=1e-13)
    np.testing.assert_allclose(mp.jit(f)(np.float32(2.5)), f(np.float32(2.5)), rtol=1e-7)
    assert mp.jit(f)(x.astype(np.float32)).dtype == np.float64


def test_polygamma_of_orders_is_refused():
    with pytest.raises(UnsupportedError, match="negative"):
        mp.jit(lambda x: special.polygamma(-1, x))(2.0)
