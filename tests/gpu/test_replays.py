"""Calls that are made again: launches without the text of the program, one arena, graphs.

In: programs of several kernels, called at the same and at other addresses, sizes and streams. Out: the values of the
first call each time, one graph in the place of the launches, and no memory but that of the results.
"""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
import stand_in as cupy
from device_calls import check as checked
from device_calls import failure, put
from hypothesis import given, settings
from hypothesis import strategies as st

import metaphrase as mp
from metaphrase.runtime import cuda_replay
from metaphrase.runtime.cuda_replay import arena_of

X = np.linspace(-1.0, 2.0, 3000)
random = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def installed():
    with cupy.installed():
        yield


def check(got, want):
    """Sums are made in another order than NumPy's."""
    checked(got, want, rtol=1e-9, atol=1e-11)


def counted(call):
    """What a call gives; allocations, launches, and launches of graphs, while it ran."""
    gc.collect()  # a graph is made where the same addresses come again: garbage elsewhere would keep some
    before = cupy.stats.allocations, cupy.stats.launches, cupy.stats.graphs
    given = call()
    after = cupy.stats.allocations, cupy.stats.launches, cupy.stats.graphs
    return given, tuple(b - a for a, b in zip(before, after))


def waves(x):
    """Several kernels: each needs all of the one before it."""
    y = np.sin(x)
    for _ in range(3):
        y = y[::-1] * 0.5 + np.sum(y * y)
    return y, np.cumsum(y)


WAVES = mp.jit(waves)


def test_a_loop_becomes_one_graph():
    f, x = mp.jit(waves), cupy.asarray(X)
    want = waves(X)
    counts = []
    for _ in range(6):
        given, count = counted(lambda: f(x))
        check(given, want)
        counts.append(count)
        del given
    first, last = counts[0], counts[-1]
    assert [graphs for _, _, graphs in counts] == [0, 0, 0, 1, 1, 1]
    assert last[1] == first[1] >= 5  # the same kernels
    assert last[0] == 2 < first[0]  # the two results alone are new memory


def test_other_addresses_and_sizes():
    f = mp.jit(waves)
    arrays = [cupy.asarray(X * k) for k in range(1, 4)]
    held = []
    for turn in range(4):
        for k, x in enumerate(arrays, 1):
            given = f(x)
            check(given, waves(X * k))
            if turn % 2:
                held.append(given)  # so that the next results lie elsewhere
    for n in (3000, 1500, 2999, 1500, 3000, 1, 0, 3000, 2999):
        if n:
            check(f(cupy.asarray(X[:n])), waves(X[:n]))
    check(held[0], waves(X))  # nobody has written there since


def test_an_array_that_is_given_twice():
    f = mp.jit(lambda a, b: np.cumsum(a - b[::-1]) + np.sum(b))
    x, y = put(X, X + 1)
    want = lambda a, b: np.cumsum(a - b[::-1]) + np.sum(b)
    for _ in range(4):
        check(f(x, x), want(X, X))
    for _ in range(4):
        check(f(x, y), want(X, X + 1))
        check(f(y, x), want(X + 1, X))


def test_donated_memory_is_given_back():
    f = mp.jit(lambda w, x: w - np.cumsum(x)[::-1] * np.sum(w), donate_argnums=0)
    want = lambda w, x: w - np.cumsum(x)[::-1] * np.sum(w)
    w, x = put(X, X / 50)
    host = X
    for _ in range(5):
        place = w.data.ptr
        w, host = f(w, x), want(host, X / 50)
        assert w.data.ptr == place
        np.testing.assert_allclose(w.get(), host, rtol=1e-9)


def test_failures_between_replays():
    def picked(x, k):
        y = np.cumsum(x)[::-1]
        return np.cumsum(y[k] * np.sum(x))

    f = mp.jit(picked)
    x, right, wrong = put(X, np.arange(0, 3000, 3), np.arange(0, 3000, 3) + 5)
    want = picked(X, np.arange(0, 3000, 3))
    for _ in range(6):
        check(f(x, right), want)
        kind, message, file, line = failure(f, x, wrong)
        assert kind is IndexError and "3002" in message and line == picked.__code__.co_firstlineno + 2
    graphs = [counted(lambda: f(x, right))[1][2] for _ in range(4)]
    assert graphs[-1] == 1


def test_each_stream_has_an_arena():
    f, x = mp.jit(waves), cupy.asarray(X)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    for _ in range(5):
        for stream in streams:
            with stream:
                check(f(x), waves(X))
    (program,) = (row.extra["gpu"].loaded for rows in f.jitted._memo.table.values() for row in rows)
    recipes = [recipe for recipe in program.replays.recipes.values() if recipe is not None]
    assert len(recipes) == 2
    tables = [{a.data.ptr for a in recipe.table if a is not None} for recipe in recipes]
    assert tables[0] and not tables[0] & tables[1]


