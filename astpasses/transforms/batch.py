"""Batching: a program over one example becomes a program over many.

In: a Function, the batch size (a dim), and which parameters have a leading batch axis. Out: a Function of the
same form, and which results have a leading batch axis. The batch axis is always axis 0 here; `vmap` moves
axes outside.

    def f(x: f64, y: f64):             def batched_f(x: f64[b], y: f64):
        z: f64 = mul(x, y)      ->         y_b: f64[b] = broadcast(y, shape=(b,), axes=())
        return z                           z: f64[b] = mul(x, y_b)
                                           return z

`axis` is the label of the named axis that this is: collectives over it become operations on the batch axis
(`ops/collectives.py`).

Where lanes would part ways (a predicate or a size that differs by lane, an ordered effect) the Lets concerned
go into one parallel loop over lanes, the lane loop: each lane has its own branches and trip counts.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metaphrase.core.build import Builder, literal
from metaphrase.core.calls import derived, written_out
from metaphrase.core.custom import CALLS
from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts, Step
from metaphrase.core.primitive import ByTransform, Unsupported
from metaphrase.core.types import Array, i64, type_symbols
from metaphrase.ops.arrays import iota
from metaphrase.ops.collectives import MAPPED, axes_of, is_over
from metaphrase.ops.families import expand_batch
from metaphrase.ops.regions import cond as cond_primitive
from metaphrase.ops.regions import loop as loop_primitive
from metaphrase.ops.shape import broadcast, lanes_first, permute
from metaphrase.source import ShapeError, UnsupportedError

from . import custom, implicit
from .common import variables
from .failing import in_lane, takes_lane, with_lane
from .lanes import convex_group, lets_of
from .marks import cond_marks, loop_marks, with_settled_state


def batch(
    function: Function,
    size: DimLike,
    batched: Sequence[bool],
    instantiate: Sequence[bool] | None = None,
    axis: str | None = None,
) -> tuple[Function, list[bool]]:
    """The batched program, and which results are batched. `instantiate` forces results to be."""
    return _Batcher(written_out(function), size, list(batched), axis).run(instantiate)


class _Batcher:
    def __init__(self, function: Function, size: DimLike, batched: list[bool], axis: str | None):
        self.function, self.size, self.axis = function, size, axis
        self.batch = functools.partial(batch, axis=axis)
        self.builder = Builder(f"batched_{function.name}")
        self.env: dict[Var, Atom] = {}
        self.batched: set[Var] = set()
        self.bodies: dict[Let, tuple] = {}  # of loops: each is batched once, so that nests take linear time
        for param, marked in zip(function.params, batched, strict=True):
            type_ = Array(param.type.dtype, (size, *param.type.dims)) if marked else param.type
            self.env[param] = self.builder.parameter(param.name, type_)
            if marked:
                self.batched.add(param)

    def run(self, instantiate: Sequence[bool] | None) -> tuple[Function, list[bool]]:
        todo: deque[Let | list[Let]] = deque(self.function.lets)
        prints = any("ordered" in let.effects for let in self.function.lets)
        with self.builder:
            while todo:
                item = todo.popleft()
                if isinstance(item, list):
                    self.builder.span = item[0].span and replace(item[0].span, lanes=0, by_lane=True)
                    self._lane_loop(item, todo)
                elif prints and item.effects:  # lane by lane: all that a lane prints, then its failure
                    group, before, after = convex_group(item, list(todo), _has_effect)
                    todo = deque([*before, group, *after])
                elif is_over(item, self.axis):
                    self._collective(item)
                elif not any(self.marks(item)) and not self._collects(item):
                    self._copy(item)
                elif self._parts_lanes(item):
                    group, before, after = convex_group(item, list(todo))
                    todo = deque([*before, group, *after])
                else:
                    self.builder.span = item.span and replace(item.span, lanes=item.span.lanes + 1)
                    self._rule(item)
            self.builder.span = None
            results: list[Atom] = []
            marks = []
            for k, result in enumerate(self.function.results):
                value, marked = self.value(result), isinstance(result, Var) and result in self.batched
                if instantiate is not None and instantiate[k] and not marked:
                    value, marked = expand_batch(self.size, value, False), True
                results.append(value)
                marks.append(marked)
            return self.builder.function(results), marks

    def value(self, atom: Atom) -> Atom:
        return self.env.get(atom, atom) if isinstance(atom, Var) else atom

    def marks(self, let: Let) -> list[bool]:
        return [isinstance(a, Var) and a in self.batched for a in let.args]

    def define(self, let: Let, values: Sequence[Atom], marks: Sequence[bool]) -> None:
        """Record what stands for the results of `let`."""
        for var, value, marked in zip(let.outs, values, marks, strict=True):
            self.env[var] = value
            if isinstance(value, Var) and any(value in made.outs for made in self.builder.lets[-2:]):
                value.name = var.name
            if marked:
                self.batched.add(var)

    def _copy(self, let: Let) -> None:
        outs = tuple(Var(v.name, v.type) for v in let.outs)
        args = tuple(map(self.value, let.args))
        self.builder.lets.append(Let(outs, let.primitive, args, let.attributes, let.span))
        self.define(let, outs, [False] * len(outs))

    def _parts_lanes(self, let: Let) -> bool:
        """Whether lanes would go different ways in `let`."""
        marks = self.marks(let)
        if let.primitive.name == "cond":
            return marks[0]
        if let.primitive.name == "pure_callback":
            return let.attributes["vmap_method"] == "sequential"
        if let.primitive.name == "loop":
            return bool(let.own_symbols()) and self._parts_iterations(let, marks)
        return bool(let.own_symbols() or let.handed_symbols())

    def _collects(self, let: Let) -> bool:
        """Whether there is a collective over the axis in a Let."""
        return self.axis is not None and self.axis in axes_of(let)

    def _collective(self, let: Let) -> None:
        batched = self.marks(let)
        value, mark = MAPPED[let.primitive.name](self.size, *map(self.value, let.args), *batched, **let.attributes)
        self.define(let, (value,), (mark,))

    def _body(self, let: Let, marks: list[bool]) -> tuple[Function, Parts[bool], Parts[bool]]:
        """The batched body of a loop, which operands and which results are batched: the rules may batch more than
        dependence says."""
        if let not in self.bodies:
            loop = Loop.of(let)
            operands = self._same_for_all(loop, marks)[0].map(lambda same: not same)
            self.bodies[let] = with_settled_state(
                loop, operands, lambda body, given, forced: self.batch(body, self.size, given, forced)
            )
        return self.bodies[let]

    def _same_for_all(self, loop: Loop, marks: list[bool]) -> tuple[Parts[bool], list[bool], Parts[bool]]:
        """`loop_marks` of what is the same for all lanes."""
        return loop_marks(loop, loop.args.like(not m for m in marks), self.axis)

    def _condition(self, condition: Step, operands: Parts[bool]) -> tuple[Function, list[bool]]:
        return self.batch(condition.function, self.size, [False, *operands.asked])

    def _parts_iterations(self, let: Let, marks: list[bool]) -> bool:
        """Whether the number of iterations, or the length of a segment, differs from lane to lane."""
        loop = Loop.of(let)
        if not all(self._same_for_all(loop, marks)[1]):
            return True
        try:
            _, operands, _ = self._body(let, marks)
        except ShapeError as error:
            if error.code == "vmap-size":  # the length of a segment
                return True
            raise
        return loop.condition is not None and self._condition(loop.condition, operands)[1][0]

    def _rule(self, let: Let) -> None:
        dims: Any = let.primitive.dims
        args, marks = tuple(map(self.value, let.args)), self.marks(let)
        if takes_lane(let):
            shape = (self.size, *let.args[0].type.dims)
            number = broadcast(iota(length=self.size, dtype=i64), shape=shape, axes=(0,))
            self.env[number] = number
            self.batched.add(number)
            let = with_lane(let, number, self.axis)
            args, marks = tuple(map(self.value, let.args)), self.marks(let)
        if dims is ByTransform:
            outs, out_marks = self._region(let, args, marks)
        elif isinstance(dims, Unsupported):
            raise UnsupportedError(f"{let.primitive.name} can't be batched: {dims.why}", let.span)
        else:
            written = let.primitive.batch
            made = written(self.size, args, marks, **let.attributes) if written is not None else None
            outs, out_marks = made or _by_dims(self.size, let, args, marks)
            if not isinstance(outs, tuple):
                outs, out_marks = (outs,), (out_marks,)
        self.define(let, outs, out_marks)

    def _loop(self, let: Let, args: tuple, marks: list[bool]) -> tuple:
        inner, operands, results = self._body(let, marks)
        loop = Loop.of(let)
        was = loop.args.like(marks)
        given = loop.args.like(args).map(lambda a, m, w: expand_batch(self.size, a, w) if m else a, operands, was)
        given = given.replace(rows=map(_swapped, given.rows, was.rows))
        with Builder(inner.name) as builder:  # a segment's first axis is its length
            builder.lets = list(inner.lets)
            body = loop.body.like(inner)
            segments = [*map(_swapped, body.results.segments, results.segments)]
        body = loop.body.changed(builder.lets, body.params, body.results.replace(segments=segments), body.index)
        condition = loop.condition
        if condition is not None:
            condition = condition.like(self._condition(condition, operands)[0])
        new = replace(loop, args=given, body=body, condition=condition).bind()
        outs = new.outs.replace(
            rows=map(_swapped, new.outs.rows, results.rows), segments=map(_swapped, new.outs.segments, results.segments)
        )
        return [*new.sizes, *outs], [*(False for _ in new.sizes), *results]

    def _cond(self, let: Let, args: tuple, marks: list[bool]) -> tuple:
        branches = let.attributes["branches"]
        out = [not same for same in cond_marks(let, [True, *(not m for m in marks[1:])], self.axis)]
        while True:
            inner = [self.batch(branch, self.size, marks[1:], out) for branch in branches]
            found = [any(m) for m in zip(*(made[1] for made in inner))] if out else []
            if found == out:
                break
            out = found
        new = tuple(Function(b.name, f.params, f.lets, f.results) for b, (f, _) in zip(branches, inner))
        return cond_primitive(*args, branches=new), out

    def _call(self, let: Let, args: tuple, marks: list[bool]) -> tuple:
        function: Function = let.attributes["function"]
        key = ("batch", self.size, self.axis, *marks)
        inner, out = derived(function, key, lambda: self.batch(function, self.size, marks))
        return let.primitive(*args, **{**let.attributes, "function": inner}), out

    def _region(self, let: Let, args: tuple, marks: list[bool]) -> tuple:
        own = {"loop": self._loop, "cond": self._cond, **dict.fromkeys(CALLS, self._call)}.get(let.primitive.name)
        if own is not None:
            return own(let, args, marks)
        return (custom.BATCH | implicit.BATCH)[let.primitive.name](self.batch, self.size, let, args, marks)

    def _refuse_collectives(self, group: list[Let]) -> None:
        """Lanes that run one after the other can't wait for one another."""
        for let in filter(self._collects, group):
            while not is_over(let, self.axis):
                let = next(inner for region in let.regions() for inner in region.lets if self._collects(inner))
            raise UnsupportedError(
                f"this collective needs all lanes of the axis {self.axis!r}, and these part ways around it: what leads "
                "to it may fail, prints, reads at a computed place, or has a size that differs from lane to lane",
                let.span,
                code="collective",
                remedy="call the collective before the branch or the loop, of values of one size",
            )

    def _lane_loop(self, group: list[Let], after: Sequence[Let | list[Let]]) -> None:
        self._refuse_collectives(group)
        behind = (a for item in after for let in lets_of(item) for a in let.args)
        free, leaving = _interface(group, {*self.function.results, *behind})
        consts = [v for v in free if v not in self.batched]
        rows = [v for v in free if v in self.batched]
        params = Parts(consts=tuple(consts), rows=tuple(rows))
        lane = Var("lane_index", Array(i64))
        body = Function("lane", (lane, *params), tuple(in_lane(group, lane, self.axis)), tuple(leaving))
        step = Step(body, params, Parts(rows=tuple(leaving)))
        lanes = Loop(loop_primitive, params.map(self.value), step, None, self.size, {"parallel": True})
        for var, value in zip(leaving, lanes.bind().outs):
            value.name = var.name
            self.env[var] = value
            self.batched.add(var)


