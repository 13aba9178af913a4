# Parts of a loop on several threads: what the context's `share` does.
#
# In: a part of a program, what it reads and writes, and how many parts there are. Out: all parts done, or what the first
# of them returned that failed, whichever thread came to it when. Example, of a loop over n in parts of 1000:
#
#     status = mp_share(c, sweep, buffers, sizes, (n + 999) // 1000)
#
# The caller's thread works in the caller's context; each other one has a context of its own, with an arena, and runs no
# Python. Where a signal's handler raises on the caller's thread, it leaves its part at once; the others stop at their next
# poll, and are waited for, since they write to the caller's arrays. So do parts behind one that fails. A child that a
# handler forks off in the midst has no other thread, and what those had begun is lost: an error.
#
# Whether threads are worth it for short jobs, the clock says: where data goes to and fro between two processors that share
# no cache, a loop may take three times as long as on one. So of each loop the time of a part is kept, alone and shared.

cdef extern from "pool.h" nogil:
    const int MP_SLOTS
    ctypedef struct mp_job:
        void (*part)(mp_job* job, int64_t k, int slot) noexcept nogil
        void (*leave)(mp_job* job, int slot) noexcept nogil
        int slots
    int64_t mp_pool_wake_from
    bint mp_pool_ready()
    bint mp_pool_worth(int64_t done, int64_t nanoseconds, int64_t left)
    void mp_pool_was_alone(int64_t begun, int64_t nanoseconds)
    bint mp_pool_take(int threads)
    void mp_pool_begin(mp_job* job, int64_t parts)
    void mp_pool_work(mp_job* job, int slot)
    void mp_pool_end()
    int mp_pool_forks()
    void mp_pool_lock()
    void mp_pool_unlock()

cdef extern from *:
    """
    #define mp_load(place) __atomic_load_n((place), __ATOMIC_RELAXED)
    #define mp_store(place, value) __atomic_store_n((place), (value), __ATOMIC_RELAXED)
    /* The caller's parts, then its waiting for those of others. Where that is long, and the caller has not polled yet, it
       does so now, so that signals come and Python's other threads run. */
    static int mp_work_and_wait(mp_ctx *c, mp_job *job, int (*first_poll)(mp_ctx *)) {
        mp_pool_work(job, 0);
        int status = !mp_pool_wait(MP_SPINS) && first_poll ? first_poll(c) : 0;
        if (!status) mp_pool_wait(-1);
        return status;
    }
    /* The same, which a signal may end in the middle: then MP_INTERRUPTED, and the others still run. `busy` is above 0
       before and after. */
    static __attribute__((noinline)) int mp_work_or_leave(mp_ctx *c, mp_job *job, int (*first_poll)(mp_ctx *)) {
        if (!mp_running || mp_running->context != c || !pthread_equal(pthread_self(), mp_main_thread))
            return mp_work_and_wait(c, job, first_poll);
        mp_run run;
        volatile int status = 0;
        run.context = c;
        run.outer = mp_running;
        if (!mp_mark_place(run.place)) {
            mp_running = &run;
            if (c->pending && c->busy == 1 && mp_run_handlers(c)) status = MP_INTERRUPTED;
            c->busy--;
            if (!status) status = mp_work_and_wait(c, job, first_poll);
        } else status = MP_INTERRUPTED;
        c->busy++;
        mp_running = run.outer;
        return status;
    }
    """
    int64_t mp_load(int64_t* place) nogil
    void mp_store(int64_t* place, int64_t value) nogil
    int mp_work_or_leave(mp_ctx* c, mp_job* job, int (*first_poll)(mp_ctx*) noexcept nogil) noexcept nogil

cdef struct Site:                                # a loop that is shared, by what does its parts
    int64_t part, jobs
    int64_t alone, shared                        # picoseconds a part, lately; 0: not known

cdef Site sites[256]
cdef int64_t SHORT = 1_000_000_000               # picoseconds of a job that is short
cdef int64_t TURNS = 256                         # one of so many jobs is done the other way, and more of the first
cdef int64_t FUEL_IN_REGION = 1_000_000      # up to a millisecond until a thread looks whether it shall stop
cdef Call* contexts = <Call*>calloc(MP_SLOTS, sizeof(Call))    # of the threads that take part in the one job there is

cdef struct Region:
    mp_job job                                   # first: the pointer to it is the pointer to the region
    mp_ctx* context                              # the caller's
    mp_part part
    void** buffers
    const int64_t* sizes
    int64_t first                                # the parts before it are done
    int64_t failed                               # the first part that failed, so far
    int status
    int64_t stopped                              # a signal's handler raised
    int (*poll)(mp_ctx*) noexcept nogil          # the caller's
    int64_t site, iteration
    int64_t values[16]


