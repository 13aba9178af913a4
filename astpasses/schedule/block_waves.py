"""Rounds of a loop around one whose iterations wait for each other, as a wave of a GPU's threads: each has a round.

In: a loop that one thread would do. Out: the same for the threads of a block, which wait for one another in each step.
Example, of a table in which each element needs its left and its upper neighbour:

    for i in range(n):                         for s in range(m + 255):
        for j in range(m):                         for t in range(256):                        # on the block
            d[i + 1, j + 1] = f(d[i, j + 1],   ->      if t < n and 0 <= s - t < m:
                                d[i + 1, j])               d[t + 1, s - t + 1] = f(d[t, s - t + 1],
                                                                                   d[t + 1, s - t])

More rounds than a block has threads come in groups. Each element sees the same operations in the same order. It is the
wavefront method (Wolfe, "Loop skewing: the wavefront method revisited", 1986); how far rounds lie apart: waves.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Protocol

import numpy as np

from metaphrase.core.dims import DimLike, Sym, floordiv, symbols
from metaphrase.core.facts import Facts

from .independence import Independence
from .nest import E, For, If, Index, Op, Stmt
from .rewrite import rename_statement
from .target import Target
from .waves import Wave, far_apart, of_threads, wave_of

TRUTH = np.dtype(bool)


class Known(Protocol):
    """What the pass that divides statements among kernels knows (kernels.py)."""

    target: Target
    facts: Facts
    independent: Independence

    def fresh(self, base: str) -> str: ...


def wave_of_block(of: Known, loop: For) -> Wave | None:
    """How rounds of a loop may run side by side; None where they may not, or are few."""
    wave = wave_of(loop, of.independent.lifetimes, of.facts, of_threads(of.target))
    if wave is None or wave.shared or loop.index in symbols(wave.inside.extent):
        return None
    return wave if far_apart(wave, of.facts, of.fresh, of.target.warp) else None


def block_wave(of: Known, wave: Wave) -> list[Stmt]:
    """The loops in the place of the wave's."""
    loop = wave.loop
    count, threads = loop.extent, of.target.threads
    if isinstance(count, int):
        threads = min(threads, 1 << (count - 1).bit_length())
    step, group = of.fresh("i"), of.fresh("i")
    several = not (isinstance(count, int) and count <= threads)
    inside, lag = wave.inside, wave.lag

    def of_threads(block: Iterable[Stmt], in_step: bool = False) -> list[Stmt]:
        """What each thread does of its round, or the element of it whose turn is in a step."""
        thread = of.fresh("i")
        of.facts.learn(thread, 0, threads - 1)
        here: DimLike = threads * Sym(group) + Sym(thread) if several else Sym(thread)
        values, conditions = {loop.index: here}, list[E]()
        if not (isinstance(count, int) and count % threads == 0):
            conditions.append(_less(here, count))
        if in_step:
            turn = values[inside.index] = Sym(step) - lag * Sym(thread)
            if lag:
                conditions += [Op("le", (Index(0), Index(turn)), TRUTH), _less(turn, inside.extent)]
        body = tuple(rename_statement(s, values) for s in block)
        if conditions and body:
            body = (If(reduce(lambda a, b: Op("and", (a, b), TRUTH), conditions), body, (), loop.span),)
        return [For(thread, threads, body, "par", loop.span, on="block")] if body else []

    steps = inside.extent + lag * (threads - 1)
    body = (
        *of_threads(wave.before),
        For(step, steps, tuple(of_threads(inside.body, True)), "seq", inside.span),
        *of_threads(wave.behind),
    )
    groups = floordiv(count + threads - 1, threads)
    return [For(group, groups, body, "seq", loop.span)] if several else list(body)


def _less(a: DimLike, b: DimLike) -> E:
    """Whether one size is less than another."""
    return Op("lt", (Index(a), Index(b)), TRUTH)


__all__ = ["block_wave", "wave_of_block"]
