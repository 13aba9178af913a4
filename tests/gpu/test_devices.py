"""Functions run on a GPU as users run them: devices, copies, arrays of the device in and out.

In: functions, arrays of the host and of the device. Out: on the emulated device what the CPU gives, the same errors at
the same lines, and no copy that was not asked for.
"""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
import stand_in as cupy

import metaphrase as mp
from metaphrase.source import SourceError

GPU = mp.Device("gpu", 0)
W = np.arange(1.0, 4.0)
DEVICE_W = cupy.asarray(W)


@pytest.fixture(autouse=True)
def installed():
    with cupy.installed():
        yield


def put(*arrays):
    return tuple(cupy.asarray(np.asarray(a)) for a in arrays)


def check(got, want):
    """Arrays of the device with the values, types and shapes of the CPU's; the rest is equal."""
    leaves, structure = mp.tree.flatten(got)
    wanted, same = mp.tree.flatten(want)
    assert structure == same
    for g, w in zip(leaves, wanted):
        if isinstance(w, (np.ndarray, np.generic, float)):
            assert type(g) is cupy.ndarray and g.shape == np.shape(w)
            assert g.dtype == np.asarray(w).dtype
            np.testing.assert_allclose(g.get(), w, rtol=1e-13)
        else:
            assert type(g) is type(w) and g == w


def both(f, *arrays, **options):
    """The results on the device are those of the CPU."""
    check(mp.jit(f, **options)(*put(*arrays)), mp.jit(f)(*arrays))


def failure(f, *args):
    with pytest.raises(Exception) as caught:
        f(*args)
    trace = caught.value.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    assert caught.value.__context__ is None
    return type(caught.value), str(caught.value), trace.tb_frame.f_code.co_filename, trace.tb_lineno


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


# ---- devices ---------------------------------------------------------------------------------------------------------


def test_devices_and_their_names():
    assert mp.devices()[:2] == [mp.Device("cpu", 0), GPU] and mp.devices("cpu") == mp.devices()[:1]
    assert (str(GPU), GPU.platform, GPU.device_kind) == ("gpu:0", "gpu", "emulated")
    for name in ("gpu", "gpu:0", "cuda", "cuda:0", GPU):
        check(mp.jit(np.sin, device=name)(1.0), np.sin(1.0))
    assert type(mp.jit(np.sin, backend="cpu")(1.0)) is np.float64
    with pytest.raises(SourceError, match="no program can run on a GPU here: there is no gpu:7"):
        mp.jit(np.sin, device="gpu:7")(1.0)
    with pytest.raises(SourceError, match=r"device='tpu': there is no such device.*\[backend\]"):
        mp.device_put(1.0, "tpu")


def test_two_gpus(monkeypatch):
    monkeypatch.setenv("CUSIM_DEVICES", "2")
    first, second = mp.devices("gpu")
    assert (first, second) == (GPU, mp.Device("gpu", 1))
    x, y = mp.device_put(np.arange(3.0), first), mp.device_put(np.ones(3), second)
    f, named = mp.jit(lambda x, y: (x + y, x.sum())), mp.jit(lambda x, y: (x + y, x.sum()), device=second)
    assert [r.device.id for r in f(y, 2.0)] == [1, 1] and [r.device.id for r in f(x, 2.0)] == [0, 0]
    with pytest.raises(SourceError, match=r"the arguments lie on gpu:0 and gpu:1 \[device\]"):
        f(x, y)
    got = named(x, y)
    assert [r.device.id for r in got] == [1, 1] and mp.device_get(got[0]).tolist() == [1, 2, 3]
    with (
        mp.transfer_guard("disallow"),
        pytest.raises(RuntimeError, match=r"device-to-device transfer of x .* from gpu:0"),
    ):
        named(x, y)
    assert mp.device_put(x, second).device.id == 1
    with mp.default_device("gpu:1"):
        assert mp.jit(np.sin)(1.0).device.id == 1 and mp.jit(np.sin)(x).device.id == 0


class Exchanged:
    """An array of another library, by DLPack or by CUDA's array interface."""

    def __init__(self, array, kind):
        self.array, self.kind = array, kind

    shape = property(lambda self: self.array.shape)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.kind, 0

    def __array__(self, dtype=None, copy=None):
        raise TypeError("asked for a copy in the host's memory")


class WithInterface(Exchanged):
    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


def test_arrays_of_other_libraries(monkeypatch):
    real = cupy.asarray
    monkeypatch.setattr(cupy, "asarray", lambda a, *more: a.array if isinstance(a, Exchanged) else real(a, *more))
    monkeypatch.setattr(cupy, "from_dlpack", lambda a: a.array, raising=False)
    x, host = cupy.asarray(np.arange(3.0)), np.arange(3.0)
    f = mp.jit(lambda x: x * 2)
    check(f(Exchanged(x, 2)), host * 2)
    check(f(WithInterface(x, 2)), host * 2)
    check(mp.grad(lambda x: (x**2).sum())(WithInterface(x, 2)), host * 2)
    check(mp.jit(lambda x: x * 2, device="gpu")(Exchanged(host, 1)), host * 2)
    check(mp.device_put(Exchanged(host, 1), "gpu"), host)
    assert mp.device_get(Exchanged(x, 2)).tolist() == [0, 1, 2]
    mp.jit(stored)(WithInterface(x, 2), 1.0)
    assert x.get().tolist() == [0, 2, 3]
    with pytest.raises(SourceError, match="what is translated are NumPy's arrays"):
        f(Exchanged(host, 1))


