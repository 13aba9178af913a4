"""Solutions of equations: roots, fixed points, linear solves, minima, differential equations.

In: nothing. Out: cases. Example: `square_root`.
"""

from __future__ import annotations

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

import metaphrase as mp
from metaphrase import implicit_diff, lax
from metaphrase.ode import odeint
from pairs.corpus import case

MATRIX = np.array([[4.0, 1.0], [0.3, 3.0]])


def newton(f, x):
    def body(k, x):
        return x - f(x) / mp.jvp(f, (x,), (1.0,))[1]

    return lax.fori_loop(0, 12, body, x)


def newtons(f, x):
    return lax.fori_loop(0, 8, lambda k, x: x - np.linalg.solve(mp.jacfwd(f)(x), f(x)), x)


def slope(g, y):
    return y / g(1.0)


def jacobian_solve(g, y):
    return np.linalg.solve(mp.jacfwd(g)(y), y)


# ---- lax ----------------------------------------------------------------------------------------------------


@case("lax.custom_root", 2.0)
def square_root(a):
    return lax.custom_root(lambda x: x**2 - a, 1.0, newton, slope) * a


@case("lax.custom_root", 0.4, 1.2)
def kepler(e, M):
    return lax.custom_root(lambda E: E - e * np.sin(E) - M, 1.5, newton, slope)


@case("lax.custom_root", np.array([2.5, 0.6]))
def two_equations(p):
    def f(x):
        return np.stack([x[0] ** 2 + x[1] ** 2 - p[0], x[1] - p[1] * x[0] ** 3])

    return lax.custom_root(f, np.array([1.0, 1.0]), newtons, jacobian_solve)


@case("lax.custom_root", 2.0, jax=False)
def by_bisection(a):
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

    return lax.custom_root(lambda x: x**3 + x - a, (0.0, 4.0), bisection, slope)


@case("lax.custom_root in a loop", 1.3, 0.5, jax=False)
def a_tower_of_roots(x, a):
    for _ in range(3):
        if x < 0.1:
            return a
        x = lax.custom_root(lambda y, x=x: y * y - a - x, 1.0, newton, slope)
    return x


@case("lax.custom_fixed_point", 0.8, jax=False)
def where_cosine_meets(a):
    def repeated(f, x):
        for _ in range(120):
            x = f(x)
        return x

    return lax.custom_fixed_point(lambda x: np.cos(a * x), 0.5, repeated, slope) * a


@case("lax.custom_linear_solve", np.array([0.5, -0.3]), 2.0)
def a_linear_solve(shift, scale):
    def direct(matvec, b):
        return np.linalg.solve(mp.jacfwd(matvec)(b), b)

    b = scale * np.array([1.0, 2.0])
    return lax.custom_linear_solve(lambda x: MATRIX @ x + shift * x, b, direct, direct)


@case("lax.custom_linear_solve symmetric", 0.5, -1.0, jax=False)
def conjugate_gradients(shift, b):
    def solve(matvec, b):
        x, r, q = np.zeros_like(b), b, b
        while r @ r > 1e-30:
            product = matvec(q)
            alpha = (r @ r) / (q @ product)
            x, after = x + alpha * q, r - alpha * product
            q, r = after + (after @ after) / (r @ r) * q, after
        return x

    matrix = MATRIX @ MATRIX.T
    return lax.custom_linear_solve(lambda x: matrix @ x + shift * x, np.stack([1.0, b]), solve, symmetric=True)


# ---- decorators ---------------------------------------------------------------------------------------------

X = np.array([[1.0, 0.2], [0.3, -1.0], [0.5, 0.8]])


def ridge_gradient(w, strength, y):
    return X.T @ (X @ w - y) + strength * w


@implicit_diff.custom_root(ridge_gradient)
def ridge(w, strength, y):
    while np.sum(ridge_gradient(w, strength, y) ** 2) > 1e-30:
        w = w - 0.3 * ridge_gradient(w, strength, y)
    return w


@case("implicit_diff.custom_root", 0.5, np.array([1.0, -0.5, 0.7]), jax=False)
def ridge_regression(strength, y):
    return ridge(np.zeros(2), strength, y)


