"""Which kernels typical programs become, and their texts, which people read.

What a kernel computes is looked at by test_corpus.py; here it is who computes it, and that the text is what stands in
goldens/ (`--update-golden` writes them).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import stand_in
from emulated import TARGETS, emitted
from stages import CASES, core

import metaphrase as mp
from metaphrase.gpu_kernels import kernels
from metaphrase.runtime.cuda import Run

GOLDENS = Path(__file__).parent / "goldens"


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def chain(x):
    return np.sin(x) * np.cos(x) + np.exp(-x * x)


def total(x):
    return (x * x).sum()


def column_means(x):
    return x.mean(axis=0)


def running(x):
    return np.cumsum(x)


def period(e, M):
    E = M
    while abs(E - e * np.sin(E) - M) > 1e-12:
        E -= (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    return E


def relaxed(u):
    u = u.copy()
    for _ in range(50):
        u[1:-1] = 0.5 * (u[2:] + u[:-2])
    return u


def picked(x, places):
    return x[places] * 2


def likeness(table, words, context):
    return (table[words] * context).sum()


def blurred(x):
    w = np.array([1.0, 4.0, 6.0, 4.0, 1.0]) / 16
    out = np.zeros(len(x))
    for i in range(2, len(x) - 2):
        for j in range(5):
            out[i] += w[j] * x[i + j - 2]
    return out


def numbered(places):
    return np.array([3.0, 1.0, 2.0])[places]


PROGRAMS = {
    "blurred": (blurred, ("f64[100000]",)),
    "chain": (chain, ("f32[1000000]",)),
    "softmax": (softmax, ("f32[4096, 1024]",)),
    "total": (total, ("f64[n]",)),
    "column_means": (column_means, ("f32[4096, 1024]",)),
    "running": (running, ("f64[n]",)),
    "orbits": (mp.vmap(period, (0, None)), ("f64[n]", "f64")),
    "slopes": (mp.vmap(mp.grad(period), (0, None)), ("f64[n]", "f64")),
    "relaxed": (relaxed, ("f64[1000]",)),
    "relaxed_large": (relaxed, ("f64[1000000]",)),
    "picked": (picked, ("f64[n]", "i64[m]")),
    "likeness_slopes": (mp.grad(likeness), ("f32[5000, 64]", "i64[20000]", "f32[20000, 64]")),
}


def text_of(name: str) -> str:
    function, types = PROGRAMS[name]
    return mp.source(function, *types, stage="cuda")


@pytest.mark.parametrize("name", PROGRAMS)
def test_texts(name, request):
    golden = GOLDENS / f"{name}.txt"
    text = re.sub(r"(?m)^(// \S+?):\d+", r"\1", text_of(name))
    if request.config.getoption("--update-golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


def launched(name: str) -> list[str]:
    """How the host launches the kernels, in the order of the text."""
    return re.findall(r"c\.(\w+)\('", text_of(name).partition("\ndef ")[2])


def test_a_thread_does_an_element_or_a_lane():
    assert launched("chain") == ["each"]
    assert launched("orbits") == ["each"] and launched("slopes") == ["each_growing"]


def test_a_block_does_a_row_in_one_kernel():
    assert launched("softmax") == ["rows"]
    (kernel,) = kernels(softmax, "f32[4096, 1024]")
    assert kernel.report is not None and kernel.report.shared_bytes >= 4096
    assert kernel.bytes_moved == 2 * 4 * 4096 * 1024  # x is read once, the result is stored once


def test_sums_have_parts_that_sizes_decide():
    assert launched("total") == ["rows", "one"]
    assert launched("column_means") == ["each", "each"]
    assert launched("running") == ["rows", "one", "rows"] and "atomicAdd" not in text_of("total")


def test_small_loops_share_one_kernel_and_large_ones_a_grid():
    assert launched("relaxed") == ["one"]
    assert set(launched("relaxed_large")) == {"each", "one"} and "for i in range(50):" in text_of("relaxed_large")


def test_few_iterations_with_much_to_do_are_a_grid_of_small_blocks(monkeypatch):
    def how(f, *types):
        return re.findall(r"c\.(\w+)\('", mp.source(f, *types, stage="cuda").partition("\ndef ")[2])

    assert how(lambda x: np.argmax(x, axis=1), "f32[1000, 1000]") == ["rows"]
    assert how(lambda x: np.cumsum(x, axis=0), "f32[1000, 1000]") == ["each"] * 3  # in parts
    assert how(lambda x: np.cumsum(x, axis=0), "f32[20, 1000]") == ["one"]
    blocks, launch = [], Run._launch
    monkeypatch.setattr(Run, "_launch", lambda self, *a: (blocks.append(a[1:3]), launch(self, *a))[1])
    with stand_in.installed():
        for n in (100, 3000, 2 * 132 * 256):
            x = np.arange(float(n))
            np.testing.assert_array_equal(mp.device_get(mp.jit(lambda x: x * 2, device="gpu")(x)), x * 2)
    assert blocks == [(1, 128), (94, 32), (264, 256)]  # the first is one block's, which has no more to do


def test_extremes_of_rows_are_sought_by_a_block():
    x = np.random.default_rng(4).normal(size=(70, 200))
    x[3, 5] = x[3, 90] = np.nan
    x[4], x[5, 7], x[5, 150] = 1.0, 9.0, 9.0
    with stand_in.installed():
        for f in (np.argmax, np.argmin):
            np.testing.assert_array_equal(
                mp.device_get(mp.jit(lambda x, f=f: f(x, axis=1), device="gpu")(x)), f(x, axis=1)
            )


def test_what_may_fail_says_so():
    text = text_of("picked")
    assert "mp_fail(" in text and all(how.endswith("_checked") for how in launched("picked"))
    with stand_in.installed(), pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 5"):
        mp.jit(picked, device="gpu")(np.ones(5), np.array([1, 9, -7]))


def test_the_threads_of_a_block_leave_loops_in_a_branch_and_behind_it():
    """Each of the two loops that may fail has a variable of its own that says whether a thread left it."""
    function, _ = CASES["aliases.gauss_elimination"]
    with stand_in.installed():
        solve = mp.jit(function, device="gpu")
        for n in (3, 4, 5):  # the second program is of any size
            a = np.random.default_rng(n).normal(size=(n, n))
            b = a @ np.arange(1.0, n + 1)
            np.testing.assert_allclose(mp.device_get(solve(a.copy(), b)), np.arange(1.0, n + 1), rtol=1e-9)


def test_results_do_not_depend_on_the_order_of_threads(monkeypatch):
    x = np.random.default_rng(3).normal(size=(37, 300)).astype(np.float32)
    found = set()
    for order in ("fwd", "rev", "rand"):
        monkeypatch.setenv("CUEMU_ORDER", order)
        with stand_in.installed():
            found.add(mp.device_get(mp.jit(lambda x: softmax(x).sum(axis=0), device="gpu")(x)).tobytes())
    assert len(found) == 1


def test_a_call_waits_for_the_device_only_where_it_may_fail(monkeypatch):
    reads = []
    whole = stand_in.ndarray.get
    monkeypatch.setattr(stand_in.ndarray, "get", lambda self, *a: reads.append(self) or whole(self, *a))
    with stand_in.installed():
        mp.jit(softmax, device="gpu")(np.ones((3, 4)))
        assert not reads
        mp.jit(picked, device="gpu")(np.ones(5), np.array([1]))
        assert len(reads) == 1


def test_texts_are_the_same_in_every_way_of_staging():
    name = next(name for name in CASES if name.startswith("kernels."))
    texts = {emitted(core(name), target)[1].text for target in TARGETS.values() for _ in range(2)}
    assert len(texts) == len(TARGETS)


def smoothed(x):
    out = np.zeros_like(x)
    for i in range(1, x.shape[0] - 1):
        for j in range(1, x.shape[1] - 1):
            out[i, j] = (x[i - 1, j] + x[i, j] + x[i + 1, j]) / 3
    return out


def test_what_all_threads_read_at_a_time_is_in_memory_for_constants():
    assert "static __constant__ const f64 w[5] = {0.0625, 0.25, 0.375, 0.25, 0.0625};" in text_of("blurred")
    apart = mp.source(numbered, "i64[100000]", stage="cuda")
    assert "__constant__" not in apart and "table = c.constant(0)" in apart
    x, places = np.arange(50.0), np.array([2, 0, 1, 1])
    with stand_in.installed():
        assert np.array_equal(mp.device_get(mp.jit(blurred, device="gpu")(x)), blurred(x))
        assert np.array_equal(mp.device_get(mp.jit(numbered, device="gpu")(places)), numbered(places))


def test_iterations_that_store_apart_are_divided_and_not_sorted():
    text = mp.source(smoothed, np.ones((1000, 1000)), stage="cuda")
    assert "argsort" not in text and text.count("__global__") == 2
    first = text.index("__global__")
    assert "out = np.zeros_like(x)" in text[:first] and "for i in range" not in text[:first]


TOLD = [(total, "f32[1000000]"), (softmax, "f32[n, m]"), (running, "f64[n]"), (smoothed, "f64[n, m]")]


@pytest.mark.parametrize("fastmath", [False, True])
@pytest.mark.parametrize("function, argument", TOLD)
def test_what_is_told_of_kernels_is_of_those_that_run(function, argument, fastmath):
    with mp.config(fastmath=fastmath):
        text = mp.source(function, argument, stage="cuda")
        told = [(kernel.name, kernel.threads) for kernel in kernels(function, argument)]
    heads = re.findall(r"__launch_bounds__\((\d+)\) (\w+)\(", text)
    assert told == [(name, int(threads)) for threads, name in heads]


def in_lines(x):
    shifted = x - 1.0
    squared = shifted * shifted
    return squared / (1.0 + squared), x


def test_each_line_that_ends_in_a_kernel_stands_above_it():
    text = mp.source(in_lines, "f64[1000]", stage="cuda")
    for line in ("shifted = x - 1.0", "squared = shifted * shifted", "return squared / (1.0 + squared), x"):
        assert re.search(rf"^// test_kernels\.py:\d+  {re.escape(line)}$", text, re.MULTILINE), text
