/* Threads that share the parts of a job with the thread that has it.

   In: a job, which says what to do with part k, and how many parts there are. Out: every part done once. Example:

       mp_job job = {.part = square, .slots = 2};
       if (mp_pool_take(2)) { mp_pool_begin(&job, parts); mp_pool_work(&job, 0); mp_pool_end(); }

   No thread is started before the first job. The caller works, too, and never waits for a thread that has not begun, so
   that a busy machine costs nothing. Each thread has its own stretch of parts, the same one in every job of as many parts,
   and takes from the others' when its own are done: what they would work on is in their caches, so it waits a microsecond
   (MP_GRACE) where the other one has begun and will soon be done. Between jobs a thread looks out for the next one for a
   short while (MP_SPINS), then sleeps. To wake it costs the caller about 10 microseconds, and it comes some 30 later: so
   who has a job while all sleep begins it alone and looks at the clock (mp_pool_worth). A thread that wakes on the caller's processor,
   where the system likes to put it, moves to another one, and stays away: it would run in the caller's stead. One job at a
   time: who finds the pool taken does its parts alone. Threads block all signals. A child process after a fork has no
   threads, and starts its own. */
#ifndef METAPHRASE_POOL_H
#define METAPHRASE_POOL_H

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    MP_SLOTS = 64,
    MP_SPINS = 4000, /* some 50 microseconds */
    MP_GRACE = 100,
    MP_OFTEN = 2,    /* so many times as long as is worth it, in small jobs together, and threads are woken for the next */
    MP_APART = 4     /* small jobs so many times as long apart are not together */
};

typedef struct { _Atomic int64_t next; int64_t begin, end; char line[40]; } mp_stretch; /* a cache line */

typedef struct mp_job mp_job;
struct mp_job {
    void (*part)(mp_job *job, int64_t k, int slot);
    void (*leave)(mp_job *job, int slot); /* behind the last part of a thread that is not the caller */
    int slots;                            /* threads that take part: slot 0 is the caller */
    mp_stretch stretches[MP_SLOTS];
};

static struct {
    _Atomic(mp_job *) job;
    _Atomic int jobs;    /* so many were begun; threads that sleep wait for another one */
    _Atomic int inside;  /* threads that may be looking at `job` */
    _Atomic int taken;
    _Atomic int asleep;
    _Atomic int64_t alone; /* nanoseconds of jobs that were done while all slept */
    _Atomic int64_t until; /* the time when the last of them ended */
    _Atomic int processor; /* of the caller */
    _Atomic int threads;
    int forks;           /* so many times this process is a child of the one that began */
    int hooked;
    pthread_mutex_t lock;
} mp_pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline int mp_pool_forks(void) { return mp_pool.forks; }
static inline void mp_pool_lock(void) { pthread_mutex_lock(&mp_pool.lock); }
static inline void mp_pool_unlock(void) { pthread_mutex_unlock(&mp_pool.lock); }

static inline void mp_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t mp_pool_wake_from = 60000; /* nanoseconds of work that are worth waking threads for */

/* Whether parts are left of a stretch; for a moment those are another thread's that has begun with it. */
static int mp_pool_left(mp_stretch *s, int others) {
    int64_t next = atomic_load_explicit(&s->next, memory_order_relaxed);
    for (int n = 0; others && n < MP_GRACE && s->begin < next && next < s->end; n++) {
        mp_pause();
        next = atomic_load_explicit(&s->next, memory_order_relaxed);
    }
    return next < s->end;
}

/* The thread's own parts first, then the others'. */
static void mp_pool_work(mp_job *job, int slot) {
    for (int turn = 0; turn < job->slots; turn++) {
        mp_stretch *s = &job->stretches[(slot + turn) % job->slots];
        if (!mp_pool_left(s, turn)) continue;
        while (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end) {
            int64_t k = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
            if (k < s->end) job->part(job, k, slot);
        }
    }
}

/* To another of these processors than this one, if there is any. */
static void mp_pool_move(int processor, const cpu_set_t *all) {
    cpu_set_t others = *all;
    CPU_CLR(processor, &others);
    if (CPU_COUNT(&others)) sched_setaffinity(0, sizeof others, &others);
}