def _by_dims(size: DimLike, let: Let, args: Sequence[Atom], batched: Sequence[bool]) -> tuple:
    """The rule that follows from how dims relate: lanes are one factor more, the first of each operand."""
    primitive, dims = let.primitive, let.primitive.dims
    arrays = len(args) if dims.arrays is None else dims.arrays
    assert not any(batched[arrays:]), f"{primitive} has no rule for lanes of operands {batched}"
    lanes = [b or not dims.alone for b in batched[:arrays]]
    operands = [expand_batch(size, a, b) if lane else a for a, b, lane in zip(args, batched, lanes)]
    rest = [literal(0, i64)] * dims.starts + list(args[arrays:])
    attributes = dims.attributes(let.attributes, size, lanes)
    made = primitive(*operands, *rest, **attributes)
    outs = made if primitive.multiple else (made,)
    factors, results = dims.relation(*(a.type for a in (*operands, *rest)), **attributes)
    lane = factors[lanes.index(True)][0]
    outs = tuple(lanes_first(out, list(result).index(lane)) for out, result in zip(outs, results))
    return outs, (True,) * len(outs)


def _interface(group: Sequence[Let], read: set[Atom]) -> tuple[list[Var], list[Var]]:
    """What a lane loop of these Lets takes, and what of theirs is read behind it."""
    inside = {v for let in group for v in let.outs}
    free = list(dict.fromkeys(a for let in group for a in variables(let.args) if a not in inside))
    leaving = [v for let in group for v in let.outs if v in read]
    local = {s for let in group for s in let.own_symbols()}
    if any(type_symbols(var.type.plain) & local for var in leaving):
        raise ShapeError(
            "the size of this array differs from lane to lane, so it can't leave vmap",
            group[0].span,
            code="vmap-size",
            remedy="reduce it to a size that all lanes share inside the function",
        )
    return free, leaving


def _has_effect(item: Let | list[Let]) -> bool:
    return any(let.effects for let in lets_of(item))


def _swapped(x: Atom, marked: bool) -> Atom:
    """What is batched with its first two axes exchanged: batch and iteration."""
    return permute(x, axes=(1, 0, *range(2, x.type.ndim))) if marked else x
