"""Dependence through regions: which results can be had from some of the parameters alone.

In: a Function and marks on its parameters (known, or: the same for all lanes). Out: marks on results. Loops
are taken to a fixpoint over their carries, branches are joined.
"""

from __future__ import annotations

from collections.abc import Sequence

from metaphrase.core.ir import Function, Let, Roles, Var

from .common import variables


def known_results(function: Function, known: Sequence[bool]) -> list[bool]:
    """Which results can be computed from the known parameters alone."""
    unknown = {p for p, k in zip(function.params, known, strict=True) if not k}
    for let in function.lets:
        if any(a in unknown for a in variables(let.args)):
            marks = _region_marks(let, unknown)
            unknown.update(v for v, k in zip(let.outs, marks) if not k)
    return [not (isinstance(r, Var) and r in unknown) for r in function.results]


def _region_marks(let: Let, unknown: set[Var]) -> list[bool]:
    """Which results of a Let with an unknown operand are known all the same."""
    marks = [a not in unknown for a in let.args]
    if let.primitive.name == "loop":
        return loop_marks(let, marks)[1]
    if let.primitive.name == "cond":
        return cond_marks(let, marks)
    return [False] * len(let.outs)


def loop_marks(let: Let, marks: Sequence[bool]) -> tuple[list[bool], list[bool]]:
    """Known operands (carries joined to a fixpoint) and known results of a loop."""
    roles: Roles = let.attributes["roles"]
    body, condition = let.attributes["body"], let.attributes["cond"]
    consts, carries, accumulators, rows = (list(m) for m in roles.parts(marks))
    state = carries + accumulators
    while True:
        if condition is not None and not known_results(condition, [True, *consts, *state[: len(carries)]])[0]:
            state = [False] * len(state)  # the trip count is unknown, and with it whatever the loop leaves
            return [*consts, *state, *rows], [False] * len(let.outs)
        out = known_results(body, [True, *consts, *state, *rows])
        new = [a and b for a, b in zip(state, out)]
        if new == state:
            break
        state = new
    sizes = known_sizes(body, [True, *consts, *state, *rows]) if roles.segments else True
    lead = [sizes] * len(let.own_symbols())
    if condition is not None:
        lead[0] = True
    return [*consts, *state, *rows], [*lead, *state, *out[len(state) :]]


def known_sizes(function: Function, known: Sequence[bool]) -> bool:
    """Whether all sizes that `function` binds itself can be had from the known parameters alone."""
    binders = [let.binder(symbol) for let in function.lets for symbol in sorted(let.own_symbols())]
    found = Function(function.name, function.params, function.lets, tuple(binders))
    return all(known_results(found, known))


def cond_marks(let: Let, marks: Sequence[bool]) -> list[bool]:
    """Known results of a cond: those known in every branch, none if the index is not."""
    out = [marks[0]] * len(let.outs)
    for branch in let.attributes["branches"]:
        out = [a and b for a, b in zip(out, known_results(branch, marks[1:]))]
    return out
