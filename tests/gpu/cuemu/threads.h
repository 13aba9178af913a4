// What the threads of a block and the lanes of a warp do together: barriers, shuffles, votes, fences.
//
// In: a call by every thread that takes part. Out: the answer, or a launch that ends with an error that names the
// block, the thread and the line. Example: `x += __shfl_down_sync(0xffffffffu, x, 16);`
#pragma once

// ---- Block barriers -----------------------------------------------------------------------------------------------

enum CuemuBarrier { CUEMU_SYNC, CUEMU_COUNT, CUEMU_AND, CUEMU_OR };

extern "C" int cuemu_barrier(int kind, int predicate, int line);

#define __syncthreads() ((void)cuemu_barrier(CUEMU_SYNC, 0, __LINE__))
#define __syncthreads_count(predicate) cuemu_barrier(CUEMU_COUNT, !!(predicate), __LINE__)
#define __syncthreads_and(predicate) cuemu_barrier(CUEMU_AND, !!(predicate), __LINE__)
#define __syncthreads_or(predicate) cuemu_barrier(CUEMU_OR, !!(predicate), __LINE__)

// ---- Warps: lanes of one mask meet at one line --------------------------------------------------------------------

enum CuemuShuffle { CUEMU_FROM, CUEMU_UP, CUEMU_DOWN, CUEMU_XOR };

extern "C" uint64_t cuemu_shuffle(unsigned mask, uint64_t bits, int kind, int by, int width, int line);
extern "C" unsigned cuemu_ballot(unsigned mask, int predicate, int line);
extern "C" unsigned cuemu_match(unsigned mask, uint64_t bits, int line);
extern "C" void cuemu_syncwarp(unsigned mask, int line);

namespace cuemu {

// CUDA shuffles these types and no others; a bool or a short is passed as the int that it becomes.
#define CUEMU_SHUFFLED(T)                                                                                  \
    static inline T shuffle(unsigned mask, T value, int kind, int by, int width, int line) {               \
        uint64_t bits = 0;                                                                                 \
        memcpy(&bits, &value, sizeof value);                                                               \
        bits = cuemu_shuffle(mask, bits, kind, by, width, line);                                           \
        memcpy(&value, &bits, sizeof value);                                                               \
        return value;                                                                                      \
    }                                                                                                      \
    static inline unsigned match(unsigned mask, T value, int line) {                                       \
        uint64_t bits = 0;                                                                                 \
        memcpy(&bits, &value, sizeof value);                                                               \
        return cuemu_match(mask, bits, line);                                                              \
    }
CUEMU_SHUFFLED(int)
CUEMU_SHUFFLED(unsigned)
CUEMU_SHUFFLED(long)
CUEMU_SHUFFLED(unsigned long)
CUEMU_SHUFFLED(long long)
CUEMU_SHUFFLED(unsigned long long)
CUEMU_SHUFFLED(float)
CUEMU_SHUFFLED(double)

static inline int width_of(int width = 32) { return width; }
static inline unsigned mask_of(unsigned mask = 0xffffffffu) { return mask; }

}  // namespace cuemu

// The last argument, the width of a segment, is 32 where it is left out.
#define __shfl_sync(mask, value, lane, ...) \
    cuemu::shuffle(mask, value, CUEMU_FROM, lane, cuemu::width_of(__VA_ARGS__), __LINE__)
#define __shfl_up_sync(mask, value, by, ...) \
    cuemu::shuffle(mask, value, CUEMU_UP, by, cuemu::width_of(__VA_ARGS__), __LINE__)
#define __shfl_down_sync(mask, value, by, ...) \
    cuemu::shuffle(mask, value, CUEMU_DOWN, by, cuemu::width_of(__VA_ARGS__), __LINE__)
#define __shfl_xor_sync(mask, value, by, ...) \
    cuemu::shuffle(mask, value, CUEMU_XOR, by, cuemu::width_of(__VA_ARGS__), __LINE__)

#define __ballot_sync(mask, predicate) cuemu_ballot(mask, !!(predicate), __LINE__)
#define __any_sync(mask, predicate) ((int)(cuemu_ballot(mask, !!(predicate), __LINE__) != 0))
#define __all_sync(mask, predicate) ((int)(cuemu_ballot(mask, !(predicate), __LINE__) == 0))
#define __match_any_sync(mask, value) cuemu::match(mask, value, __LINE__)
#define __syncwarp(...) cuemu_syncwarp(cuemu::mask_of(__VA_ARGS__), __LINE__)

// ---- Fences -------------------------------------------------------------------------------------------------------

extern "C" void cuemu_fence(void);

static inline void __threadfence() { cuemu_fence(); }
static inline void __threadfence_block() { cuemu_fence(); }
static inline void __threadfence_system() { cuemu_fence(); }
