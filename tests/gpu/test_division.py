"""How work is divided among blocks and threads: few long sums, few long rows, scans.

In: programs of few iterations that have much to do. Out: kernels with enough to do for a whole GPU, and NumPy's values,
whatever the sizes, with threads in any order and no races.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from emulated import CUDA, SMALL, run

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.pipeline import finished

random = np.random.default_rng(11)


def dot_of_product(A, x):
    return x @ (A @ x)


def normalized(x):
    mean = x.mean(axis=(0, 2), keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=(0, 2), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


def largest_of_columns(A, B):
    return (A * B).sum(axis=0).max()


def sums_along_each(x):
    return x.sum(axis=1), x.sum(axis=(0, 2)), x.mean(axis=(0, 1)), x.sum(axis=(1, 2))


def long_rows(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True), x.argmax(axis=1)


def running(x):
    return np.cumsum(x), np.maximum.accumulate(x), np.cumsum(x[::-1])[::-1]


def running_sines(x):
    return np.cumsum(np.sin(x) * 2)


def running_rows(x):
    return np.cumsum(x, axis=1), np.minimum.accumulate(x[:, ::-1], axis=1), np.cumprod(x * 0.1 + 1, axis=-1)


def running_columns(x):
    return np.cumsum(x, axis=0)


def running_by_hand(x):
    y = np.zeros_like(x)
    total = 0.0
    for i in range(len(x)):
        total += x[i]
        y[i] = total * 2 + x[i]
    return y, total


def first_of_all(x):
    return x.argmax(), (x * 2).argmin()


def eliminated(a):
    """Sums of lines whose number another loop decides."""
    a = a.copy()
    for k in range(a.shape[1]):
        for j in range(k + 1, a.shape[1]):
            a[:, j] -= a[:, k] * np.dot(a[:, k], a[:, j])
    return a


def spread(u):
    """A five-point star on a torus."""
    return np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, axis=1) - 4 * u


# Types of large arguments with the shapes of small ones, and how the kernels of the large ones are launched.
PROGRAMS = {
    dot_of_product: ((("f64[2000, 2000]", (30, 30)), ("f64[2000]", (30,))), ("rows 1024", "one")),
    normalized: (
        (("f32[32, 64, 3136]", (3, 2, 40)),),
        ("rows 256", "rows 64", "one", "rows 256", "rows 64", "one", "each"),
    ),
    largest_of_columns: ((("f64[500, 500]", (9, 7)), ("f64[500, 500]", (9, 7))), ("each 3500", "each 500", "one")),
    sums_along_each: ((("f64[256, 256, 256]", (4, 5, 30)),), ("rows 256", "rows 256", "each 16384", "each 256")),
    long_rows: ((("f64[3, 1000000]", (2, 90)),), None),
    running: ((("f64[1000000]", (700,)),), ("rows 489", "one 256", "rows 489", "each 500000")),
    running_sines: ((("f64[9000]", (300,)),), ("rows 5", "one 32", "rows 5")),
    running_rows: ((("f64[1000, 1000]", (5, 130)),), ("rows 1000",)),
    running_columns: ((("f64[1000, 1000]", (70, 9)),), ("each 16000", "each 1000", "each 16000")),
    running_by_hand: ((("f64[100000]", (333,)),), None),
    first_of_all: ((("f64[2000, 1000]", (20, 30)),), None),
    spread: ((("f64[2000, 1000]", (7, 5)),), ("each",)),
    eliminated: ((("f64[60, 60]", (6, 5)),), None),
}


IN_ORDER = (running_by_hand, eliminated)  # sums that the user writes keep their order


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_launches(f):
    types, wanted = PROGRAMS[f]
    host = mp.source(f, *(t for t, _ in types), stage="cuda").partition("\ndef ")[2]
    launches = [f"{how} {count}" for how, count in re.findall(r"c\.(\w+)\('\w+', (\d+)", host)]
    if wanted is not None:
        assert all(a.startswith(b) for a, b in zip(launches, wanted, strict=True)), launches
    alone = any(launch == "one 1" for launch in launches)
    assert not alone or f in IN_ORDER, host  # no thread does by itself what it could share


@pytest.mark.turns(4)
@pytest.mark.parametrize("target", [SMALL, CUDA], ids=["small", "large"])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values(f, target, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    given = [random.normal(size=shape) for _, shape in PROGRAMS[f][0]]
    wanted = f(*given)
    call = take_apart(tuple(given), {})
    program = finished(program_of(f, call.structure, call.specs).function)
    for order in ("fwd", "rev", "rand"):
        monkeypatch.setenv("CUEMU_ORDER", order)
        for got, want in zip(
            run(program, given, target), wanted if isinstance(wanted, tuple) else (wanted,), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["f4", "c16", "c8", "i8", "i4", "?"])
def test_scans_of_every_kind(kind):
    x = (random.normal(size=300) * 9).astype(kind) if kind != "?" else random.normal(size=300) > 0
    for f in (np.cumsum, lambda x: np.cumsum(np.stack([x, x, x]), axis=1)):
        call = take_apart((x,), {})
        (got,) = run(finished(program_of(f, call.structure, call.specs).function), [x], SMALL)
        assert got.dtype == f(x).dtype
        np.testing.assert_allclose(got, f(x), rtol=1e-12, atol=1e-3 if kind in ("f4", "c8") else 1e-11)


def test_row_after_row_is_read_without_divisions():
    for f, form in ((np.linalg.norm, "f64[n, m]"), (np.argmax, "f64[2000, 1000]")):
        kernels = mp.source(lambda x, f=f: f(x), form, stage="cuda").partition("\ndef ")[0]
        assert "x[" in kernels and "div(" not in kernels
