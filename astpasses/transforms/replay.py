"""The way back through a loop whose derivative keeps few states: steps run again from the last state that was kept.

In: a linear loop that carries a known state along. Out: the loop that runs back. It takes its steps in chunks: each
runs forwards once more, keeps what the way back needs of each step, and runs back. Where there are more chunks than
one, it keeps the first state and `slots` others, and their places:

    top, places[0], states[0] = 0, 0, the first state
    while end > 0:                              # the chunks 0 ... end - 1 are to be undone
        while places[top] < end - 1:
            place = the next place to keep a state at, or end - 1
            state = states[top], run forwards to it
            top += 1
            places[top], states[top] = place, state
        bars = adjoint of one chunk(states[top], bars)
        top, end = top - 1, end - 1

Where states are kept is what binomial checkpointing says (Griewank & Walther, Algorithm 799: revolve, ACM TOMS 26,
2000), which runs the fewest steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metaphrase.core.build import Builder
from metaphrase.core.dims import DimLike, dim_min
from metaphrase.core.ir import Atom, Function, Var
from metaphrase.core.loops import Loop, Parts, Step
from metaphrase.ops.arithmetic import add, floor_div, min_, mul, sub
from metaphrase.ops.compare import eq, le, lt, select
from metaphrase.ops.indexing import start

from .closures import (
    INDEX,
    ONE,
    TWO,
    ZERO,
    Atoms,
    counted,
    cut,
    dim_of,
    if_,
    name_of,
    named,
    params_of,
    replayed,
    room_for,
    row_of,
    rows_like,
    rows_of,
    while_,
    with_row,
    with_rows,
)
from .common import known_lets
from .residuals import Inside
from .split import Split, split


def backward(back: Loop, body: Step, linear: Parts[bool], known: Parts[Atom]) -> Parts[Var]:
    """What the loop that runs back leaves. `back`: it, as far as it is like others; in its body the known state comes
    behind the rows. `body`: that of the loop that was transposed, with marks on what is linear, and `known`: the
    operands that are not, which are the first consts and rows of `back`."""
    return _Backward(back, known, _known_step(body, linear)).run()


def _known_step(body: Step, linear: Parts[bool]) -> Function:
    """The known state after a step: a function of the counter and what is known."""
    unknown, known = body.params.parted(linear)
    lets = known_lets(body.lets, {*unknown})
    results = (r for r, m in zip(body.results.carries, linear.carries) if not m)
    return Function(f"{body.function.name}_again", (body.index, *known), tuple(lets), tuple(results))


_Undone = tuple[Sequence[Any], Sequence[Any], Sequence[Any]]  # bars, sums, rows


class _Backward:
    def __init__(self, back: Loop, known: Parts[Atom], advance: Function):
        self.back, self.states, self.advance = back, known.carries, advance
        assert back.length is not None, "a loop that runs back knows how often"
        self.length: DimLike = back.length
        self.slots, self.chunk = back.more["slots"], back.more["chunk"]
        self.consts, self.rows = len(known.consts), len(known.rows)
        self.first_row = len(back.args.consts)  # the whole arrays come behind the consts

    def run(self) -> Parts[Var]:
        args = self.back.args
        rows = [rows_like(self.length, r, name_of(r)) for r in self.back.results.rows]
        consts = [*args.consts, *args.rows]
        if self.chunk == 0:
            undone = self._undo(consts, ZERO, self.length, self.states, args.carries, args.accumulators, rows)
            return Parts((), tuple(undone[0]), tuple(undone[1]), tuple(undone[2]))
        self.chunks = (self.length + self.chunk - 1) // self.chunk
        count = dim_min(self.slots, self.chunks) + 2  # the first state, those kept, and the one before the chunk
        names = [f"{name_of(s)}_kept" for s in self.states]
        states = [named(with_row(room_for(count, s, n), s, ZERO), n) for s, n in zip(self.states, names)]
        found = while_(
            self.back.body.function.name,
            consts,
            [start(self.chunks), ZERO, rows_like(count, ZERO, "places"), *states, *args.carries, *rows],
            ["end", "top", "places"],
            args.accumulators,
            lambda consts, carries: lt(ZERO, carries[0]),
            self._chunk_back,
        )
        bars, rest = cut(found[3 + len(states) :], len(args.carries))
        stacked, sums = cut(rest, len(rows))
        return Parts((), tuple(bars), tuple(sums), tuple(stacked))

    def _chunk_back(self, consts: Atoms, carries: Atoms, sums: Atoms) -> list[Any]:
        """The last chunk that is left, undone."""
        end, top, places, *rest = carries
        states, rest = cut(rest, len(self.states))
        bars, stacked = cut(rest, len(self.back.args.carries))
        top, places, *states = while_(
            self.advance.name,
            [*consts, end],
            [top, places, *states],
            [],
            (),
            lambda consts, carries: lt(row_of(carries[1], carries[0]), sub(consts[-1], ONE)),
            self._go_on,
        )
        last = named(sub(end, ONE), "last")
        first = named(mul(last, start(self.chunk)), "first")
        state = [named(row_of(x, top), name_of(s)) for x, s in zip(states, self.states)]
        if self.chunk == 1:
            undone = self._undo_one(consts, first, state, bars, sums, stacked)
        else:
            size = dim_of(counted(min_(start(self.chunk), sub(start(self.length), first)), "steps"))
            undone = self._undo(consts, first, size, state, bars, sums, stacked)
        return [last, sub(top, ONE), places, *states, *undone[0], *undone[2], *undone[1]]

    def _go_on(self, consts: Atoms, carries: Atoms, _: Atoms) -> list[Any]:
        """Forwards to the next place to keep a state at."""
        *own, end = consts
        top, places, *states = carries
        begin = named(row_of(places, top), "begin")
        place = named(next_place(begin, end, named(sub(start(self.slots + 1), top), "free")), "place")
        _step, *state = while_(
            self.advance.name,
            [*own, mul(place, start(self.chunk))],
            [mul(begin, start(self.chunk)), *(named(row_of(x, top), name_of(s)) for x, s in zip(states, self.states))],
            ["step", *map(name_of, self.states)],
            (),
            lambda consts, carries: lt(carries[0], consts[-1]),
            self._advance,
        )
        above = named(add(top, ONE), "above")
        return [above, *(with_row(x, s, above) for x, s in zip((places, *states), (place, *state)))]

    def _advance(self, consts: Atoms, carries: Atoms, _: Atoms) -> list[Any]:
        step, *state = carries
        i = self._index(step, 1)
        rows = [row_of(x, i) for x in consts[self.first_row : self.first_row + self.rows]]
        return [add(step, ONE), *replayed(self.advance, [i, *consts[: self.consts], *state, *rows])]

    def _index(self, step: Atom, count: DimLike) -> Any:
        """The lowest counter of the loop in so many steps from one on: `back` runs the other way."""
        return step if self.back.reverse else sub(sub(start(self.length), start(count)), step)

    def _undo_one(self, consts: Atoms, step: Atom, state: Atoms, bars: Atoms, sums: Atoms, stacked: Atoms) -> _Undone:
        """The adjoint of one step from a state."""
        i = self._index(step, 1)
        own, whole = cut(consts, self.first_row)
        body = self.back.body.function
        made = self.back.results.like(replayed(body, [i, *own, *bars, *sums, *(row_of(x, i) for x in whole), *state]))
        return made.carries, made.accumulators, [with_row(x, row, i) for x, row in zip(stacked, made.rows)]

    def _undo(
        self, consts: Atoms, first: Atom, size: DimLike, state: Atoms, bars: Atoms, sums: Atoms, stacked: Atoms
    ) -> _Undone:
        """The adjoint of so many steps from a state: they run again, and leave what their adjoints need."""
        low = self._index(first, size)
        own, whole = cut(consts, self.first_row)
        rows = whole if size == self.length else [rows_of(x, low, size) for x in whole]
        params, part = self._parts()
        residuals = part.residuals
        passed = {*params.consts, *params.rows[: self.rows], self.back.index}
        stay = [r for r in residuals if r not in passed]

        def again(i: Atom, args: Parts[Atom]) -> Parts[Atom]:
            made = replayed(part.known, [i, *args.consts, *args.rows, *args.carries])
            after, saved = cut(made, len(state))
            of = dict(zip(residuals, saved))
            return Parts((), tuple(after), (), tuple(of[r] for r in stay))

        forwards = Parts(tuple(own[: self.consts]), tuple(state), (), tuple(rows[: self.rows]))
        saved = self._steps(self.advance.name, forwards, low, size, not self.back.reverse, again).rows
        for residual, stack in zip(stay, saved):
            stack.name = residual.name

        def adjoint(i: Atom, args: Parts[Atom]) -> Parts[Atom]:
            given, stacks = cut(args.rows, len(rows))
            of = {self.back.index: i, **dict(zip(stay, stacks))}
            of |= dict(zip(params.consts, args.consts)) | dict(zip(params.rows, given))
            unknown = [*args.consts[self.consts :], *args.carries, *args.accumulators, *given[self.rows :]]
            made = replayed(part.linear, [*(of[r] for r in residuals), *unknown])
            return self.back.results.like(made)

        backwards = Parts(tuple(own), tuple(bars), tuple(sums), (*rows, *saved))
        made = self._steps(self.back.body.function.name, backwards, low, size, self.back.reverse, adjoint)
        if size == self.length:
            return made.carries, made.accumulators, made.rows
        return made.carries, made.accumulators, [with_rows(x, part, low) for x, part in zip(stacked, made.rows)]

    def _parts(self) -> tuple[Parts[Var], Split]:
        """The adjoint of a step split in two: what is known of it, and the state after the step; and the rest."""
        body = self.back.body
        of_advance = {v for let in self.advance.lets for v in let.outs}
        lets = (*self.advance.lets, *(let for let in body.lets if not of_advance & {*let.outs}))
        function = Function(body.function.name, body.function.params, lets, (*self.advance.results, *body.results))
        params, states = body.params, len(self.states)
        known = params.map(lambda _: False).replace(
            consts=(k < self.consts for k in range(len(params.consts))),
            rows=(k < self.rows or k >= len(params.rows) - states for k in range(len(params.rows))),
        )
        inside = Inside(shared=frozenset([body.index, *params.consts[: self.consts]]))
        wanted = [*(True for _ in range(states)), *(False for _ in body.results)]
        part = split(function, [True, *known], segments=False, results_known=wanted, inside=inside)
        return params, part

    def _steps(
        self,
        name: str,
        args: Parts[Atom],
        low: Atom,
        size: DimLike,
        reverse: bool,
        step: Callable[[Atom, Parts[Atom]], Parts[Atom]],
    ) -> Parts[Var]:
        """A loop over the counters from `low` on."""
        args = args.replace(consts=(*args.consts, low))
        with Builder(name) as builder:
            index = builder.parameter(self.back.index.name, INDEX)
            params = params_of(args)
            results = step(add(index, params.consts[-1]), params.replace(consts=params.consts[:-1]))
            function = Function(name, (index, *params), tuple(builder.lets), (*results,))
        more = {"reverse": reverse}
        return Loop(self.back.primitive, args, Step(function, params, results), None, size, more).bind().outs


def next_place(begin: Atom, end: Atom, free: Atom) -> Any:
    """Where to keep the next state, to undo what comes before `end`, with `free` states, that at `begin` among them;
    `end - 1` is none. (Algorithm 799; its bino1 to bino5 are the binomials here.)"""

    def one(begin: Atom, end: Atom, free: Atom) -> Any:
        return sub(end, ONE)

    def close(begin: Atom, end: Atom, free: Atom) -> Any:
        return add(begin, ONE)

    def some(begin: Atom, end: Atom, free: Atom) -> Any:
        near = le(sub(end, begin), add(free, ONE))
        return if_(near, close, _binomial_place, [begin, end, free])[0]

    return if_(eq(free, ONE), one, some, [begin, end, free])[0]


def _binomial_place(begin: Atom, end: Atom, free: Atom) -> Any:
    """The same, where nothing can be run again but once with at least two states."""
    length = named(sub(end, begin), "length")
    times, most = while_(  # so often something is run again, with which so many can be undone
        "times",
        [length, free],
        [ZERO, ONE],
        ["times", "most"],
        (),
        lambda consts, carries: lt(carries[1], consts[0]),
        lambda consts, carries, _: [
            add(carries[0], ONE),
            floor_div(mul(carries[1], add(consts[1], add(carries[0], ONE))), add(carries[0], ONE)),
        ],
    )
    both = named(add(free, times), "both")
    b1 = named(floor_div(mul(most, times), both), "b1")
    b2 = named(floor_div(mul(b1, free), sub(both, ONE)), "b2")
    b3 = named(floor_div(mul(b2, sub(free, ONE)), sub(both, TWO)), "b3")
    b4 = named(floor_div(mul(b2, sub(times, ONE)), free), "b4")
    b5 = named(floor_div(mul(b3, sub(free, TWO)), times), "b5")
    middle = named(sub(end, add(b2, b3)), "middle")
    late = named(select(le(sub(most, b5), length), add(begin, b1), middle), "late")
    return select(le(length, add(b1, b3)), add(begin, b4), late)


__all__ = ["backward", "next_place"]
