"""Batching: a program over one example becomes a program over many.

In: a Function, the batch size (a dim), and which parameters have a leading batch axis. Out: a Function of the
same form, and which results have a leading batch axis. The batch axis is always axis 0 here; `vmap` moves
axes outside.

    def f(x: f64, y: f64):             def batched_f(x: f64[b], y: f64):
        z: f64 = mul(x, y)      ->         y_b: f64[b] = broadcast(y, shape=(b,), axes=())
        return z                           z: f64[b] = mul(x, y_b)
                                           return z

Where lanes would part ways (a predicate or a size that differs by lane, an ordered effect) the Lets concerned
go into one parallel loop over lanes, the lane loop: each lane has its own branches and trip counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from metaphrase.core.build import Builder
from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Function, Let, Roles, Var
from metaphrase.core.primitive import ByTransform, Unsupported
from metaphrase.core.types import Array, i64, type_symbols
from metaphrase.ops.families import expand_batch
from metaphrase.ops.regions import cond as cond_primitive
from metaphrase.ops.regions import loop as loop_primitive
from metaphrase.ops.shape import permute
from metaphrase.source import ShapeError, UnsupportedError

from .common import has_effect, inline, variables
from .lanes import convex_group, lets_of
from .marks import known_results, loop_marks


def batch(
    function: Function, size: DimLike, batched: Sequence[bool], instantiate: Sequence[bool] | None = None
) -> tuple[Function, list[bool]]:
    """The batched program, and which results are batched. `instantiate` forces results to be."""
    return _Batcher(inline(function), size, list(batched)).run(instantiate)


class _Batcher:
    def __init__(self, function: Function, size: DimLike, batched: list[bool]):
        self.function, self.size = function, size
        self.builder = Builder(f"batched_{function.name}")
        self.env: dict[Var, Atom] = {}
        self.batched: set[Var] = set()
        for param, marked in zip(function.params, batched, strict=True):
            type_ = Array(param.type.dtype, (size, *param.type.dims)) if marked else param.type
            self.env[param] = self.builder.parameter(param.name, type_)
            if marked:
                self.batched.add(param)

    def run(self, instantiate: Sequence[bool] | None) -> tuple[Function, list[bool]]:
        todo: deque[Let | list[Let]] = deque(self.function.lets)
        prints = any(map(_ordered, self.function.lets))
        with self.builder:
            while todo:
                item = todo.popleft()
                self.builder.span = item[0].span if isinstance(item, list) else item.span
                if isinstance(item, list):
                    self._lane_loop(item, todo)
                elif prints and has_effect(item):  # lane by lane: all that a lane prints, then its failure
                    group, before, after = convex_group(item, list(todo), _has_effect)
                    todo = deque([*before, group, *after])
                elif not any(self.marks(item)):
                    self._copy(item)
                elif self._parts_lanes(item):
                    group, before, after = convex_group(item, list(todo))
                    todo = deque([*before, group, *after])
                else:
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
        if let.primitive.name == "loop":
            condition = let.attributes["cond"]
            if not let.own_symbols():
                return False
            if not all(loop_marks(let, [not m for m in marks])[1][: len(let.own_symbols())]):
                return True
            try:
                *_, consts, state = _settled(self.size, let, marks)
            except ShapeError as error:
                if error.code == "vmap-size":  # the length of a segment differs from lane to lane
                    return True
                raise
            if condition is None:
                return False
            carries = state[: let.attributes["roles"].carries]
            return batch(condition, self.size, [False, *consts, *carries])[1][0]
        return bool(let.own_symbols())

    def _rule(self, let: Let) -> None:
        rule = let.primitive.batch
        args, marks = tuple(map(self.value, let.args)), self.marks(let)
        if rule is ByTransform:
            outs, out_marks = _REGIONS[let.primitive.name](self.size, let, args, marks)
        elif isinstance(rule, Unsupported):
            raise UnsupportedError(f"{let.primitive.name} can't be batched: {rule.why}", let.span)
        else:
            outs, out_marks = rule(self.size, args, marks, **let.attributes)
            if not let.primitive.multiple:
                outs, out_marks = (outs,), (out_marks,)
        self.define(let, outs, out_marks)

    def _lane_loop(self, group: list[Let], after: Sequence[Let | list[Let]]) -> None:
        inside = {v for let in group for v in let.outs}
        free = list(dict.fromkeys(a for let in group for a in variables(let.args) if a not in inside))
        read: set[Var] = set(variables(self.function.results))
        for item in after:
            for let in item if isinstance(item, list) else [item]:
                read.update(variables(let.args))
        leaving = [v for let in group for v in let.outs if v in read]
        local = {s for let in group for s in let.own_symbols()}
        for var in leaving:
            if type_symbols(var.type.plain) & local:
                raise ShapeError(
                    "the size of this array differs from lane to lane, so it can't leave vmap",
                    group[0].span,
                    code="vmap-size",
                    remedy="reduce it to a size that all lanes share inside the function",
                )
        consts = [v for v in free if v not in self.batched]
        rows = [v for v in free if v in self.batched]
        body = Function("lane", (Var("lane_index", Array(i64)), *consts, *rows), tuple(group), tuple(leaving))
        values = loop_primitive(
            *map(self.value, consts),
            *map(self.value, rows),
            body=body,
            cond=None,
            length=self.size,
            roles=Roles(len(consts), 0, 0, len(rows)),
            parallel=True,
        )
        for var, value in zip(leaving, values):
            value.name = var.name
            self.env[var] = value
            self.batched.add(var)


def _has_effect(item: Let | list[Let]) -> bool:
    return any(map(has_effect, lets_of(item)))


def _ordered(let: Let) -> bool:
    return let.primitive.effect == "ordered" or any(_ordered(x) for r in let.regions() for x in r.lets)


def _settled(size: DimLike, let: Let, marks: list[bool]) -> tuple:
    """(batched body, which results of it are batched, which consts, which carries and accumulators)."""
    roles: Roles = let.attributes["roles"]
    body = let.attributes["body"]
    fixed, _ = loop_marks(let, [not m for m in marks])
    consts, carries, accumulators, rows = (list(m) for m in roles.parts([not m for m in fixed]))
    kept = roles.carries + roles.accumulators
    state = [*carries, *accumulators]
    while True:  # the rules may batch more than dependence says
        inner, out = batch(
            body, size, [False, *consts, *state, *rows], [*state, *([False] * (len(body.results) - kept))]
        )
        if out[:kept] == state:
            return inner, out, consts, state
        state = [a or b for a, b in zip(state, out)]


def _loop(size: DimLike, let: Let, args: tuple, marks: list[bool]) -> tuple:
    attributes = dict(let.attributes)
    roles: Roles = attributes["roles"]
    body, condition = attributes["body"], attributes["cond"]
    kept = roles.carries + roles.accumulators
    inner, out, const_marks, state = _settled(size, let, marks)
    carries: Sequence[Atom]
    accumulators: Sequence[Atom]
    rows: Sequence[Atom]
    consts, carries, accumulators, rows = roles.parts(args)
    was = roles.parts(marks)
    carries = [expand_batch(size, a, w) if m else a for a, w, m in zip(carries, was[1], state)]
    accumulators = [
        expand_batch(size, a, w) if m else a for a, w, m in zip(accumulators, was[2], state[roles.carries :])
    ]
    rows = [_swap(a) if m else a for a, m in zip(rows, was[3])]
    with Builder(body.name) as builder:  # a segment's first axis is its length
        builder.params, builder.lets = list(inner.params), list(inner.lets)
        cut = len(body.results) - roles.segments
        attributes["body"] = builder.function(
            [_swap(r) if k >= cut and m else r for k, (r, m) in enumerate(zip(inner.results, out))]
        )
    if condition is not None:
        attributes["cond"], _ = batch(condition, size, [False, *const_marks, *state[: roles.carries]])
    outs = list(loop_primitive(*consts, *carries, *accumulators, *rows, **attributes))
    first = len(let.own_symbols())
    for k in range(first + kept, len(outs)):
        if out[k - first]:
            outs[k] = _swap(outs[k])
    return outs, [*([False] * first), *state, *out[kept:]]


def _swap(x: Atom) -> Atom:
    """Exchange the first two axes: batch and iteration."""
    return permute(x, axes=(1, 0, *range(2, x.type.ndim)))


def _cond(size: DimLike, let: Let, args: tuple, marks: list[bool]) -> tuple:
    branches = let.attributes["branches"]
    out = [False] * len(let.outs)
    for branch in branches:
        out = [a or not b for a, b in zip(out, known_results(branch, [not m for m in marks[1:]]))]
    while True:
        inner = [batch(branch, size, marks[1:], out) for branch in branches]
        found = [any(m) for m in zip(*(made[1] for made in inner))] if out else []
        if found == out:
            break
        out = found
    new = tuple(Function(b.name, f.params, f.lets, f.results) for b, (f, _) in zip(branches, inner))
    return cond_primitive(*args, branches=new), out


_REGIONS = {"loop": _loop, "cond": _cond}
