"""Functions with derivative rules of their own, each with the derivative that its rule says.

In: nothing. Out: `CASES`: name -> (function, argument, wanted gradient of its sum). Where the rule tells the truth the
wanted gradient is a difference quotient, which tests take; where it deliberately tells something else it is a formula.
Example: `CASES["log1pexp"]`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import metaphrase as mp
from metaphrase import lax

X = np.array([-1.5, 0.3, 0.8, 2.5])
ABOVE = np.array([0.5, 1.0, 2.25, 9.0])


class Case(NamedTuple):
    function: Callable[..., Any]
    x: Any
    wanted: Callable[..., Any] | None  # None: differences
    forward: bool  # whether it has a derivative in forward mode


CASES: dict[str, Case] = {}


def case(x: Any, wanted: Callable[..., Any] | None = None, forward: bool = True) -> Callable:
    def register(function: Callable) -> Callable:
        CASES[function.__name__] = Case(function, x, wanted, forward)
        return function

    return register


def ruled(fun: Callable, rule: Callable) -> Any:
    made = mp.custom_jvp(fun)
    made.defjvp(rule)
    return made


def reversed_by(fun: Callable, fwd: Callable, bwd: Callable) -> Any:
    made = mp.custom_vjp(fun)
    made.defvjp(fwd, bwd)
    return made


# ---- rules that tell the truth ---------------------------------------------------------------------------


@case(X)
@mp.custom_jvp
def log1pexp(x):
    return np.log1p(np.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + np.exp(x))) * x_dot


@case(ABOVE, forward=False)
@mp.custom_vjp
def root(a):
    """By Newton's iteration; its derivative by the implicit function theorem."""
    x = a
    for _ in range(40):
        x = 0.5 * (x + a / x)
    return x


def root_fwd(a):
    x = root(a)
    return x, x


def root_bwd(x, bar):
    return (bar / (2 * x),)


root.defvjp(root_fwd, root_bwd)


@mp.custom_vjp
def scalar_root(a):
    x = a
    while abs(x * x - a) > 1e-13 * a:
        x = 0.5 * (x + a / x)
    return x


scalar_root.defvjp(lambda a: (scalar_root(a),) * 2, lambda x, bar: (bar / (2 * x),))


@case(2.25, forward=False)
def while_inside(a):
    return scalar_root(a) * a


@case(40.0, forward=False)
def inside_while(a):
    while a > 2.0:
        a = scalar_root(a) * 1.25
    return a


@case(3.0, forward=False)
def inside_for(a):
    total = 0.0
    for k in range(6):
        total = total + scalar_root(a + k) * k
    return total


@case(3.0, forward=False)
def inside_scan(a):
    def step(carry, x):
        carry = scalar_root(carry * x + 1.0)
        return carry, carry * 2.0

    last, rows = lax.scan(step, a, np.array([1.0, 2.0, 0.5]))
    return last + np.sum(rows)


@case(0.7, forward=False)
def inside_branch(a):
    if a > 1.0:
        return a * a
    return scalar_root(a) * 3.0


@case(X)
def inside_vmap(x):
    return mp.vmap(log1pexp)(x) * x


@case(ABOVE, forward=False)
def vmapped_while(x):
    return mp.vmap(scalar_root)(x) * x


@case(np.array([3.0, 4.0]))
@mp.custom_jvp
def norm(x):
    return np.sqrt(np.sum(x * x))


@norm.defjvp
def norm_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    length = norm(x)
    scale = 1.0 / length if length > 0 else 0.0
    return length, np.sum(x * x_dot) * scale


@case(np.zeros(3), lambda x: np.zeros(3))
def norm_at_zero(x):
    return norm(x)


@mp.custom_jvp
def hypot(x, y):
    return np.sqrt(x * x + y * y)


hypot.defjvps(lambda t, ans, x, y: t * x / ans, lambda t, ans, x, y: t * y / ans)


@case(X)
def by_parts(x):
    return hypot(x, x * 2.0 + 1.0)


@mp.custom_gradient
def sine(x):
    return np.sin(x), lambda bar: bar * np.cos(x)


@case(X, forward=False)
def by_custom_gradient(x):
    return sine(x * 2.0)


