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
from dataclasses import dataclass
from typing import Any

from metaphrase.core.build import Builder, fresh_copy, literal
from metaphrase.core.dims import DimLike, Sym
from metaphrase.core.ir import Atom, Function, Let, Roles, Var
from metaphrase.core.native import Iota, Move
from metaphrase.core.places import Places
from metaphrase.core.primitive import Primitive
from metaphrase.core.scalars import CHEAP
from metaphrase.core.types import Array, i64, type_symbols
from metaphrase.ops.arithmetic import sub
from metaphrase.ops.arrays import as_dim, undefined
from metaphrase.ops.indexing import slice as slice_primitive
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.regions import cond as cond_primitive
from metaphrase.ops.regions import loop as loop_primitive
from metaphrase.ops.regions import loop_trips
from metaphrase.ops.scan import cumsum
from metaphrase.ops.shape import broadcast

from .common import inline, select_marked, variables, without_effects
from .marks import cond_marks, loop_marks
from .segments import Segments, stored_into
from .settled import Settled


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
    inner: bool = False,
    ragged: bool = False,
    segments: bool = True,
    results_known: Sequence[bool] | None = None,
    shared: Sequence[Var] = (),
    loop: Let | None = None,
    places: Places | None = None,
) -> Split:
    """See the head of this file. `inner`: residuals may not name sizes that `function` itself binds; with
    `ragged` they may as the length of their first axis, or be such a size. `shared`: parameters that cost
    nothing as residuals, because the linear loop has them too (its counter, what no iteration changes);
    `loop`: whose body `function` is; `places`: what is known of numbers there. `segments`: whether loops may
    have them; where many lanes run a loop side by side, what they save lies in step only without.

    `results_known` may demote results: a known one that is wanted from the linear side becomes a residual.
    """
    function = inline(function)
    return _Splitter(
        function, list(known), inner, ragged, segments, results_known, shared, loop, places or Places()
    ).run()


