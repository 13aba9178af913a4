"""What errors as values are made of: what is known of an error at a place of a program, branches that read what is
around them, numbers as 64 bits, and loops that an error ends.

In: operations, and the state in front of them. Out: parts of programs, for checked.py. Example:

    State(code, slots=(k,), going=ok)     # `code` is 0 where `ok`, and else the site that failed, which shows k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metaphrase.core.build import Builder, current, literal
from metaphrase.core.dims import Sym, fresh_symbol, product
from metaphrase.core.guarded import needs_a_check
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.loops import Loop, Step
from metaphrase.core.types import Array, Size, bool_, f64, i64, is_inexact
from metaphrase.late import dataclass
from metaphrase.ops.compare import and_, eq
from metaphrase.ops.complex_numbers import imag, real
from metaphrase.ops.effects import check
from metaphrase.ops.indexing import gather
from metaphrase.ops.reduce import argmin, reduce_all
from metaphrase.ops.regions import cond
from metaphrase.ops.shape import bitcast, convert, reshape
from metaphrase.source import Span

from .common import variables


@dataclass(frozen=True)
class Failure:
    """What a site raises. `values`: of each number that it shows or holds its dtype, and the number itself where the
    program knows it, else where it begins among the numbers of the run."""

    exception: str
    message: str
    holds: tuple
    values: tuple[tuple[np.dtype, Any, int], ...]
    span: Span | None


@dataclass(frozen=True)
class State:
    """What is known of errors at a place in a program. `going`: that there is none yet; None: there can't be one."""

    code: Atom
    slots: tuple[Atom, ...] = ()
    going: Atom | None = None

    def wide(self, width: int) -> tuple[Atom, ...]:
        """The numbers of the message, as many as that at least."""
        return (*self.slots, *[literal(0, i64)] * (width - len(self.slots)))


CLEAN = State(literal(0, i64))
FAILED = literal(False)


def here() -> Builder:
    builder = current()
    assert builder is not None
    return builder


def error_variables(width: int) -> list[Var]:
    """Variables for an error: its site, and the numbers that its message shows."""
    return [Var("error", Array(i64)), *(Var("shown", Array(i64)) for _ in range(width))]


def after(error: Sequence[Atom]) -> State:
    """What is known behind something that may have failed."""
    code, *slots = error
    return State(code, tuple(slots), eq(code, literal(0, i64)))


def is_open(let: Let) -> bool:
    """Whether an operation is a loop that values end: on numbers that make no sense it might not end."""
    return let.primitive.name == "loop" and let.attributes["cond"] is not None


def names_size(let: Let) -> bool:
    return let.primitive.name == "as_dim"


def size_check(let: Let, ok: Atom = FAILED) -> Let:
    """The check that is in an operation that names a size."""
    return Let(
        (), check, (ok,), {"exception": "ValueError", "message": "negative dimensions are not allowed"}, let.span
    )


def carries_error(let: Let) -> bool:
    """Whether an operation with checks in it can be told that there is an error already."""
    return let.primitive.name == "loop" and not let.attributes.get("parallel")


def made_by(lets: Sequence[Let]) -> list[Var]:
    return [v for let in lets for v in let.outs]


def last_uses(lets: Sequence[Let], results: Sequence[Atom]) -> dict[Var, int]:
    """For each variable the number of the last operation that reads it; how many there are for a result."""
    last = {v: k for k, let in enumerate(lets) for v in variables(let.args)}
    return {**last, **dict.fromkeys(variables(results), len(lets))}


def before(lets: Sequence[Let], live: Sequence[Var]) -> list[Atom | None]:
    """What stands for the results of operations that have not run: an array that they store into, as it was."""
    kept: dict[Var, Atom] = {}
    inside = set(made_by(lets))
    for let in lets:
        pairs: list[tuple[Var, Atom]] = []
        if let.primitive.stores:
            pairs = [(let.out, let.args[0])]
        elif let.primitive.name == "loop":
            loop = Loop.of(let)
            pairs = list(zip(loop.outs.state, loop.args.state))
        for out, before in pairs:
            if isinstance(before, Var) and before in inside:
                if before not in kept:
                    continue
                before = kept[before]
            kept[out] = before
    return [kept.get(v) for v in live]


def free_variables(functions: Sequence[Function]) -> list[Var]:
    """What functions without parameters read from around them."""
    found: dict[Var, None] = {}
    for function in functions:
        bound = {v for let in function.lets for v in let.outs}
        read = [v for let in function.lets for v in variables(let.args)] + variables(function.results)
        found.update(dict.fromkeys(v for v in read if v not in bound))
    return list(found)


