"""Loops with branches inside, and the loops between them, as one loop.

In: the fused tree. Out: the same, where a loop with branches, those behind it that run over the same iterations, and
another one with branches are one loop, if an iteration of each needs of the others only what the same iteration left.
So it is with what `vmap` makes of a derivative: shrink then keeps in variables what the function leaves for it.

    for i in range(n):                              for i in range(n):
        if p[i]: t[i] = ...                             if p[i]: t[i] = ...
        else: t[i] = ...                    ->          else: t[i] = ...
    for i in range(n):                                  if p[i]: y[i] = t[i]*...
        if p[i]: y[i] = t[i]*...                        else: y[i] = t[i]/...
        else: y[i] = t[i]/...

Fusion looks at perfect nests only. What a compiler makes vectors of stays apart: loops without branches that
call functions, and those around arithmetic on single elements, but for what stands between branches. So does a `while`,
whose lanes go in step (lockstep.py).
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import DimLike, Sym
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import CALLED
from metaphrase.late import dataclass, field

from .nest import Buf, For, If, Stmt, Store, dearest, used_inside, walk
from .place import accesses_of
from .rewrite import rename_statement
from .target import Target


def join_loops(body: tuple[Stmt, ...], known: Facts, target: Target) -> tuple[Stmt, ...]:
    """The statements of a function with such loops joined. On a GPU kernels are joined (joined_kernels.py)."""
    if target.threads or sum(isinstance(s, For) and _branches(s) for s in body) < 2:
        return body
    users: dict[Buf, set[Stmt]] = {}  # of each array the statements that name it
    for stmt in body:
        for buf in used_inside(stmt):
            users.setdefault(buf, set()).add(stmt)
    made: list[Stmt] = []
    run = _Run()
    for stmt in body:
        if isinstance(stmt, For) and _joinable(stmt):
            if run.take(stmt, known):
                continue
            made += run.written(users, target)
            run = _Run()
            if _has_blocks(stmt):
                run.take(stmt, known)
                continue
        else:
            made += run.written(users, target)
            run = _Run()
        made.append(stmt)
    return (*made, *run.written(users, target))


@dataclass
class _Run:
    """Loops behind one another that can be one, `whole`. It ends with the last that has loops or branches inside: the
    first `count` are `joined`."""

    loops: list[For] = field(default_factory=list)
    whole: For | None = None
    count: int = 0
    joined: For | None = None

    def take(self, loop: For, known: Facts) -> bool:
        """Whether the loop can be one with those that are there; then it is."""
        whole = _joined(self.whole, loop, known) if self.whole else loop
        if whole is None:
            return False
        self.loops.append(loop)
        self.whole = whole
        if _has_blocks(loop):
            self.count, self.joined = len(self.loops), whole
        return True

    def written(self, users: dict[Buf, set[Stmt]], target: Target) -> list[For]:
        """One loop, if more than one has branches, and it touches no more arrays that others touch than the target
        says."""
        loops = self.loops[: self.count]
        if self.joined is None or sum(map(_branches, loops)) < 2:
            return self.loops
        arrays = [buf for buf in used_inside(self.joined) if buf.dims]
        streams = sum(buf.space != "temp" or not users[buf] <= set(loops) for buf in arrays)
        return [self.joined, *self.loops[self.count :]] if streams <= target.streams else self.loops


def _joined(whole: For, loop: For, known: Facts) -> For | None:
    """Both as one loop, where that means the same."""
    if not known.equal(whole.extent, loop.extent):
        return None
    here = Sym(whole.index)
    body = tuple(rename_statement(s, {loop.index: here}) for s in loop.body)
    return replace(whole, body=(*whole.body, *body)) if of_one_iteration(whole.body, body, (here,)) else None


def _joinable(loop: For) -> bool:
    inside = list(walk(loop.body))
    return (
        loop.kind == "par"
        and all(isinstance(s, (Store, For, If)) for s in inside)
        and (_branches(loop) or all(dearest(s) < CALLED for s in inside))
    )


def _has_blocks(loop: For) -> bool:
    return any(s.blocks for s in loop.body)


def _branches(loop: For) -> bool:
    return any(isinstance(s, If) for s in walk(loop.body))


def of_one_iteration(a: tuple[Stmt, ...], b: tuple[Stmt, ...], indices: tuple[DimLike, ...]) -> bool:
    """Whether what both touch and one writes is a part of an array that belongs to the iteration."""
    places = [[x for s in walk(block) for x in accesses_of(s)] for block in (a, b)]
    bufs = [{x.buf for x in found} for found in places]
    written = {x.buf for found in places for x in found if x.write}
    for buf in bufs[0] & bufs[1] & written:
        if not buf.dims:
            return False
        if not all(x.index[: len(indices)] == indices for found in places for x in found if x.buf is buf):
            return False
    return True


__all__ = ["of_one_iteration", "join_loops"]
