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
from dataclasses import dataclass

from metaphrase.core.dims import DimLike, Sym, fresh_symbol, substitute
from metaphrase.core.ir import Atom, Function, Let, Literal, Roles, Var
from metaphrase.core.places import Places
from metaphrase.core.types import i64
from metaphrase.ops.indexing import gather
from metaphrase.ops.indexing import slice as slice_

from .common import variables

WRITES = frozenset(["slice_update", "slice_add", "scatter", "scatter_add"])
Region = tuple[tuple[DimLike, DimLike], ...]  # for each axis where it begins and how long it is


@dataclass(frozen=True)
class Store:
    """One Let on the way from a carry to its next value: a write, or a loop that carries the array on.
    `operand`: which of its operands is the array."""

    position: int
    let: Let
    operand: int


class Settled:
    """The array that a loop carries as `param` and leaves as `result`; `lets` are those of the body."""

    def __init__(self, places: Places, loop: Let, body: Function, lets: Sequence[Let]):
        self.places, self.body, self.lets = places, body, lets
        self.roles: Roles = loop.attributes["roles"]
        self.numbers: list[int] = []
        reverse, length = loop.attributes.get("reverse", False), loop.attributes["length"]
        self.now = _Iteration(places, places.of(body.params[0]), body)
        index = self.now.index
        low, high = (0, index - 1) if reverse else (index + 1, None if length is None else length - 1)
        self.later = _Iteration(places, _symbol(places, low, high), body)
        for iteration in (self.now, self.later):
            consts = body.params[1 : 1 + self.roles.consts]
            iteration.consts(consts, [places.of(p) if _is_number(p) else None for p in consts])
            iteration.scalars(lets)

    def readable(self) -> dict[Var, Let]:
        """For each value that the body reads from, or stores into, a place that no one writes to later: how
        to read it in the array at the end (in a state of the array that `states` will find settled)."""
        found: dict[Var, Let] = {}
        for param, stores, states in self._carries():
            for store in stores:
                self._stored(store, stores, found)
            for let in self.lets:
                array = let.args[0] if let.primitive.name in ("gather", "slice") else None
                if isinstance(array, Var) and array in states:
                    shape = let.attributes.get("shape", ())
                    place = self.now.place(let, let.args[1:], param.type.dims, shape)
                    if place is not None and self.stay(stores, array, [place]):
                        found.setdefault(let.out, let)
        return found

    def _stored(self, store: Store, stores: Sequence[Store], found: dict[Var, Let]) -> None:
        if store.let.primitive.name not in ("scatter", "slice_update"):
            return
        _, value, *starts = store.let.args
        state = store.let.out
        place = self.now.place(store.let, starts, state.type.dims, value.type.dims)
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
        for number in range(self.roles.carries):
            param, result = self.body.params[1 + self.roles.consts + number], self.body.results[number]
            stores = _stores(self.lets, param, result) if param.type.dims else None
            if stores:
                last = [
                    result if s is stores[-1] else stores[k + 1].let.args[stores[k + 1].operand]
                    for k, s in enumerate(stores)
                ]
                found.append((param, stores, [param, *variables(last)]))
                self.numbers.append(number)
        return found

    def reads(self, state: Var, linear: Sequence[Let]) -> list[Region] | None:
        """The places of `state` that the linear part reads; None where it may read anything."""
        self.now.scalars(linear)
        found: list[Region] = []
        return found if self.now.reads(linear, {state}, found) else None

    def stay(self, stores: Sequence[Store], state: Var, regions: Sequence[Region]) -> bool:
        """Whether these places of `state` are not written to any more."""
        since = next((s.position for s in stores if state in s.let.outs), -1)
        written = _regions(self.now, [s for s in stores if s.position > since])
        again = _regions(self.later, stores)
        if written is None or again is None:
            return False
        return all(self.places.apart(r, w) for r in regions for w in (*written, *again))


def _regions(iteration: _Iteration, stores: Sequence[Store]) -> list[Region] | None:
    found: list[Region] = []
    return found if all(iteration.store(s.let, s.operand, found) for s in stores) else None


def _stores(lets: Sequence[Let], param: Var, result: Atom) -> list[Store] | None:
    """The way from an array to what becomes of it; None where it is not one of stores alone."""
    makers = {v: (k, let) for k, let in enumerate(lets) for v in let.outs}
    found: list[Store] = []
    while result is not param:
        position, let = makers.get(result, (0, None))  # type: ignore[arg-type]
        if let is None:
            return None
        operand = 0
        if let.primitive.name == "loop":
            roles: Roles = let.attributes["roles"]
            operand = let.outs.index(result) - len(let.own_symbols()) + roles.consts  # type: ignore[arg-type]
            if not roles.consts <= operand < roles.consts + roles.carries:
                return None
        elif let.primitive.name not in WRITES:
            return None
        found.insert(0, Store(position, let, operand))
        result = let.args[operand]
    return found


