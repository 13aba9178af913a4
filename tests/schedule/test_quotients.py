"""Reshapes by sizes of the run: loops over stretches in which quotients stay, no division for each element.

In: functions of arrays and sizes. Out: NumPy's values, for sizes of 0 and 1 and for parts of threads; the loops' text.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.schedule import target
from metaphrase.core.dims import Sym, floordiv, mod
from metaphrase.core.facts import Facts


def turned(x, a, b):
    return np.reshape(np.transpose(np.reshape(x, (a, 2, b)), (1, 0, 2)), (a * 2 * b,))


def turned_round(x, a, b):
    return np.reshape(np.transpose(np.reshape(x, (a, b, 2)), (2, 1, 0)), (2 * b, a)) + 1.0


def repeated(x, a, b):
    return np.reshape(np.repeat(np.reshape(x, (a, 2 * b, 1)), a, axis=2), (-1,))


def twiddled(x, a, b):
    t = np.reshape(np.transpose(np.reshape(x, (a, 2, b)), (1, 0, 2)), (2 * a * b,))
    return t * np.reshape(np.repeat(np.reshape(x[: 2 * a], (2, a, 1)), b, axis=2), (2 * a * b,))


def stored(x, a, b):
    y = np.zeros((2 * b, a))
    y[:] = np.reshape(np.reshape(x, (a, 2 * b)).T, (2 * b, a)) * 2
    return y, np.reshape(y.T, (-1,))


SIZES = [(1, 1), (0, 3), (3, 0), (1, 5), (6, 1), (3, 4), (16, 16), (7, 31), (40, 3)]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("function", [turned, turned_round, repeated, twiddled, stored])
def test_values(function, few, monkeypatch):
    if few:  # numbers in a part
        monkeypatch.setattr(target, "CPU", replace(target.CPU, a_part=20, few=2))
    jitted = mp.jit(function)
    with mp.config(check=True):
        for a, b in SIZES:
            if b == 0 and function is twiddled:
                continue  # what it repeats has another size then
            x = np.arange(2.0 * a * b) + 0.5
            for got, wanted in zip(jitted(x, a, b), function(x, a, b)):
                np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("function", [turned, repeated])
def test_nothing_is_divided_for_each_element(function):
    text = mp.source(function, np.zeros(96), 6, 8, stage="loops")
    stores = [line for line in text.splitlines() if re.match(r" +out\[", line)]
    (store,) = [line for line in stores if " = x[" in line]
    counter = re.findall(r"for (\w+) in", text[: text.index(store)])[-1]
    assert not any(re.search(rf"\b{counter}\b", part) for part in re.findall(r"\([^()]*\) (?://|%)", store))


def test_a_number_is_divided_by_one_factor_after_the_other():
    facts = Facts().bounded("r", 0, Sym("m") - 1)
    q, m, n, r = map(Sym, "qmnr")
    assert facts.simplify(floordiv(q * m + r, m * n)) == floordiv(q, n)
    assert facts.simplify(mod(q * m + r, m * n)) == mod(q, n) * m + r
    kept = floordiv(q * m + r, n)
    assert facts.simplify(kept) == kept


def test_what_lies_in_a_row_is_read_as_it_lies():
    def multiplied(a, c, n, m, k):
        a[:] = np.reshape(np.reshape(a, (n, m, 1, k)) @ c, (n, m, k))

    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(6, 5, 16)), rng.normal(size=(16, 16))
    jitted, ours = mp.jit(multiplied), a.copy()
    jitted(ours, c, 6, 5, 16)
    multiplied(a, c, 6, 5, 16)
    np.testing.assert_allclose(ours, a, rtol=1e-12)
    text = jitted.source("loops")
    assert "packed" not in text  # by a copy for BLAS
    assert " row = " not in text  # of stretches
    assert re.search(r"a\[.*\] = (\w+)\[", jitted.source("cython"))
