// The scheduler: runs the blocks of a launch one after another, and a block's threads as fibers, in an order that
// the caller chooses.
//
// In: a kernel's door, grid, block, arguments. Out: nullptr, or a text that says what went wrong and where.
// Example: `cuemu_launch(door, layout, {4,1,1,256,1,1}, 0, arguments, how)`. Several host threads may launch at once.
#include <link.h>
#include <sys/mman.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine.h"

#if !defined(__x86_64__)
#error "the switch from fiber to fiber is written for x86-64 only"
#endif

namespace cuemu {

thread_local Block block;

// ---- Fibers -------------------------------------------------------------------------------------------------------

// Leaves the stack that is in use at *left and goes on with the stack `entered`.
extern "C" void cuemu_switch(void** left, void* entered);
asm(R"(
.text
.globl cuemu_switch
.hidden cuemu_switch
.type cuemu_switch, @function
cuemu_switch:
    pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
    ret
.size cuemu_switch, . - cuemu_switch
)");

constexpr size_t PAGE = 4096;
constexpr size_t STACK = 256 * 1024;  // of which the system gives only the pages that are touched

struct Fibers {
    std::vector<Fiber*> all, idle;

    Fiber* take() {
        if (idle.empty()) {
            void* stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (stack == MAP_FAILED) fail("no memory for the stack of a thread");
            mprotect(stack, PAGE, PROT_NONE);  // a stack that grows too large meets this page
            Fiber* fiber = new Fiber{(char*)stack, nullptr};
            all.push_back(fiber);
            idle.push_back(fiber);
        }
        Fiber* fiber = idle.back();
        idle.pop_back();
        return fiber;
    }

