"""Which known values cross over to the linear side of a split, and which are made there once more.

In: what the known side does, and the variables of it that the linear side reads. Out: the residuals, and the Lets
that give the others.

    n: size[n] = as_dim(k)                # the linear side reads s and b: s crosses, and b is a mere broadcast,
    s: f64 = sin(x)                       # which the linear side does again
    b: f64[n] = broadcast(s)

What is cheap is made again of what crosses anyway, and so is what a loop can't hand out: an array whose size is
bound in its body, unless it leaves as a segment. Of an array whose parts together are as large, the array crosses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod

from metaphrase.core.dims import Sym
from metaphrase.core.ir import Function, Let, Literal, Var
from metaphrase.core.loops import Loop
from metaphrase.core.native import Iota, Move
from metaphrase.core.places import Places
from metaphrase.core.policies import Policy, saves
from metaphrase.core.scalars import CHEAP
from metaphrase.core.types import Array, type_symbols
from metaphrase.late import dataclass, field

from .common import variables, without_effects
from .settled import Settled

CHAIN = 6  # operations that are done again for one residual less


class Known:
    """The Lets of the known side, who makes each value, and who binds each size."""

    def __init__(self) -> None:
        self.lets: list[Let] = []
        self.makers: dict[Var, Let] = {}
        self.binders: dict[str, Var] = {}

    def add(self, let: Let) -> None:
        self.lets.append(let)
        self.makers.update((out, let) for out in let.outs)
        self.binders.update((symbol, let.binder(symbol)) for symbol in let.own_symbols())

    def sizes(self, symbols: Iterable[str]) -> list[Var]:
        """The variables that bind those of the symbols that are bound here."""
        return [self.binders[symbol] for symbol in sorted(symbols) if symbol in self.binders]

    def operands(self, let: Let) -> list[Var]:
        """What an operation needs: values, and the sizes that it mentions."""
        return [*variables(let.args), *self.sizes(let.uses_symbols())]


@dataclass(frozen=True)
class Inside:
    """That the function is a branch, or the body of `loop`, so that residuals may not name sizes that it binds
    itself; with `ragged` they may as the length of their first axis, or be such a size. `shared`: parameters that
    cost nothing as residuals, because the linear loop has them too (its counter, what no iteration changes). `policy`:
    what of it crosses; all else is made again."""

    loop: Loop | None = None
    ragged: bool = False
    shared: frozenset[Var] = frozenset()
    places: Places = field(default_factory=Places)  # what is known of numbers there
    policy: Policy = ("everything_saveable",)


class Residuals:
    """`chosen`: the variables that cross over, in order; `again`: the Lets that the linear side does again;
    `settled`: residuals that can be read in what the loop leaves of the carry of that number. `bulky`: stacks of an
    array that a loop stores into, one a step, which leave no loop."""

    def __init__(
        self,
        function: Function,
        known: Known,
        inside: Inside | None,
        bulky: set[Var],
        demanded: Sequence[Var],
        linear: Sequence[Let],
    ):
        self.function, self.known, self.inside, self.bulky = function, known, inside, bulky
        self.names = {x.args[0]: x.attributes["name"] for x in known.lets if x.primitive.name == "checkpoint_name"}
        self.chosen: dict[Var, None] = {}
        self.remade: set[Var] = set()  # what the linear side makes again
        self.readable: dict[Var, Let] = {}  # values that can be read in the array a loop leaves,
        self.rereads: dict[Var, Let] = {}  # and those that are
        for var in demanded:
            self._need(var)
        self._whole_instead_of_parts()
        states = None
        if inside is not None and inside.loop is not None:
            body = inside.loop.body.like(function)
            states = Settled(inside.places, replace(inside.loop, body=body), known.lets)
            self.readable = states.readable()
        position = {v: k for k, let in enumerate(known.lets) for v in let.outs}
        for var in sorted(self.chosen, key=lambda v: -position.get(v, -1)):
            self._make_again_if_cheap(var)
        self.again = self._recomputation()
        self.settled = {} if states is None else states.states(self.chosen, [*self.again, *linear])

    def _need(self, var: Var) -> None:
        """The linear side reads `var`: it crosses, or it is made of what crosses."""
        if var in self.chosen or var in self.remade:
            return
        let = self.known.makers.get(var)
        if let is not None and (_only_moves(let) or not self._may_leave(var) or not self._is_saved(var, let)):
            self.remade.update(let.outs)
            for out in let.outs:
                self.chosen.pop(out, None)
            for operand in self.known.operands(let):
                self._need(operand)
            return
        self.chosen[var] = None
        if let is not None and self.inside is not None and var.type.dims:  # the linear side names a segment's length
            for size in self.known.sizes(type_symbols(var.type)):
                self._need(size)

    def _may_leave(self, var: Var) -> bool:
        if self.inside is None or not self._own_sizes(var.type):
            return True
        if not self.inside.ragged or var in self.bulky:
            return False
        if not var.type.dims:
            return any(var.type.value == Sym(symbol) for symbol in self.known.makers[var].own_symbols())
        return not self._own_sizes(var.type.with_dims(var.type.dims[1:]))

    def _is_saved(self, var: Var, let: Let) -> bool:
        """Whether the policy lets the value cross, which `let` makes."""
        if self.inside is None:
            return True
        name = let.attributes["name"] if let.primitive.name == "checkpoint_name" else self.names.get(var)
        return saves(self.inside.policy, let, name)

    def _own_sizes(self, type_: Array) -> list[Var]:
        return self.known.sizes(type_symbols(type_))

    def _whole_instead_of_parts(self) -> None:
        """Where the parts of an array that cross are as large as the array, that crosses, and they are read in it."""
        elements: dict[Var, int] = {}
        for var in self.chosen:
            let = self.known.makers.get(var)
            if let is not None and _is_fixed_part(let):
                for array in variables(let.args):
                    elements[array] = elements.get(array, 0) + _elements(var)
        for array, crossing in elements.items():
            if array not in self.remade and crossing >= _elements(array) and self._may_leave(array):
                self.chosen.setdefault(array)

    def _make_again_if_cheap(self, var: Var) -> None:
        del self.chosen[var]
        params = set(self.function.params)
        chain = None if var in params else self._cheap_chain(var)
        if chain is None:
            self.chosen[var] = None
            return
        self.remade |= chain - params
        self.chosen.update((p, None) for p in self.function.params if p in chain)
        reread = {v: self.readable[v] for v in chain if v in self.readable}
        self.rereads |= reread
        self.chosen.update((array, None) for let in reread.values() for array in variables(let.args[:1]))

    def _cheap_chain(self, var: Var) -> set[Var] | None:
        """The results of the cheap Lets that give `var` from what crosses anyway; None if no short chain does."""
        chain: set[Var] = set()
        todo = [var]
        while todo:
            var = todo.pop()
            if var in self.chosen or var in self.remade or var in chain:
                continue
            let = self.known.makers.get(var)
            if self.inside is not None and var in self.inside.shared:
                chain.add(var)
            elif var in self.readable:
                chain.add(var)
                todo += variables(self.readable[var].args[1:])
            elif let is None or len(chain) >= CHAIN or not self._is_cheap(let):
                return None
            else:
                chain.update(let.outs)
                todo += self.known.operands(let)
        return chain

    def _is_cheap(self, let: Let) -> bool:
        sizes = let.own_symbols()
        if sizes and (self.inside is None or any(type_symbols(r.type) & sizes for r in self.chosen)):
            return False  # a residual of that size is read back by the size that crosses
        if let.primitive.takes and self.inside:  # of an array that crosses anyway, or has to be made anew
            return True
        if _is_fixed_part(let) and let.args[0] in self.chosen:
            return True
        if let.primitive.name == "div" and self.readable:  # one division instead of a stack
            return True
        return _only_moves(let) or let.primitive.cost <= CHEAP

    def _recomputation(self) -> list[Let]:
        """What the linear side does again, operands first: some are read where a later one stored them."""
        lets: list[Let] = []
        done: set[Var] = set()
        makers: dict[Var, Let] = {}
        for let in self.known.lets:  # a result of a loop is read, unless that runs again anyway
            read = all(v in self.rereads for v in let.outs if v in self.remade)
            makers.update((v, self.rereads.get(v, let) if read else let) for v in let.outs)

        def add(let: Let) -> None:
            if let.outs[0] in done:
                return
            done.update(let.outs)
            for operand in self.known.operands(let):
                if operand in self.remade and operand in makers:
                    add(makers[operand])
            pure = without_effects(let)
            if pure is not None:
                span = let.span.with_role("recomputed") if let.span else None
                lets.append(Let(pure.outs, pure.primitive, pure.args, pure.attributes, span))

        for var, let in makers.items():
            if var in self.remade:
                add(let)
        return lets


def _is_fixed_part(let: Let) -> bool:
    """Whether an operation takes the elements at places that the program names, of an array of known size."""
    return (
        let.primitive.takes
        and all(isinstance(start, Literal) for start in let.args[1:])
        and all(isinstance(dim, int) for dim in (*let.args[0].type.dims, *let.out.type.dims))
    )


def _elements(array: Var) -> int:
    """How many elements there are, of an array of known size."""
    return prod(dim for dim in array.type.dims if isinstance(dim, int))


def _only_moves(let: Let) -> bool:
    """Whether an operation only moves elements, or counts."""
    return isinstance(let.primitive.native, (Move, Iota)) and not let.primitive.region


__all__ = ["Known", "Inside", "Residuals"]
