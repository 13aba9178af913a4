"""What the integers of one iteration of a loop are worth, and so which places of arrays it reads and writes.

In: the body of a loop, and what is known of its counter. Out: regions, for each axis a start and a length.

    def body(i, a):
        b = scatter(a, 2.0 * a[i - 1], i)     # Iteration(places, now).place(...) is ((now, 1),), and with
        return b                              # the counter of a later one ((later, 1),): apart
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .dims import DimLike, Sym, fresh_symbol, substitute
from .ir import Atom, Let, Literal, Var
from .loops import Loop
from .places import Places
from .types import i64

Region = tuple[tuple[DimLike, DimLike], ...]  # for each axis where it begins and how long it is


@dataclass(frozen=True)
class Store:
    """One Let on the way from a carry to its next value: a write to `array`, or a loop that carries it on, as its
    carry of that number."""

    position: int
    let: Let
    array: Atom
    carry: int | None = None


def stores_between(lets: Sequence[Let], param: Var, result: Atom) -> list[Store] | None:
    """The way from an array to what becomes of it; None where it is not one of stores alone."""
    makers = {v: (k, let) for k, let in enumerate(lets) for v in let.outs}
    found: list[Store] = []
    while result is not param:
        position, let = makers.get(result, (0, None))  # type: ignore[arg-type]
        if let is None:
            return None
        if let.primitive.name == "loop":
            loop = Loop.of(let)
            if result not in loop.outs.carries:
                return None
            carry = loop.outs.carries.index(result)  # type: ignore[arg-type]
            found.insert(0, Store(position, let, loop.args.carries[carry], carry))
        elif let.primitive.stores:
            found.insert(0, Store(position, let, let.args[0]))
        else:
            return None
        result = found[0].array
    return found


def is_number(atom: Atom) -> bool:
    return not atom.type.dims and atom.type.dtype == i64


class Iteration:
    """What the integers of one iteration are worth; without a counter, those of a whole program."""

    def __init__(self, places: Places, outer: Iteration | None = None):
        self.places = places
        self.worth: dict[Var, DimLike] = {}
        self.sizes: dict[str, DimLike] = dict(outer.sizes) if outer is not None else {}

    @classmethod
    def of_loop(
        cls,
        loop: Loop,
        index: DimLike,
        consts: Sequence[DimLike | None],
        places: Places,
        outer: Iteration | None = None,
    ) -> Iteration:
        """The iteration of `loop` whose counter is `index`; `consts` are worth this."""
        made = cls(places, outer)
        made.worth[loop.index] = index
        made.worth.update((p, v) for p, v in zip(loop.params.consts, consts) if v is not None)
        return made

    def symbol(self, low: DimLike | None, high: DimLike | None) -> DimLike:
        name = fresh_symbol("i")
        self.places.facts.learn(name, low, high)
        return Sym(name)

    def of(self, atom: Atom) -> DimLike:
        if isinstance(atom, Literal):
            return int(atom.value)
        if atom.type.value is not None:
            return self.dim(atom.type.value)
        if atom not in self.worth:
            self.worth[atom] = self.symbol(None, None)
        return self.worth[atom]

    def bind(self, params: Sequence[Var], atoms: Sequence[Atom]) -> None:
        """Learn what the parameters of a branch are worth."""
        self.worth.update((p, v) for p, v in zip(params, self.numbers(atoms)) if v is not None)

    def numbers(self, atoms: Sequence[Atom]) -> list[DimLike | None]:
        return [self.of(a) if is_number(a) else None for a in atoms]

    def dim(self, dim: DimLike) -> DimLike:
        return substitute(dim, self.sizes)

    def scalars(self, lets: Sequence[Let]) -> None:
        for let in lets:
            if let.primitive.name == "as_dim":
                self.sizes.setdefault(let.out.type.value.name, self.of(let.args[0]))  # type: ignore[union-attr]
            elif let.primitive.name in ("add", "sub") and is_number(let.out):
                a, b = (self.of(x) for x in let.args)
                self.worth.setdefault(let.out, a + b if let.primitive.name == "add" else a - b)
            else:
                for symbol in let.own_symbols():
                    self.sizes.setdefault(symbol, self.symbol(0, None))

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

    def written(self, let: Let) -> Region | None:
        """Where a store writes to."""
        array, value, *starts = let.args
        return self.place(let, starts, array.type.dims, value.type.dims)

    def read(self, let: Let) -> Region | None:
        """Where a `gather` or `slice` reads."""
        array, *starts = let.args
        return self.place(let, starts, array.type.dims, let.attributes.get("shape", ()))

    def store(self, store: Store, found: list[Region]) -> bool:
        """Collect where a Let writes to the array that it stores into."""
        if store.carry is None:
            region = self.written(store.let)
            found += [] if region is None else [region]
            return region is not None
        loop, inner = self.inside(store.let)
        stores = stores_between(loop.body.lets, loop.params.carries[store.carry], loop.results.carries[store.carry])
        return stores is not None and all(inner.store(s, found) for s in stores)

    def inside(self, let: Let) -> tuple[Loop, Iteration]:
        """Any iteration of a loop in this one."""
        loop = Loop.of(let)
        index = self.symbol(0, None if loop.length is None else self.dim(loop.length) - 1)
        inner = Iteration.of_loop(loop, index, self.numbers(loop.args.consts), self.places, self)
        inner.scalars(loop.body.lets)
        return loop, inner

    def later(self, loop: Loop, now: Iteration, lets: Sequence[Let]) -> Iteration:
        """Any iteration of a loop in this one that runs behind the iteration `now`; its operations are `lets`."""
        index = now.of(loop.index)
        low, high = index + 1, None if loop.length is None else self.dim(loop.length) - 1
        symbol = self.symbol(0, index - 1) if loop.reverse else self.symbol(low, high)
        consts = [now.worth.get(p) for p in loop.params.consts]
        found = Iteration.of_loop(loop, symbol, consts, self.places, self)
        found.scalars(lets)
        return found


__all__ = ["Iteration", "Region", "Store", "is_number", "stores_between"]
