"""Functions called with arrays of a GPU: values, transformations, errors, stores.

In: functions and arrays of the device. Out: what the CPU gives, and the same errors at the same lines.
"""

from __future__ import annotations

import numpy as np
import pytest
import stand_in as cupy
from device_calls import both, check, failure, put

import metaphrase as mp
from metaphrase.source import SourceError

W = np.arange(1.0, 4.0)
DEVICE_W = cupy.asarray(W)


@pytest.fixture(autouse=True)
def installed():
    with cupy.installed():
        yield


# ---- values ----------------------------------------------------------------------------------------------------------


def pytree(state, x):
    return {"w": state["w"] * x + 1, "pair": (x.sum(), "text", None), "n": x.shape[0]}


def escape(x):
    steps = 0
    while np.sum(x * x) < 1000.0:
        x = x * 1.5 + 0.1
        steps += 1
    return x, steps


def test_values_are_those_of_the_cpu():
    both(lambda x, y: x[1:] * y[:-1] - x.mean(), np.arange(3.0), np.arange(3.0) + 4)
    both(lambda a: (a @ a.T, a.sum(0), a.T), np.arange(6.0).reshape(2, 3))
    state, x = {"w": np.ones(3)}, np.arange(3.0)
    check(mp.jit(pytree)({"w": cupy.asarray(state["w"])}, cupy.asarray(x)), mp.jit(pytree)(state, x))
    moved, steps = mp.jit(escape)(*put(np.ones(3)))
    assert int(steps) == mp.jit(escape)(np.ones(3))[1] and moved.device == cupy.cuda.Device(0)


@pytest.mark.parametrize("n", [0, 1])
def test_sizes_0_and_1(n):
    both(lambda x: (x * 2, x.sum(), np.sort(x)), np.full(n, 3.0))
    both(lambda x: x + np.ones((2, 1)), np.ones((2, n)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "uint8", "bool", "complex64"])
def test_types(dtype):
    both(lambda x: (x + x, x[::-1]), np.array([0, 1, 1]).astype(dtype))


def test_numbers_and_arrays_of_the_host_go_to_the_device_that_is_named():
    f = mp.jit(lambda x, y: x * y, device="gpu")
    for x, y in [(np.arange(3.0), 2.0), (2.0, 3.0), (np.float32(2), np.float32(3)), (np.array(2), np.arange(3))]:
        check(f(x, y), np.asarray(x * y))
    check(f(cupy.asarray(np.arange(3.0)), np.arange(3.0)), np.arange(3.0) ** 2)


def test_sizes_that_stay_so_far_apart():
    @mp.jit(device="gpu")
    def f(field, out):
        return out + field[1:-1] - field[:-2], np.sum(field[2:] * out)

    for n in (5, 8, 30, 2):
        field, out = np.arange(n + 2.0) ** 2, np.arange(n) / 4
        moved, total = f(cupy.asarray(field), cupy.asarray(out))
        np.testing.assert_allclose(moved.get(), out + field[1:-1] - field[:-2])
        np.testing.assert_allclose(float(total), np.sum(field[2:] * out))


def test_sizes_change_without_another_translation():
    f = mp.jit(lambda x: (x * x.shape[0], x.shape[0], len(x) + 1))
    for n in (3, 5, 8, 100):
        array, *sizes = f(cupy.asarray(np.ones(n)))
        assert array.get().tolist() == [n] * n and sizes == [n, n + 1]
    assert vars(f.cache_info()) == {"hits": 2, "misses": 2, "currsize": 2}
    f(np.ones(3))
    assert f.cache_info().misses == 3  # the CPU has programs of its own
    f(np.ones(3)), f(cupy.asarray(np.ones(7)))
    assert f.cache_info().misses == 3


def test_views_are_read_as_they_lie():
    a = cupy.asarray(np.arange(12.0).reshape(3, 4))
    check(mp.jit(lambda x: x * 2)(a.T), a.T.get() * 2)
    check(mp.jit(lambda x: x * 2)(a[::-1, ::2]), a.get()[::-1, ::2] * 2)


def test_static_arguments_and_keywords():
    f = mp.jit(lambda x, how, *, n: np.sin(x) if how == "sin" else x**n, static_argnames="n")
    x = cupy.asarray(np.ones(2))
    check(f(x, "sin", n=2), np.sin(np.ones(2)))
    check(f(x, how="power", n=3), np.ones(2))


