"""Collectives that all lanes come by: out of branches that lanes take differently, and out of `while`s that they leave
at different times.

In: a program as it was staged, before derivatives are taken of it and before it is batched. Out: the same meaning,
where a collective stands behind no test that may differ from lane to lane of its axis. Every lane takes part in a
collective of a branch, those too that go the other way: what leads to it moves in front of the branch, the rest stays.
A lane that has left a loop takes part with what it had when it left.

    if x > 0:                          s = psum(x * x)           # of all lanes
        y = f(x) / psum(x * x)   ->    if x > 0:
                                           y = f(x) / s

    while c(x):                        going = c(x)
        x = psum(f(x))           ->    while psum(going) > 0:
                                           if going:             # and then psum moves in front of this branch
                                               x = psum(f(x))
                                               going = c(x)

What leads to a collective and may fail, prints, reads or stores at a computed place, or binds a size stays where it is:
it runs for lanes that come by only. If these differ when the program is batched, that is refused there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metaphrase.core.axes import NamedAxis
from metaphrase.core.build import Builder, literal
from metaphrase.core.dims import Sym, fresh_symbol
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Loop, Parts, Step
from metaphrase.core.types import Array, Size, bool_, i64
from metaphrase.ops.arithmetic import add
from metaphrase.ops.collectives import axes_of, named_in, psum
from metaphrase.ops.compare import gt, lt
from metaphrase.ops.regions import cond
from metaphrase.ops.shape import convert

from .common import variables
from .lanes import operands_of, results_of
from .marks import add_unknown, known_results, loop_marks


def in_step(function: Function, axes: Sequence[NamedAxis]) -> Function:
    """See the head of this file. `axes`: those that the function is mapped over."""
    for axis in axes:
        function = _Stepper(axis).run(function, [False] * len(function.params))
    return function


class _Stepper:
    """What is done for the lanes of one axis."""

    def __init__(self, axis: NamedAxis):
        self.axis, self.label = axis, axis.label

    def run(self, function: Function, same: Sequence[bool]) -> Function:
        """`same`: which parameters are the same in all lanes."""
        if self.label not in named_in(function):
            return function
        differs = {p for p, s in zip(function.params, same, strict=True) if not s}
        read = {*variables(function.results), *(a for let in function.lets for a in variables(let.args))}
        counts: dict[str, Atom] = {}  # the numbers that sizes are which differ from lane to lane
        with Builder(function.name) as builder:
            builder.params = list(function.params)
            for let in function.lets:
                builder.span = let.span
                marks = [a not in differs for a in let.args]
                add_unknown(let, differs, self.label)
                if let.primitive.name == "as_dim" and let.out in differs:
                    counts[let.attributes["size"]] = let.args[0]
                if self.label in axes_of(let):
                    let = self._let(builder, let, marks, read, counts)
                builder.lets.append(let)
            return builder.function(function.results)

    def _let(self, builder: Builder, let: Let, same: list[bool], read: set[Var], counts: dict[str, Atom]) -> Let:
        """What stands for a Let with a collective in it, behind what it adds to `builder`."""
        if let.primitive.name == "cond":
            return self._cond(builder, let, same)
        if let.primitive.name == "call":
            return _changed(let, {"function": self.run(let.attributes["function"], same)})
        if let.primitive.name != "loop":
            return let
        loop = Loop.of(let)
        uncounted = not (loop.results.stacked or loop.args.accumulators or any(v in read for v in loop.sizes))
        limit = counts.get(str(loop.length)) if loop.condition is None else None
        if limit is not None and uncounted and not (loop.reverse or loop.args.rows):
            place = len(loop.args.consts)
            loop, same = _with_test(loop, limit), [*same[:place], False, *same[place:]]
        return self._loop(builder, loop, same, uncounted).let()

    # ---- branches -------------------------------------------------------------------------------------

    def _cond(self, builder: Builder, let: Let, same: Sequence[bool]) -> Let:
        """The branch behind its collectives, which are in front of it; what these give are more operands."""
        branches = [self.run(branch, same[1:]) for branch in let.attributes["branches"]]
        moved = [[] if same[0] else self._leading(branch) for branch in branches]
        if not all(_runs_anywhere(let) for lets in moved for let in lets):
            return _changed(let, {"branches": tuple(branches)})
        args = list(let.args)
        given: list[list[Var]] = []
        for branch, lets in zip(branches, moved):
            given.append(_handed_on(branch, lets))
            first = Function(branch.name, branch.params, tuple(lets), tuple(given[-1]))
            args += builder.replay(first, let.args[1:])
        made = []
        for k, branch in enumerate(branches):
            others = [v if j == k else Var(v.name, v.type.plain) for j, vs in enumerate(given) for v in vs]
            rest = tuple(let for let in branch.lets if let not in moved[k])
            made.append(Function(branch.name, (*branch.params, *others), rest, branch.results))
        return Let(let.outs, let.primitive, tuple(args), {"branches": tuple(made)}, let.span)

    def _leading(self, branch: Function) -> list[Let]:
        """The collectives of a branch, and what leads to them, in order."""
        needed: set[Var | str] = set()
        found: list[Let] = []
        for let in reversed(branch.lets):
            if self.label in axes_of(let) or any(x in needed for x in results_of(let)):
                found.append(let)
                needed.update(operands_of(let))
        return found[::-1]

    # ---- loops ----------------------------------------------------------------------------------------

    def _loop(self, builder: Builder, loop: Loop, same: Sequence[bool], uncounted: bool) -> Loop:
        """The loop, left by all lanes together where they would leave it at different times, if it can be: `uncounted`
        says that nobody asks how many times it ran."""
        known = loop_marks(loop, loop.args.like(same), self.label)[0]
        condition = loop.condition
        if condition is not None and not known_results(condition.function, [True, *known.asked], self.label)[0]:
            late = loop.length is not None and not all(map(_runs_anywhere, condition.lets))
            if uncounted and not late:
                place = len(loop.args.asked)
                loop = self._left_together(builder, loop, condition)
                known = loop_marks(loop, loop.args.like([*same[:place], False, *same[place:]]), self.label)[0]
        condition = loop.condition and loop.condition.like(self.run(loop.condition.function, [True, *known.asked]))
        return replace(loop, body=loop.body.like(self.run(loop.body.function, [True, *known])), condition=condition)

    def _left_together(self, builder: Builder, loop: Loop, condition: Step) -> Loop:
        """The loop that goes on while any lane does. A lane that doesn't keeps what it has."""
        (start,) = builder.replay(condition.function, (literal(0, i64), *loop.args.asked))
        consts, carries, rows = loop.params.consts, loop.params.carries, loop.params.rows
        with Builder(loop.body.function.name) as going_on:
            going_on.params = [loop.index, *consts, *carries, *rows]
            going_on.lets = list(loop.body.lets)
            going_on.span = loop.span
            later = add(loop.index, literal(1, i64))
            (again,) = going_on.replay(condition.function, (later, *consts, *loop.results.carries))
            on = going_on.function((*loop.results.carries, again))
        held = [Var(p.name, p.type) for p in on.params]
        off = Function("left", tuple(held), (), (*held[1 + len(consts) :][: len(carries)], literal(False)))
        with Builder(loop.body.function.name) as body:
            body.span = loop.span
            index, *given = (body.parameter(p.name, p.type) for p in (loop.index, *consts, *carries))
            going = body.parameter("going", Array(bool_))
            params = Parts(tuple(given[: len(consts)]), (*given[len(consts) :], going), (), ())
            params = params.replace(rows=[body.parameter(p.name, p.type) for p in rows])
            outs = cond(going, index, *given, *params.rows, branches=(off, on))
            step = Step(body.function(outs), params, Parts(carries=outs))
        with Builder(condition.function.name) as asked:
            asked.span = loop.span
            index, *given = (asked.parameter(p.name, p.type) for p in (loop.index, *consts, *carries))
            going = asked.parameter("going", Array(bool_))
            lanes = psum(convert(going, dtype=i64), axis_name=self.label, axis_size=self.axis.size)
            asks = Step(asked.function([gt(lanes, literal(0, i64))]), Parts(params.consts, params.carries))
        args = loop.args.replace(carries=(*loop.args.carries, start))
        outs = loop.outs.replace(carries=(*loop.outs.carries, Var("going", Array(bool_))))
        return replace(loop, args=args, body=step, condition=asks, outs=outs)


