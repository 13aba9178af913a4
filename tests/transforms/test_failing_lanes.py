"""Lanes that fail tell their number, of each axis, in NumPy source and in native code.

In: functions of which some lanes fail. Out: the message of a lane by itself, and which lane it is.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import lax

TABLE = np.array([1.0, 2.0, 3.0])


class Odd(Exception):
    def __init__(self, k):
        super().__init__(f"{k} is odd")
        self.k = k


def taken(x, k):
    return x * TABLE[k]


def taken_in_a_branch(x, k):
    if x > 1:
        return TABLE[k]
    return x


def taken_in_a_while(x, k):
    while x < 4:
        x = x + TABLE[k]
        k = k + 1
    return x


def taken_in_a_scan(x, k):
    return lax.scan(lambda total, t: (total + TABLE[k + t], None), x, np.arange(2))[0]


def taken_many(x, k):
    return x * np.sum(TABLE[np.array([0, 1]) * k])


def stored(x, k):
    out = np.zeros(3)
    out[k] = x
    return out


def asserted(x, k):
    assert x < 3
    return x


def asserted_with_a_text(x, k):
    assert k < 3, f"k is {k}"
    return x


def raised(x, k):
    if k > 2:
        raise ValueError(f"{x} at {{{k}}}")
    return np.log(x)


def raised_in_a_branch_of_a_loop(x, k):
    for i in range(3):
        if x > 1:
            while k > i:
                if k > 4:
                    raise ValueError("too many")
                k = k - 1
                x = x + 1
    return x


def in_a_called_function(x, k):
    return mp.jit(taken_in_a_branch)(x, k) + mp.jit(taken_in_a_branch)(2 * x, k)


def in_a_gradient(x, k):
    return mp.grad(taken)(x, k)


def of_floats_in_a_loop(x, k):
    total = 0.0
    for i in range(3):
        if x * i > 5:
            raise OverflowError(f"at {i}")
        total += np.sin(x) * i
    return total


FAIL = [
    taken,
    taken_in_a_branch,
    taken_in_a_while,
    taken_in_a_scan,
    taken_many,
    stored,
    asserted,
    asserted_with_a_text,
    raised,
    raised_in_a_branch_of_a_loop,
    in_a_called_function,
    in_a_gradient,
    of_floats_in_a_loop,
]
X, K = np.array([0.5, 1.5, 1.0, 3.5, 0.25]), np.array([0, 1, 0, 7, 1])


def said(run):
    with pytest.raises(Exception) as caught:
        run()
    return type(caught.value), str(caught.value)


def with_lane(message, lane, where="vmap"):
    return f"{message}, in lane {lane} of {where}" if message else f"in lane {lane} of {where}"


@pytest.fixture(params=["numpy", "native"])
def compiled(request):
    return mp.jit if request.param == "native" else lambda f: f


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", FAIL)
def test_the_lane(function, compiled):
    kind, message = said(lambda: mp.jit(function)(X[3], K[3]))
    assert said(lambda: compiled(mp.vmap(function))(X, K)) == (kind, with_lane(message, 3))


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", FAIL)
def test_lanes_of_two_axes(function):
    kind, message = said(lambda: mp.jit(function)(X[3], K[3]))
    x, k = np.stack([X[[0, 1, 2]], X[[2, 3, 4]]]), np.stack([K[[0, 1, 2]], K[[2, 3, 4]]])
    mapped = mp.jit(mp.vmap(mp.vmap(function, axis_name="j"), axis_name="{i}"))
    assert said(lambda: mapped(x, k)) == (kind, with_lane(with_lane(message, 1, "axis 'j'"), 1, "axis '{i}'"))


def test_what_all_lanes_have_in_common_names_none(compiled):
    def function(x, k):
        return x * TABLE[k]

    _, message = said(lambda: compiled(mp.vmap(function, (0, None)))(X, 9))
    assert message == "index 9 is out of bounds for axis 0 with size 3"


def test_exceptions_that_hold_something_are_left_alone(compiled):
    def function(k):
        if k % 2 == 1:
            raise Odd(k)
        return k

    with pytest.raises(Odd) as caught:
        compiled(mp.vmap(function))(np.array([0, 2, 3]))
    assert caught.value.k == 3 and str(caught.value) == "3 is odd"

    def key(k):
        if k % 2 == 1:
            raise KeyError("odd")
        return k

    assert said(lambda: compiled(mp.vmap(key))(np.array([0, 2, 3]))) == (KeyError, "'odd'")


def test_sizes_that_are_left_open(compiled):
    mapped = compiled(mp.vmap(taken_in_a_while))
    for n in (4, 6, 9):
        x, k = np.full(n, 3.0), np.zeros(n, int)
        np.testing.assert_allclose(mapped(x, k), 4.0)
        k[n - 2] = 5
        assert said(lambda x=x, k=k: mapped(x, k))[1].endswith(f", in lane {n - 2} of vmap")
