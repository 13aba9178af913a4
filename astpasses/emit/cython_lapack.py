"""Linear algebra as C around LAPACK: matrices lie row after row, as NumPy has them, and LAPACK wants columns.

In: a `Call` of one of the routines below. Out: the line that calls the C function, whose text goes into the
writer's `routines`. Its last results are flags: 1 where LAPACK says that it failed, with NaN in the results.

    solve(a, b, x, singular)   ->   f64_solve(c, n, k, a, b, x, singular, 0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from metaphrase.astpasses.schedule.nest import Call

from .spell import c_name

if TYPE_CHECKING:
    from .cython_function import FunctionWriter

# In the texts: T is the element, R its real type, t the letter of LAPACK.
COMMON = """\
#include "abi_blas.h"
typedef ELEMENT T_e;
typedef R T_r;
typedef R _Complex T_z;
#define T_NEW(count) ((T_e*)__builtin_malloc(((count) > 0 ? (count) : 1)*sizeof(T_e)))
static inline __attribute__((unused)) void T_turn(const T_e* a, T_e* w, i64 m, i64 n) {
    for (i64 i = 0; i < m; i++) for (i64 j = 0; j < n; j++) w[j*m + i] = a[i*n + j];
}
static inline __attribute__((unused)) void T_back(const T_e* w, T_e* a, i64 m, i64 n, i64 rows) {
    for (i64 i = 0; i < m; i++) for (i64 j = 0; j < n; j++) a[i*n + j] = w[j*rows + i];
}
static inline __attribute__((unused)) void T_minus(T_e* x, const T_e* y, T_e by, i64 n) {
    for (i64 i = 0; i < n; i++) x[i] -= by*y[i];
}
static inline __attribute__((unused)) void T_divide(T_e* x, T_e by, i64 n) {
    for (i64 i = 0; i < n; i++) x[i] /= by;
}
static inline __attribute__((unused)) void T_swap(T_e* x, T_e* y, i64 n) {
    if (x != y) for (i64 i = 0; i < n; i++) { T_e z = x[i]; x[i] = y[i]; y[i] = z; }
}
/* x = op(a)^-1 b, of the factors and pivots of getrf: the columns of b side by side in vector registers. */
static __attribute__((unused)) void T_substitute(
        const T_e* lu, const int* pivots, T_e* x, i64 n, i64 k, int plain) {
    for (i64 i = 0; plain && i < n; i++) T_swap(x + i*k, x + (pivots[i] - 1)*k, k);
    for (i64 i = 0; i < n; i++) {
        for (i64 j = 0; j < i; j++) T_minus(x + i*k, x + j*k, plain ? lu[j*n + i] : lu[i*n + j], k);
        if (!plain) T_divide(x + i*k, lu[i*n + i], k);
    }
    for (i64 i = n - 1; i >= 0; i--) {
        for (i64 j = i + 1; j < n; j++) T_minus(x + i*k, x + j*k, plain ? lu[j*n + i] : lu[i*n + j], k);
        if (plain) T_divide(x + i*k, lu[i*n + i], k);
    }
    for (i64 i = n - 1; !plain && i >= 0; i--) T_swap(x + i*k, x + (pivots[i] - 1)*k, k);
}
static inline __attribute__((unused)) void T_missing(T_e* a, i64 count) {
    for (i64 i = 0; i < count; i++) a[i] = (T_r)__builtin_nan("");
}
"""

TEXTS: dict[str, tuple[str, str]] = {
    "solve": (
        "i64 n_, i64 k_, const void* a_, const void* b_, void* x_, void* flag, int transposed",
        """\
    int n = (int)n_, k = (int)k_, info = 0, *pivots = (int*)__builtin_malloc((n_ + 1)*sizeof(int));
    T_e *lu = T_NEW(n_*n_), *w = n_ <= 32 ? 0 : T_NEW(n_*k_);
    char how = transposed ? 'N' : 'T'; /* rows read as columns are the transposed matrix */
    __builtin_memcpy(lu, a_, n_*n_*sizeof(T_e));
    if (w) T_turn((const T_e*)b_, w, n_, k_);
    if (n) ((void (*)(int*, int*, T_e*, int*, int*, int*))c->blas[MP_tgetrf])(&n, &n, lu, &n, pivots, &info);
    *(unsigned char*)flag = info > 0;
    if (info > 0) T_missing((T_e*)x_, n_*k_);
    else if (!w) { /* getrs would wake its threads, which takes far longer than this */
        if (x_ != b_) __builtin_memcpy(x_, b_, n_*k_*sizeof(T_e));
        T_substitute(lu, pivots, (T_e*)x_, n_, k_, transposed);
    } else {
        if (n && k) ((void (*)(char*, int*, int*, T_e*, int*, int*, T_e*, int*, int*))c->blas[MP_tgetrs])(
            &how, &n, &k, lu, &n, pivots, w, &n, &info);
        T_back(w, (T_e*)x_, n_, k_, n_);
    }
    __builtin_free(lu); __builtin_free(w); __builtin_free(pivots);
