"""Arrays that may be one of several, across branches and loops: with which of these they agree afterwards.

In: the arrays that a side of a branch or the body of a loop brought up to date (values/phi.py), and what
their candidates held at its end. Out: the same for what stands behind the branch or loop, where the content
of both has other atoms. An array that agrees with a candidate at the end of every path does so behind it;
else it is read from the candidate again when it is next asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from metaphrase.core.ir import Atom
from metaphrase.late import dataclass, field

from ..staging.journal import BoxLocation, Location
from ..staging.session import Session
from ..values.phi import Phi, PhiLocation
from ..values.staged_values import Box

AGREES, DIFFERS, LEFT = "agrees", "differs", "left"


def state_of(choice: tuple, content: Atom) -> str:
    """How an array and a candidate stand, which holds `content`."""
    return LEFT if choice[2] is None else AGREES if choice[2] is content else DIFFERS


@dataclass
class Agreement:
    """The arrays that one path brought up to date: their choices at its end, and how these stood."""

    found: dict[int, tuple[Phi, list[tuple], list[str]]] = field(default_factory=dict)

    @staticmethod
    def since(here: Session, mark: int) -> Agreement:
        """Of the path that is being staged since `mark`."""
        phis = [place.phi for place, _ in here.journal.notes[mark:] if isinstance(place, PhiLocation)]
        return Agreement(
            {id(phi): (phi, list(phi.choices), [state_of(c, c[1].atom) for c in phi.choices]) for phi in phis}
        )

    def states(self, phi: Phi, content: Callable[[Box], Atom]) -> list[str]:
        """At the end of the path; `content`: what a box holds there."""
        if id(phi) in self.found:
            return self.found[id(phi)][2]
        return [state_of(choice, content(choice[1])) for choice in phi.choices]

    def put(self, wanted: Callable[[Phi], bool] = lambda phi: True) -> list[tuple[Phi, list[tuple]]]:
        """The choices of the path's end in place again; gives what was there."""
        found = [(phi, choices) for phi, choices, _ in self.found.values() if wanted(phi)]
        before = [(phi, phi.choices) for phi, _ in found]
        for phi, choices in found:
            phi.choices = list(choices)
        return before


def behind_branch(here: Session, ends: Iterable[tuple[Agreement, dict]]) -> Callable[[], None]:
    """To be asked before what the sides wrote is put in place, and called afterwards. `ends`: how the arrays
    stand at the end of each side, and what it wrote, by place."""
    ends = list(ends)
    states: dict[int, tuple[Phi, list[tuple]]] = {}
    for agreement, _ in ends:
        for key, (phi, *_) in agreement.found.items():
            sides = (a.states(phi, _content_in(written)) for a, written in ends)
            states[key] = phi, list(zip(*sides))

    def put() -> None:
        for phi, pairs in states.values():
            _settle(here, phi, [_joined(here, set(pair)) for pair in pairs])

    return put


def _content_in(written: dict) -> Callable[[Box], Atom]:
    def content(box: Box) -> Atom:
        place = BoxLocation(box)
        return written[place.key()][1] if place.key() in written else box.atom

    return content


def _joined(here: Session, states: set[str]) -> str:
    if states == {LEFT, DIFFERS} or len(states) == 3:
        raise here.unsupported(
            "an array may or may not share memory with another one that is written to",
            "copy one of them: x = x.copy()",
            code="alias",
        )
    return next(s for s in (LEFT, DIFFERS, AGREES) if s in states)


def _settle(here: Session, phi: Phi, states: list[str]) -> None:
    here.journal.note(PhiLocation(phi))
    for k, ((flag, box, same, chain), state) in enumerate(zip(phi.choices, states)):
        now = {LEFT: None, AGREES: box.atom, DIFFERS: same}[state]
        phi.choices[k] = (flag, box, now, chain)


# --- loops ---


def _several(heap: Iterable[Location]) -> list[Box]:
    """The arrays that a loop writes to and that may be one of several."""
    return [p.owner for p in heap if isinstance(p, BoxLocation) and isinstance(p.owner.phi, Phi)]


def bring_up_to_date(here: Session, heap: Iterable[Location]) -> None:
    """Where an iteration begins or ends the arrays that it writes to agree with what they may be."""
    for box in _several(heap):
        here.refresh(box)


def agree(here: Session, heap: list[Location], left: dict[int, list[str]]) -> None:
    """They do so with what the places hold now. `left`: the states at the end of the body."""
    for phi in [box.phi for box in _several(heap)]:
        before = [LEFT if choice[2] is None else AGREES for choice in phi.choices]
        inside = left.get(id(phi), before)
        _settle(here, phi, [LEFT if LEFT in pair else AGREES for pair in zip(before, inside)])
