"""A transformation around a jitted function runs native code: grad(jit(f)) is jit(grad(f))."""

from __future__ import annotations

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
