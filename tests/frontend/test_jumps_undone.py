"""A jump out of a `try` or `with` whose end raises: the exception takes the place of the jump."""

from __future__ import annotations

import contextlib

import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.rewrite.convert import converted
from metaphrase.astpasses.frontend.rewrite.normal import normal
from metaphrase.astpasses.frontend.rewrite.plain import stager


def returned(x, n):
    try:
        try:
            if n > 1:
                return x, -1
        finally:
            if n > 2:
                raise ValueError("told")
    except ValueError:
        x = x + 10.0
    return x, 2


def broken(x, n):
    for k in range(4):
        try:
            try:
                if n > k:
                    break
            finally:
                if n > 2:
                    raise ValueError("told")
        except ValueError:
            x = x + 1.0
        x = x * 2.0
    else:
        x = x + 100.0
    return x


def skipped(x, n):
    k = 0
    while k < 3:
        k += 1
        try:
            try:
                if n > k:
                    continue
                x = x + 0.5
            finally:
                x = x + 4.0
                if n == 3:
                    raise ValueError("told")
        except ValueError:
            x = x + 16.0
        x = x * 2.0
    return x, k


def suppressed(x, n):
    with contextlib.suppress(ValueError):
        try:
            if n > 1:
                return x
        finally:
            if n > 2:
                raise ValueError("told")
    return x + 10.0


def from_a_loop_inside(x, n):
    try:
        try:
            for k in range(4):
                if k == n:
                    return x, k
                x = x + 1.0
        finally:
            if n == 3:
                raise ValueError("told")
    except ValueError:
        x = -x
    return x, -1


def in_handlers(x, n):
    try:
        try:
            if n > 1:
                raise IndexError("inner")
        except IndexError:
            return x, 1
        else:
            if n == 1:
                return x, 2
        finally:
            if n != 2:
                raise ValueError("told")
    except ValueError:
        x = x + 10.0
    return x, 3


def twice(x, n):
    try:
        try:
            try:
                if n > 0:
                    return x, 1
            finally:
                if n == 2:
                    raise IndexError("first")
        finally:
            if n == 3:
                raise ValueError("second")
    except (IndexError, ValueError):
        x = x - 5.0
    return x, 2


class Closing:
    def __init__(self, limit):
        self.limit = limit

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.limit > 2:
            raise ValueError("told")


def managed(x, n):
    try:
        with Closing(n):
            if n > 1:
                return x
    except ValueError:
        x = x + 10.0
    return x * 2.0


def not_caught(x, n):
    try:
        if n > 1:
            return x
    finally:
        if n > 2:
            raise ValueError("told")
    return x + 1.0


FUNCTIONS = [returned, broken, skipped, suppressed, from_a_loop_inside, in_handlers, twice, managed, not_caught]


def outcome(function, *args):
    try:
        return function(*args)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_the_end_raises_takes_the_place_of_the_jump(function):
    native = mp.jit(function)
    for n in range(5):
        assert outcome(native, 0.5, n) == outcome(function, 0.5, n), n


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_normal_form_and_the_control_stage_too(function):
    scope = dict(globals())
    exec(normal(function).text(), scope)
    for run in (scope[function.__name__], converted(function, stager)):
        for n in range(5):
            assert outcome(run, 0.5, n) == outcome(function, 0.5, n), n
