"""Linear algebra as C around LAPACK: matrices lie row after row, and LAPACK wants column after column.

In: a `LibraryCall` of one of the operations below. Out: the call of the C function, whose text goes into the writer's
`routines`. The last results of an operation may be flags: 1 where LAPACK says that it failed, with NaN in the results.

    solve(a, b, x, singular)   ->   f64_solve(c, 0, n, k, a, b, x, singular, 0)

A C function returns 0 or what the program returns. The libraries count in ints of 32 bits: `define` puts the one
test before every body, so that what does not fit fails at `site` before anything is called; an argument that LAPACK
refuses fails at `site + 1`. What a routine needs for its work it takes from the context's arena, and gives back.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from metaphrase.astpasses.schedule.nest import LibraryCall
from metaphrase.late import dataclass

from .spell import c_name

if TYPE_CHECKING:
    from .cython_function import FunctionWriter

# In the texts: T_e is the element, PART and T_r its real type, t the letter of the library.
# For all element types.
SIZES = """\
#include "abi_blas.h"
#define LA_MOST 2147483647
#define LA_MIN(a, b) ((a) < (b) ? (a) : (b))
#define LA_MAX(a, b) ((a) < (b) ? (b) : (a))
#define LA_REFUSED() mp_fail(c, site + 1, 0, -(i64)info, 0, 0, 0)
#define LA_NEW(type, count) ((type*)mp_scratch(c, mp_times(count, sizeof(type))))
/* OpenBLAS wakes its threads for little, and waits for them: where others want the cores, for a time slice or more. */
#define LA_ALONE(work) (c->blas_alone && (work) > 1 << 15)
"""
COMMON = """\
typedef ELEMENT T_e;
typedef PART T_r;
typedef PART _Complex T_z;
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


@dataclass(frozen=True)
class Routine:
    """One C function. `counted`: sizes that an int must hold, in the message of which `told` are given. `work`: factors
    whose product is about the multiplications that it takes, where one thread is to do the smaller ones."""

    parameters: str
    counted: str
    told: str
    body: str
    work: tuple[str, ...] = ()


