"""Order, as C: sorting, the places that sort, searches in what is sorted; what is listed by a mask in cython_masks.py.

In: a `LibraryCall` and the function it stands in. Out: the call; the C of the routine, once for each dtype, goes into
the writer's `routines`. NaN stands behind all numbers, equal elements keep their order. Memory for work is the arena's.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

from metaphrase.astpasses.schedule.nest import LibraryCall

from .cython_masks import listed

if TYPE_CHECKING:
    from .cython_function import FunctionWriter

_UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}

# Lines of up to 16 by insertion, then merged: `from` and `to` change places.
_MERGED = """\
    for (i64 low = 0; low < n; low += 16) {
        i64 high = low + 16 < n ? low + 16 : n;
        for (i64 i = low + 1; i < high; i++) {
            E v = from[i];
            i64 j = i;
            while (j > low && BEFORE(v, from[j - 1])) { from[j] = from[j - 1]; j--; }
            from[j] = v;
        }
    }
    for (i64 width = 16; width < n; width *= 2) {
        for (i64 low = 0; low < n; low += 2*width) {
            i64 mid = low + width < n ? low + width : n, high = low + 2*width < n ? low + 2*width : n;
            i64 i = low, j = mid;
            for (i64 k = low; k < high; k++)
                to[k] = i < mid && (j >= high || !BEFORE(from[j], from[i])) ? from[i++] : from[j++];
        }
        E* other = from; from = to; to = other;
    }
"""
# Digits of 8 bits, the lowest first: equal keys keep their order. A digit that all have alike is passed over.
_BY_DIGITS = """\
    i64 counts[WIDTH][256] = {0};
    for (i64 i = 0; i < n; i++) {
        U key = KEY(from[i]);
        for (int d = 0; d < WIDTH; d++) counts[d][key >> 8*d & 255]++;
    }
    for (int d = 0; d < WIDTH; d++) {
        i64 *count = counts[d], at = 0;
        if (count[KEY(from[0]) >> 8*d & 255] == n) continue;
        for (int v = 0; v < 256; v++) { i64 many = count[v]; count[v] = at; at += many; }
        for (i64 i = 0; i < n; i++) to[count[KEY(from[i]) >> 8*d & 255]++] = from[i];
        E* other = from; from = to; to = other;
    }
"""
_SORT = """\
static inline U T_key(T x) { KEYED }
static inline int T_before(T a, T b) { return ORDER; }
static int T_sort(mp_ctx* c, T* x, i64 n, i64 stride) {
    char* mark = c->cursor;
BY_NUMPY    int apart = stride != 1, merges = n > 16;
    T few[16], *from = x, *to = few, *space = few;
    if (merges && !(space = (T*)mp_scratch(c, mp_times(n, (1 + apart)*sizeof(T))))) return MP_NO_MEMORY;
    if (merges) to = apart ? space + n : space;
    if (apart) { from = space; for (i64 i = 0; i < n; i++) space[i] = x[i*stride]; }
    if (n < 256) {
    MERGED    } else {
    DIGITS    }
    if (from != x) for (i64 i = 0; i < n; i++) x[i*stride] = from[i];
    if (merges) c->release(c, mark);
    return 0;
}
"""
_BY_NUMPY = """\
    int is_for_numpy = n < c->sorters_below;
MINUS_ZERO    if (is_for_numpy) {
        T* line = stride == 1 ? x : (T*)mp_scratch(c, mp_times(n, sizeof(T)));
        if (!line) return MP_NO_MEMORY;
        if (line != x) for (i64 i = 0; i < n; i++) line[i] = x[i*stride];
        mp_begin(c);
        c->sorters[MP_sort_T](line, n, 0);
        if (mp_end(c)) return MP_INTERRUPTED;
        if (line != x) { for (i64 i = 0; i < n; i++) x[i*stride] = line[i]; c->release(c, mark); }
        return 0;
    }
