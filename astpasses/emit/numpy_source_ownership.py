"""Which arrays that a loop carries are written in place by its body.

In: the body of a loop and its roles. Out: one bool a carry and accumulator: True where the loop needs an
array of its own, because its body stores into it.
"""

from __future__ import annotations

from metaphrase.core.ir import Function, Let, Roles, Var

WRITES = frozenset(["slice_update", "slice_add", "scatter", "scatter_add"])


def written(function: Function) -> tuple[set[Var], dict[Var, Var]]:
    """Parameters whose array is stored into, and for each value that continues an array, the parameter it
    began as."""
    origin: dict[Var, Var] = {p: p for p in function.params if p.type.dims}
    found: set[Var] = set()
    for let in function.lets:
        for position, out in _continued(let):
            atom = let.args[position]
            if isinstance(atom, Var) and atom in origin:
                found.add(origin[atom])
                origin[out] = origin[atom]
    return found, origin


def _continued(let: Let) -> list[tuple[int, Var]]:
    """Operands that the Let writes in place, with the result that continues each."""
    kind = let.primitive.name
    if kind in WRITES:
        return [(0, let.out)]
    if kind == "loop":
        roles: Roles = let.attributes["roles"]
        marks = written_carries(let.attributes["body"], roles)
        first = len(let.own_symbols())
        return [
            (roles.consts + k, let.outs[first + k])
            for k, mark in enumerate(marks)
            if mark and let.outs[first + k].type.dims
        ]
    if kind == "cond":
        pairs = []
        for branch in let.attributes["branches"]:
            found, origin = written(branch)
            for k, result in enumerate(branch.results):
                if isinstance(result, Var) and result in origin and origin[result] in found:
                    pairs.append((1 + branch.params.index(origin[result]), let.outs[k]))
        return pairs
    return []


def written_carries(body: Function, roles: Roles) -> tuple[bool, ...]:
    """For each carry and accumulator, whether the loop has to own its array."""
    first, count = 1 + roles.consts, roles.carries + roles.accumulators
    params = body.params[first : first + count]
    found, origin = written(body)
    marks = [p in found or k >= roles.carries and bool(p.type.dims) for k, p in enumerate(params)]
    changed = True
    while changed:  # an array that becomes an owned carry in the next iteration has to be owned as well
        changed = False
        for k, result in enumerate(body.results[:count]):
            source = origin.get(result) if isinstance(result, Var) else None
            if marks[k] and source in params and not marks[params.index(source)]:
                marks[params.index(source)] = changed = True
    return tuple(marks)


__all__ = ["written_carries", "written", "WRITES"]
