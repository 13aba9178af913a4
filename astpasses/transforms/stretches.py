"""Loops whose derivatives keep few states: the run forwards, and the linear loop over the stretches between states.

In: a loop that says how many `slots` it has, its body split in two. Out: the loop of what is known, which keeps a state
at the start of each stretch of `every` steps,

    for i in range(n):
        if i == kept * every:
            states[kept] = state
            kept += 1
        state = step(i, state)

and a linear loop over the stretches, whose iteration is a loop of steps that carries the known state along with the
linear one, from the state that was kept. A loop that runs for as long as a condition holds drops every second state
when all slots are full, and makes the stretches twice as long (Stumm & Walther, New algorithms for optimal online
checkpointing, SIAM J. Sci. Comput. 32, 2010, compares such choices). What runs back through a stretch is `replay.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from metaphrase.core.build import Builder
from metaphrase.core.dims import DimLike, dim_max, dim_min, floordiv, product
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Loop, Parts, Step
from metaphrase.core.types import Array, type_symbols
from metaphrase.late import dataclass
from metaphrase.ops.arithmetic import add, floor_div, max_, min_, mul, sub
from metaphrase.ops.compare import eq
from metaphrase.ops.indexing import slice_add, slice_update, start
from metaphrase.source import Span

from .closures import (
    INDEX,
    ONE,
    TWO,
    ZERO,
    corner,
    counted,
    dim_of,
    if_,
    merged,
    name_of,
    named,
    params_of,
    parted,
    room_for,
    rows_like,
    rows_of,
    with_row,
)
from .common import without_effects

ENOUGH = 10_000  # states: of 100,000,000 steps none runs more than twice


@dataclass(frozen=True)
class Kept:
    """What a loop has kept: for each carry that is known the states at the starts of stretches of `every` steps."""

    states: tuple[Atom, ...]
    stretches: DimLike
    every: Atom


def apart(loop: Loop, known: Parts[bool], outs_known: Parts[bool], part: Any) -> tuple[Loop, Loop]:
    """The loop of what is known alone, and the linear one, which carries the known state along: what it leaves of that
    nobody reads. `part`: the body, split."""
    kept = loop.results.where(outs_known)
    condition = loop.condition
    alone = replace(
        loop,
        args=loop.args.where(known),
        body=loop.body.changed(part.known.lets, loop.params.where(known), kept.like(iter(part.known.results))),
        condition=condition and condition.changed(params=condition.params.where(known.asked)),
        outs=loop.outs.where(outs_known),
    )
    with Builder(loop.body.function.name) as builder:
        index = builder.parameter(loop.index.name, INDEX)
        params = loop.params.map(lambda p: builder.parameter(p.name, p.type))
        first, second = params.parted(known)
        made = builder.replay(part.known, [index, *first])
        linear = builder.replay(part.linear, [*made[len(kept) :], *second])
        others = loop.results.where(outs_known.map(lambda k: not k)).like(linear)
        results = others.replace(carries=merged(outs_known.carries, kept.like(iter(made)).carries, others.carries))
        own = _known_sums_as_consts(params, known)
        lets = (without_effects(let) for let in builder.lets)  # what it prints, it has printed
        body = Function(builder.name, (index, *own), tuple(let for let in lets if let), (*results,))
    _, outs = loop.outs.parted(outs_known)
    unread = (Var(v.name, v.type.plain) for v, k in zip(loop.outs.carries, outs_known.carries) if k)
    again = replace(
        loop,
        args=_known_sums_as_consts(loop.args, known),
        body=Step(body, own, results),
        condition=None,
        length=loop.trips,
        more={key: value for key, value in loop.more.items() if key != "size"},
        sizes=(),
        outs=outs.replace(carries=merged(outs_known.carries, unread, outs.carries)),
    )
    return alone, again


def _known_sums_as_consts(parts: Parts[Any], known: Parts[bool]) -> Parts[Any]:
    """With what the known part of the loop adds to among the consts: what it adds here nobody reads."""
    sums = [(x, k) for x, k in zip(parts.accumulators, known.accumulators)]
    return parts.replace(consts=(*parts.consts, *(x for x, k in sums if k)), accumulators=(x for x, k in sums if not k))


# ---- the run forwards -----------------------------------------------------------------------------------------------


def keeping(alone: Loop, slots: DimLike, chunk: DimLike) -> tuple[list[Let], Kept]:
    """The loop of what is known, which keeps `slots` states besides the first one at most, and no two that are nearer
    than `chunk` steps; and what is left of it."""
    builder = Builder()
    with builder:
        run = _Forwards(alone, slots, chunk)
        loop = run.loop()
        builder.lets.append(loop.let())
        return builder.lets, run.kept(loop)


class _Forwards:
    def __init__(self, alone: Loop, slots: DimLike, chunk: DimLike):
        self.alone, self.slots = alone, slots
        self.online = alone.condition is not None
        self.every: Atom = start(chunk)
        self.rooms: DimLike = slots + 1
        if alone.length is not None and not self.online:
            self.every, self.rooms = _stretches(alone.length, slots, chunk)
        buffers = [room_for(self.rooms, s, f"{name_of(s)}_kept") for s in alone.args.carries]
        self.more = [self.every, ZERO, *buffers]

    def loop(self) -> Loop:
        alone = self.alone
        names = ["every", "kept", *(name_of(b) for b in self.more[2:])]
        more = [Var(name, a.type.plain) for name, a in zip(names, self.more)]
        with Builder(alone.body.function.name) as builder:
            index = builder.parameter(alone.index.name, INDEX)
            params = alone.params.map(lambda p: Var(p.name, p.type))
            step = index if not alone.reverse else sub(sub(start(alone.length), ONE), index)  # type: ignore[arg-type]
            every, count = more[:2]
            kept = if_(eq(step, mul(count, every)), self._keep, lambda *a: a[: len(more)], [*more, *params.carries])
            made = alone.results.like(builder.replay(alone.body.function, [index, *params]))
            body_params, results = params + self._roles(more), made + self._roles(kept).replace(consts=())
            function = Function(builder.name, (index, *body_params), tuple(builder.lets), (*results,))
        condition = alone.condition
        if condition is not None:
            asked = self._roles([Var(v.name, v.type) for v in more])
            condition = condition.changed(params=condition.params + asked)
        outs = [Var(v.name, v.type) for v in more]
        return replace(
            alone,
            args=alone.args + self._roles(self.more),
            body=Step(function, body_params, results),
            condition=condition,
            outs=alone.outs + self._roles(outs).replace(consts=()),
        )

    def _roles(self, more: Sequence[Any]) -> Parts[Any]:
        """The length of stretches is the same all the time, if the number of steps is known."""
        fixed = 0 if self.online else 1
        return Parts(consts=tuple(more[:fixed]), carries=tuple(more[fixed:]))

    def _keep(self, *args: Atom) -> list[Any]:
        """One more state is kept."""
        count = 2 + len(self.alone.args.carries)
        (every, number, *states), state = args[:count], args[count:]
        states = [with_row(x, s, number) for x, s in zip(states, state)]
        kept = [every, add(number, ONE), *states]
        if not self.online:
            return kept
        return [*if_(eq(kept[1], start(self.slots + 1)), self._thin, lambda *a: a, kept)]

    def _thin(self, every: Atom, number: Atom, *states: Atom) -> list[Any]:
        """Every second state is dropped."""
        half = self.slots // 2 + 1
        thinned = [
            slice_update(x, rows_of(x, ZERO, half, 2), *corner(x, ZERO), step=(1,) * x.type.ndim) for x in states
        ]
        return [mul(every, TWO), start(half), *thinned]

    def kept(self, loop: Loop) -> Kept:
        """What the loop has left of states."""
        more = loop.outs.carries[len(self.alone.outs.carries) :]
        if not self.online:
            return Kept(more[1:], self.rooms, self.every)
        every, count, *states = more
        stretches = dim_of(counted(count, "stretches"))
        return Kept(tuple(named(rows_of(x, ZERO, stretches), x.name) for x in states), stretches, every)


def _stretches(length: DimLike, slots: DimLike, chunk: DimLike) -> tuple[Atom, DimLike]:
    """How long the stretches of a loop of known length are, and how many."""
    if isinstance(length, int) and isinstance(slots, int) and isinstance(chunk, int):
        every = max(chunk, -(-length // (slots + 1)))
        return start(every), -(-length // every)
    steps = start(length)
    even = floor_div(add(steps, start(slots)), start(slots + 1))
    every = named(max_(even, start(chunk)), "every")
    return every, dim_of(counted(floor_div(sub(add(steps, every), ONE), every), "stretches"))


# ---- the linear loop ------------------------------------------------------------------------------------------------


def over_stretches(again: Loop, known: Sequence[bool], kept: Kept, slots: DimLike, chunk: DimLike) -> list[Let]:
    """The linear loop over stretches, and what comes before it. `again`: the one that carries the known state along;
    `known`: which carries that is."""
    assert again.length is not None
    builder = Builder()
    with builder:
        totals = [rows_like(again.length, r, name_of(r)) for r in again.results.rows]
    _, linear = parted(again.args.carries, known)
    args = Parts(
        (*again.args.consts, *again.args.rows, kept.every),
        tuple(linear),
        (*again.args.accumulators, *totals),
        kept.states,
    )
    with Builder(f"{again.body.function.name}_stretch") as inner:
        inner.span = again.span
        index = inner.parameter("k", INDEX)
        params = params_of(args)
        params = params.replace(rows=(Var(p.name.removesuffix("_kept"), p.type) for p in params.rows))
        if isinstance(kept.every, Literal) and kept.every.value == chunk != 1:
            chunk = 0  # all steps of a stretch at once
        results = _stretch(again, known, index, params, {"slots": slots, "chunk": chunk})
        function = Function(inner.name, (index, *params), tuple(inner.lets), (*results,))
    _, carries = parted(again.outs.carries, known)
    outs = Parts((), tuple(carries), (*again.outs.accumulators, *again.outs.rows))
    body = Step(function, params, results)
    loop = Loop(again.primitive, args, body, None, kept.stretches, {}, (), (), outs, again.span)
    return [*builder.lets, loop.let()]


def _stretch(again: Loop, known: Sequence[bool], k: Atom, params: Parts[Var], few: dict[str, DimLike]) -> Parts[Atom]:
    """One stretch: what it makes of the linear state."""
    own = len(again.args.consts)
    consts, rows, every = params.consts[:own], params.consts[own:-1], params.consts[-1]
    own = len(again.args.accumulators)
    sums, totals = params.accumulators[:own], params.accumulators[own:]
    length = start(again.length)  # type: ignore[arg-type]
    begin = mul(k, every)
    size = counted(min_(every, sub(length, begin)), "steps")
    low = sub(sub(length, begin), size) if again.reverse else begin
    args = Parts(
        (*consts, low),
        tuple(merged(known, params.rows, params.carries)),
        sums,
        tuple(rows_of(x, low, dim_of(size)) for x in rows),
    )
    with Builder(again.body.function.name) as inner:
        index = inner.parameter(again.index.name, INDEX)
        given = params_of(args)
        step = given.replace(consts=given.consts[:-1])
        made = inner.replay(again.body.function, [add(index, given.consts[-1]), *step])
        results = again.results.like(made)
        function = Function(inner.name, (index, *given), tuple(inner.lets), made)
    more = {**again.more, **few}
    outs = Loop(again.primitive, args, Step(function, given, results), None, dim_of(size), more).bind().outs
    _, carries = parted(outs.carries, known)
    added = (
        slice_add(total, part, *corner(total, low), step=(1,) * total.type.ndim)
        for total, part in zip(totals, outs.rows)
    )
    return Parts((), tuple(carries), (*outs.accumulators, *added))


# ---- how few --------------------------------------------------------------------------------------------------------


def slots_asked(loop: Loop, known: Parts[bool]) -> DimLike:
    """How many states the loop may keep, besides the first one, as its user says; 0 where it keeps what it would."""
    slots = loop.more.get("slots", 0) if _has_states(loop, known) else 0
    short = loop.condition is None and isinstance(loop.length, int) and loop.length <= slots
    return 0 if short and not has_slots(loop.body.function) else slots


def slots_within_limit(loop: Loop, known: Parts[bool], rows: Sequence[Var], inside: frozenset[str]) -> DimLike:
    """How many states a loop may keep that would keep `rows` of each step, if these may be more bytes than its limit;
    else 0. `inside`: the sizes that a step binds; what is as large may be larger than any limit."""
    limit = loop.more.get("limit", 0) if _has_states(loop, known) and "slots" not in loop.more else 0
    known_sizes = [v.type for v in rows if not type_symbols(v.type) & inside]
    step = _bytes(known_sizes)
    assert loop.trips is not None
    whole = loop.trips * step
    if not limit or len(known_sizes) == len(rows) and isinstance(whole, int) and whole <= limit:
        return 0
    states = _bytes(v.type for v, k in zip(loop.params.carries, known.carries) if k)
    return dim_max(1, dim_min(ENOUGH, floordiv(limit, 2 * states + step)))


def _has_states(loop: Loop, known: Parts[bool]) -> bool:
    return any(known.carries) and not loop.segment_sizes


def _bytes(types: Iterable[Array]) -> DimLike:
    return sum((product(t.dims) * t.dtype.itemsize for t in types), start=0)


def has_slots(function: Function) -> bool:
    """Whether it has a loop that says how many states it may keep."""
    return any("slots" in let.attributes or any(map(has_slots, let.regions())) for let in function.lets)


def over_limit(function: Function) -> Iterator[tuple[Span | None, DimLike]]:
    """Of a linear program: the loops that keep few states because of a limit, and how many."""
    for let in function.lets:
        if "chunk" in let.attributes and "limit" in let.attributes:
            yield let.span, let.attributes["slots"]
        for region in let.regions():
            yield from over_limit(region)


__all__ = ["Kept", "apart", "keeping", "over_stretches", "slots_asked", "slots_within_limit", "has_slots", "over_limit"]
