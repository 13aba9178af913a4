"""Loops whose derivatives keep few states: each step is run again from the last state that was kept.

In: a loop that says how many `slots` it has. Out: for `split`, a linear loop that carries the known state along with
the linear one; for `transpose`, the loop that runs back. It keeps the first state and `slots` others, and their places:

    top, places[0], states[0] = 0, 0, the first state
    while end > 0:                              # the steps 0 ... end - 1 are to be undone
        while places[top] < end - 1:
            place = the next place to keep a state at, or end - 1
            state = states[top], run forwards to it
            top += 1
            places[top], states[top] = place, state
        bars = adjoint of one step(states[top], bars)
        top, end = top - 1, end - 1

Where states are kept is what binomial checkpointing says (Griewank & Walther, Algorithm 799: revolve, ACM TOMS 26,
2000), which runs the fewest steps again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from metaphrase.core.build import Builder, current, literal, trace
from metaphrase.core.dims import fresh_symbol
from metaphrase.core.ir import Atom, Function, Roles, Var
from metaphrase.core.loops import Loop, Parts, Step
from metaphrase.core.types import Array, i64
from metaphrase.ops.arithmetic import add, floor_div, mul, sub
from metaphrase.ops.arrays import zeros
from metaphrase.ops.compare import eq, le, lt, select
from metaphrase.ops.indexing import slice as slice_primitive
from metaphrase.ops.indexing import slice_update, start
from metaphrase.ops.regions import cond, loop
from metaphrase.ops.shape import reshape

from .common import without_effects

INDEX = Array(i64)
ZERO, ONE, TWO, THREE = (literal(k, i64) for k in range(4))
Atoms = Sequence[Atom]


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
        results = others.replace(carries=_merged(outs_known.carries, kept.like(iter(made)).carries, others.carries))
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
        outs=outs.replace(carries=_merged(outs_known.carries, unread, outs.carries)),
    )
    return alone, again


def _known_sums_as_consts(parts: Parts[Any], known: Parts[bool]) -> Parts[Any]:
    """With what the known part of the loop adds to among the consts: what it adds here nobody reads."""
    sums = [(x, k) for x, k in zip(parts.accumulators, known.accumulators)]
    return parts.replace(consts=(*parts.consts, *(x for x, k in sums if k)), accumulators=(x for x, k in sums if not k))


# ---- the loop that runs back ----------------------------------------------------------------------------------------


def backward(back: Loop, body: Step, linear: Parts[bool], known: Parts[Atom]) -> Parts[Var]:
    """What the loop that runs back leaves. `back`: it, as far as it is like others; in its body the known state comes
    behind the rows. `body`: that of the loop that was transposed, with marks on what is linear, and `known`: the
    operands that are not, which are the first consts and rows of `back`."""
    return _Backward(back, known, _known_step(body, linear)).run()


def _known_step(body: Step, linear: Parts[bool]) -> Function:
    """The known state after a step: a function of the counter and what is known."""
    unknown, known = body.params.parted(linear)
    touched, lets = {*unknown}, []
    for let in body.lets:
        if any(a in touched for a in let.args):
            touched.update(let.outs)
        else:
            lets.append(let)
    results = (r for r, m in zip(body.results.carries, linear.carries) if not m)
    return Function(f"{body.function.name}_again", (body.index, *known), tuple(lets), tuple(results))


class _Backward:
    def __init__(self, back: Loop, known: Parts[Atom], advance: Function):
        self.back, self.states, self.advance = back, known.carries, advance
        assert back.length is not None, "a loop that runs back knows how often"
        self.length, slots = back.length, back.more["slots"]
        self.slots = max(1, min(slots, self.length)) if isinstance(self.length, int) else slots
        self.consts, self.rows = len(known.consts), len(known.rows)
        self.first_row = len(back.args.consts)  # the whole arrays come behind the consts

    def run(self) -> Parts[Var]:
        args, length = self.back.args, self.length
        count = self.slots + 2  # the first state, those kept, and the one before the step that is undone
        states = [_stored(_zeros(count, s, f"{_name(s)}_kept"), s, ZERO) for s in self.states]
        rows = [_zeros(length, r) for r in self.back.results.rows]
        found = _while(
            self.back.body.function.name,
            [*args.consts, *args.rows],
            [start(length), ZERO, _zeros(count, ZERO, "places"), *states, *args.carries, *rows],
            ["end", "top", "places"],
            args.accumulators,
            lambda consts, carries: lt(ZERO, carries[0]),
            self._step_back,
        )
        bars, rest = _cut(found[3 + len(states) :], len(args.carries))
        stacked, sums = _cut(rest, len(rows))
        return Parts((), tuple(bars), tuple(sums), tuple(stacked))

    def _step_back(self, consts: Atoms, carries: Atoms, sums: Atoms) -> list[Any]:
        """The last step that is left, undone."""
        end, top, places, *rest = carries
        states, rest = _cut(rest, len(self.states))
        bars, stacked = _cut(rest, len(self.back.args.carries))
        top, places, *states = _while(
            self.advance.name,
            [*consts, end],
            [top, places, *states],
            [],
            (),
            lambda consts, carries: lt(_row(carries[1], carries[0]), sub(consts[-1], ONE)),
            self._go_on,
        )
        last = sub(end, ONE)
        i = self._index(last)
        own, whole = _cut(consts, self.first_row)
        state = (_row(x, top) for x in states)
        made = self.back.results.like(
            _replay(self.back.body.function, [i, *own, *bars, *sums, *(_row(x, i) for x in whole), *state])
        )
        stacked = [_stored(x, row, i) for x, row in zip(stacked, made.rows)]
        return [last, sub(top, ONE), places, *states, *made.carries, *stacked, *made.accumulators]

    def _go_on(self, consts: Atoms, carries: Atoms, _: Atoms) -> list[Any]:
        """Forwards to the next place to keep a state at."""
        *own, end = consts
        top, places, *states = carries
        step = _row(places, top)
        place = next_place(step, end, sub(literal(self.slots + 1, i64), top))
        _step, *state = _while(
            self.advance.name,
            [*own, place],
            [step, *(_row(x, top) for x in states)],
            ["step", *map(_name, self.states)],
            (),
            lambda consts, carries: lt(carries[0], consts[-1]),
            self._advance,
        )
        above = add(top, ONE)
        return [above, *(_stored(x, s, above) for x, s in zip((places, *states), (place, *state)))]

    def _advance(self, consts: Atoms, carries: Atoms, _: Atoms) -> list[Any]:
        step, *state = carries
        i = self._index(step)
        rows = [_row(x, i) for x in consts[self.first_row : self.first_row + self.rows]]
        return [add(step, ONE), *_replay(self.advance, [i, *consts[: self.consts], *state, *rows])]

    def _index(self, step: Atom) -> Atom:
        """The counter of the loop at a step: `back` runs the other way."""
        return step if self.back.reverse else sub(sub(start(self.length), ONE), step)


def next_place(step: Atom, end: Atom, snaps: Atom) -> Any:
    """Where to keep the next state, to undo the steps up to `end`, with `snaps` states, that at `step` among them;
    `end - 1` is none. (Algorithm 799; its bino1 to bino5 are the binomials here.)"""

    def one(step: Atom, end: Atom, snaps: Atom) -> Any:
        return sub(end, ONE)

    def close(step: Atom, end: Atom, snaps: Atom) -> Any:
        return add(step, ONE)

    def some(step: Atom, end: Atom, snaps: Atom) -> Any:
        near = le(sub(end, step), add(snaps, ONE))
        return _if(near, close, _binomial_place, [step, end, snaps])[0]

    return _if(eq(snaps, ONE), one, some, [step, end, snaps])[0]


def _binomial_place(step: Atom, end: Atom, snaps: Atom) -> Any:
    """The same, where no step can be run again but once with at least two states."""
    length = sub(end, step)
    times, most = _while(  # so often some step is run again, with which so many can be undone
        "times",
        [length, snaps],
        [ZERO, ONE],
        ["times", "most"],
        (),
        lambda consts, carries: lt(carries[1], consts[0]),
        lambda consts, carries, _: [
            add(carries[0], ONE),
            floor_div(mul(carries[1], add(consts[1], add(carries[0], ONE))), add(carries[0], ONE)),
        ],
    )
    both = add(snaps, times)
    b1 = floor_div(mul(most, times), both)
    b2 = floor_div(mul(b1, snaps), sub(both, ONE))
    b3 = floor_div(mul(b2, sub(snaps, ONE)), sub(both, TWO))
    b4 = floor_div(mul(b2, sub(times, ONE)), snaps)
    b5 = floor_div(mul(b3, sub(snaps, TWO)), times)
    middle = sub(end, add(b2, b3))
    late = select(le(sub(most, b5), length), add(step, b1), middle)
    return select(le(length, add(b1, b3)), add(step, b4), late)


# ---- core programs of closures --------------------------------------------------------------------------------------


def _while(
    name: str,
    consts: Atoms,
    carries: Atoms,
    names: Sequence[str],
    sums: Atoms,
    going: Callable[[Atoms, Atoms], Any],
    step: Callable[[Atoms, Atoms, Atoms], list[Any]],
) -> tuple[Atom, ...]:
    """The carries and accumulators when `going(consts, carries)` no longer holds; `names`: of the first carries."""
    roles = Roles(len(consts), len(carries), len(sums), 0)
    asked = [("i", INDEX), *map(_param, (*consts, *carries))]
    for k, name_ in enumerate(names, 1 + len(consts)):
        asked[k] = (name_, asked[k][1])
    body = trace(name, lambda i, *a: step(*roles.parts(a)[:3]), [*asked, *map(_param, sums)])
    condition = trace("going", lambda i, *a: going(*_cut(a, len(consts))), asked)
    size = fresh_symbol("T")
    return loop(*consts, *carries, *sums, body=body, cond=condition, length=None, roles=roles, size=size)[1:]


def _if(condition: Atom, yes: Callable[..., Any], no: Callable[..., Any], args: Atoms) -> tuple[Atom, ...]:
    """`yes(*args)` where the condition holds, else `no(*args)`."""
    branches = [trace(name, f, [*map(_param, args)]) for name, f in (("no", no), ("yes", yes))]
    return cond(condition, *args, branches=tuple(branches))


def _name(atom: Atom) -> str:
    return atom.name if isinstance(atom, Var) else "number"


def _param(atom: Atom) -> tuple[str, Array]:
    return _name(atom), atom.type.plain


def _replay(function: Function, args: Iterable[Atom]) -> tuple[Atom, ...]:
    builder = current()
    assert builder is not None
    return builder.replay(function, [*args])


def _zeros(length: Any, row: Atom, name: str = "") -> Atom:
    """So many rows of zeros that are like one."""
    made = zeros(Array(row.type.dtype, (length, *row.type.dims)))
    if name and isinstance(made, Var):
        made.name = name
    return made


def _row(array: Atom, index: Atom) -> Atom:
    """Row `index` of an array."""
    dims = array.type.dims[1:]
    shape, step = (1, *dims), (1,) * array.type.ndim
    row = slice_primitive(array, index, *(ZERO for _ in dims), shape=shape, step=step)
    return reshape(row, shape=dims)


def _stored(array: Atom, row: Atom, index: Atom) -> Atom:
    """The array with another row `index`."""
    dims = row.type.dims
    return slice_update(
        array, reshape(row, shape=(1, *dims)), index, *(ZERO for _ in dims), step=(1,) * (1 + len(dims))
    )


def _cut(items: Sequence[Any], count: int) -> tuple[list[Any], list[Any]]:
    """The first `count`, and the others."""
    return list(items[:count]), list(items[count:])


def _merged(marks: Sequence[bool], marked: Any, others: Any) -> list[Any]:
    """Those that are marked and the others, in their order."""
    marked, others = iter(marked), iter(others)
    return [next(marked if mark else others) for mark in marks]


__all__ = ["apart", "backward", "next_place"]