"""
# Which of two zeros comes first, NumPy leaves open.
_MINUS_ZERO = """\
    if (is_for_numpy) for (i64 i = 0; i < n; i++) {
        union { T from; U to; } b = { x[i*stride] };
        is_for_numpy &= b.to != SIGN;
    }
"""
_NUMPY_SORTS = ("i32", "u32", "i64", "u64", "f32", "f64")  # the context's sorters
# What stands at a place lies between two elements of a sorted sample; all else is left out, again and again.
_RANKED = """\
static int T_narrow(mp_ctx* c, const T* x, i64 n, i64 step, i64 place, T* line, i64* begin, i64* end) {
    const T* from = x; /* in the end line[0] to line[*end - *begin - 1] are what stands at *begin to *end - 1 */
    i64 first = 0, held = n, apart = step, next = place + 1 < n ? place + 1 : place;
    for (int shrinks = 1; shrinks && held > 96;) {
        T sample[512];
        const i64 count = held < 8192 ? 64 : 512, margin = held < 8192 ? 12 : 48; /* 3 or 4 standard deviations */
        const i64 at = (i64)((double)(place - first)/held*count);
        for (i64 k = 0; k < count; k++) sample[k] = from[(held - 1)*k/(count - 1)*apart];
        int status = T_sort(c, sample, count, 1);
        if (status) return status;
        const int open = at < margin, closed = at < count - margin;
        const T low = sample[open ? 0 : at - margin], high = sample[closed ? at + margin : 0];
        i64 before = 0, many = 0;
        for (i64 i = 0, k; i < held; i += k) {
            unsigned char within[256];
            const i64 block = held - i < 256 ? held - i : 256;
            for (k = 0; k < block; k++) {
                const T v = from[(i + k)*apart];
                const int less = !open & T_before(v, low), more = closed & T_before(high, v);
                within[k] = !(less | more);
                before += less;
            }
            for (k = 0; k < block; k++) { line[many] = from[(i + k)*apart]; many += within[k]; }
        }
        shrinks = 4*many < 3*held;
        first += before; held = many; from = line; apart = 1;
        if (place < first || next >= first + held) { first = 0; held = n; from = x; shrinks = 0; }
    }
    if (from == x) for (i64 i = 0; i < n; i++) line[i] = x[i*step];
    *begin = first; *end = first + held;
    return T_sort(c, line, held, 1);
}
static int T_ranked(mp_ctx* c, const T* x, i64 n, i64 step, const i64* places, i64 m, i64 apart, T* out, i64 stride) {
    char* mark = c->cursor;
    T* line = n > 0 ? (T*)mp_scratch(c, mp_times(n, sizeof(T))) : 0;
    if (n < 1) return 0;
    if (!line) return MP_NO_MEMORY;
    i64 begin = 0, end = 0;
    if (m > 24) { /* as good as all */
        for (i64 i = 0; i < n; i++) line[i] = x[i*step];
        int status = T_sort(c, line, n, 1);
        if (status) return status;
        end = n;
    }
    for (i64 k = 0; k < m; k++) {
        i64 place = places[k*apart];
        place = place < 0 ? 0 : place < n ? place : n - 1;
        if (place < begin || place >= end) {
            int status = T_narrow(c, x, n, step, place, line, &begin, &end);
            if (status) return status;
        }
        out[k*stride] = line[place - begin];
    }
    c->release(c, mark);
    return 0;
}
"""
_ARGSORT = """\
static inline U T_place_key(T x) { KEYED }
static inline int T_ahead(T a, T b) { return ORDER; }
typedef struct { U key; i64 place; } T_placed;
static int T_places_by_digits(mp_ctx* c, const T* x, i64 n, i64 step, i64* order, i64 stride) {
    char* mark = c->cursor;
    T_placed *from = (T_placed*)mp_scratch(c, mp_times(n, 2*sizeof(T_placed))), *to = from + n;
    if (!from) return MP_NO_MEMORY;
    for (i64 i = 0; i < n; i++) { from[i].key = T_place_key(x[i*step]); from[i].place = i; }
DIGITS    for (i64 i = 0; i < n; i++) order[i*stride] = from[i].place;
    c->release(c, mark);
    return 0;
}
static int T_argsort(mp_ctx* c, const T* x, i64 n, i64 step, i64* order, i64 stride) {
    if (n >= 256) return T_places_by_digits(c, x, n, step, order, stride);
    char* mark = c->cursor;
    int merges = n > 16;
    i64 few[16], *from = few, *to;
    if (merges && !(from = (i64*)mp_scratch(c, mp_times(n, 2*sizeof(i64))))) return MP_NO_MEMORY;
    to = merges ? from + n : few;
    for (i64 i = 0; i < n; i++) from[i] = i;
MERGED    for (i64 i = 0; i < n; i++) order[i*stride] = from[i];
    if (merges) c->release(c, mark);
    return 0;
}
"""
_ARGSORT_BOOL = """\
static int b1_argsort(mp_ctx* c, const b1* x, i64 n, i64 step, i64* order, i64 stride) {
    i64 p = 0;
    for (i64 i = 0; i < n; i++) { order[p*stride] = i; p += !x[i*step]; }
    for (i64 i = 0; p < n; i++) { order[p*stride] = i; p += x[i*step] != 0; }
    return 0;
}
"""  # two values need no comparisons: first the places of the one, then those of the other

_SEARCH = """\
static inline i64 T_SIDE(T a, T v) { return -(i64)(ORDER); }
static inline __attribute__((always_inline)) void T_places_SIDE(
    const T* a, i64 n, i64 step, const T* v, i64 m, i64 apart, i64* places, i64 stride) {
    i64 k = 0;
    for (; n && k + 16 <= m; k += 16) {
        i64 low[16] = {0};
        T x[16];
        for (i64 j = 0; j < 16; j++) x[j] = v[(k + j)*apart];
        for (i64 left = n, half; left > 1; left -= half) {
            half = left/2;
            for (i64 j = 0; j < 16; j++) low[j] += half & T_SIDE(a[(low[j] + half - 1)*step], x[j]);
        }
        for (i64 j = 0; j < 16; j++) places[(k + j)*stride] = low[j] - T_SIDE(a[low[j]*step], x[j]);
    }
    for (; k < m; k++) {
        i64 low = 0;
        for (i64 left = n, half; left > 1; left -= half) {
            half = left/2;
            low += half & T_SIDE(a[(low + half - 1)*step], v[k*apart]);
        }
        places[k*stride] = n ? low - T_SIDE(a[low*step], v[k*apart]) : 0;
    }
}
static int T_search_SIDE(const T* a, i64 n, i64 step, const T* v, i64 m, i64 apart, i64* places, i64 stride) {
    if (step == 1) T_places_SIDE(a, n, 1, v, m, apart, places, stride);
    else T_places_SIDE(a, n, step, v, m, apart, places, stride);
    return 0;
}
"""  # sixteen searches side by side, in vectors; no jump hangs on what is compared

_AMONG = """\
static inline int T_same(T a, T v) { return SAME; }
static int T_contains(mp_ctx* c, const T* a, i64 n, i64 step, const T* v, i64 m, i64 apart, b1* among, i64 stride) {
    i64 places[256];
BY_TABLE    for (i64 k = 0; k < m; k += 256) {
        i64 many = m - k < 256 ? m - k : 256;
        T_search_below(a, n, step, v + k*apart, many, apart, places, 1);
        for (i64 j = 0; j < many; j++)
            among[(k + j)*stride] = places[j] < n && T_same(a[places[j]*step], v[(k + j)*apart]);
    }
    return 0;
}
"""
_BY_TABLE = """\
    const U low = n ? (U)a[0] : 0, range = n ? (U)((U)a[(n - 1)*step] - low) : 0;
    if (n && (range < 256 || range/4 < m)) {
        char* mark = c->cursor;
        b1 few[256], *table = range < 256 ? few : (b1*)mp_scratch(c, range + 1);
        if (!table) return MP_NO_MEMORY;
        __builtin_memset(table, 0, range + 1);
        for (i64 i = 0; i < n; i++) table[(U)((U)a[i*step] - low)] = 1;
        for (i64 k = 0; k < m; k++) {
            const U place = (U)((U)v[k*apart] - low);
            among[k*stride] = (place <= range) & table[place <= range ? place : 0];
        }
        c->release(c, mark);
        return 0;
    }
