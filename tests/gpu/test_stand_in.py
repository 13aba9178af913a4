"""The stand-in means what CuPy means, and refuses what CuPy would get wrong in silence.

In: the names of CuPy that the runtime uses. Out: NumPy's values, or the error that is expected.
"""

from __future__ import annotations

import numpy as np
import pytest
import stand_in as cupy

TEXT = r"""
extern "C" __global__ void fill(double* out, double value, long long n, int k) {
    for (long long i = threadIdx.x; i < n; i += blockDim.x) out[i] = value + k;
}
extern "C" __global__ void __launch_bounds__(64) bounded(float* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void large() { DYN_SHARED(char, s); s[60000] = 1; }
"""
DRIVER_ERROR = cupy.cuda.driver.CUDADriverError
RUNTIME_ERROR = cupy.cuda.runtime.CUDARuntimeError


@pytest.fixture(scope="module")
def module():
    return cupy.RawModule(code=TEXT, options=("-std=c++17", "-fmad=false", "-DK=3"))


@pytest.fixture
def x():
    return cupy.asarray(np.arange(12.0).reshape(3, 4))


# ---- Launches --------------------------------------------------------------------------------------------------------

GOOD = (cupy.zeros(5), np.float64(1.5), np.int64(5), np.int32(2))


def replaced(place, value):
    return (*GOOD[:place], value, *GOOD[place + 1 :])


REFUSED = [
    (replaced(1, 1.5), TypeError, "a Python float"),
    (replaced(2, 5), TypeError, "a Python int"),
    (replaced(1, np.float32(1)), TypeError, "takes a 8-byte float, not a scalar of float32"),
    (replaced(1, np.int64(1)), TypeError, "takes a 8-byte float, not a scalar of int64"),
    (replaced(3, np.int64(2)), TypeError, "takes a 4-byte integer, not a scalar of int64 .8 bytes."),
    (replaced(0, cupy.zeros(5, "f4")), TypeError, "takes a pointer to 8-byte float, not an array of float32"),
    (replaced(1, cupy.zeros(1)), TypeError, "takes a 8-byte float, not an array"),
    (replaced(0, np.zeros(5)), TypeError, "Unsupported type <class 'numpy.ndarray'>"),
    (replaced(0, cupy.zeros(48, "u1")[4:44]), ValueError, "misaligned address"),
    (GOOD[:3], TypeError, "3 arguments for 4 parameters"),
    ((*GOOD, np.int32(1)), TypeError, "5 arguments for 4 parameters"),
]


@pytest.mark.parametrize("arguments, error, message", REFUSED, ids=lambda value: value if type(value) is str else "")
def test_arguments_that_are_refused(module, arguments, error, message):
    with pytest.raises(error, match=message):
        module.get_function("fill")((1,), (32,), arguments)


def test_arguments_that_are_taken(module):
    fill = module.get_function("fill")
    fill((1,), (32,), GOOD)
    assert GOOD[0].get().tolist() == [3.5] * 5
    arena = cupy.zeros(64, "u1")
    fill((1,), (32,), replaced(0, arena[16:56]), stream=cupy.cuda.Stream(non_blocking=True))
    assert arena.view("f8").get().tolist() == [0, 0, 3.5, 3.5, 3.5, 3.5, 3.5, 0]


SIZES = [((0,), (1,)), ((1, 65536), (1,)), ((2**31,), (1,)), ((1,), (1025,)), ((1,), (1, 1, 65)), ((1,), (0,))]


@pytest.mark.parametrize("grid, block", SIZES)
def test_sizes_that_are_refused(module, grid, block):
    with pytest.raises(DRIVER_ERROR, match="invalid (grid|block)"):
        module.get_function("fill")(grid, block, GOOD)


def test_launch_bounds_and_shared_memory(module):
    bounded, large = module.get_function("bounded"), module.get_function("large")
    with pytest.raises(DRIVER_ERROR, match="a block of 65 threads, and __launch_bounds__ allows 64"):
        bounded((1,), (65,), (cupy.zeros(65, "f4"),))
    with pytest.raises(DRIVER_ERROR, match="too much shared memory: 61000 bytes"):
        large((1,), (1,), (), shared_mem=61000)
    large.max_dynamic_shared_size_bytes = 61000
    large((1,), (1,), (), shared_mem=61000)
    with pytest.raises(DRIVER_ERROR):
        large.max_dynamic_shared_size_bytes = 300_000


