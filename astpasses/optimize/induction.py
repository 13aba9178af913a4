"""Induction variables: an integer to which every iteration adds what loop invariants and the counter say is no carry,
but an expression of the counter.

In: a Function. Out: the same with such carries made of the counter, in the body and behind the loop. Of loops whose
length is known; what an iteration adds may grow with the counter (`a + b * i`), as the start of a row of a triangle
does. Example:

    loop(10, ..., body(i, place, a): ...; place_1 = add(place, 1))   ->   loop(..., body(i, a): place = add(10, i))

A derivative then keeps no place for each iteration, and iterations do not wait for each other. Sums wrap around as
before; the square of a counter is right up to 3 * 10**9 iterations.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from metaphrase.core.build import Builder
from metaphrase.core.dims import Dim, DimLike, Sym, substitute, symbols
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.iterations import is_number
from metaphrase.core.loops import Loop, Parts
from metaphrase.ops.arithmetic import add, mul, sub
from metaphrase.ops.arrays import dim_value
from metaphrase.ops.compare import shift_right

from .rebuild import map_regions, replaced

pre_ad_safe = True
TERMS = 6  # of an expression that replaces a carry, at most


def induction(function: Function) -> Function:
    lets: list[Let] = []
    env: dict[Var, Atom] = {}
    changed = False
    for old in function.lets:
        let = map_regions(replaced(old, env), induction)
        changed |= let is not old
        steps = _steps(Loop.of(let)) if let.primitive.name == "loop" else {}
        if steps:
            changed = True
            let, behind, values = _without(Loop.of(let), steps)
            lets += [let, *behind]
            env.update(values)
        else:
            lets.append(let)
    if not changed:
        return function
    results = tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)
    return Function(function.name, function.params, tuple(lets), results)


class _Worth:
    """What the integers of a body are: polynomials in its parameters and in sizes that were bound outside."""

    def __init__(self, loop: Loop) -> None:
        self.atoms: dict[str, Var] = {}
        self.numbers: dict[Var, DimLike] = {}
        self.sizes: dict[str, DimLike | None] = {}
        for param in (loop.index, *loop.params.consts, *loop.params.carries):
            if is_number(param):
                name = f"{len(self.atoms)}%{param.name}"
                self.atoms[name], self.numbers[param] = param, Sym(name)
        for let in loop.body.lets:
            self._let(let)

    def of(self, atom: Atom) -> DimLike | None:
        return int(atom.value) if isinstance(atom, Literal) else self.numbers.get(atom)

    def _let(self, let: Let) -> None:
        kind = let.primitive.name
        if kind == "as_dim":
            worth = self.of(let.args[0])
            self.sizes.update((symbol, worth) for symbol in let.own_symbols())
            self.numbers.update({let.out: worth} if worth is not None else {})
            return
        self.sizes.update((symbol, None) for symbol in let.own_symbols())
        if len(let.outs) != 1 or not is_number(let.out):
            return
        worth = None
        if kind == "dim_value":
            dim = let.attributes["dim"]
            if all(self.sizes.get(s, 0) is not None for s in symbols(dim)):
                worth = substitute(dim, self.sizes)  # type: ignore[arg-type]
        elif kind in ("add", "sub", "mul"):
            a, b = (self.of(x) for x in let.args)
            if a is not None and b is not None:
                worth = a + b if kind == "add" else a - b if kind == "sub" else a * b
        if worth is not None and len(_terms(worth)) <= TERMS:
            self.numbers[let.out] = worth


def _terms(dim: DimLike) -> tuple:
    return dim.terms if isinstance(dim, Dim) else ()


def _steps(loop: Loop) -> dict[int, tuple[Step, Step]]:
    """For the carries that are induction variables, by number: what an iteration adds, and by how much more than the
    one before."""
    if loop.condition is not None or loop.reverse or not any(map(is_number, loop.params.carries)):
        return {}
    worth = _Worth(loop)
    changing = {worth.numbers[p].name for p in loop.params.carries if is_number(p)}  # type: ignore[union-attr]
    found = {}
    for k, (param, result) in enumerate(zip(loop.params.carries, loop.results.carries)):
        after = worth.of(result) if is_number(param) and result is not param else None
        if after is None:
            continue
        by = after - worth.numbers[param]
        parts = None if symbols(by) & changing else _by_power(by, worth, loop.index)
        if parts is not None:
            found[k] = parts
    return found


Step = list[tuple[int, list[Var | str]]]  # products: a number, parameters of the body, symbols of sizes


def _by_power(by: DimLike, worth: _Worth, index: Var) -> tuple[Step, Step] | None:
    """A polynomial that is linear in the counter, by powers of the counter."""
    if isinstance(by, int):
        return [(by, [])] if by else [], []
    powers: tuple[Step, Step] = [], []
    for monomial, count in by.terms:
        if any(atom.kind != "sym" for atom, _ in monomial):
            return None
        factors = [worth.atoms.get(a.name, a.name) for a, power in monomial for _ in range(power)]
        of_index = factors.count(index)
        if of_index > 1:
            return None
        powers[of_index].append((count, [f for f in factors if f is not index]))
    return powers


def _without(loop: Loop, steps: dict[int, tuple[Step, Step]]) -> tuple[Let, list[Let], dict[Var, Atom]]:
    """The loop without these carries, the Lets behind it, and what stands for its results."""
    stay = loop.args.map(lambda _: True).replace(carries=[k not in steps for k in range(len(loop.args.carries))])
    given = dict(zip(loop.params.consts, loop.args.consts))
    inside, behind = dict[Var, Atom](), dict[Var, Atom]()
    consts: dict[Var, Atom] = {}  # where carries begin
    first, last = Builder(), Builder()
    last.span = loop.span
    with last:
        count = _number(loop.length) if isinstance(loop.length, int) else dim_value(dim=loop.length)
    for k, parts in steps.items():
        param, out, start = loop.params.carries[k], loop.outs.carries[k], loop.args.carries[k]
        first.span = next((let.span for let in loop.body.lets if loop.results.carries[k] in let.outs), loop.span)
        begin = start
        if isinstance(start, Var):
            begin = Var(param.name, param.type)
            consts[begin] = start
        with first:
            inside[param] = _value(begin, parts, {}, loop.index, param.name)
        with last:
            behind[out] = _value(start, parts, given, count, out.name)
    left = loop.results.map(lambda _: True).replace(carries=stay.carries)  # there are other rows than among operands
    body = loop.body.changed(
        [*first.lets, *(replaced(let, inside) for let in loop.body.lets)],
        loop.params.where(stay) + Parts(consts=tuple(consts)),
        loop.results.where(left).renamed(inside),
    )
    args = loop.args.where(stay) + Parts(consts=tuple(consts.values()))
    outs = loop.outs.where(left)
    return replace(loop, args=args, body=body, outs=outs).let(), last.lets, behind


def _value(start: Atom, parts: tuple[Step, Step], given: dict[Var, Atom], count: Atom, name: str) -> Atom:
    """`start`, and what `count` iterations add to it."""
    each, more = parts
    value = _sum(start, each, given, [count])
    if more:
        rows = shift_right(mul(count, sub(count, _number(1))), _number(1))
        value = _sum(value, more, given, [rows])
    if isinstance(value, Var):
        value.name = name
    return value


def _sum(total: Atom, step: Step, given: dict[Var, Atom], by: list[Atom]) -> Atom:
    """`total` and the products of `step`, each times `by`; what is added stands before what is taken off."""
    for number, factors in sorted(step, key=lambda product: product[0] < 0):
        atoms = [given.get(f, f) if isinstance(f, Var) else dim_value(dim=Sym(f)) for f in factors]
        product: Atom | None = None if abs(number) == 1 else _number(abs(number))
        for atom in (*atoms, *by):
            product = atom if product is None else _times(product, atom)
        assert product is not None
        total = sub(total, product) if number < 0 else product if _is(total, 0) else add(total, product)
    return total


def _times(a: Atom, b: Atom) -> Atom:
    return b if _is(a, 1) else a if _is(b, 1) else mul(a, b)


def _is(atom: Atom, number: int) -> bool:
    return isinstance(atom, Literal) and bool(atom.value == number)


def _number(value: int) -> Literal:
    return Literal(np.int64(value))


__all__ = ["induction", "pre_ad_safe"]