def test_the_default_stream_of_each_thread_is_one_of_its_own():
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.ptr = cuda_replay.PER_THREAD
    keys = {cuda_replay.stream_key(stream)}
    thread = threading.Thread(target=lambda: keys.add(cuda_replay.stream_key(stream)))
    thread.start(), thread.join()
    assert len(keys) == 2 and cuda_replay.stream_key(cupy.cuda.Stream.null) == (0, 0)


def test_threads():
    f, x = mp.jit(waves), cupy.asarray(X)
    f(x)
    wrong = []

    def calls():
        for _ in range(8):
            try:
                check(f(x), waves(X))
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=calls) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_what_waits_is_not_run_again():
    def asks(x):
        y = np.cumsum(x)
        while np.sum(y) > 10.0:
            y = y * 0.5
        return y[::-1]

    f = mp.jit(asks)
    for scale in (1.0, 100.0, 1.0, 1000.0):
        check(f(cupy.asarray(X * scale)), asks(X * scale))


def layers(w, v, x):
    hidden = np.tanh(x @ w + 0.1)
    hidden = hidden / np.sum(hidden * hidden)
    out = np.sum((hidden @ v.T) ** 2, axis=1)
    return out / np.sum(out), hidden.T @ x


def test_libraries_between_launches():
    """Launches with no library between them are a graph each; parts of arrays that a library reads are taken once."""
    w, v, x = random.random((30, 40)), random.random((20, 40)), random.random((50, 30))
    f, device = mp.jit(layers), put(w, v, x)
    counts = []
    for _ in range(6):
        given, count = counted(lambda: f(*device))
        check(given, layers(w, v, x))
        counts.append(count)
        del given
    assert [bool(graphs) for _, _, graphs in counts] == [False] * 3 + [True] * 3
    assert counts[-1][1] == counts[0][1] and counts[-1][0] < counts[0][0]
    others = put(w + 1, v, x)
    check(f(*others), layers(w + 1, v, x))


def test_a_library_that_fails():
    def solved(a, b):
        return np.cumsum(np.linalg.solve(a * 2, b) + np.sum(b))

    f, a, b = mp.jit(solved), np.eye(4) + random.random((4, 4)), random.random(4)
    regular, singular, right = put(a, np.zeros((4, 4)), b)
    for _ in range(5):
        check(f(regular, right), solved(a, b))
        kind, *_ = failure(f, singular, right)
        assert kind is np.linalg.LinAlgError


def test_where_the_driver_makes_no_graph(monkeypatch):
    def refused(self, mode=None):
        raise cupy.cuda.runtime.CUDARuntimeError("cudaErrorStreamCaptureUnsupported")

    monkeypatch.setattr(cupy.cuda.Stream, "begin_capture", refused)
    f, x = mp.jit(waves), cupy.asarray(X)
    for _ in range(5):
        given, (_, _, graphs) = counted(lambda: f(x))
        check(given, waves(X))
        assert graphs == 0


def test_large_arenas_are_given_back(monkeypatch):
    monkeypatch.setattr(cuda_replay, "ARENA_KEPT", 1000)
    f, x = mp.jit(waves), cupy.asarray(X)
    pool = cupy.get_default_memory_pool()
    for _ in range(3):
        check(f(x), waves(X))
    gc.collect()
    before = pool.used_bytes()
    for _ in range(3):
        given, (allocations, _, graphs) = counted(lambda: f(x))
        check(given, waves(X))
        assert graphs == 0 and allocations == 3  # the results, and one arena
        del given
    gc.collect()
    assert pool.used_bytes() == before


def test_gradients_and_batches():
    def loss(w, x):
        return np.sum(np.tanh(np.cumsum(w * x)) ** 2)

    f = mp.jit(mp.vmap(mp.value_and_grad(loss), (None, 0)))
    w, x = X[:40], np.stack([X[:40], X[40:80], X[80:120]])
    want = mp.vmap(mp.value_and_grad(loss), (None, 0))(w, x)
    device = put(w, x)
    for _ in range(5):
        check(f(*device), want)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(0, 3000)), max_size=30))
def test_arrays_that_live_at_one_time_lie_apart(rows):
    lives = sorted((first, first + more, nbytes) for first, more, nbytes in rows)
    places, size = arena_of(lives)
    for k, ((first, last, nbytes), begin) in enumerate(zip(lives, places)):
        assert begin % 512 == 0 and begin + nbytes <= size
        for (other_first, other_last, other_bytes), other in zip(lives[:k], places):
            if first <= other_last and other_first <= last and nbytes and other_bytes:
                assert begin + nbytes <= other or other + other_bytes <= begin
    most = max((sum(-(-n // 512) * 512 for a, b, n in lives if a <= t <= b) for t in range(30)), default=0)
    assert size >= most
