"""An array that may be one of several: which one is known when the program runs.

In: candidates, each with the staged flag that it is the one. Out: writes to the array reach the candidate,
writes to the candidate reach the array. What was last the same is told by the content's atom: writes that are
undone and done again do not count. A candidate that no one can reach is not written to any more, and then not
read from either: what it holds is old.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from metaphrase.core.build import literal
from metaphrase.core.ir import Atom, Literal
from metaphrase.ops.compare import and_, select
from metaphrase.ops.shape import broadcast
from metaphrase.source import Span, UnsupportedError

from ..staging.journal import BoxLocation, Location
from ..staging.positions import said
from .staged_values import Box


class Phi:
    """`choices`: (flag: a bool atom or True, box, the box's atom when they were last the same or None where
    the box is left behind, the chain of steps to the view of it that the array is). `total`: it is one of
    these, whatever the run does."""

    def __init__(self, choices: list[tuple], total: bool = False):
        self.total = total
        self.region: Any = None  # of the array
        self.choices = [choice if len(choice) == 4 else (*choice, ()) for choice in choices]
        self.paths = sum(map(paths_of, self.boxes))

    @property
    def boxes(self) -> list[Box]:
        return [choice[1] for choice in self.choices]

    def refresh(self, here: Any, box: Box) -> None:
        """Take over what was written to a candidate since."""
        for k, (flag, candidate, same, chain) in enumerate(self.choices):
            here.refresh(candidate)
            if same is None or candidate.atom is same:
                continue
            here.journal.note(BoxLocation(box))
            box.atom = choose_content(here, flag, read_through(here, candidate.atom, chain), box.atom)
            box.version += 1
            here.journal.note(PhiLocation(self))
            self.choices[k] = (flag, candidate, candidate.atom, chain)

    def written(self, here: Any, box: Box) -> None:
        """Hand a write on to the candidate that it is."""
        from ..operators.indexing import write_box

        for k, (flag, candidate, same, chain) in enumerate(self.choices):
            if same is None:
                continue
            now = None
            if candidate.alive(box):
                here.refresh(candidate)
                content = choose_content(here, flag, box.atom, read_through(here, candidate.atom, chain))
                write_box(here, candidate, write_through(here, candidate.atom, chain, content))
                now = candidate.atom
            here.journal.note(PhiLocation(self))
            self.choices[k] = (flag, candidate, now, chain)


def paths_of(box: Box) -> int:
    """On how many ways, from choice to choice, an array is one that is what it is."""
    return box.phi.paths if isinstance(box.phi, Phi) else 1


def read_through(here: Any, atom: Atom, chain: tuple) -> Atom:
    """What a view of an array holds."""
    for step in chain:
        atom = step.read(here, atom)
    return atom


def write_through(here: Any, atom: Atom, chain: tuple, value: Atom) -> Atom:
    """The array with a view of it replaced."""
    bases = [atom]
    for step in chain[:-1]:
        bases.append(step.read(here, bases[-1]))
    for step, base in zip(reversed(chain), reversed(bases)):
        value = step.write(here, base, value)
    return value


class PhiLocation(Location):
    """What a phi last saw, so that an undone trial is undone here too. It is no place of the user's."""

    kind, internal = "phi", True

    def __init__(self, phi: Phi):
        self.phi = self.owner = phi

    def read(self) -> Any:
        return list(self.phi.choices)

    def write(self, value: Any) -> None:
        self.phi.choices = list(value)

    def describe(self) -> str:
        return "an array that is one of several"


class UnknownAlias:
    """The array may be one of `boxes`, and no flag says so: writing to either while both are in use is refused."""

    remedy = "copy one of them: x = x.copy()"

    def __init__(self, boxes: list[Box], name: str, span: Span | None, why: str = "it depends on how this runs"):
        self.boxes, self.span, self.why = list({id(box): box for box in boxes}.values()), span, why
        self.name = said(name) if name.isidentifier() else name
        self.same = [box.atom for box in self.boxes]

    def refuse(self, here: Any) -> UnsupportedError:
        return UnsupportedError(
            f"{self.name} may or may not share memory with an array that is written to",
            here.span(),
            remedy=self.remedy,
            code="alias",
            notes=((self.why, self.span),),
        )

    def refresh(self, here: Any, box: Box) -> None:
        if any(b.atom is not same for b, same in zip(self.boxes, self.same)):
            raise self.refuse(here)

    def written(self, here: Any, box: Box) -> None:
        if any(b.alive(box) for b in self.boxes):
            raise self.refuse(here)


def bind(box: Box, phi: Any) -> None:
    """Say what a box may be, and tell those boxes."""
    box.phi = phi
    if isinstance(phi, Phi):
        phi.region = box.region
    for candidate in phi.boxes if phi is not None else ():
        candidate.dependents.append(weakref.ref(box))


def candidates_of(box: Box) -> list[Box]:
    """The older arrays that a box may be."""
    return [] if box.phi is None else list(box.phi.boxes)


def family(box: Box) -> list[Box]:
    """The box and all that it may be, through any number of steps."""
    found, reached = [box], {id(box)}
    for member in found:
        for candidate in candidates_of(member):
            if id(candidate) not in reached:
                reached.add(id(candidate))
                found.append(candidate)
    return found


def may_be_one(first: Box, second: Box) -> bool:
    """Whether two arrays may be one, as the run decides."""
    return any(one is other for one in family(first) for other in family(second))


def is_one_of(box: Box, boxes: Sequence[Box]) -> bool:
    """Whether it is one of these for sure, whatever the run does."""
    if any(box is one for one in boxes):
        return True
    return isinstance(box.phi, Phi) and box.phi.total and all(is_one_of(one, boxes) for one in box.phi.boxes)


def choices_among(box: Box, wanted: Callable[[Box], bool]) -> list[tuple] | None:
    """The wanted ones of those that a box may be, through any number of choices: (flags that all hold where
    it is this one, box, chain). None where no flags say so."""
    if not isinstance(box.phi, Phi):
        return None if any(map(wanted, family(box)[1:])) else []
    found: list[tuple] = []
    for flag, candidate, _, chain in box.phi.choices:
        if wanted(candidate):
            found.append(((flag,), candidate, chain))
            continue
        nearer = choices_among(candidate, wanted)
        if nearer is None:
            return None
        found += [((flag, *flags), other, (*steps, *chain)) for flags, other, steps in nearer]
    return found


def all_of(here: Any, flags: tuple) -> Atom:
    """Whether all flags hold."""
    made: Atom = literal(True)
    for flag in flags:
        if flag is not True:
            made = flag if isinstance(made, Literal) else here.emit(and_, made, flag)
    return made


def choose_content(here: Any, flag: Any, then: Atom, otherwise: Atom) -> Atom:
    """What an array holds: `then` where the flag holds."""
    if flag is True:
        return then
    dims = then.type.dims
    if dims:
        flag = here.emit(broadcast, flag, shape=dims, axes=())
    return here.emit(select, flag, then, otherwise)