def test_put_and_get():
    tree = {"a": np.arange(3.0), "b": [1, 2.5], "c": None}
    there = mp.device_put(tree, "gpu")
    check(there, {"a": np.arange(3.0), "b": [np.array(1), np.array(2.5)], "c": None})
    assert mp.device_put(there, GPU)["a"] is there["a"]
    back = mp.device_get(there)
    assert type(back["a"]) is np.ndarray and back["b"] == [1, 2.5]
    assert type(mp.device_put(there, "cpu")["a"]) is np.ndarray and mp.device_get((1, "x")) == (1, "x")
    with pytest.raises(SourceError, match="no array and no number"):
        mp.device_put("text", "gpu")
    check(mp.jit(lambda x: mp.device_get(mp.device_put(x)) * 2)(there["a"]), np.arange(3.0) * 2)


def test_the_default_device():
    f, cpu = mp.jit(lambda x: x + 1), mp.jit(lambda x: x + 1, device="cpu")
    x = np.arange(3.0)
    assert type(f(x)) is np.ndarray
    elsewhere = []
    with mp.default_device("gpu"):
        check(f(x), x + 1)
        check(mp.grad(lambda x: x**2)(3.0), np.float64(6))
        check(mp.device_put(x), x)
        assert type(cpu(x)) is np.ndarray and type(cpu(cupy.asarray(x))) is np.ndarray
        thread = threading.Thread(target=lambda: elsewhere.append(f(x)))
        thread.start(), thread.join()
        with mp.default_device(None):
            assert type(f(x)) is np.ndarray
        check(f(x), x + 1)
    assert type(f(x)) is np.ndarray is type(elsewhere[0])
    hits = f.cache_info().hits
    f(x)
    assert f.cache_info().hits == hits + 1


def negated(x):
    return -x


def test_a_jitted_function_keeps_its_device_when_pickled():
    f = pickle.loads(pickle.dumps(mp.jit(negated, device="gpu", donate_argnums=0)))
    check(f(1.0), np.float64(-1))


def test_what_is_for_a_gpu_is_not_compiled_for_the_cpu():
    with pytest.raises(SourceError, match=r"makes code for the CPU \[device\]"):
        mp.jit(np.sin, device="gpu").lower(1.0).compile()


# ---- copies ----------------------------------------------------------------------------------------------------------


def test_the_transfer_guard(caplog):
    f, cpu, x = mp.jit(lambda x, y: x + y), mp.jit(np.sin, device="cpu"), cupy.asarray(np.ones(3))
    with mp.transfer_guard("disallow"):
        check(f(x, x), np.full(3, 2.0))
        for y in (np.ones(3), 1.0):
            with pytest.raises(
                SourceError, match=r"disallowed host-to-device transfer of y \(float64.* to gpu:0.*\[transfer\]"
            ):
                f(x, y)
        with pytest.raises(RuntimeError, match="device-to-host transfer"):
            cpu(x)
        with pytest.raises(RuntimeError, match="the captured W"):
            mp.jit(lambda x: x @ W)(x)
        mp.device_get(mp.device_put(1.0, "gpu"))
        with mp.transfer_guard_host_to_device("allow"):
            f(x, 1.0)
            with pytest.raises(RuntimeError, match="device-to-host transfer of the new value of an argument"):
                mp.jit(stored, device="gpu")(np.ones(3), 1.0)
    with mp.transfer_guard("log"), caplog.at_level(logging.WARNING, "metaphrase"):
        f(x, 1.0)
        mp.device_get(x)
    assert [r.getMessage() for r in caplog.records] == ["host-to-device transfer of y (float64[]) to gpu:0"]
    with mp.transfer_guard_device_to_host("disallow_explicit"):
        f(x, 1.0)
        with pytest.raises(RuntimeError, match="disallowed device-to-host"):
            mp.device_get(x)
    with pytest.raises(ValueError, match="one of allow, log"), mp.transfer_guard("never"):
        pass


# ---- without a GPU ---------------------------------------------------------------------------------------------------


def test_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert mp.devices() == [mp.Device("cpu", 0)]
    f = mp.jit(np.sin, device="gpu")
    for call in (lambda: mp.devices("gpu"), lambda: f(1.0), lambda: mp.device_put(1.0, "gpu")):
        with pytest.raises(SourceError, match="CuPy is not installed") as caught:
            call()
        assert caught.value.code == "gpu" and "pip install 'metaphrase[gpu]'" in str(caught.value)
        assert caught.value.span.file == __file__
    assert mp.device_put(1.0, "cpu") == 1


def test_without_a_driver(monkeypatch):
    def fails():
        raise cupy.cuda.runtime.CUDARuntimeError("cudaErrorInsufficientDriver: driver version is insufficient")

    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", fails)
    assert mp.devices() == [mp.Device("cpu", 0)]
    with pytest.raises(SourceError, match=r"(?s)driver version is insufficient \[gpu\].*install NVIDIA's driver"):
        mp.devices("gpu")


def test_what_runs_on_the_cpu_imports_no_cupy():
    text = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        assert name.partition(".")[0] not in ("cupy", "cupyx"), name
sys.meta_path.insert(0, Refused())
import numpy as np, metaphrase as mp
f = mp.jit(lambda x: x.sum())
f(np.ones(3)), mp.grad(lambda x: x**2)(2.0), mp.device_get(mp.device_put(f(np.ones(4))))
with mp.transfer_guard("disallow"), mp.default_device("cpu"):
    f(np.ones(3))
assert not {"cupy", "metaphrase.runtime.nvrtc", "metaphrase.runtime.cuda"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", text], check=True)
