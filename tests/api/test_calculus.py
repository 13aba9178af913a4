"""linear_transpose, hvp, fwd_and_bwd, closure_convert and allow_int: against vjp, dense Hessians, and by hand.

In: functions and points. Out: the same numbers as another way to them, under jit and vmap, too.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import lax
from metaphrase.source import DTypeError, ShapeError, SourceError, UnsupportedError

RNG = np.random.default_rng(0)
X, A = RNG.normal(size=4), RNG.normal(size=(4, 3))
SQUARE = A @ A.T + np.eye(4)
PLACES = np.array([3, 0, 0])


def running(x):
    y, total = np.zeros(4), 0.0
    for k in range(4):
        total = total + x[k] * A[k, 0]
        y[k] = total
    return y


def doubled(x):
    k = 0
    while k < 5:
        x, k = x * 2, k + 1
    return x


def by_a_switch(x):
    if A[0, 0] > 0:
        return x * 2
    return x * 3


def scattered(x):
    y = np.zeros(6)
    y[PLACES] += x[:3]
    return y


LINEAR = {
    "scaled": lambda x: -x / 3 + 2 * x,
    "product": lambda x: A.T @ x,
    "both sides": lambda x: A.T @ np.diag(x) @ A,
    "running sum": lambda x: np.cumsum(x)[::-1],
    "parts": lambda x: x[1:] - x[:-1],
    "picked": lambda x: x[PLACES],
    "padded": lambda x: np.pad(x, 1),
    "with zeros": lambda x: np.concatenate([x, np.zeros(2)]),
    "convolved": lambda x: np.convolve(x, A[0]),
    "mean": lambda x: np.mean(x),
    "outer": lambda x: x.reshape(4, 1) * A,
    "rolled": lambda x: np.roll(x, 1),
    "chosen": lambda x: np.where(A[:, 0] > 0, x, 0),
    "solved": lambda x: np.linalg.solve(SQUARE, x),
    "transformed": lambda x: np.fft.rfft(x).real,
    "einsum": lambda x: np.einsum("i,ij->j", x, A),
    "loop": running,
    "while": doubled,
    "branch": by_a_switch,
    "scattered": scattered,
    "scan": lambda x: lax.scan(lambda c, v: (0.5 * c + v, c), 0.0, x)[1],
    "zero": lambda x: 0 * x,
    "a tree": lambda x: {"s": x.sum(), "d": (np.diff(x), x[0] * A[0])},
    "jitted": mp.jit(lambda x: 2 * x),
    "batched": mp.vmap(lambda v: v * A[0]),
    "its own derivative": lambda x: mp.jvp(np.sin, (A[:, 0],), (x,))[1],
}


def like(tree):
    return mp.tree.map(lambda leaf: RNG.normal(size=np.shape(leaf)), tree)


@pytest.mark.parametrize("name", LINEAR)
def test_transposes(name):
    f = LINEAR[name]
    y, pullback = mp.vjp(f, X)
    bar = like(y)
    transposed = mp.linear_transpose(f, mp.ShapeDtypeStruct((4,), np.float64))
    (got,) = transposed(bar)
    np.testing.assert_allclose(got, pullback(bar)[0], atol=1e-13)
    pairs = zip(mp.tree.leaves(bar), mp.tree.leaves(y))
    np.testing.assert_allclose(sum(np.sum(b * v) for b, v in pairs), np.sum(got * X))


def test_transposes_of_trees_and_under_transformations():
    def f(p, y):
        return {"a": p["u"] @ A, "b": (y - p["u"][:2]).sum()}

    transposed = mp.linear_transpose(f, {"u": X}, "f64[2]")
    bar = {"a": A[0], "b": 2.0}
    p_bar, y_bar = transposed(bar)
    np.testing.assert_allclose(p_bar["u"], A @ A[0] - [2, 2, 0, 0])
    np.testing.assert_allclose(y_bar, [2, 2])
    for again in (mp.jit(transposed)(bar), mp.jit(lambda b: mp.linear_transpose(f, {"u": X}, y_bar)(b))(bar)):
        np.testing.assert_allclose(again[0]["u"], p_bar["u"])
    rows = mp.vmap(mp.linear_transpose(LINEAR["product"], X))(np.eye(3))[0]
    np.testing.assert_allclose(rows, A.T)
    np.testing.assert_allclose(mp.jacrev(lambda b: mp.linear_transpose(LINEAR["product"], X)(b)[0])(A[0]), A)
    double = mp.linear_transpose(lambda b: mp.linear_transpose(LINEAR["product"], X)(b)[0], A[0])
    np.testing.assert_allclose(double(X)[0], A.T @ X)


NOT_LINEAR = {
    "mul is not linear": lambda x: x * x,
    "sin is not linear": lambda x: 2 * np.sin(x),
    "div is not linear": lambda x: 1 / x,
    "floor is not linear": lambda x: np.floor(x),
    "abs is not linear": lambda x: abs(x),
    "sort is not linear": lambda x: np.sort(x),
    "add has an operand that does not depend": lambda x: x + 1,
    "concatenate has an operand that does not depend": lambda x: np.concatenate([x, np.ones(2)]),
    "select chooses by a value that depends": lambda x: np.where(x > 0, x, 0),
    "cond chooses by a value that depends": lambda x: doubled(x) if x[0] > 0 else x,
    "a result does not depend on the arguments": lambda x: np.ones(3),
    "a variable depends on the arguments on some of its paths": lambda x: x if A[0, 0] > 0 else A[:, 0],
}


@pytest.mark.parametrize("said", NOT_LINEAR)
def test_what_is_not_linear_is_refused(said):
    with pytest.raises(UnsupportedError, match=f"which is not linear: {said}") as caught:
        mp.linear_transpose(NOT_LINEAR[said], X)(np.ones(4))
    if "result" not in said:
        assert f"{__name__.rpartition('.')[2]}.py:" in str(caught.value)


def test_transposes_check_what_they_are_given():
    with pytest.raises(ShapeError, match="is f64.3. and must be f64.4."):
        mp.linear_transpose(lambda x: 2 * x, X)(np.ones(3))
    with pytest.raises(DTypeError, match="which is not a float"):
        mp.linear_transpose(lambda x: 2 * x, np.arange(3))(np.ones(3))
    with pytest.raises(DTypeError, match="which returns i64"):
        mp.linear_transpose(lambda x: np.arange(3), X)(np.ones(3))


def test_asserts_about_the_arguments_are_no_part_of_the_transpose():
    def f(x):
        assert x[0] > -10
        return 3 * x

    np.testing.assert_array_equal(mp.linear_transpose(f, X)(X)[0], 3 * X)


# ---- hvp ------------------------------------------------------------------------------------------------


def loss(w, x):
    return np.sum(np.tanh(w @ x) ** 2) * np.exp(x[0])


def looped(x):
    y = x
    for k in range(3):
        y = np.sin(y) * x + y[k]
    return np.sum(y)


@pytest.mark.parametrize("f", [looped, lambda x: loss(SQUARE, x), lambda x: np.prod(x), mp.jit(looped)])
def test_hvp_is_the_hessian_times_a_vector(f):
    v = RNG.normal(size=4)
    want = mp.hessian(f)(X) @ v
    np.testing.assert_allclose(mp.hvp(f, (X,), (v,)), want, atol=1e-10)
    np.testing.assert_allclose(mp.jit(lambda x, v: mp.hvp(f, (x,), (v,)))(X, v), want, atol=1e-10)
    np.testing.assert_allclose(mp.vmap(lambda v: mp.hvp(f, (X,), (v,)))(np.eye(4)), mp.hessian(f)(X), atol=1e-10)


def test_hvp_of_several_arguments_and_trees():
    v, w_dot = RNG.normal(size=4), RNG.normal(size=(4, 4))
    full = mp.hessian(loss, (0, 1))(SQUARE, X)
    want = np.einsum("akl,kl->a", full[1][0], w_dot) + full[1][1] @ v
    np.testing.assert_allclose(mp.hvp(loss, (SQUARE, X), (w_dot, v), argnums=1), want)
    both = mp.hvp(loss, (SQUARE, X), (w_dot, v), argnums=(0, 1))
    np.testing.assert_allclose(both[1], want)
    np.testing.assert_allclose(both[0], np.einsum("abkl,kl->ab", full[0][0], w_dot) + full[0][1] @ v)
    got = mp.hvp(lambda p: np.sum(p["a"] ** 3) * p["b"], ({"a": X, "b": 2.0},), ({"a": v, "b": 1.0},))
    np.testing.assert_allclose(got["a"], 12 * X * v + 3 * X**2)
    np.testing.assert_allclose(got["b"], np.sum(3 * X**2 * v))


# ---- fwd_and_bwd, linearize, vjp --------------------------------------------------------------------------


@pytest.mark.parametrize("jitted", [True, False])
def test_forward_and_backward_passes_apart(jitted):
    forward, backward = mp.fwd_and_bwd(loss, (0, 1), jitted=jitted)
    y, residuals = forward(SQUARE, X)
    np.testing.assert_allclose(y, loss(SQUARE, X))
    for scale in (1.0, -3.0):
        for got, want in zip(backward(residuals, scale), mp.grad(loss, (0, 1))(SQUARE, X)):
            np.testing.assert_allclose(got, scale * want)
    forward, backward = mp.fwd_and_bwd(lambda w, x: (loss(w, x), {"x": x}), 1, has_aux=True, jitted=jitted)
    y, residuals, aux = forward(SQUARE, X)
    np.testing.assert_allclose(backward(residuals, 1.0), mp.grad(loss, 1)(SQUARE, X))
    np.testing.assert_array_equal(aux["x"], X)
    with pytest.raises(SourceError, match="argnums is 2"):
        mp.fwd_and_bwd(loss, 2, jitted=jitted)[0](SQUARE, X)


def test_forward_and_backward_inside_a_program():
    forward, backward = mp.fwd_and_bwd(loss, 1)

    def slope(x):
        _, residuals = forward(SQUARE, x)
        return backward(residuals, 1.0)

    np.testing.assert_allclose(mp.jit(slope)(X), mp.grad(loss, 1)(SQUARE, X))
    np.testing.assert_allclose(mp.jacfwd(slope)(X), mp.hessian(loss, 1)(SQUARE, X), atol=1e-10)


def test_the_linear_function_does_not_run_the_primal_part(capsys):
    def f(x):
        print("running")
        return np.sin(x) ** 2

    _, pushforward = mp.linearize(f, X)
    _, pullback = mp.vjp(f, X)
    for _ in range(3):
        np.testing.assert_allclose(pushforward(X), np.sin(2 * X) * X)
        np.testing.assert_allclose(pullback(X)[0], np.sin(2 * X) * X)
    assert capsys.readouterr().out.count("running") == 2
    sines = mp.source(lambda x, v: mp.linearize(lambda y: np.sin(y) * 2, x)[1](v), X, X, stage="numpy")
    assert "sin(" not in sines and "cos(" in sines


def test_one_program_serves_pullbacks_of_all_sizes():
    @mp.jit
    def f(x):
        return mp.vjp(lambda y: (y[:2] ** 2, {"sum": y.sum()}), x, has_aux=True)

    for n in (3, 5, 8, 13):
        x = np.arange(float(n))
        y, pullback, aux = f(x)
        np.testing.assert_array_equal(pullback(np.ones(2))[0], np.where(np.arange(n) < 2, 2 * x, 0))
        assert aux["sum"] == x.sum() and y.shape == (2,)
    assert f.cache_info().misses <= 2


# ---- closure_convert --------------------------------------------------------------------------------------


def test_closures_are_converted():
    scale = 3.0

    def f(x):
        return np.sum(A[:, 0] * x * SQUARE[0] * scale)

    converted, consts = mp.closure_convert(f, X)
    assert len(consts) == 2 and all(any(c is v for v in (A, SQUARE)) for c in consts)
    np.testing.assert_allclose(converted(X, *consts), f(X))
    a_bar = mp.grad(lambda a: converted(X, *(a if c is A else c for c in consts)))(A)
    np.testing.assert_allclose(a_bar[:, 0], X * SQUARE[0] * scale)
    np.testing.assert_allclose(mp.jit(converted)(2 * X, *consts), 2 * f(X))
    with pytest.raises(ShapeError, match="must be f64.4, 3."):
        converted(X, *(np.ones(2) for _ in consts))


def test_a_function_that_takes_a_function_gets_a_rule():
    """JAX's example: a fixed point, whose derivative follows from the implicit function theorem."""

    def root(f, guess):
        converted, consts = mp.closure_convert(f, guess)
        return _root(converted, guess, *consts)

    @functools.partial(mp.custom_vjp, nondiff_argnums=0)
    def _root(f, guess, *consts):
        x = guess
        for _ in range(50):
            x = f(x, *consts)
        return x

    def forward(f, guess, *consts):
        x = _root(f, guess, *consts)
        return x, (x, consts)

    def backward(f, kept, x_bar):
        x, consts = kept
        _, pullback = mp.vjp(lambda x, *c: f(x, *c), x, *consts)
        total = x_bar
        for _ in range(50):
            total = x_bar + pullback(total)[0]
        return (None, *pullback(total)[1:])

    _root.defvjp(forward, backward)

    def solved(a):
        return np.sum(root(lambda x: np.cos(a * x), np.full(3, 0.5)))

    a = np.array([0.5, 0.7, 0.2])
    step = 1e-6 * np.eye(3)
    want = [(solved(a + s) - solved(a - s)) / 2e-6 for s in step]
    np.testing.assert_allclose(mp.grad(solved)(a), want, rtol=1e-6)


