"""Functions that return None on some paths: jitted, printed as source, nested; no derivative, no lanes."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError


def larger_root(a, b, c):
    d = b * b - 4 * a * c
    if d < 0:
        return None
    return (-b + np.sqrt(d)) / (2 * a)


def with_default(a):
    r = mp.jit(larger_root)(a, 1.0, 1.0)
    return -1.0 if r is None else r


class Sensor:
    def __init__(self):
        self.last = 1.0

    def see(self, x):
        self.last = x if x > 0 else None
        return 2 * x


def test_none_or_the_value():
    f = mp.jit(larger_root)
    assert f(1.0, 0.0, -4.0) == 2.0
    assert f(1.0, 0.0, 4.0) is None
    assert f.cache_info().misses == 1


def test_source_runs_on_its_own():
    names = {}
    exec(mp.source(larger_root, 1.0, 0.0, -4.0), names)
    assert names["larger_root"](1.0, 0.0, -9.0) == 3.0
    assert names["larger_root"](1.0, 0.0, 9.0) is None


def test_a_jitted_function_in_another():
    f = mp.jit(with_default)
    assert f(1.0) == -1.0
    assert f(-1.0) == with_default(-1.0)


def test_an_attribute_becomes_none_and_a_number_again():
    jitted, plain = Sensor(), Sensor()
    f = mp.jit(jitted.see)
    for x in (3.0, -2.0, -1.0, 5.0):
        assert f(x) == plain.see(x)
        assert jitted.last == plain.last


@pytest.mark.parametrize("transform", [mp.grad, mp.value_and_grad, mp.jacfwd, mp.jacrev, mp.vmap])
def test_no_derivative_and_no_lanes(transform):
    args = (np.ones(2),) * 3 if transform is mp.vmap else (1.0, 0.0, -4.0)
    with pytest.raises(SourceError, match="returns None on some paths and a value on others") as caught:
        transform(larger_root)(*args)
    assert caught.value.code == "join"


def test_no_tangents():
    with pytest.raises(SourceError, match="returns None on some paths"):
        mp.jvp(larger_root, (1.0, 0.0, -4.0), (1.0, 0.0, 0.0))
    with pytest.raises(SourceError, match="returns None on some paths"):
        mp.vjp(larger_root, 1.0, 0.0, -4.0)


def in_words(x):
    return "positive" if x > 0 else "negative"


def test_words_have_no_derivative_and_a_program_of_their_own_source():
    with pytest.raises(SourceError, match="returns one of several Python values, which one the run decides"):
        mp.grad(in_words)(1.0)
    scope: dict = {}
    exec(mp.source(in_words, 1.0), scope)
    assert [scope["in_words"](x) for x in (1.0, -1.0)] == ["positive", "negative"]
    pair = mp.jit(lambda x: (in_words(x), x))
    assert [pair(x) for x in (2.0, -2.0)] == [("positive", 2.0), ("negative", -2.0)]
    words = mp.jit(lambda x: mp.jit(in_words)(x) == "positive")
    assert words(1.0) and not words(-1.0)
