"""grad, value_and_grad, jvp, vjp, linearize, Jacobians: values against calculus and differences, on
pytrees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import tree
from metaphrase.source import ShapeError, UnsupportedError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), RNG.normal(size=6)
PARAMS = {"w": RNG.normal(size=3), "b": 0.5}


class Pair(NamedTuple):
    first: object
    second: object


def mse(params, x, y):
    return np.mean((x @ params["w"] + params["b"] - y) ** 2)


def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def kinked(x):
    if x > 1:
        return x * x
    return 3 * x


def differences(f, x, h=1e-6):
    x = np.asarray(x, float)
    out = np.zeros_like(x)
    for k in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[k] = h
        out[k] = (f(x + step) - f(x - step)) / (2 * h)
    return out


def test_grad_of_a_dict_of_parameters():
    got = mp.grad(mse)(PARAMS, X, Y)
    error = X @ PARAMS["w"] + PARAMS["b"] - Y
    assert list(got) == list(PARAMS)
    np.testing.assert_allclose(got["w"], 2 / 6 * X.T @ error)
    np.testing.assert_allclose(got["b"], 2 * error.mean())


def test_value_and_grad_agrees_with_both():
    value, gradient = mp.value_and_grad(mse)(PARAMS, X, Y)
    assert np.isclose(value, mse(PARAMS, X, Y))
    for a, b in zip(tree.leaves(gradient), tree.leaves(mp.grad(mse)(PARAMS, X, Y))):
        np.testing.assert_array_equal(a, b)


def test_argnums():
    def f(x, y, z):
        return x * y + z["k"] ** 2

    assert mp.grad(f, 1)(2.0, 3.0, {"k": 4.0}) == 2.0
    assert mp.grad(f, (0, 2))(2.0, 3.0, {"k": 4.0}) == (3.0, {"k": 8.0})
    assert mp.grad(f, (2, 0))(2.0, 3.0, {"k": 4.0}) == ({"k": 8.0}, 3.0)
    assert mp.grad(f, -2)(2.0, 3.0, {"k": 4.0}) == 2.0
    assert mp.grad(f, argnums=(0, 0))(2.0, 3.0, {"k": 4.0}) == (3.0, 3.0)


def test_aux():
    def f(x):
        return x**3, {"square": x**2, "note": "kept"}

    assert mp.grad(f, has_aux=True)(2.0) == (12.0, {"square": 4.0, "note": "kept"})
    assert mp.value_and_grad(f, has_aux=True)(2.0) == ((8.0, {"square": 4.0, "note": "kept"}), 12.0)


@pytest.mark.parametrize("x, slope", [(0.5, 3.0), (2.0, 4.0)])
def test_branches_on_values(x, slope):
    assert mp.grad(kinked)(x) == slope
    assert mp.jit(mp.grad(kinked))(x) == slope


def test_reverse_mode_through_a_while_of_unknown_length():
    for e in (0.05, 0.3, 0.85):
        E = period(e, 1.0)
        np.testing.assert_allclose(mp.grad(period)(e, 1.0), np.sin(E) / (1 - e * np.cos(E)), rtol=1e-6)
        np.testing.assert_allclose(mp.grad(period, 1)(e, 1.0), 1 / (1 - e * np.cos(E)), rtol=1e-6)


def test_derivatives_of_derivatives():
    assert mp.grad(mp.grad(lambda x: x**5))(2.0) == 160.0
    assert mp.grad(mp.grad(mp.grad(lambda x: x**5)))(2.0) == 240.0
    second = mp.grad(mp.grad(period))(0.3, 1.0)
    h = 1e-5
    slope = (mp.grad(period)(0.3 + h, 1.0) - mp.grad(period)(0.3 - h, 1.0)) / (2 * h)
    np.testing.assert_allclose(second, slope, rtol=1e-6)


def test_grad_of_arrays_against_differences():
    def f(x):
        return np.sum(np.tanh(x) * np.exp(-x * x)) + np.prod(x)

    x = RNG.normal(size=(3, 2))
    np.testing.assert_allclose(mp.grad(f)(x), differences(f, x), atol=1e-7)


def test_gradients_have_the_dtype_and_structure_of_the_argument():
    got = mp.grad(lambda p: np.sum(p.first) * p.second)(Pair(np.ones(3, np.float32), np.float32(2)))
    assert isinstance(got, Pair) and got.first.dtype == np.float32 and got.second.dtype == np.float32
    assert mp.grad(lambda x: 3.0)(1.0) == 0.0
    assert mp.grad(lambda x: x)(1.0) == 1.0


def test_jvp():
    out, dot = mp.jvp(lambda x, y: (x * y, {"s": np.sin(x)}), (2.0, 3.0), (1.0, 0.5))
    assert out == (6.0, {"s": np.sin(2.0)}) and np.isclose(dot[0], 4.0) and np.isclose(dot[1]["s"], np.cos(2.0))
    out, dot, aux = mp.jvp(lambda x: (x * x, x + 1), (3.0,), (1.0,), has_aux=True)
    assert (out, dot, aux) == (9.0, 6.0, 4.0)
    out, dot = mp.jvp(lambda x, n: (x * n, n), (2.0, 3), (1.0, 0))
    assert out == (6.0, 3) and dot[0] == 3.0 and not dot[1]


def test_vjp_and_linearize_are_transposes():
    def f(x, y):
        return np.sin(x) * y, np.sum(x * x)

    x, y = RNG.normal(size=4), 0.7
    out, pullback = mp.vjp(f, x, y)
    same, pushforward = mp.linearize(f, x, y)
    np.testing.assert_allclose(out[0], f(x, y)[0])
    np.testing.assert_allclose(same[1], f(x, y)[1])
    x_dot, y_dot, bars = RNG.normal(size=4), 0.3, (RNG.normal(size=4), 1.5)
    forward, (x_bar, y_bar) = pushforward(x_dot, y_dot), pullback(bars)
    assert np.isclose(forward[0] @ bars[0] + forward[1] * bars[1], x_bar @ x_dot + y_bar * y_dot)
    np.testing.assert_allclose(forward[0], mp.jvp(f, (x, y), (x_dot, y_dot))[1][0])


def test_vjp_with_aux_and_repeated_use():
    out, pullback, aux = mp.vjp(lambda x: (x**2, x + 1), 3.0, has_aux=True)
    assert (out, aux, pullback(1.0), pullback(2.0)) == (9.0, 4.0, (6.0,), (12.0,))
    assert tree.leaves(pullback) and tree.map(lambda r: r, pullback)(1.0) == (6.0,)


@pytest.mark.parametrize("jacobian", [mp.jacfwd, mp.jacrev])
def test_jacobians(jacobian):
    def f(x, p):
        return {"a": x * p["k"], "b": np.sum(x)}

    x, p = np.array([1.0, 2, 3]), {"k": 2.0}
    got = jacobian(f, (0, 1))(x, p)
    np.testing.assert_allclose(got["a"][0], 2 * np.eye(3))
    np.testing.assert_allclose(got["a"][1]["k"], x)
    np.testing.assert_allclose(got["b"][0], np.ones(3))
    assert got["b"][1]["k"] == 0
    np.testing.assert_allclose(jacobian(lambda x: np.outer(x, x))(x)[1, 2], [0, 3, 2])
    value, aux = jacobian(lambda x: (x * x, "note"), has_aux=True)(x)
    np.testing.assert_allclose(value, np.diag(2 * x))
    assert aux == "note"


def test_hessian():
    x = np.array([1.0, 2, 3])
    np.testing.assert_allclose(
        mp.hessian(lambda x: np.sum(x**3) * x[0])(x), [[12 * 1 + 0, 12, 27], [12, 12, 0], [27, 0, 18]]
    )


def test_mutation_inside_is_differentiated():
    def f(x):
        y = np.zeros(3)
        for k in range(3):
            y[k] = x[k] ** 2
        y[1:] *= 2
        return y.sum()

    np.testing.assert_allclose(mp.grad(f)(np.array([1.0, 2, 3])), [2, 8, 12])


def test_captured_arrays_are_read_at_each_call():
    weights = np.ones(3)
    gradient = mp.grad(lambda x: np.sum(x * weights))
    x = np.arange(3.0)
    np.testing.assert_array_equal(gradient(x), [1, 1, 1])
    weights[:] = 5
    np.testing.assert_array_equal(gradient(x), [5, 5, 5])


def test_complex_functions():
    assert np.isclose(mp.grad(lambda z: z**2, holomorphic=True)(1.0 + 2.0j), 2 + 4j)
    out, pullback = mp.vjp(lambda z: z * (2 + 1j), 1 + 1j)
    assert np.isclose(pullback(1.0 + 0j)[0], 2 + 1j)


def area(a, b):
    def refined(a, b, whole):
        m = (a + b) / 2
        left, right = (m - a) * np.sin((a + m) / 2), (b - m) * np.sin((m + b) / 2)
        if abs(left + right - whole) < 1e-3:
            return left + right
        return refined(a, m, left) + refined(m, b, right)

    return refined(a, b, (b - a) * np.sin((a + b) / 2))


@pytest.mark.parametrize(
    "derive",
    [
        lambda: mp.grad(area, 1)(0.0, 2.0),
        lambda: mp.jvp(area, (0.0, 2.0), (0.0, 1.0)),
        lambda: mp.vjp(area, 0.0, 2.0),
        lambda: mp.linearize(area, 0.0, 2.0),
    ],
    ids=["grad", "jvp", "vjp", "linearize"],
)
def test_a_number_that_steers_the_translation_has_no_derivative(derive):
    assert abs(mp.jit(area)(0.0, 2.0) - (1 - np.cos(2.0))) < 1e-2
    with pytest.raises(UnsupportedError, match="with respect to .*the depth to which 'refined'"):
        derive()


class Unregistered:
    def __init__(self, w):
        self.w = w


def test_objects_of_a_class_that_is_not_registered_are_named():
    def loss(p, x):
        return (p.w * x).sum()

    p, x = Unregistered(np.ones(2)), np.arange(2.0)
    for derive in (lambda: mp.grad(loss)(p, x), lambda: mp.jvp(loss, (p, x), (p, x)), lambda: mp.vjp(loss, p, x)):
        with pytest.raises(TypeError, match="Unregistered, a class that is not registered") as caught:
            derive()
        call = str(caught.value).partition("remedy: call metaphrase.tree_util.")[2].partition(" once")[0]
        assert call.startswith("register_pytree_node(Unregistered, lambda x: ((x.w,), None), ")
        eval(call, {"register_pytree_node": lambda *args: None, "Unregistered": Unregistered})


def test_vjp_of_results_of_run_time_size():
    def kept(x):
        return x[x > 0] ** 2, x[x < 0]

    apply = mp.jit(lambda back, bars: back(bars)[0])
    for x in (np.array([1.0, -2.0, 3.0]), np.array([1.0, 2.0, -3.0, 4.0]), np.arange(-2.0, 5.0)):
        values, pullback = mp.vjp(kept, x)
        bars = (np.arange(1.0, 1 + len(values[0])), np.full(len(values[1]), 0.5))
        wanted = np.where(x < 0, 0.5, 0.0)
        wanted[x > 0] = 2 * x[x > 0] * bars[0]
        np.testing.assert_allclose(pullback(bars)[0], wanted)
        np.testing.assert_allclose(apply(pullback, bars), wanted)
        lanes = mp.vmap(pullback)(tuple(np.stack([b, 2 * b]) for b in bars))[0]
        np.testing.assert_allclose(lanes, [wanted, 2 * wanted])
        wrong = (np.ones(len(values[0]) + 1), bars[1])
        with pytest.raises(ShapeError, match=rf"is f64\[{len(wrong[0])}\] and must be f64\[{len(bars[0])}\]"):
            pullback(wrong)
    assert len(pullback.rule.applied) <= 2  # one program for all sizes

    def gradient(x):
        values, pullback = mp.vjp(lambda x: x[x > 0] ** 2, x)
        return pullback(values)[0]

    x = np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(mp.jit(gradient)(x), [2, 0, 54])
    np.testing.assert_allclose(gradient(x), [2, 0, 54])


def test_vjp_of_many_sizes():
    """A pullback knows how long its result is, also where no residual is as long."""
    apply = mp.jit(lambda back, bar: back(bar))
    for size in (3, 4, 5, 6):
        x, k = np.arange(float(size)), np.arange(2 * size)
        _, pullback = mp.vjp(lambda x, k: np.concatenate([x[:2] * 3.0, x, x]), x, k)
        bar = np.ones(2 * size + 2)
        wanted = np.where(x < 2, 5.0, 2.0)
        for slopes in (pullback(bar), apply(pullback, bar)):
            np.testing.assert_array_equal(slopes[0], wanted)
            np.testing.assert_array_equal(slopes[1], np.zeros(2 * size))
        with pytest.raises(ValueError, match=rf"{2 * size + 3}.* must be .*{2 * size + 2}"):
            pullback(np.ones(2 * size + 3))
        with pytest.raises(ValueError, match=rf"{2 * size + 3}.* must be .*{2 * size + 2}"):
            apply(pullback, np.ones(2 * size + 3))
        values, push = mp.linearize(lambda x, k: (x[:2] * 3.0, k + 1), x, k)
        assert push(x, k)[1].shape == k.shape


@pytest.mark.parametrize("around", [lambda f: f, mp.jit], ids=["jvp", "jit of jvp"])
def test_forward_beside_integers_whose_number_the_run_knows(around):
    """Where JAX has arrays of float0, zeros of bool stand, as many as there are."""

    def f(x):
        return x[x > 0].sum(), np.nonzero(x > 0)[0], np.unique(x, return_counts=True)[1]

    x = np.array([0.5, -1.0, 2.0])
    (total, places, counts), (dot, *zeros) = around(lambda x: mp.jvp(f, (x,), (np.ones(3),)))(x)
    assert total == 2.5 and dot == 2.0
    assert np.array_equal(places, [0, 2]) and np.array_equal(counts, [1, 1, 1])
    assert [(z.dtype, z.shape) for z in zeros] == [(np.dtype(bool), (2,)), (np.dtype(bool), (3,))]
    assert not any(z.any() for z in zeros)


def looked_up(x):
    return {x: 2.0}[x] * x


def test_a_number_whose_hash_is_asked_for_has_no_derivative():
    with pytest.raises(UnsupportedError, match="depends on x") as error:
        mp.grad(looked_up)(2.0)
    assert "compare numbers" in error.value.remedy and "recursion" not in error.value.remedy


def test_a_tangent_of_rank_0_is_no_memory_to_add_to():
    def until(x):
        while x < 4.0:
            x = x + np.sin(x) + 1.5
        return x

    direction = np.array(0.5)
    _, tangent = mp.jvp(lambda x: until(x) * x, (0.9,), (direction,))
    assert direction == 0.5
    np.testing.assert_allclose(tangent, 0.5 * mp.grad(lambda x: until(x) * x)(0.9), rtol=1e-12)
