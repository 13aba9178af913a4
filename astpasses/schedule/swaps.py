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
        for a, b in pairs:
            elements = exchange(Swap(a, b), local(fresh("spare"), a.dtype), fresh, "block")
            rows.append(If(Load(odd[a, b]), (Swap(a, b), elements)))
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


def exchange(swap: Swap, spare: Buf, fresh: Callable[[str], str], on: str = "") -> Stmt:
    """The elements of two arrays change places, by way of a variable."""
    a, b, span = swap.a, swap.b, swap.span
    names = [fresh("i") for _ in a.dims]
    place = tuple(map(Sym, names))
    body: tuple[Stmt, ...] = (
        Store(spare, (), Load(a, place), None, span),
        Store(a, place, Load(b, place), None, span),
        Store(b, place, Load(spare), None, span),
    )
    for name, extent in reversed(list(zip(names, a.dims))):
        body = (For(name, extent, body, "par", span, () if on else None, on=on),)
    return body[0]


__all__ = ["can_be_one_blocks", "exchange", "in_place_again"]