""",
    ),
    "triangular_solve": (
        "i64 n_, i64 k_, const void* a_, const void* b_, void* x_, int lower, int transposed",
        """\
    int n = (int)n_, k = (int)k_;
    char side = 'R', uplo = lower ? 'U' : 'L', how = transposed ? 'T' : 'N', unit = 'N';
    T_e one = 1;
    if (x_ != b_) __builtin_memcpy(x_, b_, n_*k_*sizeof(T_e));
    if (n && k) ((void (*)(char*, char*, char*, char*, int*, int*, T_e*, const T_e*, int*, T_e*, int*))
        c->blas[MP_ttrsm])(&side, &uplo, &how, &unit, &k, &n, &one, (const T_e*)a_, &n, (T_e*)x_, &k);
""",
    ),
    "slogdet": (
        "i64 n_, const void* a_, void* sign_, void* log_",
        """\
    int n = (int)n_, info = 0, *pivots = (int*)__builtin_malloc((n_ + 1)*sizeof(int));
    T_e *lu = T_NEW(n_*n_), sign = 1;
    T_r total = 0;
    __builtin_memcpy(lu, a_, n_*n_*sizeof(T_e));
    if (n) ((void (*)(int*, int*, T_e*, int*, int*, int*))c->blas[MP_tgetrf])(&n, &n, lu, &n, pivots, &info);
    if (info > 0) { sign = 0; total = -(T_r)__builtin_inf(); }
    else for (i64 i = 0; i < n_; i++) {
        T_e d = lu[i*n_ + i];
        T_r size = ABS(d);
        if (pivots[i] != i + 1) sign = -sign;
        sign *= d/size;
        total += LOG(size);
    }
    *(T_e*)sign_ = sign; *(T_r*)log_ = total;
    __builtin_free(lu); __builtin_free(pivots);
""",
    ),
    "cholesky": (
        "i64 n_, const void* a_, void* out_, void* flag",
        """\
    int n = (int)n_, info = 0;
    T_e* l = (T_e*)out_;
    char uplo = 'U';
    if (out_ != a_) __builtin_memcpy(l, a_, n_*n_*sizeof(T_e));
    if (n) ((void (*)(char*, int*, T_e*, int*, int*))c->blas[MP_tpotrf])(&uplo, &n, l, &n, &info);
    for (i64 i = 0; i < n_; i++) for (i64 j = i + 1; j < n_; j++) l[i*n_ + j] = 0;
    *(unsigned char*)flag = info > 0;
    if (info > 0) T_missing(l, n_*n_);
""",
    ),
    "qr": (
        "i64 m_, i64 n_, i64 q_, const void* a_, void* q_out, void* r_out",
        """\
    int m = (int)m_, n = (int)n_, q = (int)q_, least = m < n ? m : n, info = 0, size = 64*(m + n + 1);
    i64 columns = n_ > q_ ? n_ : q_;
    T_e *w = T_NEW(m_*columns), *tau = T_NEW(m_ + n_), *work = T_NEW(size), *r = (T_e*)r_out;
    T_turn((const T_e*)a_, w, m_, n_);
    if (least) ((void (*)(int*, int*, T_e*, int*, T_e*, T_e*, int*, int*))c->blas[MP_tgeqrf])(
        &m, &n, w, &m, tau, work, &size, &info);
    for (i64 i = 0; i < q_; i++)
        for (i64 j = 0; j < n_; j++) r[i*n_ + j] = i <= j && i < m_ ? w[j*m_ + i] : 0;
    if (least == 0) for (i64 j = 0; j < q_; j++) for (i64 i = 0; i < m_; i++) w[j*m_ + i] = i == j;
    else ((void (*)(int*, int*, int*, T_e*, int*, T_e*, T_e*, int*, int*))c->blas[MP_tORGqr])(
        &m, &q, &least, w, &m, tau, work, &size, &info);
    T_back(w, (T_e*)q_out, m_, q_, m_);
    __builtin_free(w); __builtin_free(tau); __builtin_free(work);
