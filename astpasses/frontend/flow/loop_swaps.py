"""Arrays that change places among the names of a rolled loop, where others see them: `u, v = v, u`.

In: which name ends an iteration with whose array. Out: the names that only pass their arrays round; and after
the loop, the contents put back into the arrays they belong to, by the number of iterations that ran.

    for _ in range(steps):       # u and v are the caller's arrays; after an odd number of steps u's array
        v[1:-1] = ...            # has what is called v
        u, v = v, u
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from metaphrase.core.build import literal
from metaphrase.core.ir import Atom, Var
from metaphrase.ops.arithmetic import mod
from metaphrase.ops.compare import eq

from ..operators.indexing import write_box
from ..staging.session import Session
from ..staging.signals import TrialOver
from ..values.phi import Phi, bind, choose_content
from ..values.staged_values import Box, StagedArray

if TYPE_CHECKING:
    from .loops import Loop, StagedBody

_LONGEST = 6


def round_of(entry: list, staged: StagedBody, places: list[int]) -> dict[int, int]:
    """{name: the name whose array it has after an iteration}, for names that pass whole arrays of one type round."""
    arrays = {k: (entry[k], staged.inside[k], staged.outside[k]) for k in places}
    whole = {k for k, three in arrays.items() if all(type(v) is StagedArray and not v.chain for v in three)}
    whole = {k for k in whole if entry[k].box.phi is None}
    by_box = {id(staged.inside[k].box): k for k in whole}
    after = {k: j for k in whole if (j := by_box.get(id(staged.outside[k].box))) is not None}
    while True:  # only closed rounds, without names that take a copy of another's place
        closed = {k: j for k, j in after.items() if j in after and k in after.values()}
        if closed == after:
            break
        after = closed
    moved = {k: j for k, j in after.items() if k != j}
    if len(set(moved.values())) < len(moved) or len({id(entry[k].box) for k in moved}) < len(moved):
        return {}
    types = [(entry[k].type, entry[j].type, staged.inside[k].type) for k, j in moved.items()]
    if any(not a == b == c for a, b, c in types):
        return {}
    return moved if _period(moved) <= _LONGEST else {}


def _period(after: dict[int, int]) -> int:
    """After how many iterations every array is back where it was."""
    lengths, todo = [1], set(after)
    while todo:
        first = k = todo.pop()
        length = 1
        while (k := after[k]) != first:
            todo.discard(k)
            length += 1
        lengths.append(length)
    return math.lcm(*lengths)


def refuse_reads(after: dict[int, int], entry: list, free: list[Var], loop: Loop) -> None:
    """The body must see the arrays by these names alone."""
    for k in after:
        if entry[k].box.atom in free:
            raise TrialOver(
                f"'{loop.names[k]}' changes places with another array, and the loop also reads it by another name",
                loop.span,
                "copy it before the loop",
            )


def put_back(here: Session, entry: list, final: list, after: dict[int, int], ran: Any) -> None:
    """Write the contents into the arrays that the names stood for at the end. `ran`: how many iterations."""
    period = _period(after)
    turns = [{k: k for k in after}]  # turns[m][k]: whose array the name k has after m iterations
    for _ in range(period - 1):
        turns.append({k: turns[-1][after[k]] for k in after})
    if isinstance(ran, int):
        for k, j in turns[ran % period].items():
            write_box(here, entry[j].box, final[k].read())
            final[k] = StagedArray(entry[j].box, (), entry[j].type, entry[j].writeable)
        return
    count = ran if isinstance(ran, Var) else here.dim_atom(ran)
    rest = here.emit(mod, count, literal(period))
    flags = [here.emit(eq, rest, literal(m)) for m in range(period)]
    contents = {k: final[k].read() for k in after}
    for j in after:
        content: Atom | None = None
        for m, turn in enumerate(turns):
            (k,) = (name for name, owner in turn.items() if owner == j)
            content = contents[k] if content is None else choose_content(here, flags[m], contents[k], content)
        assert content is not None
        write_box(here, entry[j].box, content)
    for k in after:
        box: Box = final[k].box
        choices = [(flags[m], entry[turn[k]].box, entry[turn[k]].box.atom) for m, turn in enumerate(turns)]
        bind(box, Phi(choices))