cdef int context_share(mp_ctx* c, mp_part part, void** buffers, const int64_t* sizes, int64_t parts,
                       int large) noexcept nogil:
    cdef Region region
    cdef int64_t first = 0, threads = c.threads, begun
    cdef int slot, forks, status = 0, alone = large == 2 and c.blas_alone != NULL
    cdef Site* site = site_of(part)
    if parts > 1 and threads > 1 and not alone and is_better_alone(site, parts):
        begun = mp_now()
        while first < parts and status == 0:
            status = part(c, buffers, sizes, first)
            first += 1
        note_time(&site.alone, mp_now() - begun, parts)
        return status
    if parts > 1 and threads > 1 and not large and not mp_pool_ready():
        first = begin_alone(c, part, buffers, sizes, parts, &status)
    if first == parts or status != 0:
        return status
    c.busy += 1
    if parts - first < 2 or threads < 2 or not mp_pool_take(<int>threads):    # another region runs, maybe around this one
        leave(c)
        while first < parts and status == 0:
            status = part(c, buffers, sizes, first)
            first += 1
        return status
    for slot in range(<int>(threads if threads < MP_SLOTS else MP_SLOTS)):
        contexts[slot].region = NULL             # a forked child has those of its parent's region
    region.job.part, region.job.leave, region.job.slots = run_part, leave_region, <int>threads
    region.context, region.part, region.buffers, region.sizes = c, part, buffers, sizes
    region.first, region.failed, region.status, region.stopped = first, parts, 0, 0
    forks, begun = mp_pool_forks(), mp_now()
    region.poll, c.poll, (<Call*>c).region, c.threads = c.poll, poll_in_region, &region, 1
    if alone:
        c.blas_alone(1)
    mp_pool_begin(&region.job, parts - first)
    if mp_work_or_leave(c, &region.job, region.poll if (<Call*>c).last_poll == 0 else NULL) != 0:
        mp_store(&region.stopped, 1)
    mp_pool_end()
    note_time(&site.shared, mp_now() - begun, parts - first)
    if alone:
        c.blas_alone(0)
    c.poll, (<Call*>c).region, c.threads = region.poll, NULL, threads
    if forks != mp_pool_forks():
        status = tell_of_fork(<Call*>c)
    elif region.stopped:
        status = MP_INTERRUPTED
    elif region.status != 0:
        status = region.status
        c.error_site, c.error_iteration, c.error_values = region.site, region.iteration, region.values
    leave(c)
    return status


cdef Site* site_of(mp_part part) noexcept nogil:
    cdef Site* site = &sites[(<size_t>part >> 4) % 256]
    if mp_load(&site.part) != <int64_t>part:
        mp_store(&site.part, <int64_t>part)
        mp_store(&site.jobs, 0)
        mp_store(&site.alone, 0)
        mp_store(&site.shared, 0)
    return site


cdef bint is_better_alone(Site* site, int64_t parts) noexcept nogil:
    """Whether a short job is done much sooner by this thread than it was by all; now and then it is done the other way."""
    cdef int64_t jobs = mp_load(&site.jobs) + 1, alone = mp_load(&site.alone), shared = mp_load(&site.shared)
    mp_store(&site.jobs, jobs)
    if shared == 0 or (alone or shared) > SHORT // parts or mp_pool_wake_from == 0:
        return False
    return (alone + alone // 4 <= shared) != (alone != 0 and (jobs % TURNS == 0 or jobs & (jobs - 1) == 0))


cdef void note_time(int64_t* time, int64_t nanoseconds, int64_t parts) noexcept nogil:
    """The least time that a part took; if they all take longer from now on, it follows by eighths."""
    cdef int64_t now = 1000 * nanoseconds // parts + 1, before = mp_load(time)
    if before != 0 and now > before + before // 8:   # what else the machine does only adds to it
        now = before + before // 8 + 1
    mp_store(time, now)


cdef int64_t begin_alone(mp_ctx* c, mp_part part, void** buffers, const int64_t* sizes, int64_t parts,
                         int* status) noexcept nogil:
    """Do parts on this thread until the rest is worth waking others for; the number of those that are done."""
    cdef int64_t done = 0, elapsed = 0, begun = mp_now()
    while done < parts and not (done and mp_pool_worth(done, elapsed, parts - done)):
        status[0] = part(c, buffers, sizes, done)
        if status[0] != 0:
            return done
        done += 1
        elapsed = mp_now() - begun
    if done == parts:
        mp_pool_was_alone(begun, elapsed)
    return done


cdef void run_part(mp_job* job, int64_t k, int slot) noexcept nogil:
    cdef Region* region = <Region*>job
    cdef mp_ctx* c = region.context
    cdef int status
    k += region.first
    if k > mp_load(&region.failed) or mp_load(&region.stopped) != 0:
        return
    if slot != 0:
        c = &contexts[slot].context
        if contexts[slot].region == NULL:
            open_in_region(&contexts[slot], region)
    (<Call*>c).part = k
    status = region.part(c, region.buffers, region.sizes, k)
    if status != 0:
        note_failure(region, c, k, status)


cdef void note_failure(Region* region, mp_ctx* c, int64_t k, int status) noexcept nogil:
    c.busy += 1                                  # what holds a lock must not be left
    mp_pool_lock()
    if k < region.failed:
        mp_store(&region.failed, k)
        region.status = status
        region.site, region.iteration, region.values = c.error_site, c.error_iteration, c.error_values
    mp_pool_unlock()
    c.busy -= 1


cdef void open_in_region(Call* call, Region* region) noexcept nogil:
    """A context for the parts that one thread takes: it makes no results and calls nothing in Python."""
    context_open(call, region.buffers, 0, 0, NULL, NULL)
    call.context.threads = 1
    call.context.poll = poll_in_region
    call.context.fuel = FUEL_IN_REGION
    call.region = region


cdef int poll_in_region(mp_ctx* c) noexcept nogil:
    cdef Region* region = <Region*>(<Call*>c).region
    if mp_load(&region.stopped) != 0 or mp_load(&region.failed) < (<Call*>c).part:
        return MP_INTERRUPTED
    if c == region.context:
        return region.poll(c)
    c.fuel = FUEL_IN_REGION
    return 0


cdef int tell_of_fork(Call* call) noexcept with gil:
    keep_error(call, RuntimeError(
        "a signal handler forked the process while threads shared a loop: the child lacks what the others had begun; "
        "fork elsewhere, or set METAPHRASE_NUM_THREADS=1"
    ))
    return MP_INTERRUPTED


cdef void leave_region(mp_job* job, int slot) noexcept nogil:
    cdef Call* call = &contexts[slot]
    if call.region != NULL:
        context_close(call)
        call.region = NULL
