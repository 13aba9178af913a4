"""Functions of a vector of parameters that solve an equation, each beside another way to the same numbers.

In: nothing. Out: `CASES`: name -> (function, reference, parameters). The reference has none of our code in it: a closed
form, NumPy's solution, or SciPy's at tight tolerances. Example: `CASES["square_root"]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
import scipy.special

import metaphrase as mp
from metaphrase import implicit_diff, lax, tree
from metaphrase.flatten_util import ravel_pytree

MATRIX = np.array([[4.0, 1.0, 0.5], [0.3, 5.0, 1.0], [0.2, -0.6, 3.0]])
SYMMETRIC = MATRIX @ MATRIX.T
EXACT = {"xtol": 1e-15, "rtol": 9e-16}


class Case(NamedTuple):
    function: Callable[..., Any]
    reference: Callable[..., Any]
    parameters: np.ndarray


CASES: dict[str, Case] = {}


def case(reference: Callable[..., Any], *parameters: float) -> Callable:
    def register(function: Callable) -> Callable:
        CASES[function.__name__] = Case(function, reference, np.array(parameters))
        return function

    return register


def bisection(f, bounds):
    low, high = bounds
    while high - low > 4e-16 * abs(high):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if f(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def newton(f, x):
    """Of one number."""
    for _ in range(40):
        x = x - f(x) / mp.jvp(f, (x,), (1.0,))[1]
    return x


def newtons(f, x):
    """Of vectors."""
    for _ in range(20):
        x = x - np.linalg.solve(mp.jacfwd(f)(x), f(x))
    return x


def slope(g, y):
    return y / g(1.0)


def jacobian_solve(g, y):
    return np.linalg.solve(mp.jacfwd(g)(y), y)


def repeated(f, x):
    for _ in range(300):
        x = f(x)
    return x


def richardson(matvec, b):
    x, r = np.zeros_like(b), b
    while np.sum(r * r) > 1e-29:
        x = x + 0.15 * r
        r = b - matvec(x)
    return x


def solved_exactly(f, guess):
    found = scipy.optimize.root(f, guess, tol=1e-12).x
    jacobian = scipy.optimize.approx_fprime(found, f, 1e-8)
    return found - np.linalg.solve(jacobian, f(found))


# ---- roots ------------------------------------------------------------------------------------------------


@case(lambda p: np.sqrt(p[0]), 2.0)
def square_root(p):
    return lax.custom_root(lambda x: x**2 - p[0], (0.0, 10.0), bisection, slope)


@case(lambda p: np.cbrt(p[0] * p[1]), 3.0, 0.7)
def cube_root(p):
    return lax.custom_root(lambda x: x**3 - p[0] * p[1], 1.0, newton, slope)


@case(lambda p: -np.sqrt(p[0]), 2.0)
def the_root_that_the_guess_leads_to(p):
    return lax.custom_root(lambda x: x**2 - p[0], -1.0, newton, slope)


@case(lambda p: scipy.optimize.brentq(lambda E: E - p[0] * np.sin(E) - p[1], 0, 4, **EXACT), 0.4, 1.2)
def kepler(p):
    return lax.custom_root(lambda E: E - p[0] * np.sin(E) - p[1], p[1], newton, slope)


@case(lambda p: np.real(scipy.special.lambertw(p[0])), 1.7)
def lambert(p):
    return lax.custom_root(lambda w: w * math.exp(w) - p[0], 0.5, newton, slope)


def circle_and_cubic(x, p):
    return np.array([x[0] ** 2 + x[1] ** 2 - p[0], x[1] - p[1] * x[0] ** 3])


@case(lambda p: solved_exactly(lambda x: circle_and_cubic(x, p), [1.0, 1.0]), 2.5, 0.6)
def two_equations(p):
    return lax.custom_root(lambda x: circle_and_cubic(x, p), np.array([1.0, 1.0]), newtons, jacobian_solve)


@case(
    lambda p: solved_exactly(lambda x: [x[0] ** 3 + p[0] * x[1] - 1, x[1] + np.sin(x[0]) * p[1]], [1.0, 0.0]), 0.3, 0.5
)
def a_dictionary_of_unknowns(p):
    def f(x):
        return {"u": x["u"] ** 3 + p[0] * x["v"][0] - 1.0, "v": x["v"] + np.sin(x["u"]) * p[1]}

    def solve(f, guess):
        flat, unravel = ravel_pytree(guess)
        return unravel(newtons(lambda v: ravel_pytree(f(unravel(v)))[0], flat))

    found = lax.custom_root(f, {"u": 1.0, "v": np.zeros(1)}, solve, implicit_diff.solve_dense)
    return np.stack([found["u"], found["v"][0]])


@case(lambda p: scipy.linalg.sqrtm(MATRIX + np.diag(p)), 0.5, 1.0, -0.3)
def root_of_a_matrix(p):
    def heron(f, x):
        for _ in range(30):
            x = (x + np.linalg.inv(x) @ (MATRIX + np.diag(p))) / 2
        return x

    return lax.custom_root(lambda x: x @ x - MATRIX - np.diag(p), np.eye(3), heron, implicit_diff.solve_dense)


@case(lambda p: np.sqrt(p[0]) * 3, 2.0)
def what_else_is_known_has_no_derivative(p):
    def solve(f, x):
        count = 0
        while abs(f(x)) > 1e-15 and count < 50:
            x = (x + p[0] / x) / 2
            count += 1
        return x, (count > 2, x * 2)

    x, (many, twice) = lax.custom_root(lambda x: x**2 - p[0], 1.0, solve, slope, has_aux=True)
    return x * 3 if many else twice


@case(lambda p: np.sqrt(np.cbrt(p[0]) + p[1]), 2.0, 0.4)
def a_root_of_roots(p):
    def f(x):
        return x**2 - lax.custom_root(lambda y: y**3 - p[0], 1.0, newton, slope) - p[1]

    return lax.custom_root(f, 1.0, newton, slope)


@case(lambda p: np.sqrt(p[1] + np.sqrt(p[1] + np.sqrt(p[1] + p[0]))), 2.0, 0.5)
def a_root_in_a_loop(p):
    x = p[0]
    for _ in range(3):
        x = lax.custom_root(lambda y, x=x: y * y - p[1] - x, 1.0, newton, slope)
    return x


@case(lambda p: np.sqrt(p[0]) if p[0] > 1 else p[0] ** 2, 2.0)
def a_root_on_one_path(p):
    if p[0] > 1:
        return lax.custom_root(lambda x: x**2 - p[0], 1.0, newton, slope)
    return p[0] ** 2


@case(lambda p: np.array([np.sqrt(p[0] * k) for k in (1, 2, 3)]), 2.0)
def roots_of_lanes(p):
    return mp.vmap(lambda k: lax.custom_root(lambda x: x**2 - k * p[0], 1.0, newton, slope))(np.array([1.0, 2.0, 3.0]))


# ---- fixed points ------------------------------------------------------------------------------------------


@case(lambda p: scipy.optimize.brentq(lambda x: x - np.cos(p[0] * x), 0, 2, **EXACT), 0.8)
def cosine(p):
    return lax.custom_fixed_point(lambda x: np.cos(p[0] * x), 0.5, repeated, slope)


@case(lambda p: np.linalg.solve(np.eye(3) - p[0] / 10 * MATRIX, np.full(3, 1 - p[0])), 0.85)
def a_linear_fixed_point(p):
    return lax.custom_fixed_point(
        lambda x: p[0] / 10 * (MATRIX @ x) + (1 - p[0]), np.zeros(3), repeated, jacobian_solve
    )


@case(lambda p: (-1 + np.sqrt(1 + 4 * p[0] * p[1])) / (2 * p[0]), 0.3, 1.5)
def an_implicit_euler_step(p):
    @implicit_diff.custom_fixed_point(lambda y, y0, h: y0 - h * y**2)
    def step(guess, y0, h):
        return repeated(lambda y: y0 - h * y**2, guess)

    return step(0.5, p[1], p[0])


# ---- decorated solvers -------------------------------------------------------------------------------------

X = np.array([[1.0, 0.2], [0.3, -1.0], [0.5, 0.8], [-1.2, 0.4]])
Y = np.array([1.0, -0.5, 0.7, 0.2])
LABELS = np.array([1.0, -1.0, 1.0, 1.0])


def ridge_gradient(w, strength, y):
    return X.T @ (X @ w - y) + strength * w


@case(lambda p: np.linalg.solve(X.T @ X + p[0] * np.eye(2), X.T @ (Y * p[1])), 0.5, 1.3)
def ridge_regression(p):
    @implicit_diff.custom_root(ridge_gradient)
    def fit(w, strength, y):
        while np.sum(ridge_gradient(w, strength, y) ** 2) > 1e-28:
            w = w - 0.2 * ridge_gradient(w, strength, y)
        return w

    return fit(np.zeros(2), p[0], Y * p[1])


@case(lambda p: np.sqrt(p[0] * p[1]) * np.sqrt(p[0]), 2.0, 3.0)
def parameters_by_name(p):
    @implicit_diff.custom_root(lambda x, a, b=1.0: x**2 - a * b)
    def heron(x, a, b=1.0):
        for _ in range(12):
            x = (x + a * b / x) / 2
        return x

    return heron(1.0, b=p[1], a=p[0]) * heron(1.0, a=p[0])


def logistic_gradient(w, strength):
    return -X.T @ (LABELS / (1 + np.exp(LABELS * (X @ w)))) + strength["l2"] * w


@case(lambda p: solved_exactly(lambda w: logistic_gradient(w, {"l2": p[0]}), np.zeros(2)), 0.4)
def logistic_regression(p):
    @implicit_diff.custom_root(logistic_gradient, solve=lambda A, b: scipy.sparse.linalg.cg(A, b, rtol=1e-13)[0])
    def fit(w, strength):
        return newtons(lambda w: logistic_gradient(w, strength), w)

    return fit(np.zeros(2), {"l2": p[0]})


@case(lambda p: np.sqrt(p[0]) + 2, 2.0)
def a_decorated_solver_with_more_to_say(p):
    @implicit_diff.custom_root(lambda x, a: x**2 - a, has_aux=True)
    def solver(x, a):
        for _ in range(8):
            x = (x + a / x) / 2
        return x, {"steps": 8}

    x, more = solver(1.0, p[0])
    return x + more["steps"] / 4


@case(lambda p: np.array([np.sqrt(p[0]), np.sqrt(p[0]) * p[1]]), 2.0, 3.0)
def a_tree_by_gmres(p):
    @implicit_diff.custom_root(
        lambda x, a, b: {"s": x["s"] ** 2 - a, "t": x["t"] - b * x["s"]},
        solve=lambda A, b: tree.map(lambda leaf: leaf, _by_gmres(A, b)),
    )
    def solver(x, a, b):
        s = x["s"]
        for _ in range(8):
            s = (s + a / s) / 2
        return {"s": s, "t": b * s}

    found = solver({"s": 1.0, "t": 0.0}, p[0], p[1])
    return np.stack([found["s"], found["t"]])


def _by_gmres(matvec, b):
    flat, unravel = ravel_pytree(b)
    found, _ = scipy.sparse.linalg.gmres(lambda v: ravel_pytree(matvec(unravel(v)))[0], flat, rtol=1e-13)
    return unravel(found)


# ---- linear equations --------------------------------------------------------------------------------------


@case(lambda p: np.linalg.solve(MATRIX + np.diag(p[:3]), p[3] * np.arange(1.0, 4.0)), 0.5, 0.1, -0.3, 2.0)
def a_linear_solve(p):
    return lax.custom_linear_solve(lambda x: MATRIX @ x + p[:3] * x, p[3] * np.arange(1.0, 4.0), richardson, richardson)


@case(lambda p: np.linalg.solve(SYMMETRIC + p[0] * np.eye(3), np.array([1.0, p[1], 2.0])), 0.5, -1.0)
def a_symmetric_solve(p):
    def conjugate_gradients(matvec, b):
        x, r, q = np.zeros_like(b), b, b
        while r @ r > 1e-29:
            product = matvec(q)
            alpha = (r @ r) / (q @ product)
            x, after = x + alpha * q, r - alpha * product
            q, r = after + (after @ after) / (r @ r) * q, after
        return x

    return lax.custom_linear_solve(
        lambda x: SYMMETRIC @ x + p[0] * x, np.stack([1.0, p[1], 2.0]), conjugate_gradients, symmetric=True
    )


@case(
    lambda p: scipy.linalg.solve(np.diag(np.full(5, 2 + p[0])) - np.eye(5, k=1) - p[1] * np.eye(5, k=-1), np.ones(5)),
    0.5,
    0.8,
)
def thomas(p):
    """A band whose product is made of loops, and solved by elimination."""

    def product(x):
        y = (2 + p[0]) * x
        for i in range(4):
            y[i] -= x[i + 1]
            y[i + 1] -= p[1] * x[i]
        return y

    def eliminate(upper, lower):
        def solve(_, b):
            diagonal, x = np.full(5, 2 + p[0]), b.copy()
            for i in range(1, 5):
                share = lower / diagonal[i - 1]
                diagonal[i] -= share * upper
                x[i] -= share * x[i - 1]
            x[4] /= diagonal[4]
            for i in range(3, -1, -1):
                x[i] = (x[i] - upper * x[i + 1]) / diagonal[i]
            return x

        return solve

    return lax.custom_linear_solve(product, np.ones(5), eliminate(-1.0, -p[1]), eliminate(-p[1], -1.0))


@case(lambda p: np.linalg.solve(np.array([[p[0], 1.0], [0.5, p[1]]]), np.array([1.0, 2.0])) * 2, 3.0, 2.0)
def a_tree_of_right_sides(p):
    def product(x):
        return {"a": p[0] * x["a"] + x["b"], "b": 0.5 * x["a"] + p[1] * x["b"]}

    def solve(matvec, b):
        return implicit_diff.solve_dense(matvec, b), {"weight": 2}

    found, more = lax.custom_linear_solve(product, {"a": 1.0, "b": 2.0}, solve, solve, has_aux=True)
    return np.stack([found["a"], found["b"]]) * more["weight"]


# ---- SciPy's names ------------------------------------------------------------------------------------------


def cubic(x, a, b):
    return x**3 + a * x - b


def cubic_root(p):
    return scipy.optimize.brentq(cubic, 0.0, 3.0, args=(p[0], p[1]), **EXACT)


@case(cubic_root, 1.5, 2.0)
def by_brentq(p):
    return scipy.optimize.brentq(cubic, 0.0, 3.0, args=(p[0], p[1]))


@case(cubic_root, 1.5, 2.0)
def by_brenth(p):
    return scipy.optimize.brenth(lambda x: cubic(x, p[0], p[1]), 0.0, 3.0)


@case(cubic_root, 1.5, 2.0)
def by_bisect(p):
    return scipy.optimize.bisect(lambda x: cubic(x, p[0], p[1]), 0.0, 3.0, xtol=1e-14)


@case(cubic_root, 1.5, 2.0)
def by_ridder(p):
    x, results = scipy.optimize.ridder(cubic, 0.0, 3.0, (p[0], p[1]), full_output=True)
    return x if results.converged else results.root


@case(cubic_root, 1.5, 2.0)
def by_newton(p):
    return scipy.optimize.newton(cubic, 1.0, fprime=lambda x, a, b: 3 * x**2 + a, args=(p[0], p[1]))


@case(cubic_root, 1.5, 2.0)
def by_secants(p):
    return scipy.optimize.root_scalar(cubic, args=(p[0], p[1]), x0=1.0, x1=1.5).root


@case(cubic_root, 1.5, 2.0)
def by_halley(p):
    def both(x):
        return cubic(x, p[0], p[1]), 3 * x**2 + p[0], 6 * x

    return scipy.optimize.root_scalar(both, x0=1.0, fprime=True, fprime2=True).root


@case(cubic_root, 1.5, 2.0)
def by_newton_without_a_derivative(p):
    return scipy.optimize.root_scalar(lambda x: cubic(x, *p), x0=1.0, method="newton").root


def valley(x, a, b):
    return np.sum(a * (x[1:] - x[:-1] ** 2) ** 2 + (b - x[:-1]) ** 2) + 0.1 * np.sum(x**2)


def valley_slope(x, a, b):
    t = 2 * a * (x[1:] - x[:-1] ** 2)
    return np.append(-2 * t * x[:-1] - 2 * (b - x[:-1]), 0) + np.append(0, t) + 0.2 * x


def bottom(p):
    found = scipy.optimize.minimize(valley, [1.0, 1.0, 1.0], (p[0], p[1]), jac=valley_slope, options={"gtol": 1e-12})
    return solved_exactly(lambda x: valley_slope(x, p[0], p[1]), found.x)


@case(bottom, 3.0, 1.1)
def by_bfgs(p):
    options = {"gtol": 1e-10}
    return scipy.optimize.minimize(valley, np.array([-1.0, 1.0, 0.5]), (p[0], p[1]), "BFGS", options=options).x


@case(lambda p: valley(bottom(p), *p), 3.0, 1.1)
def the_least_value(p):
    return scipy.optimize.minimize(lambda x: valley(x, p[0], p[1]), np.array([-1.0, 1.0, 0.5]), tol=1e-10).fun


@case(lambda p: np.linalg.solve(SYMMETRIC + p[0] * np.eye(3), np.ones(3)), 0.5)
def a_quadratic_form(p):
    def form(x):
        slope = SYMMETRIC @ x + p[0] * x - 1
        return x @ (slope - 1) / 2, slope

    return scipy.optimize.minimize(form, np.zeros(3), jac=True, options={"gtol": 1e-12}).x


@case(lambda p: np.linalg.solve(SYMMETRIC + p[0] * np.eye(3), p[1] * np.ones(3)), 0.5, 2.0)
def by_cg(p):
    return scipy.sparse.linalg.cg(SYMMETRIC + p[0] * np.eye(3), p[1] * np.ones(3), rtol=1e-13)[0]


@case(lambda p: np.linalg.solve(SYMMETRIC + p[0] * np.eye(3), p[1] * np.ones(3)), 0.5, 2.0)
def by_cg_with_a_preconditioner(p):
    near = np.diag(1 / np.diag(SYMMETRIC))
    matrix = scipy.sparse.linalg.LinearOperator((3, 3), lambda v: SYMMETRIC @ v + p[0] * v)
    found = scipy.sparse.linalg.cg(matrix, p[1] * np.ones(3), x0=np.ones(3), M=near, rtol=1e-13)
    return found[0] if found[1] == 0 else np.zeros(3)


@case(lambda p: np.linalg.solve(MATRIX + p[0] * np.eye(3), p[1] * np.ones(3)), 0.5, 2.0)
def by_bicgstab(p):
    return scipy.sparse.linalg.bicgstab(MATRIX + p[0] * np.eye(3), p[1] * np.ones(3), rtol=1e-13)[0]


@case(lambda p: np.linalg.solve(MATRIX + p[0] * np.eye(3), p[1] * np.ones(3)), 0.5, 2.0)
def by_gmres(p):
    matrix = scipy.sparse.linalg.LinearOperator((3, 3), matvec=lambda v: MATRIX @ v + p[0] * v)
    return scipy.sparse.linalg.gmres(matrix, p[1] * np.ones(3), rtol=1e-13, restart=2, M=np.tril(MATRIX) / 9)[0]
