"""Which arrays a program stores into in place.

In: a Function, or the body of a loop. Out: the parameters that are stored into and what becomes of them; for
each carry and accumulator whether the loop needs an array of its own.

    def body(i, a, b): return scatter(a, 0.0, i), b        # written: {a}; written_carries of its loop: (True, False)
"""

from __future__ import annotations

from collections.abc import Iterator

from .ir import Atom, Function, Let, Var
from .loops import Loop


def written(function: Function) -> tuple[set[Var], dict[Var, Var]]:
    """Parameters whose array is stored into, and for each value that continues an array, the parameter it
    began as."""
    origin: dict[Var, Var] = {p: p for p in function.params if p.type.dims}
    found: set[Var] = set()
    for let in function.lets:
        for atom, out in _continued(let):
            if isinstance(atom, Var) and atom in origin:
                found.add(origin[atom])
                origin[out] = origin[atom]
    return found, origin


def _continued(let: Let) -> Iterator[tuple[Atom, Var]]:
    """Operands that the Let stores into, with the result that continues each."""
    if let.primitive.stores:
        yield let.args[0], let.out
    elif let.primitive.name == "loop":
        loop = Loop.of(let)
        marks = written_carries(let)
        yield from ((a, v) for a, v, mark in zip(loop.args.state, loop.outs.state, marks) if mark and v.type.dims)
    elif let.primitive.name == "cond":
        for branch in let.attributes["branches"]:
            found, origin = written(branch)
            at = {p: a for p, a in zip(branch.params, let.args[1:]) if p in found}
            yield from ((at[origin[r]], v) for v, r in zip(let.outs, branch.results) if origin.get(r) in at)  # type: ignore[arg-type]


def written_carries(loop: Let) -> tuple[bool, ...]:
    """For each carry and accumulator, whether the loop has to own its array."""
    body = Loop.of(loop).body
    found, origin = written(body.function)
    state = [*body.params.state]
    owned = found.intersection(state).union(p for p in body.params.accumulators if p.type.dims)
    came_from = {p: origin.get(r) for p, r in zip(state, body.results.state)}  # type: ignore[arg-type]
    while True:  # an array that becomes an owned carry in the next iteration has to be owned as well
        more = {v for p, v in came_from.items() if p in owned and v in state and v not in owned}
        if not more:
            return tuple(p in owned for p in state)
        owned |= more  # type: ignore[arg-type]
