"""What the integers of one iteration of a loop are worth, and so which places of arrays it reads and writes.

In: the body of a loop, and what is known of its counter. Out: regions, for each axis a start and a length.

    def body(i, a):
        b = scatter(a, 2.0 * a[i - 1], i)     # Iteration(places, now).place(...) is ((now, 1),), and with
        return b                              # the counter of a later one ((later, 1),): apart
"""

from __future__ import annotations

from collections.abc import Sequence

from ..late import dataclass
from .dims import DimLike, Sym, fresh_symbol, substitute
from .ir import Atom, Function, Let, Literal, Var
from .loops import Loop
from .places import Places
from .types import i64

Region = tuple[tuple[DimLike, DimLike], ...]  # for each axis where it begins and how long it is


@dataclass(frozen=True)
class Store:
    """One Let on the way from a carry to its next value: a write to `array`, or a loop or branches that carry it on, of
    which `out` is what becomes of it."""

    position: int
    let: Let
    array: Atom
    out: Var


def stores_between(lets: Sequence[Let], param: Var, result: Atom) -> list[Store] | None:
    """The way from an array to what becomes of it; None where it is not one of stores alone."""
    found = _way(lets, result)
    while found and any(store.out is param for store in found):
        found.pop(0)
    return found if (found[0].array if found else result) is param else None


def _way(lets: Sequence[Let], result: Atom) -> list[Store]:
    """The stores that lead to `result`."""
    makers = {v: (k, let) for k, let in enumerate(lets) for v in let.outs}
    found: list[Store] = []
    while isinstance(result, Var) and result in makers:
        position, let = makers[result]
        before = _before(let, result)
        if before is None:
            break
        found.insert(0, Store(position, let, before, result))
        result = before
    return found


def _before(let: Let, out: Var) -> Atom | None:
    """The array that a result of `let` is a later state of."""
    if let.primitive.name == "loop":
        loop = Loop.of(let)
        return loop.args.carries[loop.outs.carries.index(out)] if out in loop.outs.carries else None
    if let.primitive.name == "cond":
        place = _operand(let, let.outs.index(out))
        return None if place is None else let.args[1 + place]
    return let.args[0] if let.primitive.stores else None


def _operand(let: Let, number: int) -> int | None:
    """The operand of which a result of branches is a later state in each of them."""
    places: set[int | None] = set()
    for branch in let.attributes["branches"]:
        way = _way(branch.lets, branch.results[number])
        first = way[0].array if way else branch.results[number]
        places.add(branch.params.index(first) if first in branch.params else None)  # type: ignore[arg-type]
    return places.pop() if len(places) == 1 else None


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
        if store.let.primitive.stores:
            region = self.written(store.let)
            found += [] if region is None else [region]
            return region is not None
        if store.let.primitive.name == "loop":
            loop, inner = self.inside(store.let)
            carry = loop.outs.carries.index(store.out)
            ways = [(inner, loop.body.lets, loop.params.carries[carry], loop.results.carries[carry])]
        else:
            number = store.let.outs.index(store.out)
            place = _operand(store.let, number)
            ways = [(self, b.lets, b.params[place], b.results[number]) for b in self.branches(store.let)]  # type: ignore[index]
        for iteration, lets, param, result in ways:
            stores = stores_between(lets, param, result)
            if stores is None or not all(iteration.store(s, found) for s in stores):
                return False
        return True

    def branches(self, let: Let) -> tuple[Function, ...]:
        """The branches of a `cond`, whose parameters are worth what its operands are."""
        branches: tuple[Function, ...] = let.attributes["branches"]
        for branch in branches:
            self.bind(branch.params, let.args[1:])
            self.scalars(branch.lets)
        return branches

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
