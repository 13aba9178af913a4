# The context of one call: poll, result memory, arena, growing stacks, callbacks.
#
# In: an mp_ctx that lies first in a `Call`. Out: what runtime/abi.h promises of its function pointers. All
# but `callback` and `poll` run without the GIL. Example: `context_open(&call, ...)`, the entry,
# `context_close(&call)`.

cdef extern from *:
    """
    /* A lock-free shelf of idle arenas: taking and giving back are one atomic exchange each. */
    #define MP_SHELF 16
    static void *mp_shelf[MP_SHELF];
    static void *mp_take_arena(void) {
        for (int i = 0; i < MP_SHELF; i++)
            if (__atomic_load_n(&mp_shelf[i], __ATOMIC_RELAXED)) {
                void *arena = __atomic_exchange_n(&mp_shelf[i], NULL, __ATOMIC_ACQUIRE);
                if (arena) return arena;
            }
        return NULL;
    }
    static int mp_give_arena(void *arena) {
        for (int i = 0; i < MP_SHELF; i++) {
            void *empty = NULL; if (__atomic_compare_exchange_n(&mp_shelf[i], &empty, arena, 0,
            __ATOMIC_RELEASE, __ATOMIC_RELAXED))
                return 1;
        }
        return 0;
    }
    static void *mp_blas_table[MP_BLAS_COUNT];
    #include "blas_threads.h"
    #include "sorters.h"
    #include "fourier.h"
    #include <time.h>
    static int64_t mp_now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    }
    """
    void* mp_take_arena() nogil
    bint mp_give_arena(void* arena) nogil
    void* mp_blas_table[]
    void mp_find_blas_threads(const char* library)
    mp_for_blas mp_alone_or_null() nogil
    mp_sorter mp_sorters[]
    int64_t mp_sorters_below
    void mp_find_sorters()
    mp_fourier mp_fouriers[]
    void mp_take_fourier(int which, object ufunc)
    void mp_forget_fouriers()
    bint mp_transform(int which, void* x, void* y, Py_ssize_t n, Py_ssize_t m)
    int64_t mp_now() nogil

mp_find_sorters()

cdef int64_t FIRST_CHUNK = 1 << 16
cdef int64_t LARGEST_IDLE = 1 << 28          # an idle arena keeps at most one chunk of this size
cdef int64_t FIRST_FUEL = 20_000_000         # a millisecond to 50 until the first poll
cdef int64_t POLL_INTERVAL = 40_000_000      # what polls aim at, in ns

cdef struct Chunk:
    Chunk* previous
    char* start
    char* limit
    char* filled                             # how far, when the next chunk was begun

cdef struct Block:                           # a growing stack; its memory follows this header
    Block* previous
    Block* next
    int64_t size
    int64_t unused1
    int64_t unused2
    int64_t unused3
    int64_t unused4
    int64_t unused5

cdef struct Arena:
    Chunk* chunk                             # the newest
    Chunk* spare                             # released, kept for a loop that crosses a chunk's end
    Block* blocks                            # the stacks of this call, the newest first
    Block* idle                              # those of an earlier call, in the order it asked for them
    int64_t total                            # bytes in all chunks
    int64_t wanted                           # bytes that the last call took: the next first chunk has that size

cdef struct Dynamic:                         # a result of run-time size
    void* data
    int64_t nbytes
    int64_t rank                             # -1: not measured
    int64_t dims[32]

cdef struct Call:
    mp_ctx context                           # first: the pointer to it is the pointer to the call
    void** buffers
    Dynamic* dynamics                        # one a result, or NULL
    int64_t parameters
    int64_t results
    PyObject* callbacks                      # tuple of CallbackSite, borrowed from the entry
    PyObject* error                          # owned: the exception of a poll or callback
    Arena* arena
    int64_t fuel_refill
    int64_t last_poll
    bint released                            # the GIL is released during the call
    void* thread_state                       # of the thread that called with the GIL, which a poll released
    void* region                             # of a thread that takes part in one: share.pxi's
    int64_t part                             # of it, which runs now


cdef bint measuring = False
cdef int64_t most_scratch = 0                # the most bytes of scratch and stacks that a call has held at a time


def measure_scratch(bint on):
    """Begin or end to look how much scratch calls hold; gives the most bytes that one held at a time until now."""
    global measuring, most_scratch
    found = most_scratch
    measuring, most_scratch = on, 0
    return found


