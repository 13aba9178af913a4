"""Dependence through regions: which results can be had from some of the parameters alone.

In: a Function and marks on its parameters (known, or: the same for all lanes). Out: marks on results. Loops
are taken to a fixpoint over their carries, branches are joined. `axis`: the named axis that the lanes are along, if
they are along one: what `psum` over it gives is the same for all of them, whatever it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import and_, or_

from metaphrase.core.custom import CALLS, RULED
from metaphrase.core.ir import Function, Let, Var
from metaphrase.core.loops import Loop, Parts
from metaphrase.ops.collectives import alike, axes_of, is_over

from .common import variables

Transform = Callable[[Function, list[bool], list[bool]], tuple[Function, list[bool]]]


def known_results(function: Function, known: Sequence[bool], axis: str | None = None) -> list[bool]:
    """Which results can be computed from the known parameters alone."""
    unknown = {p for p, k in zip(function.params, known, strict=True) if not k}
    for let in function.lets:
        add_unknown(let, unknown, axis)
    return [not (isinstance(r, Var) and r in unknown) for r in function.results]


def add_unknown(let: Let, unknown: set[Var], axis: str | None) -> None:
    """Add those results of a Let that are unknown."""
    if any(a in unknown for a in variables(let.args)) or axis is not None and axis in axes_of(let):
        marks = _region_marks(let, unknown, axis)
        unknown.update(v for v, k in zip(let.outs, marks) if not k)


def _region_marks(let: Let, unknown: set[Var], axis: str | None) -> list[bool]:
    """Which results of a Let with an unknown operand are known all the same."""
    marks = [a not in unknown for a in let.args]
    if is_over(let, axis):
        return alike(let, marks)
    if let.primitive.name == "loop":
        loop = Loop.of(let)
        _, sizes, results = loop_marks(loop, loop.args.like(marks), axis)
        return [*sizes, *results]
    if let.primitive.name == "cond":
        return cond_marks(let, marks, axis)
    if let.primitive.name in (*CALLS, *RULED):
        return known_results(let.attributes["function"], marks, axis)
    return [False] * len(let.outs)


def loop_marks(loop: Loop, known: Parts[bool], axis: str | None = None) -> tuple[Parts[bool], list[bool], Parts[bool]]:
    """Known operands (the state joined to a fixpoint), known sizes and known results of a loop."""
    while True:
        condition = None if loop.condition is None else loop.condition.function
        if condition is not None and not known_results(condition, [True, *known.asked], axis)[0]:
            nothing = loop.results.map(lambda _: False)  # the trip count is unknown, and so whatever the loop leaves
            return _with_state(known, nothing, and_), [False] * len(loop.sizes), nothing
        results = loop.results.like(known_results(loop.body.function, [True, *known], axis))
        state, known = known.state, _with_state(known, results, and_)
        if known.state == state:
            break
    sizes = [not loop.segment_sizes or known_sizes(loop.body.function, [True, *known], axis)] * len(loop.sizes)
    if loop.condition is not None:
        sizes[0] = True
    return known, sizes, _with_state(results, known, and_)


def _with_state(marks: Parts[bool], other: Parts[bool], join: Callable[[bool, bool], bool]) -> Parts[bool]:
    """`marks` with those of carries and accumulators joined to others."""
    carries = map(join, marks.carries, other.carries)
    return marks.replace(carries=carries, accumulators=map(join, marks.accumulators, other.accumulators))


def with_settled_state(loop: Loop, marks: Parts[bool], transform: Transform) -> tuple[Function, Parts, Parts]:
    """`transform(body, marks of parameters, results to be marked)` once those carries and accumulators are marked
    that it gives back marked: its function, and the marks of the operands and of the results."""
    while True:
        forced = [*marks.state, *(False for _ in loop.results.stacked)]
        function, found = transform(loop.body.function, [False, *marks], forced)
        results = loop.results.like(found)
        if results.state == marks.state:
            return function, marks, results
        marks = _with_state(marks, results, or_)


def known_sizes(function: Function, known: Sequence[bool], axis: str | None = None) -> bool:
    """Whether all sizes that `function` binds itself can be had from the known parameters alone."""
    binders = [let.binder(symbol) for let in function.lets for symbol in sorted(let.own_symbols())]
    found = Function(function.name, function.params, function.lets, tuple(binders))
    return all(known_results(found, known, axis))


def cond_marks(let: Let, marks: Sequence[bool], axis: str | None = None) -> list[bool]:
    """Known results of a cond: those known in every branch, none if the index is not."""
    out = [marks[0]] * len(let.outs)
    for branch in let.attributes["branches"]:
        out = [a and b for a, b in zip(out, known_results(branch, marks[1:], axis))]
    return out
