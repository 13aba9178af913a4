"""Reads before writes: what reads an array is done before the write that continues it, so the write can be
in place.

In: a Function. Out: the same operations in another order. `in_place(function)` lists the writes whose array
nobody reads later; `not_in_place` is the checker's view: the writes that still need a copy.

    b: f64[n] = slice_update(a, v, i, step=(1,))          r: f64[1] = slice(a, j, ...)
    r: f64[1] = slice(a, j, ...)                   ->     b: f64[n] = slice_update(a, v, i, step=(1,))
"""

from __future__ import annotations

import itertools

from metaphrase.core.ir import Function, Let, Var

from .rebuild import has_effect, map_regions

pre_ad_safe = True
WRITES = frozenset(["slice_update", "slice_add", "scatter", "scatter_add"])
LIMIT = 40  # operations moved for one write


def reuse(function: Function) -> Function:
    lets = [map_regions(let, lambda region, operands: reuse(region)) for let in function.lets]
    lets = _elements(lets)
    changed = any(a is not b for a, b in zip(lets, function.lets))
    lasting = {r for r in function.results if isinstance(r, Var)}
    if any(let.primitive.name in WRITES for let in lets):
        readers: dict[Var, int] = {}
        for let in lets:
            for atom in set(let.args):
                readers[atom] = readers.get(atom, 0) + 1  # type: ignore[index, arg-type]
        position = 0
        while position < len(lets):
            let = lets[position]
            array = let.args[0] if let.primitive.name in WRITES else None
            moved: list[int] = []
            if isinstance(array, Var) and array not in lasting and readers[array] > 1:
                moved = _readers(lets, position, readers[array] - 1)
            if moved:
                first = [lets[q] for q in moved]
                rest = [x for q, x in enumerate(lets[position:], position) if q not in moved]
                lets[position:] = first + rest
                changed = True
            for let in lets[position : position + len(moved) + 1]:  # `readers` are those that are to come
                for atom in set(let.args):
                    readers[atom] -= 1  # type: ignore[index]
            position += len(moved) + 1
    return Function(function.name, function.params, tuple(lets), function.results) if changed else function


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
        if (
            q == position
            or let.primitive.region
            or has_effect(let)
            or let.own_symbols()
            or len(needed) >= LIMIT
            or let.primitive.name in WRITES
        ):
            return []
        needed.add(q)
        todo += [made[a] for a in let.args if isinstance(a, Var) and a in made]
        todo += [sizes[symbol] for symbol in let.uses_symbols() if symbol in sizes]
    early = {v for q in needed for v in lets[q].outs}
    needed.update(
        q
        for q in range(position + 1, len(lets))  # an element is a slice and a reshape
        if lets[q].primitive.name == "reshape"
        and lets[q].args[0] in early
        and not lets[q].uses_symbols() & sizes.keys()
    )
    return sorted(needed)


def in_place(function: Function) -> list[Let]:
    """The writes of `function` (not of its regions) whose array is not read after them."""
    return [
        let
        for position, let in enumerate(function.lets)
        if let.primitive.name in WRITES and not _read_later(function, position)
    ]


def not_in_place(function: Function) -> list[Let]:
    """The writes that need a copy of their array first."""
    return [
        let
        for position, let in enumerate(function.lets)
        if let.primitive.name in WRITES and _read_later(function, position)
    ]


def _read_later(function: Function, position: int) -> bool:
    array = function.lets[position].args[0]
    return array in function.results or any(array in x.args for x in function.lets[position + 1 :])


__all__ = ["reuse", "in_place", "not_in_place", "pre_ad_safe"]
