"""Branches whose sides leave what has no common form: the ints that say which are pinned, defaults too."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import UnsupportedError


def by_order(theta, order=2):
    if order == 2:
        return 1 - theta, theta
    if order == 3:
        return 1 - theta, theta, 3.0
    raise ValueError("order must be 2 or 3")


def by_keyword(x, *, full=0):
    y = x * 2
    made = (y, x.sum()) if full > 0 else y
    return made


def used_inside(x, kind=1):
    state = [x] if kind == 1 else {"a": x}
    return state[0] if kind == 1 else state["a"] * 2


COUNT = 2


def captured(x):
    return (x, x) if COUNT == 2 else (x, x, x)


def by_a_float(x, limit=2.0):
    if limit > 1.0:
        return x, x
    return x, x, x


def by_an_element(x):
    if x[0] > 1.0:
        return x, x
    return x, x, x


def alike(got, want):
    if isinstance(want, tuple):
        return type(got) is tuple and len(got) == len(want) and all(map(alike, got, want))
    return type(got) is type(want) and np.array_equal(got, want)


def test_a_default_says_which():
    jitted = mp.jit(by_order)
    for args in [(0.25,), (0.5, 2), (0.5, 3), (0.25,), (0.75, 3)]:
        assert alike(jitted(*args), by_order(*args))
    assert len(jitted.signatures) == 2  # of 2, given or not, and of 3
    with pytest.raises(ValueError, match="order must be 2 or 3"):
        jitted(0.5, 4)


@pytest.mark.parametrize("f", [by_keyword, used_inside])
def test_other_places(f):
    jitted, x = mp.jit(f), np.arange(3.0)
    assert alike(jitted(x), f(x))
    for value in (0, 1, 2):
        given = {"full": value} if f is by_keyword else {"kind": value}
        assert alike(jitted(x, **given), f(x, **given))


def test_a_captured_number(monkeypatch):
    jitted = mp.jit(captured)
    for count in (2, 3, 2):
        monkeypatch.setitem(globals(), "COUNT", count)
        assert alike(jitted(1.5), captured(1.5))


def test_derivatives():
    assert mp.grad(lambda x: sum(by_order(x * x)))(0.5) == 0.0
    assert mp.grad(lambda x, order=3: by_order(x * x, order)[1])(0.5) == 1.0


@pytest.mark.parametrize("f, x", [(by_a_float, 1.5), (by_an_element, np.arange(3.0))])
def test_what_is_no_int_is_refused(f, x):
    with pytest.raises(UnsupportedError, match="is one tuple where the test holds and another") as error:
        mp.jit(f)(x)
    assert error.value.remedy == "give it one type on every path"
