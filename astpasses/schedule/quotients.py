"""A loop whose places have quotients of its counter by sizes of the run, or large ones, goes over stretches in which
these stay.

In: the final tree. Out: the same, where a parallel loop that only stores, and that no size is known to divide
(digits.py), is a loop over quotients around one over remainders. Example, a part of `x.reshape(n, m).T.reshape(-1)`
from `first` on, before and after:

    for i in range(count):
        y[first + i] = x[(first + i)%n*m + (first + i)//n]

    for q in range((first + count - 1)//n - first//n + 1):
        row = first//n + q
        low = max(0, first - row*n)
        length = min(n, first + count - row*n) - low
        for k in range(length):
            y[row*n + low + k] = x[(low + k)*m + row]

A division takes as long as ten copies, and keeps a loop from being a vector.
"""

from __future__ import annotations

from collections.abc import Iterator

from metaphrase.core.dims import Dim, DimLike, Sym, dim_max, dim_min, floordiv, symbols
from metaphrase.core.facts import divide

from .dependence import slope
from .digits import at_number, divisions, only_stores
from .nest import Bind, Fn, For, Index, Stmt, bound_inside
from .rewrite import rename_statement, replaced
from .target import Target


def without_quotients(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such loops written anew."""
    return fn.body if target.threads else replaced(fn.body, lambda stmt: _of_stretches(stmt, fn, target))


def _of_stretches(loop: Stmt, fn: Fn, target: Target) -> tuple[For] | None:
    if not only_stores(loop):
        return None
    candidates = dict.fromkeys(_quotients(loop, target))
    if not candidates:
        return None
    # The size that others are multiples of comes first: of it they need no loop of their own.
    number, base = max(candidates, key=lambda one: sum(divide(other, one[1])[1] == 0 for _, other in candidates))
    first = number - Sym(loop.index)
    fresh, facts = fn.names.fresh, fn.facts
    q, row, low, length, k, rest = (fresh(name) for name in ("q", "row", "low", "length", loop.index, "rest"))
    start = floordiv(first, base)
    rows = floordiv(first + loop.extent - 1, base) - start + 1
    facts.learn(row, 0, None)
    facts.learn(low, 0, base - 1)
    facts.learn(length, 0, base)
    facts.learn(rest, 0, base - 1)
    facts.learn(k, 0, Sym(length) - 1)
    stores = tuple(at_number(s, loop, Sym(row) * base + Sym(rest) - first, fn) for s in loop.body)
    stores = tuple(rename_statement(s, {rest: Sym(low) + Sym(k)}) for s in stores)
    inner = For(k, Sym(length), stores, "par", loop.span)
    binds = (
        Bind(row, Index(start + Sym(q)), loop.span),
        Bind(low, Index(dim_max(0, first - Sym(row) * base)), loop.span),
        Bind(length, Index(dim_min(base, first + loop.extent - Sym(row) * base) - Sym(low)), loop.span),
    )
    if base in (divisor for _, divisor in _quotients(inner, target)):
        return None
    return (For(q, rows, (*binds, *(_of_stretches(inner, fn, target) or (inner,))), "par", loop.span),)


def _quotients(loop: For, target: Target) -> Iterator[tuple[Dim, DimLike]]:
    """The numbers that go up with a loop's counter and that places in it divide, and by which sizes: of the run, or so
    large that a division for each stretch is nothing."""
    inside = bound_inside(loop)
    for number, base in divisions(loop, joined=True):
        may_be_long = isinstance(base, Dim) or base >= target.row
        if may_be_long and isinstance(number, Dim) and slope(number, loop.index) == 1:
            if (symbols(number) | symbols(base)) & inside <= {loop.index}:
                yield number, base


__all__ = ["without_quotients"]
