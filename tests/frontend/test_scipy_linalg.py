"""Calls of `scipy.linalg` on staged values: SciPy's results, dtypes and shapes, or a refusal."""

import copy
import functools
import warnings

import numpy as np
import pytest
import scipy.linalg as linalg

import metaphrase as mp
from metaphrase.config import config
from metaphrase.source import UnsupportedError

A = np.random.default_rng(0).normal(size=(4, 4))
B = np.random.default_rng(1).normal(size=(4, 2))
T = np.random.default_rng(2).normal(size=(5, 3))
C = A + 1j * np.random.default_rng(3).normal(size=(4, 4))
S, H = A @ A.T + np.eye(4), C @ C.conj().T + np.eye(4)
SMALL = np.array([[2, 1], [1, 3]], "int8")
GIVEN = dict(a=A, b=B, c=C, s=S, h=H, t=T, v=A[0], single=A.astype("f"), small=SMALL, half=S.astype("e"))

LINES = """
linalg.inv(a)
linalg.inv(single, overwrite_a=True, check_finite=False)
linalg.inv(small)
linalg.inv(np.stack([a, s]))
linalg.solve(a, b)
linalg.solve(c, v)
linalg.solve(small, small)
linalg.solve(single, b.astype("i"))
linalg.solve(half, half)
linalg.solve(a, b, transposed=True)
linalg.solve(a, b, assume_a="sym")
linalg.solve(c, b, assume_a="her", lower=True)
linalg.solve(np.triu(s), b, assume_a="pos")
linalg.solve(a, b, assume_a="upper triangular")
linalg.solve_triangular(a, b)
linalg.solve_triangular(c, v, trans="C", lower=True)
linalg.solve_triangular(a, v, 1, unit_diagonal=True)
linalg.det(a)
linalg.det(small.astype("l"))
linalg.det(single).dtype == np.float64
linalg.lstsq(t, np.concatenate([b, b[:1]]))
linalg.lstsq(t.T, v[:3])
linalg.lstsq(t, np.append(v, 1.0), 1e-2)[0]
linalg.pinv(t)
linalg.pinv(np.ones((3, 2)) * v[0], return_rank=True)
linalg.pinv(t, atol=0.1, rtol=0.1)
linalg.cholesky(s)
linalg.cholesky(h, lower=True)
linalg.cholesky(np.triu(h))
(np.triu(linalg.cho_factor(s)[0]), bool(linalg.cho_factor(s)[1]))
np.tril(linalg.cho_factor(h, lower=True)[0])
linalg.cho_solve(linalg.cho_factor(h), b)
linalg.cho_solve((linalg.cholesky(s, lower=True), True), v)
[abs(part) for part in linalg.svd(t)]
[abs(part) for part in linalg.svd(t, full_matrices=False, lapack_driver="gesvd")]
linalg.svd(t, compute_uv=False)
linalg.svdvals(small)
abs(linalg.eigh(s)[1])
linalg.eigh(a, lower=False, eigvals_only=True, driver="ev")
linalg.eigvalsh(h)
np.sort(linalg.eigvals(a).real)
linalg.eigvals(small).dtype
linalg.norm(v)
linalg.norm(single[0])
linalg.norm(a)
linalg.norm(a, 1)
linalg.norm(a, np.inf)
linalg.norm(a, axis=1)
linalg.norm(v, 1)
linalg.norm(a, 2)
linalg.norm(small)
linalg.block_diag(a, v, 2.5)
linalg.block_diag(small, single)
linalg.toeplitz(v)
linalg.toeplitz(c[0])
linalg.toeplitz(small[0], v)
linalg.hankel(v)
linalg.hankel(v, b[:, 0])
linalg.circulant(v)
linalg.expm(a * 20)
linalg.expm(c)
linalg.expm(single)
linalg.expm(small)
linalg.expm(v[0])
linalg.expm(a[:0, :0])
linalg.norm(a[:0, :0], np.inf)
""".split("\n")[1:-1]

REFUSED = {
    "linalg.eigh(a, s)": "scipy.linalg.eigh with b=",
    "linalg.eigh(a, subset_by_index=[0, 1])": "with subset_by_index=",
    "linalg.lstsq(t, t, lapack_driver='gelsy')": "with lapack_driver=",
    "linalg.toeplitz(a)": "of an array of 2 dimensions",
    "linalg.expm(np.stack([a, a]))": "of a stack of matrices",
}
RAISED = {
    "linalg.inv(a * np.nan)": (ValueError, "infs or NaNs"),
    "linalg.inv(a * 0)": (np.linalg.LinAlgError, "[Ss]ingular"),
    "linalg.solve(a - 9 * s, b, assume_a='pos')": (np.linalg.LinAlgError, "positive definite"),
    "linalg.cholesky(-s)": (np.linalg.LinAlgError, "not positive definite"),
    "linalg.inv(t)": (ValueError, "square"),
    "linalg.inv(a, foo=1)": (TypeError, "unexpected keyword argument 'foo'"),
    "linalg.solve(a, b, assume_a='round')": (ValueError, "not a recognized matrix structure"),
}


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    path = tmp_path_factory.mktemp("scipy") / "lines_of_scipy.py"
    every = [*LINES, *REFUSED, *RAISED]
    rows = ["import numpy as np\nfrom scipy import linalg\n"]
    rows += [f"def line_{k}({', '.join(GIVEN)}):\n    return {line}\n" for k, line in enumerate(every)]
    rows.append(f"def every({', '.join(GIVEN)}):\n    return [\n")
    rows += [f"        {line},\n" for line in LINES if "dtype" not in line]
    path.write_text("\n".join(rows) + "    ]\n")
    scope = {"__name__": "lines_of_scipy"}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return {**{line: scope[f"line_{k}"] for k, line in enumerate(every)}, "every": scope["every"]}


