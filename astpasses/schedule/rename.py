"""Short canonical names for loop indices: i, j, k by depth, wherever the user has not taken them.

In: a tree in which every loop index has a name of its own. Out: the same with names reused from loop to loop.
"""
from __future__ import annotations

from metaphrase.core.dims import Sym

from .nest import Bind, For, Program, Stmt, While, parts, rename_statement, walk, with_parts
from .fold import other_symbols, touched
from .nest import expression_symbols, expressions, loads

LETTERS = tuple("ijkl") + tuple(f"i{n}" for n in range(4, 40))


def name_indices(body: tuple[Stmt, ...], taken: frozenset[str]) -> tuple[Stmt, ...]:
    """Rename For indices; `taken` are names that must not be used."""
    letters = [x for x in LETTERS if x not in taken]
    return tuple(_named(s, 0, letters) for s in body)


def _named(stmt: Stmt, depth: int, letters: list[str]) -> Stmt:
    if isinstance(stmt, For):
        made = rename_statement(stmt, {stmt.index: Sym(letters[depth])})
        assert isinstance(made, For)
        return For(letters[depth], made.extent, tuple(_named(s, depth + 1, letters) for s in made.body), made.kind,
                   made.span)
    if parts(stmt):
        return with_parts(stmt, tuple(tuple(_named(s, depth, letters) for s in b) for b in parts(stmt)))
    return stmt


def names_in_use(program: Program, body: tuple[Stmt, ...]) -> frozenset[str]:
    """Every name but those of For indices."""
    found = {b.name for b in (*program.params, *program.results, *program.constants)} | set(program.sizes)
    indices = {s.index for s in walk(body) if isinstance(s, For)}
    for stmt in walk(body):
        found |= {b.name for b in touched(stmt)} | other_symbols(stmt)
        if isinstance(stmt, Bind):
            found.add(stmt.name)
        elif isinstance(stmt, While):
            found.add(stmt.counter)
        for e in expressions(stmt):
            found |= expression_symbols(e) | {load.buf.name for load in loads(e)}
    return frozenset(found - indices)
