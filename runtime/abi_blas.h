/* BLAS by value, for kernels: the Fortran interface's pointers are made here.

   In: a context whose table is filled. Out: the routine's effect. Matrices are column-major, as BLAS has them: a
   C-contiguous product C = A B (m, k)(k, n) is mp_dgemm(c, 'N', 'N', n, m, k, 1.0, B, n, A, k, 0.0, C, n). Sizes are int:
   emitted programs check that they fit before they call. Complex scalars are passed by pointer to two reals. */
#ifndef METAPHRASE_ABI_BLAS_H
#define METAPHRASE_ABI_BLAS_H
#include "abi.h"

#define MP_REAL_BLAS(t, T)                                                                                            \
    static inline MP_UNUSED void mp_##t##gemm(mp_ctx *c, char transa, char transb, int m, int n, int k, T alpha,      \
                                              const T *a, int lda, const T *b, int ldb, T beta, T *out, int ldc) {    \
        ((void (*)(char *, char *, int *, int *, int *, T *, const T *, int *, const T *, int *, T *, T *,            \
                   int *))c->blas[MP_##t##gemm])(&transa, &transb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, out,  \
                                                 &ldc);                                                               \
    }                                                                                                                 \
    static inline MP_UNUSED void mp_##t##gemv(mp_ctx *c, char trans, int m, int n, T alpha, const T *a, int lda,      \
                                              const T *x, int incx, T beta, T *y, int incy) {                         \
        ((void (*)(char *, int *, int *, T *, const T *, int *, const T *, int *, T *, T *, int *))                   \
             c->blas[MP_##t##gemv])(&trans, &m, &n, &alpha, a, &lda, x, &incx, &beta, y, &incy);                      \
    }                                                                                                                 \
    static inline MP_UNUSED void mp_##t##ger(mp_ctx *c, int m, int n, T alpha, const T *x, int incx, const T *y,      \
                                             int incy, T *a, int lda) {                                               \
        ((void (*)(int *, int *, T *, const T *, int *, const T *, int *, T *, int *))c->blas[MP_##t##ger])(          \
            &m, &n, &alpha, x, &incx, y, &incy, a, &lda);                                                             \
    }                                                                                                                 \
    static inline MP_UNUSED T mp_##t##dot(mp_ctx *c, int n, const T *x, int incx, const T *y, int incy) {             \
        return ((T(*)(int *, const T *, int *, const T *, int *))c->blas[MP_##t##dot])(&n, x, &incx, y, &incy);       \
    }                                                                                                                 \
    static inline MP_UNUSED void mp_##t##axpy(mp_ctx *c, int n, T alpha, const T *x, int incx, T *y, int incy) {      \
        ((void (*)(int *, T *, const T *, int *, T *, int *))c->blas[MP_##t##axpy])(&n, &alpha, x, &incx, y, &incy);  \
    }                                                                                                                 \
    static inline MP_UNUSED void mp_##t##trsm(mp_ctx *c, char side, char uplo, char transa, char diag, int m, int n,  \
                                              T alpha, const T *a, int lda, T *b, int ldb) {                          \
        ((void (*)(char *, char *, char *, char *, int *, int *, T *, const T *, int *, T *, int *))                  \
             c->blas[MP_##t##trsm])(&side, &uplo, &transa, &diag, &m, &n, &alpha, a, &lda, b, &ldb);                  \
    }

MP_REAL_BLAS(s, float)
MP_REAL_BLAS(d, double)

/* T is the type of the real and imaginary parts, which lie side by side. */
#define MP_COMPLEX_BLAS(t, T)                                                                                         \
    static inline MP_UNUSED void mp_##t##gemm(mp_ctx *c, char transa, char transb, int m, int n, int k,               \
                                              const T *alpha, const T *a, int lda, const T *b, int ldb,               \
                                              const T *beta, T *out, int ldc) {                                       \
        ((void (*)(char *, char *, int *, int *, int *, const T *, const T *, int *, const T *, int *, const T *,     \
                   T *, int *))c->blas[MP_##t##gemm])(&transa, &transb, &m, &n, &k, alpha, a, &lda, b, &ldb, beta,    \
                                                      out, &ldc);                                                     \
    }                                                                                                                 \
    static inline MP_UNUSED void mp_##t##gemv(mp_ctx *c, char trans, int m, int n, const T *alpha, const T *a,        \
                                              int lda, const T *x, int incx, const T *beta, T *y, int incy) {         \
        ((void (*)(char *, int *, int *, const T *, const T *, int *, const T *, int *, const T *, T *, int *))       \
             c->blas[MP_##t##gemv])(&trans, &m, &n, alpha, a, &lda, x, &incx, beta, y, &incy);                        \
    }

MP_COMPLEX_BLAS(c, float)
MP_COMPLEX_BLAS(z, double)

#endif
