"""Handlers and context managers that take what they do not name: they take what Python gives them, and none
of what the stager raises for itself."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError


class Ends:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


class Chooses:
    def __init__(self, kind, notes):
        self.kind, self.notes = kind, notes

    def __enter__(self):
        self.notes[0] += 1.0
        return self.notes

    def __exit__(self, kind, error, trace):
        self.notes[1] += 1.0
        return kind is not None and issubclass(kind, self.kind)


class Notes(Chooses):
    def __exit__(self, kind, error, trace):
        self.notes[1] += 1.0


def bare(y, n):
    c = 0
    try:
        c += int(y[n])
    except:  # noqa: E722
        c += 20
    return c


def bare_after_another(y, n):
    c = 0
    try:
        c += int(y[n])
    except ValueError:
        c += 10
    except:  # noqa: E722
        c += 20
    return c


def every_exception(y, n):
    c = 0
    try:
        c += int(y[n])
    except (ValueError, BaseException):
        c += 20
    else:
        c += 40
    finally:
        c += 80
    return c


def by_a_variable(y, n):
    kinds, c = BaseException, 0
    try:
        c += int(y[n])
    except kinds:
        c += 20
    return c


def around_a_branch(y, n):
    c = 0
    try:
        if n > 1:
            c += int(y[n])
            if y[0] > 5.0:
                raise RuntimeError("no")
        c += 1
    except:  # noqa: E722
        c += 20
    return c


def suppressed(y, n):
    c = 0
    with contextlib.suppress(IndexError):
        c += 1
        c += int(y[n])
        c += 5
    return c


def suppressed_all(y, n):
    c = 0
    with contextlib.suppress(BaseException):
        c += int(y[n])
        if n == 1:
            raise ValueError("one")
        c += 5
    return c


def ended(y, n):
    c = 0
    with Ends():
        c += 1
        c += int(y[n])
        c += 5
    return c


def chosen(y, n):
    c, notes = 0, np.zeros(2)
    with Chooses(IndexError, notes) as found:
        c += int(y[n])
        found[0] += 4.0
        if n == 2:
            raise KeyError(n)
    return c, notes


def noted(y, n):
    c, notes = 0, np.zeros(2)
    try:
        with Notes(IndexError, notes):
            c += int(y[n])
    except IndexError:
        c += 20
    return c, notes


def two_managers(y, n):
    c, notes = 0, np.zeros(2)
    with Notes(ValueError, notes), contextlib.suppress(IndexError):
        c += int(y[n])
        notes[0] += 7.0
    return c, notes


def managers_the_other_way_round(y, n):
    c, notes = 0, np.zeros(2)
    with contextlib.suppress(IndexError), Notes(ValueError, notes) as kept:
        c += int(y[n])
        kept[0] += 7.0
    return c, notes


def in_a_loop(y, n):
    c = 0
    for k in range(3):
        with contextlib.suppress(IndexError):
            if k == 2:
                break
            c += int(y[n + k])
            c += 5
    return c


def left_early(y, n):
    with contextlib.suppress(IndexError):
        if y[n] > 0.0:
            return 1
        return 2
    return 3


PROGRAMS = [bare, bare_after_another, every_exception, by_a_variable, around_a_branch, suppressed,
            suppressed_all, ended, chosen, noted, two_managers, managers_the_other_way_round,
            in_a_loop, left_early]  # fmt: skip


def outcome(function, *args):
    try:
        return function(*args)
    except (KeyError, ValueError, RuntimeError) as error:
        return type(error).__name__


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_as_in_python(function):
    y, jitted = np.array([9.0, 1.0, -2.0]), mp.jit(function)
    for n in (0, 1, 2, 3, -4):
        want, got = outcome(function, y, n), outcome(jitted, y, n)
        assert isinstance(want, str) == isinstance(got, str), (n, want, got)
        np.testing.assert_equal(got, want, err_msg=str(n))


def told_first(y, n):
    x = y[0]
    try:
        print("told", n)
        x = y[n]
        if x > 1.0:
            raise ValueError("no")
    except ValueError:
        x = -1.0
    return x


@pytest.mark.parametrize("n", [0, 1, 7])
def test_what_a_try_prints_comes_before_what_fails_in_it(n, capfd):
    found = []
    for function in (told_first, mp.jit(told_first)):
        try:
            got = function(np.array([9.0, 1.0, -2.0]), n)
        except IndexError as error:
            got = str(error)
        found.append((got, capfd.readouterr().out))
    assert found[0] == found[1]


def quietly(kind):
    return contextlib.suppress(kind) if kind is IndexError else Ends()


def by_a_function(y, n, kind):
    with quietly(kind):
        return y[n]
    return 0.0


@pytest.mark.parametrize("kind", [IndexError, ValueError])
def test_a_manager_that_is_not_known_by_its_look_is_refused(kind):
    with pytest.raises(SourceError, match="a `with` whose manager may end the exception") as error:
        mp.jit(by_a_function)(np.zeros(3), 1, kind)
    assert error.value.code == "try"