ROUTINES: dict[str, Routine] = {
    "solve": Routine(
        "i64 n_, i64 k_, const void* a_, const void* b_, void* x_, void* flag, int transposed",
        "n_ | k_",
        "n_, n_, 0",
        """\
    int n = (int)n_, k = (int)k_, info = 0, small = n <= 32;
    char *mark = c->cursor, how = transposed ? 'N' : 'T'; /* rows read as columns are the transposed matrix */
    int* pivots = LA_NEW(int, n_);
    T_e *lu = LA_NEW(T_e, n_*n_), *w = small ? 0 : LA_NEW(T_e, n_*k_);
    if (!pivots || !lu || !small && !w) return MP_NO_MEMORY;
    __builtin_memcpy(lu, a_, n_*n_*sizeof(T_e));
    if (w) T_turn((const T_e*)b_, w, n_, k_);
    if (n) ((void (*)(int*, int*, T_e*, int*, int*, int*))c->blas[MP_tgetrf])(&n, &n, lu, &n, pivots, &info);
    if (info < 0) return LA_REFUSED();
    *(unsigned char*)flag = info > 0;
    if (info > 0) T_missing((T_e*)x_, n_*k_);
    else if (small) { /* getrs would wake its threads, which takes far longer than this */
        if (x_ != b_) __builtin_memcpy(x_, b_, n_*k_*sizeof(T_e));
        T_substitute(lu, pivots, (T_e*)x_, n_, k_, transposed);
    } else {
        if (k) ((void (*)(char*, int*, int*, T_e*, int*, int*, T_e*, int*, int*))c->blas[MP_tgetrs])(
            &how, &n, &k, lu, &n, pivots, w, &n, &info);
        if (info < 0) return LA_REFUSED();
        T_back(w, (T_e*)x_, n_, k_, n_);
    }
    c->release(c, mark);
""",
        ("n_", "n_", "n_ + k_"),
    ),
    "triangular_solve": Routine(
        "i64 n_, i64 k_, const void* a_, const void* b_, void* x_, int lower, int transposed",
        "n_ | k_",
        "n_, n_, 0",
        """\
    int n = (int)n_, k = (int)k_;
    char side = 'R', uplo = lower ? 'U' : 'L', how = transposed ? 'T' : 'N', unit = 'N';
    T_e one = 1;
    if (x_ != b_) __builtin_memcpy(x_, b_, n_*k_*sizeof(T_e));
    if (n && k) ((void (*)(char*, char*, char*, char*, int*, int*, T_e*, const T_e*, int*, T_e*, int*))
        c->blas[MP_ttrsm])(&side, &uplo, &how, &unit, &k, &n, &one, (const T_e*)a_, &n, (T_e*)x_, &k);
""",
        ("64", "n_", "n_", "k_"),
    ),
    "slogdet": Routine(
        "i64 n_, const void* a_, void* sign_, void* log_",
        "n_",
        "n_, n_, 0",
        """\
    int n = (int)n_, info = 0;
    char* mark = c->cursor;
    int* pivots = LA_NEW(int, n_);
    T_e *lu = LA_NEW(T_e, n_*n_), sign = 1;
    T_r total = 0;
    if (!pivots || !lu) return MP_NO_MEMORY;
    __builtin_memcpy(lu, a_, n_*n_*sizeof(T_e));
    if (n) ((void (*)(int*, int*, T_e*, int*, int*, int*))c->blas[MP_tgetrf])(&n, &n, lu, &n, pivots, &info);
    if (info < 0) return LA_REFUSED();
    if (info > 0) { sign = 0; total = -(T_r)__builtin_inf(); }
    else for (i64 i = 0; i < n_; i++) {
        T_e d = lu[i*n_ + i];
        T_r size = ABS(d);
        if (pivots[i] != i + 1) sign = -sign;
        sign *= d/size;
        total += LOG(size);
    }
    *(T_e*)sign_ = sign; *(T_r*)log_ = total;
    c->release(c, mark);
""",
        ("n_", "n_", "n_"),
    ),
    "cholesky": Routine(
        "i64 n_, const void* a_, void* out_, void* flag",
        "n_",
        "n_, n_, 0",
        """\
    int n = (int)n_, info = 0;
    T_e* l = (T_e*)out_;
    char uplo = 'U';
    if (out_ != a_) __builtin_memcpy(l, a_, n_*n_*sizeof(T_e));
    if (n) ((void (*)(char*, int*, T_e*, int*, int*))c->blas[MP_tpotrf])(&uplo, &n, l, &n, &info);
    if (info < 0) return LA_REFUSED();
    for (i64 i = 0; i < n_; i++) for (i64 j = i + 1; j < n_; j++) l[i*n_ + j] = 0;
    *(unsigned char*)flag = info > 0;
    if (info > 0) T_missing(l, n_*n_);
""",
        ("n_", "n_", "n_"),
    ),
    "qr": Routine(
        "i64 m_, i64 n_, i64 q_, const void* a_, void* q_out, void* r_out",
        "m_ | n_ | q_",
        "m_, n_, 0",
        """\
    i64 columns = LA_MAX(n_, q_), wanted = 64*(columns + 1); /* blocks of columns */
    int m = (int)m_, n = (int)n_, q = (int)q_, least = m < n ? m : n, info = 0;
    int size = (int)LA_MIN(wanted, LA_MOST);
    char* mark = c->cursor;
    T_e *w = LA_NEW(T_e, m_*columns), *tau = LA_NEW(T_e, least), *work = LA_NEW(T_e, size), *r = (T_e*)r_out;
    if (!w || !tau || !work) return MP_NO_MEMORY;
    T_turn((const T_e*)a_, w, m_, n_);
    if (least) ((void (*)(int*, int*, T_e*, int*, T_e*, T_e*, int*, int*))c->blas[MP_tgeqrf])(
        &m, &n, w, &m, tau, work, &size, &info);
    if (info < 0) return LA_REFUSED();
    for (i64 i = 0; i < q_; i++)
        for (i64 j = 0; j < n_; j++) r[i*n_ + j] = i <= j && i < m_ ? w[j*m_ + i] : 0;
    if (least == 0) for (i64 j = 0; j < q_; j++) for (i64 i = 0; i < m_; i++) w[j*m_ + i] = i == j;
    else ((void (*)(int*, int*, int*, T_e*, int*, T_e*, T_e*, int*, int*))c->blas[MP_tORGQR])(
        &m, &q, &least, w, &m, tau, work, &size, &info);
    if (info < 0) return LA_REFUSED();
    T_back(w, (T_e*)q_out, m_, q_, m_);
    c->release(c, mark);
""",
        ("m_", "n_", "LA_MIN(m_, n_) + q_"),
    ),
    "eigh": Routine(
        "i64 n_, const void* a_, void* values, void* vectors, void* flag",
        "n_ | 2*n_*n_ + 6*n_ + 1",
        "n_, n_, 0",
        """\
    i64 least = 2*n_*n_ + 6*n_ + 1, wanted = least + 34*n_ + 63;
    int n = (int)n_, info = 0, lwork = (int)LA_MIN(wanted, LA_MOST);
    int lrwork = (int)least, lwhole = 5*n + 8;
    char *mark = c->cursor, job = 'V', uplo = 'L';
    T_e *w = LA_NEW(T_e, n_*n_), *work = LA_NEW(T_e, lwork);
    T_r* rwork = LA_NEW(T_r, NEEDS_REALS(lrwork));
    int* iwork = LA_NEW(int, lwhole);
    if (!w || !work || !rwork || !iwork) return MP_NO_MEMORY;
    T_turn((const T_e*)a_, w, n_, n_);
    if (n) EIGH();
    if (info < 0) return LA_REFUSED();
    *(unsigned char*)flag = info > 0;
    T_back(w, (T_e*)vectors, n_, n_, n_);
    if (info > 0) {
        T_missing((T_e*)vectors, n_*n_);
        for (i64 i = 0; i < n_; i++) ((T_r*)values)[i] = (T_r)__builtin_nan("");
    }
    c->release(c, mark);
""",
        ("4", "n_", "n_", "n_"),
    ),
    "svd": Routine(
        "i64 m_, i64 n_, const void* a_, void* u_, void* s_, void* v_, void* flag, int full",
        "m_ | n_ | 4*LA_MIN(m_, n_)*LA_MIN(m_, n_) + 7*LA_MIN(m_, n_) + LA_MAX(m_, n_)",
        "m_, n_, 0",
        """\
    i64 k_ = LA_MIN(m_, n_), large = LA_MAX(m_, n_), uc = full ? m_ : k_, vr = full ? n_ : k_;
    i64 needed = LEAST_WORK;
    int m = (int)m_, n = (int)n_, k = (int)k_, ldv = (int)vr, info = 0, query = -1;
    char *mark = c->cursor, job = full ? 'A' : 'S';
    T_e *w = LA_NEW(T_e, m_*n_), *u = LA_NEW(T_e, m_*uc), *v = LA_NEW(T_e, n_*vr), *work, wanted = 0;
    T_r* rwork = LA_NEW(T_r, NEEDS_REALS(64 + 7*k_*k_ + 7*k_ + 2*large*k_));
    int* iwork = LA_NEW(int, 8*k_ + 8);
    if (!w || !u || !v || !rwork || !iwork) return MP_NO_MEMORY;
    T_turn((const T_e*)a_, w, m_, n_);
    if (k) {
        work = &wanted;
        SVD(query);
        if (info < 0) return LA_REFUSED();
        /* What it says is a float, rounded; and nonsense where its own ints did not hold the size. */
        double said = (double)REAL(wanted);
        int size = (int)(said > needed && said < LA_MOST - 1000. ? said*1.0000002 + 1 : needed);
        work = LA_NEW(T_e, size);
        if (!work) return MP_NO_MEMORY;
        SVD(size);
        if (info == -4) info = 1; /* there is a NaN in the matrix */
        if (info < 0) return LA_REFUSED();
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
    c->release(c, mark);
""",
        ("8", "m_", "n_", "LA_MIN(m_, n_)"),
    ),
    "eig": Routine(
        "i64 n_, const void* a_, void* values_, void* vectors_, void* flag",
        "n_ | 4*n_",
        "n_, n_, 0",
        """\
    i64 wanted = 64 + 40*n_;
    int n = (int)n_, info = 0, lwork = (int)LA_MIN(wanted, LA_MOST);
    char *mark = c->cursor, none = 'N', all = 'V';
    T_e *w = LA_NEW(T_e, n_*n_), *v = LA_NEW(T_e, n_*n_), *work = LA_NEW(T_e, lwork);
    T_r* parts = LA_NEW(T_r, 2*n_);
    T_z *values = (T_z*)values_, *vectors = (T_z*)vectors_;
    if (!w || !v || !work || !parts) return MP_NO_MEMORY;
    T_turn((const T_e*)a_, w, n_, n_);
    EIG();
    *(unsigned char*)flag = info > 0;
    if (info > 0) {
        for (i64 i = 0; i < n_; i++) values[i] = (T_r)__builtin_nan("");
        for (i64 i = 0; i < n_*n_; i++) vectors[i] = (T_r)__builtin_nan("");
    }
    c->release(c, mark);
""",
        ("16", "n_", "n_", "n_"),
    ),
}

