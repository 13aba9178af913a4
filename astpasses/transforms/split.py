"""Splitting a program by what is known (unzipping; Radul et al., You Only Linearize Once, POPL 2023).

In: a Function and which of its parameters are known. Out: a known Function, whose extra results are
residuals, and a linear Function of residuals and the unknown parameters.

    def f(x, x_dot):                 def known(x):               def linear(c, x_dot):
        y = sin(x)                       y = sin(x)                  y_dot = mul(x_dot, c)
        c = cos(x)              ->       c = cos(x)                  return y_dot
        y_dot = mul(x_dot, c)            return y, c
        return y, y_dot

A `while` becomes a known `while` that stacks what its linear part needs, and a linear loop over those rows.
What is cheap is computed again from what is saved anyway. What has a run-time size of its own inside a loop
leaves it as a segment: the arrays of all iterations behind one another, and a row of lengths; the linear loop
reads its part back. What has one inside a branch, or a parallel loop, can't leave, and is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metaphrase.core.build import Builder, fresh_copy, literal
from metaphrase.core.calls import derived, written_out
from metaphrase.core.custom import RULED, as_call
from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Parts
from metaphrase.core.policies import Policy
from metaphrase.core.primitive import Primitive
from metaphrase.core.stores import written
from metaphrase.core.types import i64, type_symbols
from metaphrase.late import dataclass
from metaphrase.ops.arithmetic import sub
from metaphrase.ops.arrays import as_dim, undefined
from metaphrase.ops.indexing import slice as slice_primitive
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.regions import call
from metaphrase.ops.scan import cumsum
from metaphrase.ops.shape import broadcast

from . import stretches
from .callees import split_callee
from .common import select_marked, variables
from .marks import cond_marks, loop_marks
from .residuals import Inside, Known, Residuals
from .segments import Segments


@dataclass(frozen=True)
class Split:
    """`known(*known params) -> (*known results, *residuals)`; `linear(*residuals, *unknown params) -> unknown
    results`.

    `residuals` are the variables of the split function that cross over.
    """

    known: Function
    linear: Function
    results_known: list[bool]
    residuals: tuple[Var, ...]
    settled: dict[Var, int]  # residuals that can be read in what the loop leaves of the carry of that number


def split(
    function: Function,
    known: Sequence[bool],
    *,
    segments: bool = True,
    results_known: Sequence[bool] | None = None,
    inside: Inside | None = None,
) -> Split:
    """See the head of this file. `segments`: whether loops may have them; where many lanes run a loop side by side,
    what they save lies in step only without. `inside`: the region that `function` is.

    `results_known` may demote results: a known one that is wanted from the linear side becomes a residual.
    """
    return _Splitter(written_out(function), list(known), segments, inside).run(results_known)


class _Splitter:
    def __init__(self, function: Function, known: list[bool], segments: bool, inside: Inside | None):
        self.function, self.marks, self.segments, self.inside = function, known, segments, inside
        self.places = (inside or Inside()).places
        self.unknown = {p for p, k in zip(function.params, known, strict=True) if not k}
        self.known, self.linear_lets = Known(), list[Let]()
        self.demanded: list[Var] = []  # known variables that the linear side reads, in order of first use
        self.bulky: set[Var] = set()  # stacks of an array that a loop stores into, one a step

    def run(self, wanted: Sequence[bool] | None) -> Split:
        function = self.function
        for let in function.lets:
            self._let(let)
        results_known = [not (isinstance(r, Var) and r in self.unknown) for r in function.results]
        if wanted is not None:
            results_known = [a and b for a, b in zip(results_known, wanted)]
        linear_results = [r for r, k in zip(function.results, results_known) if not k]
        for result in variables(linear_results):
            self.demand(result)
        found = Residuals(function, self.known, self.inside, self.bulky, self.demanded, self.linear_lets)
        residuals = tuple(found.chosen)
        known_results = (*select_marked(function.results, results_known), *residuals)
        known_params = tuple(select_marked(function.params, self.marks))
        known = Function(function.name, known_params, tuple(self.known.lets), known_results)
        params = (*residuals, *(p for p, k in zip(function.params, self.marks) if not k))
        lets = (*found.again, *self.linear_lets)
        linear = Function(f"linear_{function.name}", params, lets, tuple(linear_results))
        return Split(known, linear, results_known, residuals, found.settled)

    def demand(self, atom: Any) -> None:
        """Note that the linear side reads a known variable."""
        if isinstance(atom, Var) and atom not in self.unknown:
            self.demanded.append(atom)

    def _let(self, let: Let) -> None:
        if not any(a in self.unknown for a in variables(let.args)):
            self._known(let)
        elif let.primitive.name == "loop":
            self._loop(let)
        elif let.primitive.name == "cond":
            self._cond(let)
        elif let.primitive.name == "call":
            self._linear(self._call(let))
        elif let.primitive.name == "checkpoint":
            self._checkpoint(let)
        elif let.primitive.name in RULED:  # of a tangent
            self._linear(self._call(as_call(let)))
        else:
            self._linear(let)

    def _known(self, let: Let) -> None:
        if let.span is not None and let.span.role == "tangent":  # of a rule that makes value and tangent
            let = Let(let.outs, let.primitive, let.args, let.attributes, let.span.with_role("primal"))
        self.known.add(let)
        self.places.let(let)

    def _linear(self, let: Let) -> None:
        """On the linear side; a Let that names a size bound here needs the variable that binds it."""
        for operand in self.known.operands(let):
            self.demand(operand)
        self.linear_lets.append(let)
        self.unknown.update(let.outs)

    def _made(self, primitive: Primitive, args: tuple[Atom, ...], attributes: dict[str, Any], name: str) -> Var:
        """The result of an operation on the linear side."""
        builder = Builder()
        (out,) = builder.bind(primitive, args, attributes, [name])
        self._linear(builder.lets[0])
        return out

    # -- regions ------------------------------------------------------------------------------------------

    def _loop(self, let: Let) -> None:
        """A loop that leaves the residuals of its iterations, and a linear loop that goes through them."""
        loop = Loop.of(let)
        known, _, outs_known = loop_marks(loop, loop.args.map(lambda a: a not in self.unknown))
        if (slots := stretches.slots_asked(loop, known)) != 0:
            self._loop_run_again(loop, known, outs_known, slots)
            return
        may = self.segments and not loop.parallel
        self.places.region(let, let.args, loop.body.function)
        shared = frozenset([loop.index, *loop.params.where(known).consts])
        part = split(
            loop.body.function,
            [True, *known],
            segments=may,
            results_known=[*outs_known],
            inside=Inside(loop, may, shared, self.places),
        )
        crossing = _crossing(loop, part)
        rows, bound = (*crossing.stacked, *crossing.ragged), _bound(part.known)
        if (slots := stretches.slots_within_limit(loop, known, rows, bound)) != 0:
            self._loop_run_again(loop, known, outs_known, slots)
            return
        segments = Segments(loop, outs_known, part, crossing.ragged)
        stacks = self._known_loop(loop, known, outs_known, part, crossing, segments)
        self._linear_loop(loop, known, outs_known, part, crossing, segments, stacks)

    def _loop_run_again(self, loop: Loop, known: Parts[bool], outs_known: Parts[bool], slots: DimLike) -> None:
        """A loop that leaves few states for the linear one, which runs the steps between them again."""
        part = split(loop.body.function, [True, *known], segments=self.segments, results_known=[*outs_known])
        chunk = 1 if stretches.has_slots(part.linear) else slots
        alone, again = stretches.apart(loop, known, outs_known, part)
        lets, kept = stretches.keeping(alone, slots, chunk)
        for let in lets:
            self._known(let)
        if loop.condition is not None:
            again = replace(
                again, args=again.args.replace(rows=[self._cut(row, loop.trips) for row in again.args.rows])
            )
        for let in stretches.over_stretches(again, known.carries, kept, slots, chunk):
            self._linear(let)

    def _known_loop(
        self,
        loop: Loop,
        known: Parts[bool],
        outs_known: Parts[bool],
        part: Split,
        crossing: _Crossing,
        segments: Segments,
    ) -> dict[Atom, Var]:
        """The loop without what is unknown. What it leaves of each residual, and of the lengths of segments."""
        lengths = segments.lengths(crossing.stacked)
        leaving = Parts(rows=(*crossing.stacked, *lengths), segments=crossing.ragged)
        outs, condition = loop.outs.where(outs_known), loop.condition
        lets = (*part.known.lets, *segments.lets)
        results = loop.results.where(outs_known).like(part.known.results)
        new = replace(
            loop,
            args=loop.args.where(known),
            body=loop.body.changed(lets, loop.params.where(known), results + leaving),
            condition=condition and condition.changed(params=condition.params.where(known.asked)),
            segment_sizes=segments.names,
        )
        _, stacks = new.bind(Builder()).outs.apart(outs)
        stored, origin = written(loop.body.function)
        for residual, stack in zip(leaving, stacks):
            stack.name = residual.name
            if origin.get(residual) in stored:  # to keep it for every step would take more than the steps did
                self.bulky.add(stack)
        trips = loop.sizes[: condition is not None]
        self._known(replace(new, sizes=(*trips, *segments.sizes()), outs=outs + stacks).let())
        return dict(zip(leaving, stacks))

    def _linear_loop(
        self,
        loop: Loop,
        known: Parts[bool],
        outs_known: Parts[bool],
        part: Split,
        crossing: _Crossing,
        segments: Segments,
        stacks: dict[Atom, Var],
    ) -> None:
        """The loop of what is unknown, of known length, over what the first loop leaves."""
        starts = self._starts(loop, segments, stacks)
        arg_of: dict[Atom, Atom] = dict(zip(loop.params, loop.args))
        _, params = loop.params.parted(known)
        _, args = loop.args.parted(known)
        if loop.condition is not None:
            args = args.replace(rows=[self._cut(row, loop.trips) for row in args.rows])
        _, results = loop.results.parted(outs_known)
        _, outs = loop.outs.parted(outs_known)
        reading = segments.reading(part.linear, crossing.stacked)
        zeros = [
            self._made(broadcast, (literal(0, v.type.dtype),), {"shape": v.type.dims, "axes": ()}, v.name)
            for v in reading.totals
        ]
        read = Parts(
            consts=(*crossing.invariant, *crossing.settled, *reading.flat),
            rows=(*crossing.rows, *reading.rows, *reading.starts),
        )
        read_args = Parts(
            consts=(
                *(arg_of[v] for v in crossing.invariant),
                *(loop.outs.carries[part.settled[v]] for v in crossing.settled),
                *(stacks[v] for v in crossing.ragged),
            ),
            rows=(*(arg_of[v] for v in crossing.rows), *(stacks[v] for v in crossing.stacked), *starts),
        )
        body = replace(loop.body, function=part.linear).changed(
            reading.lets,
            read + params + Parts(accumulators=tuple(reading.totals)),
            results.replace(segments=()).like(part.linear.results) + Parts(accumulators=tuple(reading.sums)),
            loop.index if loop.index in part.residuals else Var("i", loop.index.type),
        )
        new = replace(
            loop,
            args=read_args + args + Parts(accumulators=tuple(zeros)),
            body=body.like(fresh_copy(body.function)),
            condition=None,
            length=loop.trips,
            more={key: value for key, value in loop.more.items() if key != "size"},
            segment_sizes=(),
            sizes=(),
            outs=outs.replace(accumulators=(*outs.accumulators, *outs.segments), segments=()),
        )
        self._linear(new.let())

    def _starts(self, loop: Loop, segments: Segments, stacks: dict[Atom, Var]) -> list[Var]:
        """For each size of segments, the row that says where each iteration's part begins: on the linear
        side, from the lengths."""
        found = []
        for name, length in segments.length_of.items():
            lengths = stacks[length]
            if name in segments.orphans:  # no segment of that size is known: its total is
                builder = Builder()
                (total,) = builder.bind(reduce_sum, (lengths,), {"axes": (0,)}, ["total"])
                self._known(builder.lets[0])
                size = {"size": name, "counted": True}
                self._known(Let((loop.binder(name),), as_dim, (total,), size, loop.span))
            ends = self._made(cumsum, (lengths,), {"axis": 0, "reverse": loop.reverse}, "ends")
            found.append(self._made(sub, (ends, lengths), {}, "starts"))
        return found

    def _cut(self, row: Atom, trips: DimLike | None) -> Var:
        """The first `trips` rows of an unknown operand, on the linear side."""
        starts = (literal(0, i64),) * row.type.ndim
        attributes = {"shape": (trips, *row.type.dims[1:]), "step": (1,) * row.type.ndim}
        return self._made(slice_primitive, (row, *starts), attributes, getattr(row, "name", "rows"))

    def _cond(self, let: Let) -> None:
        branches: tuple[Function, ...] = let.attributes["branches"]
        operands = [a not in self.unknown for a in let.args[1:]]
        outs_known = cond_marks(let, [True, *operands])
        parts = [
            split(b, operands, segments=self.segments, results_known=outs_known, inside=Inside()) for b in branches
        ]
        slots, passed, places = _share_slots(branches, parts)

        known_branches = []
        for branch, part, place in zip(branches, parts, places):
            results = part.known.results[: sum(outs_known)]
            with Builder(branch.name) as builder:
                builder.params, builder.lets = list(part.known.params), list(part.known.lets)
                filled = [place.get(k) or undefined(dtype=t.dtype, shape=t.dims) for k, t in enumerate(slots)]
                known_branches.append(builder.function([*results, *filled]))
        names = [next((p[k].name for p in places if k in p), "residual") for k in range(len(slots))]
        known_outs, linear_outs = _parted(let.outs, outs_known)
        known_args, linear_args = _parted(let.args[1:], operands)
        stacks = [Var(name, type_) for name, type_ in zip(names, slots)]
        attributes = {"branches": tuple(known_branches)}
        self._known(Let((*known_outs, *stacks), let.primitive, (let.args[0], *known_args), attributes, let.span))

        linear_branches = []
        for branch, part, place in zip(branches, parts, places):
            saved = [place.get(k) or Var("unused", t) for k, t in enumerate(slots)]
            params = (*saved, *(branch.params[k] for k in passed), *_parted(branch.params, operands)[1])
            linear = Function(part.linear.name, params, part.linear.lets, part.linear.results)
            linear_branches.append(fresh_copy(linear))
        args = (let.args[0], *stacks, *(let.args[1 + k] for k in passed), *linear_args)
        self._linear(Let(tuple(linear_outs), let.primitive, args, {"branches": tuple(linear_branches)}, let.span))

    def _call(self, let: Let, policy: Policy = ("everything_saveable",)) -> Let:
        """The call of what is known, and that of the linear part, which it returns."""
        function: Function = let.attributes["function"]
        operands = tuple(a not in self.unknown for a in let.args)
        known, linear, outs_known, passed = derived(
            function,
            ("split", operands, self.segments, policy),
            lambda: split_callee(split, function, operands, self.segments, policy),
        )
        known_outs, linear_outs = _parted(let.outs, outs_known)
        known_args, linear_args = _parted(let.args, operands)
        saved = [Var(v.name, v.type.plain) for v in known.results[len(known_outs) :]]
        self._known(Let((*known_outs, *saved), call, tuple(known_args), {"function": known}, let.span))
        args = (*saved, *(let.args[k] for k in passed), *linear_args)
        return Let(tuple(linear_outs), call, args, {"function": linear}, let.span)

    def _checkpoint(self, let: Let) -> None:
        """The linear part is a checkpoint, too: it computes again what the policy does not keep."""
        linear = self._call(let, let.attributes["policy"])
        attributes = {**let.attributes, "function": linear.attributes["function"], "again": True}
        self._linear(Let(linear.outs, let.primitive, linear.args, attributes, let.span))


def _parted(items: Sequence[Any], marks: Sequence[bool]) -> tuple[list, list]:
    """Those that are marked, and the others."""
    return select_marked(items, marks), select_marked(items, [not m for m in marks])


@dataclass(frozen=True)
class _Crossing:
    """How the residuals of the body of a loop reach the body of the linear loop."""

    invariant: tuple[Var, ...]  # constants of both loops
    settled: tuple[Var, ...]  # constants: what the first loop leaves of a carry
    ragged: tuple[Var, ...]  # constants, of which an iteration reads its part: segments that the first loop leaves
    rows: tuple[Var, ...]  # rows of both loops
    stacked: tuple[Var, ...]  # rows that the first loop leaves


def _crossing(loop: Loop, part: Split) -> _Crossing:
    inside = _bound(part.known)
    kinds: dict[str, list[Var]] = {kind: [] for kind in ("invariant", "settled", "ragged", "rows", "stacked")}
    for residual in part.residuals:
        if residual is loop.index:
            continue
        if residual in loop.params.consts:
            kind = "invariant"
        elif residual in loop.params.rows and loop.condition is None:
            kind = "rows"  # with a condition the linear loop runs `trips` times: they are stacked anew, or cut
        elif residual.type.dims and type_symbols(residual.type) & inside:
            kind = "ragged"
        else:
            kind = "settled" if residual in part.settled else "stacked"
        kinds[kind].append(residual)
    return _Crossing(**{kind: tuple(found) for kind, found in kinds.items()})


def _bound(function: Function) -> frozenset[str]:
    """The sizes that it binds."""
    return frozenset(symbol for let in function.lets for symbol in let.own_symbols())


def _share_slots(branches: Sequence[Function], parts: Sequence[Split]) -> tuple[list, list[int], list[dict]]:
    """Residuals of different branches share result slots by type; parameters pass straight to the linear
    cond."""
    slots: list = []
    places: list[dict[int, Var]] = []
    passed: set[int] = set()
    for branch, part in zip(branches, parts):
        place: dict[int, Var] = {}
        for residual in part.residuals:
            if residual in branch.params:
                passed.add(branch.params.index(residual))
                continue
            free = [k for k, t in enumerate(slots) if t == residual.type.plain and k not in place]
            if not free:
                slots.append(residual.type.plain)
                free = [len(slots) - 1]
            place[free[0]] = residual
        places.append(place)
    return slots, sorted(passed), places
