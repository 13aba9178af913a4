// What the files of the library know of one another: the threads of the block that a host thread runs.
//
// In: a launch. Out: its block's state, `cuemu::block`, one for each host thread. Example: a barrier marks
// `block.running` as waiting and calls `switch_away()`, which comes back when the scheduler runs it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "language.h"

#undef __builtin_unreachable
#undef assert
#undef malloc
#undef free

namespace cuemu {

// A stack of its own on which a CUDA thread runs. One fiber serves thread after thread until one of them waits.
struct Fiber {
    char* stack;
    void* top;  // where the stack ended when the fiber was left
};

enum class State : uint8_t { fresh, ready, at_barrier, at_warp, done };

struct Thread {
    uint3 index;
    int number;  // within the block; number & 31 is the lane
    State state;
    Fiber* fiber;
    // What it waits for, and what it brings and gets there
    int line;
    int operation;
    unsigned mask;
    int kind, by, width;
    uint64_t given, got;
};

struct Block {
    std::vector<Thread> threads;
    std::vector<int> order;         // in which the threads have their turns
    size_t turn;                    // a place in `order`
    int size, done, at_barrier;
    uint64_t number;                // of the block in the grid
    Thread* running;
    void* launcher;                 // the host thread's own stack while fibers run
    void (*call)(void**);
    void** arguments;
    std::vector<int> warps_waiting;  // for each warp, how many lanes wait
    bool active;                     // a fiber is running
    bool watched;                    // accesses are watched for races
    char error[640];
    // The block's shared memory
    char* dynamic;
    size_t dynamic_bytes;
    char* fixed;
    size_t fixed_bytes;
};

extern thread_local Block block;

// ---- scheduler.cpp ------------------------------------------------------------------------------------------------
void switch_away();                                                        // runs others until this one is ready
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));  // ends the launch
void wait_forever();                                                       // says who waits where, and ends the launch

// ---- faults.cpp ---------------------------------------------------------------------------------------------------
struct Watch {  // while it lives, faults of this host thread end the launch rather than the process
    explicit Watch(double seconds);
    ~Watch();
};

// ---- memory.cpp ---------------------------------------------------------------------------------------------------
int describe_address(uintptr_t address, char* text, size_t room);          // 0: nothing is known of it
bool in_device_memory(uintptr_t address);

// ---- races.cpp ----------------------------------------------------------------------------------------------------
void races_start_launch();
void races_start_block();
void races_at_barrier();
void races_at_warp(unsigned mask);
void races_at_atomic(const void* place, size_t bytes);
void races_at_fence();

}  // namespace cuemu
