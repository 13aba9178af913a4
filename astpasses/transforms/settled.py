"""What a loop has stored into an array for good: the loop that runs back reads it in the array as it is at
the end, instead of a copy for each iteration.

In: the body of a loop, split in two, and a state of an array that the loop carries. Out: whether all that the
linear part reads of that state is in places that neither the rest of the iteration nor a later one writes to.

    def body(i, a):                            # a[i] is written by iteration i alone, and a[i - 1] is read:
        b = scatter(a, 2.0 * a[i - 1], i)      # at the end it is what it was then
        return b
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from metaphrase.core.ir import Let, Var
from metaphrase.core.iterations import Iteration, Region, Store, is_number, stores_between
from metaphrase.core.loops import Loop
from metaphrase.core.places import Places
from metaphrase.ops.indexing import gather
from metaphrase.ops.indexing import slice as slice_

from .common import variables


class Settled:
    """The arrays that a loop carries; `lets` are those of the known part of its body."""

    def __init__(self, places: Places, loop: Loop, lets: Sequence[Let]):
        self.places, self.loop, self.lets = places, loop, lets
        self.numbers: list[int] = []
        around = Iteration(places)
        consts = [places.of(p) if is_number(p) else None for p in loop.params.consts]
        self.now = Iteration.of_loop(loop, places.of(loop.index), consts, places)
        self.now.scalars(lets)
        self.later = around.later(loop, self.now, lets)

    def readable(self) -> dict[Var, Let]:
        """For each value that the body reads from, or stores into, a place that no one writes to later: how
        to read it in the array at the end (in a state of the array that `states` will find settled)."""
        found: dict[Var, Let] = {}
        for _, stores, states in self._carries():
            for store in stores:
                self._stored(store, stores, found)
            for let in self.lets:
                array = let.args[0] if let.primitive.takes else None
                if isinstance(array, Var) and array in states:
                    place = self.now.read(let)
                    if place is not None and self.stay(stores, array, [place]):
                        found.setdefault(let.out, let)
        return found

    def _stored(self, store: Store, stores: Sequence[Store], found: dict[Var, Let]) -> None:
        if store.let.primitive.name not in ("scatter", "slice_update"):
            return
        _, value, *starts = store.let.args
        state = store.let.out
        place = self.now.written(store.let)
        if not isinstance(value, Var) or place is None or not self.stay(stores, state, [place]):
            return
        if "step" in store.let.attributes:
            attributes = {"shape": value.type.dims, "step": store.let.attributes["step"]}
            found[value] = Let((value,), slice_, (state, *starts), attributes, store.let.span)
        else:
            attributes = {"axes": store.let.attributes["axes"]}
            found[value] = Let((value,), gather, (state, *starts), attributes, store.let.span)

    def states(self, residuals: Collection[Var], linear: Sequence[Let]) -> dict[Var, int]:
        """The residuals that are states of a carry, by its number, of which `linear` reads what stays."""
        found: dict[Var, int] = {}
        for number, (_, stores, states) in zip(self.numbers, self._carries()):
            for state in states:
                regions = self.reads(state, linear) if state in residuals else None
                if regions is not None and self.stay(stores, state, regions):
                    found[state] = number
        return found

    def _carries(self) -> list[tuple[Var, list[Store], list[Var]]]:
        """The arrays that the body carries on by stores alone: with these, and all their states."""
        found, self.numbers = [], []
        for number, (param, result) in enumerate(zip(self.loop.params.carries, self.loop.results.carries)):
            stores = stores_between(self.lets, param, result) if param.type.dims else None
            if stores:
                states = variables([*(store.array for store in stores), result])
                found.append((param, stores, states))
                self.numbers.append(number)
        return found

    def reads(self, state: Var, linear: Sequence[Let]) -> list[Region] | None:
        """The places of `state` that the linear part reads; None where it may read anything."""
        self.now.scalars(linear)
        found: list[Region] = []
        return found if _reads(self.now, linear, {state}, found) else None

    def stay(self, stores: Sequence[Store], state: Var, regions: Sequence[Region]) -> bool:
        """Whether these places of `state` are not written to any more."""
        since = next((s.position for s in stores if state in s.let.outs), -1)
        written = _regions(self.now, [s for s in stores if s.position > since])
        again = _regions(self.later, stores)
        if written is None or again is None:
            return False
        return all(self.places.apart(r, w) for r in regions for w in (*written, *again))


def _regions(iteration: Iteration, stores: Sequence[Store]) -> list[Region] | None:
    found: list[Region] = []
    return found if all(iteration.store(s, found) for s in stores) else None


def _reads(iteration: Iteration, lets: Sequence[Let], states: set[Var], found: list[Region]) -> bool:
    """Collect where Lets read any of `states`; False if one may read everything."""
    for let in lets:
        at = [k for k, a in enumerate(let.args) if a in states]
        if not at:
            continue
        if let.primitive.takes and at == [0]:
            region = iteration.read(let)
            if region is None:
                return False
            found.append(region)
        elif let.primitive.name == "loop":
            loop, inner = iteration.inside(let)
            params = {p for p, a in zip(loop.params, loop.args) if a in states}
            if params - {*loop.params.consts} or params & {*loop.results}:
                return False
            if not _reads(inner, loop.body.lets, params, found):
                return False
        elif let.primitive.name == "cond":
            for branch in iteration.branches(let):
                params = {p for p, a in zip(branch.params, let.args[1:]) if a in states}
                if params & {*branch.results} or not _reads(iteration, branch.lets, params, found):
                    return False
        else:
            return False
    return True


__all__ = ["Settled"]
