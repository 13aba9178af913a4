"""What a piece of normal form may change of what it did not make: names, items, attributes; what it calls and reads.

In: gast statements. Out: a `Change` for each. What they mean with the values that names have is asked elsewhere.

    x = f(y)                 Change(Place("x"), "=", ...)
    x += y                   Change(Place("x"), "+=", ...)
    grid.cells[i, j] = v     Change(Place("grid", ("cells",)), "[]", ...)
    self.count += 1          Change(Place("self"), "count", ...)
    relax(grid, w)           Change(Place("relax"), "()", ..., (Place("grid"), Place("w")))
    y = self.size            Change(Place("size"), "?", ...): an attribute of some object is read
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import gast

from .scopes import bound_names, own_nodes

BOUND, ADDED, ITEM, CALLED, READ = "=", "+=", "[]", "()", "?"
_BLOCKS = (gast.If, gast.While, gast.For, gast.Try)


class Place(NamedTuple):
    """What is reached from a name by items (ITEM) and attributes."""

    name: str
    path: tuple[str, ...] = ()


class Change(NamedTuple):
    """`sure`: whether it is made wherever the piece is run to its end. `args` of what is called; None: no place."""

    place: Place
    what: str
    sure: bool
    args: tuple[Place | None, ...] = ()


def changes_of(body: Iterable[gast.AST]) -> tuple[Change, ...]:
    """Each change once, in their order."""
    return tuple(dict.fromkeys(change for statement in body for change in _changes(statement, True)))


def _changes(node: gast.AST, sure: bool) -> Iterator[Change]:
    if isinstance(node, _BLOCKS):
        for part in ("target", "test", "iter"):
            if (head := getattr(node, part, None)) is not None:
                yield from _own(head, False)
        for part in ("body", "handlers", "orelse", "finalbody"):
            for statement in getattr(node, part, ()):
                yield from _changes(statement, False)
    elif isinstance(node, (gast.With, gast.ExceptHandler)):
        for head in getattr(node, "items", ()):
            yield from _own(head, sure)
        for statement in node.body:
            yield from _changes(statement, sure)
    else:
        yield from _own(node, sure)


def _own(node: gast.AST, sure: bool) -> Iterator[Change]:
    """The changes by a statement without others in it, or by an expression."""
    inside = list(own_nodes(node))
    always = sure and not any(isinstance(n, (gast.BoolOp, gast.IfExp)) for n in inside)
    for n in inside:
        if isinstance(n, gast.Call) and not n.keywords and (function := _place(n.func)):
            yield Change(function, CALLED, always, tuple(map(_place, n.args)))
        elif isinstance(n, (gast.Subscript, gast.Attribute)) and (owner := _place(n.value)):
            if isinstance(n.ctx, gast.Store):
                yield Change(owner, n.attr if isinstance(n, gast.Attribute) else ITEM, sure)
            elif isinstance(n, gast.Attribute):
                yield Change(Place(n.attr), READ, False)
    added = isinstance(node, gast.AugAssign)
    yield from (Change(Place(name), ADDED if added else BOUND, sure) for name in bound_names(node))


def _place(node: gast.AST) -> Place | None:
    steps: list[str] = []
    while isinstance(node, (gast.Subscript, gast.Attribute)):
        steps.append(node.attr if isinstance(node, gast.Attribute) else ITEM)
        node = node.value
    return Place(node.id, tuple(reversed(steps))) if isinstance(node, gast.Name) else None
