/* What runs the calls of a C library: the context of abi.h with malloc and printf, and nothing of Python.

   In: a call's buffers. Out: the program's status, and for one that failed what it has to say. Example, of the functions
   that pysrc/aot/c_functions.py writes:

       void *mp_buffers[] = {&e, &M, result};
       mp_open(&mp_run, mp_buffers, 2, NULL, NULL);
       mp_status = orbits_period_0(&mp_run.context, mp_buffers, mp_sizes);
       mp_status = mp_close(&mp_run, mp_status, error, orbits_period_0_error);

   All of it is static: each library has its own, its threads too (library_threads.h). */
#ifndef METAPHRASE_LIBRARY_H
#define METAPHRASE_LIBRARY_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* of sched.h: processors */
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metaphrase.h"
#include "abi.h"

#define MP_ALIGN 64
#define MP_FIRST_CHUNK 65536

typedef struct mp_chunk { /* of memory until the end of the call, which follows this header */
    struct mp_chunk *previous;
    char *start, *limit;
} mp_chunk;

typedef struct mp_stack { /* a growing stack; its memory follows this header */
    struct mp_stack *previous, *next;
} mp_stack;

typedef struct {
    mp_ctx context; /* first: the pointer to it is the pointer to the call */
    void **buffers;
    int64_t parameters; /* buffers[parameters] is the first result */
    int64_t **dims;     /* of each result of run-time size, where its dims go; else NULL */
    mp_chunk *chunk, *spare;
    mp_stack *stacks;
    struct mp_region *region; /* the loop that threads share, and which of its parts runs here */
    int64_t part;
} mp_call;

/* What an error of a program is, by its site. */
typedef void (*mp_describe)(metaphrase_error *error, int64_t site, const int64_t *values);

static int mp_no_poll(mp_ctx *c) {
    c->fuel = INT64_MAX;
    return 0;
}

static void *mp_aligned(size_t nbytes) {
    size_t rounded = (nbytes + MP_ALIGN - 1) / MP_ALIGN * MP_ALIGN;
    return aligned_alloc(MP_ALIGN, rounded);
}

static void *mp_new_scratch(mp_ctx *c, int64_t nbytes) {
    mp_call *call = (mp_call *)c;
    mp_chunk *chunk = call->spare;
    int64_t rounded = (nbytes + 64) & ~(int64_t)63;
    if (nbytes < 0 || nbytes > (int64_t)1 << 56) return NULL;
    if (chunk && chunk->limit - chunk->start >= rounded) {
        call->spare = NULL;
    } else {
        int64_t size = call->chunk ? 2 * (call->chunk->limit - call->chunk->start) : MP_FIRST_CHUNK;
        if (size > (int64_t)1 << 28) size = (int64_t)1 << 28;
        if (size < rounded) size = rounded;
        chunk = mp_aligned((size_t)size + MP_ALIGN);
        if (!chunk) return NULL;
        chunk->start = (char *)chunk + MP_ALIGN;
        chunk->limit = chunk->start + size;
    }
    chunk->previous = call->chunk;
    call->chunk = chunk;
    c->cursor = chunk->start + rounded;
    c->limit = chunk->limit;
    return chunk->start;
}

static char *mp_marked(mp_ctx *c) { return c->cursor; }

/* What was taken since `mark` is free again. One chunk is kept for a loop that crosses a chunk's end. */
static void mp_released(mp_ctx *c, char *mark) {
    mp_call *call = (mp_call *)c;
    mp_chunk *chunk;
    while ((chunk = call->chunk) && !(mark && chunk->start <= mark && mark <= chunk->limit)) {
        call->chunk = chunk->previous;
        free(call->spare);
        call->spare = chunk;
    }
    c->cursor = call->chunk ? mark : NULL;
    c->limit = call->chunk ? call->chunk->limit : NULL;
}

static void *mp_grown(mp_ctx *c, void *stack, int64_t *capacity, int64_t needed) {
    mp_call *call = (mp_call *)c;
    mp_stack *old = stack ? (mp_stack *)((char *)stack - MP_ALIGN) : NULL, *made;
    int64_t size = 2 * *capacity;
    if (size < 4096) size = 4096;
    if (size < needed) size = needed;
    if (needed < 0 || needed > (int64_t)1 << 56) return NULL;
    made = mp_aligned((size_t)size + MP_ALIGN);
    if (!made) return NULL; /* the old one is freed with the call */
    if (old) {
        memcpy((char *)made + MP_ALIGN, stack, (size_t)*capacity);
        *made = *old;
        free(old);
    } else {
        made->previous = NULL;
        made->next = call->stacks;
    }
    if (made->next) made->next->previous = made;
    if (made->previous) made->previous->next = made;
    else call->stacks = made;
    *capacity = size;
    return (char *)made + MP_ALIGN;
}

static void *mp_result(mp_ctx *c, int64_t k, int64_t nbytes) {
    mp_call *call = (mp_call *)c;
    if (nbytes < 0) return NULL;
    free(call->buffers[k]); /* asked for twice: the first was a guess */
    return call->buffers[k] = malloc(nbytes ? (size_t)nbytes : 1);
}

static void mp_measured(mp_ctx *c, int64_t k, int64_t rank, const int64_t *dims) {
    mp_call *call = (mp_call *)c;
    memcpy(call->dims[k - call->parameters], dims, (size_t)rank * sizeof *dims);
}

/* The memory of a call, but for its results. */
static void mp_free(mp_call *call) {
    for (mp_stack *stack = call->stacks, *next; stack; stack = next) {
        next = stack->next;
        free(stack);
    }
    mp_released(&call->context, NULL);
    free(call->spare);
}

