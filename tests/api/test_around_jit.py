"""A transformation around a jitted function runs native code: grad(jit(f)) is jit(grad(f))."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.api import transforms


def steps(x):
    total = 0.0
    for k in range(5):
        total = total + np.sin(x * k) * x
    return total


AROUND = {
    "grad": (lambda f: mp.grad(f), 0.5),
    "value_and_grad": (lambda f: mp.value_and_grad(f), 0.5),
    "vmap": (lambda f: mp.vmap(f), np.linspace(0, 1, 5)),
    "vmap of grad": (lambda f: mp.vmap(mp.grad(f)), np.linspace(0, 1, 5)),
    "hessian": (lambda f: mp.hessian(f), 0.5),
    "jacfwd": (lambda f: mp.jacfwd(f), 0.5),
    "jvp": (lambda f: lambda x: mp.jvp(f, (x,), (1.0,)), 0.5),
}


@pytest.mark.parametrize("name", AROUND)
def test_no_numpy_source_is_run(name, monkeypatch):
    around, x = AROUND[name]
    want = around(steps)(x)

    def interpreted(*args):
        raise AssertionError("NumPy source was made for a jitted function")

    monkeypatch.setattr(transforms, "numpy_specialisation", interpreted)
    made = around(mp.jit(steps))
    for _ in range(2):
        np.testing.assert_allclose(made(x), want, rtol=1e-13)
    with pytest.raises(AssertionError, match="NumPy source"):
        around(lambda x: steps(x))(x)


def test_static_arguments_stay_static():
    def power(x, n):
        return x**n if isinstance(n, int) else np.nan

    assert mp.grad(mp.jit(power, static_argnums=1))(2.0, 3) == 12.0


class Well:
    def __init__(self):
        self.k = 2.0

    @mp.jit
    def energy(self, v):
        return np.sum(self.k * v**2)

    @functools.partial(mp.jit, static_argnums=2)
    def scaled(self, v, mode):
        return np.sum(v * self.k if mode == "a" else v)

    def plain(self, v):
        return np.sum(self.k * v**2)


def test_a_jitted_method_that_is_bound_is_transformed_as_such():
    well, x = Well(), np.array([1.0, 2.0])
    assert mp.jit(well.energy)(x) == well.energy(x) == 10.0
    assert mp.grad(well.energy)(x).tolist() == mp.jit(mp.grad(well.energy))(x).tolist() == [4.0, 8.0]
    assert mp.vmap(mp.grad(well.energy))(np.eye(2)).tolist() == [[4.0, 0.0], [0.0, 4.0]]
    assert mp.hessian(well.energy)(x).tolist() == [[4.0, 0.0], [0.0, 4.0]]
    assert mp.grad(well.scaled)(x, "a").tolist() == [2.0, 2.0]
    assert mp.grad(Well.energy, argnums=1)(well, x).tolist() == [4.0, 8.0]
    for function in (well.energy, well.plain, mp.grad(well.energy), functools.partial(Well.plain, well)):
        assert "(v):" in mp.source(function, x, stage="numpy")