@mp.custom_gradient
def product(x, y):
    return x * y, lambda bar: (bar * y, bar * x)


@case(X, forward=False)
def gradient_of_two(x):
    return product(x, np.sin(x))


@functools.partial(mp.custom_vjp, nondiff_argnums=(0,))
def fixed_point(step, a, start):
    x = start
    while abs(step(a, x) - x) > 1e-13:
        x = step(a, x)
    return x


def fixed_point_fwd(step, a, start):
    x = fixed_point(step, a, start)
    return x, (a, x)


def fixed_point_bwd(step, residuals, bar):
    a, x = residuals
    _, back_x = mp.vjp(lambda x: step(a, x), x)
    u = bar
    for _ in range(60):
        u = bar + back_x(u)[0]
    _, back_a = mp.vjp(lambda a: step(a, x), a)
    return back_a(u)[0], None


fixed_point.defvjp(fixed_point_fwd, fixed_point_bwd)


@case(2.0, forward=False)
def implicit(a):
    return fixed_point(lambda a, x: 0.5 * (x + a / x), a, 1.0)


@case({"w": X, "b": 0.5})
def tree_in_and_out(p):
    out = halves(p, scale=3.0)
    return out["sum"] * out["parts"][1]


@mp.custom_jvp
def halves(p, scale=2.0):
    return {"sum": np.sum(p["w"]) * scale, "parts": (p["w"], p["b"] * p["b"])}


@halves.defjvp
def halves_jvp(primals, tangents):
    (p, scale), (d, scale_dot) = primals, tangents
    dot = np.sum(d["w"]) * scale + np.sum(p["w"]) * scale_dot
    return halves(p, scale), {"sum": dot, "parts": (d["w"], 2 * p["b"] * d["b"])}


@case(X, forward=False)
@mp.custom_vjp
def doubled(x):
    return np.concatenate([x, 2 * x])


doubled.defvjp(lambda x: (doubled(x), x.shape[0]), lambda n, bar: (bar[:n] + 2 * bar[n:],))


@case(X, forward=False)
@mp.custom_vjp
def positive(x):
    return np.sum(x[x > 0] ** 2)


def positive_bwd(residuals, bar):
    x, kept = residuals
    out = np.zeros(x.shape[0])
    out[x > 0] = 2 * kept * bar
    return (out,)


positive.defvjp(lambda x: (positive(x), (x, x[x > 0])), positive_bwd)


@case(X, forward=False)
@mp.custom_vjp
def running(x):
    total = np.zeros(4)
    for k in range(4):
        total[k] = x[k] + (total[k - 1] if k else 0.0)
    return total


def running_bwd(_, bar):
    out = np.zeros(4)
    carry = 0.0
    for k in range(3, -1, -1):
        carry = carry + bar[k]
        out[k] = carry
    return (out,)


running.defvjp(lambda x: (running(x), None), running_bwd)


@case(X)
def of_jitted(x):
    return jitted_cube(x)


@mp.custom_jvp
@mp.jit
def jitted_cube(x):
    return x**3


jitted_cube.defjvp(mp.jit(lambda p, t: (jitted_cube(p[0]), 3 * p[0] ** 2 * t[0])))


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    @functools.partial(mp.custom_jvp, nondiff_argnums=(0,))
    def energy(self, x):
        return 0.5 * self.stiffness * np.sum(x * x)

    @energy.defjvp
    def energy_jvp(self, primals, tangents):
        return self.energy(*primals), self.stiffness * np.sum(primals[0] * tangents[0])


@case(X)
def a_method(x):
    return Spring(3.0).energy(x)


WEIGHTS = np.array([1.0, -2.0, 0.5, 3.0])


@case(X, forward=False)
@mp.custom_vjp
def captured(x):
    return np.sum(x * WEIGHTS)


captured.defvjp(lambda x: (captured(x), None), lambda _, bar: (bar * WEIGHTS,))


@case(X)
def defined_inside(x):
    scale = 2.5

    @mp.custom_jvp
    def scaled(x):
        return x * scale

    @scaled.defjvp
    def scaled_jvp(primals, tangents):
        return scaled(*primals), tangents[0] * scale

    return scaled(x) * x