    ~Fibers() {
        for (Fiber* fiber : all) {
            munmap(fiber->stack, STACK);
            delete fiber;
        }
    }
};

static thread_local Fibers fibers;

static void run_threads();

// A stack whose top looks as if it had been left just before the first instruction of run_threads.
static void prepare(Fiber* fiber) {
    void** top = (void**)(fiber->stack + STACK);
    *--top = nullptr;
    *--top = (void*)run_threads;
    for (int i = 0; i < 6; i++) *--top = nullptr;
    fiber->top = top;
}

[[noreturn]] static void back_to_launcher() {
    void* abandoned;
    cuemu_switch(&abandoned, block.launcher);
    __builtin_unreachable();
}

void fail(const char* format, ...) {
    if (!block.error[0]) {
        va_list rest;
        va_start(rest, format);
        vsnprintf(block.error, sizeof block.error, format, rest);
        va_end(rest);
    }
    back_to_launcher();
}

// ---- Turns --------------------------------------------------------------------------------------------------------

static Thread* next_thread() {
    Block& here = block;  // finding it takes a call
    for (int tried = 0; tried < here.size; tried++) {
        if (++here.turn >= (size_t)here.size) here.turn = 0;
        Thread& thread = here.threads[here.order[here.turn]];
        if (thread.state == State::ready || thread.state == State::fresh) return &thread;
    }
    return nullptr;
}

static void make_current(Thread* thread) {
    block.running = thread;
    cuemu_now.thread = thread->index;
}

void switch_away() {
    Thread *me = block.running, *next = next_thread();
    if (!next) wait_forever();
    make_current(next);
    if (next == me) return;
    if (next->state == State::fresh) {
        next->state = State::ready;
        next->fiber = fibers.take();
        prepare(next->fiber);
    }
    cuemu_switch(&me->fiber->top, next->fiber->top);
}

// What every fiber does: its thread to the end, then thread after thread that hasn't started, until one is ready
// that has a stack of its own.
static void run_threads() {
    Block& here = block;
    for (;;) {
        here.call(here.arguments);
        Thread* me = here.running;
        me->state = State::done;
        here.done++;
        Fiber* fiber = me->fiber;
        me->fiber = nullptr;
        Thread* next = next_thread();
        if (next && next->state == State::fresh) {
            next->state = State::ready;
            next->fiber = fiber;
            make_current(next);
            continue;
        }
        fibers.idle.push_back(fiber);
        if (!next) {
            if (block.done == block.size) back_to_launcher();
            wait_forever();
        }
        make_current(next);
        void* abandoned;
        cuemu_switch(&abandoned, next->fiber->top);
    }
}

void wait_forever() {
    int barriers = 0, warps = 0;
    Thread *first = nullptr, *other = nullptr;
    for (Thread& thread : block.threads) {
        barriers += thread.state == State::at_barrier;
        warps += thread.state == State::at_warp;
        if (thread.state != State::at_barrier && thread.state != State::at_warp) continue;
        if (!first) first = &thread;
        else if (!other && (thread.line != first->line || thread.state != first->state)) other = &thread;
    }
    if (!first) fail("no thread of block (%u,%u,%u) can run", cuemu_now.block.x, cuemu_now.block.y, cuemu_now.block.z);
    char also[96] = "";
    if (other)
        snprintf(also, sizeof also, ", and thread (%u,%u,%u) on line %d", other->index.x, other->index.y,
                 other->index.z, other->line);
    const char* what = !warps ? "divergent barrier" : !barriers ? "divergent warp operation" : "divergent meeting";
    fail("%s in block (%u,%u,%u): %d threads have left the kernel, %d wait at a barrier of the block and %d at an "
         "operation of a warp; thread (%u,%u,%u) waits on line %d%s",
         what, cuemu_now.block.x, cuemu_now.block.y, cuemu_now.block.z, block.done, barriers, warps, first->index.x,
         first->index.y, first->index.z, first->line, also);
}

// ---- Orders -------------------------------------------------------------------------------------------------------

static uint64_t random_after(uint64_t& state) {  // splitmix64
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void order_threads(int order, uint64_t& random) {
    int n = block.size;
    for (int i = 0; i < n; i++) block.order[i] = order == 1 ? n - 1 - i : i;
    if (order != 2) return;
    for (int i = n - 1; i > 0; i--) std::swap(block.order[i], block.order[random_after(random) % (i + 1)]);
}

// The k-th block that runs. A random order steps through the grid by a number prime to its size.
static uint64_t block_in_order(uint64_t k, uint64_t blocks, int order, uint64_t step) {
    if (order == 1) return blocks - 1 - k;
    if (order == 2) return (uint64_t)(((unsigned __int128)k * step + blocks / 3) % blocks);
    return k;
}

static uint64_t step_prime_to(uint64_t blocks, uint64_t& random) {
    for (;;) {
        uint64_t step = random_after(random) % blocks + 1, a = step, b = blocks;
        while (b) {
            uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        if (a == 1) return step;
    }
}

// ---- A launch -----------------------------------------------------------------------------------------------------

static void start_block(uint64_t number) {
    uint3 size = cuemu_now.block_size, grid = cuemu_now.grid_size;
    cuemu_now.block = {(unsigned)(number % grid.x), (unsigned)(number / grid.x % grid.y),
                       (unsigned)(number / ((uint64_t)grid.x * grid.y))};
    Block& here = block;
    here.number = number;
    here.done = here.at_barrier = 0;
    here.turn = (size_t)-1;
    for (int& waiting : here.warps_waiting) waiting = 0;
    for (int i = 0; i < here.size; i++) {
        Thread& thread = here.threads[i];
        thread.number = i;
        thread.index = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
        thread.state = State::fresh;
        thread.fiber = nullptr;
    }
    memset(here.fixed, 0xCB, here.fixed_bytes);
    if (here.dynamic) memset(here.dynamic, 0xCB, here.dynamic_bytes);
}

static void run_block() {
    Thread* first = next_thread();
    first->state = State::ready;
    first->fiber = fibers.take();
    prepare(first->fiber);
    make_current(first);
    block.active = true;
    cuemu_switch(&block.launcher, first->fiber->top);
    block.active = false;
}

// After a failure the threads that were under way are forgotten, and their fibers are idle again.
static void forget_threads() {
    for (Thread& thread : block.threads) thread.fiber = nullptr;
    fibers.idle = fibers.all;
}

static const char* check_sizes(const unsigned* sizes, size_t shared) {
    static thread_local char text[200];
    unsigned x = sizes[3], y = sizes[4], z = sizes[5];
    if (!sizes[0] || sizes[0] > 0x7fffffffu || !sizes[1] || sizes[1] > 65535 || !sizes[2] || sizes[2] > 65535)
        snprintf(text, sizeof text, "invalid grid (%u,%u,%u): at least 1, x below 2^31, y and z at most 65535",
                 sizes[0], sizes[1], sizes[2]);
    else if (!x || !y || !z || x > 1024 || y > 1024 || z > 64 || (uint64_t)x * y * z > 1024)
        snprintf(text, sizeof text, "invalid block (%u,%u,%u): at least 1, at most 1024 threads, z at most 64", x, y,
                 z);
    else if (shared > 232448)
        snprintf(text, sizeof text, "too much shared memory: %zu bytes, a block can have 232448", shared);
    else
        return nullptr;
    return text;
}

// Dynamic shared memory ends at a page that nobody may touch, so that an overrun is a fault.
struct Shared {
    size_t pages, bytes;
    char* base;

    explicit Shared(size_t bytes) : pages((bytes + PAGE - 1) / PAGE), bytes(bytes), base(nullptr) {
        if (!bytes) return;
        base = (char*)mmap(nullptr, (pages + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(base + pages * PAGE, PAGE, PROT_NONE);
    }
    char* start() const { return base ? base + (pages * PAGE - bytes) / 16 * 16 : nullptr; }
    ~Shared() {
        if (base) munmap(base, (pages + 1) * PAGE);
    }
};

struct Layout {       // of a shared object's thread-local block, which holds its static shared memory
    size_t before;    // bytes before the mark
    size_t bytes;
};

struct How {
    int order;        // 0 forward, 1 backward, 2 random
    int watched;      // for races: the text was compiled for it
    uint64_t seed;
    double seconds;   // after which a launch is ended
};

extern "C" const char* cuemu_launch(void (*call)(void**), char* (*mark)(), const Layout* layout, const unsigned* sizes,
                                    size_t shared, void** arguments, const How* how) {
    if (block.active) return "a kernel cannot launch a kernel here";
    if (const char* wrong = check_sizes(sizes, shared)) return wrong;
    cuemu_now.grid_size = {sizes[0], sizes[1], sizes[2]};
    cuemu_now.block_size = {sizes[3], sizes[4], sizes[5]};
    Shared dynamic(shared);
    cuemu_now.dynamic = block.dynamic = dynamic.start();
    block.dynamic_bytes = shared;
    block.fixed = mark() - layout->before;
    block.fixed_bytes = layout->bytes;
    block.size = (int)(sizes[3] * sizes[4] * sizes[5]);
    block.threads.resize(block.size);
    block.order.resize(block.size);
    block.warps_waiting.resize((block.size + 31) / 32);
    block.call = call;
    block.arguments = arguments;
    block.error[0] = 0;
    block.watched = how->watched;
    uint64_t blocks = (uint64_t)sizes[0] * sizes[1] * sizes[2], random = how->seed;
    uint64_t step = how->order == 2 ? step_prime_to(blocks, random) : 1;
    order_threads(how->order, random);
    if (block.watched) races_start_launch();
    {
        Watch watch(how->seconds);
        for (uint64_t k = 0; k < blocks && !block.error[0]; k++) {
            if (k && how->order == 2) order_threads(2, random);
            start_block(block_in_order(k, blocks, how->order, step));
            if (block.watched) races_start_block();
            run_block();
        }
    }
    fflush(stdout);
    if (!block.error[0]) return nullptr;
    forget_threads();
    return block.error;
}

// ---- Where a shared object keeps its static shared memory ---------------------------------------------------------

struct Search {
    char* mark;
    Layout* layout;
};

static int look_at_object(dl_phdr_info* object, size_t, void* data) {
    Search* search = (Search*)data;
    char* start = (char*)object->dlpi_tls_data;
    if (!start) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)& part = object->dlpi_phdr[i];
        if (part.p_type != PT_TLS || search->mark < start || search->mark >= start + part.p_memsz) continue;
        *search->layout = {(size_t)(search->mark - start), part.p_memsz};
        return 1;
    }
    return 0;
}

extern "C" int cuemu_layout(char* (*mark)(), Layout* layout) {
    Search search{mark(), layout};
    return dl_iterate_phdr(look_at_object, &search);
}

// ---- Ends ---------------------------------------------------------------------------------------------------------

extern "C" void cuemu_stop(const char* what, const char* detail, int line) {
    uint3 b = cuemu_now.block, t = cuemu_now.thread;
    fail("%s on line %d: %s; block (%u,%u,%u) thread (%u,%u,%u)", what, line, detail, b.x, b.y, b.z, t.x, t.y, t.z);
}

}  // namespace cuemu