def test_texts_that_are_refused(module):
    with pytest.raises(DRIVER_ERROR, match="named symbol not found: nothing"):
        module.get_function("nothing")
    for code in ("int x = y;", 'extern "C" __global__ void f(long long* p) { atomicAdd(p, 1LL); }'):
        with pytest.raises(cupy.cuda.compiler.CompileException, match="kernel.cu:1"):
            cupy.RawModule(code=code).compile()
    with pytest.raises(cupy.cuda.compiler.CompileException, match="invalid value for an option"):
        cupy.RawModule(code=TEXT, options=("-O9",)).compile()
    with pytest.raises(cupy.cuda.compiler.CompileException, match="undefined symbol"):
        cupy.RawModule(code='int g(int); extern "C" __global__ void f(int* p) { *p = g(1); }').compile()


# ---- Arrays ----------------------------------------------------------------------------------------------------------


def test_numpy_sees_no_device_array(x):
    for look in (np.asarray, np.array, np.sum, np.sin, lambda a: np.ones(3) + a, lambda a: a == a, lambda a: a + a):
        with pytest.raises(TypeError):
            look(x)
    assert not isinstance(x, np.ndarray) and not hasattr(x, "__array_interface__")
    with pytest.raises(TypeError):
        memoryview(x)
    with pytest.raises(TypeError):
        x[0] = np.ones(4)
    with pytest.raises(IndexError):
        x[[0, 1]]
    with pytest.raises(TypeError):
        list(x)
    with pytest.raises(TypeError, match="Unsupported type"):
        cupy.matmul(x, np.ones((4, 2)))


def test_views_and_copies(x):
    host = np.arange(12.0).reshape(3, 4)
    for view in (lambda a: a[1:, ::2], lambda a: a.T, lambda a: a.reshape(4, 3), lambda a: a[2], lambda a: a[1, 2]):
        np.testing.assert_array_equal(view(x).get(), view(host))
        assert view(x).base is not None and view(x).data.mem is x.data.mem
    assert x[1].data.ptr == x.data.ptr + 32 and x.T.flags.f_contiguous and not x.T.flags.c_contiguous
    assert x.T.reshape(12).data.mem is not x.data.mem and x.copy().data.ptr != x.data.ptr
    x[1] = 7
    x[:, 0] = cupy.asarray(np.array([1.0, 2.0, 3.0]))
    host[1], host[:, 0] = 7, [1, 2, 3]
    np.testing.assert_array_equal(x.get(), host)
    assert (x.shape, x.strides, x.dtype, x.size, x.ndim, x.nbytes) == ((3, 4), (32, 8), np.float64, 12, 2, 96)
    assert x[0, 0].item() == 1 and x.astype("i4").dtype == np.int32 and x.view("i8").dtype == np.int64
    interface = x.__cuda_array_interface__
    assert interface["data"] == (x.data.ptr, False) and interface["shape"] == (3, 4) and interface["strides"] is None


def test_set_is_strict(x):
    x.set(np.ones((3, 4)))
    assert x.sum().item() == 12
    with pytest.raises(TypeError, match="float32 array cannot be set to float64"):
        x.set(np.ones((3, 4), "f4"))
    with pytest.raises(ValueError, match="Shape mismatch"):
        x.set(np.ones(12))
    with pytest.raises(RuntimeError, match="non-contiguous"):
        x[:, 1:3].set(np.ones((3, 2)))
    with pytest.raises(ValueError, match="Unsupported dtype"):
        cupy.asarray(np.array(["a"]))
    with pytest.raises(TypeError, match="imaginary"):
        cupy.zeros(3, "c16").astype("f8")


def test_empty_and_scalar_arrays():
    assert cupy.empty((0, 3)).data.ptr == 0 and cupy.asarray(np.zeros((2, 0))).get().shape == (2, 0)
    assert cupy.asarray(3.5).shape == () and float(cupy.asarray(3.5)) == 3.5
    assert cupy.full((2,), 7).get().tolist() == [7, 7] and cupy.arange(3).get().tolist() == [0, 1, 2]


