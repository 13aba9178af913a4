"""A loop whose places have a quotient of its counter by a size is two loops, without a division.

In: the final tree. Out: the same, where a parallel loop that only stores, and whose length the size divides, has its
counter written as two digits; a last digit of few values is written out. Example:

    for i in range(3*n):                          for i in range(n):
        out[i] = x[i//3]              ->              out[3*i] = x[i]
                                                      out[3*i + 1] = x[i]
                                                      out[3*i + 2] = x[i]

So arrays that are repeated, or reshaped on the way, are read and written as they lie.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from metaphrase.core.dims import Dim, DimLike, Sym, symbols, terms_of
from metaphrase.core.facts import divide

from .expressions import merge_split_indices
from .nest import E, Fn, For, Index, Load, Map, Stmt, Store, walk
from .place import accesses_of
from .rewrite import map_expression, map_statement, rename_statement, replaced
from .target import Target


def in_digits(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such loops written anew."""
    return fn.body if target.threads else replaced(fn.body, lambda stmt: _of_two_digits(stmt, fn, target))


def only_stores(stmt: Stmt) -> TypeGuard[For]:
    """Whether a statement is a parallel loop of stores."""
    return isinstance(stmt, For) and stmt.kind == "par" and all(isinstance(s, Store) for s in stmt.body)


def _of_two_digits(loop: Stmt, fn: Fn, target: Target) -> tuple[For] | None:
    if not only_stores(loop):
        return None
    for base in dict.fromkeys(_divisors(loop)):
        high, rest = divide(loop.extent, base)
        if high == 1 or rest != 0:
            continue
        number = fn.names.fresh(loop.index)
        fn.facts.learn(number, 0, high - 1)
        if isinstance(base, int) and base <= target.few:
            rows = tuple(at_number(s, loop, base * Sym(number) + k, fn) for k in range(base) for s in loop.body)
            made = For(number, high, rows, "par", loop.span)
        else:
            low = fn.names.fresh(loop.index)
            fn.facts.learn(low, 0, base - 1)
            rows = tuple(at_number(s, loop, base * Sym(number) + Sym(low), fn) for s in loop.body)
            made = For(number, high, (For(low, base, rows, "par", loop.span),), "par", loop.span)
        if base not in _divisors(made):
            return (made,)
    return None


def _divisors(loop: For) -> Iterator[DimLike]:
    """The sizes that places in a loop divide its counter by."""
    return (base for _, base in divisions(loop))


def divisions(loop: For, joined: bool = False) -> Iterator[tuple[DimLike, DimLike]]:
    """The numbers made of a loop's counter that places in it divide, each with the size that divides it. `joined`: but
    for those that are one number again, as rows and columns of what lies in a row are."""
    for stmt in walk(loop.body):
        for access in accesses_of(stmt):
            index = merge_split_indices(list(access.index), list(access.buf.dims))[0] if joined else access.index
            for entry in index:
                if isinstance(entry, Dim):
                    yield from _in_dim(entry, loop.index)


def _in_dim(dim: DimLike, index: str) -> Iterator[tuple[DimLike, DimLike]]:
    for atom in (a for monomial, _ in terms_of(dim) for a, _ in monomial if a.kind in ("floordiv", "mod")):
        number, base = atom.operands
        if index in symbols(number) and index not in symbols(base):
            yield number, base
        yield from _in_dim(number, index)


def at_number(stmt: Stmt, loop: For, number: DimLike, fn: Fn) -> Stmt:
    """The statement of one iteration; quotients of its digits are known."""

    def simplified(e: E) -> E:
        return map_expression(e, known)

    def known(x: E) -> E | None:
        if isinstance(x, Index):
            return Index(fn.facts.simplify(x.dim))
        return Load(x.buf, place(x.index)) if isinstance(x, Load) else None

    def place(index: Map) -> Map:
        return tuple(simplified(i) if isinstance(i, E) else fn.facts.simplify(i) for i in index)

    renamed = rename_statement(stmt, {loop.index: number})
    return map_statement(renamed, simplified, lambda buf, index: (buf, place(index)), fn.facts.simplify)


__all__ = ["at_number", "divisions", "in_digits", "only_stores"]
