"""Calls that the dispatcher finds by itself: what lies on a GPU is matched as NumPy's arrays are, in C.

In: a jitted function that has been called with arrays of the device. Out: later calls of the kind reach no Python but
that of the launch, and calls of another kind do.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import stand_in as cupy
from device_calls import check, failure, put

import metaphrase as mp
from metaphrase.source import SourceError

X = np.arange(1.0, 4.0)
LATER = SimpleNamespace(w=None, scale=2.0)


@pytest.fixture(autouse=True)
def installed():
    with cupy.installed():
        yield


def watched(f, **options):
    """A jitted function, and a list that grows by one with each call that comes to Python."""
    jitted = mp.jit(f, **options)
    misses, miss = [], jitted.miss
    jitted.miss = lambda bound: (misses.append(bound), miss(bound))[1]
    return jitted, misses


def test_a_second_call_is_found():
    f, misses = watched(lambda w, x, rate: {"w": w - rate * x, "parts": (x.sum(), x.shape[0], None, w)})
    w, x = put(X, X + 1)
    for rate in (0.5, 0.5, 0.25):
        check(f(w, x, rate), {"w": X - rate * (X + 1), "parts": ((X + 1).sum(), 3, None, X)})
    assert len(misses) == 1 and (f.cache_info().hits, f.cache_info().misses) == (2, 1)
    assert f(w, x, 0.5)["parts"][3] is w  # the very argument


def test_sizes_are_bound_and_compared():
    f, misses = watched(lambda a, b: a @ b)
    for n, m in ((2, 3), (4, 6), (6, 7), (9, 2)):
        check(f(*put(np.ones((n, m)), np.ones(m))), np.full(n, float(m)))
    assert len(misses) == 2  # one for these sizes, one for all
    for shape in ((3, 1), (1, 3), (0, 3)):  # sizes 0 and 1 have programs of their own
        check(f(*put(np.ones(shape), np.ones(shape[1]))), np.ones(shape) @ np.ones(shape[1]))
    assert len(misses) == 5
    with pytest.raises(ValueError, match="the axes that are summed have sizes"):
        f(*put(np.ones((2, 3)), np.ones(4)))


def test_what_is_of_another_kind_is_not_found():
    f, misses = watched(lambda x, flag=True: x + 1 if flag else x - 1)
    (x,) = put(X)
    f(x)
    for other in (cupy.asarray(X, np.float32), cupy.asarray(np.ones((1, 3))), X, [1.0, 2.0]):
        before = len(misses)
        np.asarray(mp.device_get(f(other) if not isinstance(other, list) else f(np.array(other))))
        assert len(misses) == before + 1
    check(f(x, False), X - 1)
    check(f(x, flag=True), X + 1)
    check(f(x[::-1]), X[::-1] + 1)  # of any layout
    assert len(misses) == 6
    host = f(X)
    assert type(host) is np.ndarray and len(misses) == 6  # and on the CPU by an entry of its own


def test_arrays_of_another_gpu_are_not_found(monkeypatch):
    monkeypatch.setenv("CUSIM_DEVICES", "2")
    f, misses = watched(lambda x: x * 2)
    first, second = mp.device_put(X, "gpu:0"), mp.device_put(X, "gpu:1")
    for x in (first, second, first, second):
        assert f(x).device.id == x.device.id
    assert len(misses) == 2
    named, misses = watched(lambda x: x * 2, device="gpu:1")
    assert [named(x).device.id for x in (first, second, first, second)] == [1] * 4


def test_numbers_alone_go_where_the_default_is():
    f, misses = watched(lambda k: k * 2.0)
    with mp.default_device("gpu"):
        check(f(3.0), 6.0)
    assert type(f(3.0)) is float and len(misses) == 2
    named, misses = watched(lambda k: k * 2.0, device="gpu")
    for k in (3.0, 4.0, 3.0):
        check(named(k), 2 * k)
    assert len(misses) == 1


def test_captured_arrays_of_the_device():
    LATER.w = cupy.asarray(X)
    f, misses = watched(lambda x: LATER.w * x + LATER.scale)
    (x,) = put(X)
    check(f(x), X * X + 2)
    check(f(x), X * X + 2)
    LATER.w = cupy.asarray(X + 1)
    check(f(x), (X + 1) * X + 2)
    assert len(misses) == 1
    LATER.w = cupy.asarray(np.ones((2, 3)))
    check(f(x), np.ones((2, 3)) * X + 2)
    LATER.scale = 3.0
    check(f(x), np.ones((2, 3)) * X + 3)
    LATER.scale, LATER.w = 2.0, X  # on the host: copied there at each call
    check(f(x), X * X + 2)
    check(f(x), X * X + 2)
    assert len(misses) == 5


def test_stores_are_made_in_python():
    def raised(x):
        x += 1
        return x.sum()

    f, misses = watched(raised)
    x = cupy.asarray(X)
    f(x), f(x)
    assert x.get().tolist() == [3.0, 4.0, 5.0] and len(misses) == 2


def test_donated_arrays():
    f, misses = watched(lambda w, x: w - x, donate_argnums=0)
    for _ in range(2):
        w, x = put(X, X + 1)
        place = w.data.ptr
        given = f(w, x)
        check(given, X - (X + 1))
        assert given.data.ptr == place
    (w,) = put(X)
    check(f(w, w), X - X)  # given twice: no gift
    check(w, X)
    assert len(misses) == 1


def test_keywords_trees_and_transformed_functions():
    f, misses = watched(lambda *xs, **named: sum(xs) * named["by"]["k"])
    x, y = put(X, X + 1)
    for _ in range(3):
        check(f(x, y, by={"k": y}), (X + X + 1) * (X + 1))
    assert len(misses) == 1
    g, misses = watched(mp.vmap(mp.grad(lambda w, x: np.sin(w @ x)), (None, 0)))
    for _ in range(3):
        check(g(x, y[None]), mp.vmap(mp.grad(lambda w, x: np.sin(w @ x)), (None, 0))(X, (X + 1)[None]))
    assert len(misses) == 1


def test_errors_have_the_users_line():
    def picked(x, k):
        return x[k] * 2

    f, misses = watched(picked)
    x, k = cupy.asarray(X), cupy.asarray(np.array([0, 2]))
    check(f(x, k), X[[0, 2]] * 2)
    wrong = cupy.asarray(np.array([0, 5]))
    kind, message, file, line = failure(f, x, wrong)
    assert kind is IndexError and "5" in message and file == __file__ and len(misses) == 1
    assert line == picked.__code__.co_firstlineno + 1
    check(f(x, k), X[[0, 2]] * 2)


def test_guards_of_copies_and_of_nans_are_asked():
    f, misses = watched(lambda x, rate: np.log(x * rate))
    x = cupy.asarray(X)
    f(x, 1.0), f(x, 1.0)
    assert len(misses) == 1
    with mp.transfer_guard("disallow"):
        f(x, cupy.asarray(1.0))
        with pytest.raises(SourceError, match="disallowed host-to-device transfer of rate"):
            f(x, 1.0)
    with mp.debug_nans(True), pytest.raises(FloatingPointError):
        f(x, -1.0)


def test_programs_that_are_forgotten_are_not_found():
    f, misses = watched(lambda x: x * 3)
    x = cupy.asarray(X)
    f(x), f(x)
    f.clear_cache()
    check(f(x), X * 3)
    assert len(misses) == 2


def test_numbers_lie_on_the_device_but_so_many():
    f, misses = watched(lambda x, k: x * k)
    x = cupy.asarray(X)
    for k in range(600):
        check(f(x, k * 0.5), X * (k * 0.5))
    check(f(x, -0.0), X * -0.0)
    assert np.signbit(f(x, -0.0).get()).all() and len(misses) == 1


def test_numbers_are_a_streams_own():
    """It is there, as it was copied, before what is run next; another stream would have to wait for that."""
    f, misses = watched(lambda x, k: x * k)
    x = cupy.asarray(X)
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    for _ in range(2):
        for stream in streams:
            with stream:
                check(f(x, 2.5), X * 2.5)
    (runner,) = (row.extra["gpu"] for rows in f.jitted._memo.table.values() for row in rows)
    assert len({number.data.ptr for number in runner.numbers.values()}) == 2 and len(misses) == 1
