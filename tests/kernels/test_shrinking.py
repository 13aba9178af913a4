"""Arrays that lose elements in a loop: the loop stays one, in NumPy source, in native code and in
derivatives."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError


def survivors(x, steps):
    counts = np.zeros(steps, dtype=np.int64)
    for k in range(steps):
        x = x * 1.25
        x = x[x < 3.0]
        counts[k] = len(x)
    return x, counts


def survivors_with_names(x, steps):
    at = np.arange(len(x))
    left_at = np.zeros(len(x), dtype=np.int64)
    for k in range(steps):
        x = x * 1.25
        gone = x >= 3.0
        left_at[at[gone]] = k + 1
        x, at = x[~gone], at[~gone]
    return left_at, x.sum()


def rows_left(x, steps):
    for _ in range(steps):
        x = x + 0.5
        x = x[x[:, 0] < 2.0]
    return x


def sum_of_survivors(x, steps):
    for _ in range(steps):
        x = x * x
        x = x[x < 2.0]
    return np.sum(x**2)


X = np.random.default_rng(3).uniform(0, 3, 23)
CASES = [
    (survivors, (X, 6)),
    (survivors, (X, 0)),
    (survivors, (X + 4, 3)),
    (survivors_with_names, (X, 5)),
    (rows_left, (X[:22].reshape(11, 2), 3)),
    (sum_of_survivors, (X, 3)),
]


@pytest.mark.parametrize("function, arguments", CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_native_code_and_source_give_numpys_numbers(function, arguments):
    want = function(*arguments)
    want = want if isinstance(want, tuple) else (want,)
    scope: dict = {}
    exec(mp.source(function, *arguments, stage="numpy"), scope)
    for run in (mp.jit(function), mp.jit(function), scope[function.__name__]):
        for _ in range(2):
            got = run(*arguments)
            got = got if isinstance(got, tuple) else (got,)
            for g, w in zip(got, want, strict=True):
                assert np.shape(g) == np.shape(w)
                np.testing.assert_allclose(g, w, rtol=1e-13)


def test_another_length():
    jitted = mp.jit(survivors)
    for n in (23, 7, 40, 3):
        x = np.random.default_rng(n).uniform(0, 3, n)
        for g, w in zip(jitted(x, 4), survivors(x, 4)):
            np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_gradient_follows_the_elements_that_stay(compiled):
    gradient = mp.grad(sum_of_survivors)
    found = (mp.jit(gradient) if compiled else gradient)(X, 2)
    stays = (X < 2.0**0.5) & (X**2 < 2.0**0.5)
    np.testing.assert_allclose(found, np.where(stays, 8 * X**7, 0.0), rtol=1e-12)


def growing(x, steps):
    for _ in range(steps):
        x = np.concatenate([x, x[:1]])
    return x


def test_an_array_that_grows_is_refused():
    with pytest.raises(SourceError, match="before the loop"):
        mp.jit(growing)(X, mp.jit(lambda n: n + 1)(np.int64(3)))


@pytest.mark.parametrize("seed", range(6))
def test_argsort_of_bools_is_stable(seed):
    mask = np.random.default_rng(seed).uniform(size=(5, 17)) < 0.4
    for axis in (0, 1):
        got = mp.jit(lambda m, axis=axis: np.argsort(m, axis=axis, kind="stable"))(mask)
        np.testing.assert_array_equal(got, np.argsort(mask, axis=axis, kind="stable"))
