"""Innermost loops whose sums the C compiler may take apart: a register holds a row of partial results.

In: a `For` with partial results (schedule/vectors.py). Out: the marks that stand before it in the text, one an
accumulator; cython_translate.py turns them into a pragma on the C loop.

    mp_simd_sum(s)
    for i in range(n):                 #pragma omp simd reduction(+:s)
        s += x[i]*y[i]                 for (...) s += x[i]*y[i];

Short loops whose iterations are independent have such a mark, too (`runs_apart`), and so have loops that gain from the
longest vectors that there are (`lanes`).
"""

from __future__ import annotations

from metaphrase.astpasses.schedule.nest import Buf, For, If, Op, Store, While, subexpressions, walk
from metaphrase.core.scalars import CALLED, MONOIDS, facts

from .spell import c_name

WRITTEN_OUT = 16  # rounds: the longest loop that gcc writes out
LONG = 64  # rounds: as many as fill a few of the longest vectors
LONGEST = 64  # bytes of these
CHOOSING = frozenset(["select"])
_FLOATS = ("f64", "f32")
_INTEGERS = ("i64", "i32", "u64", "u32")

# How C writes the combinations it has; those of floats that keep NaN are declared beside their helpers.
DECLARED = "#pragma omp declare reduction({0}:{1}:omp_out = {0}(omp_out, omp_in)) initializer(omp_priv = omp_orig)"


def before_loop(loop: For, inside: bool) -> list[tuple[str, str]]:
    """(operation, variable) of the marks that stand before a loop, which may be inside another one."""
    if inside and stays_rolled(loop):
        return [("rolled", loop.index)]
    wide = 0 if runs_apart(loop) else lanes(loop)
    first = [("apart", loop.index)] if runs_apart(loop) else [(f"lanes{wide}", loop.index)] if wide else []
    return [*first, *((operation, accumulator.name) for operation, accumulator in marks(loop))]


def marks(loop: For) -> list[tuple[str, Buf]]:
    """(operation, accumulator) for each partial result of `loop`; empty where C can't combine one of them."""
    found = [(_operation(buf, monoid), buf) for buf, monoid in loop.partials]
    return [(operation, buf) for operation, buf in found if operation and all(known for known, _ in found)]


def stays_rolled(loop: For) -> bool:
    """Whether a loop inside another one must not be written out by the C compiler: gcc 12 writes short ones
    out that choose what they read (`y[j] = a if x[j] > 0 else z[j]`), vectorises the loop around them with
    masks, and puts zeros into elements that have values. Longer loops it does not write out."""
    if not isinstance(loop.extent, int) or not 2 <= loop.extent <= WRITTEN_OUT:
        return False
    inside = list(walk(loop.body))
    if any(isinstance(s, (For, While)) for s in inside):
        return False
    return any(isinstance(s, If) for s in inside) or any(
        isinstance(x, Op) and x.name in CHOOSING for s in inside for e in s.expressions for x in subexpressions(e)
    )


def runs_apart(loop: For) -> bool:
    """Whether gcc has to be told that the iterations of a loop may share a vector: it writes out a short one before it
    looks for vectors, and finds few in what is left."""
    if loop.kind != "par" or not isinstance(loop.extent, int) or not 4 <= loop.extent <= WRITTEN_OUT:
        return False
    return all(
        isinstance(s, Store) and s.buf.dtype.kind == "f" and (s.buf.dims or s.monoid is None and s.buf.is_temporary)
        for s in loop.body
    )


def lanes(loop: For) -> int:
    """How many iterations a vector should hold, where processors have such long ones; 0: as many as the compiler likes.
    Its own choice is 32 bytes, for most loops are short. Elementary functions take a quarter less time in 64. What a
    sum's last vector does not hold is added one by one: there must be little of it."""
    stores = [s for s in loop.body if isinstance(s, Store)]
    if len(stores) < len(loop.body) or isinstance(loop.extent, int) and loop.extent < LONG:
        return 0
    operations = [x for s in stores for e in s.expressions for x in subexpressions(e) if isinstance(x, Op)]
    called = [x for x in operations if facts(x.name).cost == CALLED]
    if not called or not all(facts(x.name).side_by_side and c_name(x.dtype) in _FLOATS for x in called):
        return 0
    count = LONGEST // max(x.dtype.itemsize for x in operations)
    if loop.kind == "par" and not loop.private and all(s.buf.dims for s in stores):
        return count
    fits = isinstance(loop.extent, int) and (loop.extent % count == 0 or loop.extent >= LONG * count)
    return count if marks(loop) and fits else 0


def _operation(buf: Buf, name: str) -> str | None:
    kind, monoid = c_name(buf.dtype), MONOIDS[name]
    if monoid.openmp and kind in ("b1", *_INTEGERS, *_FLOATS):
        return monoid.openmp if (kind == "b1") == (monoid.combine in ("or", "and")) else None
    if monoid.name in ("max", "min"):
        return f"{kind}_{monoid.name}" if kind in _FLOATS else monoid.name if kind in _INTEGERS else None
    return None


__all__ = ["DECLARED", "before_loop"]
