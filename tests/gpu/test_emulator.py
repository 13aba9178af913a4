"""Kernels written by hand are right on the emulated device, in every order of threads, and planted faults are found.

In: CUDA C as the generator of code would write it. Out: NumPy's values; for a fault, an error that says what it is.
Everything runs forward, backward and at random; what the CPU's own order would hide shows in one of the others.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest
import stand_in as cupy

ORDERS = ("fwd", "rev", "rand")
DEVICE_ERRORS = (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError)

TEXT = r"""
#include <cuda_fp16.h>
#include <cuda/std/complex>
#ifndef CUEMU
#define DYN_SHARED(T, name) extern __shared__ double2 shared_bytes_[]; T* name = (T*)shared_bytes_
#endif
typedef long long i64;
typedef cuda::std::complex<double> c128;

extern "C" __global__ void affine(double* __restrict__ out, const double* __restrict__ x, double a, i64 n) {
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (i64)blockDim.x)
        out[i] = a * __ldg(x + i) + sin(x[i]);
}

__device__ double block_sum(double v) {
    __shared__ double parts[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int step = 16; step; step >>= 1) v += __shfl_down_sync(0xffffffffu, v, step);
    if (lane == 0) parts[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = lane < (blockDim.x >> 5) ? parts[lane] : 0.0;
        for (int step = 16; step; step >>= 1) v += __shfl_down_sync(0xffffffffu, v, step);
    }
    return v;
}

extern "C" __global__ void __launch_bounds__(256) sums(double* out, const double* x, i64 n) {
    double v = 0;
    for (i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (i64)blockDim.x) v += x[i];
    v = block_sum(v);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
}

extern "C" __global__ void reversed_rows(float* out, const float* x, int columns) {
    DYN_SHARED(float, row);
    for (int j = threadIdx.x; j < columns; j += blockDim.x) row[j] = x[blockIdx.x * (i64)columns + j];
    __syncthreads();
    for (int j = threadIdx.x; j < columns; j += blockDim.x) out[blockIdx.x * (i64)columns + j] = row[columns - 1 - j];
}

extern "C" __global__ void scan(i64* out, const i64* x) {
    __shared__ i64 s[2][256];
    int t = threadIdx.x, now = 0;
    s[0][t] = x[t];
    __syncthreads();
    for (int step = 1; step < 256; step *= 2, now ^= 1) {
        s[now ^ 1][t] = t >= step ? s[now][t] + s[now][t - step] : s[now][t];
        __syncthreads();
    }
    out[t] = s[now][t];
}

extern "C" __global__ void collatz(int* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    i64 v = i + 1;
    int k = 0;
    while (v != 1) v = v % 2 ? 3 * v + 1 : v / 2, k++;
    steps[i] = k;
}

extern "C" __global__ void histogram(unsigned long long* counts, double* total, int* most, const int* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&counts[x[i]], 1ULL);
    atomicAdd(total, (double)x[i]);
    atomicMax(most, x[i]);
}

extern "C" __global__ void complexes(c128* out, const c128* z, c128 a) {
    int i = threadIdx.x;
    out[i] = cuda::std::exp(z[i]) * a + cuda::std::conj(z[i]) / cuda::std::abs(z[i]);
}

extern "C" __global__ void halves(__half* out, const __half* x, float scale) {
    int i = threadIdx.x;
    out[i] = (__half)((float)x[i] * scale);
}

