"""Library calls as Cython expressions.

In: a `Call` and the function it stands in. Out: the call; the C of the routine goes into the writer's
`routines`. All but the combination of lanes give 0, or what the program returns where it can't go on.

    gemm(a, b, c) on C-contiguous f64   ->   f64_gemm(c, 0, c'N', c'N', n, m, k, b, n, a, k, out, n)
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import numpy as np

from metaphrase.astpasses.schedule.expressions import address
from metaphrase.astpasses.schedule.nest import Call, View
from metaphrase.core.scalars import MONOIDS

from .cython_fourier import fourier_call
from .cython_lapack import lapack_call
from .spell import c_name

if TYPE_CHECKING:
    from .cython_function import FunctionWriter


def routine_text(writer: FunctionWriter, stmt: Call) -> str:
    """The text of one call."""
    return ROUTINES.get(stmt.routine, lapack_call)(writer, stmt)


def address_of(writer: FunctionWriter, view: View) -> str:
    """A pointer to the first element of a view."""
    offset = address(view.index, view.buf.dims, writer.printer)
    writer.type(view.buf.dtype)
    return view.buf.name if offset == "0" else f"{view.buf.name} + {offset}"


_LETTER = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}
_GEMM = """\
#include "abi_blas.h"
static int T_gemm(mp_ctx* c, i64 site, char tb, char ta, i64 n, i64 m, i64 k, const void* b, i64 ldb,
                  const void* a, i64 lda, void* out, i64 ldc) {
    static const R one[] = {1, 0}, zero[] = {0, 0};
    if ((n | m | k | ldb | lda | ldc) >> 31) return mp_fail(c, site, 0, m, k, n, 0);
    mp_Lgemm(c, tb, ta, (int)n, (int)m, (int)k, ONE, (const R*)b, (int)(ldb + !ldb), (const R*)a,
             (int)(lda + !lda), ZERO, (R*)out, (int)(ldc + !ldc)); /* BLAS wants 1 for a row of no columns */
    return 0;
}
"""


def _gemm(writer: FunctionWriter, stmt: Call) -> str:
    """C = A B in row-major order is C' = B' A' in BLAS's column-major order."""
    (a, b), (out,) = stmt.reads, stmt.writes
    (m, k), n = a.extents, b.extents[1]
    name = c_name(out.buf.dtype)
    writer.use("blas")
    dim = writer.printer.dim
    operands: list[list[str]] = []
    transposed = []
    for view in (b, a):
        rows, columns = view.strides
        transposed.append("c'N'" if columns == 1 else "c'T'")
        operands.append([address_of(writer, view), dim(rows if columns == 1 else columns)])
    is_complex = out.buf.dtype.kind == "c"
    text = _GEMM.replace("T_gemm", f"{name}_gemm").replace("Lgemm", f"{_LETTER[name]}gemm")
    for number in ("one", "zero"):  # complex ones are passed by their address
        text = text.replace(number.upper(), number if is_complex else "*" + number)
    real = "float" if name in ("f32", "c64") else "double"
    head = (
        f"int {name}_gemm(mp_ctx* c, i64 site, char tb, char ta, i64 n, i64 m, i64 k, "
        "const void* b, i64 ldb, const void* a, i64 lda, void* out, i64 ldc)"
    )
    writer.routines[f"{name}_gemm"] = (re.sub(r"\bR\b", real, text), head)
    operands.append([address_of(writer, out), dim(out.strides[0])])
    words = ["c", str(stmt.site), *transposed, dim(n), dim(m), dim(k), *itertools.chain(*operands)]
    return f"{name}_gemm({', '.join(words)})"


_SORT = """\
static inline int T_before(T a, T b) { return BEFORE; }
static int T_sort(mp_ctx* c, T* x, i64 n, i64 stride, T* space) {
    T *from = space, *to;
    char* mark = c->cursor;
    if (stride != 1) { for (i64 i = 0; i < n; i++) space[i] = x[i*stride]; }
    else { from = x; }
    for (i64 low = 0; low < n; low += 16) {
        i64 high = low + 16 < n ? low + 16 : n;
        for (i64 i = low + 1; i < high; i++) {
            T v = from[i];
            i64 j = i;
            while (j > low && T_before(v, from[j - 1])) { from[j] = from[j - 1]; j--; }
            from[j] = v;
        }
    }
    to = n > 16 && stride != 1 ? (T*)mp_scratch(c, n*sizeof(T)) : space;
    if (!to) return MP_NO_MEMORY;
    for (i64 width = 16; width < n; width *= 2) {
        for (i64 low = 0; low < n; low += 2*width) {
            i64 mid = low + width < n ? low + width : n, high = low + 2*width < n ? low + 2*width : n;
            i64 i = low, j = mid;
            for (i64 k = low; k < high; k++)
                to[k] = i < mid && (j >= high || !T_before(from[j], from[i])) ? from[i++] : from[j++];
        }
        T* other = from; from = to; to = other;
    }
    if (from != x) for (i64 i = 0; i < n; i++) x[i*stride] = from[i];
    if (n > 16 && stride != 1) c->release(c, mark);
    return 0;
}
"""
_ARGSORT = """\
static inline int T_ahead(T a, T b) { return BEFORE; }
static int T_argsort(mp_ctx* c, const T* x, i64 n, i64 step, i64* order, i64 stride, i64* space) {
    char* mark = c->cursor;
    i64 *from = space, *to = n > 16 ? (i64*)mp_scratch(c, n*sizeof(i64)) : space;
    if (!to) return MP_NO_MEMORY;
    for (i64 i = 0; i < n; i++) from[i] = i;
    for (i64 low = 0; low < n; low += 16) {
        i64 high = low + 16 < n ? low + 16 : n;
        for (i64 i = low + 1; i < high; i++) {
            i64 v = from[i], j = i;
            while (j > low && T_ahead(x[v*step], x[from[j - 1]*step])) { from[j] = from[j - 1]; j--; }
            from[j] = v;
        }
    }
    for (i64 width = 16; width < n; width *= 2) {
        for (i64 low = 0; low < n; low += 2*width) {
            i64 mid = low + width < n ? low + width : n, high = low + 2*width < n ? low + 2*width : n;
            i64 i = low, j = mid;
            for (i64 k = low; k < high; k++)
                to[k] = i < mid && (j >= high || !T_ahead(x[from[j]*step], x[from[i]*step])) ? from[i++] :
                from[j++];
        }
        i64* other = from; from = to; to = other;
    }
    for (i64 i = 0; i < n; i++) order[i*stride] = from[i];
    if (n > 16) c->release(c, mark);
    return 0;
}
"""


_ARGSORT_BOOL = """\
static int b1_argsort(mp_ctx* c, const b1* x, i64 n, i64 step, i64* order, i64 stride, i64* space) {
    i64 p = 0, q = 0;
    for (i64 i = 0; i < n; i++) { space[p] = i; p += !x[i*step]; }
    for (i64 i = 0; i < p; i++) order[i*stride] = space[i];
    for (i64 i = 0; i < n; i++) { space[q] = i; q += x[i*step] != 0; }
    for (i64 i = 0; i < q; i++) order[(p + i)*stride] = space[i];
    return 0;
}
"""  # two values need no comparisons: first the places of the one, then those of the other


def _ordered(text: str, dtype: np.dtype) -> str:
    name = c_name(dtype)
    before = "a < b"
    if dtype.kind == "f" and name != "bf16":
        before = "(a < b) | ((b != b) & (a == a))"
    elif name == "bf16":
        before = "bf16_to_f32(a) < bf16_to_f32(b)"
    return re.sub(r"\bT\b", name, text.replace("T_", name + "_").replace("BEFORE", before))


def _sort(writer: FunctionWriter, stmt: Call) -> str:
    line, space = stmt.writes
    name = writer.type(line.buf.dtype)
    if name == "bf16":
        writer.printer.helpers.add("bf16_to_f32")
    writer.routines[f"{name}_sort"] = (
        _ordered(_SORT, line.buf.dtype),
        f"int {name}_sort(mp_ctx* c, {name}* x, i64 n, i64 stride, {name}* space)",
    )
    dim = writer.printer.dim
    return (
        f"{name}_sort(c, {address_of(writer, line)}, {dim(line.extents[0])}, {dim(line.strides[0])}, "
        f"{address_of(writer, space)})"
    )


def _argsort(writer: FunctionWriter, stmt: Call) -> str:
    (keys,), (line, space) = stmt.reads, stmt.writes
    name = writer.type(keys.buf.dtype)
    if name == "bf16":
        writer.printer.helpers.add("bf16_to_f32")
    writer.routines[f"{name}_argsort"] = (
        _ARGSORT_BOOL if name == "b1" else _ordered(_ARGSORT, keys.buf.dtype),
        f"int {name}_argsort(mp_ctx* c, const {name}* x, i64 n, i64 step, i64* order, i64 stride, "
        "i64* space)",
    )
    dim = writer.printer.dim
    return (
        f"{name}_argsort(c, {address_of(writer, keys)}, {dim(keys.extents[0])}, {dim(keys.strides[0])}, "
        f"{address_of(writer, line)}, {dim(line.strides[0])}, {address_of(writer, space)})"
    )


def _lanes(writer: FunctionWriter, stmt: Call) -> str:
    """The lanes of a reduction combined, halves first."""
    lanes, total = stmt.reads[0].buf, stmt.writes[0].buf
    monoid, name = MONOIDS[dict(stmt.info)["monoid"]], writer.type(lanes.dtype)
    function = f"{name}_{monoid.combine}"
    if monoid.assigns:
        combined = f"a {monoid.assigns[:-1]} b"
    else:  # of 0.0 and -0.0, which are equal, `max` and `min` give their second operand
        combined = writer.printer.call(function, "b", "a")[0]
    width, routine = lanes.dims[0], f"{name}_lanes_{monoid.name}"
    writer.routines[routine] = (
        f"""\
static inline {name} {routine}({name}* lanes) {{
    for (int half = {width}/2; half; half /= 2)
        for (int k = 0; k < half; k++) {{
            {name} a = lanes[k], b = lanes[k + half];
            lanes[k] = {combined};
        }}
    return lanes[0];
}}""",
        f"{name} {routine}({name}* lanes)",
    )
    call = f"{routine}({lanes.name})"
    if monoid.assigns:
        return f"{total.name} {monoid.assigns} {call}"
    return f"{total.name} = {writer.printer.call(function, total.name, call)[0]}"


ROUTINES = {
    "fft": fourier_call,
    "fft__inverse": fourier_call,
    "lanes": _lanes,
    "gemm": _gemm,
    "sort": _sort,
    "argsort": _argsort,
}

__all__ = ["routine_text", "address_of", "ROUTINES"]
