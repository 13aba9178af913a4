"""What users read when something is wrong, and the small answers of the tools.

In: programs with one mistake. Out: the message that Python or NumPy would give, the user's line at the end of
the traceback, and no frame of this package.
"""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.flow import loops
from metaphrase.config import config
from metaphrase.explanation import explain
from metaphrase.source import SourceError

NATIVE = pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])


def raised(function, *args):
    """The exception of a call, which only the user's frames show."""
    with pytest.raises(Exception) as caught:
        function(*args)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].filename == __file__ and all(f.filename == __file__ for f in frames[1:]), frames
    return caught.value, frames[-1].line


class Empty:
    pass


empty = Empty()


@pytest.mark.parametrize("place", [lambda x: x + empty.missing, lambda x: x + getattr(empty, "missing")])  # noqa: B009
def test_a_missing_attribute(place):
    error, _ = raised(mp.jit(place), 1.0)
    assert type(error) is AttributeError and str(error) == "'Empty' object has no attribute 'missing'"


@NATIVE
def test_a_reshape_shows_sizes(native):
    def reshaped(x, n, m):
        return x.reshape(n, 2, m)

    def rest(x, n):
        return x[x > 0].reshape(n, -1)

    with config(native=native):
        error, line = raised(mp.jit(reshaped), np.ones(8), 3, 5)
        assert str(error) == "cannot reshape array of size 8 into shape (3,2,5)" and "reshape" in line
        error, _ = raised(mp.jit(rest), np.ones(5), 2)
        assert str(error) == "cannot reshape array of size 5 into shape (2,newaxis)"
        many = mp.jit(lambda x, a, b, c, d: x.reshape(a, b, c, d))
        error, _ = raised(many, np.ones(5), 2, 3, 4, 5)
        assert str(error) == "cannot reshape array of size 5 into shape of 4 dims"


@NATIVE
def test_errors_of_functions_that_we_wrote(native):
    """They name the line that calls them."""
    cases = [
        (lambda x: np.delete(x, np.int64(x[0]) + 9), IndexError, "index 10 is out of bounds for axis 0"),
        (lambda x: np.delete(x, x[:2] > 0), ValueError, "boolean array argument obj to delete must be one"),
        (lambda x: np.repeat(x, x.astype(int) - 2), ValueError, "repeats may not contain negative values"),
        (lambda x: [x[0], x[1]].index(70.5), ValueError, "70.5 is not in list"),
        (lambda x: (1.0, 2.0).index(x[0] + 9), ValueError, "tuple.index(x): x not in tuple"),
        (lambda x: np.repeat(x, x[:3].astype(int)), ValueError, "operands could not be broadcast together"),
        (lambda x: np.ix_(x.reshape(2, 2)), ValueError, "Cross index must be 1 dimensional"),
    ]
    with config(native=native):
        for function, kind, text in cases:
            error, line = raised(mp.jit(function), np.ones(4))
            assert isinstance(error, kind) and text in str(error)
            assert "lambda x:" in line
    with pytest.raises(SourceError) as caught:
        mp.jit(lambda x: np.delete(x, x))(np.ones(3))
    assert caught.value.span.file == __file__


@NATIVE
def test_delete(native):
    x = np.arange(12.0).reshape(3, 4)

    def delete(x, k, axis=None):
        return np.delete(x, k, axis=axis)

    with config(native=native):
        f = mp.jit(delete, static_argnums=2)
        for axis in (None, 0, 1, -1):
            for k in (0, 2, -1, np.array([0, 2]), np.array([1, 1, -1])):
                np.testing.assert_array_equal(f(x, k, axis), delete(x, k, axis))
        mask = np.array([True, False, True])
        np.testing.assert_array_equal(f(x, mask, 0), delete(x, mask, 0))
        spread = mp.jit(lambda x, k: np.delete(x, slice(k, k + 2)))
        np.testing.assert_array_equal(spread(x, 3), np.delete(x, slice(3, 5)))
        first = mp.jit(lambda x: np.delete(x, 1))
        for n in range(2, 8):
            np.testing.assert_array_equal(first(np.arange(n)), np.delete(np.arange(n), 1))
    assert first.cache_info().currsize == 2
    gradient = mp.grad(lambda x, k: (np.delete(x, k) ** 2).sum())
    np.testing.assert_array_equal(gradient(np.ones(3), 1), [2.0, 0.0, 2.0])


def test_a_missing_argument_of_a_lambda():
    said = r"^<lambda>\(\) missing a required argument: 'y'; its parameters are \(x, y\)$"
    with pytest.raises(TypeError, match=said):
        mp.jit(lambda x, y: x + y)(1.0)


def test_a_fault_of_ours_shows(monkeypatch):
    """A trial falls back where the user's program can't be rolled, and not where the stager is broken."""

    def broken(*args):
        return None.region

    def summed(x):
        for i in range(100):
            x = x + i
        return x

    monkeypatch.setattr(loops, "_fixpoint", broken)
    monkeypatch.setitem(broken.__globals__, "__name__", "metaphrase.pretended")
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'region'"):
        mp.jit(summed)(1.0)


def test_names_as_sizes():
    struct = mp.ShapeDtypeStruct
    made = mp.eval_shape(lambda x, y: x @ y, struct(("n", "m"), float), struct(("m",), float))
    assert str(made) == "ShapeDtypeStruct(shape=(n,), dtype=float64)"
    twice = mp.eval_shape(lambda x: np.concatenate([x, x]), struct(("n + 1",), float))
    assert str(twice.shape) == "(2*n + 2,)"
    for dim, kind in (("n/2", ValueError), ("3 +", ValueError), (1.5, TypeError), (-1, ValueError)):
        with pytest.raises(kind):
            struct((dim,), float)


@NATIVE
def test_keywords_keep_their_order(native):
    def names(scale, **values):
        return {name: value * scale for name, value in values.items()}

    def keyword_only(x, *, a, b):
        return x + a - b

    f, g, h = mp.jit(names), mp.jit(keyword_only), mp.grad(keyword_only)
    with config(native=native):
        for _ in range(2):
            assert list(f(2.0, z=1.0, a=2.0)) == ["z", "a"]
            assert list(f(2.0, a=1.0, z=2.0)) == ["a", "z"]
            assert f(2.0, a=1.0, z=2.0) == {"a": 2.0, "z": 4.0}
            assert g(1.0, a=2.0, b=3.0) == g(1.0, b=3.0, a=2.0) == 0.0
            assert h(1.0, a=2.0, b=3.0) == h(1.0, b=3.0, a=2.0) == 1.0
    assert (f.cache_info().currsize, g.cache_info().currsize, h._memo.misses) == (2, 1, 1)
    assert list(mp.jit(lambda x: names(x, z=1.0, a=2.0))(1.0)) == ["z", "a"]


def test_explain_names_results_and_stores():
    def step(thing, x):
        thing.t = x
        x[0] = 1.0
        return {"a": x, "b": (x * 2, "text")}

    report = explain(step, empty, np.ones(3))
    assert "  ['a']: an argument itself\n  ['b'][0]: f64[3]\n  ['b'][1]: 'text', fixed" in report
    assert "stores into:\n  empty.t\n  x\n" in report or "stores into:\n  x\n  empty.t\n" in report