def closed(function: Function, free: Sequence[Var]) -> Function:
    """A function without parameters as one that is given what it reads."""
    with Builder(function.name) as builder:
        params = [builder.parameter(v.name, v.type) for v in free]
        return builder.function(builder.replay(replace(function, params=tuple(free)), params))


def with_outs(let: Let, outs: Sequence[Var]) -> Let:
    return Let(tuple(outs), let.primitive, let.args, let.attributes, let.span)


def slots_of(value: Var) -> int:
    return 1 + (value.type.dtype.kind == "c")


def encoded(values: Sequence[Atom]) -> list[Atom]:
    """Numbers as 64 bits each, complex ones as two; those that the program knows are not among them, and one that is
    there twice is there once."""
    made: list[Atom] = []
    for value in dict.fromkeys(variables(values)):
        parts = [real(value), imag(value)] if value.type.dtype.kind == "c" else [value]
        for part in parts:
            if is_inexact(part.type.dtype):
                part = bitcast(part if part.type.dtype == f64 else convert(part, dtype=f64), dtype=i64)
            elif part.type != Array(i64, part.type.dims):
                part = convert(part, dtype=i64)
            made.append(part)
    return made


def first_failing(ok: Var, values: Sequence[Atom]) -> tuple[Atom, Sequence[Atom]]:
    """Whether all elements pass, and the numbers at the first that does not."""
    whole = reduce_all(ok, axes=tuple(range(ok.type.ndim)))
    if not variables(values):
        return whole, ()
    with Builder("first") as first:
        first.span = here().span
        length = (product(ok.type.dims),)
        place = argmin(convert(reshape(ok, shape=length), dtype=i64), axes=(0,))
        read = dict.fromkeys(variables(values))
        picked = [gather(reshape(v, shape=length), place, axes=(0,)) for v in read]
        failed = first.function(encoded(picked))
    none = Function("none", (), (), (literal(0, i64),) * len(failed.results))
    free = free_variables((failed,))
    return whole, cond(whole, *free, branches=(closed(failed, free), closed(none, free)))


def ending(loop: Loop, condition: Step | None, width: int, test: Step | None) -> Loop:
    """A loop that ends when its error, the last of what it carries, is there. `condition`: under which it goes on
    otherwise; `test`: the same if it may fail: what it said is carried before the error."""
    params = loop.params.asked.map(lambda v: Var(v.name, v.type))
    with Builder("go_on") as asked:
        asked.span = loop.span
        asked.params = [Var(loop.index.name, loop.index.type), *params]
        going = eq(params.carries[-1 - width], literal(0, i64))
        if test is not None:
            going = and_(going, params.carries[-2 - width])
        elif condition is not None:
            held = params.carries[: len(params.carries) - 1 - width]
            going = and_then(going, condition.function, (asked.params[0], *params.consts, *held))
        step = Step(asked.function([going]), params)
    if condition is not None:
        return replace(loop, condition=step)
    size = fresh_symbol("trips")
    sizes = (Var("trips", Size(Sym(size))), *loop.sizes)
    return replace(loop, condition=step, more={**loop.more, "size": size}, sizes=sizes)


def stopped(let: Let, going: Atom) -> Let:
    """A loop with a condition that is not entered unless `going`."""
    loop = Loop.of(let)
    assert loop.condition is not None
    inside, outside = Var("going", Array(bool_)), Var("going", Array(bool_))
    given = loop.condition.params.map(lambda v: Var(v.name, v.type))
    params = given.replace(consts=(*given.consts, inside))
    with Builder(loop.condition.function.name) as asked:
        asked.span = loop.span
        asked.params = [Var(loop.index.name, loop.index.type), *params]
        made = and_then(inside, loop.condition.function, (asked.params[0], *given))
        condition = Step(asked.function([made]), params)
    body = loop.body.changed(params=loop.params.replace(consts=(*loop.params.consts, outside)))
    args = loop.args.replace(consts=(*loop.args.consts, going))
    return replace(loop, args=args, body=body, condition=condition).let()


def and_then(going: Atom, test: Function, args: Sequence[Atom]) -> Atom:
    """`going and test(*args)`, the test asked only if that is needed."""
    if all(let.primitive.effect is None and not let.primitive.region and not needs_a_check(let) for let in test.lets):
        return and_(going, here().replay(test, args)[0])
    held = tuple(Var(v.name, v.type) for v in test.params)
    leave = Function("leave", held, (), (literal(False),))
    return cond(going, *args, branches=(leave, test))[0]


__all__ = [
    "CLEAN",
    "Failure",
    "State",
    "after",
    "before",
    "carries_error",
    "closed",
    "encoded",
    "ending",
    "error_variables",
    "first_failing",
    "free_variables",
    "here",
    "is_open",
    "last_uses",
    "made_by",
    "names_size",
    "size_check",
    "slots_of",
    "stopped",
    "with_outs",
]