def _is_number(atom: Atom) -> bool:
    return not atom.type.dims and atom.type.dtype == i64


def _symbol(places: Places, low: DimLike | None, high: DimLike | None) -> DimLike:
    name = fresh_symbol("i")
    places.facts.learn(name, low, high)
    return Sym(name)


class _Iteration:
    """What the integers of one iteration are worth."""

    def __init__(self, places: Places, index: DimLike, body: Function, outer: _Iteration | None = None):
        self.places, self.index = places, index
        self.worth: dict[Var, DimLike] = {body.params[0]: index}
        self.sizes: dict[str, DimLike] = dict(outer.sizes) if outer is not None else {}

    def of(self, atom: Atom) -> DimLike:
        if isinstance(atom, Literal):
            return int(atom.value)
        if atom.type.value is not None:
            return self.dim(atom.type.value)
        if atom not in self.worth:
            self.worth[atom] = _symbol(self.places, None, None)
        return self.worth[atom]

    def dim(self, dim: DimLike) -> DimLike:
        return substitute(dim, self.sizes)

    def consts(self, params: Sequence[Var], values: Sequence[DimLike | None]) -> None:
        self.worth.update((p, v) for p, v in zip(params, values) if v is not None)

    def scalars(self, lets: Sequence[Let]) -> None:
        for let in lets:
            if let.primitive.name == "as_dim":
                self.sizes.setdefault(let.out.type.value.name, self.of(let.args[0]))  # type: ignore[union-attr]
            elif let.primitive.name in ("add", "sub") and not let.out.type.dims and let.out.type.dtype == i64:
                a, b = (self.of(x) for x in let.args)
                self.worth.setdefault(let.out, a + b if let.primitive.name == "add" else a - b)
            else:
                for symbol in let.own_symbols():
                    self.sizes.setdefault(symbol, _symbol(self.places, 0, None))

    def place(self, let: Let, starts: Sequence[Atom], dims: tuple, shape: tuple) -> Region | None:
        """Where a read or write of an array with these dims goes."""
        if "axes" in let.attributes:
            if any(s.type.dims for s in starts):
                return None
            at = dict(zip(let.attributes["axes"], starts))
            return tuple((self.of(at[k]), 1) if k in at else (0, self.dim(d)) for k, d in enumerate(dims))
        if any(s != 1 for s in let.attributes["step"]):
            return None
        return tuple((self.of(s), self.dim(d)) for s, d in zip(starts, shape))

    def store(self, let: Let, operand: int, found: list[Region]) -> bool:
        """Collect where a Let writes to the array that is its operand."""
        if let.primitive.name != "loop":
            array, value, *starts = let.args
            region = self.place(let, starts, array.type.dims, value.type.dims)
            found += [] if region is None else [region]
            return region is not None
        body, inner = self.inside(let)
        result = body.results[operand - let.attributes["roles"].consts]
        stores = _stores(body.lets, body.params[1 + operand], result)
        return stores is not None and all(inner.store(s.let, s.operand, found) for s in stores)

    def inside(self, let: Let) -> tuple[Function, _Iteration]:
        """Any iteration of a loop in this one."""
        body, length = let.attributes["body"], let.attributes["length"]
        index = _symbol(self.places, 0, None if length is None else self.dim(length) - 1)
        inner = _Iteration(self.places, index, body, self)
        consts = let.args[: let.attributes["roles"].consts]
        inner.consts(body.params[1:], [self.of(a) if _is_number(a) else None for a in consts])
        inner.scalars(body.lets)
        return body, inner

    def reads(self, lets: Sequence[Let], states: set[Var], found: list[Region]) -> bool:
        """Collect where Lets read any of `states`; False if one may read everything."""
        for let in lets:
            at = [k for k, a in enumerate(let.args) if a in states]
            if not at:
                continue
            if let.primitive.name in ("gather", "slice") and at == [0]:
                array, *starts = let.args
                region = self.place(let, starts, array.type.dims, let.attributes.get("shape", ()))
                if region is None:
                    return False
                found.append(region)
            elif let.primitive.name == "loop" and at[-1] < let.attributes["roles"].consts:
                body, inner = self.inside(let)
                params = {body.params[1 + k] for k in at}
                if params & set(body.results) or not inner.reads(body.lets, params, found):
                    return False
            else:
                return False
        return True


__all__ = ["Settled"]
