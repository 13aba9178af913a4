// Where threads meet: the barriers of a block, and what the lanes of a warp do together.
//
// In: a call by each thread that takes part. The last to come works out what everyone gets. Example: the 32 lanes
// that call `__shfl_down_sync(~0u, x, 1)` each wait at its line until all have come with their x.
#include <cstring>

#include "engine.h"
#include "threads.h"

namespace cuemu {

// ---- Block barriers -----------------------------------------------------------------------------------------------

static const char* const BARRIERS[] = {"__syncthreads", "__syncthreads_count", "__syncthreads_and", "__syncthreads_or"};

static void open_barrier(int kind) {
    int holds = 0;
    for (Thread& thread : block.threads) holds += (int)thread.given;
    int answer = kind == CUEMU_COUNT ? holds : kind == CUEMU_AND ? holds == block.size : holds != 0;
    for (Thread& thread : block.threads) {
        thread.got = (uint64_t)answer;
        thread.state = State::ready;
    }
    block.at_barrier = 0;
}

extern "C" int cuemu_barrier(int kind, int predicate, int line) {
    Thread* me = block.running;
    me->line = line;
    me->kind = kind;
    me->given = (uint64_t)predicate;
    me->state = State::at_barrier;
    if (++block.at_barrier < block.size) {
        switch_away();
        return (int)me->got;
    }
    for (Thread& other : block.threads)
        if (other.line != line || other.kind != kind)
            fail("divergent barrier: threads of block (%u,%u,%u) meet at different ones: %s on line %d and %s on "
                 "line %d",
                 cuemu_now.block.x, cuemu_now.block.y, cuemu_now.block.z, BARRIERS[other.kind], other.line,
                 BARRIERS[kind], line);
    open_barrier(kind);
    if (block.watched) races_at_barrier();
    return (int)me->got;
}

// ---- Warps --------------------------------------------------------------------------------------------------------

enum Operation { SHUFFLE, BALLOT, MATCH, SYNC };
static const char* const OPERATIONS[] = {"shuffle", "vote", "match", "__syncwarp"};

// The lanes that are in the mask and in the block: its last warp may have fewer than 32.
static unsigned lanes_of(unsigned mask, int warp) {
    int lanes = block.size - 32 * warp;
    return lanes >= 32 ? mask : mask & ((1u << lanes) - 1);
}

static bool all_have_come(const Thread* me, Thread* warp, unsigned lanes) {
    for (int i = 0; i < 32; i++) {
        if (!(lanes >> i & 1)) continue;
        const Thread& lane = warp[i];
        if (lane.state != State::at_warp || lane.mask != me->mask || lane.line != me->line ||
            lane.operation != me->operation)
            return false;
    }
    return true;
}

// Waits for the lanes of the mask; `finish` gives each what it gets.
template <class Finish> static uint64_t meet(int operation, unsigned mask, int line, Finish finish) {
    Thread* me = block.running;
    int number = me->number / 32, lane = me->number & 31;
    unsigned lanes = lanes_of(mask, number);
    me->operation = operation;
    me->mask = mask;
    me->line = line;
    if (!(lanes >> lane & 1))
        fail("%s on line %d: lane %d calls it and is not in its mask %08x; block (%u,%u,%u) thread (%u,%u,%u)",
             OPERATIONS[operation], line, lane, mask, cuemu_now.block.x, cuemu_now.block.y, cuemu_now.block.z,
             me->index.x, me->index.y, me->index.z);
    Thread* warp = &block.threads[32 * number];
    int& waiting = block.warps_waiting[number];
    me->state = State::at_warp;
    waiting++;
    if (waiting < __builtin_popcount(lanes) || !all_have_come(me, warp, lanes)) {
        switch_away();
        return me->got;
    }
    finish(warp, lanes);
    for (int i = 0; i < 32; i++)
        if (lanes >> i & 1) warp[i].state = State::ready;
    waiting -= __builtin_popcount(lanes);
    return me->got;
}

// The lane that a shuffle reads from, by the rules of PTX: beyond its segment a lane reads its own value.
static int source_of(const Thread& thread) {
    int lane = thread.number & 31, width = thread.width;
    int first = lane & ~(width - 1), last = first + width - 1, from = lane;
    if (thread.kind == CUEMU_FROM) return first | (thread.by & (width - 1));
    if (thread.kind == CUEMU_UP) from = lane - thread.by;
    if (thread.kind == CUEMU_DOWN) from = lane + thread.by;
    if (thread.kind == CUEMU_XOR) from = lane ^ thread.by;
    if (thread.kind == CUEMU_UP) return from < first ? lane : from;
    return from > last ? lane : from;
}

static void finish_shuffle(Thread* warp, unsigned lanes) {
    for (int i = 0; i < 32; i++) {
        if (!(lanes >> i & 1)) continue;
        Thread& lane = warp[i];
        int from = source_of(lane);
        if (!(lanes >> from & 1))
            fail("shuffle on line %d: lane %d reads from lane %d, which is not in the mask %08x or not in the block; "
                 "block (%u,%u,%u) thread (%u,%u,%u)",
                 lane.line, i, from, lane.mask, cuemu_now.block.x, cuemu_now.block.y, cuemu_now.block.z, lane.index.x,
                 lane.index.y, lane.index.z);
        lane.got = warp[from].given;
    }
}

extern "C" uint64_t cuemu_shuffle(unsigned mask, uint64_t bits, int kind, int by, int width, int line) {
    Thread* me = block.running;
    if (width < 1 || width > 32 || (width & (width - 1)) || (kind != CUEMU_FROM && (by < 0 || by > 31)))
        fail("shuffle on line %d: by %d in segments of %d lanes: a segment is a power of 2 up to 32, a step 0 to 31",
             line, by, width);
    me->given = bits;
    me->kind = kind;
    me->by = by;
    me->width = width;
    return meet(SHUFFLE, mask, line, finish_shuffle);
}

extern "C" unsigned cuemu_ballot(unsigned mask, int predicate, int line) {
    block.running->given = (uint64_t)predicate;
    return (unsigned)meet(BALLOT, mask, line, [](Thread* warp, unsigned lanes) {
        unsigned holds = 0;
        for (int i = 0; i < 32; i++)
            if (lanes >> i & 1 && warp[i].given) holds |= 1u << i;
        for (int i = 0; i < 32; i++)
            if (lanes >> i & 1) warp[i].got = holds;
    });
}

extern "C" unsigned cuemu_match(unsigned mask, uint64_t bits, int line) {
    block.running->given = bits;
    return (unsigned)meet(MATCH, mask, line, [](Thread* warp, unsigned lanes) {
        for (int i = 0; i < 32; i++) {
            if (!(lanes >> i & 1)) continue;
            unsigned same = 0;
            for (int j = 0; j < 32; j++)
                if (lanes >> j & 1 && warp[j].given == warp[i].given) same |= 1u << j;
            warp[i].got = same;
        }
    });
}

extern "C" void cuemu_syncwarp(unsigned mask, int line) {
    meet(SYNC, mask, line, [](Thread*, unsigned lanes) {
        if (block.watched) races_at_warp(lanes);
    });
}

}  // namespace cuemu
