"""How a kernel's text speaks of its threads: of those that do an iteration together, and of what each takes at a time.

In: statements of a kernel. Out: the words for a block's threads or a warp's, and places of arrays as `x[i]`, or as one
of several elements that were read at a time, `x_4.at[mp_k]`.
"""

from __future__ import annotations

from collections.abc import Sequence

from metaphrase.astpasses.schedule.expressions import ATOM, Text
from metaphrase.astpasses.schedule.nest import Buf, For, Load, Stmt, Store, loaded, runs_along
from metaphrase.late import dataclass

from .spell import Printer


@dataclass(frozen=True)
class Group:
    """The threads that do an iteration together, in CUDA C: the number of one among them, how many there are, how they
    wait, and how they ask whether any of them has left."""

    name: str
    thread: str
    threads: str
    wait: str
    any: str


BLOCK = Group("block", "threadIdx.x", "blockDim.x", "__syncthreads();", "__syncthreads_or({})")
WARP = Group("warp", "mp_lane", "32", "__syncwarp();", "__any_sync(0xffffffffu, {})")


class Places(Printer):
    """Spells a place that the loops of a nest run over one after the other by the number of the iteration, or as one of
    several elements that were read at a time: `packs` has their names."""

    nest: tuple[tuple[For, ...], str] | None = None
    packs: dict[Buf, str] = {}

    def place(self, e: Load) -> Text:
        if self.nest is not None and e.buf.dims and runs_along(e.buf, e.index, self.nest[0]):
            pack = self.packs.get(e.buf)
            return f"{pack}.at[mp_k]" if pack else f"{e.buf.name}[{self.nest[1]}]", ATOM
        return super().place(e)


def packed(loops: Sequence[For], body: Sequence[Stmt]) -> tuple[list[Buf], list[Buf]]:
    """The arrays that several elements at a time are read of before they are stored into, and those that are stored
    into."""
    read: dict[Buf, None] = {}
    stored: dict[Buf, None] = {}
    for stmt in body:
        loads = [load.buf for load in loaded(stmt) if runs_along(load.buf, load.index, loops)]
        combined = [stmt.buf] if isinstance(stmt, Store) and stmt.monoid else []
        read |= dict.fromkeys(buf for buf in (*loads, *combined) if buf.dims and buf not in stored)
        stored |= dict.fromkeys([stmt.buf] if isinstance(stmt, Store) and stmt.buf.dims else [])
    return list(read), list(stored)


__all__ = ["BLOCK", "WARP", "Group", "Places", "packed"]
