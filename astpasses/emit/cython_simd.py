"""Innermost loops whose sums the C compiler may take apart: a register holds a row of partial results.

In: a `For`. Out: the marks that stand before it in the text, one an accumulator; cython_translate.py turns
them into a pragma on the C loop. NumPy promises no order for its reductions; a user's own loop is no
reduction.

    mp_simd_sum(s)
    for i in range(n):                 #pragma omp simd reduction(+:s)
        s += x[i]*y[i]                 for (...) s += x[i]*y[i];
"""

from __future__ import annotations

from metaphrase.astpasses.schedule.nest import (
    Bind,
    Buf,
    For,
    If,
    Op,
    Store,
    While,
    loaded,
    subexpressions,
    walk,
)
from metaphrase.core.scalars import MONOIDS

from .spell import c_name

WRITTEN_OUT = 16  # rounds: the longest loop that gcc writes out
CHOOSING = frozenset(["select"])
SHORTEST = 8  # below, a loop of known length is better unrolled
_FLOATS = ("f64", "f32")
_INTEGERS = ("i64", "i32", "u64", "u32")

# How C writes the combinations it has; those of floats that keep NaN are declared beside their helpers.
DECLARED = (
    "#pragma omp declare reduction({0}:{1}:omp_out = {0}(omp_out, omp_in)) initializer(omp_priv = omp_orig)"
)


def marks(loop: For) -> list[tuple[str, Buf]]:
    """(operation, accumulator) for each accumulator of `loop`; empty if it has to stay as it is."""
    if loop.kind != "red" or isinstance(loop.extent, int) and loop.extent < SHORTEST:
        return []
    found: dict[Buf, str] = {}
    for stmt in loop.body:
        if not isinstance(stmt, (Store, Bind)):
            return []
        if isinstance(stmt, Store) and stmt.monoid is not None:
            operation = _operation(stmt)
            if operation is None or found.setdefault(stmt.buf, operation) != operation:
                return []
    for stmt in loop.body:
        if any(load.buf in found for load in loaded(stmt)):
            return []
        if isinstance(stmt, Store) and stmt.monoid is None and stmt.buf in found:
            return []
    return [(operation, buf) for buf, operation in found.items()]


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
        isinstance(x, Op) and x.name in CHOOSING
        for s in inside
        for e in s.expressions
        for x in subexpressions(e)
    )


def _operation(store: Store) -> str | None:
    kind = c_name(store.buf.dtype)
    if not store.buf.is_scalar or store.monoid is None:
        return None
    monoid = MONOIDS[store.monoid]
    if monoid.openmp and kind in ("b1", *_INTEGERS, *_FLOATS):
        return monoid.openmp if (kind == "b1") == (monoid.combine in ("or", "and")) else None
    if monoid.name in ("max", "min"):
        return f"{kind}_{monoid.name}" if kind in _FLOATS else monoid.name if kind in _INTEGERS else None
    return None


__all__ = ["DECLARED", "marks", "stays_rolled"]
