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

from collections.abc import Callable, Iterable

from metaphrase.core.dims import Dim, DimLike, symbols

from .nest import Bind, E, For, If, Stmt, Store, expression_symbols, loaded, walk


def leading_to(block: Iterable[Stmt], kept: Callable[[Stmt], bool], wanted: set[str] | None = None) -> tuple[Stmt, ...]:
    """The statements that are kept, and those that they need. `wanted`: the variables that are read behind the block;
    those that it reads itself are added."""
    wanted = set() if wanted is None else wanted
    rows: list[Stmt] = []
    for stmt in reversed(tuple(block)):
        if isinstance(stmt, If):
            sides = [(inner, set(wanted)) for inner in stmt.blocks]
            blocks = tuple(leading_to(inner, kept, names) for inner, names in sides)
            if any(blocks):
                rows.append(stmt.with_blocks(blocks))
                wanted |= names_read(stmt).union(*(names for _, names in sides))
        elif stmt.blocks and any(
            map(kept, walk((stmt,)))
        ):  # of a loop all numbers: rounds may want them of one another
            names = wanted | names_read_inside(stmt)
            rows.append(stmt.with_blocks(tuple(leading_to(inner, kept, set(names)) for inner in stmt.blocks)))
            wanted |= names
        elif kept(stmt) or names_given(stmt) & wanted:
            rows.append(stmt)
            wanted |= names_read_inside(stmt)
    return tuple(reversed(rows))


def names_given(stmt: Stmt) -> set[str]:
    """The variables that a statement, and those inside it, give a value; not the indices of loops."""
    given: set[str] = set()
    for s in walk((stmt,)):
        if isinstance(s, Store):
            given |= set() if s.buf.dims else {s.buf.name}
        elif s.binds is not None and not isinstance(s, For):
            given.add(s.binds)
    return given


def names_read(stmt: Stmt) -> frozenset[str]:
    """The variables that a statement reads, without those inside it."""
    places = (names_of(e) for access in stmt.accesses for e in access.index)
    return frozenset().union(*map(names_of, stmt.expressions), *places, *map(names_of, stmt.extents))


def names_read_inside(stmt: Stmt) -> frozenset[str]:
    """The variables that a statement and those inside it read."""
    return frozenset().union(*map(names_read, walk((stmt,))))


def names_of(e: E | DimLike) -> frozenset[str]:
    """Symbols, and variables of their names, in an expression or a size."""
    if isinstance(e, E):
        return expression_symbols(e) | {load.buf.name for load in loaded(Bind("", e)) if not load.buf.dims}
    return symbols(e) if isinstance(e, Dim) else frozenset()


__all__ = ["leading_to", "names_given", "names_of", "names_read", "names_read_inside"]