def test_what_the_run_decides():
    def described(x):
        kept = [v * 2 for v in x if v > 1]
        return ("much" if x.sum() > 5 else "little"), (None if x[0] > 0 else x + 1), kept

    x = np.arange(4.0)
    word, shifted, kept = mp.jit(described)(cupy.asarray(x))
    assert word == "much" and [float(v) for v in kept] == [4, 6]
    check(shifted, x + 1)
    assert mp.jit(described)(cupy.asarray(x / 10 + 1))[:2] == ("little", None)


# ---- transformations -------------------------------------------------------------------------------------------------


def loss(w, x):
    return np.sum(np.tanh(x @ w) ** 2)


def test_transformations_of_functions_that_are_not_jitted():
    w, x = np.arange(3.0), np.arange(6.0).reshape(2, 3) / 7
    device_w, device_x = put(w, x)
    check(mp.grad(loss)(device_w, device_x), mp.grad(loss)(w, x))
    check(mp.jit(mp.value_and_grad(loss))(device_w, device_x), mp.value_and_grad(loss)(w, x))
    check(mp.vmap(loss, (None, 0))(device_w, device_x), mp.vmap(loss, (None, 0))(w, x))
    check(mp.hessian(loss)(device_w, device_x), mp.hessian(loss)(w, x))
    check(mp.jvp(np.sin, (device_w,), (device_w,)), mp.jvp(np.sin, (w,), (w,)))


def test_transformations_of_a_function_for_a_gpu_run_there():
    w, x = np.arange(3.0), np.arange(6.0).reshape(2, 3) / 7
    f = mp.jit(loss, device="gpu")
    check(mp.grad(f)(w, x), mp.grad(loss)(w, x))
    check(mp.jit(mp.vmap(mp.grad(f), (None, 0)))(w, x), mp.vmap(mp.grad(loss), (None, 0))(w, x))
    check(mp.vjp(f, w, x)[1](1.0), mp.vjp(loss, w, x)[1](1.0))


def test_pullbacks_keep_what_they_need_on_the_device():
    w, x = np.arange(3.0), np.arange(6.0).reshape(2, 3) / 7
    value, pullback = mp.vjp(loss, *put(w, x))
    assert all(type(r) is cupy.ndarray for r in pullback.residuals)
    check((value, pullback(value)), (lambda y, back: (y, back(y)))(*mp.vjp(loss, w, x)))
    check(pullback(2.0), mp.vjp(loss, w, x)[1](2.0))
    check(mp.jit(lambda back: back(1.0))(pullback), mp.vjp(loss, w, x)[1](1.0))


# ---- what fails, and what is printed ---------------------------------------------------------------------------------


def picked(x, i):
    print("picks", i, x.sum())
    assert i != 3, f"not {i}"
    return x[i]


@pytest.mark.parametrize(
    "f, args",
    [
        (picked, (np.arange(5.0), 7)),
        (picked, (np.arange(5.0), 3)),
        (lambda a: np.linalg.solve(a, a), (np.zeros((2, 2)),)),
        (lambda x, n: np.ones(n) + x, (np.ones(2), 3)),
        (mp.grad(lambda x, i: x[i] ** 2), (np.arange(5.0), -9)),
    ],
)
def test_errors_are_those_of_the_cpu(f, args, capsys):
    want = failure(mp.jit(f), *args)
    shown = capsys.readouterr().out
    assert failure(mp.jit(f), cupy.asarray(args[0]), *args[1:]) == want
    assert capsys.readouterr().out == shown


def test_a_call_after_one_that_failed():
    f = mp.jit(picked)
    x = cupy.asarray(np.arange(5.0))
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 5"):
        f(x, 9)
    assert float(f(x, 4)) == 4


def test_printing(capsys):
    def f(x):
        for k in range(2):
            print(k, x[k], x, end=";\n")
        return x

    mp.jit(f)(np.arange(2.0))
    shown = capsys.readouterr().out
    mp.jit(f)(*put(np.arange(2.0)))
    assert capsys.readouterr().out == shown != ""


