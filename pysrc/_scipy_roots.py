"""Roots of functions of one number, by the names of `scipy.optimize`: what its functions are in translated code.

In: a function and a bracket, or a point to begin at. Out: the root, by SciPy's algorithms, tolerances and errors; its
derivative is that of the equation f(x, *args) = 0 (`lax.custom_root`), and reaches all that f reads.

    scipy.optimize.brentq(lambda x: x**2 - a, 0.0, 2.0)      # in a function of a: derivative 1 / (2 sqrt(a))

(Brent, Algorithms for Minimization without Derivatives, ch. 4; Ridders 1979; SciPy's `Zeros` and `_zeros_py.py`.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._implicit import custom_root
from .api.implicit import refuse
from .api.public import jvp

_XTOL, _RTOL = 2e-12, 4 * float(np.finfo(float).eps)


class RootResults(NamedTuple):
    """What SciPy's object of this name holds, as a pytree."""

    root: Any
    iterations: Any
    function_calls: Any
    converged: Any

    @property
    def flag(self) -> str:
        return "converged" if self.converged else "convergence error"


# ---- between two points ----------------------------------------------------------------------------------


def _bisect(f: Callable, xa: float, xb: float, fa: float, fb: float, tolerance: Callable, maxiter: int) -> tuple:
    dm = xb - xa
    x, iterations, done = xa, 0, False
    while iterations < maxiter and not done:
        iterations += 1
        dm *= 0.5
        x = xa + dm
        fx = f(x)
        if (fx < 0) == (fa < 0):
            xa = x
        done = fx == 0 or abs(dm) < 2 * tolerance(x)
    return x, iterations, iterations + 2, done


def _ridder(f: Callable, xa: float, xb: float, fa: float, fb: float, tolerance: Callable, maxiter: int) -> tuple:
    x, iterations, done = xa, 0, False
    while iterations < maxiter and not done:
        iterations += 1
        dm = 0.5 * (xb - xa)
        xm = xa + dm
        fm = f(xm)
        dn = float((1.0 if fb > fa else -1.0) * dm * fm / np.sqrt(fm * fm - fa * fb))
        x = xm - (1.0 if dn > 0 else -1.0) * min(abs(dn), abs(dm) - tolerance(xm))
        fx = f(x)
        if fx != 0 and (fx < 0) != (fm < 0):
            xa, fa, xb, fb = x, fx, xm, fm
        elif (fx < 0) != (fa < 0):
            xb, fb = x, fx
        else:
            xa, fa = x, fx
        done = fx == 0 or abs(xb - xa) < 2 * tolerance(x)
    return x, iterations, 2 * iterations + 2, done


def _brent(hyperbolic: bool) -> Callable:
    """Brent's method: by a line or a parabola (`brentq`), or a hyperbola, through the last points; else bisection."""

    def search(
        f: Callable, xpre: float, xcur: float, fpre: float, fcur: float, tolerance: Callable, maxiter: int
    ) -> Any:
        xblk, fblk, spre, scur = 0.0, 0.0 * fpre, 0.0, 0.0
        iterations, done = 0, False
        while iterations < maxiter and not done:
            iterations += 1
            if fpre != 0 and fcur != 0 and (fpre < 0) != (fcur < 0):
                xblk, fblk = xpre, fpre
                spre = scur = xcur - xpre
            if abs(fblk) < abs(fcur):
                xpre, xcur, xblk = xcur, xblk, xcur
                fpre, fcur, fblk = fcur, fblk, fcur
            delta = tolerance(xcur)
            sbis = (xblk - xcur) / 2
            done = fcur == 0 or abs(sbis) < delta
            if not done:
                bisects = True
                if abs(spre) > delta and abs(fcur) < abs(fpre):
                    if xpre == xblk:
                        step = -fcur * (xcur - xpre) / (fcur - fpre)
                    else:
                        dpre = (fpre - fcur) / (xpre - xcur)
                        dblk = (fblk - fcur) / (xblk - xcur)
                        if hyperbolic:
                            step = -fcur * (fblk - fpre) / (fblk * dpre - fpre * dblk)
                        else:
                            step = -fcur * (fblk * dblk - fpre * dpre) / (dblk * dpre * (fblk - fpre))
                    if 2 * abs(step) < min(abs(spre), 3 * abs(sbis) - delta):
                        spre, scur, bisects = scur, float(step), False
                if bisects:
                    spre, scur = sbis, sbis
                xpre, fpre = xcur, fcur
                if abs(scur) > delta:
                    xcur = xcur + scur
                else:
                    xcur = xcur + (delta if sbis > 0 else -delta)
                fcur = f(xcur)
        return xcur, iterations, iterations + (1 if done else 2), done

    return search


