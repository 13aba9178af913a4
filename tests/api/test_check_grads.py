"""check_grads: it passes what is right, in both modes and to the order asked for, and finds rules that are wrong.

In: functions with right derivatives, and functions with rules that are wrong in one place. Out: silence, or an error
that names the leaf and the two numbers.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import lax
from metaphrase.source import SourceError
from metaphrase.test_util import check_grads

from .custom_functions import CASES

X = np.array([0.3, 0.8, 1.4])
M = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])


def loop(x):
    y = x * 0.1
    for k in range(3):
        y = np.sin(y) + x * y[k]
    return y


def newton(a):
    x = a
    while np.max(np.abs(x * x - a)) > 1e-13:
        x = (x + a / x) / 2
    return x


def branches(x):
    if x[0] > 0.1:
        return np.exp(x)
    return x


def stored(x):
    x[1] = x[0] * x[2]
    return x * x.sum()


RIGHT = {
    "elementwise": (lambda x: np.sin(x) * np.exp(-x), (X,)),
    "product": (lambda a, x: np.tanh(a @ x), (M, X)),
    "solve": (lambda a, x: np.linalg.solve(a, x), (M, X)),
    "cholesky": (lambda a: np.linalg.cholesky(a @ a.T), (M,)),
    "tree in, tree out": (
        lambda p: {"s": p["x"] ** 3, "n": (p["k"], p["b"] * p["x"][0])},
        ({"x": X, "b": 2.0, "k": 3},),
    ),
    "a scalar": (lambda x: x**3 / (1 + x), (0.7,)),
    "complex": (lambda z: np.conj(z) * z**2, (X + 0.5j,)),
    "real of complex": (lambda z: np.abs(z), (X + 0.5j,)),
    "single": (lambda x: np.sqrt(x) + x**3, (X.astype(np.float32),)),
    "integers held fixed": (lambda x, i: x[i] * x, (X, np.array([2, 0, 0]))),
    "no float at all": (lambda i: i * 2, (np.arange(3),)),
    "loop": (loop, (X,)),
    "while": (newton, (X + 1,)),
    "branches": (branches, (X,)),
    "stored": (stored, (X,)),
    "jitted": (mp.jit(loop), (X,)),
    "batched": (mp.vmap(lambda x: x**2 * np.cos(x)), (X,)),
    "a gradient": (mp.grad(lambda x: np.sum(x**4)), (X,)),
    "sorted": (lambda x: np.sort(x * np.array([1.0, -2.0, 0.5])), (X,)),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name):
    f, args = RIGHT[name]
    check_grads(f, args, 2)


def test_order_three():
    check_grads(lambda x: np.sin(x) * np.cumsum(x), (X,), 3)


@pytest.mark.parametrize("name", [name for name, c in CASES.items() if c.wanted is None])
def test_rules_that_tell_the_truth_pass(name):
    case = CASES[name]
    check_grads(case.function, (case.x,), 1, modes=("fwd", "rev") if case.forward else "rev")


def test_arguments_are_left_alone():
    x = X.copy()
    check_grads(stored, (x,), 1)
    np.testing.assert_array_equal(x, X)


# ---- rules that are wrong --------------------------------------------------------------------------------


def ruled(rule):
    made = mp.custom_jvp(lambda x: np.sin(x))
    made.defjvp(rule)
    return made


def reverse(backward):
    made = mp.custom_vjp(lambda x, y: np.sin(x) * y)
    made.defvjp(lambda x, y: (np.sin(x) * y, (x, y)), backward)
    return made


def second_order(factor):
    """Its first derivative is right, and that derivative's derivative is not."""
    cosine = mp.custom_jvp(lambda x: np.cos(x))
    cosine.defjvp(lambda p, t: (np.cos(p[0]), -factor * np.sin(p[0]) * t[0]))
    return ruled(lambda p, t: (np.sin(p[0]), cosine(p[0]) * t[0]))


WRONG = {
    "factor": (ruled(lambda p, t: (np.sin(p[0]), 1.001 * np.cos(p[0]) * t[0])), (X,), 1, "the jvp: the tangent of"),
    "sign": (
        ruled(lambda p, t: (np.sin(p[0]), -np.cos(p[0]) * t[0])),
        (0.4,),
        1,
        "the jvp: the tangent of the result is",
    ),
    "value": (ruled(lambda p, t: (np.sin(p[0]) + 1, np.cos(p[0]) * t[0])), (X,), 1, "the jvp: the value of the result"),
    "one element": (
        ruled(lambda p, t: (np.sin(p[0]), np.cos(p[0]) * t[0] * np.array([1.0, 1.0, 1.01]))),
        (X,),
        1,
        "the tangent of the result[2] is",
    ),
    "zero": (ruled(lambda p, t: (np.sin(p[0]), np.zeros_like(t[0]))), (X,), 1, "is 0.0"),
    "identity": (ruled(lambda p, t: (np.sin(p[0]), t[0])), (X,), 1, "the jvp: the tangent of"),
    "a leaf of the result": (
        lambda x: {"good": x * 2, "bad": WRONG["identity"][0](x)},
        (X,),
        1,
        "the tangent of the result['bad'][",
    ),
    "backward": (
        reverse(lambda r, bar: (bar * np.cos(r[0]) * r[1], bar * np.sin(r[0]) * 1.001)),
        (X, X),
        1,
        "the vjp: the cotangent of args[1] times",
    ),
    "backward, the other": (
        reverse(lambda r, bar: (bar * r[1], bar * np.sin(r[0]))),
        (X, X),
        1,
        "the vjp: the cotangent of args[0] times",
    ),
    "half backward": (
        reverse(lambda r, bar: (None, bar * np.sin(r[0]))),
        (X, X),
        1,
        "the vjp: the cotangent of args[0] times",
    ),
    "a leaf of the argument": (
        lambda p: WRONG["half backward"][0](p["a"], p["b"]),
        ({"a": X, "b": X},),
        1,
        "the cotangent of args[0]['a'] times",
    ),
    "second order": (second_order(1.01), (X,), 2, "the jvp of the jvp: the tangent of"),
    "stopped": (lambda x: x * lax.stop_gradient(x), (X,), 1, "the jvp: the tangent of"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_found(name):
    f, args, order, said = WRONG[name]
    modes = ("rev",) if "backward" in name or "argument" in name else ("fwd", "rev")
    with pytest.raises(AssertionError, match=re.escape(said)) as caught:
        check_grads(f, args, order, modes)
    assert len(re.findall(r"-?\d+\.\d+|\[", str(caught.value))) >= 2  # both numbers


def test_each_mode_is_checked_by_itself():
    """A custom_vjp has no forward mode, and is compared with differences; what is right to the first order passes."""
    with pytest.raises(AssertionError, match="a central difference gives"):
        check_grads(reverse(lambda r, bar: (bar, bar)), (X, X), 1, modes=["rev"])
    check_grads(second_order(1.01), (X,), 1)
    with pytest.raises(AssertionError, match="of the vjp"):
        check_grads(second_order(1.01), (X,), 2, modes="rev")


def test_tolerances_and_step_are_the_callers():
    f = ruled(lambda p, t: (np.sin(p[0]), 1.001 * np.cos(p[0]) * t[0]))
    check_grads(f, (X,), 1, atol=1e-2, rtol=1e-2)
    with pytest.raises(AssertionError):
        check_grads(lambda x: x**3, (X,), 1, eps=0.5)


def test_modes_have_names():
    with pytest.raises(SourceError, match=r"check_grads: the modes are \('forward',\)"):
        check_grads(np.sin, (X,), 1, modes=["forward"])
    assert mp.check_grads is check_grads
