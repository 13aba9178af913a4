"""What an equation defines: its values are another way's, its derivatives those of the closed form or of differences.

In: `equations.CASES`. Out: values, Jacobians in both modes, second derivatives, lanes and native code, all compared.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from together import jitted

import metaphrase as mp

from .equations import CASES

pytestmark = pytest.mark.turns(8)

NAMES = sorted(CASES)
CHUNK = 12
# Some have the same loops as others, and are left out where code is compiled or long programs are batched.
ALIKE = (
    "by_brenth by_bisect by_halley by_newton_without_a_derivative by_cg_with_a_preconditioner by_bfgs the_least_value"
)
APART = [name for name in NAMES if name not in ALIKE.split()]


def differences(f, p, h=2e-3):
    """The Jacobian, by the seven-point rule."""
    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    columns = []
    for step in h * np.eye(len(p)):
        columns.append(sum(w * (f(p + k * step) - f(p - k * step)) for k, w in weights.items()) / h)
    return np.stack([np.asarray(c) for c in columns], axis=-1)


@functools.cache
def wanted(name):
    """The reference's value, Jacobian, and second derivatives."""
    case = CASES[name]
    value = np.asarray(case.reference(case.parameters))
    first = differences(case.reference, case.parameters)
    return value, first, differences(lambda p: differences(case.reference, p, 1e-2), case.parameters, 1e-2)


def close(got, want, tolerance):
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def whole(f):
    """All that is asked of native code, as one program."""
    return lambda p: (f(p), mp.jacrev(f)(p))


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    """Those of Python itself, where a function of SciPy is SciPy's; BFGS takes differences there."""
    case = CASES[name]
    close(case.function(case.parameters), wanted(name)[0], 2e-6)


@pytest.mark.parametrize("mode", [mp.jacfwd, mp.jacrev])
@pytest.mark.parametrize("name", NAMES)
def test_first_derivatives(name, mode):
    case = CASES[name]
    close(mode(case.function)(case.parameters), wanted(name)[1], 2e-7)


@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives(name):
    case = CASES[name]
    close(mp.jacfwd(mp.jacrev(case.function))(case.parameters), wanted(name)[2], 2e-5)


@pytest.mark.parametrize("name", [n for n in APART if not n.startswith("by_")])
def test_second_derivatives_in_reverse(name):
    case = CASES[name]
    close(mp.jacrev(mp.jacrev(case.function))(case.parameters), wanted(name)[2], 2e-5)


@pytest.mark.parametrize("name", APART)
def test_lanes(name):
    case = CASES[name]
    lanes = np.stack([case.parameters, case.parameters * 1.1, case.parameters * 0.95])
    each = np.stack([mp.jacrev(case.function)(p) for p in lanes])
    close(mp.vmap(mp.jacrev(case.function))(lanes), each, 1e-9)
    total = mp.grad(lambda lanes: np.sum(mp.vmap(case.function)(lanes)))(lanes)
    close(total, each.reshape(3, -1, len(case.parameters)).sum(1), 1e-9)


@pytest.mark.parametrize("first", range(0, len(APART), CHUNK))
def test_native_code(first):
    calls = {name: (whole(CASES[name].function), (CASES[name].parameters,)) for name in APART[first : first + CHUNK]}
    for name, made in jitted(calls).items():
        value, back = made(CASES[name].parameters)
        close(value, wanted(name)[0], 2e-9)
        close(back, wanted(name)[1], 2e-7)
