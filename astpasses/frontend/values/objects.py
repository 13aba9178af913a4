"""Mutable Python objects at joins: which of them may be one and the same, depending on how it runs.

In: what a branch or a loop made of objects of several paths, and those. Out: `Shared`, which refuses a write
to one of two such objects while user code can still reach the other, as each has its content for itself.

    if better:                  # after the branch `best` is made of the fields of both; it may be what `old`
        best = old              # is, so that a store into either is refused until the other is out of reach
    else:
        best = Candidate(x)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from metaphrase.source import Span, UnsupportedError

from ..rewrite.plain import Undefined

Sides = Mapping[int, int]  # which side of some branches, by number, was taken
Origins = Mapping[int, Sequence[Sides]]  # the objects that one may be, by identity, and where it is this one
ANYWHERE: Sides = {}  # said of what may be on any path
MOST_WAYS = 16  # to one object that are told apart


class Shared:
    """`older`: which objects a joined one may be, by identity; all are kept alive so that no identity is used again.
    Two objects may be one if both may be a third, and not by different sides of a branch: where `a, b = b, a` was on
    one path, `a` and `b` are still two. `reachable`: which of some objects user code can still reach."""

    def __init__(self, reachable: Callable[[Collection[int]], set[int]]) -> None:
        self.reachable = reachable
        self.things: dict[int, Any] = {}
        self.older: dict[int, dict[int, Sides]] = {}
        self.families: dict[int, list[int]] = {}  # all that are joined with one, over others
        self.branches = 0  # and loops
        self.places: dict[int, tuple[str, Span | None]] = {}
        self.copies: dict[int, tuple[Any, Span | None]] = {}
        self.asked: list[int] = []  # of which objects it was asked whether they may be others

    def join(self, made: Any, thing: Any, name: str, span: Span | None, sides: Sides = ANYWHERE) -> None:
        """Note that an object may be another one, where the run takes these sides."""
        if is_mutable(thing) and is_mutable(made) and thing is not made:
            known = self.older.setdefault(id(made), {})
            known[id(thing)] = sides if known.get(id(thing), sides) == sides else ANYWHERE
            for one in (made, thing):
                self.things[id(one)] = one
                self.places.setdefault(id(one), (name, span))
                self.families.setdefault(id(one), [id(one)])
            mine, others = sorted((self.families[id(made)], self.families[id(thing)]), key=len)
            if mine is not others:
                others += mine
                self.families.update(dict.fromkeys(mine, others))

    def name(self, thing: Any, name: str, span: Span | None) -> None:
        """What messages call an object, and where it became one of several."""
        self.places.setdefault(id(thing), (name, span))

    def add_copy(self, thing: Any, span: Span | None) -> None:
        """Note an item of a list that a loop made: what holds the parts of the items is not the object."""
        if is_mutable(thing):
            self.copies.setdefault(id(thing), (thing, span))

    def __contains__(self, thing: Any) -> bool:
        return id(thing) in self.things or id(thing) in self.copies

    def origins(self, key: int, known: Collection[int] = ()) -> Origins:
        """The objects that one may be, and itself. `known`: it is not asked what these may be."""
        found: dict[int, list[Sides]] = {key: [ANYWHERE]}
        todo: list[tuple[int, Sides]] = [(key, ANYWHERE)]
        while todo:
            at, way = todo.pop()
            for nearer, sides in self.older.get(at, {}).items() if at not in known else ():
                longer: Sides = {**way, **sides}
                ways = found.setdefault(nearer, [])
                if any(longer.items() >= other.items() for other in ways):
                    continue
                if len(ways) == MOST_WAYS:
                    longer = ANYWHERE
                found[nearer] = [*(w for w in ways if not w.items() >= longer.items()), longer]
                todo.append((nearer, longer))
        return found

    def others(self, thing: Any) -> bool:
        """Whether user code can reach another object that may be this one."""
        origins, family = self.origins(id(thing)), self.families.get(id(thing), ())
        kin = [key for key in family if key != id(thing) and meet(origins, self.origins(key))]
        return bool(kin and self.reachable(kin))  # which looks at all objects: it is asked last

    def refuse(self, thing: Any, span: Span | None) -> None:
        """Refuse a write that another name for the same object would not see."""
        self.asked.append(id(thing))
        if thing in self:
            self._refuse_copied(thing, span, "it is written to")
            if self.others(thing):
                raise self._unknown(thing, span, "it is written to")

    def refuse_identity(self, left: Any, right: Any, span: Span | None) -> None:
        """Refuse `left is right` where that depends on how the program runs."""
        if is_mutable(left) and is_mutable(right):
            self.asked += [id(left), id(right)]
        if left is right or left not in self and right not in self:
            return
        for thing in (left, right):
            self._refuse_copied(thing, span, "its identity is asked for")
        if meet(self.origins(id(left)), self.origins(id(right))):
            raise self._unknown(left, span, "its identity is asked for")

    def _unknown(self, thing: Any, span: Span | None, why: str) -> UnsupportedError:
        name, where = self.places[id(thing)]
        what = f"the {type(thing).__name__} '{name}'"
        return UnsupportedError(
            f"{what} may or may not be the same object as another one, and {why}",
            span,
            remedy="make a new object instead of changing this one",
            code="alias",
            notes=(("it depends on how this runs", where),),
        )

    def _refuse_copied(self, thing: Any, span: Span | None, why: str) -> None:
        origins = self.origins(id(thing)) if self.copies else {}
        for copied, (_, where) in self.copies.items():
            if meet(origins, self.origins(copied)):
                raise UnsupportedError(
                    f"a {type(thing).__name__} in a list that a loop made is kept by its parts, and {why}",
                    span,
                    remedy="make an array of the list, np.array(values), and change that",
                    code="alias",
                    notes=(("it is put into the list, or read from it, here", where),),
                )


def agree(one: Sequence[Sides], other: Sequence[Sides]) -> bool:
    """Whether there is a run that goes one of these ways and one of those."""
    return any(all(b.get(branch, side) == side for branch, side in a.items()) for a in one for b in other)


def meet(one: Origins, other: Origins) -> bool:
    """Whether two objects may be one."""
    return any(agree(ways, other[key]) for key, ways in one.items() if key in other)


def is_one_of(thing: Any, things: Iterable[Any]) -> bool:
    """Whether it is one of these itself, whatever its class says of equality."""
    return any(thing is one for one in things)


def is_mutable(value: Any) -> bool:
    """Whether writes into a container can be seen through another name for it."""
    if value is None or isinstance(value, (tuple, Undefined)):
        return False
    parameters = getattr(type(value), "__dataclass_params__", None)
    return not (parameters is not None and parameters.frozen)
