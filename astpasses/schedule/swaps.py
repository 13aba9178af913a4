"""Arrays that change places in what one block of a GPU does.

In: statements for one block, in which arrays change places. Out: the same, behind which each has its own place again: a
kernel's pointers are its own, and the host goes on with the arrays that it knows. Example:

    for k in range(steps):                    odd = False
        for i in range(n): v[i] = f(u, i)     for k in range(steps):
        u, v = v, u                   ->          for i in range(n): v[i] = f(u, i)
                                                  u, v = v, u; odd = not odd
                                              if odd: u, v = v, u; exchange their elements
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metaphrase.core.dims import Sym

from .nest import Buf, For, If, Load, Op, Stmt, Store, Swap, boolean, local, walk

TRUTH = np.dtype(bool)


def can_be_one_blocks(stmt: Stmt) -> bool:
    """Whether the arrays that change places in a statement are pairs of known sizes."""
    pairs = _pairs((stmt,))
    arrays = [buf for pair in pairs for buf in pair]
    return len(set(arrays)) == len(arrays) and not any(buf.dynamic or not buf.dims for buf in arrays)


def _pairs(block: tuple[Stmt, ...]) -> list[tuple[Buf, Buf]]:
    swaps = [s for s in walk(block) if isinstance(s, Swap)]
    return [*{frozenset((s.a, s.b)): (s.a, s.b) for s in swaps}.values()]


def in_place_again(body: tuple[Stmt, ...], fresh: Callable[[str], str]) -> tuple[Stmt, ...]:
    """The statements with arrays in their places behind each that has some change them."""
    rows: list[Stmt] = []
    for stmt in body:
        pairs = _pairs((stmt,))
        odd = {pair: local(fresh("odd"), TRUTH) for pair in pairs}
        rows += [Store(variable, (), boolean(False)) for variable in odd.values()]
        rows.append(_counted(stmt, odd) if pairs else stmt)
        rows += [If(Load(odd[a, b]), (Swap(a, b), _exchange(a, b, fresh))) for a, b in pairs]
    return tuple(rows)


def _counted(stmt: Stmt, odd: dict[tuple[Buf, Buf], Buf]) -> Stmt:
    """A statement that says of each pair whether its arrays have changed places an odd number of times."""
    blocks = []
    for block in stmt.blocks:
        rows: list[Stmt] = []
        for inner in block:
            rows.append(_counted(inner, odd))
            if isinstance(inner, Swap):
                variable = next(v for pair, v in odd.items() if {*pair} == {inner.a, inner.b})
                rows.append(Store(variable, (), Op("not", (Load(variable),), TRUTH)))
        blocks.append(tuple(rows))
    return stmt.with_blocks(tuple(blocks)) if blocks else stmt


def _exchange(a: Buf, b: Buf, fresh: Callable[[str], str]) -> Stmt:
    """The elements of two arrays change places."""
    spare = local(fresh("spare"), a.dtype)
    names = [fresh("i") for _ in a.dims]
    place = tuple(map(Sym, names))
    body: tuple[Stmt, ...] = (
        Store(spare, (), Load(a, place)),
        Store(a, place, Load(b, place)),
        Store(b, place, Load(spare)),
    )
    for name, extent in reversed(list(zip(names, a.dims))):
        body = (For(name, extent, body, "par", None, (), on="block"),)
    return body[0]


__all__ = ["can_be_one_blocks", "in_place_again"]
