"""SciPy's solvers in translated functions beside SciPy itself: counts, results, errors, and what is refused.

In: the same call, translated and not. Out: equal roots, iterations and messages; refusals at the user's line.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.optimize as so
import scipy.sparse
import scipy.sparse.linalg as sl

import metaphrase as mp
from metaphrase import lax
from metaphrase.flatten_util import ravel_pytree
from metaphrase.implicit_diff import custom_root
from metaphrase.source import DTypeError, ShapeError, SourceError, UnsupportedError

FUNCTIONS = {
    "cubic": (lambda x, a: x**3 - 2 * x - 5 * a, 2.0, 3.0),
    "flat": (lambda x, a: (x - a) ** 9, 0.0, 2.1),
    "wave": (lambda x, a: np.cos(x) - a * x, 0.0, 1.5),
    "steep": (lambda x, a: np.exp(4 * x) - 50 * a, -3.0, 4.0),
    "at_an_end": (lambda x, a: x * (x - 3) * a, 0.0, 1.0),
}


def run(f, *args):
    """The program itself, without native code: its value is the primal of a derivative that is not looked at."""
    return mp.jvp(f, args, args)[0]


@pytest.mark.turns(3)
@pytest.mark.parametrize("method", ["bisect", "brentq", "brenth", "ridder"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_brackets_take_scipys_steps(name, method):
    f, low, high = FUNCTIONS[name]
    want = so.root_scalar(f, args=(1.0,), method=method, bracket=[low, high])

    def ours(a):
        found = so.root_scalar(f, args=(a,), method=method, bracket=[low, high])
        return found.root, 1.0 * found.iterations, 1.0 * found.function_calls, 1.0 * found.converged

    got = run(ours, 1.0)
    np.testing.assert_allclose(got[0], want.root, rtol=1e-13, atol=1e-13)
    assert got[2:] == (want.function_calls, want.converged)
    assert got[1] == want.iterations or name == "at_an_end"  # SciPy leaves the count unset


@pytest.mark.parametrize("name", ["cubic", "wave", "steep"])
@pytest.mark.parametrize("options", [{}, {"fprime": 1}, {"fprime": 1, "fprime2": 1}, {"x1": 2.5}])
def test_newton_takes_scipys_steps(name, options):
    f, _, x0 = FUNCTIONS[name]
    words = {**options}
    if "fprime" in words:
        words["fprime"] = lambda x, a: mp.grad(f)(x, a)
    if "fprime2" in words:
        words["fprime2"] = lambda x, a: mp.grad(mp.grad(f))(x, a)
    want, how = so.newton(f, x0, args=(1.0,), full_output=True, **words)

    def ours(a):
        root, found = so.newton(f, x0, args=(a,), full_output=True, **words)
        return root, 1.0 * found.iterations, 1.0 * found.function_calls, 1.0 * found.converged

    got = run(ours, 1.0)
    np.testing.assert_allclose(got[0], want, rtol=1e-12)
    assert got[1:] == (how.iterations, how.function_calls, how.converged)


def test_results_leave_a_jitted_function():
    f, low, high = FUNCTIONS["cubic"]
    found = mp.jit(lambda a: so.root_scalar(f, args=(a,), bracket=(low, high), maxiter=3))(1.0)
    want = so.root_scalar(f, args=(1.0,), bracket=(low, high), maxiter=3)
    assert (found.converged, found.flag, found.iterations) == (want.converged, want.flag, want.iterations)
    assert np.isclose(found.root, want.root, rtol=1e-15) and not found.converged


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda a: so.brentq(lambda x: x * x + a, 0.0, 1.0), ValueError, "must have different signs"),
        (lambda a: a + so.brentq(lambda x: x * x + 1.0, 0.0, 1.0), ValueError, "must have different signs"),
        (lambda a: so.bisect(lambda x: x - a, 0.0, 1.5, maxiter=4), RuntimeError, "after 4 iterations"),
        (lambda a: so.brentq(lambda x: x - a, 0.0, 1.5, xtol=0.0), ValueError, "xtol too small"),
        (lambda a: so.brentq(lambda x: x - a, 0.0, 1.5, rtol=1e-18), ValueError, "rtol too small"),
        (lambda a: so.brentq(lambda x: np.sqrt(x - a), 0.0, 1.5), ValueError, "is NaN; solver cannot continue"),
        (lambda a: so.newton(lambda x: x * x + a, 1.0), RuntimeError, "Failed to converge after 50 iterations"),
        (lambda a: so.newton(lambda x: x * x + a, 0.0, lambda x: 2 * x), RuntimeError, "Derivative was zero"),
        (lambda a: so.newton(lambda x: x * x + a, 1.0, x1=-1.0), RuntimeError, "Tolerance of .*2.0 reached"),
        (lambda a: so.newton(lambda x: x * x + a, 0.0, x1=0.0), ValueError, "x1 and x0 must be different"),
        (lambda a: so.root_scalar(lambda x: x - a), ValueError, "neither bracket nor starting point"),
        (lambda a: so.root_scalar(lambda x: x - a, method="brentq", x0=1.0), ValueError, "Bracket needed"),
        (lambda a: so.root_scalar(lambda x: x - a, method="halley", x0=1.0), ValueError, "fprime must be specified"),
        (lambda a: sl.cg(np.ones((2, 3)) * a, np.ones(2)), ValueError, "expected square matrix"),
        (lambda a: sl.cg(np.eye(2) * a, np.ones(2), atol=-1.0), ValueError, "invalid `atol`"),
    ],
)
def test_errors_are_scipys(call, kind, said):
    for f in (call, functools.partial(run, call)):
        with np.errstate(all="ignore"), pytest.raises(kind, match=said):
            f(1.0)


SPARSE = scipy.sparse.csr_array(np.eye(2))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a: so.root_scalar(lambda x: x - a, bracket=(0, 2), method="toms748"), "method='toms748'"),
        (lambda a: so.newton(lambda x: x - a, np.zeros(2)), "of arrays and of complex numbers"),
        (lambda a: so.minimize(lambda x: x @ x * a, np.ones(2), method="Nelder-Mead"), "method='Nelder-Mead'"),
        (lambda a: so.minimize(lambda x: x @ x * a, np.ones(2), bounds=[(0, 1)] * 2), "with bounds="),
        (lambda a: so.minimize(lambda x: x @ x * a, np.ones(2), options={"disp": True}), "with the option disp"),
        (lambda a: sl.cg(SPARSE, np.ones(2) * a), "of a sparse matrix"),
        (lambda a: sl.cg(np.eye(2), np.ones(2) * a, callback=print), "with callback="),
        (lambda a: sl.gmres(np.eye(2) * (a + 1j), np.ones(2)), "of complex numbers"),
        (lambda a: sl.minres(np.eye(2), np.ones(2) * a), "minres"),
    ],
)
def test_refusals_name_what_and_where(call, said):
    with pytest.raises(UnsupportedError, match="no-translation") as caught:
        mp.jvp(call, (1.0,), (1.0,))
    assert said in str(caught.value) and caught.value.span.file == __file__


@pytest.mark.parametrize("n", [3, 8])
def test_bfgs_takes_scipys_steps(n):
    def valley(x, a):
        return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    x0 = np.linspace(-1.2, 1.0, n)
    want = so.minimize(valley, x0, args=(100.0,), jac=mp.grad(valley), method="BFGS")

    def ours(a):
        found = so.minimize(valley, x0, args=(a,))
        return found.x, found.hess_inv, found.jac, 1.0 * found.nit, 1.0 * found.nfev, 1.0 * found.status, found.fun

    x, inverse, jac, *counts, fun = run(ours, 100.0)
    np.testing.assert_allclose(x, want.x, rtol=1e-6)
    np.testing.assert_allclose(inverse, want.hess_inv, rtol=1e-3, atol=1e-3)
    assert np.max(np.abs(jac)) < 1e-5 and counts == [want.nit, want.nfev, 0] and fun < 1e-10


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ({"maxiter": 2}, 1, "Maximum number of iterations"),
        ({"gtol": 1e-30}, 2, "precision loss"),
        ({}, 0, "successfully"),
    ],
)
def test_bfgs_says_how_it_ended(options, status, said):
    def ended(a):
        found = so.minimize(lambda x: np.sum(np.cosh(x - a) + x**4), np.ones(2), options=options)
        return found.success, found.status, found.message

    success, found, message = mp.jit(ended)(0.3)
    assert (success, found) == (status == 0, status) and said in message


MATRIX = np.array([[4.0, 1.0, 0.5, 0.0], [0.3, 5.0, 1.0, 0.2], [0.2, -0.6, 3.0, 1.0], [0.0, 0.4, 0.1, 6.0]])


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    "words", [{}, {"rtol": 1e-12}, {"maxiter": 2}, {"atol": 0.1}, {"M": np.diag(1 / np.diag(MATRIX))}]
)
@pytest.mark.parametrize("solver", [sl.cg, sl.bicgstab, sl.gmres])
def test_iterations_are_scipys(solver, words):
    matrix = MATRIX @ MATRIX.T if solver is sl.cg else MATRIX
    b = np.array([1.0, -2.0, 0.5, 3.0])
    if solver is sl.gmres:
        words = {**words, "restart": 2}

    def ours(b):
        x, info = solver(matrix, b, **words)
        return x, 1.0 * info

    x, info = run(ours, b)
    want, how = solver(matrix, b, **words)
    np.testing.assert_allclose(x, want, rtol=1e-10, atol=1e-12)
    assert info == how


def test_complex_equations():
    matrix, b = MATRIX + 1j * (MATRIX - MATRIX.T), np.array([1.0, 2j, 0.5, 1 + 1j])
    hermitian = matrix @ matrix.conj().T
    for solver, a in ((sl.cg, hermitian), (sl.bicgstab, matrix)):
        x, pullback = mp.vjp(lambda a, b, solver=solver: solver(a, b, rtol=1e-12)[0], a, b)
        np.testing.assert_allclose(x, np.linalg.solve(a, b), rtol=1e-9)
        wanted = mp.vjp(np.linalg.solve, a, b)[1](b)
        for got, want in zip(pullback(b), wanted):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


# ---- what the equations of a user's own must be ---------------------------------------------------------------


def found(f, x):
    return np.float64(2.0)


def slope(g, y):
    return y / g(1.0)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (
            lambda a: lax.custom_root(lambda x: (x - a, x), 1.0, found, slope),
            DTypeError,
            r"f of custom_root returns \(\*, \*\)",
        ),
        (
            lambda a: lax.custom_root(lambda x: x - a, 1.0, found, lambda g, y: (y,)),
            DTypeError,
            "tangent_solve of custom_root",
        ),
        (
            lambda a: lax.custom_root(lambda x: np.stack([x - a]), 1.0, found, slope),
            ShapeError,
            r"returns f64\[1\] where",
        ),
        (
            lambda a: lax.custom_root(lambda x: x - a, 1.0, found, slope, has_aux=True),
            DTypeError,
            "has_aux=True returns",
        ),
        (lambda a: lax.custom_root(lambda x: x - a, 1, lambda f, x: 2, slope), DTypeError, "i64 in it"),
        (
            lambda a: lax.custom_linear_solve(lambda x: np.zeros(2) * a, 1.0, lambda A, b: b),
            ShapeError,
            "matvec of custom_linear_solve returns",
        ),
        (
            lambda a: lax.custom_linear_solve(lambda x: a * x, 1.0, lambda A, b: (b, b), slope),
            DTypeError,
            "solve of custom_linear_solve returns",
        ),
        (
            lambda a: lax.custom_linear_solve(lambda x: a * x, 1.0, lambda A, b: b / A(1.0)),
            SourceError,
            "no transpose_solve",
        ),
    ],
)
def test_what_does_not_fit_is_said_at_the_call(call, kind, said):
    with pytest.raises(kind, match=said) as caught:
        mp.grad(call)(2.0)
    assert caught.value.span.file == __file__


def test_a_solver_that_always_raises():
    def fails(f, b):
        raise ArithmeticError("no solution")

    for call in (
        lambda a: a * lax.custom_root(lambda x: x - a, 1.0, fails, slope),
        lambda a: lax.custom_linear_solve(lambda x: a * x, a, fails, fails),
    ):
        with pytest.raises(ArithmeticError, match="no solution"):
            mp.grad(call)(2.0)


def test_named_parameters_of_a_solver_are_its_own():
    solver = custom_root(lambda x, a, b=1.0: x - a * b)(lambda x, a, b=1.0: a * b)
    assert solver(0.0, 2.0) == solver(0.0, b=2.0, a=1.0) == 2.0
    for words, said in (({"c": 1.0}, "no such parameter"), ({"b": 1.0}, "is not given 'a'")):
        with pytest.raises(TypeError, match=said):
            solver(0.0, **words)


def test_what_is_no_function_is_said():
    with pytest.raises(TypeError, match="solve of lax.custom_root.* is a function, and this one is a float"):
        lax.custom_root(lambda x: x, 1.0, 2.0, slope)


# ---- closure_convert, ravel_pytree ------------------------------------------------------------------------------


def test_a_converted_function_takes_what_it_read():
    def outer(a, b, n):
        inside = np.sin(b)
        f = lambda x: x * a[0] + np.sum(inside) * n  # noqa: E731
        converted, consts = mp.closure_convert(f, 1.0)
        value, slopes = mp.value_and_grad(converted, tuple(range(3)))(2.0, *consts)
        return len(consts), f(2.0), value, slopes

    count, plain, value, (x_bar, *bars) = mp.jit(outer)(np.array([2.0, 3.0]), np.ones(3), 2)
    assert count == 2 and plain == value == pytest.approx(4 + 6 * np.sin(1))
    assert x_bar == 2.0 and sorted(np.shape(bar) for bar in bars) == [(2,), (3,)]
    assert sorted(np.sum(bar) for bar in bars) == [2.0, 6.0]


def test_outside_of_translated_functions_there_is_nothing_to_convert():
    f = lambda x: x + 1  # noqa: E731
    converted, consts = mp.closure_convert(f, 1.0)
    assert converted(2.0) == 3.0 and consts == []


def test_a_tree_as_a_vector():
    value = {"a": np.arange(4.0).reshape(2, 2), "b": (np.float32(7), 3)}
    flat, unravel = ravel_pytree(value)
    assert flat.tolist() == [0, 1, 2, 3, 7, 3] and flat.dtype == np.float64
    again = unravel(flat)
    assert again["a"].tolist() == [[0, 1], [2, 3]] and again["b"] == (7, 3) and again["b"][0].dtype == np.float32
    assert unravel(np.stack([flat, flat]))["a"].shape == (2, 2, 2)
    assert ravel_pytree({})[0].shape == (0,)
    assert mp.grad(lambda t: np.sum(ravel_pytree(t)[0] ** 2))({"u": 1.0, "v": np.ones(2)})["v"].tolist() == [2.0, 2.0]
