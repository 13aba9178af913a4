"""odeint: values are SciPy's at tight tolerances, derivatives by both adjoints those of closed forms and differences.

In: equations of which the solution is known, or SciPy finds it. Out: values, gradients, lanes, native code and errors.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.integrate
from together import jitted

import metaphrase as mp
from metaphrase.ode import odeint

pytestmark = pytest.mark.turns(8)

TIMES = np.array([0.0, 0.4, 1.0, 1.5])
BOTH = pytest.mark.parametrize("adjoint", ["discrete", "continuous"])
TIGHT = {"rtol": 1e-10, "atol": 1e-10}


def decay(y, t, a):
    return -a * y


def logistic(y, t, a):
    return a * y * (1 - y)


def forced(y, t, a):
    return np.cos(a * t) - 0.0 * y


def spring(y, t, a):
    return np.array([y[1], -(a**2) * y[0]])


def pendulum(y, t, a):
    return {"q": y["p"], "p": -a * np.sin(y["q"]) - 0.2 * y["p"] + 0.1 * np.cos(t)}


def stiff(y, t, a):
    return -30 * a * (y - np.sin(t))


def shrinking(y, t, a):
    return -a * np.sqrt(y)


def stiff_solution(a, y, t):
    k = 30 * a
    smooth = lambda s: (k**2 * np.sin(s) - k * np.cos(s)) / (k**2 + 1)  # noqa: E731
    return smooth(t) + (y - smooth(0)) * np.exp(-k * t)


# name -> (dy/dt, y at 0, a, solution(a, y at 0, times))
CLOSED = {
    "decay": (decay, 1.5, 0.7, lambda a, y, t: y * np.exp(-a * t)),
    "logistic": (logistic, 0.2, 1.3, lambda a, y, t: 1 / (1 + (1 / y - 1) * np.exp(-a * t))),
    "forced": (forced, 0.3, 1.1, lambda a, y, t: y + np.sin(a * t) / a),
    "spring": (
        spring,
        np.array([1.0, 0.5]),
        1.7,
        lambda a, y, t: np.stack(
            [y[0] * np.cos(a * t) + y[1] / a * np.sin(a * t), -a * y[0] * np.sin(a * t) + y[1] * np.cos(a * t)], -1
        ),
    ),
    "stiff": (stiff, 0.5, 1.2, stiff_solution),
    "shrinking": (shrinking, 2.0, 0.6, lambda a, y, t: (np.sqrt(y) - a * t / 2) ** 2),
}


def total(name, adjoint):
    f = CLOSED[name][0]
    weights = np.arange(1.0, 5.0)
    return lambda a, y, t: np.sum(weights @ odeint(f, y, t, a, adjoint=adjoint, **TIGHT))


def closed_total(name):
    solution, weights = CLOSED[name][3], np.arange(1.0, 5.0)
    return lambda a, y, t: np.sum(weights @ solution(a, y, t))


@pytest.mark.parametrize("name", CLOSED)
def test_values(name):
    f, y, a, solution = CLOSED[name]
    np.testing.assert_allclose(odeint(f, y, TIMES, a), solution(a, y, TIMES), rtol=3e-7, atol=3e-7)
    np.testing.assert_allclose(odeint(f, y, TIMES, a, **TIGHT), solution(a, y, TIMES), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "adjoint"),
    [
        *((name, "discrete") for name in ("logistic", "spring", "stiff", "shrinking")),
        ("forced", "continuous"),
        ("spring", "continuous"),
    ],
)
def test_gradients(name, adjoint):
    """Of the parameter, the first value, and the times; that of the first time is not in the closed forms."""
    _, y, a, _ = CLOSED[name]
    a_bar, y_bar, t_bar = mp.grad(total(name, adjoint), (0, 1, 2))(a, y, TIMES)
    want = mp.grad(closed_total(name), (0, 1, 2))(a, y, TIMES)
    np.testing.assert_allclose(a_bar, want[0], rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(y_bar, want[1], rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(t_bar[1:], want[2][1:], rtol=2e-6, atol=2e-6)


def seen_from(first):
    """SciPy's solution of the pendulum that begins at the time `first`."""

    def right(t, y):
        slope = pendulum({"q": y[0], "p": y[1]}, t, 3.0)
        return [slope["q"], slope["p"]]

    made = scipy.integrate.solve_ivp(
        right, (first, 1.5), [1.0, 0.3], "DOP853", [first, *TIMES[1:]], rtol=1e-12, atol=1e-12
    )
    return made.y