_REAL = {
    "EIGH": "((void (*)(char*, char*, int*, T_e*, int*, T_r*, T_e*, int*, int*, int*, int*))"
    "c->blas[MP_tsyevd])("
    "&job, &uplo, &n, w, &n, (T_r*)values, work, &lwork, iwork, &lwhole, &info)",
    "SVD": "((void (*)(char*, int*, int*, T_e*, int*, T_r*, T_e*, int*, T_e*, int*, T_e*, int*, int*, "
    "int*))c->blas[MP_tgesdd])(&job, &m, &n, w, &m, (T_r*)s_, u, &m, v, &ldv, work, &SIZE, iwork, &info)",
    "EIG": """if (n) ((void (*)(char*, char*, int*, T_e*, int*, T_r*, T_r*, T_e*, int*, T_e*, int*, T_e*,
        int*, int*))c->blas[MP_tgeev])(
        &none, &all, &n, w, &n, parts, parts + n, v, &n, v, &n, work, &lwork, &info);
    if (info < 0) return LA_REFUSED();
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
    "int*, int*))c->blas[MP_tgesdd])(&job, &m, &n, w, &m, (T_r*)s_, u, &m, v, &ldv, work, &SIZE, rwork, "
    "iwork, &info)",
    "EIG": """if (n) ((void (*)(char*, char*, int*, T_e*, int*, T_e*, T_e*, int*, T_e*, int*, T_e*, int*,
        T_r*, int*))c->blas[MP_tgeev])(
        &none, &all, &n, w, &n, values, v, &n, v, &n, work, &lwork, parts, &info);
    if (info < 0) return LA_REFUSED();
    T_back(v, vectors, n_, n_, n_)""",
}


def define(writer: FunctionWriter, operation: str, dtype: np.dtype, routine: Routine) -> str:
    """Put the C function of an operation into the writer's routines; its name."""
    name = f"{writer.type(dtype)}_{operation}"
    head = f"int {name}(mp_ctx* c, i64 site, {routine.parameters})"
    body, inner = f"{text_of(routine.body, dtype)}    return 0;\n", ""
    if routine.work:
        given = ", ".join(parameter.rsplit(" ", 1)[1] for parameter in routine.parameters.split(", "))
        inner = f"static __attribute__((noinline)) {head.replace(name, f'{name}_by_all')} {{\n{body}}}\n"
        body = f"""\
    i64 work = {reduce("mp_times({}, {})".format, routine.work)};
    int alone = LA_ALONE(work) && work < 1 << 26; /* of more its threads are worth waiting for */
    if (alone) c->blas_alone(1);
    int status = {name}_by_all(c, site, {given});
    if (alone) c->blas_alone(0);
    return status;
"""
    writer.use("blas")
    writer.routines["la_sizes"] = (SIZES, "")
    text = f"""\
{inner}static __attribute__((noinline)) {head} {{
    if (({routine.counted}) >> 31) return mp_fail(c, site, 0, {routine.told}, 0);
{body}}}
"""
    writer.routines[name] = (text, head)
    return name


def text_of(body: str, dtype: np.dtype) -> str:
    """The text of a body for one element type."""
    name, is_complex = c_name(dtype), dtype.kind == "c"
    real, suffix = ("float", "f") if name in ("f32", "c64") else ("double", "")
    for word, text in (_COMPLEX if is_complex else _REAL).items():
        for match in re.findall(rf"\b{word}\((\w*)\)", body):
            body = body.replace(f"{word}({match})", text.replace("SIZE", match))
    letter = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}[name]
    size = f"__builtin_cabs{suffix}" if is_complex else f"__builtin_fabs{suffix}"
    for word, text in {
        "ABS(": size + "(",
        "LOG(": f"__builtin_log{suffix}(",
        "LEAST_WORK": "k_*k_ + 3*k_ + large" if is_complex else "4*k_*k_ + 7*k_ + large",
        "NEEDS_REALS(": "(" if is_complex else "0*(",
        "REAL(": f"__builtin_creal{suffix}(" if is_complex else "(",
        "ORGQR": "ungqr" if is_complex else "orgqr",
        "BY_VALUE ": "" if is_complex else "*",
        "ELEMENT": f"{real} _Complex" if is_complex else real,
        "PART": real,
        "MP_t": f"MP_{letter}",
        "mp_tgemm": f"mp_{letter}gemm",
        "T_": f"{name}_la_",
    }.items():
        body = body.replace(word, text)
    return body


