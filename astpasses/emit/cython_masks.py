"""What a mask lists, as C: the places where it is true, or the elements of an array there.

In: a `LibraryCall` of "nonzero" and the function it stands in. Out: the call; the C of the routine, once for each size
of an element, goes into the writer's `routines`. Of a mask that lies close 64 elements are looked at together; where
none of them is true nothing else is done; with AVX-512 a vector of elements goes to its place at once.

    library('nonzero', (mask, x), y)   of f64   ->   b1_picked_8(mask, n, x, y, count)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metaphrase.astpasses.schedule.nest import LibraryCall

if TYPE_CHECKING:
    from .cython_function import FunctionWriter

# Bit k says whether byte k is not 0.
_BITS = """\
typedef unsigned long long mp_bits;
#if defined(__AVX512BW__) && !defined(__clang__)
typedef char mp_64_bytes __attribute__((vector_size(64), aligned(1), may_alias));
static inline mp_bits b1_bits_64(const b1* x) {
    mp_64_bytes here = *(const mp_64_bytes*)x;
    return __builtin_ia32_ptestmb512(here, here, -1);
}
#else
static inline mp_bits b1_bits_64(const b1* x) {
    const mp_bits low = 0x7f7f7f7f7f7f7f7full;
    mp_bits bits = 0;
    for (int k = 0; k < 64; k += 8) {
        mp_bits eight;
        __builtin_memcpy(&eight, x + k, 8);
        eight = ((((eight & low) + low) | eight) & ~low) >> 7;
        bits |= (eight*0x0102040810204080ull >> 56) << k;
    }
    return bits;
}
#endif
"""

_COUNT = """\
static int b1_count(const b1* mask, i64 n, i64* count) {
    i64 i = 0, p = 0;
    for (; i + 64 <= n; i += 64) p += __builtin_popcountll(b1_bits_64(mask + i));
    for (; i < n; i++) p += mask[i] != 0;
    *count = p;
    return 0;
}
"""
# While there is room for 64 more, what is listed by 64 bytes is written as it comes, in groups whose ends the next ones
# write over; then one by one. Bytes that are no bools may count for more than one: the first element stands for those.
_LISTED = """\
        for (; i + 64 <= n && p < count; i += 64) {
            mp_bits bits = b1_bits_64(mask + i);
            if (p + 64 <= count) { MANY }
            else for (; bits && p < count; bits &= bits - 1, p++) { i64 at = i + __builtin_ctzll(bits); ONE; }
        }
