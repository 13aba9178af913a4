// The watch for races: two threads touch the same byte, one of them writes, and nothing orders the two.
//
// In: every load and store of a kernel. The text is compiled with -fsanitize=thread, which makes g++ call a function
// at each one; the functions are here rather than in the sanitizer's library. Out: the launch ends with an error that
// names both threads. Example: a thread reads its neighbour's shared value with no barrier in between.
//
// What orders two accesses: a barrier of the block; __syncwarp within a warp; both being atomic, or volatile, which PTX
// takes for relaxed; that the first one's thread passed a fence and then an atomic operation, and the second one's thread
// an atomic operation behind that (a lock); and for threads of different blocks, that some thread of each did ("the last
// block adds up"). Shuffles and votes order nothing, and two writes of the same value are a race as well: CUDA promises
// nothing there.
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine.h"

namespace cuemu {

// ---- What is known of each byte -----------------------------------------------------------------------------------

struct Access {
    uint64_t block = 0;       // its number plus 1; 0 is no access
    uint32_t thread = 0;
    uint32_t barrier = 0;     // how many barriers the block had passed
    uint32_t warp = 0;        // how many meetings of __syncwarp its warp had passed
    uint32_t time = 0;        // how many fences and atomic operations the block had passed
    bool atomic = false;
};

struct Byte {
    Access write, read, other;  // `other`: a read by a thread other than the one of `read`
};

constexpr uintptr_t PAGE = 4096;

struct Page {
    Byte bytes[PAGE];
};

struct State_of_block {
    bool fenced = false;    // passed a fence
    bool released = false;  // and then an atomic operation: later blocks may read what it wrote
};

struct Release {
    uint32_t before, time;  // at that time, of what the thread had done before
};

struct State_of_thread {
    uint32_t fenced = 0;    // when it passed a fence last
    uint32_t acquired = 0;  // when it passed an atomic operation last
    std::vector<Release> releases;
};

struct Races {
    std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
    std::unordered_map<uint64_t, State_of_block> blocks;
    uint32_t barriers = 0;
    uint32_t warps[32] = {};
    uint32_t time = 0;
    std::unordered_map<uint32_t, State_of_thread> threads;  // of the block that runs, those that passed any
    bool acquired = false;  // the block that runs has passed an atomic operation
};

static thread_local Races races;

void races_start_launch() {
    races.pages.clear();
    races.blocks.clear();
}

void races_start_block() {
    races.barriers = 0;
    memset(races.warps, 0, sizeof races.warps);
    races.threads.clear();
    races.time = 0;
    races.acquired = false;
    // Shared memory is new with each block.
    for (auto it = races.pages.begin(); it != races.pages.end();)
        it = in_device_memory(it->first * PAGE) ? std::next(it) : races.pages.erase(it);
}

void races_at_barrier() { races.barriers++; }

void races_at_warp(unsigned) { races.warps[block.running->number / 32]++; }

void races_at_fence() {
    races.blocks[block.number].fenced = true;
    races.threads[(uint32_t)block.running->number].fenced = ++races.time;
}

// ---- Whether two accesses are ordered -----------------------------------------------------------------------------

// Whether a thread of this block has let others see what it did at that time, and another one has looked since.
static bool handed_over(const Access& first, const Access& now) {
    auto one = races.threads.find(first.thread), other = races.threads.find(now.thread);
    if (one == races.threads.end() || other == races.threads.end()) return false;
    for (const Release& release : one->second.releases)
        if (first.time < release.before && release.time < other->second.acquired) return true;
    return false;
}

static bool ordered(const Access& first, const Access& now) {
    if (!first.block || (first.atomic && now.atomic)) return true;
    if (first.block != now.block) {
        auto found = races.blocks.find(first.block - 1);
        return races.acquired && found != races.blocks.end() && found->second.released;
    }
    if (first.thread == now.thread || first.barrier != now.barrier) return true;
    return (first.thread / 32 == now.thread / 32 && first.warp != now.warp) || handed_over(first, now);
}

[[noreturn]] static void report(const Access& first, const char* did, const char* does, uintptr_t address) {
    char what[200];
    uintptr_t dynamic = (uintptr_t)block.dynamic;
    if (dynamic && address >= dynamic && address < dynamic + block.dynamic_bytes)
        snprintf(what, sizeof what, "byte %zu of dynamic shared memory", (size_t)(address - dynamic));
    else if (!describe_address(address, what, sizeof what))
        snprintf(what, sizeof what, "shared memory");
    uint3 grid = cuemu_now.grid_size, size = cuemu_now.block_size, b = cuemu_now.block, t = cuemu_now.thread;
    uint64_t n = first.block - 1;
    fail("race: block (%u,%u,%u) thread (%u,%u,%u) %s %s, which block (%u,%u,%u) thread (%u,%u,%u) %s, and no barrier "
         "is in between",
         b.x, b.y, b.z, t.x, t.y, t.z, does, what, (unsigned)(n % grid.x), (unsigned)(n / grid.x % grid.y),
         (unsigned)(n / ((uint64_t)grid.x * grid.y)), first.thread % size.x, first.thread / size.x % size.y,
         first.thread / (size.x * size.y), did);
}

// ---- Accesses -----------------------------------------------------------------------------------------------------

// Local variables are a thread's own; what isn't device or shared memory is nobody's concern.
static bool is_shared(uintptr_t address) {
    uintptr_t stack = (uintptr_t)block.running->fiber->stack;
    if (address - stack < 256 * 1024) return false;
    if (block.dynamic && address - (uintptr_t)block.dynamic < block.dynamic_bytes) return true;
    if (address - (uintptr_t)block.fixed < block.fixed_bytes) return true;
    return in_device_memory(address);
}

static Byte& byte_at(uintptr_t address) {
    auto& page = races.pages[address / PAGE];
    if (!page) page.reset(new Page);
    return page->bytes[address % PAGE];
}

static void look_at(uintptr_t address, size_t bytes, bool writes, bool atomic) {
    Thread* me = block.running;
    Access now;
    now.block = block.number + 1;
    now.thread = (uint32_t)me->number;
    now.barrier = races.barriers;
    now.warp = races.warps[me->number / 32];
    now.time = races.time;
    now.atomic = atomic;
    for (size_t i = 0; i < bytes; i++) {
        Byte& byte = byte_at(address + i);
        const char* does = writes ? "writes to" : "reads";
        if (!ordered(byte.write, now)) report(byte.write, "has written to", does, address + i);
        if (writes && !ordered(byte.read, now)) report(byte.read, "has read", does, address + i);
        if (writes && !ordered(byte.other, now)) report(byte.other, "has read", does, address + i);
        if (writes) {
            byte.write = now;
            byte.read = byte.other = Access();
        } else {
            if (byte.read.block && (byte.read.thread != now.thread || byte.read.block != now.block))
                byte.other = byte.read;
            byte.read = now;
        }
    }
}

static void touch(const void* place, size_t bytes, bool writes, bool aligned = true, bool relaxed = false) {
    if (!block.active || !block.watched || !is_shared((uintptr_t)place)) return;
    uint3 b = cuemu_now.block, t = cuemu_now.thread;
    // The compiler calls 16 bytes aligned that lie on a multiple of 8: a complex number, or two that are copied at once.
    if (aligned && (uintptr_t)place % (bytes < 8 ? bytes : 8))
        fail("misaligned access: %zu bytes at %p; block (%u,%u,%u) thread (%u,%u,%u)", bytes, place, b.x, b.y, b.z, t.x,
             t.y, t.z);
    block.active = false;  // the books must not be left half written when time is up
    struct Restore {
        ~Restore() { block.active = true; }
    } restore;
    look_at((uintptr_t)place, bytes, writes, relaxed);
}

void races_at_atomic(const void* place, size_t bytes) {
    races.acquired = true;
    State_of_block& state = races.blocks[block.number];
    state.released = state.released || state.fenced;
    State_of_thread& me = races.threads[(uint32_t)block.running->number];
    me.acquired = ++races.time;
    if (me.fenced) me.releases.push_back({me.fenced, me.acquired});
    me.fenced = 0;
    if (is_shared((uintptr_t)place)) look_at((uintptr_t)place, bytes, true, true);
}

}  // namespace cuemu