class _Splitter:
    def __init__(
        self,
        function: Function,
        known: list[bool],
        inner: bool,
        ragged: bool,
        segments: bool,
        results_known: Sequence[bool] | None,
        shared: Sequence[Var],
        loop: Let | None,
        places: Places,
    ):
        self.shared, self.loop, self.places = frozenset(shared), loop, places
        self.settled: dict[Var, int] = {}
        self.readable: dict[Var, Let] = {}  # values that can be read in the array a loop leaves,
        self.rereads: dict[Var, Let] = {}  # and those that are
        self.function, self.marks, self.inner = function, known, inner
        self.ragged, self.segments = ragged, segments
        self.unknown = {p for p, k in zip(function.params, known, strict=True) if not k}
        self.known_builder, self.linear_builder = Builder(function.name), Builder(f"linear_{function.name}")
        self.definitions: dict[Var, Let] = {}
        self.demanded: list[Var] = []  # known variables that the linear side reads, in order of first use
        self.local: set[str] = set()  # size symbols bound in this function
        self.bulky: set[Var] = set()  # stacks of an array that a loop stores into, one a step
        self.wanted = results_known

    def run(self) -> Split:
        function = self.function
        for let in function.lets:
            self._let(let)
        results_known = [not (isinstance(r, Var) and r in self.unknown) for r in function.results]
        if self.wanted is not None:
            results_known = [a and b for a, b in zip(results_known, self.wanted)]
        linear_results = [r for r, k in zip(function.results, results_known) if not k]
        for result in variables(linear_results):
            self.demand(result)
        residuals, again = self._choose()
        linear_lets = self._recomputation(again) + self.linear_builder.lets
        known_params = select_marked(function.params, self.marks)
        unknown_params = [p for p, k in zip(function.params, self.marks) if not k]
        known = Function(
            function.name,
            tuple(known_params),
            tuple(self.known_builder.lets),
            (*select_marked(function.results, results_known), *residuals),
        )
        linear = Function(
            f"linear_{function.name}",
            (*residuals, *unknown_params),
            tuple(linear_lets),
            tuple(linear_results),
        )
        return Split(known, linear, results_known, tuple(residuals), self.settled)

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
        else:
            self._linear(let)

    def _known(self, let: Let) -> None:
        if let.span is not None and let.span.role == "tangent":  # of a rule that makes value and tangent
            let = Let(let.outs, let.primitive, let.args, let.attributes, let.span.with_role("primal"))
        self.known_builder.lets.append(let)
        self.places.let(let)
        self.local |= let.own_symbols()
        for out in let.outs:
            self.definitions[out] = let

    def _linear(self, let: Let) -> None:
        for arg in let.args:
            self.demand(arg)
        self._demand_sizes(let)
        self.linear_builder.lets.append(let)
        self.unknown.update(let.outs)

    def _demand_sizes(self, let: Let) -> None:
        """A linear Let that names a size bound here needs the variable that binds it."""
        for symbol in sorted(let.uses_symbols() & self.local):
            self.demand(self._binder(symbol))

    # -- residuals
    # -------------------------------------------------------------------------------------------------
    def _local(self, type_: Array) -> frozenset[str]:
        """The size symbols of a type that this function binds itself."""
        return frozenset(type_symbols(type_) & self.local)

    def _movable(self, var: Var) -> bool:
        if not self.inner or not self._local(var.type):
            return True
        if not self.ragged or var in self.bulky:
            return False
        if not var.type.dims:
            return any(var.type.value == Sym(s) for s in self.definitions[var].own_symbols())
        return not self._local(var.type.with_dims(var.type.dims[1:]))

    def _choose(self) -> tuple[list[Var], set[Var]]:
        """Residuals, and the variables to compute again from them."""
        params = set(self.function.params)
        residuals: dict[Var, None] = {}
        again: set[Var] = set()

        def need(var: Var) -> None:
            if var in residuals or var in again:
                return
            let = self.definitions.get(var)
            if var in params or let is None:
                residuals[var] = None
            elif (
                isinstance(let.primitive.native, (Move, Iota))
                and not let.primitive.region
                or not self._movable(var)
            ):
                again.update(let.outs)
                for out in let.outs:
                    residuals.pop(out, None)
                for arg in variables(let.args):
                    need(arg)
                for symbol in sorted(let.uses_symbols() & self.local):
                    need(self._binder(symbol))
            else:
                residuals[var] = None
                if self.inner and var.type.dims:  # the linear side names the length of a segment
                    for symbol in sorted(self._local(var.type)):
                        need(self._binder(symbol))

        for var in self.demanded:
            need(var)
        settled = None
        if self.loop is not None:
            settled = Settled(self.places, self.loop, self.function, self.known_builder.lets)
            self.readable = settled.readable()
        position = {v: k for k, let in enumerate(self.known_builder.lets) for v in let.outs}
        for var in sorted(residuals, key=lambda v: -position.get(v, -1)):
            del residuals[var]
            chain = self._cheap_chain(var, residuals, again, 6)
            if chain is None or var in params:
                residuals[var] = None
            else:
                again |= chain - params
                residuals.update(dict.fromkeys(p for p in self.function.params if p in chain))
                self.rereads |= {v: self.readable[v] for v in chain if v in self.readable}
                residuals.update(
                    (a, None)
                    for v in chain
                    if v in self.readable
                    for a in variables(self.readable[v].args[:1])
                )
        if settled is not None:
            linear = self._recomputation(again) + self.linear_builder.lets
            self.settled = settled.states(residuals, linear)
        return list(residuals), again

    def _cheap_chain(
        self, var: Var, residuals: dict[Var, None], again: set[Var], budget: int
    ) -> set[Var] | None:
        """The cheap Lets that give `var` from what crosses anyway; None if there is no such chain within
        budget."""
        chain: set[Var] = set()
        todo = [var]
        while todo:
            var = todo.pop()
            if var in residuals or var in again or var in chain:
                continue
            if var in self.shared:
                chain.add(var)
                continue
            if var in self.readable:
                chain.add(var)
                todo += variables(self.readable[var].args[1:])
                continue
            let = self.definitions.get(var)
            free = (
                let is not None
                and isinstance(let.primitive.native, (Move, Iota))
                and not let.primitive.region
            )
            if let is not None and let.primitive.name in ("gather", "slice"):  # of what is shared
                free = let.args[0] in self.shared
            if let is not None and let.primitive.name == "div" and self.readable:
                free = True  # one division instead of a stack
            if let is None or len(chain) >= budget or not (free or let.primitive.cost <= CHEAP):
                return None
            if let.own_symbols() and (
                not self.inner or any(type_symbols(r.type) & let.own_symbols() for r in residuals)
            ):
                return None  # a residual of that size is read back by the size that crosses
            chain.update(let.outs)
            todo += variables(let.args)
            todo += [self._binder(symbol) for symbol in sorted(let.uses_symbols() & self.local)]
        return chain

    def _binder(self, symbol: str) -> Var:
        for let in self.known_builder.lets:
            if symbol in let.own_symbols():
                return let.binder(symbol)
        raise AssertionError(f"size {symbol} is not bound in {self.function.name}")

    def _recomputation(self, again: set[Var]) -> list[Let]:
        """What the linear side does again, operands first: some are read where a later one stored them."""
        lets: list[Let] = []
        done: set[Var] = set()
        makers: dict[Var, Let] = {}
        for let in self.known_builder.lets:  # a result of a loop is read, unless that runs again anyway
            read = all(v in self.rereads for v in let.outs if v in again)
            makers.update((v, self.rereads.get(v, let) if read else let) for v in let.outs)

        def add(let: Let) -> None:
            if let.outs[0] in done:
                return
            done.update(let.outs)
            for arg in variables(let.args):
                if arg in again and arg in makers:
                    add(makers[arg])
            for symbol in sorted(let.uses_symbols() & self.local - let.own_symbols()):
                binder = self._binder(symbol)
                if binder in again:
                    add(makers[binder])
            pure = without_effects(let)
            if pure is not None:
                span = let.span.with_role("recomputed") if let.span else None
                lets.append(Let(pure.outs, pure.primitive, pure.args, pure.attributes, span))

        for let in self.known_builder.lets:
            for v in let.outs:
                if v in again:
                    add(makers[v])
        return lets

    # -- regions
    # ---------------------------------------------------------------------------------------------------
    def _loop(self, let: Let) -> None:
        attributes = dict(let.attributes)
        roles: Roles = attributes["roles"]
        body: Function = attributes["body"]
        condition: Function | None = attributes["cond"]
        operands, outs_known = loop_marks(let, [a not in self.unknown for a in let.args])
        lead = len(let.own_symbols())
        may = self.segments and not attributes.get("parallel", False)
        self.places.region(let, let.args, body)
        part = split(
            body,
            [True, *operands],
            inner=True,
            ragged=may,
            segments=may,
            results_known=outs_known[lead:],
            shared=[
                body.params[0],
                *select_marked(body.params[1 : 1 + roles.consts], operands[: roles.consts]),
            ],
            loop=let,
            places=self.places,
        )
        arg_of = dict(zip(body.params[1:], let.args))
        consts, carries, accumulators, rows = roles.parts(body.params[1:])
        marks = roles.parts(operands)

        inside = {s for x in part.known.lets for s in x.own_symbols()}
        invariant = [r for r in part.residuals if r in consts]
        # with a condition the linear loop runs `trips` times: rows of `length` are stacked anew, or cut
        row_residuals = [r for r in part.residuals if r in rows and condition is None]
        index_used = body.params[0] in part.residuals
        ragged = [r for r in part.residuals if r.type.dims and type_symbols(r.type) & inside]
        settled = [r for r in part.residuals if r in part.settled]
        other = {*invariant, *row_residuals, *ragged, *settled, body.params[0]}
        stacked = [r for r in part.residuals if r not in other]
        segments = Segments(let, part, ragged)
        known_results = list(part.known.results[: len(part.known.results) - len(part.residuals)])
        kept = len(known_results) - len(segments.old)
        known_roles = Roles(*map(sum, (*marks, [True] * (len(segments.old) + len(ragged)))))
        lengths = segments.lengths(stacked)
        known_body = Function(
            body.name,
            (body.params[0], *part.known.params[1:]),
            (*part.known.lets, *segments.lets),
            (*known_results[:kept], *stacked, *lengths, *known_results[kept:], *ragged),
        )
        known_attributes = {**attributes, "body": known_body, "roles": known_roles}
        known_attributes.pop("segment_sizes", None)
        if segments.names:
            known_attributes["segment_sizes"] = segments.names
        if condition is not None:
            keep = [True, *marks[0], *marks[1]]
            known_attributes["cond"] = Function(
                condition.name,
                tuple(select_marked(condition.params, keep)),
                condition.lets,
                condition.results,
            )
        known_outs: list[Var] = select_marked(let.outs[lead:], outs_known[lead:])
        leading = [*let.outs[: condition is not None], *segments.sizes()]
        named = (*leading, *known_outs[:kept], *stacked, *lengths, *known_outs[kept:], *ragged)
        names = [v.name for v in named]
        known_args = tuple(select_marked(let.args, operands))
        self.known_builder.bind(loop_primitive, known_args, known_attributes, names, let.span)
        made = self.known_builder.lets.pop()
        first = len(leading) + kept
        stacks = made.outs[first : first + len(stacked) + len(lengths)]
        flat = made.outs[len(made.outs) - len(ragged) :]
        stores = stored_into(body)
        self.bulky.update(s for r, s in zip((*stacked, *lengths, *ragged), (*stacks, *flat)) if r in stores)
        self._known(
            Let(
                (*leading, *known_outs[:kept], *stacks, *known_outs[kept:], *flat),
                made.primitive,
                made.args,
                made.attributes,
                made.span,
            )
        )
        starts = self._starts(let, segments, dict(zip((*stacked, *lengths), stacks)))

        trips = loop_trips(attributes["length"], condition, attributes.get("size"))
        unknown = [
            select_marked(p, [not k for k in m]) for p, m in zip((consts, carries, accumulators, rows), marks)
        ]
        index = body.params[0] if index_used else Var("i", body.params[0].type)
        reading = segments.reading(part.linear, stacked, len(unknown[1]) + len(unknown[2]))
        linear_params = (
            index,
            *invariant,
            *settled,
            *reading.flat,
            *unknown[0],
            *unknown[1],
            *unknown[2],
            *reading.totals,
            *row_residuals,
            *reading.rows,
            *reading.starts,
            *unknown[3],
        )
        linear_body = fresh_copy(Function(part.linear.name, linear_params, reading.lets, reading.results))
        linear_attributes = {
            **attributes,
            "body": linear_body,
            "cond": None,
            "length": trips,
            "roles": Roles(
                len(invariant) + len(settled) + len(flat) + len(unknown[0]),
                len(unknown[1]),
                len(unknown[2]) + len(reading.totals),
                len(row_residuals) + len(stacked) + len(starts) + len(unknown[3]),
            ),
        }
        linear_attributes.pop("size", None)
        linear_attributes.pop("segment_sizes", None)
        unknown_rows = [arg_of[v] for v in unknown[3]]
        if condition is not None:
            unknown_rows = [self._cut(row, trips) for row in unknown_rows]
        zeros = [
            self._made(broadcast, (literal(0, v.type.dtype),), {"shape": v.type.dims, "axes": ()}, v.name)
            for v in reading.totals
        ]
        state_args = [arg_of[v] for v in (*unknown[0], *unknown[1], *unknown[2])]
        linear_args = (
            *(arg_of[v] for v in invariant),
            *(let.outs[lead + part.settled[v]] for v in settled),
            *flat,
            *state_args,
            *zeros,
            *(arg_of[v] for v in row_residuals),
            *stacks[: len(stacked)],
            *starts,
            *unknown_rows,
        )
        outs = [v for v, k in zip(let.outs, outs_known) if not k]
        cut, state = len(outs) - len(reading.totals), len(unknown[1]) + len(unknown[2])
        self._linear(
            Let(
                (*outs[:state], *outs[cut:], *outs[state:cut]),
                loop_primitive,
                linear_args,
                linear_attributes,
                let.span,
            )
        )

    def _starts(self, let: Let, segments: Segments, row: dict[Atom, Var]) -> list[Var]:
        """For each size of segments, the row that says where each iteration's part begins: on the linear
        side, from the lengths."""
        found = []
        for name, length in segments.length_of.items():
            lengths = row[length]
            if name in segments.orphans:  # no segment of that size is known: its total is
                (total,) = self.known_builder.bind(reduce_sum, (lengths,), {"axes": (0,)}, ["total"])
                self._known(self.known_builder.lets.pop())
                size = {"size": name, "counted": True}
                self._known(Let((let.binder(name),), as_dim, (total,), size, let.span))
            back = let.attributes.get("reverse", False)
            ends = self._made(cumsum, (lengths,), {"axis": 0, "reverse": back}, "ends")
            found.append(self._made(sub, (ends, lengths), {}, "starts"))
        return found

    def _made(
        self, primitive: Primitive, args: tuple[Atom, ...], attributes: dict[str, Any], name: str
    ) -> Var:
        """The result of an operation on the linear side."""
        (out,) = self.linear_builder.bind(primitive, args, attributes, [name])
        self._linear(self.linear_builder.lets.pop())
        return out

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
            split(b, operands, inner=True, segments=self.segments, results_known=outs_known) for b in branches
        ]
        slots, passed, places = _share_slots(branches, parts)

        known_branches = []
        for branch, part, place in zip(branches, parts, places):
            count = len(part.known.results) - len(part.residuals)
            with Builder(branch.name) as builder:
                builder.params, builder.lets = list(part.known.params), list(part.known.lets)
                filled: list[Atom] = [
                    place.get(k) or undefined(dtype=t.dtype, shape=t.dims) for k, t in enumerate(slots)
                ]
                known_branches.append(builder.function([*part.known.results[:count], *filled]))
        names = [v.name for v, k in zip(let.outs, outs_known) if k] + [
            next((p[k].name for p in places if k in p), "residual") for k in range(len(slots))
        ]
        args = (let.args[0], *select_marked(let.args[1:], operands))
        known_outs = select_marked(let.outs, outs_known)
        outs = self.known_builder.bind(
            cond_primitive, tuple(args), {"branches": tuple(known_branches)}, names, let.span
        )
        made = self.known_builder.lets.pop()
        stacks = outs[len(known_outs) :]
        self._known(Let((*known_outs, *stacks), made.primitive, made.args, made.attributes, made.span))

        linear_branches = []
        for branch, part, place in zip(branches, parts, places):
            slot_vars = [place.get(k) or Var("unused", t) for k, t in enumerate(slots)]
            through = [branch.params[k] for k in passed]
            unknown = [p for p, k in zip(branch.params, operands) if not k]
            linear_branches.append(
                fresh_copy(
                    Function(
                        part.linear.name,
                        (*slot_vars, *through, *unknown),
                        part.linear.lets,
                        part.linear.results,
                    )
                )
            )
        linear_args = (
            let.args[0],
            *stacks,
            *(let.args[1 + k] for k in passed),
            *(a for a, k in zip(let.args[1:], operands) if not k),
        )
        linear_outs = tuple(v for v, k in zip(let.outs, outs_known) if not k)
        self._linear(
            Let(linear_outs, cond_primitive, linear_args, {"branches": tuple(linear_branches)}, let.span)
        )


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