"""  # whole numbers that lie close together


def _key(kind: str, name: str) -> str:
    """The body of a function from a number to an unsigned one that is ordered alike: NaN last, zeros equal."""
    if name == "bf16":
        return "U b = x & 0x7fff; return b > 0x7f80 ? 0xffff : !b ? SIGN : x ^ (x >> 15 ? 0xffff : SIGN);"
    if kind == "f":
        return "union { T from; U to; } b = { x + 0 }; return x != x ? (U)-1 : b.to ^ (b.to & SIGN ? (U)-1 : SIGN);"
    return "return x != 0;" if kind == "b" else "return x;" if kind == "u" else "return (U)x ^ SIGN;"


def _ordered(writer: FunctionWriter, stmt: LibraryCall, text: str, element: str, before: str, key: str) -> str:
    """The text of a sorting routine of elements that it moves: `before(a, b)` compares two, `key(a)` is as ordered."""
    dtype = stmt.reads[0].buf.dtype
    name, width = writer.type(dtype), dtype.itemsize
    order = "a < b"
    if name == "bf16":
        order = "KEY(a) < KEY(b)".replace("KEY", "T_key" if "T_key" in text else "T_place_key")
    elif dtype.kind == "f":
        order = "(a < b) | ((b != b) & (a == a))"
    merged = re.sub(r"BEFORE\((.*?), (from\[.*?\])\)", before, _MERGED)
    digits = re.sub(r"KEY\((.*?\])\)", key, _BY_DIGITS)
    for place, rows in (("MERGED", merged), ("DIGITS", digits)):
        rows = re.sub(r"\bE\b", element, rows)
        text = text.replace(f"    {place}", textwrap.indent(rows, "    ")).replace(place, rows)
    text = text.replace("KEYED", _key(dtype.kind, name)).replace("SIGN", f"((U)1 << {8 * width - 1})")
    text = text.replace("ORDER", order).replace("T_", name + "_").replace("WIDTH", str(width))
    return re.sub(r"\bU\b", _UNSIGNED[width], re.sub(r"\bT\b", name, text))


def _sort(writer: FunctionWriter, stmt: LibraryCall) -> str:
    (line,) = stmt.writes
    name, dim = writer.type(line.buf.dtype), writer.printer.dim
    by_numpy = _BY_NUMPY.replace("sort_T", f"sort_{name}") if name in _NUMPY_SORTS else ""
    by_numpy = by_numpy.replace("MINUS_ZERO", _MINUS_ZERO if line.buf.dtype.kind == "f" else "")
    text = _ordered(writer, stmt, _SORT.replace("BY_NUMPY", by_numpy), "T", r"T_before(\1, \2)", r"T_key(\1)")
    writer.routines[f"{name}_sort"] = (text, f"int {name}_sort(mp_ctx* c, {name}* x, i64 n, i64 stride)")
    return f"{name}_sort(c, {writer.address(line)}, {dim(line.extents[0])}, {dim(line.strides[0])})"


def _ranked(writer: FunctionWriter, stmt: LibraryCall) -> str:
    (line, places), (ranks,) = stmt.reads, stmt.writes
    name, dim = writer.type(line.buf.dtype), writer.printer.dim
    _sort(writer, replace(stmt, writes=(line,)))
    text = re.sub(r"\bT\b", name, _RANKED.replace("T_", name + "_"))
    head = f"const {name}* x, i64 n, i64 step, const i64* places, i64 m, i64 apart, {name}* out, i64 stride"
    writer.routines[f"{name}_ranked"] = (text, f"int {name}_ranked(mp_ctx* c, {head})")
    views = (f"{writer.address(v)}, {dim(v.extents[0])}, {dim(v.strides[0])}" for v in (line, places))
    return f"{name}_ranked(c, {', '.join(views)}, {writer.address(ranks)}, {dim(ranks.strides[0])})"


def _argsort(writer: FunctionWriter, stmt: LibraryCall) -> str:
    (keys,), (line,) = stmt.reads, stmt.writes
    name, dim = writer.type(keys.buf.dtype), writer.printer.dim
    text = _ARGSORT_BOOL
    if name != "b1":
        text = _ordered(writer, stmt, _ARGSORT, "i64", r"T_ahead(x[(\1)*step], x[\2*step])", r"\1.key")
    head = f"int {name}_argsort(mp_ctx* c, const {name}* x, i64 n, i64 step, i64* order, i64 stride)"
    writer.routines[f"{name}_argsort"] = (text, head)
    source = f"{writer.address(keys)}, {dim(keys.extents[0])}, {dim(keys.strides[0])}"
    return f"{name}_argsort(c, {source}, {writer.address(line)}, {dim(line.strides[0])})"


def _search(writer: FunctionWriter, stmt: LibraryCall) -> str:
    (line, asked), (places,) = stmt.reads, stmt.writes
    dtype, dim, right = line.buf.dtype, writer.printer.dim, dict(stmt.attributes)["right"]
    name, side = writer.type(dtype), "upto" if right else "below"
    a, v, operator = "a", "v", "<=" if right else "<"
    if name == "bf16":
        writer.printer.helpers.add("bf16_to_f32")
        a, v = "bf16_to_f32(a)", "bf16_to_f32(v)"
    order = f"{a} {operator} {v}"
    if dtype.kind not in "biu":  # NaN stands behind all numbers
        order = f"({order}) | ({v} != {v})" if right else f"({order}) | (({v} != {v}) & ({a} == {a}))"
    text = re.sub(r"\bT\b", name, _SEARCH.replace("SIDE", side).replace("T_", name + "_").replace("ORDER", order))
    routine = f"{name}_search_{side}"
    head = f"const {name}* a, i64 n, i64 step, const {name}* v, i64 m, i64 apart, i64* places, i64 stride"
    writer.routines[routine] = (text, f"int {routine}({head})")
    views = (f"{writer.address(v)}, {dim(v.extents[0])}, {dim(v.strides[0])}" for v in (line, asked))
    return f"{routine}({', '.join(views)}, {writer.address(places)}, {dim(places.strides[0])})"


def _contains(writer: FunctionWriter, stmt: LibraryCall) -> str:
    dtype = stmt.reads[0].buf.dtype
    name, call = writer.type(dtype), _search(writer, replace(stmt, attributes=(("right", False),)))
    text = _AMONG.replace("BY_TABLE", _BY_TABLE if dtype.kind in "iub" else "")
    same = "bf16_to_f32(a) == bf16_to_f32(v)" if name == "bf16" else "a == v"
    text = text.replace("SAME", same).replace("T_", name + "_")
    text = re.sub(r"\bU\b", _UNSIGNED[dtype.itemsize], re.sub(r"\bT\b", name, text))
    views = f"const {name}* a, i64 n, i64 step, const {name}* v, i64 m, i64 apart"
    writer.routines[f"{name}_contains"] = (text, f"int {name}_contains(mp_ctx* c, {views}, b1* among, i64 stride)")
    return call.replace(f"{name}_search_below(", f"{name}_contains(c, ")


ORDER = {
    "sort": _sort,
    "argsort": _argsort,
    "ranked": _ranked,
    "nonzero": listed,
    "searchsorted": _search,
    "contains": _contains,
}

__all__ = ["ORDER"]
