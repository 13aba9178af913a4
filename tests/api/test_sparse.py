"""Sparse Jacobians and Hessians: against dense ones, over functions of many kinds, with the patterns and colours.

In: functions and points. Out: the same numbers; patterns that hold at other points, and are as small as it is said.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg

import metaphrase as mp
from metaphrase import lax
from metaphrase.api.colouring import alone_in_row, column_colours, star_colours
from metaphrase.source import DTypeError, ShapeError, SourceError, UnsupportedError

RNG = np.random.default_rng(1)
X, GRID = RNG.random(8) + 0.5, RNG.random((4, 5))
sparse_jacobian = functools.partial(mp.jacobian, sparsity="detect")
PLACES = np.array([3, 1, 1, 0])


def tridiagonal(u):
    inside = u[2:] * u[1:-1] - 2 * u[1:-1] ** 2 + np.sin(u[:-2])
    return np.concatenate([[u[0] - u[1]], inside, [u[-1]]])


def five_points(u):
    v = np.zeros_like(u)
    v[1:-1, 1:-1] = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1] ** 3
    return v


def heat(u):
    for _ in range(2):
        u = u + 0.1 * np.concatenate([[0.0], u[2:] - 2 * u[1:-1] + u[:-2], [0.0]])
    return u


def blocks(x):
    y = x.reshape(4, 2)
    return (y[:, :1] * y * y[:, 1:]).ravel()


def element_by_element(x):
    y = np.zeros_like(x)
    for i in range(len(x)):
        y[i] = x[i] * (x[i - 1] if i > 0 else 1.0)
    return y


def recurrence(x):
    y, s = np.zeros_like(x), 0.0
    for i in range(len(x)):
        s = 0.5 * s + x[i] ** 2
        y[i] = s
    return y


def backwards(x):
    y, s = np.zeros_like(x), 1.0
    for i in range(len(x) - 1, -1, -1):
        s = x[i] if i % 3 == 2 else s + x[i]
        y[i] = s
    return y


def counted(x):
    k = 0
    while k < 3:
        x, k = x * np.roll(x, 1), k + 1
    return x


def scattered(x):
    y = np.zeros(10)
    y[PLACES] += x[:4] ** 2
    y[9] = x[7]
    return y


def to_a_tolerance(x):
    while x[0] < 10:
        x = x * 2 + 0.1 * np.concatenate([x[:1], x[:-1]])
    return x


def by_a_branch(x):
    if x[0] > 1:
        return np.array([x[0], x[1] * x[2], x[2]])
    return np.array([x[1], x[1] * x[2], x[0]])


def springs(x):
    """Forces on a chain, by a scan over its links."""

    def link(force, ends):
        pull = (ends[1] - ends[0]) ** 3
        return pull, pull - force

    last, forces = lax.scan(link, 0.0, np.stack([x[:-1], x[1:]], axis=1))
    return np.concatenate([forces, [-last]])


@mp.custom_jvp
def ruled(x):
    return np.sin(x)


@ruled.defjvp
def ruled_jvp(primals, tangents):
    return np.sin(primals[0]), np.cos(primals[0]) * tangents[0]


@mp.custom_vjp
def reverse_alone(x):
    return np.sin(x)


reverse_alone.defvjp(lambda x: (np.sin(x), x), lambda x, bar: (bar * np.cos(x),))

# name: function, argument, how many elements the pattern has (None: as many as are not zero), how many colours
CASES = {
    "tridiagonal": (tridiagonal, X, None, 3),
    "five points": (five_points, GRID, None, 4),
    "steps of heat": (heat, X, None, 5),
    "blocks": (blocks, X, None, 2),
    "element by element": (element_by_element, X, None, 2),
    "recurrence": (recurrence, X, None, 8),
    "backwards": (backwards, X, None, 3),
    "a counted while": (counted, X, None, 4),
    "scattered": (scattered, X, None, 1),
    "gathered": (lambda x: x[PLACES] * x[0], X, None, 2),
    "diagonal": (lambda x: x * np.exp(x), X, None, 1),
    "masked": (lambda x: np.where(np.arange(8) % 2 == 0, x**2, 0.0), X, None, 1),
    "nothing": (lambda x: np.floor(x), X, 0, 1),
    "a sum": (lambda x: np.sum(x**2), X, None, 1),
    "running sums": (lambda x: np.cumsum(x), X, None, 8),
    "sums of rows": (lambda u: np.sum(u * u, axis=1), GRID, None, 1),
    "extremes of rows": (lambda u: u.max(axis=0), GRID, 20, 1),
    "a known matrix": (lambda x: np.triu(np.tril(np.ones((8, 8)), 1)) @ x, X, None, 2),
    "transposed": (lambda u: u.T.ravel()[::2] ** 2, GRID, None, 1),
    "padded and repeated": (lambda x: np.pad(x, 2) + np.repeat(x, 2)[:12], X, None, 2),
    "stacked": (lambda x: np.stack([x[1:], x[:-1] ** 2]), X, None, 1),
    "larger of two": (lambda x: np.maximum(x[:-1], x[1:]), X, 14, 2),
    "normalised": (lambda x: x / x.sum(), X, 64, 8),
    "sorted": (lambda u: np.sort(u, axis=1), GRID, 100, 5),
    "picked by value": (lambda u: u[np.arange(4), np.argmax(u, axis=1)] ** 2, GRID, 20, 1),
    "solved": (lambda x: np.linalg.solve(np.diag(x[:3]), x[3:6]), X, 18, 3),
    "spectrum": (lambda x: np.fft.rfft(x).real, X, 40, 5),
    "to a tolerance": (to_a_tolerance, X, 36, 8),
    "by a branch": (by_a_branch, X, 6, 3),
    "a scan": (springs, X, None, 3),
    "batched": (mp.vmap(lambda row: row[:2] * row[2]), GRID, None, 2),
    "jitted": (mp.jit(tridiagonal), X, None, 3),
    "a rule": (lambda x: ruled(x)[1:] * x[0], X, None, 2),
    "a backward rule alone": (lambda x: reverse_alone(x)[:4] * x[4:], X, None, 1),
    "a gradient": (mp.grad(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2)), X, None, 3),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", CASES)
def test_jacobians_are_the_dense_ones(name):
    f, x, elements, colours = CASES[name]
    made = sparse_jacobian(f)
    dense = mp.jacrev(f) if "alone" in name else mp.jacfwd(f)
    plan = made.plan(x)
    for point in (x, x + 0.25, 2 * x[..., ::-1].copy()):
        got = made(point)
        assert isinstance(got, sp.csr_array) and made.plan(point) is plan
        np.testing.assert_allclose(got.toarray(), dense(point).reshape(got.shape), atol=1e-12)
    assert plan.pattern.nnz == (np.count_nonzero(dense(x)) if elements is None else elements)
    assert plan.colours.max() + 1 == colours


def test_modes_are_chosen_by_the_number_of_colours():
    assert sparse_jacobian(lambda x: np.sum(x**2)).plan(X).reverse
    assert not sparse_jacobian(lambda s: s * X).plan(2.0).reverse
    assert sparse_jacobian(lambda x: reverse_alone(x)).plan(X).reverse
    both = sparse_jacobian(lambda x: np.concatenate([[x.sum()], x]))  # a dense row
    assert both.plan(X).reverse and both.plan(X).colours.max() + 1 == 2
    np.testing.assert_array_equal(both(X).toarray(), np.vstack([np.ones(8), np.eye(8)]))


def test_without_sparsity_it_is_that_of_jax():
    got = mp.jacobian(lambda x, i: x[i] ** 2, (0, 1), allow_int=True)(X, PLACES)
    np.testing.assert_allclose(got[0], mp.jacrev(lambda x: x[PLACES] ** 2)(X))
    assert got[1].shape == (4, 4) and got[1].dtype == bool


def test_patterns_that_are_given():
    tri = np.tri(8, 8, 1) * np.tri(8, 8, 1).T
    for pattern in (tri, tri.astype(bool), sp.coo_array(tri), sp.csr_matrix(tri)):
        made = mp.jacobian(tridiagonal, sparsity=pattern)
        np.testing.assert_allclose(made(X).toarray(), mp.jacfwd(tridiagonal)(X))
        assert made.plan(X).colours.max() + 1 == 3
    made = mp.jacobian(lambda x: reverse_alone(x), sparsity=np.eye(8))
    np.testing.assert_allclose(made(X).toarray(), np.diag(np.cos(X)))


def test_integers_and_sizes_have_patterns_of_their_own():
    def picked(x, places):
        return x[places] * x[places + 1]

    made = sparse_jacobian(picked)
    for places in (np.array([0, 2]), np.array([1, 1, 3]), np.array([0, 2])):
        got = made(X, places)
        np.testing.assert_allclose(got.toarray(), mp.jacfwd(picked)(X, places))
        assert got.nnz == 2 * len(places)
    assert len(made.plans) == 2
    made = sparse_jacobian(tridiagonal)
    for n in (5, 30, 200):
        u = RNG.random(n)
        assert made(u).nnz == 3 * n - 3 and made.plan(u).colours.max() == 2


def test_captured_integers_may_change():
    places = np.array([0, 1])
    made = sparse_jacobian(lambda x: x[places] ** 2)
    assert made(X).toarray()[1, 1] == 2 * X[1]
    places[:] = 5, 6
    np.testing.assert_allclose(made(X).toarray()[:, 5:7], np.diag(2 * X[5:7]))


def test_trees_arguments_and_aux():
    def f(p, b, *, scale):
        return {"u": p["u"][1:] * b * scale, "w": (p["w"] ** 2, p["u"].sum())}, {"b": b}

    point = {"u": X, "w": 2.0}
    made = sparse_jacobian(f, argnums=(0, 1), has_aux=True)
    got, aux = made(point, 3.0, scale=2.0)
    want, _ = mp.jacfwd(lambda p, b: f(p, b, scale=2.0), (0, 1), has_aux=True)(point, 3.0)
    assert aux == {"b": 3.0} and mp.tree.structure(got) == mp.tree.structure(want)
    for sparse, dense in zip(mp.tree.leaves(got), mp.tree.leaves(want)):
        np.testing.assert_allclose(sparse.toarray(), np.reshape(dense, sparse.shape))
    assert got["u"][0]["w"].nnz == 0


def test_stores_into_arguments_stay_in_the_function():
    def f(x):
        x[0] = x[1] ** 2
        return x

    x = X.copy()
    np.testing.assert_allclose(sparse_jacobian(f)(x).toarray(), mp.jacfwd(f)(x))
    np.testing.assert_array_equal(x, X)


def test_long_loops_are_taken_to_a_fixpoint(monkeypatch):
    monkeypatch.setattr("metaphrase.core.sparsity.STEPS", 40)
    for f in (recurrence, element_by_element, backwards, springs, counted):
        made = sparse_jacobian(f)
        np.testing.assert_allclose(made(X).toarray(), mp.jacfwd(f)(X), atol=1e-12)


def test_results_are_the_callers():
    made = sparse_jacobian(tridiagonal)
    first = made(X)
    first.data[:] = 0
    first.eliminate_zeros()
    np.testing.assert_allclose(made(X).toarray(), mp.jacfwd(tridiagonal)(X))


# ---- Hessians -------------------------------------------------------------------------------------------


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


HESSIANS = {
    "rosenbrock": (rosenbrock, X, 3, 3),
    "arrow": (lambda x: np.sum(x[0] * x[1:] ** 2), X, 2, 8),
    "membrane": (lambda u: np.sum((u[1:] - u[:-1]) ** 4) + np.sum((u[:, 1:] - u[:, :-1]) ** 4), GRID, 5, None),
    "dense": (lambda x: np.prod(x), X, 8, 8),
    "linear": (lambda x: x.sum(), X, 1, 1),
    "separable": (lambda x: np.sum(np.exp(x)), X, 1, 1),
    "backward rule": (lambda x: np.sum(reverse_alone(x) ** 2), X, 1, 1),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_are_the_dense_ones(name):
    f, x, star, plain = HESSIANS[name]
    made = mp.hessian(f, sparsity="detect")
    got = made(x)
    np.testing.assert_allclose(got.toarray(), mp.hessian(f)(x).reshape(got.shape), atol=1e-10)
    assert made.plan(x).colours.max() + 1 == star
    assert plain is None or sparse_jacobian(mp.grad(f)).plan(x).colours.max() + 1 == plain
    given = mp.hessian(f, sparsity=np.triu(got.toarray() != 0))
    np.testing.assert_allclose(given(x).toarray(), got.toarray(), atol=1e-10)


def test_hessians_of_trees_with_aux():
    made = mp.hessian(lambda p: (rosenbrock(p["x"]) * p["b"], "aux"), has_aux=True, sparsity="detect")
    got, aux = made({"x": X, "b": 2.0})
    want = mp.hessian(lambda p: rosenbrock(p["x"]) * p["b"])({"x": X, "b": 2.0})
    assert aux == "aux"
    for row in ("x", "b"):
        for column in ("x", "b"):
            sparse = got[row][column]
            np.testing.assert_allclose(sparse.toarray(), np.reshape(want[row][column], sparse.shape))


# ---- colourings -------------------------------------------------------------------------------------------


def test_colourings_of_random_matrices():
    for _ in range(200):
        m, n = RNG.integers(1, 25, 2)
        pattern = RNG.random((m, n)) < RNG.random() * 0.5
        colours = column_colours(sp.csr_array(pattern))
        assert all(np.bincount(colours[row]).max(initial=0) <= 1 for row in pattern)
        symmetric = RNG.random((n, n)) < RNG.random() * 0.4
        symmetric |= symmetric.T
        values = RNG.normal(size=(n, n))
        values = (values + values.T) * symmetric
        colours = star_colours(sp.csr_array(symmetric))
        compressed = np.eye(colours.max() + 1)[colours].T @ values
        rows, columns = np.nonzero(symmetric)
        alone = alone_in_row(rows, colours[columns], len(compressed))
        a, b = np.where(alone, (rows, columns), (columns, rows))
        np.testing.assert_allclose(compressed[colours[b], a], values[rows, columns])


def test_bands_have_as_many_colours_as_they_are_wide():
    for width in (1, 2, 5):
        band = sp.diags_array([np.ones(60)] * width, offsets=range(width), shape=(60, 60)).tocsr()
        assert column_colours(band).max() + 1 == width


# ---- refusals -------------------------------------------------------------------------------------------


def test_what_is_refused():
    with pytest.raises(UnsupportedError, match="jacobian with sparsity inside of a translated function"):
        mp.jit(lambda x: sparse_jacobian(tridiagonal)(x))(X)
    with pytest.raises(UnsupportedError, match="jacobian with sparsity inside of a translated function"):
        mp.vmap(sparse_jacobian(tridiagonal))(GRID)
    with pytest.raises(UnsupportedError, match="of a size that is known only when it runs"):
        sparse_jacobian(lambda x: x[x > 1])(X)
    with pytest.raises(UnsupportedError, match=r"test_sparse.py:\d+:\d+: which elements depend on which can't be told"):
        sparse_jacobian(lambda x: np.sum(x[x > 1]) * x)(X)
    with pytest.raises(ShapeError, match=r"of shape \(3, 3\), and the matrix of shape \(8, 8\)"):
        mp.jacobian(tridiagonal, sparsity=np.eye(3))(X)
    with pytest.raises(SourceError, match="sparsity is 'auto'"):
        mp.jacobian(tridiagonal, sparsity="auto")
    with pytest.raises(DTypeError, match="which returns c128"):
        sparse_jacobian(lambda x: x * 1j)(X)
    with pytest.raises(DTypeError, match="with respect to complex numbers"):
        sparse_jacobian(lambda z: np.abs(z))(X + 1j)
    with pytest.raises(DTypeError, match="which is not a float"):
        sparse_jacobian(tridiagonal)(np.arange(4))


MATRIX = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 2.0]])


@pytest.mark.parametrize("solve", ["cg", "gmres", "bicgstab"])
def test_iterative_solvers_of_linear_equations(solve):
    """Their steps multiply what depends on the right side with what does."""

    def solved(b):
        return getattr(scipy.sparse.linalg, solve)(MATRIX, b, rtol=1e-14)[0]

    np.testing.assert_allclose(sparse_jacobian(solved)(X[:3]).toarray(), np.linalg.inv(MATRIX), rtol=1e-9, atol=1e-12)


def each_until(x):
    """Some steps, as many as values decide, which the way back takes in rows."""
    while x[0] < 2.0:
        x = x + 0.25 * x * x
    return np.sum(x**2)


def mixed_until(x):
    while np.sum(x) < 12.0:
        x = x + 0.3 * x * np.roll(x, 1)
    return np.sum(x[:2])


@pytest.mark.parametrize("function, count", [(each_until, 4), (mixed_until, 16)])
def test_hessians_of_loops_whose_number_of_steps_is_not_known(function, count):
    found = mp.hessian(function, sparsity="detect")(X[:4])
    assert found.nnz == count
    np.testing.assert_allclose(found.toarray(), mp.hessian(function)(X[:4]), rtol=1e-9, atol=1e-12)
