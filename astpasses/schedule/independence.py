"""Which loops may have their iterations run at the same time, and what the storages that they write are then.

In: a function. Out: `Independence`, whose `roles` of a loop says what is private to an iteration and what iterations
combine, or that they depend on one another. Example:

    for i in range(n):              private: t; sums: {s: "sum"}; y has a part for each iteration
        t = sin(x[i])
        y[i] = t*t
        s += t
"""

from __future__ import annotations

from metaphrase.core.facts import Facts
from metaphrase.core.scalars import MONOIDS
from metaphrase.late import dataclass, field

from .lifetimes import key_of, lifetimes_in, read_before_given, wanted_in
from .nest import (
    Bind,
    Buf,
    CallFn,
    Check,
    Effect,
    Fn,
    For,
    Grow,
    LibraryCall,
    SetDims,
    Stmt,
    Store,
    Swap,
    bound_inside,
    index_symbols,
    loaded,
    touched,
    walk,
)
from .place import accesses_of, divided
from .target import Target

ATOMIC = ("sum", "max", "min")  # what a GPU combines as one


@dataclass
class Roles:
    """What the storages that a loop writes are, but those that each iteration has a part of; `sums` by how they are
    combined. `counts`: arrays that iterations combine into by atomic operations."""

    private: set[Buf] = field(default_factory=set)
    sums: dict[Buf, str] = field(default_factory=dict)
    counts: set[Buf] = field(default_factory=set)


class Independence:
    """Of the loops of one function."""

    def __init__(self, fn: Fn, target: Target, facts: Facts):
        self.fn, self.target, self.facts = fn, target, facts
        self.lifetimes = lifetimes_in(fn)

    def roles(self, loop: For, counting: bool = False, in_order: bool = False) -> Roles | None:
        """Those of all storages that a loop writes; None where one stands in the way. `counting`: stores may become
        atomic. `in_order`: what iterations combine they will combine in their order."""
        inside = list(walk(loop.body))
        if not all(map(self.runs_anywhere, inside)):
            return None
        ordered = loop.kind == "seq"  # a loop of the user's: its iterations are shown to be independent, or it stays
        before, _ = read_before_given(loop.body, frozenset([loop.index])) if ordered else (set(), None)
        variables = bound_inside(loop) - {s.index for s in inside if isinstance(s, For)} - {loop.index}
        # Iterations of a user's loop are not known to be independent: what one branch leaves may be wanted.
        before |= wanted_in(self.fn).get(loop, frozenset()) if ordered else set()
        if variables & before or not all(self.lifetimes.private(name, loop) for name in variables):
            return None
        for inner in (loop, *inside):
            if isinstance(inner, For):
                self.facts.learn(inner.index, 0, inner.extent - 1)
        roles = Roles()
        written = dict.fromkeys(a.buf for s in inside for a in accesses_of(s) if a.write)
        for buf in written:
            carried = ordered and (buf.carried or buf.unbound or buf.name in before)
            if buf.is_temporary and not carried and self.lifetimes.private(key_of(buf), loop):
                roles.private.add(buf)
            elif any(isinstance(s, (Grow, Swap)) and buf in touched(s) for s in inside):
                return None
            elif not divided(buf, loop, self.facts) and not (loop.kind == "par" and _is_placed(buf, inside)):
                if self.counted(buf, inside, counting):
                    roles.counts.add(buf)
                    continue
                monoid = self.combined(buf, inside) if loop.kind == "red" or in_order else None
                if monoid is None:
                    return None
                roles.sums[buf] = monoid
        # What the caller sees of a run that fails is what came before the failure.
        fails = any(isinstance(s, Check) or isinstance(s, LibraryCall) and s.site >= 0 for s in inside)
        return None if fails and any(buf.space == "arg" for buf in written) else roles

    def runs_anywhere(self, stmt: Stmt) -> bool:
        if isinstance(stmt, LibraryCall):
            offer = self.target.offer(stmt.operation)
            return offer is not None and offer.side_by_side
        return not isinstance(stmt, (Effect, SetDims, CallFn)) and (
            bool(self.target.threads) or not isinstance(stmt, Swap)
        )

    def counted(self, buf: Buf, inside: list[Stmt], counting: bool) -> bool:
        """Whether all that iterations do with an array is to combine into it, by what is atomic, or may be."""
        stores = [s for s in inside if buf in touched(s)]
        if not self.target.threads or any(load.buf is buf for s in inside for load in loaded(s)):
            return False
        if not all(isinstance(s, Store) and (s.atomic or counting) for s in stores) or not buf.dims:
            return False
        (monoid, *others) = {s.monoid for s in stores if isinstance(s, Store)}
        kind, size = buf.dtype.kind, buf.dtype.itemsize
        floats = self.target.atomic_floats and kind == "f" and size >= 4 and monoid == "sum"
        return not others and monoid in ATOMIC and (kind in "iu" and size >= 4 or floats)

    def combined(self, buf: Buf, inside: list[Stmt]) -> str | None:
        """By what iterations combine into a storage, if that is all they do with it."""
        grows = buf.space == "stack"  # its dims are those that it has in the end
        if grows or any(load.buf is buf for s in inside for load in loaded(s)):
            return None
        monoids = {s.monoid if isinstance(s, Store) else None for s in inside if buf in touched(s)}
        monoid = monoids.pop() if len(monoids) == 1 else None
        return monoid if monoid is not None and (MONOIDS[monoid].regroups or MONOIDS[monoid].exact) else None


def _is_placed(buf: Buf, inside: list[Stmt]) -> bool:
    """Whether all that iterations do with an array is to store into places that data name: where they may come in any
    order, as in a loop of kind "par", no two of them name the same."""
    named = {s.name for s in inside if isinstance(s, Bind)}
    stores = [s for s in inside if buf in touched(s)]
    return not any(load.buf is buf for s in inside for load in loaded(s)) and all(
        isinstance(s, Store) and s.monoid is None and bool(index_symbols(s.index) & named) for s in stores
    )


__all__ = ["ATOMIC", "Independence", "Roles"]
