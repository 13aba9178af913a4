"""`scipy.optimize.minimize` by BFGS: what it is in translated code.

In: a function of a vector, and a point to begin at. Out: the point where its gradient is zero, by SciPy's algorithm and
defaults, with exact gradients where SciPy takes differences. Its derivative is that of the equation gradient = 0
(`lax.custom_root`), and reaches all that the function reads.

    scipy.optimize.minimize(lambda x: np.sum((x - a) ** 4 + x**2), np.zeros(3)).x      # in a function of a

(Nocedal & Wright, Numerical Optimization, ch. 6; the line search is that of Moré & Thuente 1994, MINPACK-2's dcsrch.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._implicit import custom_root
from .api.implicit import refuse
from .api.public import value_and_grad
from .implicit_diff import solve_dense

_OPTIONS = ("gtol", "norm", "maxiter", "xrtol", "c1", "c2", "hess_inv0")
_LEAST, _MOST, _CLOSE = 1e-100, 1e100, 1e-14  # of a step, and of the interval that it lies in


class OptimizeResult(NamedTuple):
    """What SciPy's object of this name holds, as a pytree."""

    x: Any
    success: Any
    status: Any
    fun: Any
    jac: Any
    hess_inv: Any
    nfev: Any
    njev: Any
    nit: Any

    @property
    def message(self) -> str:
        if self.status == 1:
            return "Maximum number of iterations has been exceeded."
        if self.status == 2:
            return "Desired error not necessarily achieved due to precision loss."
        if self.status == 3:
            return "NaN result encountered."
        return "Optimization terminated successfully."


# ---- the line search -------------------------------------------------------------------------------------


class _Point(NamedTuple):
    """A step, and the function and its slope there."""

    step: Any
    f: Any
    slope: Any

    def less(self, slope: Any) -> _Point:
        """The same of the function less a line of this slope."""
        return _Point(self.step, self.f - self.step * slope, self.slope - slope)


def _cubic(a: _Point, b: _Point, turned: Any, least: float | None = None) -> tuple:
    """Of the cubic through two points: the share of the way from a to b at which it is least, and its root's part."""
    theta = 3.0 * (b.f - a.f) / (a.step - b.step) + b.slope + a.slope
    scale = max(abs(theta), abs(b.slope), abs(a.slope))
    inside = (theta / scale) ** 2 - (b.slope / scale) * (a.slope / scale)
    gamma = scale * np.sqrt(inside if least is None else max(least, inside))
    gamma = -gamma if turned else gamma
    return ((gamma - a.slope) + theta) / (((gamma - a.slope) + gamma) + b.slope), gamma


def _farther(t: Any, first: Any, second: Any) -> Any:
    return first if abs(first - t) > abs(second - t) else second


def _next_step(x: _Point, y: _Point, t: _Point, bracketed: Any, least: Any, most: Any) -> tuple:
    """MINPACK-2's dcstep: the step to try behind t, the interval x to y that then holds the minimum, and whether it is
    one."""
    opposed = np.sign(t.slope) * np.sign(x.slope) < 0
    if t.f > x.f:
        share, _ = _cubic(x, t, t.step < x.step)
        cubic = x.step + share * (t.step - x.step)
        quadratic = x.step + x.slope / ((x.f - t.f) / (t.step - x.step) + x.slope) / 2.0 * (t.step - x.step)
        near = abs(cubic - x.step) <= abs(quadratic - x.step)
        step = cubic if near else cubic + (quadratic - cubic) / 2.0
    elif opposed:
        share, _ = _cubic(t, x, t.step > x.step)
        secant = t.step + t.slope / (t.slope - x.slope) * (x.step - t.step)
        step = _farther(t.step, t.step + share * (x.step - t.step), secant)
    elif abs(t.slope) < abs(x.slope):
        share, gamma = _cubic(t, x, t.step > x.step, 0.0)
        bound = most if t.step > x.step else least
        cubic = t.step + share * (x.step - t.step) if share < 0 and gamma != 0 else bound
        secant = t.step + t.slope / (t.slope - x.slope) * (x.step - t.step)
        if bracketed:
            step = cubic if abs(cubic - t.step) < abs(secant - t.step) else secant
            limit = t.step + 0.66 * (y.step - t.step)
            step = min(limit, step) if t.step > x.step else max(limit, step)
        else:
            step = min(max(_farther(t.step, cubic, secant), least), most)
    elif bracketed:
        share, _ = _cubic(t, y, t.step > y.step)
        step = t.step + share * (y.step - t.step)
    else:
        step = most if t.step > x.step else least
    if t.f > x.f:
        return step, x, t, True
    return step, t, x if opposed else y, bracketed or opposed


