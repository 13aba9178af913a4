"""What stands before the kernels of a program: types, functions that expressions call, how a block combines values,
how a kernel fails, and where its arrays grow.

In: what the kernels use. Out: CUDA C, which NVRTC and nvcc take as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from metaphrase.astpasses.schedule.nest import Buf, Load, Op
from metaphrase.core.scalars import MONOIDS
from metaphrase.core.types import SHORT

from .dialects import COMPLEX, CUDA
from .helpers import with_needs
from .spell import Printer

_HEAD = """\
#ifndef CUEMU
#define DYN_SHARED(T, name) extern __shared__ T name[]
#endif
"""

_THREADS = """\
// The number of a thread on the whole grid, and how many there are.
__device__ inline i64 mp_first() { return blockIdx.x*(i64)blockDim.x + threadIdx.x; }
__device__ inline i64 mp_stride() { return gridDim.x*(i64)blockDim.x; }
"""

_PACKS = """\
// N elements side by side: read and stored by one instruction, where all of them are there and the array begins where
// memory likes it. Behind the last element it stands again.
template<class T, int N> struct __align__(N*sizeof(T)) mp_pack { T at[N]; };
__device__ inline i64 mp_least(i64 a, i64 b) { return a < b ? a : b; }
template<int N, class T> __device__ inline mp_pack<T, N> mp_read(const T* x, i64 at, i64 n) {
    if (N*at + N <= n && (unsigned long long)x % sizeof(mp_pack<T, N>) == 0) return ((const mp_pack<T, N>*)x)[at];
    mp_pack<T, N> some;
    for (int k = 0; k < N; k++) some.at[k] = x[mp_least(N*at + k, n - 1)];
    return some;
}
template<int N, class T> __device__ inline void mp_write(T* x, i64 at, i64 n, const mp_pack<T, N>& some) {
    if (N*at + N <= n && (unsigned long long)x % sizeof(mp_pack<T, N>) == 0) ((mp_pack<T, N>*)x)[at] = some;
    else for (int k = 0; k < N && N*at + k < n; k++) x[N*at + k] = some.at[k];
}
"""

# The layout is runtime/cuda.py's, too.
RUN = """\
// What a run of the program leaves for the host: the first failure, and memory for arrays that grow.
struct mp_run {
    i64 key;           // of the iteration that failed: the lowest one is told
    i64 values[16];    // of the message
    unsigned long long next;   // the first byte of `heap` that is free
    unsigned long long bytes;  // that `heap` has
    char* heap;
    int site;          // what failed
    volatile int launch;   // the launch that failed; those behind it do nothing. Threads look while others store
    int lock;
    volatile int starved;  // whether `heap` was too small
};
"""

_FAIL = """\
template<class... V>
__device__ __noinline__ void mp_fail(mp_run* c, int launch, i64 key, int site, V... values) {
    while (atomicCAS(&c->lock, 0, 1) != 0) { }
    __threadfence();
    if (c->launch != launch || key < *(volatile i64*)&c->key) {
        const i64 all[] = {0, (i64)values...};
        c->key = key;
        c->site = site;
        c->launch = launch;
        for (int k = 0; k < (int)sizeof...(values); k++) c->values[k] = all[k + 1];
    }
    __threadfence();
    atomicExch(&c->lock, 0);
}
"""

_END = """\
// A loop has come to its end: launches behind this one do nothing until the host has seen it.
__device__ inline void mp_end(mp_run* c, int launch) {
    c->site = -1;
    c->launch = launch;
}
"""

_ATOMIC = """\
// Combines x with what lies there, while other threads do the same. CUDA adds up unsigned integers of 64 bits: the bits
// are the same.
template<class T, class V> __device__ inline void mp_atomic_sum(T* there, V x) {
    if constexpr (sizeof(T) == 8 && (T)0.5 == 0) atomicAdd((unsigned long long*)there, (unsigned long long)(T)x);
    else atomicAdd(there, (T)x);
}
template<class T, class V> __device__ inline void mp_atomic_max(T* there, V x) { atomicMax(there, (T)x); }
template<class T, class V> __device__ inline void mp_atomic_min(T* there, V x) { atomicMin(there, (T)x); }
"""

_GROW = """\
// Room for `rows` rows; what was in the first ones stays.
__device__ __noinline__ void* mp_grow(mp_run* c, int launch, void* old, i64* room, i64 rows, i64 row) {
    if (old != nullptr && rows*row <= *room) return old;
    const unsigned long long needed = (unsigned long long)((2*rows + 14)*row + 15)/16*16;
    const unsigned long long place = atomicAdd(&c->next, needed);
    if (place + needed > c->bytes) {
        c->starved = 1;
        c->launch = launch;
        return nullptr;
    }
    char* made = c->heap + place;
    for (i64 k = 0; old != nullptr && k < *room/8; k++) ((i64*)made)[k] = ((const i64*)old)[k];
    *room = (i64)needed;
    return made;
}
"""

_SHUFFLED = """\
template<class T> __device__ inline T mp_shuffled(T x, int by) { return (T)__shfl_xor_sync(0xffffffffu, x, by); }
"""

_SHUFFLED_UP = """\
template<class T> __device__ inline T mp_shuffled_up(T x, int by) { return (T)__shfl_up_sync(0xffffffffu, x, by); }
template<class T> __device__ inline T mp_shuffled_from(T x, int lane) { return (T)__shfl_sync(0xffffffffu, x, lane); }
"""

_BLOCK = """\
// `MONOID` over the threads of a block, in an order that is always the same: by halves in each warp, then warp by warp.
__device__ __noinline__ TYPE mp_block_MONOID_TYPE(TYPE x) {
    __shared__ TYPE of_warp[32];
    for (int by = 16; by > 0; by /= 2) { const TYPE y = mp_shuffled(x, by); x = COMBINED; }
    __syncthreads();
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x/32] = x;
    __syncthreads();
    x = of_warp[0];
    for (int warp = 1; warp < (int)blockDim.x/32; warp++) { const TYPE y = of_warp[warp]; x = COMBINED; }
    return x;
}
"""

_WARP = """\
// `MONOID` over the threads of a warp, in an order that is always the same: by halves.
__device__ inline TYPE mp_warp_MONOID_TYPE(TYPE x) {
    for (int by = 16; by > 0; by /= 2) { const TYPE y = mp_shuffled(x, by); x = COMBINED; }
    return x;
}
"""

_BLOCK_SCAN = """\
// `MONOID` of a thread's x and those of all before it, behind what `carry` is; in the end that is `MONOID` of all.
__device__ inline TYPE mp_block_scan_MONOID_TYPE(TYPE x, TYPE& carry) {
    __shared__ TYPE of_warp[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x/32;
    const auto both = [](TYPE x, TYPE y) { return COMBINED; };
    for (int by = 1; by < 32; by *= 2) { const TYPE y = mp_shuffled_up(x, by); if (lane >= by) x = both(y, x); }
    __syncthreads();
    if (lane == 31) of_warp[warp] = x;
    __syncthreads();
    TYPE before = carry;
    for (int k = 0; k < (int)blockDim.x/32; k++) {
        if (k == warp) before = carry;
        carry = both(carry, of_warp[k]);
    }
    return both(before, x);
}
"""

_WARP_SCAN = """\
// `MONOID` of a thread's x and those of all before it, behind what `carry` is; in the end that is `MONOID` of all.
__device__ inline TYPE mp_warp_scan_MONOID_TYPE(TYPE x, TYPE& carry) {
    for (int by = 1; by < 32; by *= 2) {
        const TYPE y = mp_shuffled_up(x, by);
        if ((int)threadIdx.x % 32 >= by) x = COMBINED;
    }
    const TYPE y = carry;
    x = COMBINED;
    carry = mp_shuffled_from(x, 31);
    return x;
}
"""

_TEXTS = {"block": _BLOCK, "warp": _WARP, "block_scan": _BLOCK_SCAN, "warp_scan": _WARP_SCAN}

_PAIRS = """\
__device__ inline TYPE mp_shuffled(TYPE x, int by) {
    return TYPE(mp_shuffled(x.real(), by), mp_shuffled(x.imag(), by));
}
"""

_PAIRS_UP = """\
__device__ inline TYPE mp_shuffled_up(TYPE x, int by) {
    return TYPE(mp_shuffled_up(x.real(), by), mp_shuffled_up(x.imag(), by));
}
__device__ inline TYPE mp_shuffled_from(TYPE x, int lane) {
    return TYPE(mp_shuffled_from(x.real(), lane), mp_shuffled_from(x.imag(), lane));
}
"""


def prelude(bodies: Collection[str], helpers: set[str], reductions: Collection[tuple[str, str, str]]) -> str:
    """The text before kernels whose bodies are these."""
    printer = Printer(CUDA)
    blocks = []
    for group, monoid, kind in sorted(reductions):
        dtype = np.dtype(bool) if kind == "b1" else SHORT[kind]
        x, y = (Load(Buf(name, np.dtype(dtype), ())) for name in "xy")
        combined = printer.text(Op(MONOIDS[monoid].combine, (x, y), np.dtype(dtype)))
        text = re.sub(r"\bMONOID\b|(?<=_)MONOID(?=_)", monoid, _TEXTS[group])
        blocks.append(re.sub(r"\bTYPE\b|(?<=_)TYPE\b", kind, text).replace("COMBINED", combined))
    written = with_needs(helpers | printer.helpers, CUDA)
    functions = [made.text for made in written]
    text = "\n".join([*functions, *blocks, *bodies])
    runs = "mp_run* c" in text
    if runs:
        functions.append(RUN)
    for name, definition in (("mp_fail(", _FAIL), ("mp_end(", _END), ("mp_grow(", _GROW), ("mp_atomic_", _ATOMIC)):
        if name in text:
            functions.append(definition)
    for scans, of_one, of_pairs in ((False, _SHUFFLED, _PAIRS), (True, _SHUFFLED_UP, _PAIRS_UP)):
        kinds = [kind for group, _, kind in sorted(reductions) if group.endswith("scan") == scans]
        functions += [of_one] if kinds else []
        functions += [of_pairs.replace("TYPE", kind) for kind in kinds if kind in COMPLEX]
    if "mp_pack<" in text:
        functions.append(_PACKS)
    functions = list(dict.fromkeys(functions))
    text = "\n".join([_THREADS, *functions, *blocks, *bodies])
    used = {name for name in (*CUDA.types, *CUDA.definitions) if re.search(rf"\b{name}\b", text)}
    types = [row for row in CUDA.typedefs(used) if "_p;" not in row]
    return "\n".join([_HEAD, *types, _THREADS, *functions, *blocks])


__all__ = ["RUN", "prelude"]