def _with_test(loop: Loop, limit: Atom) -> Loop:
    """The loop of a known length as one that asks each time."""
    size, end = fresh_symbol("trips"), Var("limit", Array(i64))
    params = loop.params.replace(consts=(*loop.params.consts, end))
    with Builder("test") as test:
        test.span = loop.span
        index = test.parameter(loop.index.name, loop.index.type)
        asked = params.asked.like([test.parameter(p.name, p.type) for p in params.asked])
        condition = Step(test.function([lt(index, asked.consts[-1])]), asked)
    args = loop.args.replace(consts=(*loop.args.consts, limit))
    more = {**loop.more, "size": size}
    trips = Var("trips", Size(Sym(size)))
    body = loop.body.changed(params=params)
    return replace(loop, args=args, body=body, condition=condition, length=None, more=more, sizes=(trips,))


def _changed(let: Let, attributes: dict) -> Let:
    return Let(let.outs, let.primitive, let.args, {**let.attributes, **attributes}, let.span)


def _handed_on(branch: Function, moved: Sequence[Let]) -> list[Var]:
    """What of these operations' results the rest of the branch reads."""
    rest = [let for let in branch.lets if let not in moved]
    read = {*variables(branch.results), *(a for let in rest for a in variables(let.args))}
    return [v for let in moved for v in let.outs if v in read]


def _runs_anywhere(let: Let) -> bool:
    """Whether an operation may run in a lane that does not come by: it ends, can't fail, and reads and stores at
    places that are there."""
    if let.effects or let.own_symbols() or let.attributes.get("cond") is not None:
        return False
    places = let.args[1:] if let.primitive.takes else let.args[2:] if let.primitive.stores else ()
    inside = all(_runs_anywhere(inner) for region in let.regions() for inner in region.lets)
    return inside and all(isinstance(place, Literal) for place in places)


__all__ = ["in_step"]