"""
_PLACES = """\
#if defined(__AVX512F__) && !defined(__clang__)
typedef long long mp_8_places __attribute__((vector_size(64)));
typedef long long mp_8_places_at __attribute__((vector_size(64), aligned(8)));
static inline i64 b1_places_64(mp_bits bits, i64 i, i64* places) {
    mp_8_places here = {i, i + 1, i + 2, i + 3, i + 4, i + 5, i + 6, i + 7};
    i64 p = 0;
    for (; bits; bits >>= 8, here += 8) {
        *(mp_8_places_at*)(places + p) = __builtin_ia32_compressdi512_mask(here, here, bits & 255);
        p += __builtin_popcount(bits & 255);
    }
    return p;
}
#else
static inline i64 b1_places_64(mp_bits bits, i64 i, i64* places) {
    i64 p = 0;
    for (; bits; bits &= bits - 1) places[p++] = i + __builtin_ctzll(bits);
    return p;
}
#endif
static int b1_nonzero(const b1* mask, i64 n, i64 step, i64* places, i64 count, i64 stride, i64 first) {
    i64 i = 0, p = 0;
    if (step == 1 && stride == 1)
LISTED    for (; i < n && p < count; i++) { places[p*stride] = first + i; p += mask[i*step] != 0; }
    for (; p < count; p++) places[p*stride] = first;
    return 0;
}
""".replace(
    "LISTED",
    _LISTED.replace("MANY", "p += b1_places_64(bits, first + i, places + p);").replace("ONE", "places[p] = first + at"),
)

# With AVX-512: so many elements at a time, by their bits. What the mask leaves out is not read, either.
_GROUP = """\
typedef KIND mp_group_WIDTH __attribute__((vector_size(64)));
typedef KIND mp_group_WIDTH_at __attribute__((vector_size(64), aligned(1), may_alias));
static inline i64 b1_picked_WIDTH_64(mp_bits bits, const char* x, char* y) {
    const mp_group_WIDTH none = {0};
    i64 p = 0;
    for (; bits; bits >>= GROUP, x += 64) {
        unsigned some = bits & ((1u << GROUP) - 1), wide = BITS;
        mp_group_WIDTH here = __builtin_ia32_loaddquBUILTIN512_mask((const KIND*)x, none, wide);
        *(mp_group_WIDTH_at*)(y + p*WIDTH) = __builtin_ia32_compressBUILTIN512_mask(here, here, wide);
        p += __builtin_popcount(some);
    }
    return p;
}
"""
_GROUPS = {
    4: ("int", "si", "some"),
    8: ("long long", "di", "some"),
    16: ("long long", "di", "__builtin_ia32_pdep_si(some, 0x55)*3"),
}
_EACH = """\
static inline i64 b1_picked_WIDTH_64(mp_bits bits, const char* x, char* y) {
    i64 p = 0;
    if (!~bits) { __builtin_memcpy(y, x, 64*WIDTH); return 64; }
    for (; bits; bits &= bits - 1, p++) __builtin_memcpy(y + p*WIDTH, x + __builtin_ctzll(bits)*WIDTH, WIDTH);
    return p;
}
"""
_PICKED = """\
static int b1_picked_WIDTH(const b1* mask, i64 n, const void* from, void* to, i64 count) {
    const char* x = (const char*)from;
    char* y = (char*)to;
    i64 i = 0, p = 0;
LISTED    for (; i < n && p < count; i++)
        if (mask[i]) { i64 at = i; ONE; p++; }
    for (; p < count; p++) { i64 at = 0; ONE; }
    return 0;
}
""".replace("LISTED", _LISTED.replace("MANY", "p += b1_picked_WIDTH_64(bits, x + i*WIDTH, y + p*WIDTH);")).replace(
    "ONE", "__builtin_memcpy(y + p*WIDTH, x + at*WIDTH, WIDTH)"
)


def listed(writer: FunctionWriter, stmt: LibraryCall) -> str:
    """The text of a call."""
    (mask, *arrays), (line,) = stmt.reads, stmt.writes
    dim = writer.printer.dim
    writer.routines["b1_bits_64"] = (_BITS, "")
    source = f"{writer.address(mask)}, {dim(mask.extents[0])}, {dim(mask.strides[0])}"
    if not line.extents:
        writer.routines["b1_count"] = (_COUNT, "int b1_count(const b1* mask, i64 n, i64* count)")
        return f"b1_count({writer.address(mask)}, {dim(mask.extents[0])}, {writer.address(line)})"
    to = f"{writer.address(line)}, {dim(line.extents[0])}, {dim(line.strides[0])}"
    if not arrays:
        head = "int b1_nonzero(const b1* mask, i64 n, i64 step, i64* places, i64 count, i64 stride, i64 first)"
        writer.routines["b1_nonzero"] = (_PLACES, head)
        return f"b1_nonzero({source}, {to}, {dim(dict(stmt.attributes).get('first', 0))})"
    (x,), width = arrays, line.buf.dtype.itemsize
    values = "const b1* mask, i64 n, const void* x, void* y, i64 count"
    writer.routines[f"b1_picked_{width}"] = (_picked(width), f"int b1_picked_{width}({values})")
    lies = f"{writer.address(x)}, {writer.address(line)}, {dim(line.extents[0])}"
    return f"b1_picked_{width}({writer.address(mask)}, {dim(mask.extents[0])}, {lies})"


def _picked(width: int) -> str:
    each = _EACH
    if width in _GROUPS:
        kind, builtin, bits = _GROUPS[width]
        group = _GROUP.replace("KIND", kind).replace("BUILTIN", builtin).replace("BITS", bits)
        group = group.replace("GROUP", str(64 // width))
        each = f"#if defined(__AVX512F__) && defined(__BMI2__) && !defined(__clang__)\n{group}#else\n{_EACH}#endif\n"
    return (each + _PICKED).replace("WIDTH", str(width))


__all__ = ["listed"]