def _bracketed(search: Callable, f: Callable, bracket: tuple, args: tuple, tolerances: tuple, maxiter: int) -> tuple:
    """The root between two points where f has different signs, and a RootResults of how it was found."""
    xtol, rtol = tolerances
    if xtol <= 0:
        raise ValueError(f"xtol too small ({xtol:g} <= 0)")
    if rtol < _RTOL:
        raise ValueError(f"rtol too small ({rtol:g} < {_RTOL:g})")
    if maxiter < 1:
        raise ValueError("maxiter must be >= 1")

    def residual(x: Any) -> float:
        return float(f(x, *args))

    def value(x: float) -> Any:
        """As a number of NumPy, whose divisions by zero raise nothing."""
        found = residual(x)
        if math.isnan(found):
            raise ValueError(f"The function value at x={x} is NaN; solver cannot continue.")
        return np.float64(found)

    def tolerance(x: float) -> float:
        return (xtol + rtol * abs(x)) / 2

    def solve(_: Callable, points: tuple) -> tuple:
        xa, xb = points
        fa, fb = value(xa), value(xb)
        if fa == 0:
            return xa, (0, 2, True)
        if fb == 0:
            return xb, (0, 2, True)
        if (fa < 0) == (fb < 0):
            raise ValueError("f(a) and f(b) must have different signs")
        x, iterations, calls, done = search(value, xa, xb, fa, fb, tolerance, maxiter)
        return x, (iterations, calls, done)

    ends = float(bracket[0]), float(bracket[1])
    root, (iterations, calls, converged) = custom_root(residual, ends, solve, _by_slope, has_aux=True)
    return root, RootResults(root, iterations, calls, converged)


def _by_slope(g: Callable, y: Any) -> Any:
    return y / g(1.0)


def _given(found: tuple, full_output: bool, disp: bool) -> Any:
    root, results = found
    if disp and not results.converged:
        raise RuntimeError(f"Failed to converge after {results.iterations} iterations.")
    return found if full_output else root