cdef void note_scratch(mp_ctx* c, Arena* arena) noexcept nogil:
    global most_scratch
    cdef Chunk* chunk = arena.chunk
    cdef Block* block = arena.blocks
    cdef int64_t held = 0
    if c.cursor != NULL and chunk != NULL:
        held = c.cursor - chunk.start
        chunk = chunk.previous
        while chunk != NULL:
            held += chunk.filled - chunk.start
            chunk = chunk.previous
    while block != NULL:
        held += block.size
        block = block.next
    if held > most_scratch:
        most_scratch = held


cdef Chunk* new_chunk(Arena* arena, int64_t nbytes) noexcept nogil:
    cdef Chunk* chunk
    cdef void* memory = NULL
    cdef int64_t size = FIRST_CHUNK
    if arena.spare != NULL and arena.spare.limit - arena.spare.start >= nbytes:
        chunk = arena.spare
        arena.spare = NULL
    else:
        if arena.chunk == NULL and arena.wanted > size:
            size = arena.wanted
        if arena.chunk != NULL and 2 * (arena.chunk.limit - arena.chunk.start) <= LARGEST_IDLE:
            size = 2 * (arena.chunk.limit - arena.chunk.start)
        if size < nbytes:
            size = nbytes
        if posix_memalign(&memory, 64, <size_t>(size + 64)) != 0:
            return NULL
        chunk = <Chunk*>memory
        chunk.start = <char*>memory + 64     # the header has a cache line of its own
        chunk.limit = chunk.start + size
        arena.total += size
    chunk.previous = arena.chunk
    arena.chunk = chunk
    return chunk


cdef Arena* arena_of(Call* call) noexcept nogil:
    if call.arena == NULL:
        call.arena = <Arena*>mp_take_arena()
        if call.arena == NULL:
            call.arena = <Arena*>calloc(1, sizeof(Arena))
    return call.arena


cdef void* context_scratch(mp_ctx* c, int64_t nbytes) noexcept nogil:
    c.busy += 1
    cdef void* memory = new_scratch(c, nbytes)
    leave(c)
    return memory


cdef void* new_scratch(mp_ctx* c, int64_t nbytes) noexcept nogil:
    cdef Call* call = <Call*>c
    cdef Arena* arena = arena_of(call)
    cdef Chunk* chunk
    cdef int64_t rounded
    if nbytes < 0 or nbytes > (<int64_t>1 << 56) or arena == NULL:
        return NULL
    rounded = (nbytes + 64) & ~<int64_t>63
    if c.cursor == NULL and arena.chunk != NULL and arena.chunk.limit - arena.chunk.start >= rounded:
        chunk = arena.chunk                  # the chunk that an earlier call left
    else:
        if arena.chunk != NULL:
            arena.chunk.filled = arena.chunk.start if c.cursor == NULL else c.cursor
        chunk = new_chunk(arena, rounded)
        if chunk == NULL:
            return NULL
    c.cursor = chunk.start + rounded
    c.limit = chunk.limit
    return chunk.start


cdef char* context_mark(mp_ctx* c) noexcept nogil:
    return c.cursor


cdef void context_release(mp_ctx* c, char* mark) noexcept nogil:
    c.busy += 1
    release_scratch(c, mark)
    leave(c)


cdef void release_scratch(mp_ctx* c, char* mark) noexcept nogil:
    cdef Arena* arena = (<Call*>c).arena
    cdef Chunk* chunk
    if arena == NULL or c.cursor == NULL:
        return
    if measuring:
        note_scratch(c, arena)
    while arena.chunk != NULL and not (arena.chunk.start <= mark and mark <= arena.chunk.limit):
        if mark == NULL and arena.chunk.previous == NULL:
            break                            # everything is released: the first chunk stays
        chunk = arena.chunk
        arena.chunk = chunk.previous
        if arena.spare == NULL:
            arena.spare = chunk
        elif arena.spare.limit - arena.spare.start < chunk.limit - chunk.start:
            drop_chunk(arena, arena.spare)
            arena.spare = chunk
        else:
            drop_chunk(arena, chunk)
    if arena.chunk == NULL:
        c.cursor = c.limit = NULL
    else:
        c.cursor = arena.chunk.start if mark == NULL else mark
        c.limit = arena.chunk.limit


cdef void drop_chunk(Arena* arena, Chunk* chunk) noexcept nogil:
    arena.total -= chunk.limit - chunk.start
    free(chunk)


cdef void link_block(Arena* arena, Block* block) noexcept nogil:
    block.previous = NULL
    block.next = arena.blocks
    if arena.blocks != NULL:
        arena.blocks.previous = block
    arena.blocks = block


cdef void free_blocks(Block* block) noexcept nogil:
    cdef Block* following
    while block != NULL:
        following = block.next
        free(block)
        block = following


