"""Reads before writes: what reads an array is done before the write that continues it, so the write can be
in place.

In: a Function. Out: the same operations in another order. `in_place(function)` lists the writes whose array
nobody reads later; `not_in_place` is the checker's view: the writes that still need a copy.

    b: f64[n] = slice_update(a, v, i, step=(1,))          r: f64[1] = slice(a, j, ...)
    r: f64[1] = slice(a, j, ...)                   ->     b: f64[n] = slice_update(a, v, i, step=(1,))
"""

from __future__ import annotations

import itertools
from collections import Counter

from metaphrase.core.ir import Function, Let, Var

from .rebuild import map_regions

pre_ad_safe = True
LIMIT = 40  # operations moved for one write


def reuse(function: Function) -> Function:
    lets = [map_regions(let, reuse) for let in function.lets]
    lets = _elements(lets)
    if any(let.primitive.stores for let in lets):
        _read_before_writes(lets, {r for r in function.results if isinstance(r, Var)})
    if all(a is b for a, b in zip(lets, function.lets)):
        return function
    return Function(function.name, function.params, tuple(lets), function.results)


def _read_before_writes(lets: list[Let], lasting: set[Var]) -> None:
    """Move what reads the array of a write in front of it; `lasting` arrays are copied in any case."""
    readers = Counter(atom for let in lets for atom in set(let.args))  # those that are to come
    position = 0
    while position < len(lets):
        let = lets[position]
        array = let.args[0] if let.primitive.stores else None
        moved: list[int] = []
        if isinstance(array, Var) and array not in lasting and readers[array] > 1:
            moved = _readers(lets, position, readers[array] - 1)
        if moved:
            rest = [x for q, x in enumerate(lets[position:], position) if q not in moved]
            lets[position:] = [*(lets[q] for q in moved), *rest]
        behind = position + len(moved) + 1
        readers.subtract(atom for let in lets[position:behind] for atom in set(let.args))
        position = behind


def _elements(lets: list[Let]) -> list[Let]:
    """A reshape of a slice directly behind it, unless a size of its own is bound between them: the two read
    an element or a row."""
    behind: dict[Var, tuple[int, list[Let]]] = {}
    rows: list[tuple[Let, list[Let]]] = []
    bound: dict[str, int] = {}
    for position, let in enumerate(lets):
        cut = behind.get(let.args[0]) if let.primitive.name == "reshape" else None  # type: ignore[arg-type]
        if cut is not None and all(bound.get(symbol, -1) < cut[0] for symbol in let.uses_symbols()):
            cut[1].append(let)
            continue
        rows.append((let, []))
        bound.update(dict.fromkeys(let.own_symbols(), position))
        if let.primitive.name == "slice":
            behind[let.out] = position, rows[-1][1]
    return [x for let, followers in rows for x in (let, *followers)]


def _readers(lets: list[Let], position: int, count: int) -> list[int]:
    """Positions of the Lets to do before the write: all later readers of its array, of which there are
    `count`, and what they need; or none."""
    array = lets[position].args[0]
    later = (q for q in range(position + 1, len(lets)) if any(a is array for a in lets[q].args))
    readers = list(itertools.islice(later, count))
    made = {v: q for q in range(position, len(lets)) for v in lets[q].outs}
    sizes = {symbol: q for q in range(position, len(lets)) for symbol in lets[q].own_symbols()}
    needed: set[int] = set()
    todo = list(readers)
    while todo:
        q = todo.pop()
        if q in needed:
            continue
        let = lets[q]
        if q == position or not _may_move(let) or len(needed) >= LIMIT:
            return []
        needed.add(q)
        todo += [made[a] for a in let.args if isinstance(a, Var) and a in made]
        todo += [sizes[symbol] for symbol in let.uses_symbols() if symbol in sizes]
    early = {v for q in needed for v in lets[q].outs}
    for q, let in enumerate(lets[position + 1 :], position + 1):  # an element is a slice and a reshape
        if let.primitive.name == "reshape" and let.args[0] in early and not let.uses_symbols() & sizes.keys():
            needed.add(q)
    return sorted(needed)


def _may_move(let: Let) -> bool:
    return not (let.primitive.region or let.effects or let.own_symbols() or let.primitive.stores)


def in_place(function: Function) -> list[Let]:
    """The writes of `function` (not of its regions) whose array is not read after them."""
    return [
        let
        for position, let in enumerate(function.lets)
        if let.primitive.stores and not _read_later(function, position)
    ]


def not_in_place(function: Function) -> list[Let]:
    """The writes that need a copy of their array first."""
    return [
        let for position, let in enumerate(function.lets) if let.primitive.stores and _read_later(function, position)
    ]


def _read_later(function: Function, position: int) -> bool:
    array = function.lets[position].args[0]
    return array in function.results or any(array in x.args for x in function.lets[position + 1 :])


__all__ = ["reuse", "in_place", "not_in_place", "pre_ad_safe"]
