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
    pthread_attr_t attributes;
    void* lowest = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes)) return 0;
    int failed = pthread_attr_getstack(&attributes, &lowest, &size);
    pthread_attr_destroy(&attributes);
    return failed || &here < (char*)lowest ? 0 : &here - (char*)lowest;
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
