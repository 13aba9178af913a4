/* The contract between a compiled program and the runtime that calls it (docs/design.md, section 6).

   In: a context, the buffers, the sizes. Out: 0; failing site + 1; or one of the negative codes below. Example:

       static int entry(mp_ctx *c, void **buffers, const int64_t *sizes) {
           double *x = buffers[0], *y = buffers[1];
           for (int64_t i = 0; i < sizes[0]; i++) {
               if (mp_poll(c, 1)) return MP_INTERRUPTED;
               if (x[i] < 0) return mp_fail(c, 0, i, 0, 0, 0, 0);
               y[i] = x[i] + 1;
           }
           return 0;
       }

   No system header is included: a kernel of ten lines is compiled in the time that <math.h> alone would take. The same
   declarations for Cython text are in runtime/abi.py. A change of any field raises MP_ABI, which is part of the cache's
   key and is compared when an entry is made. */
#ifndef METAPHRASE_ABI_H
#define METAPHRASE_ABI_H

#define MP_ABI 5

#define MP_INTERRUPTED (-1) /* poll found a signal whose handler raised; the exception is set */
#define MP_NO_MEMORY (-2)   /* alloc, scratch or grow returned NULL */
#define MP_RAISED (-3)      /* a callback into Python raised; the exception is set */

typedef __INT64_TYPE__ int64_t;
typedef __INT32_TYPE__ int32_t;

typedef struct mp_ctx mp_ctx;
typedef void (*mp_for_blas)(int begins);
/* Sorts a line of n numbers where it lies, NaN last. Which of a table is for which type of number, by its name. */
typedef int (*mp_sorter)(void *line, __INTPTR_TYPE__ n, void *unused);
enum { MP_sort_i32, MP_sort_u32, MP_sort_i64, MP_sort_u64, MP_sort_f32, MP_sort_f64, MP_SORT_COUNT };
/* Transforms lines, as a loop of NumPy's ufuncs: of dims (lines, elements of the operand, elements of the result), operand,
   factor and result, their distances from line to line, and those from element to element of operand and result. */
typedef struct {
    void (*run)(char **args, const __INTPTR_TYPE__ *dims, const __INTPTR_TYPE__ *steps, void *data);
    void *data;
} mp_fourier;
enum { MP_fft, MP_ifft, MP_rfft_even, MP_rfft_odd, MP_irfft, MP_FOURIER_COUNT };
/* Part k of a loop whose parts may run side by side, each with a context of its own. */
typedef int (*mp_part)(mp_ctx *c, void **buffers, const int64_t *sizes, int64_t k);

struct mp_ctx {
    int64_t abi;
    int64_t fuel;    /* work left until the next poll; see mp_poll */
    volatile int64_t busy;    /* above 0: what runs now must not be left in the middle; see mp_begin */
    volatile int64_t pending; /* a signal came meanwhile */
    char *cursor;    /* free arena memory is [cursor, limit) */
    char *limit;
    void **blas;     /* table indexed by MP_dgemm and its like; filled before an entry that needs it is made */
    /* Between blas_alone(1) and blas_alone(0) each call of BLAS is done by the thread that calls: several may. NULL where
       the library's threads can't be told so. */
    mp_for_blas blas_alone;
    mp_sorter *sorters;   /* NumPy's, by MP_sort_f64 and its like, */
    int64_t sorters_below; /* for lines of fewer numbers; longer ones programs sort by digits */
    const mp_fourier *fouriers; /* NumPy's, in double precision, by MP_fft and its like; or NULL, or `run` is */
    int64_t threads; /* METAPHRASE_NUM_THREADS; 1 in a part of a loop */

