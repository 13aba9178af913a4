"""Devices, and copies between them, as users name them.

In: names of devices, arrays of the host, of the device and of other libraries. Out: calls that run where they are to
run, and no copy that was not asked for.
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
from device_calls import check

import metaphrase as mp
from metaphrase.source import SourceError

GPU = mp.Device("gpu", 0)
W = np.arange(1.0, 4.0)


@pytest.fixture(autouse=True)
def installed():
    with cupy.installed():
        yield


def stored(x, v):
    x[1:] += v
    return x


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
