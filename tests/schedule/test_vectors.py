"""Sums in vectors beside stores into an element of its own for each iteration, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.schedule.nest import For, Store, local
from metaphrase.astpasses.schedule.storage import Buf, Load
from metaphrase.astpasses.schedule.vectors import partials
from metaphrase.core.dims import Sym
from metaphrase.core.types import f64

J, N = Sym("j"), Sym("n")
X, Y = Buf("x", f64, (N,), "arg", 0), Buf("y", f64, (N,), "out", 0)
TOTAL = local("total", f64)
SUM = Store(TOTAL, (), Load(X, (J,)), "sum")


def of(*body):
    return partials(For("j", N, (SUM, *body), "red"))


def test_what_an_iteration_has_to_itself_is_in_no_way():
    added = Store(Y, (J,), Load(X, (J,)), "sum")
    assert of() == of(added) == of(Store(Y, (2 * J + 1,), Load(X, (J,)), "sum")) == {TOTAL: "sum"}
    assert of(added, Store(Y, (J,), Load(X, (J + 1,)), "sum")) == {TOTAL: "sum"}
    assert of(added, Store(X, (J,), Load(Y, (J,)))) == {TOTAL: "sum"}  # what it has just made


@pytest.mark.parametrize(
    "body",
    [
        (Store(Y, (0,), Load(X, (J,)), "sum"),),
        (Store(Y, (Sym("k"),), Load(X, (J,)), "sum"),),
        (Store(Y, (Load(Buf("p", np.dtype(np.int64), (N,)), (J,)),), Load(X, (J,)), "sum"),),
        (Store(Y, (J,), Load(X, (J,)), "sum"), Store(Y, (J + 1,), Load(X, (J,)), "sum")),
        (Store(Y, (J,), Load(Y, (J + 1,)), "sum"),),
        (Store(Y, (J,), Load(X, (J,)), "sum"), Store(Y, (J + 1,), Load(X, (J,)))),
        (Store(TOTAL, (), Load(X, (J,)), "max"),),
        (Store(X, (J,), Load(TOTAL, ())),),
    ],
)
def test_what_iterations_share_is(body):
    assert of(*body) == {}


@pytest.mark.parametrize("n", [1, 7, 37, 300])
def test_a_product_with_a_matrix_and_one_with_its_transpose(n):
    def both(a, p, q):
        return a @ p, q @ a

    rng = np.random.default_rng(n)
    a, p, q = rng.normal(size=(n, n)), rng.normal(size=n), rng.normal(size=n)
    jitted = mp.jit(both)
    for got, wanted in zip(jitted(a, p, q), both(a, p, q)):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
    assert n < 16 or "mp_simd_sum(" in jitted.source("cython")
