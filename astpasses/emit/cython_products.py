"""Products of matrices as C around BLAS, in parts that threads of ours share.

In: a `LibraryCall` of a product, of two matrices of which rows or columns are close. Out: the call of the C function,
whose text goes into the writer's `routines`:

    out = a @ b      ->   f64_product(c, 0, c'N', c'N', n, m, k, b, n, a, k, out, n)
    out = a @ a.T    ->   f64_square(c, 0, c'N', m, k, a, k, out, m)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from metaphrase.astpasses.schedule.nest import LibraryCall, View

from .cython_lapack import SIZES, Routine, define, text_of
from .spell import c_name

if TYPE_CHECKING:
    from .cython_function import FunctionWriter

PLAIN, TURNED = "c'N'", "c'T'"  # whether BLAS reads a matrix transposed
_ELEMENT = "typedef ELEMENT T_e;\n"

# C = A B in row-major order is C' = B' A' in BLAS's column-major order. BLAS wants a distance of 1 for a row of no
# columns. A large product is cut into as many parts as there are threads, of its rows or of its columns, each of which
# is done by one thread (runtime/blas_threads.h says why).
PRODUCT_PARTS = """\
static __attribute__((noinline)) int T_part_of_product(mp_ctx* c, void** buffers, const i64* sizes, i64 part) {
    static const PART one[] = {1, 0}, zero[] = {0, 0};
    i64 n = sizes[0], m = sizes[1], k = sizes[2], ldb = sizes[3], lda = sizes[4], ldc = sizes[5];
    i64 first = part*sizes[8], b_from = 0, a_from = 0, out_from = 0;
    char tb = (char)sizes[6], ta = (char)sizes[7];
    if (sizes[9]) {
        b_from = first*(tb == 'N' ? 1 : ldb), out_from = first;
        n = LA_MIN(sizes[8], n - first);
    } else {
        a_from = first*(ta == 'N' ? lda : 1), out_from = first*ldc;
        m = LA_MIN(sizes[8], m - first);
    }
    mp_tgemm(c, tb, ta, (int)n, (int)m, (int)k, BY_VALUE one, (const PART*)((const T_e*)buffers[0] + b_from),
             (int)(ldb + !ldb), (const PART*)((const T_e*)buffers[1] + a_from), (int)(lda + !lda), BY_VALUE zero,
             (PART*)((T_e*)buffers[2] + out_from), (int)(ldc + !ldc));
    return 0;
}
"""
PRODUCT = Routine(
    "char tb, char ta, i64 n, i64 m, i64 k, const void* b, i64 ldb, const void* a, i64 lda, void* out, i64 ldc",
    "n | m | k | ldb | lda | ldc",
    "m, k, n",
    """\
    void* buffers[] = {(void*)b, (void*)a, out};
    i64 work = mp_times(mp_times(n, m), k), by_columns = n > m, longest = by_columns ? n : m;
    i64 parts = LA_MIN(LA_MIN(c->threads, longest >> 6), work >> 21), length = parts < 2 ? longest : longest/parts + 1;
    i64 sizes[] = {n, m, k, ldb, lda, ldc, tb, ta, (length + 15) & ~15, by_columns};
    int alone = LA_ALONE(work), shared = c->blas_alone && work > 1 << 18;
    if (!shared) sizes[8] = longest;
    if (alone) c->blas_alone(1);
    int status = shared ? mp_share_large(c, T_part_of_product, buffers, sizes, (longest + sizes[8] - 1)/sizes[8])
                        : T_part_of_product(c, buffers, sizes, 0);
    if (alone) c->blas_alone(0);
    if (status) return status;
