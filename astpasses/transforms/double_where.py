"""Choices whose derivatives leave out what is not taken, as if the operand had been chosen before the function.

In: a Function that derivatives may be taken of. Out: the same values; what an elementwise expression reads on the way
to a `select`, `y[mask]` or `y[indices]` goes through `only_where`, whose tangent is 0 where the choice is another. So
the cotangent of an element that is not taken, which is NaN where its slope is infinite (0 times inf), ends there.

    y = sqrt(x)                                x_1 = only_where(x, c)
    z = select(c, y, w)             ->         y_1 = sqrt(x_1)
                                               z = select(c, y_1, w)

Where derivatives have been taken, `only_where(x, c)` is x and y_1 is y. An expression that is linear has no infinite
slopes, and stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from metaphrase.core.build import Builder, literal
from metaphrase.core.calls import derived
from metaphrase.core.custom import RULED
from metaphrase.core.ir import Atom, Function, Let, Var
from metaphrase.core.native import Point
from metaphrase.core.primitive import NotLinear
from metaphrase.core.relation import POINTWISE
from metaphrase.core.types import is_inexact
from metaphrase.late import dataclass, field, log
from metaphrase.ops.compare import not_, only_where, select
from metaphrase.ops.indexing import scatter
from metaphrase.ops.shape import broadcast
from metaphrase.ops.sorting import nonzero


def double_where(function: Function) -> Function:
    """`function` with the operands of what it chooses from chosen, too; the lines where that is so are logged."""
    return derived(function, "double where", lambda: _Rewriting(function).run())


@dataclass
class _Rewriting:
    function: Function
    makers: dict[Var, Let] = field(default_factory=dict)  # the elementwise operations that make inexact arrays
    negations: dict[Var, Atom] = field(default_factory=dict)
    places: dict[Var, Atom] = field(default_factory=dict)  # of which mask they are
    taken: dict[object, Atom] = field(default_factory=dict)  # masks of what is taken at indices
    lines: set[str] = field(default_factory=set)

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
        if let.primitive is nonzero:
            self.places[let.out] = let.args[0]
        if isinstance(let.primitive.native, Point) and let.primitive.dims is POINTWISE and _smooth(let.out):
            self.makers[let.out] = let

    def _choices(self, let: Let) -> list[tuple[int, bool]]:
        """Operands of which a Let takes some elements: which, and whether those where its mask does not hold."""
        if let.primitive is select:
            return [(1, False), (2, True)]
        if let.primitive.takes and any(index.type.ndim for index in let.args[1:]):
            return [(0, False)]
        return []

    def _mask(self, let: Let) -> Atom | None:
        """Which elements a Let takes, where that is known already."""
        if let.primitive is select:
            return let.args[0]
        mask = self.places.get(let.args[1])  # type: ignore[arg-type]
        if len(let.args) == 2 and mask is not None and mask.type.dims == let.args[0].type.dims:
            return mask
        return self.taken.get(_taking(let))

    def _chosen(self, builder: Builder, let: Let) -> Let:
        """A Let that chooses, of operands that are chosen, too; another one as it is."""
        if let.span is not None and let.span.role != "primal":
            return let
        args, builder.span = list(let.args), let.span
        for k, negated in self._choices(let):
            if _smooth(args[k]):
                args[k] = self._masked(builder, let, args[k], negated)
        builder.span = None
        if args == list(let.args):
            return let
        place = str(let.span or self.function.name)
        if place not in self.lines:
            self.lines.add(place)
            log.info("%s: derivatives leave out what is not chosen here (double_where)", place)
        return Let(let.outs, let.primitive, tuple(args), let.attributes, let.span)

    def _masked(self, builder: Builder, let: Let, value: Atom, negated: bool) -> Atom:
        condition = self._mask(let)
        chain = self._collect(value, condition, negated)
        if not any(map(_bends, chain.values())):
            return value
        if condition is None:
            condition = self.taken[_taking(let)] = _is_taken(let)
        mask = not_(condition) if negated else condition
        self.negations.update({mask: condition} if negated else {})  # type: ignore[dict-item]
        env: dict[Atom, Atom] = {}
        for let in chain.values():
            for arg in (a for a in let.args if isinstance(a, Var) and a not in env and _smooth(a)):
                if not self._is_masked(arg, condition, negated):
                    env[arg] = only_where(arg, mask)
                    self._note(builder.lets[-1])
            args = tuple(env.get(a, a) for a in let.args)
            env[let.out] = out = Var(let.out.name, let.out.type)
            builder.lets.append(Let((out,), let.primitive, args, let.attributes, let.span))
            self._note(builder.lets[-1])
        return env[value]

    def _collect(self, value: Atom, condition: Atom | None, negated: bool) -> dict[Var, Let]:
        """The operations that lead to `value`, each behind those of its operands."""
        chain: dict[Var, Let] = {}
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
        return chain

    def _is_masked(self, atom: Atom, condition: Atom | None, negated: bool) -> bool:
        let = self.makers.get(atom)  # type: ignore[arg-type]
        if let is None or let.primitive is not only_where:
            return False
        mask = let.args[1]
        return self.negations.get(mask) == condition if negated else mask == condition  # type: ignore[arg-type]


def _taking(let: Let) -> object:
    """What says which elements of an array a Let takes."""
    return let.args[1:], let.attributes["axes"], let.args[0].type.dims


def _is_taken(let: Let) -> Atom:
    """A mask of the elements that a Let takes at its indices."""
    none = broadcast(literal(False), shape=let.args[0].type.dims, axes=())
    true = broadcast(literal(True), shape=let.out.type.dims, axes=())
    return scatter(none, true, *let.args[1:], axes=let.attributes["axes"])


def _inside(let: Let) -> Let:
    """The Let with its regions rewritten, but for functions that have rules of the user's own."""
    return let if let.primitive.name in RULED else let.with_regions(double_where)


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
