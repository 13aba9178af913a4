// Atomic operations: those of the processor, for launches of several host threads may share memory.
//
// In: a place in device or shared memory, and a value. Out: what was there before. Example: `atomicMax(&top, 7)`.
#include <cstring>
#include <type_traits>

#include "engine.h"

namespace cuemu {

// Replaces what is at `place` by `change(what was there)`.
template <class T, class Change> static T exchange(T* place, Change change) {
    if (block.watched) races_at_atomic(place, sizeof(T));
    T was, becomes;
    __atomic_load(place, &was, __ATOMIC_RELAXED);
    do becomes = change(was);
    while (!__atomic_compare_exchange(place, &was, &becomes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return was;
}

}  // namespace cuemu

#define CUEMU_DEFINE(name, T, becomes) \
    T name(T* place, T value) {        \
        return cuemu::exchange(place, [=](T was) -> T { (void)was; return becomes; }); \
    }

typedef unsigned long long ull;

CUEMU_DEFINE(atomicAdd, int, (int)((unsigned)was + (unsigned)value))
CUEMU_DEFINE(atomicAdd, unsigned, was + value)
CUEMU_DEFINE(atomicAdd, ull, was + value)
CUEMU_DEFINE(atomicAdd, float, was + value)
CUEMU_DEFINE(atomicAdd, double, was + value)
CUEMU_DEFINE(atomicSub, int, (int)((unsigned)was - (unsigned)value))
CUEMU_DEFINE(atomicSub, unsigned, was - value)
CUEMU_DEFINE(atomicExch, int, value)
CUEMU_DEFINE(atomicExch, unsigned, value)
CUEMU_DEFINE(atomicExch, ull, value)
CUEMU_DEFINE(atomicExch, float, value)

#define CUEMU_DEFINE_ORDERED(T)                                 \
    CUEMU_DEFINE(atomicMin, T, value < was ? value : was)       \
    CUEMU_DEFINE(atomicMax, T, was < value ? value : was)
CUEMU_DEFINE_ORDERED(int)
CUEMU_DEFINE_ORDERED(unsigned)
CUEMU_DEFINE_ORDERED(long long)
CUEMU_DEFINE_ORDERED(ull)

#define CUEMU_DEFINE_BITS(T)                    \
    CUEMU_DEFINE(atomicAnd, T, was & value)     \
    CUEMU_DEFINE(atomicOr, T, was | value)      \
    CUEMU_DEFINE(atomicXor, T, was ^ value)
CUEMU_DEFINE_BITS(int)
CUEMU_DEFINE_BITS(unsigned)
CUEMU_DEFINE_BITS(ull)

#define CUEMU_DEFINE_CAS(T)                                     \
    T atomicCAS(T* place, T expected, T value) {                \
        return cuemu::exchange(place, [=](T was) -> T { return was == expected ? value : was; }); \
    }
CUEMU_DEFINE_CAS(int)
CUEMU_DEFINE_CAS(unsigned)
CUEMU_DEFINE_CAS(ull)
CUEMU_DEFINE_CAS(unsigned short)

extern "C" void cuemu_fence(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (cuemu::block.watched) cuemu::races_at_fence();
}
