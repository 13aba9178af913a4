"""Sums that loops of the user's carry, on a GPU: cut into parts as those of reductions are.

In: the statements of a function. Out: the same, with loops whose iterations only combine into variables as loops of
kind "red"; of floats, if `contract` allows other last bits of a result. Example:

    for i in range(n):                         least_of_all = inf
        if x[i] < least:                       for i in range(n):                             # in any order
            least = x[i]             ->            least_of_all = min(least_of_all, x[i])
        if x[i] > 0:                               if x[i] > 0:
            s = s + x[i]                               s += x[i]
                                               if least_of_all < least:
                                                   least = least_of_all

Where an iteration that finds an extreme keeps more (`best = d; nearest = i`), it notes its own extreme; behind
the loop the first one, or the last, whose is that of all is done once more as it was written.
"""

from __future__ import annotations

from dataclasses import replace

from metaphrase.core.dims import Sym
from metaphrase.core.types import i64

from .carried import Carried, Variable, carried_by, truth, with_rows
from .lifetimes import keys_written
from .nest import Bind, Buf, E, Fn, For, If, Index, Load, Stmt, Store, local, walk
from .rewrite import rebound, rename_statement, with_storages
from .target import Target


def with_carried_sums(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with the sums that its loops carry told apart, if the target is a GPU."""
    return _CarriedSums(fn, target).done() if target.threads else fn.body


class _CarriedSums:
    def __init__(self, fn: Fn, target: Target):
        self.fn, self.target = fn, target

    def done(self) -> tuple[Stmt, ...]:
        seen: set[Stmt] = set()
        while True:
            loop = next((s for s in walk(self.fn.body) if self.may_be(s) and s not in seen), None)
            if loop is None:
                return self.fn.body
            assert isinstance(loop, For)
            seen.add(loop)
            self.attempt(loop)

    def may_be(self, stmt: Stmt) -> bool:
        return isinstance(stmt, For) and stmt.kind == "seq" and not stmt.on

    def attempt(self, loop: For) -> None:
        """Have the iterations of a loop combine, if that is all in which they depend on one another."""
        carried = carried_by(loop, self.fn.names, self.target)
        if carried is None:
            return
        body, behind = carried.loop.body, []
        for variable in carried.variables:
            if variable.kept:
                again = self.again(loop, carried, variable)
                if again is None:
                    return
                body, more = self.noted(loop, body, variable, again)
                behind += more
            else:
                behind += variable.behind()
        combining = replace(loop, body=body)
        rows = [*(s for v in carried.variables for s in v.before()), combining, *behind]
        fn = replace(self.fn, body=with_rows(self.fn.body, loop, rows))
        if Carried(carried.variables, combining).roles(fn, self.target) is not None:
            self.fn = replace(fn, body=with_rows(fn.body, combining, [replace(combining, kind="red")]))

    # --- what is kept beside an extreme ----------------------------------------------------------------

    def noted(
        self, loop: For, body: tuple[Stmt, ...], variable: Variable, again: tuple[Stmt, ...]
    ) -> tuple[tuple[Stmt, ...], list[Stmt]]:
        """The iterations of a loop, each of which notes its own extreme; and behind them what finds the one that the
        whole loop's is of, and does that again."""
        fresh, total, monoid = self.fn.names.fresh, variable.total, variable.monoid
        own = local(fresh(variable.name), total.dtype)
        each = Buf(fresh(f"{variable.name}_each"), total.dtype, (loop.extent,))
        place = (Sym(loop.index),)
        body = (
            Store(own, (), variable.nothing()),
            *(with_storages(stmt, {total: own}) for stmt in body),
            Store(each, place, Load(own)),
            Store(total, (), Load(own), monoid, loop.span),
        )
        first = variable.compared in ("lt", "gt")
        chosen, k, here = local(fresh("chosen"), i64), fresh("i"), fresh(loop.index)
        nowhere: E = Index(loop.extent if first else -1)
        same = truth("eq", Load(each, (Sym(k),)), Load(total))
        take = Store(chosen, (), Index(Sym(k)), "min" if first else "max", loop.span)
        better = truth(variable.compared, Load(total), variable.value())
        some = truth("and", better, truth("ne", Load(chosen), nowhere))
        self.fn.facts.learn(here, 0, loop.extent - 1)
        return body, [
            Store(chosen, (), nowhere),
            For(k, loop.extent, (If(same, (take,)),), "red", loop.span),
            If(some, (Bind(here, Load(chosen)), *(rename_statement(s, {loop.index: Sym(here)}) for s in again))),
        ]

    def again(self, loop: For, carried: Carried, variable: Variable) -> tuple[Stmt, ...] | None:
        """An iteration as it was written, without what it does for other variables; None where it does more than give
        variables values."""
        kept = {variable.name, *variable.kept}
        others = {name for v in carried.variables for name in (v.name, *v.kept)} - kept
        stored = {key for s in walk(loop.body) for key in keys_written(s) if isinstance(key, Buf)}
        if not variable.keeps_apart(loop) or not all(b.is_temporary for b in stored):
            return None
        fresh = self.fn.names.fresh
        names = {s.binds: fresh(s.binds) for s in walk(loop.body) if s.binds and s.binds not in kept}
        given = {s.buf: None for s in walk(loop.body) if isinstance(s, Store) and s.buf.name not in kept}
        copies = {buf: Buf(fresh(buf.name), buf.dtype, buf.dims) for buf in given}
        body = _without(loop.body, others)
        return tuple(with_storages(rebound(s, names), copies) for s in body)


def _without(block: tuple[Stmt, ...], names: set[str]) -> tuple[Stmt, ...]:
    """A block without what gives variables values, and what is in branches and loops with nothing else."""
    rows: list[Stmt] = []
    for stmt in block:
        if names.isdisjoint(keys_written(stmt)):
            left = tuple(_without(inner, names) for inner in stmt.blocks)
            if any(left) or not stmt.blocks:
                rows.append(stmt.with_blocks(left) if stmt.blocks else stmt)
    return tuple(rows)


__all__ = ["with_carried_sums"]