@implicit_diff.custom_root(lambda x, a: {"s": x["s"] ** 2 - a, "t": x["t"] - a * x["s"]}, has_aux=True)
def tree_solver(x, a):
    s = x["s"]
    for _ in range(8):
        s = (s + a / s) / 2
    return {"s": s, "t": a * s}, 8


@case("implicit_diff.custom_root pytree", 2.0, jax=False)
def a_tree_of_unknowns(a):
    x, steps = tree_solver({"s": 1.0, "t": 0.0}, a)
    return x["s"] * x["t"] + steps


@implicit_diff.custom_fixed_point(lambda y, y0, h: y0 - h * y**2)
def euler_step(y, y0, h):
    for _ in range(100):
        y = y0 - h * y**2
    return y


@case("implicit_diff.custom_fixed_point", 0.8, 0.2, jax=False)
def implicit_euler(y, h):
    for _ in range(2):
        y = euler_step(0.4, y, h)
    return y


@implicit_diff.custom_root(
    lambda x, a: MATRIX @ x + x**3 - a, solve=lambda A, b: scipy.sparse.linalg.gmres(A, b, rtol=1e-14)[0]
)
def cubic_system(x, a):
    for _ in range(12):
        x = x - np.linalg.solve(MATRIX + np.diag(3 * x**2), MATRIX @ x + x**3 - a)
    return x


@case("implicit_diff.custom_root by gmres", np.array([1.0, 0.5]), jax=False)
def a_cubic_system(a):
    return cubic_system(np.zeros(2), a)


# ---- SciPy's ------------------------------------------------------------------------------------------------


@case("scipy brentq", 0.4, 1.2, jax=False)
def anomaly(e, M):
    return scipy.optimize.brentq(lambda E: E - e * np.sin(E) - M, 0.0, 4.0, xtol=1e-15, rtol=1e-15)


@case("scipy newton", 1.5, jax=False)
def by_newton(a):
    root = scipy.optimize.newton(lambda x: x**3 + a * x - 2.0, 1.0, fprime=lambda x: 3 * x**2 + a, tol=1e-15)
    return root * a


@case("scipy newton secant", 1.5, jax=False)
def by_secants(a):
    return scipy.optimize.newton(lambda x: x**3 + a * x - 2.0, 0.9, tol=1e-15)


@case("scipy minimize", np.array([0.5, 1.0]), tolerance=2e-4, jax=False)
def closest(a):
    return scipy.optimize.minimize(lambda x: np.sum((x - a) ** 4 + x**2), np.zeros(2), tol=1e-9).x


@case("scipy cg", np.array([0.5, 1.0]), 0.3, jax=False)
def by_cg(b, shift):
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]]) + shift * np.eye(2)
    return scipy.sparse.linalg.cg(matrix, b, rtol=1e-14)[0]


@case("scipy gmres", np.array([0.5, 1.0]), 0.3, jax=False)
def by_gmres(b, shift):
    return scipy.sparse.linalg.gmres(MATRIX + shift * np.eye(2), b, rtol=1e-14)[0]


@case("scipy bicgstab", np.array([0.5, 1.0]), 0.3, jax=False)
def by_bicgstab(b, shift):
    return scipy.sparse.linalg.bicgstab(MATRIX * shift, b, rtol=1e-14)[0]


# ---- odeint -------------------------------------------------------------------------------------------------


def decay(y, t, a):
    return -a * y * y + np.cos(t)


@case("odeint discrete", 1.0, 0.7, tolerance=2e-5, jax=False)
def a_discrete_adjoint(y, a):
    return odeint(decay, y, np.array([0.0, 0.4, 0.9]), a, rtol=1e-10, atol=1e-10)


@case("odeint continuous", 1.0, 0.7, tolerance=2e-5)
def a_continuous_adjoint(y, a):
    return odeint(decay, y, np.array([0.0, 0.4, 0.9]), a, rtol=1e-10, atol=1e-10, adjoint="continuous")


@case("odeint discrete pytree", 0.6, tolerance=2e-5, jax=False)
def a_pendulum(x):
    def motion(y, t):
        return {"x": y["v"], "v": -np.sin(y["x"])}

    return odeint(motion, {"x": x, "v": 0.0}, np.array([0.0, 0.5]), rtol=1e-10, atol=1e-10)["v"][1]
