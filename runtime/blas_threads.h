/* The threads of the BLAS that SciPy has: none while a product is computed in parts by ours.

   In: a library that is loaded, and depends on a BLAS. Out: its calls done by one thread each, from the first of several
   `mp_blas_alone(1)` that overlap to the last `mp_blas_alone(0)`. Example:

       mp_find_blas_threads("scipy/linalg/cython_blas.so");
       if (mp_alone_or_null()) { mp_blas_alone(1); ...; mp_blas_alone(0); }

   OpenBLAS wakes its threads for a product of 64 x 64 already, and waits for them: where other work wants the cores, a
   product of a millisecond then takes twenty. Other libraries have a setting for one thread only (MKL), or none
   (Accelerate): they are left as they are. */
#ifndef METAPHRASE_BLAS_THREADS_H
#define METAPHRASE_BLAS_THREADS_H

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

static struct {
    pthread_mutex_t lock;
    int users, before;
    void (*set)(int threads);
    int (*get)(void);
} mp_blas_threads = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* What a child process has of a product that another thread was at. */
static void mp_blas_in_child(void) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    mp_blas_threads.lock = lock;
    if (mp_blas_threads.users && mp_blas_threads.before > 1) mp_blas_threads.set(mp_blas_threads.before);
    mp_blas_threads.users = 0;
}

static void mp_find_blas_threads(const char *library) {
    static const char *const names[][2] = {
        {"scipy_openblas_set_num_threads", "scipy_openblas_get_num_threads"},
        {"openblas_set_num_threads", "openblas_get_num_threads"},
    };
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD), *set, *get;
    for (int k = 0; handle && k < 2; k++) {
        if ((set = dlsym(handle, names[k][0])) && (get = dlsym(handle, names[k][1]))) {
            mp_blas_threads.get = (int (*)(void))get;
            mp_blas_threads.set = (void (*)(int))set;
            pthread_atfork(NULL, NULL, mp_blas_in_child);
            break;
        }
    }
}

static void mp_blas_alone(int begins) {
    pthread_mutex_lock(&mp_blas_threads.lock);
    if (begins && mp_blas_threads.users++ == 0) {
        mp_blas_threads.before = mp_blas_threads.get();
        if (mp_blas_threads.before > 1) mp_blas_threads.set(1);
    } else if (!begins && mp_blas_threads.users && --mp_blas_threads.users == 0 && mp_blas_threads.before > 1) {
        mp_blas_threads.set(mp_blas_threads.before);
    }
    pthread_mutex_unlock(&mp_blas_threads.lock);
}

/* For the context: NULL where the library can't be told. */
static mp_for_blas mp_alone_or_null(void) { return mp_blas_threads.set ? mp_blas_alone : NULL; }

#endif
