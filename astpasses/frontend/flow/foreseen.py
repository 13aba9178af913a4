"""What the text of a loop says that its body will change, before the body has been staged.

In: a loop, and what its names are bound to. Out: the names that get another array or list in each iteration, and the
places that are written to, by functions that the body calls, too. Where the first pass does what was foreseen no other
one has to follow; where it does not, the loop is staged as if nothing had been foreseen.

    for i in range(n):              foreseen: `x` is another array at the end of an iteration,
        x = x + a[i]                and the content of `total` is written to
        total[i] = x.sum()

What staging knows of a value may decide whether it changes (`if self.count > 0: self.count += 1`). Nobody knows it in
a pass that has foreseen the change, which then comes true although it would not: such a pass is done anew.
"""

from __future__ import annotations

import inspect
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from metaphrase.core.decisions import decided
from metaphrase.core.ir import Literal, Var
from metaphrase.late import dataclass, field
from metaphrase.source import SourceError, is_library

from ..operators.kinds import is_number
from ..rewrite.convert import Outer, changes_in, is_converted
from ..rewrite.normal import normal
from ..rewrite.stores import ADDED, BOUND, CALLED, ITEM, READ, Change, Place, changes_of
from ..staging.journal import AttributeLocation, BoxLocation, Location
from ..staging.literals import known_value
from ..staging.session import Region, Session
from ..values.objects import is_mutable
from ..values.phi import family, is_one_of
from ..values.staged_values import Staged, StagedArray
from .gathering import is_gathered
from .joins import have_one_form, parts
from .stacks import is_stack

if TYPE_CHECKING:
    from .loops import Loop
    from .specs import Carry, Path, Spec

_DEEP = 4  # so far calls in calls are followed
ALL, _NOWHERE = object(), object()
Values = Callable[[str], Any]  # what a name is bound to; KeyError where the text does not say it


@dataclass
class Foreseen:
    """`names` are bound to other values in each iteration. `places` are written to. Of both, `known` are those whose
    values staging knows, and `unsure` those of them that a branch or a loop stands around."""

    names: frozenset[str] = frozenset()
    places: list[Location] = field(default_factory=list)
    known: set[str | int] = field(default_factory=set)
    unsure: set[str | int] = field(default_factory=set)
    runs: bool = False  # whether the first iteration does
    missed: set[Any] = field(default_factory=set)  # places that the first pass did not write to
    used: bool = False  # whether the first pass began with any of it

    def tells(self, path: Path) -> bool:
        """Whether what is at a path becomes another value."""
        told = path[0] in self.names or path[0] == "heap" and path[1] < len(self.places)
        self.used |= told
        return told

    def are_true(
        self, carries: list[Carry], written: list[Location], test: Region, condition: Any, body: Region
    ) -> bool:
        """Whether a pass wrote to all these places, and would have if nothing had been foreseen."""
        self.missed = {place.key() for place in self.places} - {place.key() for place in written}
        if self.missed:
            return False
        known, unsure = (
            {c.param for c in carries if c.path[c.path[0] == "heap"] in some} for some in (self.known, self.unsure)
        )
        asked: set[Any] = set(unsure if self.runs else known)
        if asked and (decided(test.builder.lets, asked) or condition in asked):
            return False
        return not unsure or not decided(body.builder.lets, set(unsure))

    def array(self, here: Session, path: Path, entry: Any) -> bool:
        """Whether the content of an array is carried, which is not the same array after an iteration."""
        return isinstance(entry, StagedArray) and all(map(here.is_bound, entry.type.dims)) and self.tells(path)

    def container(self, path: Path, entry: Any) -> bool:
        """Whether the items of a container are carried, which is another one after an iteration."""
        if is_number(entry) or isinstance(entry, StagedArray) or is_stack(entry) or is_gathered(entry):
            return False
        found = parts(entry) if len(path) == 1 and (type(entry) is list or not is_mutable(entry)) else None
        return found is not None and bool(found[1]) and all(map(_is_carried, found[1])) and self.tells(path)


def has_come_true(plan: dict[Path, Spec], path: Path, entry: Any, inside: Any, out: Any) -> bool:
    """Whether another value is there, as was foreseen. One of another kind than that is not, and is held so far."""
    spec, changes = plan[path], out is not inside
    spec.foreseen = False
    if spec.kind == "array" and isinstance(out, StagedArray):
        changes = not is_one_of(out.box, [inside.box, *family(entry.box)])
        of_this_kind = changes and out.type.dims == spec.dims
    else:
        of_this_kind = changes and spec.kind == "tree" and have_one_form(out, inside)
    if not of_this_kind:
        for below in [p for p in plan if p[: len(path)] == path and p != path]:
            del plan[below]
        spec.kind = "held"
    return changes


