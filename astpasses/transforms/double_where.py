"""Choices whose derivatives leave out what is not taken, as if the operand had been chosen before the function.

In: a Function that derivatives may be taken of. Out: the same values; what an elementwise expression reads on the way
to a `select` goes through `only_where`, whose tangent is 0 where the choice is another. So the cotangent of an element
that is not taken, which is NaN where its slope is infinite (0 times inf), ends there.

    y = sqrt(x)                                x_1 = only_where(x, c)
    z = select(c, y, w)             ->         y_1 = sqrt(x_1)
                                               z = select(c, y_1, w)

Where derivatives have been taken, `only_where(x, c)` is x and y_1 is y. An expression that is linear has no infinite
slopes, and stays.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from metaphrase.core.build import Builder
from metaphrase.core.calls import derived
from metaphrase.core.custom import RULED
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.native import Point
from metaphrase.core.primitive import NotLinear
from metaphrase.core.relation import POINTWISE
from metaphrase.core.types import is_inexact
from metaphrase.ops.compare import not_, only_where

log = logging.getLogger("metaphrase")


def double_where(function: Function) -> Function:
    """`function` with the operands of what it chooses from chosen, too; the lines where that is so are logged."""
    return derived(function, "double where", lambda: _Rewriting(function).run())


@dataclass
class _Rewriting:
    function: Function
    makers: dict[Var, Let] = field(default_factory=dict)  # the elementwise operations that make inexact arrays
    negations: dict[Var, Atom] = field(default_factory=dict)

    def run(self) -> Function:
        changed = False
        with Builder(self.function.name) as builder:
            builder.params = list(self.function.params)
            for let in self.function.lets:
                new = self._chosen(builder, _inside(let))
                builder.lets.append(new)
                changed |= new is not let
                self._note(new)
            made = Function(self.function.name, self.function.params, tuple(builder.lets), self.function.results)
        return made if changed else self.function

    def _note(self, let: Let) -> None:
        if let.primitive is not_:
            self.negations[let.out] = let.args[0]
        if isinstance(let.primitive.native, Point) and let.primitive.dims is POINTWISE and _smooth(let.out):
            self.makers[let.out] = let

    def _chosen(self, builder: Builder, let: Let) -> Let:
        """A `select` of what reads chosen operands; another Let as it is."""
        if let.primitive.name != "select" or not _smooth(let.out) or let.span is not None and let.span.role != "primal":
            return let
        condition, *values = let.args
        builder.span = let.span
        made = [self._masked(builder, value, condition, k == 1) for k, value in enumerate(values)]
        builder.span = None
        if made == values:
            return let
        log.info("%s: derivatives leave out what is not chosen here (double_where)", let.span or self.function.name)
        return Let(let.outs, let.primitive, (condition, *made), let.attributes, let.span)

    def _masked(self, builder: Builder, value: Atom, condition: Atom, negated: bool) -> Atom:
        chain: dict[Var, Let] = {}
        self._collect(value, condition, negated, chain)
        if not any(map(_bends, chain.values())):
            return value
        mask = not_(condition) if negated else condition
        self.negations.update({mask: condition} if negated else {})  # type: ignore[dict-item]
        env: dict[Atom, Atom] = {}
        for let in chain.values():
            for arg in let.args:
                if arg not in env and isinstance(arg, Var) and _smooth(arg) and not self._is_masked(arg, condition, negated):
                    env[arg] = only_where(arg, mask)
                    self._note(builder.lets[-1])
            args = tuple(env.get(a, a) for a in let.args)
            env[let.out] = out = Var(let.out.name, let.out.type)
            builder.lets.append(Let((out,), let.primitive, args, let.attributes, let.span))
            self._note(builder.lets[-1])
        return env[value]

    def _collect(self, value: Atom, condition: Atom, negated: bool, chain: dict[Var, Let]) -> None:
        """The operations that lead to `value`, each behind those of its operands."""
        waiting: list[tuple[Atom, bool]] = [(value, False)]
        while waiting:
            atom, ready = waiting.pop()
            let = self.makers.get(atom)  # type: ignore[arg-type]
            if let is None or atom in chain or self._is_masked(atom, condition, negated):
                continue
            if ready:
                chain[let.out] = let
            else:
                waiting += [(atom, True), *((arg, False) for arg in let.args)]

    def _is_masked(self, atom: Atom, condition: Atom, negated: bool) -> bool:
        let = self.makers.get(atom)  # type: ignore[arg-type]
        if let is None or let.primitive is not only_where:
            return False
        mask = let.args[1]
        return self.negations.get(mask) == condition if negated else mask == condition  # type: ignore[arg-type]


def _inside(let: Let) -> Let:
    """The Let with its regions rewritten, but for functions that have rules of the user's own."""
    regions = [] if let.primitive.name in RULED else list(let.regions())
    new = {id(region): double_where(region) for region in regions}
    if all(new[id(region)] is region for region in regions):
        return let

    def put(value: object) -> object:
        if isinstance(value, Function):
            return new[id(value)]
        if isinstance(value, tuple):
            return tuple(put(v) if isinstance(v, Function) else v for v in value)
        return value

    return Let(let.outs, let.primitive, let.args, {k: put(v) for k, v in let.attributes.items()}, let.span)


def _smooth(atom: Atom) -> bool:
    return is_inexact(atom.type.dtype)


def _bends(let: Let) -> bool:
    """Whether an operation is not linear in one of its inexact operands: only then has it an infinite slope."""
    rules: Sequence | type = let.primitive.transpose
    if not isinstance(rules, tuple):
        return rules is NotLinear and let.primitive.jvp is not None
    rules = rules * len(let.args) if len(rules) == 1 else rules
    return any(rule is None and _smooth(arg) for rule, arg in zip(rules, let.args))


__all__ = ["double_where"]