def bisect(
    f: Callable,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    return _given(_bracketed(_bisect, f, (a, b), _tuple(args), (xtol, rtol), maxiter), full_output, disp)


def brentq(
    f: Callable,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    return _given(_bracketed(_brent(False), f, (a, b), _tuple(args), (xtol, rtol), maxiter), full_output, disp)


def brenth(
    f: Callable,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    return _given(_bracketed(_brent(True), f, (a, b), _tuple(args), (xtol, rtol), maxiter), full_output, disp)


def ridder(
    f: Callable,
    a: Any,
    b: Any,
    args: Any = (),
    xtol: float = _XTOL,
    rtol: float = _RTOL,
    maxiter: int = 100,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    return _given(_bracketed(_ridder, f, (a, b), _tuple(args), (xtol, rtol), maxiter), full_output, disp)


def _tuple(args: Any) -> tuple:
    return args if isinstance(args, tuple) else (args,)


# ---- from a point on -------------------------------------------------------------------------------------


def _newton(f: Callable, slope: Callable, bend: Callable | None, p: float, close: Callable, maxiter: int) -> tuple:
    """Newton's method, Halley's where there is a second derivative. Its status: 0, 1 at a slope of 0, 2 at the end."""
    calls, iterations, status = 0, 0, 2
    while iterations < maxiter and status == 2:
        value = f(p)
        calls += 1
        if value == 0:
            status = 0
        else:
            der = slope(p)
            calls += 1
            iterations += 1
            if der == 0:
                status = 1
            else:
                step = value / der
                if bend is not None:
                    adjusted = step * bend(p) / der / 2
                    calls += 1
                    if abs(adjusted) < 1:
                        step = step / (1.0 - adjusted)
                if close(p - step, p):
                    status = 0
                p = p - step
    return p, calls, iterations, status


def _secant(f: Callable, p0: float, p1: float, close: Callable, maxiter: int, disp: bool) -> tuple:
    """Its status: as that of `_newton`, and 1 where both values are one."""
    q0, q1 = f(p0), f(p1)
    calls, iterations, status, p = 2, 0, 2, p1
    if abs(q1) < abs(q0):
        p0, p1, q0, q1 = p1, p0, q1, q0
    while iterations < maxiter and status == 2:
        iterations += 1
        if q1 == q0:
            status = 1
            p = (p1 + p0) / 2.0
            if disp and p1 != p0:
                cause = f"Tolerance of {p1 - p0} reached."
                raise RuntimeError(f"{cause} Failed to converge after {iterations} iterations, value is {p1}.")
        else:
            if abs(q1) > abs(q0):
                p = (-q0 / q1 * p1 + p0) / (1 - q0 / q1)
            else:
                p = (-q1 / q0 * p0 + p1) / (1 - q1 / q0)
            if close(p, p1):
                status = 0
            else:
                p0, q0 = p1, q1
                p1 = p
                q1 = f(p1)
                calls += 1
    return p, calls, iterations, status


def newton(
    func: Callable,
    x0: Any,
    fprime: Callable | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Callable | None = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    args = _tuple(args)
    if tol <= 0:
        raise ValueError(f"tol too small ({tol:g} <= 0)")
    if maxiter < 1:
        raise ValueError("maxiter must be greater than 0")
    if np.ndim(x0) > 0 or np.asarray(x0).dtype.kind == "c":
        refuse("scipy.optimize.newton of arrays and of complex numbers", "begin at a float, and use metaphrase.vmap")
    if x1 is not None and x1 == x0:
        raise ValueError("x1 and x0 must be different")

    def residual(x: Any) -> float:
        return float(func(x, *args))

    def close(p: float, q: float) -> Any:
        return abs(p - q) <= tol + rtol * abs(q)

    def solve(_: Callable, p0: float) -> tuple:
        if fprime is not None:
            bend = None if fprime2 is None else lambda x: float(fprime2(x, *args))
            p, calls, iterations, status = _newton(
                residual, lambda x: float(fprime(x, *args)), bend, p0, close, maxiter
            )
        else:
            other = p0 * (1 + 1e-4) if x1 is None else float(x1)
            if x1 is None:
                other = other + (1e-4 if other >= 0 else -1e-4)
            p, calls, iterations, status = _secant(residual, p0, other, close, maxiter, disp)
        if disp and status == 1 and fprime is not None:
            raise RuntimeError(f"Derivative was zero. Failed to converge after {iterations} iterations, value is {p}.")
        if disp and status == 2:
            raise RuntimeError(f"Failed to converge after {iterations} iterations, value is {p}.")
        return p, (iterations, calls, status == 0)

    root, (iterations, calls, converged) = custom_root(residual, np.float64(x0), solve, _by_slope, has_aux=True)
    return (root, RootResults(root, iterations, calls, converged)) if full_output else root


# ---- one name for all ------------------------------------------------------------------------------------

_BRACKETED: dict[str, Callable] = {"bisect": bisect, "brentq": brentq, "brenth": brenth, "ridder": ridder}


def root_scalar(
    f: Callable,
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict | None = None,
) -> RootResults:
    args, whole = _tuple(args), f
    if fprime2 is True:
        f, fprime, fprime2 = (
            lambda x, *a: whole(x, *a)[0],
            lambda x, *a: whole(x, *a)[1],
            lambda x, *a: whole(x, *a)[2],
        )
    elif fprime is True:
        f, fprime = (lambda x, *a: whole(x, *a)[0], lambda x, *a: whole(x, *a)[1])
    if method is None:
        if bracket is None and x0 is None:
            raise ValueError("Unable to select a solver as neither bracket nor starting point provided.")
        method = "brentq" if bracket is not None else "secant" if x1 is not None else "newton"
        method = "halley" if bracket is None and x1 is None and fprime and fprime2 else method
    method = method.lower()
    given = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, **(options or {})}
    words = {name: value for name, value in given.items() if value is not None}
    if method in _BRACKETED:
        if bracket is None:
            raise ValueError(f"Bracket needed for {method}")
        return _BRACKETED[method](f, bracket[0], bracket[1], args, full_output=True, disp=False, **words)[1]
    if method not in ("newton", "secant", "halley"):
        refuse(f"scipy.optimize.root_scalar with method={method!r}", "use brentq, brenth, ridder, bisect or newton")
    if x0 is None:
        raise ValueError(f"x0 must not be None for {method}")
    if method == "halley" and not (fprime and fprime2):
        raise ValueError(f"{'fprime2' if fprime else 'fprime'} must be specified for halley")
    if "xtol" in words:
        words["tol"] = words.pop("xtol")
    if method == "secant":
        return newton(f, x0, None, args, x1=x1, full_output=True, disp=False, **words)[1]
    slope = fprime or (lambda x, *a: jvp(lambda p: f(p, *a), (x,), (1.0,))[1])
    return newton(
        f, x0, slope, args, fprime2=fprime2 if method == "halley" else None, full_output=True, disp=False, **words
    )[1]