// ---- What -fsanitize=thread makes g++ call ------------------------------------------------------------------------

#define CUEMU_SIZED(bytes)                                                                                     \
    extern "C" void __tsan_read##bytes(void* place) { cuemu::touch(place, bytes, false); }                     \
    extern "C" void __tsan_write##bytes(void* place) { cuemu::touch(place, bytes, true); }                     \
    extern "C" void __tsan_unaligned_read##bytes(void* place) { cuemu::touch(place, bytes, false, false); }           \
    extern "C" void __tsan_unaligned_write##bytes(void* place) { cuemu::touch(place, bytes, true, false); }           \
    extern "C" void __tsan_volatile_read##bytes(void* place) { cuemu::touch(place, bytes, false, true, true); } \
    extern "C" void __tsan_volatile_write##bytes(void* place) { cuemu::touch(place, bytes, true, true, true); }
CUEMU_SIZED(1)
CUEMU_SIZED(2)
CUEMU_SIZED(4)
CUEMU_SIZED(8)
CUEMU_SIZED(16)

// Of a structure, byte by byte: its alignment is that of its parts.
extern "C" void __tsan_read_range(void* place, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) cuemu::touch((char*)place + i, 1, false);
}
extern "C" void __tsan_write_range(void* place, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) cuemu::touch((char*)place + i, 1, true);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
