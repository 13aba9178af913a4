// The words of CUDA C: qualifiers, the types of indices, vectors, dynamic and static shared memory.
//
// In: CUDA's own spelling. Out: C++ that means the same on one CPU thread. Example: `__shared__ float row[32];`
// becomes a variable of the host thread that runs the block; its bytes are 0xCB when each block starts.
#pragma once

// ---- Qualifiers ---------------------------------------------------------------------------------------------------

#define __global__ __attribute__((noipa))  // a kernel is called from elsewhere: nothing is concluded from its body
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

// One host thread runs a block from start to end, so what a block shares is what the host thread owns.
#define __shared__ static thread_local
#define __constant__

// The shared memory whose size the launch chooses. Generated code defines the same macro for nvcc, upon
// `extern __shared__`, inside `#ifndef CUEMU`.
#define DYN_SHARED(T, name) T* name = (T*)cuemu_now.dynamic

// ---- Indices ------------------------------------------------------------------------------------------------------

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

// Where the running CUDA thread is. The scheduler changes it at every switch.
struct CuemuNow {
    uint3 thread, block;
    uint3 block_size, grid_size;
    char* dynamic;  // start of the block's dynamic shared memory
};

// "initial-exec": the variable lies at a fixed distance from the thread pointer, and reading it calls nothing.
extern "C" __thread CuemuNow cuemu_now __attribute__((tls_model("initial-exec"), visibility("default")));

#define threadIdx (cuemu_now.thread)
#define blockIdx (cuemu_now.block)
#define blockDim (cuemu_now.block_size)
#define gridDim (cuemu_now.grid_size)
#define warpSize 32

// ---- Vector types -------------------------------------------------------------------------------------------------

#define CUEMU_VECTORS(T, name, two, four)                                                 \
    struct alignas(two) name##2 {                                                         \
        T x, y;                                                                           \
    };                                                                                    \
    struct name##3 {                                                                      \
        T x, y, z;                                                                        \
    };                                                                                    \
    struct alignas(four) name##4 {                                                        \
        T x, y, z, w;                                                                     \
    };                                                                                    \
    static inline name##2 make_##name##2(T x, T y) { return {x, y}; }                     \
    static inline name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }             \
    static inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

using cuemu_schar = signed char;
using cuemu_uchar = unsigned char;
using cuemu_ushort = unsigned short;
using cuemu_unsigned = unsigned;
using cuemu_longlong = long long;
using cuemu_ulonglong = unsigned long long;

CUEMU_VECTORS(cuemu_schar, char, 2, 4)
CUEMU_VECTORS(cuemu_uchar, uchar, 2, 4)
CUEMU_VECTORS(short, short, 4, 8)
CUEMU_VECTORS(cuemu_ushort, ushort, 4, 8)
CUEMU_VECTORS(int, int, 8, 16)
CUEMU_VECTORS(float, float, 8, 16)
CUEMU_VECTORS(double, double, 16, 16)
CUEMU_VECTORS(cuemu_longlong, longlong, 16, 16)
CUEMU_VECTORS(cuemu_ulonglong, ulonglong, 16, 16)

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

// ---- What a kernel may say and how it may stop --------------------------------------------------------------------

extern "C" [[noreturn]] void cuemu_stop(const char* what, const char* detail, int line);

// A failed assertion ends the launch with an error; the process lives on.
#undef assert
#define assert(condition) ((condition) ? (void)0 : cuemu_stop("assertion failed", #condition, __LINE__))
#define __trap() cuemu_stop("__trap()", "the kernel stopped itself", __LINE__)
#define __builtin_unreachable() cuemu_stop("__builtin_unreachable()", "this place was said not to be reached", __LINE__)
#define __assume(condition) assert(condition)
#define __builtin_assume(condition) assert(condition)

// ---- Device memory from inside a kernel ---------------------------------------------------------------------------

extern "C" void* cuemu_malloc(size_t bytes);
extern "C" void cuemu_free(void* memory);

#define malloc(bytes) cuemu_malloc(bytes)
#define free(memory) cuemu_free(memory)
