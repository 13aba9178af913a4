"""Elements by their rank, found without a sort: sizes around every step of the search, data that mislead samples."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from grouped import build

import metaphrase as mp
from metaphrase.astpasses.schedule import schedule
from metaphrase.core.build import trace
from metaphrase.core.dims import Sym
from metaphrase.core.types import Array
from metaphrase.ops.sorting import ranked

RANDOM = np.random.default_rng(5)
DTYPES = {name: np.dtype(name) for name in ("f8", "f4", "f2", "i1", "i8", "u8", "?")}
DTYPES["bf16"] = np.dtype(ml_dtypes.bfloat16)
SIZES = [1, 2, 3, 96, 97, 200, 1000, 8191, 8193, 30_000]


def lines(n):
    """Numbers in any order, in order, alike, of few values, and what samples at even distances do not see."""
    k = np.arange(n)
    yield RANDOM.normal(size=n) * 50
    yield k[::-1] / 100
    yield np.full(n, 7.0)
    yield k % 2 * 2.0
    yield RANDOM.integers(0, 5, n) * 1.0
    for count in (64, 512):
        seen = np.isin(k, (n - 1) * np.arange(count) // (count - 1))
        yield np.where(seen, 9.0, RANDOM.normal(size=n))
    yield RANDOM.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], n)


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", DTYPES)
def test_every_rank(name):
    dtype = DTYPES[name]
    types = [Array(dtype, (Sym("n"),)), Array(np.dtype(np.int64), (Sym("m"),))]
    function = trace("pick", lambda x, places: ranked(x, places, axis=0), [("x", types[0]), ("places", types[1])])
    native = build({0: function}, {0: schedule(function)}, contract=True)[0]
    for n in SIZES:
        few = np.array([0, n - 1, n // 2, n // 2, n // 3, min(n // 3 + 1, n - 1), n // 20])
        for x in lines(n):
            with np.errstate(all="ignore"):
                x = (np.nan_to_num(x, posinf=3, neginf=4) if dtype.kind in "iub" else x).astype(dtype)
            for places in (few, few[:0], RANDOM.integers(0, n, 40)):
                (got,) = native.run([x, places])
                want = np.sort(x.astype(np.float32) if name == "bf16" else x)[places]
                np.testing.assert_array_equal(got.astype(want.dtype), want, err_msg=f"{n} {places}")


def test_quantiles():
    x = RANDOM.normal(size=(3, 500, 4))
    x[1, 7, 2] = np.nan
    shares = np.array([0.0, 0.31, 1.0, 0.5])

    def several(x, q):
        return (
            np.quantile(x, q, axis=1),
            np.quantile(x[0], q, method="nearest"),
            np.percentile(x[0, ::-2], 30, axis=0, keepdims=True),
            np.median(x, axis=(0, 2)),
            np.median(x[2, :0], axis=0),
            np.median(x[2, 3:4]),
        )

    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
        want = several(x, shares)
    for got, one in zip(mp.jit(several)(x, shares), want, strict=True):
        np.testing.assert_allclose(got, one, rtol=1e-14)
    each = mp.jit(mp.vmap(lambda x, q: np.quantile(x, q)))(x[[0, 2, 0, 2]], shares)
    np.testing.assert_allclose(each, [np.quantile(x[k], q) for k, q in zip((0, 2, 0, 2), shares)], rtol=1e-14)


def test_derivatives():
    """All of the tangent goes to the element that is picked."""
    x = RANDOM.permutation(101.0 * np.arange(1, 301))
    slope = mp.jit(mp.grad(lambda x: 3 * np.median(x) + np.quantile(x, 0.25)))(x)
    order = np.argsort(x)
    want = np.zeros(300)
    want[order[[149, 150]]] = 1.5
    want[order[[74, 75]]] = 0.25, 0.75
    np.testing.assert_allclose(slope, want, rtol=1e-12)