#include "library_threads.h"

/* `dims`: for each result of run-time size where its dims go. `effect`: what prints; NULL where nothing does. */
static MP_UNUSED void mp_open(mp_call *call, void **buffers, int64_t parameters, int64_t **dims,
                              int (*effect)(mp_ctx *, int64_t, void **)) {
    memset(call, 0, sizeof *call);
    call->buffers = buffers;
    call->parameters = parameters;
    call->dims = dims;
    call->context.abi = MP_ABI;
    call->context.fuel = INT64_MAX;
    call->context.threads = mp_threads_now();
    call->context.poll = mp_no_poll;
    call->context.alloc = mp_result;
    call->context.set_dims = mp_measured;
    call->context.scratch = mp_new_scratch;
    call->context.grow = mp_grown;
    call->context.mark = mp_marked;
    call->context.release = mp_released;
    call->context.callback = effect;
    call->context.share = mp_shared;
}

static MP_UNUSED void mp_says(metaphrase_error *error, const char *exception, const char *file, int line,
                              const char *format, ...) {
    va_list values;
    error->exception = exception;
    error->file = file;
    error->line = line;
    va_start(values, format);
    vsnprintf(error->message, sizeof error->message, format, values);
    va_end(values);
}

/* The description of what no site is known for. */
static MP_UNUSED void mp_failed(metaphrase_error *error, int64_t site, const int64_t *values) {
    (void)values;
    mp_says(error, "RuntimeError", "", 0, "the program failed at site %lld", (long long)site);
}

/* The end of a call: its memory is free, and its error is described. */
static MP_UNUSED int mp_close(mp_call *call, int status, metaphrase_error *error, mp_describe describe) {
    metaphrase_error unread;
    if (!error) error = &unread;
    mp_free(call);
    if (status == 0) return METAPHRASE_OK;
    if (status == MP_INTERRUPTED) {
        mp_says(error, "RuntimeError", "", 0, "a signal handler forked the process while threads shared a loop");
        return METAPHRASE_RAISED;
    }
    if (status < 0) {
        mp_says(error, "MemoryError", "", 0, "there is not enough memory");
        return METAPHRASE_NO_MEMORY;
    }
    describe(error, call->context.error_site, call->context.error_values);
    return METAPHRASE_RAISED;
}

/* A size for which there is no program. */
static MP_UNUSED int mp_refused(metaphrase_error *error, const char *condition) {
    metaphrase_error unread;
    mp_says(error ? error : &unread, "TypeError", "", 0, "it is compiled for sizes with %s", condition);
    return METAPHRASE_REFUSED;
}

/* Whether a run stopped since a list was full: then it has four times the room, and the run begins anew. */
static MP_UNUSED bool mp_is_full(int status, const metaphrase_error *error, const char *list, int64_t *room) {
    if (status != METAPHRASE_RAISED || strcmp(error->exception, "ListFull") || strcmp(error->message, list)) return false;
    if (*room > (int64_t)1 << 40) return false;
    *room *= 4;
    return true;
}

/* ---- numbers of messages, as Python writes them ---- */

typedef struct { char text[64]; } mp_text;

static MP_UNUSED double mp_double(int64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The fewest digits that read back as the same number, of a double or (`single`) a float; `repr` of Python's floats. */
static MP_UNUSED mp_text mp_shown(double value, bool single, bool whole) {
    mp_text shown;
    char digits[40];
    int exponent = 0, places = 1;
    if (value != value) return memcpy(shown.text, "nan", 4), shown;
    if (value - value != 0) return strcpy(shown.text, value > 0 ? "inf" : "-inf"), shown;
    for (; places < 18; places++) {
        snprintf(digits, sizeof digits, "%.*e", places - 1, value);
        if (single ? strtof(digits, NULL) == (float)value : strtod(digits, NULL) == value) break;
    }
    exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 16) {
        char *e = strchr(digits, 'e');
        *e = 0;
        snprintf(shown.text, sizeof shown.text, "%se%c%02d", digits, exponent < 0 ? '-' : '+', abs(exponent));
    } else {
        int after = places - 1 - exponent;
        snprintf(shown.text, sizeof shown.text, "%.*f", after > 0 ? after : 0, value);
        if (after <= 0 && !whole) strcat(shown.text, ".0");
    }
    return shown;
}

static MP_UNUSED mp_text mp_shown_complex(double real, double imag) {
    mp_text shown;
    mp_text second = mp_shown(imag, false, true);
    const char *sign = second.text[0] == '-' ? "" : "+";
    if (real == 0 && !__builtin_signbit(real)) snprintf(shown.text, sizeof shown.text, "%sj", second.text);
    else snprintf(shown.text, sizeof shown.text, "(%.30s%s%.30sj)", mp_shown(real, false, true).text, sign, second.text);
    return shown;
}

/* ---- sizes ---- */

static MP_UNUSED int64_t i64_floor_div(int64_t a, int64_t b) {
    if (b == 0) return 0;
    return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));
}
static MP_UNUSED int64_t i64_mod(int64_t a, int64_t b) { return b == 0 ? 0 : a - b * i64_floor_div(a, b); }
static MP_UNUSED int64_t i64_max(int64_t a, int64_t b) { return a > b ? a : b; }
static MP_UNUSED int64_t i64_min(int64_t a, int64_t b) { return a < b ? a : b; }

/* Where processors differ, which of two programs runs here: that for AVX2 and fused multiply-add, or that for any. */
static MP_UNUSED bool mp_has_v3(void) {
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

#endif
