/* The threads of a C library: parts of a loop are handed to the pool of pool.h, each thread with a context of its own.

   In: a part of a program, what it reads and writes, and how many parts there are. Out: all parts done, or what the
   first of them returned that failed, whichever thread came to it when. Example:

       mp_set_threads(4);                                  from now on; 1 until then
       mp_run.context.share(&mp_run.context, part, buffers, sizes, (n + 999)/1000);

   A result does not depend on the number of threads: sizes alone say where parts begin. Parts of parts, and those of a
   second caller while the first one's run, are done by the thread that has them. It is what runtime/share.pxi does for
   Python, without signals. Elsewhere than on Linux there is one thread. Included by library.h alone. */
#ifndef METAPHRASE_LIBRARY_THREADS_H
#define METAPHRASE_LIBRARY_THREADS_H

/* One part after the other, from `first` on: the first that fails is the one that is told. */
static int mp_one_by_one(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes, int64_t first, int64_t parts) {
    int status = 0;
    for (int64_t k = first; k < parts && !status; k++) {
        char *mark = mp_marked(c);
        status = part(c, buffers, sizes, k);
        mp_released(c, mark);
    }
    return status;
}

#if defined(__linux__)
#include "pool.h"

#define MP_FUEL_IN_REGION 1000000 /* up to a millisecond until a thread looks whether it shall stop */

typedef struct mp_region {
    mp_job job; /* first: the pointer to it is the pointer to the region */
    mp_call *caller;
    mp_ctx context; /* that other threads begin with, without memory: the caller's own changes as its parts run */
    mp_part part;
    void **buffers;
    const int64_t *sizes;
    int64_t first;          /* the parts before it are done */
    _Atomic int64_t failed; /* the first part that failed, so far */
    int status;
    int64_t site, values[16];
} mp_region;

static _Atomic int mp_threads = 1;
static mp_call mp_calls[MP_SLOTS]; /* of the threads that take part in the one job there is */

static int64_t mp_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1000000000 * (int64_t)now.tv_sec + now.tv_nsec;
}

/* How many threads share loops from now on, 0 for one a processor that this process may run on; the number before. */
static int mp_set_threads(int count) {
    cpu_set_t available;
    if (count == 0) count = sched_getaffinity(0, sizeof available, &available) ? 1 : CPU_COUNT(&available);
    return count < 0 ? atomic_load(&mp_threads) : atomic_exchange(&mp_threads, count);
}

static int mp_threads_now(void) { return atomic_load(&mp_threads); }

static int mp_poll_in_region(mp_ctx *c) {
    mp_call *call = (mp_call *)c;
    c->fuel = MP_FUEL_IN_REGION;
    return atomic_load(&call->region->failed) < call->part ? MP_INTERRUPTED : 0;
}

/* Parts that a part shares are done by its own thread. */
static int mp_share_in_region(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes, int64_t parts, int large) {
    (void)large;
    return mp_one_by_one(c, part, buffers, sizes, 0, parts);
}

static void mp_run_part(mp_job *job, int64_t k, int slot) {
    mp_region *region = (mp_region *)job;
    mp_call *call = slot ? &mp_calls[slot] : region->caller;
    char *mark;
    int status;
    k += region->first;
    if (k > atomic_load(&region->failed)) return;
    if (!call->region) { /* this thread's first part */
        memset(call, 0, sizeof *call);
        call->context = region->context;
        call->region = region;
    }
    call->part = k;
    mark = mp_marked(&call->context);
    status = region->part(&call->context, region->buffers, region->sizes, k);
    mp_released(&call->context, mark);
    if (!status) return;
    mp_pool_lock();
    if (k < atomic_load(&region->failed)) {
        atomic_store(&region->failed, k);
        region->status = status;
        region->site = call->context.error_site;
        memcpy(region->values, call->context.error_values, sizeof region->values);
    }
    mp_pool_unlock();
}

static void mp_leave_region(mp_job *job, int slot) {
    (void)job;
    if (!mp_calls[slot].region) return;
    mp_free(&mp_calls[slot]);
    mp_calls[slot].region = NULL;
}

/* Do parts on this thread until the rest is worth waking others for; the number of those that are done. */
static int64_t mp_begin_alone(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes, int64_t parts,
                              int *status) {
    int64_t done = 0, elapsed = 0, begun = mp_now();
    while (done < parts && !(done && mp_pool_worth(done, elapsed, parts - done))) {
        *status = mp_one_by_one(c, part, buffers, sizes, done, done + 1);
        if (*status) return done;
        done++;
        elapsed = mp_now() - begun;
    }
    if (done == parts) mp_pool_was_alone(begun, elapsed);
    return done;
}

static int mp_shared(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes, int64_t parts, int large) {
    mp_call *call = (mp_call *)c;
    int threads = (int)c->threads, status = 0, forks;
    int64_t first = 0, fuel = c->fuel;
    if (parts > 1 && threads > 1 && !large && !mp_pool_ready()) {
        first = mp_begin_alone(c, part, buffers, sizes, parts, &status);
        if (status) return status;
    }
    if (parts - first < 2 || threads < 2 || !mp_pool_take(threads))
        return mp_one_by_one(c, part, buffers, sizes, first, parts);
    mp_region region = {.caller = call, .part = part, .buffers = buffers, .sizes = sizes};
    region.first = first;
    region.failed = parts;
    region.job.part = mp_run_part;
    region.job.leave = mp_leave_region;
    region.job.slots = threads < MP_SLOTS ? threads : MP_SLOTS;
    for (int slot = 0; slot < MP_SLOTS; slot++) mp_calls[slot].region = NULL; /* a forked child has its parent's */
    forks = mp_pool_forks();
    call->region = &region;
    c->poll = mp_poll_in_region;
    c->share = mp_share_in_region;
    c->fuel = MP_FUEL_IN_REGION;
    region.context = *c;
    region.context.cursor = region.context.limit = NULL;
    mp_pool_begin(&region.job, parts - first);
    mp_pool_work(&region.job, 0);
    mp_pool_end();
    call->region = NULL;
    c->poll = mp_no_poll;
    c->share = mp_shared;
    c->fuel = fuel;
    if (forks != mp_pool_forks()) return MP_INTERRUPTED; /* what other threads had begun is lost in this process */
    if (region.status) {
        c->error_site = region.site;
        memcpy(c->error_values, region.values, sizeof region.values);
    }
    return region.status;
}
#else
static int mp_shared(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes, int64_t parts, int large) {
    (void)large;
    return mp_one_by_one(c, part, buffers, sizes, 0, parts);
}

static int mp_threads_now(void) { return 1; }
static int mp_set_threads(int count) { return (void)count, 1; }
#endif

#endif