def test_strided_views_stay_in_their_memory(x):
    as_strided = cupy.lib.stride_tricks.as_strided
    np.testing.assert_array_equal(as_strided(x, (2, 2), (8, 8)).get(), [[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="reaches bytes 0 to 104 of a memory of 96"):
        as_strided(x, (13,), (8,))


def test_libraries():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 4)), rng.normal(size=(4, 2))
    symmetric = a @ a.T + np.eye(4)
    da, db, ds = cupy.asarray(a), cupy.asarray(b), cupy.asarray(symmetric)
    pairs = [
        (cupy.matmul(da, db), a @ b),
        (cupy.dot(da, db), a @ b),
        (cupy.einsum("ij,jk->k", da, db), np.einsum("ij,jk->k", a, b)),
        (cupy.linalg.solve(da, db), np.linalg.solve(a, b)),
        (cupy.linalg.cholesky(ds), np.linalg.cholesky(symmetric)),
        (cupy.linalg.inv(da), np.linalg.inv(a)),
        (cupy.sort(da, axis=0), np.sort(a, axis=0)),
        (cupy.argsort(da), np.argsort(a)),
        (cupy.fft.fft(da), np.fft.fft(a)),
        (cupy.concatenate([da, db], axis=1), np.concatenate([a, b], axis=1)),
        (cupy.searchsorted(cupy.sort(da.ravel()), db), np.searchsorted(np.sort(a.ravel()), b)),
        (cupy.flatnonzero(cupy.asarray(a > 0)), np.flatnonzero(a > 0)),
    ]
    for got, want in pairs:
        assert isinstance(got, cupy.ndarray)
        np.testing.assert_allclose(got.get(), want)
    for name in ("qr", "eigh", "svd", "slogdet"):
        for got, want in zip(getattr(cupy.linalg, name)(ds), getattr(np.linalg, name)(symmetric)):
            np.testing.assert_allclose(got.get(), want)
    assert np.isnan(cupy.linalg.cholesky(cupy.asarray(-symmetric)).get()).all()


# ---- Devices, streams, memory ----------------------------------------------------------------------------------------


def test_devices(monkeypatch, module):
    with pytest.raises(RUNTIME_ERROR, match="cudaErrorInvalidDevice"), cupy.cuda.Device(1):
        pass
    monkeypatch.setenv("CUSIM_DEVICES", "2")
    assert cupy.cuda.runtime.getDeviceCount() == 2 and cupy.cuda.Device(1).compute_capability == "90"
    with cupy.cuda.Device(1):
        there = cupy.zeros(5)
        assert there.device == cupy.cuda.Device(1) == cupy.cuda.Device()
    assert cupy.cuda.Device().id == 0
    with pytest.raises(ValueError, match="the array is on device 1, and the current device is 0"):
        module.get_function("fill")((1,), (1,), replaced(0, there))
    with pytest.raises(ValueError, match="Array device must be same"):
        cupy.sort(there)


def test_streams():
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        assert cupy.cuda.get_current_stream() == stream
    assert cupy.cuda.get_current_stream() == cupy.cuda.Stream.null
    first, second = stream.record(), stream.record()
    assert cupy.cuda.get_elapsed_time(first, second) >= 0


def test_graphs(module):
    fill, stream = module.get_function("fill"), cupy.cuda.Stream(non_blocking=True)
    x = GOOD[0].copy()
    with pytest.raises(RuntimeError, match="default"):
        cupy.cuda.Stream.null.begin_capture()
    with stream:
        stream.begin_capture()
        fill((1,), (32,), replaced(0, x))
        for refused, *arguments in ((cupy.empty, 3), (x.get,), (cupy.sort, x), (x.set, np.zeros(5))):
            with pytest.raises(RUNTIME_ERROR, match="cudaErrorStreamCaptureUnsupported"):
                refused(*arguments)
        graph = stream.end_capture()
    x.fill(0)
    graph.launch()
    assert x.get().tolist() == [3.5] * 5
    del x, arguments, refused
    with pytest.raises(RUNTIME_ERROR, match="memory that is freed"):
        graph.launch()


def test_memory_is_counted(module):
    pool = cupy.get_default_memory_pool()
    before, counted = pool.used_bytes(), cupy.stats.allocations
    x = cupy.zeros(1000)
    view = x[10:]
    assert pool.used_bytes() == before + 8000 and cupy.stats.allocations == counted + 1
    del x
    assert pool.used_bytes() == before + 8000
    del view
    assert pool.used_bytes() == before
    pool.set_limit(before + 100)
    with pytest.raises(cupy.cuda.memory.OutOfMemoryError, match="Out of memory allocating 8,000 bytes"):
        cupy.zeros(1000)
    pool.set_limit(0)
    launches = cupy.stats.launches
    module.get_function("fill")((1,), (32,), GOOD)
    assert cupy.stats.launches == launches + 1


def test_it_can_be_imported_as_cupy():
    with cupy.installed():
        import cupy as found
        from cupy.cuda.runtime import CUDARuntimeError
    assert found is cupy and CUDARuntimeError is RUNTIME_ERROR
    pinned = cupy.cuda.alloc_pinned_memory(16)
    np.frombuffer(pinned, "f8")[:] = 2
    assert pinned.ptr and bytes(pinned) == np.full(2, 2.0).tobytes()
