"""The benchmark of `make gpu` on the emulated GPU, with small arrays: its results are compared there, too."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest
import stand_in

SMALLER = {
    "f32[1024, 256]": "f32[16, 8]",
    "f32[8192, 1024]": "f32[32, 16]",
    "f32[8192, 256]": "f32[32, 8]",
    "f32[50000, 128]": "f32[50000, 2]",
    "i64[200000]": "i64[300]",
    "f32[200000, 128]": "f32[300, 2]",
    "f64[1000000]": "f64[200]",
}


class Event:
    def record(self):
        self.time = time.perf_counter()

    def synchronize(self):
        pass


@pytest.fixture
def benchmark(monkeypatch):
    """benchmarks/gpu_times.py, for small arrays"""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import gpu_kernels
    import gpu_times

    monkeypatch.setattr(gpu_kernels, "ROWS", 64)
    monkeypatch.setattr(gpu_kernels, "COLUMNS", 40)
    monkeypatch.setattr(gpu_kernels, "MANY", 64 * 40)
    rows = [(name, f, tuple(SMALLER.get(t, t) for t in types)) for name, f, types in gpu_kernels.rows()]
    monkeypatch.setattr(gpu_kernels, "rows", lambda: rows)
    monkeypatch.setattr(gpu_times, "COPIED", 1 << 14)
    monkeypatch.setattr(gpu_times, "CALLS", 1)
    monkeypatch.setattr(stand_in.cuda, "Event", Event, raising=False)
    since = lambda begin, end: 1e3 * (end.time - begin.time)  # noqa: E731
    monkeypatch.setattr(stand_in.cuda, "get_elapsed_time", since, raising=False)
    yield gpu_times
    for name in ("gpu_times", "gpu_kernels"):
        sys.modules.pop(name)


def test_every_row_is_compared_and_timed(benchmark):
    with stand_in.installed():
        head, copy, *rows = benchmark.rows(stand_in, np.random.default_rng(0))
    assert head[0] == "program" and copy[2].endswith("GB/s") and len(rows) == len(benchmark.gpu_kernels.rows())
    assert all(call.endswith(" us") and share.endswith("%") for _, call, share, _ in rows)