""",
    ),
    "eigh": (
        "i64 n_, const void* a_, void* values, void* vectors, void* flag",
        """\
    int n = (int)n_, info = 0;
    i64 size = 64 + 2*n_*n_ + 40*n_, reals = 64 + 2*n_*n_ + 5*n_, whole = 8 + 5*n_;
    int lwork = (int)size, lrwork = (int)reals, lwhole = (int)whole;
    T_e *w = T_NEW(n_*n_), *work = T_NEW(size);
    T_r* rwork = (T_r*)__builtin_malloc(reals*sizeof(T_r));
    int* iwork = (int*)__builtin_malloc(whole*sizeof(int));
    char job = 'V', uplo = 'L';
    T_turn((const T_e*)a_, w, n_, n_);
    if (n) EIGH;
    *(unsigned char*)flag = info > 0;
    T_back(w, (T_e*)vectors, n_, n_, n_);
    if (info > 0) {
        T_missing((T_e*)vectors, n_*n_);
        for (i64 i = 0; i < n_; i++) ((T_r*)values)[i] = (T_r)__builtin_nan("");
    }
    __builtin_free(w); __builtin_free(work); __builtin_free(rwork); __builtin_free(iwork);
""",
    ),
    "svd": (
        "i64 m_, i64 n_, const void* a_, void* u_, void* s_, void* v_, void* flag, int full",
        """\
    int m = (int)m_, n = (int)n_, k = m < n ? m : n, large = m < n ? n : m, info = 0;
    int uc = full ? m : k, vr = full ? n : k, query = -1;
    i64 reals = 64 + 7*(i64)k*k + 7*(i64)k + 2*(i64)large*k;
    T_e *w = T_NEW(m_*n_), *u = T_NEW(m_*uc), *v = T_NEW(n_*vr), *work, wanted = 0;
    T_r* rwork = (T_r*)__builtin_malloc(reals*sizeof(T_r));
    int* iwork = (int*)__builtin_malloc((8*(i64)k + 8)*sizeof(int));
    char job = full ? 'A' : 'S';
    T_turn((const T_e*)a_, w, m_, n_);
    if (k) {
        work = &wanted;
        SVD(query);
        int size = (int)REAL(wanted) + 1;
        work = T_NEW(size);
        SVD(size);
        __builtin_free(work);
    } else {
        for (i64 i = 0; i < m_*uc; i++) u[i] = i/(m_ ? m_ : 1) == i%(m_ ? m_ : 1);
        for (i64 i = 0; i < n_*vr; i++) v[i] = i/(vr ? vr : 1) == i%(vr ? vr : 1);
    }
    *(unsigned char*)flag = info > 0;
    T_back(u, (T_e*)u_, m_, uc, m_);
    T_back(v, (T_e*)v_, vr, n_, vr);
    if (info > 0) {
        T_missing((T_e*)u_, m_*uc); T_missing((T_e*)v_, vr*n_);
        for (i64 i = 0; i < k; i++) ((T_r*)s_)[i] = (T_r)__builtin_nan("");
    }
    __builtin_free(w); __builtin_free(u); __builtin_free(v); __builtin_free(rwork); __builtin_free(iwork);
""",
    ),
    "eig": (
        "i64 n_, const void* a_, void* values_, void* vectors_, void* flag",
        """\
    int n = (int)n_, info = 0, lwork = 64 + 40*n;
    T_e *w = T_NEW(n_*n_), *v = T_NEW(n_*n_), *work = T_NEW(lwork);
    T_r* parts = (T_r*)__builtin_malloc((2*n_ + 1)*sizeof(T_r));
    T_z *values = (T_z*)values_, *vectors = (T_z*)vectors_;
    char none = 'N', all = 'V';
    T_turn((const T_e*)a_, w, n_, n_);
    EIG;
    *(unsigned char*)flag = info > 0;
    if (info > 0) {
        for (i64 i = 0; i < n_; i++) values[i] = (T_r)__builtin_nan("");
        for (i64 i = 0; i < n_*n_; i++) vectors[i] = (T_r)__builtin_nan("");
    }
    __builtin_free(w); __builtin_free(v); __builtin_free(work); __builtin_free(parts);