@case(X, forward=False)
def tried(x):
    return guarded(x[0]) + np.sum(x)


@mp.custom_vjp
def guarded(x):
    try:
        if x < 0:
            raise ValueError("below zero")
        return x * 2.0
    except ValueError:
        return x * 3.0


guarded.defvjp(lambda x: (guarded(x), x < 0), lambda below, bar: (bar * np.where(below, 3.0, 2.0),))


# ---- rules that deliberately say something else -----------------------------------------------------------


@case(X, lambda x: 7.0 * np.ones(4))
def another_derivative(x):
    return ruled(np.sin, lambda p, t: (np.sin(p[0]), 7.0 * t[0]))(x)


@case(X, lambda x: np.clip(2 * x, -1.0, 1.0), forward=False)
def clipped_gradient(x):
    return clip(-1.0, 1.0, x) ** 2


@mp.custom_vjp
def clip(low, high, x):
    return x


clip.defvjp(lambda low, high, x: (x, (low, high)), lambda r, bar: (None, None, np.clip(bar, r[0], r[1])))


@case(X, lambda x: np.round(x))
def stopped(x):
    return ruled(lambda x: x * 1.0, lambda p, t: (p[0], np.zeros_like(t[0])))(x) * np.round(x) + np.round(x) * x


@case(X, lambda x: np.ones(4), forward=False)
def straight_through(x):
    return reversed_by(lambda x: np.round(x), lambda x: (np.round(x), None), lambda _, bar: (bar,))(x)


@case(X, lambda x: -2.0 * np.ones(4), forward=False)
def reversed_gradient(x):
    return reversed_by(lambda x: x, lambda x: (x, None), lambda _, bar: (-bar,))(x) * 2.0


@case(X, lambda x: np.zeros(4))
def no_parts(x):
    flat = mp.custom_jvp(lambda x, y: x * y)
    flat.defjvps(None, None)
    return flat(x, x)


@case(X, lambda x: 5.0 * x)
def one_part(x):
    half = mp.custom_jvp(lambda x, y: x * y)
    half.defjvps(None, lambda t, ans, x, y: 5.0 * t * x)
    return half(x, x)


@functools.partial(mp.custom_jvp, nondiff_argnames=("times", "inner"))
def repeated(inner, x, times=3):
    for _ in range(times):
        x = inner(x)
    return x


@repeated.defjvp
def repeated_jvp(inner, times, primals, tangents):
    return repeated(inner, primals[0], times), 10.0 * times * tangents[0]


@case(X, lambda x: 30.0 * np.ones(4))
def a_default(x):
    return repeated(np.sin, x)


@case(X, lambda x: 50.0 * np.ones(4))
def by_name(x):
    return repeated(times=5, x=x, inner=lambda x: x * 0.5)


@case(X, lambda x: 6.0 * np.ones(4), forward=False)
def an_integer(x):
    power = mp.custom_vjp(lambda x, n: x**n)
    power.defvjp(lambda x, n: (x**n, n), lambda n, bar: (2.0 * n * bar, None))
    return power(x, 3)


@case(X, lambda x: 4.0 * np.ones(4))
def with_static_results(x):
    tagged = mp.custom_jvp(lambda x: (x * 2, "tag", None, 4))
    tagged.defjvp(lambda p, t: ((p[0] * 2, "tag", None, 4), (t[0] * 4, "tag", None, 0)))
    value, tag, nothing, four = tagged(x)
    assert tag == "tag" and nothing is None
    return value if four == 4 else x


@case(4.0, lambda x: 1234.0, forward=False)
def a_growing_list(x):
    def grown(x):
        items = []
        while x < 100.0:
            items.append(x)
            x = x * 2
        return sum(items)

    return reversed_by(grown, lambda x: (grown(x), None), lambda _, bar: (bar * 1234.0,))(x)


@mp.custom_jvp
def square(x):
    return x**2


square.defjvp(lambda p, t: (square(p[0]), 200 * p[0] * t[0]))


@mp.custom_jvp
def cube(x):
    return x**3


cube.defjvp(lambda p, t: (cube(p[0]), 3 * square(p[0]) * t[0]))
