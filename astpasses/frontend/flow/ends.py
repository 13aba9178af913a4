"""Where the sides of a branch ended, which are staged one after the other from the same state.

In: the places that a side wrote, with what they held at its end. Out: that state again, as long as something
is looked at. Example:

    with as_it_was(end):
        ...                          # `o.v = 7.0` of this side has happened
    end.look(o, parts)               # the same for one object, if the side wrote to it
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from metaphrase.late import dataclass, field

from ..staging.journal import Location
from ..staging.session import Region
from ..staging.signals import BranchRaised
from .agreement import Agreement


@dataclass
class End:
    """Where one side ended: its region, its state, what it wrote; or what it raised."""

    region: Region
    values: list = field(default_factory=list)
    written: dict[Any, tuple[Location, Any]] = field(default_factory=dict)
    contents: dict[int, Any] = field(default_factory=dict)  # of lists and dicts of which items were written
    agreement: Agreement = field(default_factory=Agreement)
    raised: BranchRaised | None = None

    def look(self, thing: Any, at: Callable[[Any], Any]) -> Any:
        """`at(thing)` as it was when the side ended."""
        if all(location.owner is not thing for location, _ in self.written.values()):
            return at(thing)
        with as_it_was(self):
            return at(thing)

    def kept(self) -> Iterator[Any]:
        """What is held here, once for each reference."""
        yield from self.values
        yield from self.contents.values()
        for location, value in self.written.values():
            yield location
            yield value


@contextmanager
def as_it_was(end: End) -> Iterator[None]:
    """The writes of one side, in place again for a while."""
    before = [(location, location.read()) for location, _ in end.written.values()]
    for location, value in end.written.values():
        location.write(value)
    choices = end.agreement.put()
    try:
        yield
    finally:
        for phi, old in choices:
            phi.choices = old
        for location, value in reversed(before):
            location.write(value)
