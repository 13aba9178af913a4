"""Attributes that only some paths set: read where they are not there, they are an AttributeError as in Python."""

from __future__ import annotations

import copy
import traceback

import numpy as np
import pytest

import metaphrase as mp


class Shell:
    pass


class Halved:
    def __init__(self, x):
        if x > 0:
            self.half = x / 2


def of_a_class(x):
    return Halved(x).half


def of_an_argument(x, shell):
    if x > 0:
        shell.twice = 2 * x
    return shell.twice + 1


def of_a_loop(x):
    shell = Shell()
    for i in range(int(x)):
        shell.last = i * x
    return shell.last


def of_a_while(x):
    shell = Shell()
    while x > 1:
        if x > 50:
            shell.large = x
        x = x / 2
    return shell.large * 2


def of_arrays(x):
    shell = Shell()
    if x > 0:
        shell.row = np.ones(3) * x
    return shell.row.sum()


def asked_for(x):
    halved = Halved(x)
    return hasattr(halved, "half"), getattr(halved, "half", -1.0), getattr(halved, "half", x) + 1


def asked_for_behind_a_loop(x):
    shell = Shell()
    for i in range(5):
        if i * x > 6:
            shell.first = i if not hasattr(shell, "first") else shell.first
    return getattr(shell, "first", -1)


def set_anew(x):
    shell = Shell()
    if x > 0:
        shell.row = np.ones(3) * x
    if x > 1:
        return shell.row.sum()
    shell.row = np.full(3, x * x)
    return shell.row.sum()


def default_of_the_class(x):
    class Known:
        rate = 0.5

    known = Known()
    if x > 0:
        known.rate = x
    return known.rate * 2


class Slots:
    __slots__ = ("one", "other")


def of_slots(x):
    slots = Slots()
    if x > 0:
        slots.one = x * 2
    return hasattr(slots, "one"), getattr(slots, "one", -1.0), hasattr(slots, "other")


class Square:
    @property
    def area(self):
        return self.side**2


def behind_a_property(x):
    square = Square()
    if x > 0:
        square.side = x
    return square.area


FUNCTIONS = [
    of_a_class,
    of_a_loop,
    of_a_while,
    of_arrays,
    asked_for,
    asked_for_behind_a_loop,
    set_anew,
    default_of_the_class,
    of_slots,
    behind_a_property,
]


def outcome(function, *args):
    try:
        return function(*args)
    except AttributeError as error:
        return str(error)


@pytest.mark.parametrize("x", [3.0, 120.0, 0.25, -1.0])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_it_is_pythons(function, x):
    got, want = outcome(mp.jit(function), x), outcome(function, x)
    assert got == want and np.shape(got) == np.shape(want)


@pytest.mark.parametrize("x", [3.0, -1.0])
def test_one_of_an_argument(x):
    shell, other = Shell(), Shell()
    assert outcome(mp.jit(of_an_argument), x, shell) == outcome(of_an_argument, x, other)
    if x > 0:
        assert shell.twice == other.twice


@pytest.mark.parametrize("x", [3.0, 0.25, -1.0])
def test_derivatives(x):
    gradient = mp.jit(mp.grad(set_anew))(x)
    step = 1e-6
    np.testing.assert_allclose(gradient, (set_anew(x + step) - set_anew(x - step)) / (2 * step), rtol=1e-6)
    if x > 0:
        assert mp.grad(of_a_class)(x) == 0.5
    else:
        with pytest.raises(AttributeError, match="'Halved' object has no attribute 'half'"):
            mp.grad(of_a_class)(x)


def test_lanes():
    x = np.array([3.0, 0.25, -1.0])
    np.testing.assert_allclose(mp.vmap(set_anew)(x), [set_anew(v) for v in x])
    np.testing.assert_allclose(mp.vmap(lambda v: asked_for(v)[1])(x), [asked_for(v)[1] for v in x])


def test_the_error_is_at_the_line_that_reads():
    with pytest.raises(AttributeError) as caught:
        mp.jit(of_arrays)(-1.0)
    assert any("return shell.row.sum()" in str(line.line) for line in traceback.extract_tb(caught.tb))


def test_an_object_that_has_it_already_is_as_it_was():
    shell = Shell()
    shell.twice = 5.0
    before = copy.copy(shell)
    assert mp.jit(of_an_argument)(-1.0, shell) == 6.0 and vars(shell) == vars(before)