cdef void* context_grow(mp_ctx* c, void* stack, int64_t* capacity, int64_t needed) noexcept nogil:
    c.busy += 1
    cdef void* memory = grown(c, stack, capacity, needed)
    leave(c)
    return memory


cdef void* grown(mp_ctx* c, void* stack, int64_t* capacity, int64_t needed) noexcept nogil:
    cdef Arena* arena = arena_of(<Call*>c)
    cdef Block* old = NULL
    cdef Block* block
    cdef int64_t size = 2 * capacity[0]
    if arena == NULL or needed < 0 or needed > (<int64_t>1 << 56):
        return NULL
    if size < 4096:
        size = 4096
    if size < needed:
        size = needed
    if stack != NULL:
        if capacity[0] >= needed:
            return stack                     # it came from an earlier call with more room than was asked for
        old = <Block*>stack - 1
    elif arena.idle != NULL and arena.idle.size >= needed and not measuring:
        block = arena.idle                   # as large as it became in an earlier call: it need not grow
        arena.idle = block.next
        link_block(arena, block)
        capacity[0] = block.size
        return block + 1
    block = <Block*>realloc(old, <size_t>(size + sizeof(Block)))
    if block == NULL:
        return NULL                          # the old block is still in the list and is freed with the call
    block.size = size
    if old == NULL:
        link_block(arena, block)
    else:                                    # it may have moved: its neighbours learn the new address
        if block.next != NULL:
            block.next.previous = block
        if block.previous != NULL:
            block.previous.next = block
        else:
            arena.blocks = block
    capacity[0] = size
    return block + 1


cdef void arena_reset(Arena* arena) noexcept nogil:
    """Keep the stacks of the last call that had any, the oldest first, and one chunk, as large as all that
    this call took together; each up to LARGEST_IDLE bytes."""
    cdef Block* block
    cdef Chunk* chunk
    cdef bint several
    cdef int64_t kept = 0
    if arena.blocks != NULL:
        free_blocks(arena.idle)
        arena.idle = NULL
    while arena.blocks != NULL:
        block = arena.blocks
        arena.blocks = block.next
        if kept + block.size <= LARGEST_IDLE:
            kept += block.size
            block.next = arena.idle
            arena.idle = block
        else:
            free(block)
    several = arena.spare != NULL or (arena.chunk != NULL and arena.chunk.previous != NULL)
    free(arena.spare)
    arena.spare = NULL
    if several or arena.total > LARGEST_IDLE:
        arena.wanted = arena.total if arena.total <= LARGEST_IDLE else LARGEST_IDLE
        arena.total = 0
        while arena.chunk != NULL:
            chunk = arena.chunk
            arena.chunk = chunk.previous
            free(chunk)


cdef void arena_free(Arena* arena) noexcept nogil:
    arena_reset(arena)
    free_blocks(arena.idle)
    if arena.chunk != NULL:
        free(arena.chunk)
    free(arena)


cdef void* context_alloc(mp_ctx* c, int64_t k, int64_t nbytes) noexcept nogil:
    """malloc, because that is what NumPy's default handler frees: the array will own this memory."""
    c.busy += 1
    cdef void* memory = result_memory(c, k, nbytes)
    leave(c)
    return memory


cdef void* result_memory(mp_ctx* c, int64_t k, int64_t nbytes) noexcept nogil:
    cdef Call* call = <Call*>c
    cdef int64_t result = k - call.parameters
    cdef void* memory
    if result < 0 or result >= call.results or call.dynamics == NULL or nbytes < 0:
        return NULL
    memory = malloc(<size_t>(nbytes if nbytes > 0 else 1))
    if memory != NULL:
        free(call.dynamics[result].data)     # asked for twice: the first was a guess
        call.dynamics[result].data = memory
        call.dynamics[result].nbytes = nbytes
        call.buffers[k] = memory
    return memory


cdef void context_set_dims(mp_ctx* c, int64_t k, int64_t rank, const int64_t* dims) noexcept nogil:
    cdef Call* call = <Call*>c
    cdef int64_t result = k - call.parameters
    cdef int64_t axis
    if result < 0 or result >= call.results or call.dynamics == NULL or rank < 0 or rank > 32:
        return
    call.dynamics[result].rank = rank
    for axis in range(rank):
        call.dynamics[result].dims[axis] = dims[axis]


