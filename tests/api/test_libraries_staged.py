"""random, nn and lax in staged code: the same vectors from JAX, by the NumPy stage and by native code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from together import jitted

import metaphrase as mp

pytestmark = pytest.mark.turns(5)

HERE = Path(__file__).parent
HEAD = """import numpy as np
from metaphrase import lax, nn, random
from metaphrase.random import *

"""


def _rows(name: str) -> list[list[str]]:
    return [row.split("\t") for row in (HERE / name).read_text().splitlines()]


LIBRARY, RANDOM = _rows("library_vectors.txt"), [r for r in _rows("random_vectors.txt") if "(k" in r[0]]


@pytest.fixture(scope="module")
def functions(tmp_path_factory):
    """A module with one function an expression: staging needs functions that have source."""
    path = tmp_path_factory.mktemp("vectors") / "vector_functions.py"
    lines = [HEAD]
    lines += [f"def library_{k}(x, i):\n    return {row[0]}\n\n\n" for k, row in enumerate(LIBRARY)]
    lines += [f"def random_{k}(k):\n    return {row[0]}\n\n\n" for k, row in enumerate(RANDOM)]
    path.write_text("".join(lines))
    spec = importlib.util.spec_from_file_location("vector_functions", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(got, row):
    _, dtype, dims, text = row
    want = np.frombuffer(bytes.fromhex(text), dtype).reshape([int(d) for d in dims.split(",") if d])
    got = np.asarray(got)
    assert got.shape == want.shape and got.dtype.kind == want.dtype.kind
    tolerance = {2: 4e-3, 4: 2e-6}.get(want.dtype.itemsize if want.dtype.kind == "f" else 8, 1e-12)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=1e-15)


def calls(functions):
    """Each function with its arguments, and the row of the vectors that it is to give."""
    x, i = np.linspace(-4.0, 4.0, 24).reshape(4, 6), np.arange(24).reshape(4, 6)
    library = [(getattr(functions, f"library_{k}"), (x, i), row) for k, row in enumerate(LIBRARY)]
    return library + [
        (getattr(functions, f"random_{k}"), (mp.random.PRNGKey(42),), row) for k, row in enumerate(RANDOM)
    ]


@pytest.mark.parametrize("k", range(len(LIBRARY + RANDOM)), ids=[row[0] for row in LIBRARY + RANDOM])
def test_numpy_source(functions, k):
    function, args, row = calls(functions)[k]
    with mp.config(native=False):
        compare(mp.jit(function)(*args), row)


@pytest.mark.parametrize("first", range(0, len(LIBRARY + RANDOM), 24))
def test_native(functions, first):
    chosen = calls(functions)[first : first + 24]
    made = jitted({row[0]: (function, args) for function, args, row in chosen})
    assert len(made) == len(chosen)
    for _, args, row in chosen:
        compare(made[row[0]](*args), row)


def test_keys_in_loops_and_lanes():
    def walk(key, steps):
        place = np.zeros(2)
        for _ in range(steps):
            key, sub = mp.random.split(key)
            place = place + mp.random.normal(sub, (2,))
        return place

    keys = mp.random.split(mp.random.key(0), 3)
    want = np.stack([walk(k, 4) for k in keys])
    np.testing.assert_allclose(mp.jit(mp.vmap(walk, (0, None)))(keys, 4), want, rtol=1e-12)


def test_derivatives_at_kinks_are_those_of_jax():
    assert mp.grad(mp.nn.relu)(0.0) == 0.0 and mp.grad(mp.nn.sigmoid)(0.0) == 0.25
    assert mp.grad(mp.nn.softplus)(0.0) == 0.5
    assert mp.grad(lambda x: x * mp.lax.stop_gradient(x))(3.0) == 3.0