# ---- integers -------------------------------------------------------------------------------------------


def test_integers_where_they_are_allowed():
    def f(i, x):
        return np.sum(x[i] * i)

    i = np.array([1, 2])
    i_bar, x_bar = mp.grad(f, (0, 1), allow_int=True)(i, X)
    assert i_bar.dtype == bool and i_bar.shape == (2,) and not i_bar.any()
    np.testing.assert_array_equal(x_bar, [0, 1, 2, 0])
    value, (i_bar, _) = mp.jit(mp.value_and_grad(f, (0, 1), allow_int=True))(i, X)
    assert value == f(i, X) and i_bar.dtype == bool
    p_bar = mp.grad(lambda p: f(p["i"], p["x"]), allow_int=True)({"i": i, "x": X})
    assert p_bar["i"].dtype == bool and p_bar["x"][1] == 1
    rows = mp.jacrev(lambda i, x: (x[i] * i, x.sum()), (0, 1), allow_int=True)(i, X)
    assert rows[0][0].shape == (2, 2) and rows[0][0].dtype == bool and rows[1][0].shape == (2,)
    np.testing.assert_array_equal(rows[0][1], [[0, 1, 0, 0], [0, 0, 2, 0]])
    with pytest.raises(DTypeError, match="which is not a float"):
        mp.grad(f, (0, 1))(i, X)


# ---- stop_gradient ----------------------------------------------------------------------------------------


def test_stopped_gradients_under_every_transformation():
    def f(x):
        return np.sum(x * lax.stop_gradient(np.sin(x)))

    np.testing.assert_allclose(mp.grad(f)(X), np.sin(X))
    np.testing.assert_array_equal(mp.hessian(f)(X), np.zeros((4, 4)))
    np.testing.assert_allclose(mp.jvp(f, (X,), (X,))[1], np.sum(np.sin(X) * X))
    np.testing.assert_allclose(mp.jit(mp.vmap(mp.grad(f)))(A), np.sin(A))
    np.testing.assert_allclose(mp.linearize(f, X)[1](X), np.sum(np.sin(X) * X))
    np.testing.assert_array_equal(mp.hvp(f, (X,), (X,)), np.zeros(4))
    np.testing.assert_allclose(mp.vjp(lambda x: lax.stop_gradient({"a": x, "n": 3})["a"], X)[1](X)[0], np.zeros(4))
