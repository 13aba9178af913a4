"""Short canonical names for loop indices: i, j, k by depth, wherever the user has not taken them.

In: a tree in which every loop index has a name of its own. Out: the same with names reused from loop to loop.
"""

from __future__ import annotations

from metaphrase.core.dims import Sym, substitute

from .nest import Bind, Fn, For, Stmt, While, expression_symbols, loads, other_symbols, touched, walk
from .place import temporaries
from .rewrite import rebound

LETTERS = tuple("ijkl") + tuple(f"i{n}" for n in range(4, 40))


def name_indices(body: tuple[Stmt, ...], taken: frozenset[str]) -> tuple[Stmt, ...]:
    """Rename For indices; `taken` are names that must not be used."""
    letters = [x for x in LETTERS if x not in taken]
    values: dict[str, str] = {}

    def collect(block: tuple[Stmt, ...], depth: int) -> None:
        for stmt in block:
            deeper = depth
            if isinstance(stmt, For):
                values[stmt.index] = letters[depth]
                deeper += 1
            for inner in stmt.blocks:
                collect(inner, deeper)

    collect(body, 0)
    # All at once: an old name may be another loop's new one.
    dims = {old: Sym(new) for old, new in values.items()}
    for buf in temporaries(body):
        buf.dims = tuple(substitute(d, dims) for d in buf.dims)
    return tuple(rebound(s, values) for s in body)


def names_in_use(fn: Fn) -> frozenset[str]:
    """Every name in a function but those of For indices."""
    found = {b.name for b in fn.bufs} | set(fn.sizes)
    indices = {s.index for s in walk(fn.body) if isinstance(s, For)}
    for stmt in walk(fn.body):
        found |= {b.name for b in touched(stmt)} | other_symbols(stmt)
        if isinstance(stmt, Bind):
            found.add(stmt.name)
        elif isinstance(stmt, While):
            found.add(stmt.counter)
        for e in stmt.expressions:
            found |= expression_symbols(e) | {load.buf.name for load in loads(e)}
    return frozenset(found - indices)
