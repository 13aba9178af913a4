"""Fourier transforms of lines, as C: NumPy's where the context has them, else Cooley's and Tukey's for sizes of small
factors, Bluestein's for others.

In: a `LibraryCall` of "fft", "rfft", "irfft". Out: the call of the C function, whose text goes into the
writer's `routines`; it gives 0, or says that there is no memory. Ours is computed in double precision for both complex
types; O(n log n) for every n.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from metaphrase.astpasses.schedule.nest import LibraryCall

from .dialects import COMPLEX

if TYPE_CHECKING:
    from .cython_function import FunctionWriter

COMMON = """\
typedef struct { double re, im; } fft_z;
static inline fft_z fft_mul(fft_z a, fft_z b) {
    fft_z c = { a.re*b.re - a.im*b.im, a.re*b.im + a.im*b.re };
    return c;
}
static void fft_roots(fft_z* w, i64 n, int sign) {
    i64 parts = n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1, base = n/parts;
    for (i64 k = 0; k < base; k++) { /* angles of at most an eighth of a turn are exact to the last bit */
        i64 eighth = 8*k/n, turn = (eighth + 1)/2;
        double angle = 1.57079632679489661923*(double)(4*k - turn*n)/(double)n;
        double c = __builtin_cos(angle), s = __builtin_sin(angle), t;
        for (i64 q = 0; q < turn; q++) { t = c; c = -s; s = t; }
        w[k].re = c; w[k].im = sign*s;
    }
    for (i64 k = base; k < n; k++) { /* half a turn, or a quarter */
        fft_z z = w[k - base];
        if (parts == 2) { w[k].re = -z.re; w[k].im = -z.im; }
        else { w[k].re = -sign*z.im; w[k].im = sign*z.re; }
    }
}
/* out = the transform of in[0], in[stride], ...; w: the roots of the whole size `all` */
static void fft_small(const fft_z* in, i64 stride, fft_z* out, i64 n, const fft_z* w, i64 all) {
    if (n == 1) { out[0] = in[0]; return; }
    i64 p = n % 4 == 0 ? 4 : 2;
    while (n % p) p++;
    i64 m = n/p, step = all/n;
    for (i64 r = 0; r < p; r++) fft_small(in + r*stride, stride*p, out + r*m, m, w, all);
    fft_z part[64];
    for (i64 k = 0; k < m; k++) {
        for (i64 r = 0; r < p; r++) part[r] = r ? fft_mul(out[r*m + k], w[r*k*step]) : out[k];
        if (p == 2) {
            out[k].re = part[0].re + part[1].re; out[k].im = part[0].im + part[1].im;
            out[k + m].re = part[0].re - part[1].re; out[k + m].im = part[0].im - part[1].im;
            continue;
        }
        if (p == 4) {
            fft_z a = { part[0].re + part[2].re, part[0].im + part[2].im };
            fft_z b = { part[0].re - part[2].re, part[0].im - part[2].im };
            fft_z d = { part[1].re + part[3].re, part[1].im + part[3].im };
            fft_z e = { part[1].re - part[3].re, part[1].im - part[3].im };
            e = fft_mul(e, w[all/4]);
            out[k].re = a.re + d.re; out[k].im = a.im + d.im;
            out[k + m].re = b.re + e.re; out[k + m].im = b.im + e.im;
            out[k + 2*m].re = a.re - d.re; out[k + 2*m].im = a.im - d.im;
            out[k + 3*m].re = b.re - e.re; out[k + 3*m].im = b.im - e.im;
            continue;
        }
        for (i64 q = 0; q < p; q++) {
            fft_z sum = part[0];
            i64 at = 0;
            for (i64 r = 1; r < p; r++) {
                at += q*m*step;
                if (at >= all) at %= all;
                fft_z term = fft_mul(part[r], w[at]);
                sum.re += term.re; sum.im += term.im;
            }
            out[k + q*m] = sum;
        }
    }
}
static int fft_of_numpy(mp_ctx* c, int which, const void* x, void* y, i64 n, i64 m, i64 step, i64 stride, i64 lines,
                        i64 next, i64 after) { /* distances in bytes */
    double factor = 1;
    char* args[3] = {(char*)x, (char*)&factor, (char*)y};
    const __INTPTR_TYPE__ dims[3] = {lines, n, m}, steps[5] = {next, 0, after, step, stride};
    mp_begin(c); /* it has memory and locks of its own */
    c->fouriers[which].run(args, dims, steps, c->fouriers[which].data);
    return mp_end(c) ? MP_INTERRUPTED : 0;
}
static int fft_any(mp_ctx* c, const fft_z* in, fft_z* out, i64 n, int sign) {
    if (c->fouriers && c->fouriers[MP_fft].run)
        return fft_of_numpy(c, sign < 0 ? MP_fft : MP_ifft, in, out, n, n, 16, 16, 1, 0, 0);
    i64 rest = n;
    for (i64 p = 2; p < 64; p++) while (rest % p == 0) rest /= p;
    if (rest == 1) {
        fft_z* w = (fft_z*)mp_scratch(c, mp_times(n, sizeof(fft_z)));
        if (!w) return MP_NO_MEMORY;
        fft_roots(w, n, sign);
        fft_small(in, 1, out, n, w, n);
        return 0;
    }
    i64 size = 1; /* a convolution with a chirp, in a size that is a power of two */
    while (size < 2*n - 1) size *= 2;
    fft_z* space = (fft_z*)mp_scratch(c, mp_times(2*n + 5*size, sizeof(fft_z)));
    if (!space) return MP_NO_MEMORY;
    fft_z *chirp = space + 2*n, *a = chirp + size, *b = a + size, *product = b + size, *w = product + size;
    fft_roots(space, 2*n, sign);
    for (i64 k = 0; k < size; k++) a[k].re = a[k].im = b[k].re = b[k].im = 0;
    for (i64 k = 0; k < n; k++) {
        chirp[k] = space[(i64)((unsigned __int128)k*k % (2*n))];
        a[k] = fft_mul(in[k], chirp[k]);
        b[k].re = chirp[k].re; b[k].im = -chirp[k].im;
        if (k) b[size - k] = b[k];
    }
    fft_roots(w, size, -1);
    fft_small(a, 1, product, size, w, size);
    fft_small(b, 1, a, size, w, size);
    for (i64 k = 0; k < size; k++) { b[k] = fft_mul(a[k], product[k]); w[k].im = -w[k].im; }
    fft_small(b, 1, product, size, w, size);
    for (i64 k = 0; k < n; k++) {
        fft_z y = fft_mul(product[k], chirp[k]);
        out[k].re = y.re/size; out[k].im = y.im/size;
    }
    return 0;
}
"""
LINES = """\
static int T_fft(mp_ctx* c, const void* x_, void* y_, i64 n, i64 m, i64 step, i64 stride, i64 lines, i64 next,
                 i64 after, int inverse) {
    const R* x = (const R*)x_;
    R* y = (R*)y_;
    char* mark = c->cursor;
    if (n < 1 || lines < 1) return 0;
    if (sizeof(R) == 8 && c->fouriers && c->fouriers[MP_fft].run) {
        const int which = PARTS == 2 ? (inverse ? MP_ifft : MP_fft) : n % 2 ? MP_rfft_odd : MP_rfft_even;
        return fft_of_numpy(c, which, x, y, n, m, 8*PARTS*step, 16*stride, lines, 8*PARTS*next, 16*after);
    }
    fft_z *in = (fft_z*)mp_scratch(c, mp_times(2*n, sizeof(fft_z))), *out = in + n;
    if (!in) return MP_NO_MEMORY;
    for (i64 line = 0; line < lines; line++, x += PARTS*next, y += 2*after) {
        for (i64 k = 0; k < n; k++) { in[k].re = x[PARTS*k*step]; in[k].im = PARTS == 2 ? x[PARTS*k*step + 1] : 0; }
        int status = fft_any(c, in, out, n, inverse ? 1 : -1);
        if (status) return status;
        for (i64 k = 0; k < m; k++) { y[2*k*stride] = (R)out[k].re; y[2*k*stride + 1] = (R)out[k].im; }
    }
    c->release(c, mark);
    return 0;
}
"""
HALVES = """\
static int T_irfft(mp_ctx* c, const void* x_, void* y_, i64 n, i64 m, i64 step, i64 stride, i64 lines, i64 next,
                   i64 after, int inverse) {
    const R* x = (const R*)x_;
    R* y = (R*)y_;
    char* mark = c->cursor;
    if (m < 1 || lines < 1) return 0;
    if (sizeof(R) == 8 && c->fouriers && c->fouriers[MP_fft].run)
        return fft_of_numpy(c, MP_irfft, x, y, n, m, 16*step, 8*stride, lines, 16*next, 8*after);
    fft_z *in = (fft_z*)mp_scratch(c, mp_times(2*m + 1, sizeof(fft_z))), *out = in + m + 1;
    if (!in) return MP_NO_MEMORY;
    for (i64 line = 0; line < lines; line++, x += 2*next, y += after) {
        for (i64 k = 0; k < m; k++) { /* those that stand for two count twice; the rest are zeros */
            double w = k >= n ? 0 : k == 0 || 2*k == m ? 1 : 2;
            in[k].re = w ? w*x[2*k*step] : 0; in[k].im = w ? -w*x[2*k*step + 1] : 0;
        }
        int status = fft_any(c, in, out, m, -1);
        if (status) return status;
        for (i64 k = 0; k < m; k++) y[k*stride] = (R)out[k].re;
    }
    c->release(c, mark);
    return 0;
}
"""
PARAMETERS = (
    "mp_ctx* c, const void* x, void* y, i64 n, i64 m, i64 step, i64 stride, i64 lines, i64 next, i64 after, int inverse"
)


def fourier_call(writer: FunctionWriter, stmt: LibraryCall) -> str:
    """The call that transforms a line of an array, or lines that lie in one dim. Of real numbers it gives half, and of
    half a line real numbers."""
    (source,), (result,), how = stmt.reads, stmt.writes, dict(stmt.attributes)
    name, axis = writer.type(source.buf.dtype), how["axis"]
    words = {"R": "double" if name in ("c128", "f64") else "float", "PARTS": "2" if name in COMPLEX else "1"}
    text, routine = (HALVES, "irfft") if stmt.operation == "irfft" else (LINES, "fft")
    text = re.sub(r"\b(R|PARTS)\b", lambda found: words[found[0]], text).replace(f"T_{routine}", f"{name}_{routine}")
    writer.routines["fft_common"] = (COMMON, "")
    writer.routines[f"{name}_{routine}"] = (text, f"int {name}_{routine}({PARAMETERS})")
    other = [d for d in range(len(source.extents)) if d != axis]
    lines = (source.extents[other[0]], source.strides[other[0]], result.strides[other[0]]) if other else (1, 0, 0)
    sizes = (source.extents[axis], result.extents[axis], source.strides[axis], result.strides[axis], *lines)
    numbers = ", ".join(map(writer.printer.dim, sizes))
    inverse = int(how.get("inverse", False))
    return f"{name}_{routine}(c, {writer.address(source)}, {writer.address(result)}, {numbers}, {inverse})"


__all__ = ["fourier_call"]
