"""Where a clock is read in a program whose parts are to be timed, and what each of them costs by the count.

In: a Program for one thread, and what says whether a round of so much is long beside a look at the clock. Out: the
program with a `Lap` before each part, and one behind the last; a `Part` for each. A part is a loop, a call of a library
or of a function that stands in no loop; and of a loop whose rounds are long, the parts of its body. Example, of
`s = np.sum(np.sin(x) @ A)`:

    timed, parts = with_laps(program, is_long)
    [part.text for part in parts]      # ["for i in range(n)", "dot_general", "for i in range(m)"]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from metaphrase.late import dataclass

from .costs import Costs, Counted, Place, place_of
from .explain import head
from .nest import CallFn, Effect, For, If, Lap, LibraryCall, Program, Stmt, While, places, walk


@dataclass(frozen=True)
class Part:
    """`costs`: of all its rounds, by their places."""

    text: str
    costs: Mapping[Place, Costs]


def with_laps(program: Program, is_long: Callable[[Mapping[Place, Costs]], bool]) -> tuple[Program, list[Part]]:
    """See the head of this file."""
    laps = _Laps(program, is_long)
    body = laps.block(program.entry.body, None, ())
    entry = replace(program.entry, body=(*body, Lap(len(laps.parts))))
    return replace(program, entry=entry), laps.parts


class _Laps:
    def __init__(self, program: Program, is_long: Callable[[Mapping[Place, Costs]], bool]):
        self.counted = Counted({fn.name: fn for fn in program.fns})
        self.is_long = is_long
        self.parts: list[Part] = []

    def block(self, block: tuple[Stmt, ...], around: Place, outer: tuple[For | While, ...]) -> tuple[Stmt, ...]:
        """`outer`: the loops that it is in, the innermost last."""
        made: list[Stmt] = []
        for stmt in block:
            here = place_of(places(stmt)[0]) if places(stmt) else around
            if not _takes_time(stmt):
                made.append(stmt)
            elif isinstance(stmt, If) or self.is_opened(stmt, here):
                inside = (*outer, stmt) if isinstance(stmt, (For, While)) else outer
                made.append(stmt.with_blocks(tuple(self.block(inner, here, inside) for inner in stmt.blocks)))
            else:
                made += [Lap(len(self.parts)), stmt]
                costs = self.counted.of(stmt, around)
                for loop in reversed(outer):
                    costs = self.counted.of_all_rounds(loop, costs)
                self.parts.append(Part(_text(stmt), costs))
        return tuple(made)

    def is_opened(self, stmt: Stmt, here: Place) -> bool:
        """Whether the parts of a loop's body are timed, and not the loop."""
        if not isinstance(stmt, (For, While)):
            return False
        inner = [one for block in stmt.blocks for one in block if _takes_time(one)]
        if not inner or len(inner) == 1 and not (isinstance(inner[0], If) or self.is_opened(inner[0], here)):
            return False
        return self.is_long(self.counted.of_block((one for block in stmt.blocks for one in block), here))


def _takes_time(stmt: Stmt) -> bool:
    kinds = (For, While, LibraryCall, CallFn, Effect)
    return isinstance(stmt, kinds) or any(isinstance(one, kinds) for block in stmt.blocks for one in walk(block))


def _text(stmt: Stmt) -> str:
    if isinstance(stmt, (For, While)):
        return head(stmt)
    if isinstance(stmt, LibraryCall):
        return stmt.operation
    return stmt.fn if isinstance(stmt, CallFn) else "call of Python"


__all__ = ["Part", "with_laps"]
