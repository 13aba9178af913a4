// Atomic operations, with exactly the types that CUDA has them for.
//
// In: a pointer and a value. Out: what was there before. Example: `long long` has atomicMin but no atomicAdd:
// `atomicAdd((unsigned long long*)&sum, (unsigned long long)x)` is how CUDA says it, and how it is said here.
// The library does the work, so that a text compiles fast and the watch for races knows an atomic access.
#pragma once

#define CUEMU_ATOMIC(name, T) extern "C++" T name(T* place, T value);

CUEMU_ATOMIC(atomicAdd, int)
CUEMU_ATOMIC(atomicAdd, unsigned)
CUEMU_ATOMIC(atomicAdd, unsigned long long)
CUEMU_ATOMIC(atomicAdd, float)
CUEMU_ATOMIC(atomicAdd, double)

CUEMU_ATOMIC(atomicSub, int)
CUEMU_ATOMIC(atomicSub, unsigned)

CUEMU_ATOMIC(atomicExch, int)
CUEMU_ATOMIC(atomicExch, unsigned)
CUEMU_ATOMIC(atomicExch, unsigned long long)
CUEMU_ATOMIC(atomicExch, float)

#define CUEMU_ATOMIC_ORDERED(name)          \
    CUEMU_ATOMIC(name, int)                 \
    CUEMU_ATOMIC(name, unsigned)            \
    CUEMU_ATOMIC(name, long long)           \
    CUEMU_ATOMIC(name, unsigned long long)
CUEMU_ATOMIC_ORDERED(atomicMin)
CUEMU_ATOMIC_ORDERED(atomicMax)

#define CUEMU_ATOMIC_BITS(name)             \
    CUEMU_ATOMIC(name, int)                 \
    CUEMU_ATOMIC(name, unsigned)            \
    CUEMU_ATOMIC(name, unsigned long long)
CUEMU_ATOMIC_BITS(atomicAnd)
CUEMU_ATOMIC_BITS(atomicOr)
CUEMU_ATOMIC_BITS(atomicXor)

#define CUEMU_ATOMIC_CAS(T) extern "C++" T atomicCAS(T* place, T expected, T value);
CUEMU_ATOMIC_CAS(int)
CUEMU_ATOMIC_CAS(unsigned)
CUEMU_ATOMIC_CAS(unsigned long long)
CUEMU_ATOMIC_CAS(unsigned short)

#undef CUEMU_ATOMIC
#undef CUEMU_ATOMIC_ORDERED
#undef CUEMU_ATOMIC_BITS
#undef CUEMU_ATOMIC_CAS
