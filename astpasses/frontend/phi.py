"""An array that may be one of several: which one is known when the program runs.

In: candidates, each with the staged flag that it is the one. Out: writes to the array reach the candidate,
writes to the candidate reach the array.
"""

from __future__ import annotations

from typing import Any

from metaphrase.core.ir import Atom, Literal
from metaphrase.ops.compare import not_, select
from metaphrase.ops.shape import broadcast
from metaphrase.source import Span, UnsupportedError

from .journal import BoxLocation
from .values import Box


class Phi:
    """`choices`: (flag, box, the box's version when they were last the same)."""

    def __init__(self, choices: list[tuple[Any, Box, int]]):
        self.choices = choices

    def refresh(self, here: Any, box: Box) -> None:
        """Take over what was written to a candidate since."""
        for k, (flag, candidate, version) in enumerate(self.choices):
            if candidate.version == version or not candidate.alive():
                continue
            here.journal.note(BoxLocation(box))
            box.atom = _choose(here, flag, candidate.atom, box.atom)
            box.version += 1
            self.choices[k] = (flag, candidate, candidate.version)

    def written(self, here: Any, box: Box) -> None:
        """Hand a write on to the candidate that it is."""
        from .indexing import write_box

        for k, (flag, candidate, _) in enumerate(self.choices):
            if candidate.alive():
                write_box(here, candidate, _choose(here, flag, box.atom, candidate.atom))
                self.choices[k] = (flag, candidate, candidate.version)


class UnknownAlias:
    """The array may be `candidate`, and no flag says so: writing to either while both are in use is
    refused."""

    def __init__(self, candidate: Box, name: str, span: Span | None):
        self.candidate, self.version, self.name, self.span = candidate, candidate.version, name, span

    def refuse(self, here: Any) -> UnsupportedError:
        return UnsupportedError(
            f"'{self.name}' may or may not share memory with an array that is written to",
            here.span(),
            remedy="copy one of them: x = x.copy()",
            code="alias",
            notes=(("it depends on how this loop runs", self.span),),
        )

    def refresh(self, here: Any, box: Box) -> None:
        if self.candidate.version != self.version and self.candidate.alive():
            raise self.refuse(here)

    def written(self, here: Any, box: Box) -> None:
        if self.candidate.alive():
            raise self.refuse(here)


def _choose(here: Any, flag: Any, then: Atom, otherwise: Atom) -> Atom:
    dims = then.type.dims
    if isinstance(flag, Literal):
        return then if flag.value else otherwise
    if dims:
        flag = here.emit(broadcast, flag, shape=dims, axes=())
    return here.emit(select, flag, then, otherwise)


def negate(here: Any, flag: Atom) -> Atom:
    return here.emit(not_, flag)
