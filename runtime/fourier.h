/* NumPy's Fourier transforms of lines, for the context.

   In: the ufuncs of NumPy's private module, if there is one. Out: `mp_fouriers`, by MP_fft and its like (abi.h).
   Example: `mp_take_fourier(MP_fft, ufunc); c->fouriers = mp_fouriers;` */
#ifndef METAPHRASE_FOURIER_H
#define METAPHRASE_FOURIER_H

#include <numpy/ufuncobject.h>

static mp_fourier mp_fouriers[MP_FOURIER_COUNT];

static int mp_of_real(int which) { return which == MP_rfft_even || which == MP_rfft_odd; }
static int mp_dtype(int is_real) { return is_real ? NPY_FLOAT64 : NPY_COMPLEX128; }
/* The loop of a ufunc for double precision; nothing where it has none, or is of another make. */
static void mp_take_fourier(int which, PyObject *object) {
    PyUFuncObject *ufunc = (PyUFuncObject *)object;
    if (ufunc->nin != 2 || ufunc->nout != 1 || !ufunc->functions || !ufunc->types) return;
    for (int k = 0; k < ufunc->ntypes; k++) {
        if (ufunc->types[3 * k] != mp_dtype(mp_of_real(which))) continue;
        if (ufunc->types[3 * k + 2] != mp_dtype(which == MP_irfft)) continue;
        mp_fouriers[which].run = (void (*)(char **, const npy_intp *, const npy_intp *, void *))ufunc->functions[k];
        mp_fouriers[which].data = ufunc->data ? (void *)ufunc->data[k] : NULL;
    }
}
static void mp_forget_fouriers(void) { memset(mp_fouriers, 0, sizeof mp_fouriers); }
/* One line, each element behind the other; 0 where there is no such transform. */
static int mp_transform(int which, void *x, void *y, npy_intp n, npy_intp m) {
    double factor = 1;
    char *args[3] = {(char *)x, (char *)&factor, (char *)y};
    npy_intp dims[3] = {1, n, m}, steps[5] = {0, 0, 0, mp_of_real(which) ? 8 : 16, which == MP_irfft ? 8 : 16};
    if (!mp_fouriers[which].run) return 0;
    mp_fouriers[which].run(args, dims, steps, mp_fouriers[which].data);
    return 1;
}

#endif