def _line_search(at: Callable, start: _Point, first: Any, gradient: Any, c1: float, c2: float) -> tuple:
    """A step that satisfies the strong Wolfe conditions: it, whether it does, the function and its gradient there, and
    how often they were asked for. `at(step)` gives the function, its slope, and its gradient."""
    test = c1 * start.slope
    best, other, bracketed, first_stage = start, start, False, True
    low, high = 0.0, first + 4.0 * first
    width, before = _MOST - _LEAST, 2 * (_MOST - _LEAST)
    step, f, found = first, start.f, gradient
    going, good = bool(start.slope < 0) and bool(first >= _LEAST), False
    count = 0
    while going and count < 99:
        count += 1
        f, slope, found = at(step)
        enough = start.f + step * test
        if first_stage and f <= enough and slope >= 0:
            first_stage = False
        good = f <= enough and abs(slope) <= -c2 * start.slope
        stuck = bracketed and (step <= low or step >= high or high - low <= _CLOSE * high)
        stuck = stuck or step == _MOST and f <= enough and slope <= test
        stuck = stuck or step == _LEAST and (f > enough or slope >= test)
        going = not (good or stuck)
        if going:
            here = _Point(step, f, slope)
            if first_stage and f <= best.f and f > enough:
                step, best, other, bracketed = _next_step(
                    best.less(test), other.less(test), here.less(test), bracketed, low, high
                )
                best, other = best.less(-test), other.less(-test)
            else:
                step, best, other, bracketed = _next_step(best, other, here, bracketed, low, high)
            if bracketed:
                if abs(other.step - best.step) >= 0.66 * before:
                    step = best.step + 0.5 * (other.step - best.step)
                before, width = width, abs(other.step - best.step)
                low, high = min(best.step, other.step), max(best.step, other.step)
            else:
                low, high = step + 1.1 * (step - best.step), step + 4.0 * (step - best.step)
            step = min(max(step, _LEAST), _MOST)
            if bracketed and (step <= low or step >= high or high - low <= _CLOSE * high):
                step = best.step
            going = bool(np.isfinite(step))
    return step, good, f, found, count


# ---- BFGS ------------------------------------------------------------------------------------------------


def _bfgs(both: Callable, x0: Any, options: dict) -> tuple:
    """The point, and the rest of what an OptimizeResult holds. `both(x)` gives the function and its gradient."""
    n = x0.shape[0]
    gtol, order = options.get("gtol", 1e-5), options.get("norm", np.inf)
    limit, xrtol = options.get("maxiter"), options.get("xrtol", 0)
    limit = 200 * n if limit is None else limit
    c1, c2, inverse = options.get("c1", 1e-4), options.get("c2", 0.9), options.get("hess_inv0")
    one = np.eye(n)
    inverse = one if inverse is None else np.asarray(inverse, dtype=float)
    x = x0
    f, g = both(x)
    before = f + np.linalg.norm(g) / 2
    size = np.linalg.norm(g, order)
    k, count, status, going = 0, 1, 0, bool(size > gtol)
    while going and k < limit:
        p = -(inverse @ g)
        slope = g @ p
        first = 1.0
        if slope != 0:
            first = min(1.0, 2.02 * (f - before) / slope)
            first = first if first >= 0 else 1.0

        def at(step: Any, x: Any = x, p: Any = p) -> tuple:
            value, gradient = both(x + step * p)
            return value, gradient @ p, gradient

        step, good, value, gradient, asked = _line_search(at, _Point(0.0, f, slope), first, g, c1, c2)
        count += asked
        if not good:
            status, going = 2, False
        else:
            s, y = step * p, gradient - g
            x, before, f, g = x + s, f, value, gradient
            k += 1
            size = np.linalg.norm(g, order)
            small = step * np.linalg.norm(p) <= xrtol * (xrtol + np.linalg.norm(x))
            if size <= gtol or small:
                going = False
            elif not np.isfinite(f):
                status, going = 2, False
            else:
                curvature = y @ s
                rho = 1000.0 if curvature == 0 else 1.0 / curvature
                left, right = one - rho * np.outer(s, y), one - rho * np.outer(y, s)
                inverse = left @ (inverse @ right) + rho * np.outer(s, s)
    if status == 0 and k >= limit:
        status = 1
    elif status == 0 and (np.isnan(size) or np.isnan(f) or np.any(np.isnan(x))):
        status = 3
    return x, (status, g, inverse, count, k)


def minimize(
    fun: Callable,
    x0: Any,
    args: Any = (),
    method: str | None = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Any = None,
    options: dict | None = None,
) -> OptimizeResult:
    args = args if isinstance(args, tuple) else (args,)
    if method is not None and method.lower() != "bfgs":
        refuse(f"scipy.optimize.minimize with method={method!r}", "use method='BFGS'")
    others = {"hess": hess, "hessp": hessp, "bounds": bounds, "constraints": constraints or None, "callback": callback}
    for name, value in others.items():
        if value is not None:
            refuse(f"scipy.optimize.minimize with {name}=", "leave it out: BFGS takes a function and its gradient")
    words = dict(options or {})
    for name in words:
        if name not in _OPTIONS:
            refuse(f"scipy.optimize.minimize with the option {name}", f"the options are {', '.join(_OPTIONS)}")
    if tol is not None:
        words.setdefault("gtol", tol)

    def both(x: Any) -> tuple:
        if callable(jac):
            value, slope = fun(x, *args), jac(x, *args)
        elif jac is True:
            value, slope = fun(x, *args)
        else:
            value, slope = value_and_grad(lambda p: _number(fun(p, *args)))(x)
        return _number(value), np.asarray(slope, dtype=float)

    start = np.asarray(x0, dtype=float).flatten()
    x, (status, slope, inverse, count, k) = custom_root(
        lambda x: both(x)[1], start, lambda _, point: _bfgs(both, point, words), solve_dense, has_aux=True
    )
    value = both(x)[0]
    return OptimizeResult(x, status == 0, status, value, slope, inverse, count, count, k)


def _number(value: Any) -> Any:
    """A float, of what may be an array of one element."""
    return np.reshape(np.asarray(value, dtype=float), ())[()]
