"""Arrays that are read across their rows: tiles in shared memory, of any sizes.

In: elementwise functions of arrays and of transposed ones. Out: NumPy's values; a tile where one is read across, and
none where all lie along memory.
"""

from __future__ import annotations

import numpy as np
import pytest
import stand_in as cupy
from device_calls import put
from emulated import SMALL, run

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.core.evaluate import evaluate

SIZES = ((2, 3), (32, 32), (33, 31), (5, 70), (64, 3), (70, 65))
random = np.random.default_rng(5)

TILED = {
    "transposed": (lambda x: x.T + 1, ("f32[n, m]",)),
    "with one along memory": (lambda x, y: x.T * y + y, ("f64[n, m]", "f64[m, n]")),
    "both ways": (lambda x: x + x.T, ("f32[n, n]",)),
    "two results": (lambda x, y: (x.T * 2, (x.T > y)), ("i32[n, m]", "i32[m, n]")),
    "stacks": (lambda x: np.swapaxes(x, 1, 2) * 2, ("f64[b, n, m]",)),
    "backwards": (lambda x: x.T[::-1] - x.T[:, ::-1], ("f64[n, m]",)),
    "a slope": (mp.grad(lambda x, y: np.sum(np.sin(x.T) * y)), ("f64[n, m]", "f64[m, n]")),
}


@pytest.fixture(autouse=True)
def installed():
    with cupy.installed():
        yield


def arguments(types, n, m):
    sizes = {"n": n, "m": m, "b": 3}
    for text in types:
        kind, _, dims = text.partition("[")
        shape = tuple(sizes[d.strip()] for d in dims.rstrip("]").split(","))
        yield (random.random(shape) * 9).astype(kind.replace("f", "float").replace("i", "int"))


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", TILED)
def test_values(name):
    f, types = TILED[name]
    text = mp.source(f, *types, stage="cuda")
    assert "tile[" in text and text.count("__syncthreads()") >= 2
    jitted, there = mp.jit(f), mp.jit(f)
    for n, m in SIZES:
        given = list(arguments(types, n, m))
        for got, want in zip(mp.tree.leaves(there(*put(*given))), mp.tree.leaves(jitted(*given))):
            np.testing.assert_allclose(got.get(), want, rtol=1e-13)
            assert got.dtype == want.dtype


@pytest.mark.turns(3)
@pytest.mark.parametrize("order", ["fwd", "rev", "rand"])
@pytest.mark.parametrize("name", TILED)
def test_no_thread_races(name, order, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    monkeypatch.setenv("CUEMU_ORDER", order)
    f, types = TILED[name]
    for n, m in ((4, 8), (9, 5)):
        args = tuple(arguments(types, n, m))
        call = take_apart(args, {})
        core = program_of(f, call.structure, call.specs).function
        for got, want in zip(run(core, args, SMALL, again=True), evaluate(core, *args), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-13)


def test_where_no_tile_is_needed():
    def shared(f, *types):
        return "__syncthreads()" in mp.source(f, *types, stage="cuda")

    assert not shared(lambda x, y: x + y[:, None] + y, "f32[n, n]", "f32[n]")
    assert not shared(lambda x: (x + x[::-1]).T, "f32[100, 50]")  # few: each element has a thread
    assert not shared(lambda x: x.T.sum(axis=0), "f32[n, 5]")


def test_the_last_loop_runs_along_what_is_stored():
    text = mp.source(mp.grad(lambda x: np.sum(np.sin(x.T) ** 2)), "f64[n, m]", stage="cuda")
    assert "x_bar[mp_at]" in text or "x_bar_2" in text
