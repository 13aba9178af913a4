"""The derivatives of `det` and `slogdet`, at singular matrices too: against polynomials, differences, and products."""

import itertools
import math

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.config import config

RNG = np.random.default_rng(11)


def expanded(a):
    """The determinant as the sum over permutations: a polynomial, whose derivatives need no inverse."""
    n = len(a)
    total = 0.0
    for order in itertools.permutations(range(n)):
        swaps = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
        total = total + (-1) ** swaps * math.prod(a[i, order[i]] for i in range(n))
    return total


def of_rank(rank, n=3, dtype=np.float64):
    made = RNG.normal(size=(n, rank)) @ RNG.normal(size=(rank, n))
    if np.dtype(dtype).kind == "c":
        made = made + 1j * RNG.normal(size=(n, rank)) @ RNG.normal(size=(rank, n)) * (rank == n)
    return made.astype(dtype)


ONE_TO_NINE = np.arange(1.0, 10).reshape(3, 3)  # its LU factors say 6.7e-16, or 0
EXACT = {
    "regular": of_rank(3),
    "unit": np.eye(3),
    "rank 2": np.array([[1.0, 2, 3], [4, 5, 6], [5, 7, 9]]),
    "rank 1": np.outer([1.0, 2, 3], [2.0, -1, 1]),
    "rank 0": np.zeros((3, 3)),
    "nearly singular": ONE_TO_NINE,
    "rounded to rank 2": of_rank(2),
    "one": np.zeros((1, 1)),
    "two": np.array([[1.0, 2], [2, 4]]),
    "none": np.zeros((0, 0)),
}


@pytest.mark.parametrize("native", [False, True])
def test_first_and_second_derivatives_are_those_of_the_polynomial(native):
    matrices = {name: a for name, a in EXACT.items() if len(a) == 3 or not native}
    with config(native=native):
        first, second = mp.jit(mp.grad(np.linalg.det)), mp.jit(mp.hessian(np.linalg.det))
        found = {name: (first(a), second(a)) for name, a in matrices.items()}
    with config(native=False):
        for name, a in matrices.items():
            if len(a):
                np.testing.assert_allclose(found[name][0], mp.grad(expanded)(a), atol=2e-13, err_msg=name)
                np.testing.assert_allclose(found[name][1], mp.hessian(expanded)(a), atol=2e-13, err_msg=name)
    assert native or found["none"][0].shape == (0, 0)


def test_forward_mode_and_third_derivatives():
    a, t = of_rank(3), RNG.normal(size=(3, 3))
    want = mp.grad(expanded)(ONE_TO_NINE)
    np.testing.assert_allclose(mp.jacfwd(np.linalg.det)(ONE_TO_NINE), want, atol=1e-13)
    along = [mp.jet(f, (a,), ([t, 0 * t, 0 * t],))[1] for f in (np.linalg.det, expanded)]
    np.testing.assert_allclose(along[0], along[1], rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.complex64])
def test_other_dtypes(dtype):
    exact = 2e-4 if np.dtype(dtype).itemsize == (4 if np.dtype(dtype).kind == "f" else 8) else 1e-12
    for a in (of_rank(3, dtype=dtype), np.outer([1, 2, 3], [2, -1, 1]).astype(dtype), ONE_TO_NINE.astype(dtype)):
        if np.dtype(dtype).kind == "c":
            a = a * np.exp(0.3j).astype(dtype)
            found = mp.jit(mp.grad(lambda x: np.linalg.det(x), holomorphic=True))(a)
            want = mp.grad(expanded, holomorphic=True)(a.astype(complex))
        else:
            found, want = mp.jit(mp.grad(np.linalg.det))(a), mp.grad(expanded)(a.astype(float))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, want, atol=exact * np.abs(a).max() ** 2)


def test_stacks_and_lanes_with_singular_matrices_among_others():
    stack = np.stack([EXACT["regular"], EXACT["rank 2"], EXACT["rank 1"], ONE_TO_NINE])
    want = np.stack([mp.grad(expanded)(a) for a in stack])
    for native in (False, True):
        with config(native=native):
            together = mp.jit(mp.grad(lambda x: np.linalg.det(x).sum()))(stack)
            lanes = mp.jit(mp.vmap(mp.grad(np.linalg.det)))(stack)
        np.testing.assert_allclose(together, want, atol=2e-13)
        np.testing.assert_allclose(lanes, want, atol=2e-13)
    with config(native=False):
        second = mp.vmap(mp.hessian(np.linalg.det))(stack)
        np.testing.assert_allclose(second, np.stack([mp.hessian(expanded)(a) for a in stack]), atol=2e-13)


def test_sizes_that_are_symbols():
    gradient = mp.jit(mp.grad(np.linalg.det))
    for n in (2, 3, 4):
        a = RNG.normal(size=(n, n))
        a[-1] = a[0] if n > 2 else a[-1]
        want = np.linalg.det(a) * np.linalg.inv(a).T if n == 2 else mp.grad(expanded)(a)
        np.testing.assert_allclose(gradient(a), want, atol=1e-12)
    assert gradient.cache_info().misses <= 3


def test_what_is_too_large_or_small_or_no_number():
    gradient = mp.jit(mp.grad(np.linalg.det))
    for size in (1e-200, 1e200):
        np.testing.assert_allclose(gradient(size * np.eye(2)), size * np.eye(2))
    for native in (False, True):
        with config(native=native), np.errstate(all="ignore"):
            bad = mp.jit(mp.grad(np.linalg.det))(np.array([[np.nan, 1.0], [2.0, 0.0]]))
            assert np.isnan(bad).any()
            assert np.isnan(mp.jit(mp.hessian(np.linalg.det))(np.full((2, 2), np.nan))).any()
            with pytest.raises(np.linalg.LinAlgError, match="converge"):
                mp.jit(lambda a: np.linalg.svd(a)[1])(np.full((2, 2), np.nan))


@pytest.mark.parametrize("native", [False, True])
def test_slogdet_raises_nothing(native):
    singular = np.stack([np.ones((2, 2)), 2 * np.eye(2)])
    with config(native=native), np.errstate(all="ignore"):
        found = mp.jit(mp.grad(lambda x: np.linalg.slogdet(x)[1].sum()))(singular)
        alone = mp.jit(mp.jacfwd(lambda x: np.linalg.slogdet(x)[1]))(singular[0])
        rows = mp.jit(mp.grad(lambda x: np.linalg.qr(x)[1][0, 0]))(np.diag([1.0, 0.0]))
    assert np.isnan(found[0]).all() and np.isnan(alone).all() and np.isnan(rows).any()
    np.testing.assert_allclose(found[1], np.eye(2) / 2)


def test_names_of_helpers_are_free_for_users():
    def f(cofactors_of, inverse_or_nan):
        return np.linalg.det(cofactors_of) + np.linalg.slogdet(inverse_or_nan)[1]

    a, b = of_rank(3), of_rank(3)
    with config(native=False):
        first, second = mp.grad(f, (0, 1))(a, b)
    np.testing.assert_allclose(first, np.linalg.det(a) * np.linalg.inv(a).T)
    np.testing.assert_allclose(second, np.linalg.inv(b).T)