extern "C" __global__ void votes(int* out, const int* x) {
    int t = threadIdx.x;
    out[t] = __syncthreads_count(x[t] > 0) * 100 + __syncthreads_or(x[t] > 5) * 10 + __syncthreads_and(x[t] >= 0);
    out[64 + t] = __popc(__ballot_sync(0xffffffffu, x[t] & 1));
    out[128 + t] = __shfl_up_sync(0xffffffffu, x[t], 1, 8);
    out[192 + t] = __shfl_xor_sync(0xffffffffu, x[t], 3);
}
"""


@pytest.fixture(params=ORDERS)
def order(request, monkeypatch):
    monkeypatch.setenv("CUEMU_ORDER", request.param)
    monkeypatch.delenv("CUEMU_RACES", raising=False)
    return request.param


@pytest.fixture(params=["plain", "watched"])
def module(request, monkeypatch):
    """The kernels above; watched for races, of which there are none, as well."""
    monkeypatch.setenv("CUEMU_RACES", "1" if request.param == "watched" else "0")
    return cupy.RawModule(code=TEXT)


RNG = np.random.default_rng(0)


def test_elementwise(order, module):
    x = RNG.normal(size=1000)
    out = cupy.empty(1000)
    arguments = (out, cupy.asarray(x), np.float64(2.5), np.int64(1000))
    module.get_function("affine")((3,), (128,), arguments)
    np.testing.assert_allclose(cupy.asnumpy(out), 2.5 * x + np.sin(x), rtol=1e-15)


def test_reduction_with_shuffles(order, module):
    x = RNG.normal(size=5000)
    parts, total = cupy.empty(7), cupy.empty(1)
    sums = module.get_function("sums")
    sums((7,), (256,), (parts, cupy.asarray(x), np.int64(5000)))
    sums((1,), (32,), (total, parts, np.int64(7)))
    np.testing.assert_allclose(total.item(), x.sum(), rtol=1e-12)


def test_dynamic_shared_memory(order, module):
    x = RNG.normal(size=(5, 77)).astype("f4")
    out = cupy.empty((5, 77), "f4")
    arguments = (out, cupy.asarray(x), np.int32(77))
    module.get_function("reversed_rows")((5,), (32,), arguments, shared_mem=4 * 77)
    np.testing.assert_array_equal(out.get(), x[:, ::-1])


def test_scan(order, module):
    x = RNG.integers(-9, 9, 256)
    out = cupy.empty(256, "i8")
    module.get_function("scan")((1,), (256,), (out, cupy.asarray(x)))
    np.testing.assert_array_equal(out.get(), np.cumsum(x))


def test_loop_in_each_thread(order, module):
    def steps(v, k=0):
        return k if v == 1 else steps(3 * v + 1 if v % 2 else v // 2, k + 1)

    out = cupy.empty(100, "i4")
    module.get_function("collatz")((4,), (32,), (out, np.int32(100)))
    assert out.get().tolist() == [steps(i + 1) for i in range(100)]


def test_atomics(order, module):
    x = RNG.integers(0, 10, 500).astype("i4")
    counts, total, most = cupy.zeros(10, "u8"), cupy.zeros(1), cupy.zeros(1, "i4")
    arguments = (counts, total, most, cupy.asarray(x), np.int32(500))
    module.get_function("histogram")((4,), (128,), arguments)
    np.testing.assert_array_equal(counts.get(), np.bincount(x, minlength=10))
    assert (total.item(), most.item()) == (x.sum(), x.max())


def test_complex_numbers(order, module):
    z = RNG.normal(size=20) + 1j * RNG.normal(size=20)
    out = cupy.empty(20, "c16")
    module.get_function("complexes")((1,), (20,), (out, cupy.asarray(z), np.complex128(2 - 1j)))
    np.testing.assert_allclose(out.get(), np.exp(z) * (2 - 1j) + z.conj() / abs(z), rtol=1e-14)


def test_halves_round_to_the_nearest_even(order, module):
    bits = np.arange(0, 65536, 73, dtype="u2")[:896].view("f2")
    x = bits.reshape(7, 128)
    for row in x:
        out = cupy.empty(128, "f2")
        module.get_function("halves")((1,), (128,), (out, cupy.asarray(row), np.float32(1 / 3)))
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(out.get(), (row.astype("f4") * np.float32(1 / 3)).astype("f2"))


def test_votes_and_shuffles(order, module):
    x = (np.arange(64) % 7).astype("i4")
    out = cupy.empty((4, 64), "i4")
    module.get_function("votes")((1,), (64,), (out, cupy.asarray(x)))
    lane = np.arange(64)
    np.testing.assert_array_equal(out.get()[0], np.count_nonzero(x) * 100 + 11)
    np.testing.assert_array_equal(out.get()[1], np.repeat((x.reshape(2, 32) & 1).sum(1), 32))
    np.testing.assert_array_equal(out.get()[2], x[np.where(lane % 8, lane - 1, lane)])
    np.testing.assert_array_equal(out.get()[3], x[lane ^ 3])


# ---- CUDA's own functions ------------------------------------------------------------------------------------------

FUNCTIONS = r"""
extern "C" __global__ void values(double* out, const double* x) {
    int i = threadIdx.x;
    double v = x[i], s, c;
    float f = (float)v;
    sincos(v, &s, &c);
    double all[] = {rsqrt(v), rcbrt(v), sinpi(v), cospi(v), erfinv(v / 4), erfcinv(v / 2), erfcx(v), normcdf(v),
                    normcdfinv(v / 4), cyl_bessel_i0(v), cyl_bessel_i1(v), exp10(v), s * c, lgamma(v), tgamma(v), j0(v),
                    fmax(v, (double)NAN), max(f, 1.0), (double)min(NAN, f), (double)(isnan(v) + isinf(v) + signbit(-v)),
                    __longlong_as_double(__double_as_longlong(v)), (double)__popcll(255ULL) + __clzll(1) + __ffsll(8),
                    (double)__umul64hi(1ULL << 63, 6), (double)__mul64hi(-1, 1), (double)__int_as_float(0x40490fdb)};
    for (int k = 0; k < 25; k++) out[k * 4 + i] = all[k];
}
"""


def test_functions_that_the_c_library_lacks():
    scipy_special = pytest.importorskip("scipy.special")
    x = np.array([0.3, 0.9, 1.5, 1.999])
    out = cupy.empty((25, 4))
    cupy.RawModule(code=FUNCTIONS).get_function("values")((1,), (4,), (out, cupy.asarray(x)))
    s = scipy_special
    want = [
        *(1 / np.sqrt(x), 1 / np.cbrt(x), np.sin(np.pi * x), np.cos(np.pi * x), s.erfinv(x / 4), s.erfcinv(x / 2)),
        *(s.erfcx(x), s.ndtr(x), s.ndtri(x / 4), s.i0(x), s.i1(x), 10**x, np.sin(2 * x) / 2, s.gammaln(x), s.gamma(x)),
        *(s.j0(x), x, np.maximum(x.astype("f4"), 1), x.astype("f4"), 1 + 0 * x, x, 75 + 0 * x, 3 + 0 * x, -1 + 0 * x),
        np.full(4, np.float32(np.pi)),
    ]
    np.testing.assert_allclose(out.get(), want, rtol=2e-13, atol=1e-13)


def test_the_heap_and_printing(order, capfd):
    code = r"""extern "C" __global__ void heap(int* out, int keep) {
        int* mine = (int*)malloc(40);
        for (int i = 0; i < 10; i++) mine[i] = i * threadIdx.x;
        out[threadIdx.x] = mine[9];
        if (threadIdx.x == 1) printf("thread %d\n", threadIdx.x);
        if (!keep) free(mine);
    }"""
    out, before = cupy.empty(8, "i4"), cupy.kernel_heap()
    heap = cupy.RawModule(code=code).get_function("heap")
    heap((1,), (8,), (out, np.int32(0)))
    assert out.get().tolist() == [9 * i for i in range(8)] and cupy.kernel_heap() == before
    assert capfd.readouterr().out == "thread 1\n"
    heap((1,), (8,), (out, np.int32(1)))
    assert cupy.kernel_heap() == before + 320


def test_host_threads_launch_at_once(module):
    x = RNG.normal(size=3000)
    device_x, results, sums = cupy.asarray(x), {}, module.get_function("sums")

    def work(number):
        for _ in range(5):
            parts = cupy.empty(4)
            sums((4,), (256,), (parts, device_x, np.int64(3000)))
            results.setdefault(number, []).append(parts.get().sum())

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 4
    np.testing.assert_allclose(list(results.values()), x.sum(), rtol=1e-12)


# ---- Planted faults ------------------------------------------------------------------------------------------------

FAULTS = {
    "barrier_in_a_branch": ("if (t < 5) __syncthreads();", "divergent barrier .* 5 wait at a barrier.* line 1"),
    "two_barriers": (
        "if (t < 5) __syncthreads();\nelse __syncthreads();",
        "meet at different ones: .*line [12] .*line",
    ),
    "early_return": ("if (t == 7) return;\n__syncthreads();", "1 threads have left .* 63 wait .* line 2"),
    "early_return_from_warp": (
        "if (t == 7) return; x[t] = __shfl_xor_sync(~0u, t, 1);",
        "divergent warp .* 33 threads",
    ),
    "overrun": ("x[t + 1] = t;", "a place 0 bytes beyond the end of a device array of 256 bytes .* thread .63,0,0."),
    "underrun": ("x[t - 1] = t;", "a byte 1 bytes before a device array of 256 bytes"),
    "far_underrun": ("x[t - 1500] = t;", "illegal memory access"),  # the page in front of its own
    "outside_the_mask": (
        "if (t < 4) x[t] = __shfl_sync(0xfu, t, 9);",
        "lane . reads from lane 9, .* not in the mask 0000000f",
    ),
    "caller_outside_the_mask": ("x[t] = __shfl_sync(0xfu, t, 0);", "lane .* calls it and is not in its mask 0000000f"),
    "shared_overrun": ("DYN_SHARED(int, s); s[t + 1] = t; x[t] = s[t + 1];", "beyond the 256 bytes of dynamic shared"),
    "null": ("x[t] = *(int*)0;", "address 0, by block .0,0,0. thread"),
    "misaligned": ("((float4*)(x + 1))[t / 8].x = 1;", "misaligned address"),
    "assertion": ("assert(t != 40);", "assertion failed on line 1: t != 40; .* thread .40,0,0."),
    "trap": ("if (t == 3) __trap();", "__trap.. on line 1"),
    "integer_division": ("x[t] = 7 / (t - 3);", "division of an integer by zero"),
    "endless": ("while (*(volatile int*)x != 12345) x[0] = 0;", "does not end"),
    "deep_stack": ("volatile char much[300000]; much[t] = 1; x[t] = much[t];", "the stack of a thread is full"),
    "free_twice": ("void* p = malloc(8); free(p); free(p);", "malloc in a kernel did not give"),
}


def planted(body):
    return f'extern "C" __global__ void faulty(int* x) {{ int t = threadIdx.x;\n#line 1\n{body}\n}}'


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults(name, order, monkeypatch):
    body, message = FAULTS[name]
    monkeypatch.setenv("CUEMU_SECONDS", "0.2")
    x = cupy.zeros(64, "i4")
    faulty = cupy.RawModule(code=planted(body)).get_function("faulty")
    with pytest.raises(DEVICE_ERRORS, match=f"(?s){message}"):
        faulty((1,), (64,), (x,), shared_mem=256)
    good = cupy.RawModule(code=planted("__syncthreads(); x[t] = t;")).get_function("faulty")
    good((1,), (64,), (x,))  # the process and its fibers are as before
    assert x.get().tolist() == list(range(64))


RACES = {
    "neighbour": "__shared__ int s[64]; s[t] = t; x[t] = s[(t + 1) % 64];",
    "neighbour_in_dynamic": "DYN_SHARED(int, s); s[t] = t; x[t] = s[63 - t];",
    "reuse": "__shared__ int s[64]; s[t] = t; __syncthreads(); int v = s[63 - t]; s[t] = v; x[t] = s[t];",
    "across_warps": "__shared__ int s[64]; s[t] = t; __syncwarp(); x[t] = s[63 - t];",
    "global": "x[t] = t; x[0] += t;",
    "half_atomic": "atomicAdd(&x[0], t); x[0] = 3;",
    "half_volatile": "((volatile int*)x)[0] = t; x[1] = x[0];",
}


@pytest.mark.parametrize("name", RACES)
def test_planted_races(name, order, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    faulty = cupy.RawModule(code=planted(RACES[name])).get_function("faulty")
    with pytest.raises(DEVICE_ERRORS, match=r"race: block .0,0,0. thread .* and no barrier is in between"):
        faulty((1,), (64,), (cupy.zeros(64, "i4"),), shared_mem=256)


def test_volatile_accesses_are_no_races(order, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    text = "volatile int* flag = x; if (flag[0] < 99) x[t + 1] = t; if (t % 2) flag[0] = 1;"
    fine = cupy.RawModule(code=planted(text)).get_function("faulty")
    x = cupy.zeros(65, "i4")
    fine((1,), (64,), (x,))
    assert x.get().tolist() == [1, *range(64)]


LOCKED = """while (atomicCAS(&x[0], 0, 1) != 0) { }
__threadfence();
x[1] += t;
%s
atomicExch(&x[0], 0);"""


def test_what_a_lock_keeps_apart_is_no_race(order, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    x = cupy.zeros(2, "i4")
    cupy.RawModule(code=planted(LOCKED % "__threadfence();")).get_function("faulty")((1,), (64,), (x,))
    assert x.get().tolist() == [0, 2016]
    faulty = cupy.RawModule(code=planted(LOCKED % "")).get_function("faulty")
    with pytest.raises(DEVICE_ERRORS, match="race: block"):
        faulty((1,), (64,), (x,))


def test_race_between_blocks(order, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    faulty = cupy.RawModule(code=planted("if (t == 0) x[0] = blockIdx.x;")).get_function("faulty")
    with pytest.raises(DEVICE_ERRORS, match="race: block .*a device array"):
        faulty((2,), (64,), (cupy.zeros(64, "i4"),))


LAST_BLOCK = r"""
extern "C" __global__ void total(double* parts, double* out, unsigned* arrived) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = blockIdx.x + 1.0;
        __threadfence();
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        double sum = 0;
        for (int b = 0; b < gridDim.x; b++) sum += parts[b];
        *out = sum;
    }
}
"""


@pytest.mark.parametrize("watched", "01")
def test_the_last_block_adds_up(order, watched, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", watched)
    out = cupy.empty(1)
    total = cupy.RawModule(code=LAST_BLOCK).get_function("total")
    total((9,), (64,), (cupy.empty(9), out, cupy.zeros(1, "u4")))
    assert out.item() == 45


def test_a_missing_barrier_shows_between_orders(monkeypatch):
    faulty = cupy.RawModule(code=planted(RACES["neighbour"])).get_function("faulty")
    results = []
    for order in ORDERS:
        monkeypatch.setenv("CUEMU_ORDER", order)
        x = cupy.zeros(64, "i4")
        faulty((1,), (64,), (x,))
        results.append(x.get().tolist())
    assert results[0] != results[1] and results[1] != results[2]


def test_fresh_memory_is_poison(order):
    code = planted("__shared__ int s[64]; DYN_SHARED(int, d); x[t] = s[t] == d[t] ? s[t] : 0; s[t] = d[t] = 1;")
    x = cupy.empty(64, "i4")
    assert set(x.get().tobytes()) == {0xCB}
    for _ in range(2):
        cupy.RawModule(code=code).get_function("faulty")((2,), (64,), (x,), shared_mem=256)
        assert set(x.get().tobytes()) == {0xCB}