    /* Refills fuel, looks for signals, and makes a signal that comes from now on end the call wherever it is. Nonzero:
       return MP_INTERRUPTED at once. */
    int (*poll)(mp_ctx *c);
    /* Memory of result `buffers[k]` whose size is known only now; also written into buffers[k]. NULL: no memory. */
    void *(*alloc)(mp_ctx *c, int64_t k, int64_t nbytes);
    /* The dims of such a result, before the entry returns. */
    void (*set_dims)(mp_ctx *c, int64_t k, int64_t rank, const int64_t *dims);
    /* Memory until the end of the call, aligned to 64 bytes. Call mp_scratch, which asks this only for a new chunk. */
    void *(*scratch)(mp_ctx *c, int64_t nbytes);
    /* A stack of residuals: gives memory of at least `needed` bytes holding the first `*capacity` bytes of `stack` (NULL
       at first, with *capacity 0), and writes the new capacity, which at least doubles. Freed at the end of the call.
       Call mp_grow. */
    void *(*grow)(mp_ctx *c, void *stack, int64_t *capacity, int64_t needed);
    /* scratch taken after `mark` is free again after `release(mark)`: for scratch inside a loop. */
    char *(*mark)(mp_ctx *c);
    void (*release)(mp_ctx *c, char *mark);
    /* An ordered effect: takes the GIL and calls the Python callable of `site`. For each operand args holds two pointers:
       its data and its dims (int64_t[rank]; unused for rank 0); then one pointer to the data of each result.
       Nonzero: return MP_RAISED at once. */
    int (*callback)(mp_ctx *c, int64_t site, void **args);
    /* Runs parts 0 to parts - 1 on several threads. Gives 0, or what the first part gave that failed. `large`: each is so
       much work that threads are woken even for two; 2: and they call BLAS, whose own threads are to wait. Call mp_share,
       mp_share_large or mp_share_of_blas. */
    int (*share)(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes, int64_t parts, int large);

    int64_t error_site;      /* written by mp_fail */
    int64_t error_iteration;
    int64_t error_values[16]; /* numbers for the message: an index and a bound, say; mp_fail writes the first four */
};

typedef int (*mp_entry)(mp_ctx *c, void **buffers, const int64_t *sizes);

#define MP_UNUSED __attribute__((unused))

/* Ask before loops, with the amount of their work in units of about a nanosecond, and in each round of a loop that no one
   knows the rounds of. */
static inline MP_UNUSED int mp_poll(mp_ctx *c, int64_t work) {
    c->fuel -= work;
    return __builtin_expect(c->fuel < 0, 0) ? c->poll(c) : 0;
}

/* Around calls that take locks or memory of their own, as BLAS does: a signal does not end the program between these two.
   mp_end: nonzero when one came and its handler raised; return MP_INTERRUPTED at once. */
static inline MP_UNUSED void mp_begin(mp_ctx *c) { c->busy++; }
static inline MP_UNUSED int mp_end(mp_ctx *c) {
    c->busy--;
    return __builtin_expect(c->pending != 0, 0) ? c->poll(c) : 0;
}

/* The product of two sizes; where it is more than any memory, a size that is refused. */
static inline MP_UNUSED int64_t mp_times(int64_t a, int64_t b) {
    const int64_t most = (int64_t)1 << 60;
    int64_t product;
    return __builtin_expect(__builtin_mul_overflow(a, b, &product) || product > most, 0) ? most : product;
}

/* The bytes of so many elements; none of a negative number, which a branch that is not taken may ask for: n - 3 of 2. */
static inline MP_UNUSED int64_t mp_bytes(int64_t count, int64_t size) {
    return count < 0 ? 0 : mp_times(count, size);
}

#ifdef MP_RED_ZONES /* under the address sanitizer: what is behind the memory that was asked for is forbidden */
void __asan_poison_memory_region(const volatile void *start, __SIZE_TYPE__ nbytes);
void __asan_unpoison_memory_region(const volatile void *start, __SIZE_TYPE__ nbytes);
static MP_UNUSED void mp_allow(const char *start, int64_t nbytes, const char *limit) {
    __asan_poison_memory_region(start, (__SIZE_TYPE__)(limit - start));
    __asan_unpoison_memory_region(start, (__SIZE_TYPE__)nbytes);
}
#define mp_forbid_header(start) __asan_poison_memory_region((start) - 64, 64) /* of a chunk or stack: context.pxi's */
#else
#define mp_allow(start, nbytes, limit)
#define mp_forbid_header(start)
#endif

static inline MP_UNUSED void *mp_scratch(mp_ctx *c, int64_t nbytes) {
    char *start = c->cursor;
    int64_t rounded = (nbytes + 64) & ~(int64_t)63; /* never 0, and equal buffers do not share low address bits */
    if (__builtin_expect(c->limit - start < rounded || nbytes < 0, 0)) {
        start = (char *)c->scratch(c, nbytes);
        if (!start) return start;
        mp_forbid_header(start);
        mp_allow(start, nbytes, c->limit);
        return start;
    }
    c->cursor = start + rounded;
    mp_allow(start, nbytes, c->limit);
    return start;
}

