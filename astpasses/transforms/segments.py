"""Residuals of run-time length in a loop: the first loop puts them behind one another, the linear one reads
them back.

In: a loop, its body split in two, and the residuals whose first axis has a size bound in the body. Out: what
the body of the first loop gives besides (lengths), and how the body of the linear loop begins and ends.

    T, xs = loop(x, ...)            # xs: f64[T], T of another value in each iteration
    return ..., T, xs               # of all iterations: lengths: i64[n], and all_xs: f64[total]

    T = as_dim(length, size="T")    # the linear body: a row of lengths, a row of starts
    xs = slice(all_xs, start, shape=(T,), step=(1,))

A tangent that has such a length is an accumulator of the linear loop, to which each iteration adds its part.
So a linear loop has no segments, and transposition has nothing to do with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from metaphrase.core.build import literal
from metaphrase.core.dims import Dim, DimLike, Sym, fresh_symbol
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts
from metaphrase.core.types import Array, Size, i64
from metaphrase.late import dataclass
from metaphrase.ops.arrays import as_dim, dim_value
from metaphrase.ops.indexing import slice as slice_primitive
from metaphrase.ops.indexing import slice_add

if TYPE_CHECKING:
    from .split import Split


@dataclass
class Reading:
    """The body of the linear loop: parameters by role, what it does, what it gives besides."""

    flat: list[Var]  # consts: all segments of a residual
    totals: list[Var]  # accumulators: tangents of segments
    rows: list[Var]
    starts: list[Var]  # rows: where the iteration's part begins
    lets: tuple[Let, ...]
    sums: list[Var]  # what becomes of `totals`


class Segments:
    """The segments of a loop whose body was split into `part`; `known` marks its results, `ragged` are those
    residuals."""

    def __init__(self, loop: Loop, known: Parts[bool], part: Split, ragged: Sequence[Var]):
        self.loop, self.ragged = loop, ragged
        self.binders = {s: x.binder(s) for x in part.known.lets for s in x.own_symbols()}
        have = list(zip(loop.segment_sizes, loop.results.segments, known.segments))
        self.unknown = [(name, out.type) for (name, _, is_known), out in zip(have, loop.outs.segments) if not is_known]
        by_length: dict[DimLike, str] = {}
        for name, segment, is_known in have:
            if is_known:
                by_length.setdefault(segment.type.dims[0], name)
        self.fresh: dict[str, Var] = {}
        for residual in ragged:
            if residual.type.dims[0] not in by_length:
                name = by_length[residual.type.dims[0]] = fresh_symbol("total")
                self.fresh[name] = Var("total", Size(Sym(name)))
        self.totals_of = [by_length[r.type.dims[0]] for r in ragged]  # the size of each residual
        self.names = (*(name for name, _, is_known in have if is_known), *self.totals_of)
        self.orphans = {name for name, _ in self.unknown} - set(self.names)
        dims = {by_length[r.type.dims[0]]: r.type.dims[0] for r in ragged}
        dims |= {name: r.type.dims[0] for name, r, is_known in have if not is_known}
        self.dims: dict[str, DimLike] = dims  # of the sizes whose parts the linear loop deals with
        self.length_of: dict[str, Atom] = {}
        self.lets: list[Let] = []

    def sizes(self) -> list[Var]:
        """The results of the first loop that bind the sizes of its segments."""
        return [self.fresh.get(name) or self.loop.binder(name) for name in dict.fromkeys(self.names)]

    def lengths(self, stacked: Sequence[Var]) -> list[Var]:
        """What the first loop stacks besides: the lengths that are not among its rows."""
        more: list[Var] = []
        for name, dim in self.dims.items():
            length = self.binders.get(dim.name) if isinstance(dim, Dim) and dim.is_sym else None
            if length is None:
                length = Var("length", Size(dim))
                self.lets.append(Let((length,), dim_value, (), {"dim": dim}))
            self.length_of[name] = length
            if length not in stacked and length not in more:
                more.append(length)
        return more

    def reading(self, linear: Function, stacked: Sequence[Var]) -> Reading:
        """`linear` with its residuals read back, and its segments, the last results, added to totals."""
        starts = {name: Var("start", Array(i64)) for name in self.dims}
        lets: list[Let] = []
        rows = []
        for residual in stacked:
            size = residual.type.value
            if not (isinstance(size, Dim) and size.is_sym and size.name in self.binders):
                rows.append(residual)
                continue
            rows.append(Var(residual.name, residual.type.plain))
            lets.append(Let((residual,), as_dim, (rows[-1],), {"size": size.name, "counted": True}))
        flat = []
        for residual, name in zip(self.ragged, self.totals_of):
            flat.append(Var(residual.name, Array(residual.type.dtype, (Sym(name), *residual.type.dims[1:]))))
            lets.append(
                Let(
                    (residual,),
                    slice_primitive,
                    (flat[-1], *_corner(starts[name], residual.type)),
                    {"shape": residual.type.dims, "step": (1,) * residual.type.ndim},
                )
            )
        totals, sums, adding = [], [], []
        for (name, type_), part in zip(self.unknown, linear.results[len(linear.results) - len(self.unknown) :]):
            totals.append(Var(f"{getattr(part, 'name', 'part')}_total", type_.plain))
            sums.append(Var(totals[-1].name, type_.plain))
            adding.append(
                Let(
                    (sums[-1],),
                    slice_add,
                    (totals[-1], part, *_corner(starts[name], type_)),
                    {"step": (1,) * type_.ndim},
                )
            )
        return Reading(flat, totals, rows, list(starts.values()), (*lets, *linear.lets, *adding), sums)


def _corner(start: Var, type_: Array) -> tuple[Atom, ...]:
    return (start, *(literal(0, i64) for _ in type_.dims[1:]))


__all__ = ["Segments", "Reading"]