""",
    ),
}

_REAL = {
    "EIGH": "((void (*)(char*, char*, int*, T_e*, int*, T_r*, T_e*, int*, int*, int*, int*))"
    "c->blas[MP_tsyevd])("
    "&job, &uplo, &n, w, &n, (T_r*)values, work, &lwork, iwork, &lwhole, &info)",
    "SVD": "((void (*)(char*, int*, int*, T_e*, int*, T_r*, T_e*, int*, T_e*, int*, T_e*, int*, int*, "
    "int*))c->blas[MP_tgesdd])(&job, &m, &n, w, &m, (T_r*)s_, u, &m, v, &vr, work, &SIZE, iwork, &info)",
    "EIG": """if (n) ((void (*)(char*, char*, int*, T_e*, int*, T_r*, T_r*, T_e*, int*, T_e*, int*, T_e*,
        int*, int*))c->blas[MP_tgeev])(
        &none, &all, &n, w, &n, parts, parts + n, v, &n, v, &n, work, &lwork, &info);
    for (i64 j = 0; j < n_; j++) {
        T_r im = parts[n_ + j];
        ((T_r*)(values + j))[0] = parts[j]; ((T_r*)(values + j))[1] = im;
        for (i64 i = 0; i < n_; i++) { /* a pair of columns is real and imaginary part of two vectors */
            T_r* place = (T_r*)(vectors + i*n_ + j);
            place[0] = v[(im < 0 ? j - 1 : j)*n_ + i];
            place[1] = im == 0 ? 0 : im > 0 ? v[(j + 1)*n_ + i] : -v[j*n_ + i];
        }
    }""",
}
_COMPLEX = {
    "EIGH": "((void (*)(char*, char*, int*, T_e*, int*, T_r*, T_e*, int*, T_r*, int*, int*, int*, int*))"
    "c->blas[MP_theevd])(&job, &uplo, &n, w, &n, (T_r*)values, work, &lwork, rwork, &lrwork, iwork, &lwhole, "
    "&info)",
    "SVD": "((void (*)(char*, int*, int*, T_e*, int*, T_r*, T_e*, int*, T_e*, int*, T_e*, int*, T_r*, "
    "int*, int*))c->blas[MP_tgesdd])(&job, &m, &n, w, &m, (T_r*)s_, u, &m, v, &vr, work, &SIZE, rwork, "
    "iwork, &info)",
    "EIG": """if (n) ((void (*)(char*, char*, int*, T_e*, int*, T_e*, T_e*, int*, T_e*, int*, T_e*, int*,
        T_r*, int*))c->blas[MP_tgeev])(
        &none, &all, &n, w, &n, values, v, &n, v, &n, work, &lwork, parts, &info);
    T_back(v, vectors, n_, n_, n_)""",
}


def _c_text(base: str, dtype: np.dtype) -> str:
    name = c_name(dtype)
    is_complex = dtype.kind == "c"
    real = "float" if name in ("f32", "c64") else "double"
    letter = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}[name]
    _, body = TEXTS[base]
    for word, text in (_COMPLEX if is_complex else _REAL).items():
        if word == "SVD":
            for size in ("query", "size"):
                body = body.replace(f"SVD({size})", text.replace("SIZE", size))
        else:
            body = body.replace(word, text)
    suffix = "f" if real == "float" else ""
    size = f"__builtin_cabs{suffix}" if is_complex else f"__builtin_fabs{suffix}"
    body = body.replace("ABS(", size + "(").replace("LOG(", f"__builtin_log{suffix}(")
    body = body.replace("REAL(", f"__builtin_creal{suffix}(" if is_complex else "(")
    body = body.replace("MP_tORGqr", f"MP_{letter}{'ungqr' if is_complex else 'orgqr'}")
    return body.replace("MP_t", f"MP_{letter}").replace("T_", f"{name}_la_")


def _common(dtype: np.dtype) -> str:
    name = c_name(dtype)
    real = "float" if name in ("f32", "c64") else "double"
    element = f"{real} _Complex" if dtype.kind == "c" else real
    return COMMON.replace("ELEMENT", element).replace("T_", f"{name}_la_").replace(" R ", f" {real} ")


def _sizes(base: str, stmt: Call) -> list[Any]:
    first = stmt.reads[0].extents
    if base in ("solve", "triangular_solve"):
        return [first[0], stmt.reads[1].extents[1]]
    if base == "qr":
        return [first[0], first[1], stmt.writes[0].extents[1]]
    return list(first) if base == "svd" else [first[0]]


def lapack_call(writer: FunctionWriter, stmt: Call) -> list[str]:
    """The line that calls a routine, and its text into the writer's routines."""
    from .cython_calls import address_of

    base, *flags = stmt.routine.split("__")
    dtype = stmt.reads[0].buf.dtype
    name = c_name(dtype)
    writer.type(dtype)
    writer.use("blas")
    params = TEXTS[base][0]
    writer.routines[f"{name}_la_common"] = (_common(dtype), "")
    head = f"void {name}_{base}(mp_ctx* c, {params})"
    text = f"static __attribute__((noinline)) {head} {{\n{_c_text(base, dtype)}}}\n"
    writer.routines[f"{name}_{base}"] = (text, head)
    views = [address_of(writer, view) for view in (*stmt.reads, *stmt.writes)]
    wanted = [p.split()[-1] for p in params.split(", ") if p.startswith("int ")]
    given = [writer.printer.dim(d) for d in _sizes(base, stmt)]
    return [f"{name}_{base}({', '.join(['c', *given, *views, *(str(int(w in flags)) for w in wanted)])})"]


__all__ = ["lapack_call", "TEXTS"]
