"""`numpy.linalg` as users call it: values, errors, derivatives, batches, as NumPy source and native code."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.config import config
from metaphrase.source import SourceError

RNG = np.random.default_rng(5)
A = RNG.normal(size=(6, 6)) + 4 * np.eye(6)
B = RNG.normal(size=(6, 3))
S = A @ A.T + np.diag(np.arange(6.0))
TALL, WIDE = RNG.normal(size=(7, 4)), RNG.normal(size=(3, 5))
C = A + 1j * RNG.normal(size=(6, 6))


def systems(a, b):
    return np.linalg.solve(a, b), np.linalg.inv(a), np.linalg.det(a), np.linalg.slogdet(a)


def factors(s, tall, wide):
    return (
        np.linalg.cholesky(s),
        np.linalg.qr(tall),
        np.linalg.qr(wide),
        np.linalg.qr(tall, "complete"),
        np.linalg.svd(tall, full_matrices=False),
        np.linalg.svd(wide),
    )


def spectra(s, a):
    values, vectors = np.linalg.eigh(s)
    return values, vectors @ np.diag(values) @ vectors.T, np.linalg.pinv(a), np.linalg.matrix_rank(a)


def fitted(tall, b):
    return np.linalg.lstsq(tall, b, rcond=None)


def stacks(a, b):
    return np.linalg.solve(np.stack([a, a + 1]), b), np.linalg.inv(np.stack([a, a.T])), np.linalg.det(a[None])


CASES = [
    (systems, (A, B)),
    (systems, (A.astype(np.float32), B.astype(np.float32))),
    (systems, (C, B)),
    (factors, (S, TALL, WIDE)),
    (factors, (S, TALL, WIDE)),
    (spectra, (S, TALL)),
    (fitted, (TALL, RNG.normal(size=7))),
    (fitted, (TALL, RNG.normal(size=(7, 2)))),
    (fitted, (WIDE, RNG.normal(size=3))),
    (stacks, (A, B)),
]


def leaves(value):
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [value]


@pytest.mark.turns(3)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("function, args", CASES, ids=[f"{f.__name__}{k}" for k, (f, _) in enumerate(CASES)])
def test_values(function, args, native):
    with config(native=native):
        got = mp.jit(function)(*args)
    want = function(*args)
    tolerance = 1e-10 if args[0].dtype != np.float32 else 1e-4
    assert len(leaves(got)) == len(leaves(want))
    for g, w in zip(leaves(got), leaves(want)):
        assert np.asarray(g).dtype == np.asarray(w).dtype and np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)


def test_named_tuples_are_those_of_numpy():
    made = mp.jit(lambda s: (np.linalg.eigh(s).eigenvalues, np.linalg.eigh(s)))(S)
    assert type(made[1]).__name__ == "EighResult" and np.array_equal(made[0], made[1].eigenvalues)


def test_eigenvalues_of_any_matrix_are_complex():
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    values, vectors = mp.jit(np.linalg.eig)(turn)
    np.testing.assert_allclose(turn @ vectors, vectors * values, atol=1e-14)
    found = mp.jit(lambda a: np.linalg.eigvals(a))(S)
    assert found.dtype == np.complex128
    np.testing.assert_allclose(np.sort(found.real), np.linalg.eigvalsh(S))


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    "function, matrix, words",
    [
        (np.linalg.inv, np.zeros((2, 2)), "Singular matrix"),
        (lambda a: np.linalg.solve(a, np.ones(2)), np.ones((2, 2)), "Singular matrix"),
        (lambda a: np.linalg.solve(a, np.ones((2, 1))), np.stack([np.eye(2), np.ones((2, 2))]), "Singular"),
        (np.linalg.cholesky, -np.eye(3), "positive definite"),
        (lambda a: np.linalg.eig(a)[1], np.full((2, 2), np.nan), "must not contain infs or NaNs"),
    ],
)
def test_matrices_that_have_no_answer(function, matrix, words, native):
    with config(native=native), pytest.raises(np.linalg.LinAlgError, match=words):
        mp.jit(lambda a: function(a) + 0.0)(matrix)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mp.jit(np.linalg.inv)(TALL),
        lambda: mp.jit(np.linalg.det)(np.ones(3)),
        lambda: mp.jit(np.linalg.solve)(A, np.ones(4)),
        lambda: mp.jit(lambda a: np.linalg.qr(a, "raw"))(TALL),
    ],
)
def test_what_does_not_fit_is_refused_with_a_remedy(call):
    with pytest.raises(SourceError) as caught:
        call()
    assert caught.value.remedy


def likelihood(s, b):
    low = np.linalg.cholesky(s)
    z = np.linalg.solve(low, b[:, 0])
    return 0.5 * z @ z + np.sum(np.log(np.diagonal(low)))


def quadratic(s, b):
    sign, logarithm = np.linalg.slogdet(s)
    return b[:, 1] @ np.linalg.solve(s, b[:, 0]) + logarithm + np.linalg.det(s / 20)


def spectrum(s, b):
    values, vectors = np.linalg.eigh(s)
    return np.sum(np.sqrt(values)) + np.sum((vectors[:, :2] @ vectors[:, :2].T) * s) + b[0, 0]


def singular(s, b):
    u, values, vh = np.linalg.svd(s[:4] + b[:4, :1], full_matrices=False)
    return np.sum(values**1.5) + np.sum((u[:, :2] @ vh[:2]) ** 3) + np.linalg.norm(s, "nuc")


def triangles(s, b):
    q, r = np.linalg.qr(s[:, :3] + b)
    return np.sum(q**3) + np.sum(np.log(np.abs(np.diagonal(r)))) + np.sum(np.linalg.qr(s[:2])[1] ** 2)


def general(s, b):
    return np.sum(np.abs(np.linalg.eigvals(s + b @ b.T)) ** 2) + np.sum(np.linalg.pinv(s[:, :2]) ** 2)


def least_squares(s, b):
    return np.sum(np.linalg.lstsq(s[:, :3], b[:, 0], rcond=None)[0] ** 2)


SCALARS = [likelihood, quadratic, spectrum, singular, triangles, general, least_squares]


@pytest.mark.turns(3)
@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("function", SCALARS, ids=lambda f: f.__name__)
def test_gradients(function, native):
    """Along symmetric directions: the functions of Hermitian matrices read one triangle."""
    with config(native=native):
        got = mp.jit(mp.grad(function, (0, 1)))(S, B)
    direction, other = RNG.normal(size=S.shape), RNG.normal(size=B.shape)
    direction = direction + direction.T
    h = 1e-4

    def at(k):
        return function(S + k * h * direction, B + k * h * other)

    want = (8 * (at(1) - at(-1)) - at(2) + at(-2)) / (12 * h)
    found = np.sum(got[0] * direction) + np.sum(got[1] * other)
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("function", SCALARS, ids=lambda f: f.__name__)
def test_batches(function):
    matrices, sides = np.stack([S, S + np.eye(6), 2 * S]), np.stack([B, B + 1, B * 0.5])
    got = mp.jit(mp.vmap(function))(matrices, sides)
    np.testing.assert_allclose(got, [function(s, b) for s, b in zip(matrices, sides)], rtol=1e-9)


def test_second_derivatives():
    made = mp.hessian(lambda x: np.linalg.slogdet(np.outer(x, x) + np.eye(3))[1])(np.array([0.1, 0.2, 0.3]))
    x, size = np.array([0.1, 0.2, 0.3]), 1.14
    want = 2 * np.eye(3) / size - 4 * np.outer(x, x) / size**2  # of log(1 + x.x)
    np.testing.assert_allclose(made, want, atol=1e-12)


def test_a_complete_decomposition_has_no_derivative():
    with pytest.raises(TypeError, match="derivative"):
        mp.grad(lambda a: np.sum(np.linalg.svd(a)[0]))(TALL)


@pytest.mark.parametrize("native", [True, False])
def test_matrices_that_are_said_to_be_hermitian_are_read_in_their_lower_triangle(native):
    def told(m):
        return (
            np.linalg.pinv(m, hermitian=True),
            np.linalg.svd(m, compute_uv=False, hermitian=True),
            np.linalg.matrix_rank(m, hermitian=True),
        )

    with config(native=native):
        for matrix in (np.tril(S), np.tril(C), A.astype(np.float32)):
            for got, want in zip(mp.jit(told)(matrix), told(matrix)):
                np.testing.assert_allclose(got, want, rtol=1e-4 if matrix.dtype == np.float32 else 1e-9, atol=1e-7)
    gradient = mp.grad(lambda m: np.linalg.pinv(m, hermitian=True).sum())(S)
    assert not np.triu(gradient, 1).any() and gradient[np.tril_indices(6)].all()