def test_lists_that_grow():
    def f(x):
        out = []
        for i in range(300):
            out.append(x[i % 3] * i)
            if out[i // 2] > 1e9:
                break
        return np.array(out), len(out)

    x = np.arange(3.0)
    got, count = mp.jit(f)(cupy.asarray(x))
    assert int(count) == 300 and got.get().tolist() == f(x)[0].tolist()


# ---- stores ----------------------------------------------------------------------------------------------------------


def stored(x, v):
    x[1:] += v
    return x


def test_stores_are_made_in_the_array():
    x = cupy.asarray(np.arange(3.0))
    assert mp.jit(stored)(x, 5.0) is x and x.get().tolist() == [0, 6, 7]
    host = np.arange(3.0)
    check(mp.jit(stored, device="gpu")(host, 5.0), np.array([0.0, 6, 7]))
    assert host.tolist() == [0, 6, 7]
    whole = cupy.asarray(np.arange(6.0))
    mp.jit(stored)(whole[::2], 1.0)
    assert whole.get().tolist() == [0, 1, 3, 3, 5, 5]
    number = cupy.asarray(np.array(2.0))
    mp.jit(lambda x: x.fill(4.0))(number)
    assert float(number) == 4


def test_stores_into_what_is_given_twice():
    def f(x, y):
        x[0] = y[1]
        y += 1

    x = cupy.asarray(np.arange(3.0))
    mp.jit(f)(x, x)
    assert x.get().tolist() == [2, 2, 3]
    with pytest.raises(SourceError, match="shares memory with y"):
        mp.jit(f)(x[1:], x[:-1])


class Model:
    def __init__(self, w):
        self.w, self.count, self.log = w, 0, []

    def step(self, x):
        self.w = self.w - 0.5 * x
        self.count += 1
        self.log = [*self.log, self.count]
        return (self.w * x).sum()


def test_objects_hold_arrays_of_the_device():
    x = np.arange(3.0)
    here, there = Model(np.ones(3)), Model(cupy.asarray(np.ones(3)))
    f, g = mp.jit(here.step), mp.jit(there.step)
    for _ in range(3):
        check(g(cupy.asarray(x)), f(x))
    check(there.w, here.w)
    assert (there.count, there.log) == (here.count, here.log) and type(there.count) is int


def test_captured_arrays(monkeypatch):
    f = mp.jit(lambda x: x @ W)
    x = np.ones(3)
    check(f(cupy.asarray(x)), np.float64(6))
    monkeypatch.setitem(globals(), "W", W * 2)
    check(f(cupy.asarray(x)), np.float64(12))
    f(x)
    monkeypatch.setitem(globals(), "W", cupy.asarray(np.ones(3)))
    check(f(cupy.asarray(x)), np.float64(3))
    check(f(x), np.float64(3))  # it runs where the captured array lies
    check(mp.jit(lambda: DEVICE_W * 2)(), np.arange(1.0, 4.0) * 2)
    check(mp.grad(lambda x: x @ DEVICE_W)(x), np.arange(1.0, 4.0))
    with pytest.raises(SourceError, match=r"reads an array that lies on a GPU \[device\]"):
        mp.jit(lambda x: x @ DEVICE_W, device="cpu")(x)


# ---- donation --------------------------------------------------------------------------------------------------------


def test_results_are_made_in_what_is_donated():
    def update(p, g):
        return {k: p[k] - 2 * g for k in p}

    params = {"a": cupy.asarray(np.ones(3)), "b": cupy.asarray(np.zeros(3))}
    places = {k: v.data.ptr for k, v in params.items()}
    (g,) = put(np.arange(3.0))
    f = mp.jit(update, donate_argnums=0)
    made = f(params, g)
    check(made, update({"a": np.ones(3), "b": np.zeros(3)}, np.arange(3.0)))
    assert {k: v.data.ptr for k, v in made.items()} == places
    check(f(made, g), update({"a": np.ones(3), "b": np.zeros(3)}, 2 * np.arange(3.0)))


def test_donating_what_is_needed_gives_the_same():
    x = np.arange(5.0)
    for f in (lambda x: x[::-1] * 2, np.cumsum, lambda x: (x, x + 1), lambda x: np.sort(x)[::-1] + x):
        both(f, x, donate_argnums=(0,))
    g = mp.jit(lambda x, y: x + y[::-1], donate_argnames="x")
    (d,) = put(x)
    check(g(d, d), np.full(5, 4.0))
    np.testing.assert_array_equal(g(x, x), 4.0)
    assert d.get().tolist() == x.tolist()
    with pytest.raises(SourceError, match="donate_argnames has 'z'"):
        mp.jit(lambda x: x, donate_argnames="z")


# ---- errors as values ------------------------------------------------------------------------------------------------


def test_lanes_have_an_error_each():
    def function(x, k):
        for i in range(2):
            if x > 3:
                raise OverflowError(f"{x} in step {i}")
            x = x * W[k + i]
        return x

    x, k = np.array([0.5, 1.5, 3.5, 2.5]), np.array([0, 2, 0, 1])
    checked = mp.vmap(mp.checked(function))
    error, out = mp.jit(checked)(*put(x, k))
    expected, values = checked(x, k)
    assert error.get() == expected.get() and error.get().count("in lane") == 3
    assert out.get()[0] == values[0] and mp.device_get(error).failed.tolist() == [False, True, True, True]
    with pytest.raises(OverflowError, match="^4.5 in step 1, in lane 1 of vmap$"):
        error.throw()
