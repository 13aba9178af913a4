"""Those statements of a block that some of them need.

In: a block, and which of its statements are wanted. Out: these, behind what gives the variables that they read, in the
branches that they stand in. Example, of `y[p] = t`:

    t = x[i]*2                     t = x[i]*2
    u = sin(t)             ->
    if t > 0:                      if t > 0:
        z[i] = u
        y[p] = t                       y[p] = t
"""

from __future__ import annotations

from collections.abc import Callable

from metaphrase.core.dims import Dim, DimLike, symbols

from .lifetimes import keys_read, keys_written
from .nest import Bind, E, For, If, Stmt, expression_symbols, loaded, walk

Kept = Callable[[Stmt], bool]


def leading_to(block: tuple[Stmt, ...], kept: Kept) -> tuple[Stmt, ...]:
    """The statements that are kept, and those that they need."""
    return _leading_to(block, kept, frozenset())[0]


def _leading_to(block: tuple[Stmt, ...], kept: Kept, wanted: frozenset[str]) -> tuple[tuple[Stmt, ...], frozenset[str]]:
    """These, and the variables that they read, or that are `wanted` behind them."""
    rows: list[Stmt] = []
    for stmt in reversed(block):
        is_loop = bool(stmt.blocks) and not isinstance(stmt, If)
        inside = wanted.union(*map(names_read, walk((stmt,))))
        if isinstance(stmt, If) or is_loop and any(map(kept, walk((stmt,)))):
            # Of a loop all numbers are wanted: a round may want them of another one.
            sides = [_leading_to(inner, kept, inside if is_loop else wanted) for inner in stmt.blocks]
            if any(side for side, _ in sides):
                rows.append(stmt.with_blocks(tuple(side for side, _ in sides)))
                wanted = wanted.union(names_read(stmt), *(names for _, names in sides))
        elif kept(stmt) or names_given(stmt) & wanted:
            rows.append(stmt)
            wanted = inside
    return tuple(reversed(rows)), wanted


def names_given(stmt: Stmt) -> set[str]:
    """The variables that a statement, and those inside it, give a value; not the indices of loops."""
    inside = (s for s in walk((stmt,)) if not isinstance(s, For))
    return {key for s in inside for key in keys_written(s) if isinstance(key, str)}


def names_read(stmt: Stmt) -> set[str]:
    """The variables that a statement reads, without those inside it."""
    return {key for key in keys_read(stmt) if isinstance(key, str)}


def names_of(e: E | DimLike) -> frozenset[str]:
    """Symbols, and variables of their names, in an expression or a size."""
    if isinstance(e, E):
        return expression_symbols(e) | {load.buf.name for load in loaded(Bind("", e)) if not load.buf.dims}
    return symbols(e) if isinstance(e, Dim) else frozenset()


__all__ = ["leading_to", "names_given", "names_of", "names_read"]
