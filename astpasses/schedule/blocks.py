"""A loop in blocks of iterations, for what is kept of some iterations at a time.

In: a loop, and how many iterations a block has at most. Out: `Blocks`, which says where an iteration is in its block,
and puts what a block does into the loop over the blocks; of a loop that is surely no longer there is one. Example:

    for i in range(n): f(i)      ->      for block in range((n + 255) // 256):
                                             for k in range(min(n - 256*block, 256)): f(256*block + k)
"""

from __future__ import annotations

from metaphrase.core.dims import DimLike, Sym, dim_min, floordiv

from .names import Names
from .nest import For, Stmt
from .rewrite import rename_statement


class Blocks:
    """`within`: the index of an iteration in its block; `count`: how many iterations this block has; `held`: how many a
    block has at most."""

    def __init__(self, loop: For, most: int, rounds: DimLike | None, names: Names):
        """`rounds`: how many iterations there are at most, if that is known."""
        self.loop, self.size = loop, most
        self.block: str | None = None
        self.within, self.count = loop.index, loop.extent
        self.held: DimLike = most
        if isinstance(rounds, int) and rounds <= most:
            self.held = rounds
        else:
            self.block, self.within = names.fresh("block"), names.fresh(loop.index)
            self.count = dim_min(loop.extent - self.first, most)

    @property
    def first(self) -> DimLike:
        """The first iteration of this block."""
        return 0 if self.block is None else self.size * Sym(self.block)

    def iteration(self, stmt: Stmt, within: str = "") -> Stmt:
        """A statement of the loop as that of an iteration of a block."""
        return rename_statement(stmt, {self.loop.index: self.first + Sym(within or self.within)})

    def around(self, rows: list[Stmt]) -> list[Stmt]:
        """What a block does, for all blocks."""
        if self.block is None:
            return rows
        number = floordiv(self.loop.extent + self.size - 1, self.size)
        return [For(self.block, number, tuple(rows), "seq", self.loop.span)]


__all__ = ["Blocks"]