def foresee(here: Session, loop: Loop, entry: list, missed: set[Any]) -> Foreseen:
    """What the text of a loop's body says. Nothing where the body is not a user's. `missed`: places that an earlier
    pass did not write to; ALL: it was mistaken in other ways."""
    changes = changes_in(loop.body)
    if changes is None or ALL in missed:
        return Foreseen()
    state, outer = dict(zip(loop.names, entry)), Outer(loop.body)
    bound = _bound(changes)

    def value(name: str) -> Any:
        if name in bound:
            raise KeyError(name)
        return state[name] if name in state else outer.value(name)

    names = {name for name in bound if _is_of_parts(state.get(name))}
    known: set[Any] = {name for name in names if _is_known(here, state[name])}
    sure: set[Any] = {c.place.name for c in changes if c.sure and c.what == BOUND}
    search = _Search(here)
    search.follow(changes, value, True, ())
    carried = [location.read() for location in search.found.values() if isinstance(location, AttributeLocation)]
    inside = {BoxLocation(array.box).key() for array in carried if isinstance(array, StagedArray)}  # others by then
    places: list[Location] = []
    for key, location in search.found.items():
        if key in missed or key in inside:
            continue
        if _is_known(here, location.stored()):
            if key not in search.sure and getattr(location, "name", None) in search.read:
                continue
            known.add(len(places))
        if key in search.sure:
            sure.add(len(places))
        places.append(location)
    return Foreseen(frozenset(names), places, known, known - sure, used=bool(places))


def _bound(changes: tuple[Change, ...]) -> set[str]:
    return {change.place.name for change in changes if change.what == BOUND}


class _Search:
    """The places that a text and the functions that it calls write to; `sure`: those that they write to in any case;
    `read`: the attributes that they read."""

    def __init__(self, here: Session):
        self.here = here
        self.found: dict[Any, Location] = {}
        self.sure: set[Any] = set()
        self.read: set[str] = set()

    def follow(self, changes: tuple[Change, ...], value: Values, sure: bool, inside: tuple) -> None:
        """`sure`: whether the text is run; `inside`: the functions that it stands in."""
        for place, what, surely, args in changes:
            if what == CALLED:
                function, first = _function(value, place) if len(inside) < _DEEP else (None, [])
                if function is not None and function.__code__ not in inside:
                    self.call(function, [*first, *(_argument(value, a) for a in args)], sure and surely, inside)
            elif what == READ:
                self.read.add(place.name)
            elif what != BOUND and (location := self.written(_argument(value, place), what)) is not None:
                self.found.setdefault(location.key(), location)
                if sure and surely:
                    self.sure.add(location.key())

    def call(self, function: types.FunctionType, values: list, sure: bool, inside: tuple) -> None:
        changes, code = _changes_by(function), function.__code__
        given, outer = dict(zip(code.co_varnames[: code.co_argcount], values)), Outer(function)
        bound = _bound(changes)

        def value(name: str) -> Any:
            known = _NOWHERE if name in bound else given[name] if name in given else outer.value(name)
            if known is _NOWHERE or name in code.co_varnames and name not in given:
                raise KeyError(name)
            return known

        self.follow(changes, value, sure, (*inside, code))

    def written(self, owner: Any, what: str) -> Location | None:
        """The place that a store into an item or an attribute writes to, if a loop may carry what is there."""
        if what in (ITEM, ADDED):
            here = isinstance(owner, StagedArray) and owner.box.region in self.here.regions and owner.box.phi is None
            return BoxLocation(owner.box) if here else None
        plain = self.here.is_fresh(owner, 0) and _is_plain(owner, what) and _is_carried(vars(owner).get(what))
        return AttributeLocation(owner, what) if plain else None


_changes: weakref.WeakKeyDictionary[types.CodeType, tuple[Change, ...]] = weakref.WeakKeyDictionary()


def _changes_by(function: types.FunctionType) -> tuple[Change, ...]:
    code = function.__code__
    if code not in _changes:
        try:
            _changes[code] = changes_of(normal(function).node.body)
        except SourceError:  # there is no source, or it is refused, if it should be called
            _changes[code] = ()
    return _changes[code]


def _function(value: Values, called: Place) -> tuple[types.FunctionType | None, list]:
    """The user's function that is called, and the object that it is a method of."""
    found = _argument(value, called)
    first: list = []
    if found is _NOWHERE and called.path and called.path[-1] != ITEM:
        first = [_argument(value, called._replace(path=called.path[:-1]))]
        found = inspect.getattr_static(type(first[0]), called.path[-1], None)
    elif not isinstance(found, types.FunctionType):
        first, found = [found], inspect.getattr_static(type(found), "__call__", None)
    ours = isinstance(found, types.FunctionType) and not is_converted(found.__code__)
    return (found if ours and not is_library(found.__module__ or "") else None), first


def _argument(value: Values, place: Place | None) -> Any:
    try:
        return _NOWHERE if place is None else _reached(value, place)
    except KeyError:
        return _NOWHERE


def _reached(value: Values, place: Place) -> Any:
    reached = value(place.name)
    for step in place.path:
        if step != ITEM:
            held = getattr(reached, "__dict__", None)
            if not isinstance(held, dict):
                raise KeyError(step)
            reached = held[step]
        elif not isinstance(reached, StagedArray):
            raise KeyError(step)
    return reached


def _is_plain(owner: Any, name: str) -> bool:
    """Whether an attribute is stored as any is."""
    kind = type(owner)
    return kind.__setattr__ is object.__setattr__ and not hasattr(kind, name)


def _is_of_parts(value: Any) -> bool:
    return isinstance(value, StagedArray) or not is_number(value) and parts(value) is not None


def _is_carried(value: Any) -> bool:
    return is_number(value) or isinstance(value, StagedArray)


def _is_known(here: Session, value: Any) -> bool:
    """Whether staging knows what it is, and branches may be taken by it."""
    if isinstance(value, (Literal, Var)):
        return isinstance(value, Literal)
    if isinstance(value, Staged):
        return known_value(here, value) is not None
    found = parts(value)
    return found is None or any(_is_known(here, item) for item in found[1])
