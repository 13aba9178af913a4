"""Classes of arrays, given and captured: plain ones are arrays, those that mean more are refused."""

import warnings

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import DTypeError

native = pytest.mark.parametrize("native", [True, False])
W = np.ones(2)


class Turned(np.ndarray):
    def __add__(self, other):
        return np.ndarray.__mul__(self, other)


class Named(np.ndarray):
    def __array_finalize__(self, other):
        self.name = getattr(other, "name", "")


with warnings.catch_warnings(action="ignore"):
    OTHERS = [np.ones(2).view(Turned), np.matrix([[1.0, 2.0]]), np.ma.array([1.0, 2.0], mask=[0, 1])]


def plus(a):
    return a + 1


def weighted(x):
    return W + x


@native
def test_arrays_that_mean_more_are_refused_before_and_after_plain_ones(native):
    for after in (False, True):
        with mp.config(native=native):
            compiled = mp.jit(plus)
            if after:
                compiled(np.ones(2))
            for other in OTHERS:
                with pytest.raises(DTypeError):
                    compiled(other)
            assert compiled(np.ones(2).view(Named)).tolist() == [2.0, 2.0]


@native
def test_so_are_captured_ones(native, monkeypatch):
    for first in (np.ones(2), np.ones(2).view(Named)):
        with mp.config(native=native):
            compiled = mp.jit(weighted)
            monkeypatch.setitem(globals(), "W", first)
            assert compiled(1.0).tolist() == [2.0, 2.0]
            for other in OTHERS:
                monkeypatch.setitem(globals(), "W", other)
                with pytest.raises(DTypeError):
                    compiled(1.0)
            monkeypatch.setitem(globals(), "W", np.full(2, 5.0).view(Named))
            assert type(compiled(1.0)) is np.ndarray
            assert compiled(1.0).tolist() == [6.0, 6.0]


@native
def test_a_captured_memory_map_is_written(native, monkeypatch, tmp_path):
    held = np.memmap(tmp_path / "held", dtype=float, mode="w+", shape=3)
    monkeypatch.setitem(globals(), "W", held)

    def add(x):
        W[0] += x
        return W * x

    with mp.config(native=native):
        compiled = mp.jit(add)
        for k in (1, 2):
            assert compiled(2.0).tolist() == [4.0 * k, 0.0, 0.0]
            assert held.tolist() == [2.0 * k, 0.0, 0.0]