static void mp_pool_sleep(int seen) {
    atomic_fetch_add(&mp_pool.asleep, 1);
    while (atomic_load(&mp_pool.jobs) == seen)
        syscall(SYS_futex, &mp_pool.jobs, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    atomic_fetch_sub(&mp_pool.asleep, 1);
}

static void mp_pool_wake(void) {
    if (atomic_load(&mp_pool.asleep)) syscall(SYS_futex, &mp_pool.jobs, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *mp_pool_thread(void *number) {
    int slot = (int)(intptr_t)number, seen = 0;
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all)) CPU_ZERO(&all);
    for (;;) {
        for (int n = 0; n < MP_SPINS && atomic_load(&mp_pool.jobs) == seen; n++) mp_pause();
        if (atomic_load(&mp_pool.jobs) == seen) mp_pool_sleep(seen);
        seen = atomic_load(&mp_pool.jobs);
        int processor = sched_getcpu();
        if (processor >= 0 && processor == atomic_load(&mp_pool.processor)) mp_pool_move(processor, &all);
        atomic_fetch_add(&mp_pool.inside, 1);
        mp_job *job = atomic_load(&mp_pool.job);
        if (job && slot < job->slots) {
            mp_pool_work(job, slot);
            job->leave(job, slot);
        }
        atomic_fetch_sub(&mp_pool.inside, 1);
    }
    return NULL;
}

static void mp_pool_in_child(void) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    mp_pool.lock = lock;
    mp_pool.threads = 0;
    mp_pool.forks++;
    mp_pool.job = NULL;
    mp_pool.inside = mp_pool.taken = mp_pool.asleep = 0;
}

/* Whether a job may begin, for as many threads as asked, the caller included: none may while another one runs. What was
   taken is given back by mp_pool_end. */
static int mp_pool_take(int threads) {
    int free_ = 0;
    if (!atomic_compare_exchange_strong(&mp_pool.taken, &free_, 1)) return 0;
    if (threads > MP_SLOTS) threads = MP_SLOTS;
    if (mp_pool.threads < threads - 1) {
        sigset_t all, before;
        pthread_attr_t detached;
        if (!mp_pool.hooked) mp_pool.hooked = !pthread_atfork(NULL, NULL, mp_pool_in_child);
        sigfillset(&all);
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (mp_pool.threads < threads - 1) {
            pthread_t thread;
            if (pthread_create(&thread, &detached, mp_pool_thread, (void *)(intptr_t)(mp_pool.threads + 1))) break;
            mp_pool.threads++;
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&detached);
    }
    return 1;
}

/* Whether the next job begins with all threads at once: they are awake, or there have been many small jobs. */
static inline int mp_pool_ready(void) {
    return (mp_pool.threads && !atomic_load(&mp_pool.asleep))
        || atomic_load(&mp_pool.alone) >= MP_OFTEN * mp_pool_wake_from;
}

/* Whether what is left of a job, of which `done` parts took so many nanoseconds, is worth waking threads for. */
static inline int mp_pool_worth(int64_t done, int64_t nanoseconds, int64_t left) {
    return left > 1 && (double)nanoseconds / (double)done * (double)left >= (double)mp_pool_wake_from;
}

static inline void mp_pool_was_alone(int64_t begun, int64_t nanoseconds) {
    if (begun - atomic_load(&mp_pool.until) > MP_APART * mp_pool_wake_from) atomic_store(&mp_pool.alone, 0);
    atomic_fetch_add(&mp_pool.alone, nanoseconds);
    atomic_store(&mp_pool.until, begun + nanoseconds);
}

static void mp_pool_begin(mp_job *job, int64_t parts) {
    if (job->slots > mp_pool.threads + 1) job->slots = mp_pool.threads + 1;
    int64_t begin = 0;
    for (int s = 0; s < job->slots; s++) { /* the caller, which is there, has one more where they don't go up evenly */
        atomic_init(&job->stretches[s].next, begin);
        job->stretches[s].begin = begin;
        begin += parts / job->slots + (s < parts % job->slots);
        job->stretches[s].end = begin;
    }
    atomic_store(&mp_pool.processor, sched_getcpu());
    atomic_store(&mp_pool.job, job);
    atomic_fetch_add(&mp_pool.jobs, 1);
    atomic_store(&mp_pool.alone, 0);
    mp_pool_wake();
}

/* Wait for the threads that have begun, or only so many turns; no other one begins. Whether all have ended. It may be
   left, and called again. */
static int mp_pool_wait(int turns) {
    struct timespec a_while = {0, 50000};
    atomic_store(&mp_pool.job, NULL);
    for (int n = 0; atomic_load(&mp_pool.inside); n += n < 2 * MP_SPINS) {
        if (n == turns) return 0;
        if (n < MP_SPINS) mp_pause();
        else if (n < 2 * MP_SPINS) sched_yield();
        else nanosleep(&a_while, NULL);
    }
    return 1;
}

static void mp_pool_end(void) {
    mp_pool_wait(-1);
    atomic_store(&mp_pool.taken, 0);
}

#endif
