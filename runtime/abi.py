"""The entry ABI as Python and Cython text see it: the same contract as runtime/abi.h.

In: nothing. Out: `ABI_VERSION`, `BLAS_ROUTINES` (the order of the context's table), `DECLARATIONS` and
`BLAS_DECLARATIONS` (Cython declarations that an emitted module puts at its head). Example:

    text = DECLARATIONS + '''
    cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:
        (<double*>buffers[1])[0] = (<double*>buffers[0])[0] + 1.0
        return 0
    '''
"""

from __future__ import annotations

import os
import re

HEADER_DIRECTORY = os.path.dirname(os.path.realpath(__file__))
with open(os.path.join(HEADER_DIRECTORY, "abi.h"), encoding="utf-8") as _file:
    _HEADER = _file.read()

ABI_VERSION = int(re.search(r"#define MP_ABI (\d+)", _HEADER).group(1))  # type: ignore[union-attr]
SYMBOL = "metaphrase_program"  # what a library exports: a pointer to its entry
HEADERS = ("abi.h", "abi_blas.h", "maths.h", "maths_of.h", "circular.h")  # what emitted modules include
BLAS_ROUTINES = tuple(re.findall(r" X\((\w+)\)", _HEADER))

INTERRUPTED, NO_MEMORY, RAISED = -1, -2, -3

DECLARATIONS = """\
cdef extern from "abi.h" nogil:
    ctypedef long long int64_t
    ctypedef int int32_t
    ctypedef struct mp_ctx:
        int64_t fuel
        int64_t threads
        void** blas
        void* (*alloc)(mp_ctx* c, int64_t k, int64_t nbytes) noexcept nogil
        void (*set_dims)(mp_ctx* c, int64_t k, int64_t rank, const int64_t* dims) noexcept nogil
        void* (*grow)(mp_ctx* c, void* stack, int64_t* capacity, int64_t needed) noexcept nogil
        char* (*mark)(mp_ctx* c) noexcept nogil
        void (*release)(mp_ctx* c, char* mark) noexcept nogil
        int (*callback)(mp_ctx* c, int64_t site, void** args) noexcept nogil
    int mp_poll(mp_ctx* c, int64_t work)
    ctypedef int (*mp_part)(mp_ctx* c, void** buffers, const int64_t* sizes, int64_t k) noexcept nogil
    int mp_share(mp_ctx* c, mp_part part, void** buffers, const int64_t* sizes, int64_t parts)
    void mp_begin(mp_ctx* c)
    int mp_end(mp_ctx* c)
    void* mp_scratch(mp_ctx* c, int64_t nbytes)
    int64_t mp_times(int64_t a, int64_t b)
    int mp_fail(mp_ctx* c, int64_t site, int64_t iteration, int64_t v0, int64_t v1, int64_t v2, int64_t v3)
    const int MP_INTERRUPTED, MP_NO_MEMORY, MP_RAISED
"""

_REAL = """\
    void mp_{t}gemm(mp_ctx* c, char transa, char transb, int m, int n, int k, {T} alpha, const {T}* a, int lda, const {T}* b, int ldb, {T} beta, {T}* out, int ldc)
    void mp_{t}gemv(mp_ctx* c, char trans, int m, int n, {T} alpha, const {T}* a, int lda, const {T}* x, int incx, {T} beta, {T}* y, int incy)
    void mp_{t}ger(mp_ctx* c, int m, int n, {T} alpha, const {T}* x, int incx, const {T}* y, int incy, {T}* a, int lda)
    {T} mp_{t}dot(mp_ctx* c, int n, const {T}* x, int incx, const {T}* y, int incy)
    void mp_{t}axpy(mp_ctx* c, int n, {T} alpha, const {T}* x, int incx, {T}* y, int incy)
    void mp_{t}trsm(mp_ctx* c, char side, char uplo, char transa, char diag, int m, int n, {T} alpha, const {T}* a, int lda, {T}* b, int ldb)
"""  # noqa: E501 - one routine a line is the readable form

_COMPLEX = """\
    void mp_{t}gemm(mp_ctx* c, char transa, char transb, int m, int n, int k, const {T}* alpha, const {T}* a, int lda, const {T}* b, int ldb, const {T}* beta, {T}* out, int ldc)
    void mp_{t}gemv(mp_ctx* c, char trans, int m, int n, const {T}* alpha, const {T}* a, int lda, const {T}* x, int incx, const {T}* beta, {T}* y, int incy)
"""  # noqa: E501

BLAS_DECLARATIONS = 'cdef extern from "abi_blas.h" nogil:\n' + "".join(
    form.format(t=letter, T=element)
    for form, letter, element in [
        (_REAL, "s", "float"),
        (_REAL, "d", "double"),
        (_COMPLEX, "c", "float"),
        (_COMPLEX, "z", "double"),
    ]
)