static inline MP_UNUSED void *mp_grow(mp_ctx *c, void *stack, int64_t *capacity, int64_t needed) {
    char *start = (char *)c->grow(c, stack, capacity, needed);
    if (!start) return start;
    mp_forbid_header(start);
    mp_allow(start, needed, start + *capacity);
    return start;
}

/* Memory of at least `needed` bytes: `old`, which has `*room`, where that is enough, else new scratch; from the second
   time on with as much again to spare. Used where a size is known on the way only, outside of inner loops: a call is
   smaller than the test. An array of no rows has a place too: NULL means that there is no memory. */
static __attribute__((noinline)) MP_UNUSED void *mp_room(mp_ctx *c, void *old, int64_t *room, int64_t needed) {
    if (old && needed <= *room) return old;
#ifdef MP_RED_ZONES
    *room = needed > 0 ? needed : 0;
#else
    *room = needed > 0 ? (old ? 2*needed : needed) : 0;
#endif
    return mp_scratch(c, *room);
}

/* Records why the program stops; its value is what the entry returns. Out of the way: programs fail in many places. */
static __attribute__((noinline, cold)) MP_UNUSED int mp_fail(mp_ctx *c, int64_t site, int64_t iteration, int64_t value0,
                                                             int64_t value1, int64_t value2, int64_t value3) {
    c->error_site = site;
    c->error_iteration = iteration;
    c->error_values[0] = value0;
    c->error_values[1] = value1;
    c->error_values[2] = value2;
    c->error_values[3] = value3;
    return (int)site + 1;
}

/* Parts 0 to parts - 1. Each is a call through the pointer, with one thread as well: a C compiler that sees two of them may
   compute them together, by other functions of vectors, and results would depend on the number of threads. */
static inline MP_UNUSED int mp_share(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes, int64_t parts) {
    return c->share(c, part, buffers, sizes, parts, 0);
}
static inline MP_UNUSED int mp_share_large(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes,
                                           int64_t parts) {
    return c->share(c, part, buffers, sizes, parts, 1);
}
static inline MP_UNUSED int mp_share_of_blas(mp_ctx *c, mp_part part, void **buffers, const int64_t *sizes,
                                             int64_t parts) {
    return c->share(c, part, buffers, sizes, parts, 2);
}

/* The order of the BLAS and LAPACK table. runtime/abi.py reads this list: it is written only here. */
#define MP_BLAS_ROUTINES(X)                                                                                           \
    X(sgemm) X(dgemm) X(cgemm) X(zgemm)                                                                               \
    X(sgemv) X(dgemv) X(cgemv) X(zgemv)                                                                               \
    X(sger) X(dger) X(cgeru) X(zgeru)                                                                                 \
    X(saxpy) X(daxpy) X(caxpy) X(zaxpy)                                                                               \
    X(sdot) X(ddot)                                                                                                   \
    X(sscal) X(dscal) X(cscal) X(zscal)                                                                               \
    X(snrm2) X(dnrm2)                                                                                                 \
    X(strsm) X(dtrsm) X(ctrsm) X(ztrsm)                                                                               \
    X(strsv) X(dtrsv) X(ctrsv) X(ztrsv)                                                                               \
    X(strmm) X(dtrmm) X(ctrmm) X(ztrmm)                                                                               \
    X(ssyrk) X(dsyrk) X(cherk) X(zherk)                                                                               \
    X(spotrf) X(dpotrf) X(cpotrf) X(zpotrf)                                                                           \
    X(sgetrf) X(dgetrf) X(cgetrf) X(zgetrf)                                                                           \
    X(sgetrs) X(dgetrs) X(cgetrs) X(zgetrs)                                                                           \
    X(sgesv) X(dgesv) X(cgesv) X(zgesv)                                                                               \
    X(sgeqrf) X(dgeqrf) X(cgeqrf) X(zgeqrf)                                                                           \
    X(sorgqr) X(dorgqr) X(cungqr) X(zungqr)                                                                           \
    X(ssyevd) X(dsyevd) X(cheevd) X(zheevd)                                                                           \
    X(sgesdd) X(dgesdd) X(cgesdd) X(zgesdd)                                                                           \
    X(sgeev) X(dgeev) X(cgeev) X(zgeev)

#define MP_BLAS_INDEX(name) MP_##name,
enum { MP_BLAS_ROUTINES(MP_BLAS_INDEX) MP_BLAS_COUNT };
#undef MP_BLAS_INDEX

#endif
