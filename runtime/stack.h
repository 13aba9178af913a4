/* How deep this thread may go: Python's own count of its frames, and what is left of its C stack.
 *
 * In: a number of frames, which is added to what CPython lets this thread do; no other thread and no setting
 * that a program reads (sys.getrecursionlimit) changes. Out: bytes of stack that are left, 0 where the system
 * does not say. */
#ifndef METAPHRASE_STACK_H
#define METAPHRASE_STACK_H

#include <Python.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__linux__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sys/resource.h>
#endif

#if PY_VERSION_HEX >= 0x030C0000
#define MP_FRAMES_LEFT(thread) ((thread)->py_recursion_remaining)
#define MP_FRAMES_MOST(thread) ((thread)->py_recursion_limit)
#else
#define MP_FRAMES_LEFT(thread) ((thread)->recursion_remaining)
#define MP_FRAMES_MOST(thread) ((thread)->recursion_limit)
#endif

/* CPython keeps both numbers for each thread, and makes them those of the process when the limit is set. */
static inline void mp_frames_at_most(int most) {
    PyThreadState* thread = PyThreadState_Get();
    int depth = MP_FRAMES_MOST(thread) - MP_FRAMES_LEFT(thread);
    MP_FRAMES_MOST(thread) = most;
    MP_FRAMES_LEFT(thread) = most - depth;
}

static inline int mp_frames_deep(void) {
    PyThreadState* thread = PyThreadState_Get();
    return MP_FRAMES_MOST(thread) - MP_FRAMES_LEFT(thread);
}

static inline int64_t mp_stack_left(void) {
    char here;
#if defined(__linux__)
    /* The C library reads all mappings of the process to say where the first thread's stack ends: it is asked
     * once for each thread, and again when the limit has changed. */
    static __thread char* lowest = NULL;
    static __thread rlim_t limit = 0;
    struct rlimit now;
    if (getrlimit(RLIMIT_STACK, &now)) return 0;
    if (lowest == NULL || now.rlim_cur != limit) {
        pthread_attr_t attributes;
        void* address = NULL;
        size_t size = 0;
        if (pthread_getattr_np(pthread_self(), &attributes)) return 0;
        int failed = pthread_attr_getstack(&attributes, &address, &size);
        pthread_attr_destroy(&attributes);
        if (failed) return 0;
        lowest = (char*)address;
        limit = now.rlim_cur;
    }
    return &here < lowest ? 0 : &here - lowest;
#elif defined(__APPLE__)
    pthread_t self = pthread_self();
    char* lowest = (char*)pthread_get_stackaddr_np(self) - pthread_get_stacksize_np(self);
    return &here < lowest ? 0 : &here - lowest;
#else
    (void)here;
    return 0;
#endif
}

#endif