@BOTH
def test_a_tree_against_scipy(adjoint):
    def solved(first):
        t = np.append(first, TIMES[1:])
        return odeint(pendulum, {"q": 1.0, "p": 0.3}, t, 3.0, adjoint=adjoint, **TIGHT)

    found, want = solved(0.1), seen_from(0.1)
    np.testing.assert_allclose(found["q"], want[0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found["p"], want[1], rtol=1e-8, atol=1e-8)
    slope = mp.grad(lambda first: solved(first)["q"][-1])(0.1)
    np.testing.assert_allclose(slope, (seen_from(0.1 + 1e-4) - seen_from(0.1 - 1e-4))[0, -1] / 2e-4, rtol=1e-6)


@BOTH
def test_derivatives_reach_what_the_function_reads_around_it(adjoint):
    def f(a):
        shared = {"rate": a[0], "count": 2}
        return odeint(lambda y, t: -shared["rate"] * y + a[1] * shared["count"], 1.0, TIMES, adjoint=adjoint, **TIGHT)

    rate, more = 0.7, 0.4
    at, decayed = TIMES, np.exp(-rate * TIMES)
    limit = 2 * more / rate
    want = np.stack([-limit / rate * (1 - decayed) - (1 - limit) * at * decayed, 2 / rate * (1 - decayed)], -1)
    np.testing.assert_allclose(mp.jacrev(f)(np.array([rate, more])), want, rtol=1e-7, atol=1e-7)


def test_forward_mode_and_second_derivatives():
    _, y, a, _ = CLOSED["decay"]
    ours, closed = total("decay", "discrete"), closed_total("decay")
    np.testing.assert_allclose(mp.hessian(ours)(a, y, TIMES), mp.hessian(closed)(a, y, TIMES), rtol=1e-6)
    slope = mp.jvp(lambda a: ours(a, y, TIMES), (a,), (1.0,))[1]
    np.testing.assert_allclose(slope, mp.grad(closed)(a, y, TIMES), rtol=1e-6)
    twice = mp.jacrev(mp.jacrev(total("decay", "continuous")))
    np.testing.assert_allclose(twice(a, y, TIMES), mp.hessian(closed)(a, y, TIMES), rtol=1e-6)


def test_lanes():
    _, y, _, _ = CLOSED["decay"]
    rates = np.array([0.5, 1.0, 4.0])
    found = mp.vmap(lambda a: odeint(decay, y, TIMES, a))(rates)
    np.testing.assert_allclose(found, y * np.exp(-np.outer(rates, TIMES)), rtol=1e-6)
    gradient = mp.grad(total("decay", "continuous"))
    each = [gradient(a, y, TIMES) for a in rates]
    np.testing.assert_allclose(mp.vmap(gradient, (0, None, None))(rates, y, TIMES), each, rtol=1e-12)


def test_native_code():
    f, y, a, _ = CLOSED["stiff"]
    _, start, rate, _ = CLOSED["spring"]
    calls = {
        "values": (lambda y, t, a: odeint(f, y, t, a), (y, TIMES, a)),
        "gradients": (mp.value_and_grad(total("spring", "discrete")), (rate, start, TIMES)),
    }
    for key, made in jitted(calls).items():
        function, args = calls[key]
        for got, want in zip(made(*args), function(*args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_many_times_and_one():
    times = np.linspace(0.0, 2.0, 41)
    np.testing.assert_allclose(odeint(decay, 1.0, times, 1.0, **TIGHT), np.exp(-times), rtol=1e-9)
    assert odeint(decay, 1.0, np.array([0.5]), 1.0).tolist() == [1.0]
    assert odeint(decay, np.float32(1), times.astype(np.float32), np.float32(1)).dtype == np.float32
    assert odeint(lambda y, t: 0 * y, 1, np.array([0, 1])).dtype == np.float64


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda a: odeint(decay, 1.0, TIMES, a, mxstep=3), RuntimeError, "mxstep steps do not reach it"),
        (lambda a: odeint(lambda y, t: y**2, 1.0, TIMES), RuntimeError, "no step is small enough"),
        (lambda a: odeint(decay, a * np.nan, TIMES, a), RuntimeError, "no step is small enough"),
        (lambda a: odeint(decay, 1.0, TIMES[::-1], a), ValueError, "the times t must increase"),
        (lambda a: odeint(decay, 1.0, a, a), ValueError, "t is a vector of times"),
        (lambda a: odeint(decay, 1.0, TIMES, a, adjoint="other"), ValueError, "'discrete' or 'continuous'"),
    ],
)
def test_errors(call, kind, said):
    for made in (call, lambda a: mp.jvp(call, (a,), (a,))):
        with pytest.raises(kind, match=said):
            made(1.0)


def test_forward_mode_beside_the_continuous_adjoint():
    """It is that of the steps; a Hessian is that of the adjoint equation's steps."""
    one, other = (total("decay", adjoint) for adjoint in ("discrete", "continuous"))
    np.testing.assert_allclose(mp.jacfwd(other)(1.0, 1.0, TIMES), mp.jacfwd(one)(1.0, 1.0, TIMES), rtol=1e-13)
    np.testing.assert_allclose(mp.hessian(other)(1.0, 1.0, TIMES), mp.hessian(one)(1.0, 1.0, TIMES), rtol=1e-6)