cdef int context_poll(mp_ctx* c) noexcept nogil:
    """Refill the fuel so that polls come about every 40 ms, let other threads run from now on, and on the main
    thread, which runs signal handlers, look for signals. The first poll makes signals come by themselves."""
    cdef Call* call = <Call*>c
    cdef int64_t now = mp_now()
    cdef int64_t elapsed = now - call.last_poll
    cdef bint is_first = call.last_poll == 0
    cdef int status = 0
    if not is_first:
        if elapsed < POLL_INTERVAL // 2 and call.fuel_refill < (<int64_t>1 << 50):
            call.fuel_refill *= 2
        elif elapsed > 2 * POLL_INTERVAL:
            call.fuel_refill = <int64_t>(call.fuel_refill * (<double>POLL_INTERVAL / elapsed)) + 1
    call.last_poll = now
    c.fuel = call.fuel_refill
    c.busy += 1
    if not call.released:
        call.released = True
        call.thread_state = PyEval_SaveThread()
    if is_first and PyThread_get_thread_ident() == main_thread:
        status = run_handlers(c)
    leave(c)
    return status


cdef void keep_error(Call* call, object error) noexcept:
    if call.error == NULL:
        Py_INCREF(error)
        call.error = <PyObject*>error


cdef int context_callback(mp_ctx* c, int64_t site, void** args) noexcept nogil:
    c.busy += 1
    cdef int status = call_back(<Call*>c, site, args)
    leave(c)
    return status


cdef int call_back(Call* call, int64_t site, void** args) noexcept with gil:
    try:
        run_callback((<tuple><object>call.callbacks)[site], args)
        if mp_hooked != 0 and PyThread_get_thread_ident() == main_thread:
            watch_signals()                  # it may have given a signal another handler
        return 0
    except BaseException as error:
        keep_error(call, error)
        return MP_RAISED


cdef int run_callback(object site, void** args) except -1:
    """Copies in, because the callable may keep them; results copied out, converted to the dtype that was
    promised."""
    cdef Py_ssize_t at = 0
    cdef int64_t* dims
    cdef cnp.ndarray array
    operands = []
    for dtype, rank in site.operands:
        dims = <int64_t*>args[at + 1]
        array = np.empty(tuple([dims[axis] for axis in range(<Py_ssize_t>rank)]), dtype)
        memcpy(cnp.PyArray_DATA(array), args[at], <size_t>array.nbytes)
        operands.append(array if rank else array[()])
        at += 2
    returned = site.function(*operands)
    if site.results:
        values = returned if isinstance(returned, (tuple, list)) else (returned,)
        if len(values) != len(site.results):
            raise ValueError(f"a callback returned {len(values)} values where {len(site.results)} were promised")
        for (dtype, rank), value in zip(site.results, values):
            dims = <int64_t*>args[at + 1]
            array = promised(value, dtype, tuple([dims[axis] for axis in range(<Py_ssize_t>rank)]))
            memcpy(args[at], cnp.PyArray_DATA(array), <size_t>array.nbytes)
            at += 2
    return 0


cdef inline void context_open(Call* call, void** buffers, int64_t parameters, int64_t results, Dynamic* dynamics,
                              PyObject* callbacks) noexcept nogil:
    cdef mp_ctx* c = &call.context
    c.abi = MP_ABI
    c.fuel = FIRST_FUEL
    c.busy = c.pending = 0
    c.cursor = c.limit = NULL
    c.blas = mp_blas_table
    c.blas_alone = mp_alone_or_null()
    c.sorters = mp_sorters
    c.sorters_below = mp_sorters_below
    c.fouriers = mp_fouriers
    c.threads = thread_count
    c.poll = context_poll
    c.alloc = context_alloc
    c.set_dims = context_set_dims
    c.scratch = context_scratch
    c.grow = context_grow
    c.mark = context_mark
    c.release = context_release
    c.callback = context_callback
    c.share = context_share
    c.error_site = c.error_iteration = 0
    call.buffers = buffers
    call.dynamics = dynamics
    call.parameters = parameters
    call.results = results
    call.callbacks = callbacks
    call.error = NULL
    call.arena = NULL
    call.fuel_refill = FIRST_FUEL
    call.last_poll = 0
    call.released = False
    call.thread_state = NULL
    call.region = NULL


cdef inline void context_close(Call* call) noexcept nogil:
    """Give the arena back and free what no array has taken over. The error, if any, stays with its reader."""
    cdef int64_t k
    if call.arena != NULL:
        if measuring:
            note_scratch(&call.context, call.arena)
        arena_reset(call.arena)
        if not mp_give_arena(call.arena):
            arena_free(call.arena)
        call.arena = NULL
    if call.dynamics != NULL:
        for k in range(call.results):
            free(call.dynamics[k].data)
            call.dynamics[k].data = NULL