def lapack_call(writer: FunctionWriter, stmt: LibraryCall) -> str:
    """The call of a routine of LAPACK, on whole matrices."""
    dtype, dim, routine = stmt.reads[0].buf.dtype, writer.printer.dim, ROUTINES[stmt.operation]
    writer.routines[f"{c_name(dtype)}_la_common"] = (text_of(COMMON, dtype), "")
    function = define(writer, stmt.operation, dtype, routine)
    columns = [view.extents[-1] if view.extents else 1 for view in (*stmt.reads, *stmt.writes)]
    # The first matrix is m x n, or n x n; the second has k columns, as the first result of one operand has q.
    sizes = {"m_": stmt.reads[0].extents[0], "n_": columns[0], "k_": columns[1], "q_": columns[1]}
    parameters = [p.rsplit(" ", 1) for p in routine.parameters.split(", ")]
    words = ["c", str(stmt.site), *(dim(sizes[name]) for kind, name in parameters if kind == "i64")]
    words += [writer.address(view) for view in (*stmt.reads, *stmt.writes)]
    words += [str(int(dict(stmt.attributes)[name])) for kind, name in parameters if kind == "int"]
    return f"{function}({', '.join(words)})"


__all__ = ["ROUTINES", "SIZES", "Routine", "define", "lapack_call", "text_of"]