def alike(got, want):
    if isinstance(want, (list, tuple)):
        return type(got) is type(want) and len(got) == len(want) and all(map(alike, got, want))
    if isinstance(want, np.integer):  # a rank is Python's number before SciPy 1.18
        return type(got) in (int, type(want)) and got == want
    if not isinstance(want, (float, complex, np.ndarray)):
        return type(got) is type(want) and got == want
    if type(got) is not type(want) or np.asarray(got).dtype != np.asarray(want).dtype:
        return False
    double = np.asarray(want).dtype.name in ("float64", "complex128")
    tolerance = 1e-11 if double and not isinstance(want, float) else 1e-4
    return np.shape(got) == np.shape(want) and np.allclose(got, want, rtol=tolerance, atol=tolerance)


def expected(functions, line):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return functions[line](**copy.deepcopy(GIVEN))


@pytest.mark.turns(3)
@pytest.mark.parametrize("line", LINES)
def test_the_results_are_those_of_scipy(functions, line):
    with config(native=False):
        assert alike(mp.jit(functions[line])(**GIVEN), expected(functions, line))


def test_native(functions):
    for got, want in zip(mp.jit(functions["every"])(**GIVEN), expected(functions, "every"), strict=True):
        assert alike(got, want)


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_refused(functions, line):
    with pytest.raises(UnsupportedError, match=REFUSED[line]) as caught, config(native=False):
        mp.jit(functions[line])(**GIVEN)
    assert caught.value.code == "no-translation" and caught.value.span.line


@pytest.mark.parametrize("line", RAISED)
def test_what_raises(functions, line):
    kind, words = RAISED[line]
    with pytest.raises(kind):
        functions[line](**GIVEN)
    with pytest.raises(kind, match=words), config(native=False):
        mp.jit(functions[line])(**GIVEN)


def solution(a, b):
    x, residues, rank, values = linalg.lstsq(a, b)
    return x, rank, values


def residues(a, b):
    return linalg.lstsq(a, b)[1] * 2


def test_residues_of_one_right_side_are_a_number_or_nothing():
    side = T @ np.ones(3)
    with config(native=False):
        assert alike(mp.jit(solution)(T, side), solution(T, side))
        with pytest.raises(UnsupportedError, match="'residues' is an array"):
            mp.jit(residues)(T, side)


def exponential(a):
    return linalg.expm(a).sum()


def solved(a):
    return linalg.solve(a, np.ones(4)).sum() + linalg.norm(linalg.inv(a)) + linalg.cholesky(a @ a.T)[0, 1]


@pytest.mark.parametrize("function", [exponential, solved])
def test_derivatives(function):
    with config(native=False):
        slopes = mp.grad(function)(A * 3)
    for place in [(0, 1), (2, 2)]:
        step = np.zeros((4, 4))
        step[place] = 1e-6
        difference = (function(A * 3 + step) - function(A * 3 - step)) / 2e-6
        np.testing.assert_allclose(slopes[place], difference, rtol=1e-5)


def test_lanes():
    with config(native=False):
        made = mp.vmap(linalg.expm)(np.stack([A, S / 9]))
    np.testing.assert_allclose(made, np.stack([linalg.expm(A), linalg.expm(S / 9)]), rtol=1e-10)


def several(a):
    norms = linalg.norm(a, np.inf), linalg.norm(a[0])
    return linalg.solve(a, a[0]), linalg.det(a), norms, linalg.toeplitz(a[0])


def factored(a):
    return linalg.pinv(a), linalg.svdvals(a), linalg.cho_solve(linalg.cho_factor(a), a[0]), linalg.expm(a / 9)


@pytest.mark.parametrize("function", [several, factored])
def test_other_sizes(function):
    jitted = mp.jit(function)
    for n in (3, 4, 2, 5, 1):
        a = np.eye(n) * 2.0 + np.ones((n, n))
        with config(native=False):
            assert alike(jitted(a), function(a))


@pytest.mark.parametrize("function", [linalg.eigvalsh, linalg.inv, linalg.svdvals, linalg.expm])
def test_of_itself(function):
    with config(native=False):
        assert alike(mp.jit(function)(S), function(S))


def test_partial():
    function = mp.jit(functools.partial(linalg.solve, check_finite=False))
    assert alike(function(A, A[0]), linalg.solve(A, A[0]))
