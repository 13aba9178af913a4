"""Arrays that a rolled loop carries and whose size changes from one iteration to the next: they may shrink.

In: what an array was before the loop and what an iteration makes of it. Out: a buffer that is carried, as
large as the array ever is, and the number of elements in use, carried beside it. Arrays whose sizes change
together share that number.

    while len(alive): alive = alive[test(alive)]       # carried: buffer i64[n], alive_size: i64
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Var
from metaphrase.core.types import Array, i64

from ..values.capacities import capacity, cut, put, used
from ..values.staged_values import Box, Maybe, StagedArray
from .joins import container
from .specs import Spec

if TYPE_CHECKING:
    from .carries import Pass

_WIDER = 3


class Sizes:
    """The sizes that one pass over a loop's body carries."""

    def __init__(self, work: Pass):
        self.work = weakref.proxy(work)  # no cycle: what a pass holds is let go with it, and references count
        self.inside: dict[int, DimLike] = {}
        self.entered: dict[int, DimLike] = {}
        self.left: dict[int, DimLike] = {}
        self.numbers: dict[tuple, int] = {}
        self.buffers: dict[int, tuple[Var, Spec]] = {}

    def _count(self) -> dict:
        """How many numbers the plan has, and how often each capacity was raised."""
        return self.work.plan.setdefault(("#sizes",), {"numbers": 0})  # type: ignore[arg-type,return-value]

    def _number(self, entry: DimLike, out: Any) -> int:
        """The number for sizes that are `entry` before the loop and `out` after this iteration."""
        if (entry, out) not in self.numbers:
            count = self._count()
            self.numbers[entry, out] = count["numbers"]
            count["numbers"] += 1
        return self.numbers[entry, out]

    # --- the plan ---

    def widen(self, spec: Any, out: StagedArray) -> bool:
        """Plan a buffer for an array that `spec` took to stay as large as it is; False where none is known
        to be large enough."""
        if out.ndim != len(spec.dims) or not spec.dims:
            return False
        entry = spec.entry or spec.dims
        dims, sizes = list(spec.dims), list(spec.sizes or [None] * len(entry))
        most = [self._outside((have, now)) for have, now in zip(spec.dims, out.type.dims)]
        for k, (have, now) in enumerate(zip(dims, out.type.dims)):
            if sizes[k] is None and have == now:
                continue
            if most[k] is None:
                return False
            if most[k] != have:
                raised = self._count()
                raised[id(spec), k] = raised.get((id(spec), k), 0) + 1
                if raised[id(spec), k] > _WIDER:
                    return False
            dims[k] = most[k]
            if sizes[k] is None:
                sizes[k] = self._number(entry[k], now)
        spec.changes = spec.changes or (Array(spec.dtype, entry), out.type)
        spec.dims, spec.sizes, spec.entry = tuple(dims), tuple(sizes), entry
        self.work.changed = True
        return True

    def _outside(self, dims: tuple) -> DimLike | None:
        """A capacity for these sizes that is known outside of the body."""
        regions = self.work.here.regions
        body = regions.pop()
        try:
            return capacity(self.work.here, dims)
        finally:
            regions.append(body)

    def refresh(self, spec: Any, dims: tuple) -> None:
        """What the plan took from the value before the loop, for that value as it is now: a loop inside
        another is entered with other sizes each time the other's body is staged again."""
        if len(dims) != len(spec.dims) or spec.entry == dims and all(map(self.work.here.is_bound, spec.dims)):
            return
        if spec.sizes:
            raised = self._count()
            most = []
            for k, (number, now, have) in enumerate(zip(spec.sizes, dims, spec.dims)):
                both = now if number is None else self._outside((now, have))
                most.append(now if both is None else both)
                raised.pop((id(spec), k), None)
            spec.dims, spec.entry = tuple(most), dims
        else:
            spec.dims = spec.entry = dims

    def template(self, shape: StagedArray) -> Any:
        """The plan for an array that is made inside: its sizes may be known only there."""
        here, spec = self.work.here, Spec("array", shape.dtype, shape.type.dims)
        sizes: list[int | None] = []
        dims: list[DimLike] = []
        for dim in shape.type.dims:
            most = dim if here.is_bound(dim) else capacity(here, (dim,))
            dims.append(dim if most is None else most)
            sizes.append(None if most is None or here.is_bound(dim) else self._number(0, dim))
        if any(number is not None for number in sizes):
            spec.dims, spec.sizes = tuple(dims), tuple(sizes)
            spec.entry = tuple(d if n is None else 0 for d, n in zip(dims, sizes))
        return spec

    # --- entering ---

    def enter(self, path: tuple, spec: Any, initial: Any) -> StagedArray:
        """The array inside the body: the start of its buffer."""
        work, here = self.work, self.work.here
        param = work.carry(path, Array(spec.dtype, spec.dims), lambda: put(here, initial(), spec.dims))
        spec.sizes = tuple(
            self._number(entry, ("apart", path, k))
            if number is not None and self.entered.setdefault(number, entry) != entry
            else number
            for k, (number, entry) in enumerate(zip(spec.sizes, spec.entry))
        )
        for number, entry, most in zip(spec.sizes, spec.entry, spec.dims):
            if number is not None and number not in self.inside:
                count = work.carry(("#size", number), Array(i64), lambda entry=entry: here.dim_atom(entry))
                count.name = f"{param.name}_size"
                self.inside[number] = used(here, count, most, count.name)
        made = StagedArray(Box(here, cut(here, param, self._dims(spec, self.inside))))
        self.buffers[id(made.box)] = (param, spec)
        return made

    def _dims(self, spec: Any, sizes: dict[int, DimLike]) -> tuple:
        return tuple(d if n is None else sizes[n] for d, n in zip(spec.dims, spec.sizes))

    def again(self, value: Any) -> Any:
        """The same values for another region (the test's), which can't see the sizes bound in the body."""
        here = self.work.here
        if isinstance(value, StagedArray) and id(value.box) in self.buffers:
            param, spec = self.buffers[id(value.box)]
            sizes = {
                n: used(here, self.work.by_path["#size", n].param, most, "size")
                for n, most in zip(spec.sizes, spec.dims)
                if n is not None
            }
            return StagedArray(Box(here, cut(here, param, self._dims(spec, sizes))))
        if isinstance(value, Maybe):
            return Maybe(value.flag, self.again(value.value), value.missing)
        found = container(value) if self.buffers else None
        if found is None:
            return value
        kind, children, metadata = found
        made = [self.again(child) for child in children]
        if all(m is c for m, c in zip(made, children)):
            return value
        return kind.unflatten(metadata, made)

    # --- leaving ---

    def leave(self, path: tuple, spec: Any, out: StagedArray) -> bool:
        """Take the array's buffer and size, or change the plan; False where the array can't be carried."""
        work, here = self.work, self.work.here
        fits = len(spec.sizes) == out.ndim and all(
            have == now if number is None else self._fits(now, have)
            for number, have, now in zip(spec.sizes, spec.dims, out.type.dims)
        )
        if not fits:
            return self.widen(spec, out)
        sizes = list(spec.sizes)
        for k, (number, now) in enumerate(zip(spec.sizes, out.type.dims)):
            if number is None:
                continue
            together = self.numbers.setdefault((spec.entry[k], now), number)
            if self.left.setdefault(number, now) != now:  # they parted: each has a number of its own
                del self.numbers[spec.entry[k], now]
                sizes[k] = self._number(spec.entry[k], now)
            elif together < number:
                sizes[k] = together
        if tuple(sizes) != spec.sizes:
            spec.sizes, work.changed = tuple(sizes), True
            return True
        dtype = np.result_type(spec.dtype, out.dtype)
        if dtype != spec.dtype:
            spec.dtype, work.changed = dtype, True
            return True
        param = work.by_path[path].param
        same = id(out.box) in self.buffers and not out.chain and self.buffers[id(out.box)][0] is param
        atom = here.atom(out, spec.dtype)
        unchanged = same and atom is out.box.atom  # nothing was stored into it
        work.by_path[path].final = param if unchanged else put(here, atom, spec.dims, param)
        for number, now in zip(spec.sizes, out.type.dims):
            if number is not None:
                carry = work.by_path["#size", number]
                carry.final = carry.param if now == self.inside[number] else here.dim_atom(now)
        return True

    def _fits(self, now: DimLike, most: DimLike) -> bool:
        bound = self._outside((now, most))
        return bound == most or bound is not None and self.work.here.facts.less_equal(bound, most)

    # --- after the loop ---

    def after(self, inside: StagedArray, results: dict[Var, Any]) -> StagedArray | None:
        """The array after the loop; None for one whose size stays."""
        if id(inside.box) not in self.buffers or inside.chain:
            return None
        here = self.work.here
        param, spec = self.buffers[id(inside.box)]
        sizes: dict[int, DimLike] = {}
        for number, most in zip(spec.sizes, spec.dims):
            if number is not None:
                count: Atom = here.atom(results[self.work.by_path["#size", number].param])
                sizes[number] = used(here, count, most, "size")
        return StagedArray(Box(here, cut(here, results[param], self._dims(spec, sizes))))
