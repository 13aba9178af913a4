"""Long scans on a GPU: a loop that carries one combination of what it has seen is cut into parts that run side by side.

In: a loop whose iterations depend on one another by one variable alone, which each combines something into. Out: the
kernels in its place: what each part combines, what each part begins with, the parts themselves. Example:

    for i in range(n):                  for number in range(parts):        # on the grid
        t += x[i]                           t_parts[number] = the sum over its part
        y[i] = t                 ->     for k in range(parts): t_starts[k] = t; t += t_parts[k]
                                        for number in range(parts):        # on the grid
                                            t_1 = t_starts[number]
                                            for i in its part: t_1 += x[i]; y[i] = t_1

Where parts begin follows from sizes alone. Floats are combined in another order than one after the other.
"""

from __future__ import annotations

from typing import Protocol

from metaphrase.core.dims import Sym, dim_max, dim_min, floordiv
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import MONOIDS

from .independence import Independence
from .launches import Region
from .lifetimes import read_before_given
from .lower_arrays import identity
from .nest import Bind, Buf, For, Index, Load, Stmt, Store, loaded, local
from .partial_sums import Division
from .place import divided
from .rewrite import rename_statement, with_storages


class Known(Division, Protocol):
    """What the pass that divides statements among kernels knows."""

    facts: Facts
    independent: Independence


def long_scan(of: Known, loop: For) -> list[Stmt] | None:
    """The kernels in the place of a loop; None where it is no scan, or a short one."""
    if loop.kind != "seq" or isinstance(loop.extent, int) and loop.extent < 4 * of.target.grid_from:
        return None
    place = _combination(of, loop)
    if place is None:
        return None
    step = loop.body[place]
    assert isinstance(step, Store) and step.monoid is not None
    total, monoid = step.buf, step.monoid
    rows: list[Stmt] = []
    least = of.target.part_from
    parts = of.named("parts", dim_min(floordiv(loop.extent + least - 1, least), of.target.blocks), rows)
    length = of.named("length", floordiv(loop.extent + parts - 1, dim_max(parts, 1)), rows)
    room = (of.target.blocks,)
    held = Buf(of.fresh(f"{total.name}_parts"), total.dtype, room)
    starts = Buf(of.fresh(f"{total.name}_starts"), total.dtype, room)

    def in_parts(body: tuple[Stmt, ...], begin: Buf | None) -> Region:
        """A kernel whose threads each do a part of the loop; without a beginning, what each combines is kept."""
        number, count, at = of.fresh("number"), of.fresh("count"), of.fresh("i")
        mine, first = local(of.fresh(total.name), total.dtype), length * Sym(number)
        here = {loop.index: first + Sym(at)}
        inner = For(at, Sym(count), tuple(rename_statement(with_storages(s, {total: mine}), here) for s in body))
        value = identity(monoid, total.dtype) if begin is None else Load(begin, (Sym(number),))
        block: tuple[Stmt, ...] = (
            Bind(count, Index(dim_min(length, loop.extent - first)), loop.span),
            Store(mine, (), value),
            inner,
        )
        if begin is None:
            block = (*block, Store(held, (Sym(number),), Load(mine)))
        return Region((For(number, parts, block, "par", loop.span, on="grid"),), parts, False, of.target.threads)

    needed = tuple(s for s in loop.body[: place + 1] if not (isinstance(s, Store) and s.buf.dims))
    k = of.fresh("i")
    keep, go_on = Store(starts, (Sym(k),), Load(total)), Store(total, (), Load(held, (Sym(k),)), monoid)
    between = For(k, parts, (keep, go_on), "seq", loop.span)
    rows.append(in_parts(needed, None))
    rows.append(Region((between,), None, True, 1))
    rows.append(in_parts(loop.body, starts))
    return rows


def _combination(of: Known, loop: For) -> int | None:
    """The place of the one statement by which iterations depend on one another: it combines a value into a variable."""
    steps = [k for k, s in enumerate(loop.body) if isinstance(s, Store) and s.monoid is not None]
    if len(steps) != 1 or not all(isinstance(s, (Store, Bind)) for s in loop.body):
        return None
    step = loop.body[steps[0]]
    assert isinstance(step, Store) and step.monoid is not None
    total, monoid = step.buf, MONOIDS[step.monoid]
    before = loop.body[: steps[0] + 1]
    if not total.is_scalar or total.unbound or not (monoid.regroups or monoid.exact):
        return None
    if any(load.buf is total for s in before for load in loaded(s)):
        return None
    stores = [s for s in loop.body if isinstance(s, Store) and s is not step]
    given = {s.binds for s in loop.body if s.binds is not None} | {s.buf.name for s in stores if not s.buf.dims}
    read, _ = read_before_given(loop.body, frozenset([loop.index]))
    if read & given or total.name in given:
        return None
    if any(isinstance(s, Store) and s.buf is total for s in stores):
        return None
    if not all(of.independent.lifetimes.private(name, loop) for name in given):
        return None
    arrays = {s.buf for s in stores if s.buf.dims}
    if any(load.buf in arrays for s in before for load in loaded(s)):
        return None
    of.facts.learn(loop.index, 0, loop.extent - 1)
    return steps[0] if arrays and all(divided(buf, loop, of.facts) for buf in arrays) else None


__all__ = ["long_scan"]