""",
)
# A A', half of which is the other half: rows up to the diagonal, the longest first, and the columns that they are, too.
SQUARE_PARTS = """\
static __attribute__((noinline)) int T_part_of_square(mp_ctx* c, void** buffers, const i64* sizes, i64 part) {
    static const PART one[] = {1, 0}, zero[] = {0, 0};
    i64 m = sizes[0], ldc = sizes[3], first = ((m - 1)/sizes[5] - part)*sizes[5], rows = LA_MIN(sizes[5], m - first);
    char ta = (char)sizes[4], tb = ta == 'N' ? 'T' : 'N', upper = 'U';
    int k = (int)sizes[1], n = (int)rows, lda = (int)(sizes[2] + !sizes[2]), ld = (int)(ldc + !ldc);
    const T_e *a = (const T_e*)buffers[0], *own = a + first*(ta == 'N' ? sizes[2] : 1);
    T_e *out = (T_e*)buffers[1], *here = out + first*ldc;
    if (first) mp_tgemm(c, tb, ta, (int)first, n, k, BY_VALUE one, (const PART*)a, lda, (const PART*)own, lda,
                        BY_VALUE zero, (PART*)here, ld);
    DIAGONAL
    for (i64 j = 0; j < first; j++) for (i64 i = 0; i < rows; i++) out[j*ldc + first + i] = here[i*ldc + j];
    for (i64 i = 0; i < rows; i++) for (i64 j = 0; j < i; j++) here[j*ldc + first + i] = here[i*ldc + first + j];
    return 0;
}
"""
_DIAGONAL = """\
((void (*)(char*, char*, int*, int*, const PART*, const T_e*, int*, const PART*, T_e*, int*))c->blas[MP_tsyrk])(
        &upper, &tb, &n, &k, one, own, &lda, zero, here + first, &ld);"""
_COMPLEX_DIAGONAL = """\
(void)upper;
    mp_tgemm(c, tb, ta, n, n, k, BY_VALUE one, (const PART*)own, lda, (const PART*)own, lda, BY_VALUE zero,
             (PART*)(here + first), ld);"""
SQUARE = Routine(
    "char ta, i64 m, i64 k, const void* a, i64 lda, void* out, i64 ldc",
    "m | k | lda | ldc",
    "m, k, m",
    """\
    void* buffers[] = {(void*)a, out};
    i64 sizes[] = {m, k, lda, ldc, ta, LA_MAX(64, m >> 3)}, work = mp_times(mp_times(m, m), k);
    int alone = LA_ALONE(work);
    if (alone) c->blas_alone(1);
    int status = mp_share_large(c, T_part_of_square, buffers, sizes, (m + sizes[5] - 1)/sizes[5]);
    if (alone) c->blas_alone(0);
    if (status) return status;
""",
)


def product_call(writer: FunctionWriter, stmt: LibraryCall) -> str:
    """The product of two matrices: of each its rows or its columns are close."""
    (a, b), (out,) = stmt.reads, stmt.writes
    (m, k), n, dim = a.extents, b.extents[1], writer.printer.dim
    dtype = out.buf.dtype
    writer.routines["la_sizes"] = (SIZES, "")
    if _is_square(a, b):
        writer.routines[f"{c_name(dtype)}_la_square_parts"] = (_parts(SQUARE_PARTS, dtype), "")
        function, turned = define(writer, "square", dtype, SQUARE), a.strides[1] != 1
        sizes = [dim(m), dim(k), writer.address(a), dim(a.strides[turned]), writer.address(out), dim(out.strides[0])]
        return f"{function}({', '.join(['c', str(stmt.site), TURNED if turned else PLAIN, *sizes])})"
    letters, operands = [], []
    for view in (b, a):
        rows, columns = view.strides
        letters.append(PLAIN if columns == 1 else TURNED)
        operands += [writer.address(view), dim(rows if columns == 1 else columns)]
    operands += [writer.address(out), dim(out.strides[0])]
    writer.routines[f"{c_name(dtype)}_la_parts"] = (_parts(PRODUCT_PARTS, dtype), "")
    function = define(writer, "product", dtype, PRODUCT)
    return f"{function}({', '.join(['c', str(stmt.site), *letters, *map(dim, (n, m, k)), *operands])})"


def _is_square(a: View, b: View) -> bool:
    """Whether the second matrix is the first one transposed."""
    turned = (b.index, b.extents[::-1], b.strides[::-1])
    return a.buf is b.buf and (a.index, a.extents, a.strides) == turned and 1 in a.strides


def _parts(text: str, dtype: np.dtype) -> str:
    """The C function of one part."""
    return text_of(_ELEMENT + text.replace("DIAGONAL", _COMPLEX_DIAGONAL if dtype.kind == "c" else _DIAGONAL), dtype)


__all__ = ["product_call"]
