"""Simplification by rules that are exact: the same bits for NaN, infinities and negative zero.

In: a Function. Out: the same program with fewer operations. One walk; a rule's result is simplified as it is
made.

    a: f64 = neg(x)                         b: f64 = mul(x, y)
    b: f64 = mul(a, y)            ->        c: f64 = sub(z, b)
    c: f64 = add(z, b)

Not here, because they are not exact: `x + 0.0 -> x` (x may be -0.0), `x * 0 -> 0`, `x - x -> 0`, `0 - x ->
-x` of floats, any reassociation. Sign and payload of a NaN are not kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metaphrase.core.build import copy_let
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.loops import Loop
from metaphrase.core.places import Places
from metaphrase.core.primitive import Primitive
from metaphrase.core.relation import POINTWISE
from metaphrase.core.types import Array
from metaphrase.source import Span

from .simplify_constants import folded

pre_ad_safe = True
Rule = Callable[..., Any]  # rule(rewriter, args, attributes, out types) -> Atom | tuple of Atoms | None
RULES: dict[str, list[Rule]] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for primitives; `"pointwise"` stands for all elementwise ones."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES.setdefault(name, []).append(function)
        return function

    return register


def simplify(function: Function) -> Function:
    """`function`, simplified; the same object when no rule applies."""
    from . import simplify_algebra, simplify_arrays, simplify_order, simplify_stores  # noqa: F401  (of rules)

    return Rewriter().function(function)


class Rewriter:
    """The program being rebuilt: what Lets there are, and which old values have become which atoms."""

    def __init__(self) -> None:
        self.lets: list[Let] = []
        self.makers: dict[Var, Let] = {}
        self.env: dict[Var, Atom] = {}
        self.names: Sequence[str] = ()
        self.span: Span | None = None
        self.changed = False
        self.places = Places()
        self.reads: Counter[Atom] = Counter()  # how often a value was read before
        self.values: dict[Var, Any] = {}  # constants of loops that are this everywhere
        self.tables: set[Var] = set()  # arrays that are written in the program
        self.sums: set[Var] = set()  # accumulators of loops and what was added to them: these stay sums

    def function(
        self, function: Function, known: dict[Var, Atom] | None = None, uniform: dict[Var, Let] | None = None
    ) -> Function:
        """A Function of its own scope; `known` gives parameters that are known to be literals or other
        parameters."""
        outer = self.lets, self.makers, self.env, self.changed
        self.lets, self.makers, self.env, self.changed = [], {}, dict(known or {}), False
        self.reads.update(a for let in function.lets for a in let.args)
        self.reads.update(function.results)
        for param, let in (uniform or {}).items():
            copy = Let((Var(param.name, param.type.plain),), let.primitive, let.args, let.attributes, let.span)
            self.add(copy)
            self.env[param] = copy.out
        for let in function.lets:
            self.let(let)
        results = tuple(self.atom(r) for r in function.results)
        changed = self.changed or any(a is not b for a, b in zip(results, function.results))
        made = Function(function.name, function.params, tuple(self.lets), results) if changed else function
        self.lets, self.makers, self.env, self.changed = outer
        return made

    def atom(self, atom: Atom) -> Atom:
        return self.env.get(atom, atom) if isinstance(atom, Var) else atom

    def let(self, let: Let) -> None:
        args = tuple(self.atom(a) for a in let.args)
        attributes = let.attributes
        if let.primitive.name in ("loop", "cond"):
            attributes = self.regions(let, args)
        self.names, self.span = [v.name for v in let.outs], let.span
        found = self.rules(let.primitive, args, attributes, tuple(v.type for v in let.outs))
        if found is not None:
            self.changed = True
            for var, value in zip(let.outs, found):
                self.env[var] = value
                self.reads[value] += self.reads[var]
            return
        if attributes is not let.attributes or any(a is not b for a, b in zip(args, let.args)):
            self.changed = True
            let = Let(let.outs, let.primitive, args, attributes, let.span)
        self.add(let)

    def add(self, let: Let) -> None:
        self.lets.append(let)
        self.places.let(let)
        if self.sums and any(a in self.sums for a in let.args):
            self.sums.update(let.outs)
        for var in let.outs:
            self.makers[var] = let
        if let.primitive.name == "constant":
            self.tables.add(let.out)

    def regions(self, let: Let, args: tuple) -> Any:
        """The attributes with their regions simplified, literal operands put into them."""
        new = dict(let.attributes)
        self.follow_operands(let, args)
        for key, value in let.attributes.items():
            if isinstance(value, Function):
                self.places.region(let, args, value)
                new[key] = self.function(value, self.known_params(let, value, args))
            elif isinstance(value, tuple) and value and isinstance(value[0], Function):
                for function in value:
                    self.places.region(let, args, function)
                functions = tuple(
                    self.function(f, self.known_in_branch(let, f, args), self.uniform_params(f, args[1:]))
                    for f in value
                )
                new[key] = value if all(a is b for a, b in zip(functions, value)) else functions
        return let.attributes if all(new[k] is v for k, v in let.attributes.items()) else new

    def follow_operands(self, let: Let, args: tuple) -> None:
        """Parameters of regions that are accumulators, or one value everywhere."""
        if let.primitive.name == "loop":
            loop = Loop.of(let)
            for param, arg in zip(loop.params.consts, loop.args.like(args).consts):
                if (value := self.uniform(arg)) is not None:
                    self.values[param] = value
            self.sums.update(loop.params.accumulators)
        elif let.primitive.name == "cond":
            self.sums.update(
                p for b in let.attributes["branches"] for p, a in zip(b.params, args[1:]) if a in self.sums
            )

    def uniform_params(self, function: Function, args: tuple) -> dict[Var, Let]:
        """Parameters of a branch that are one literal everywhere: made inside, where rules can see them."""
        makers = {p: self.maker(a, "broadcast") for p, a in zip(function.params, args)}
        found = {p: m for p, m in makers.items() if m is not None and isinstance(m.args[0], Literal)}
        if not found:
            return {}
        used = {a for let in function.lets for a in let.args} | set(function.results)
        return {p: m for p, m in found.items() if p in used}

    def known_in_branch(self, let: Let, function: Function, args: tuple) -> dict[Var, Atom]:
        """Parameters of a branch that are literals there, its condition among them."""
        known = _literals(function.params, args[1:])
        truths = self.places.truths(let, args, function)
        return known | {p: Literal(np.bool_(truths[a])) for p, a in zip(function.params, args[1:]) if a in truths}

    def known_params(self, let: Let, function: Function, args: tuple) -> dict[Var, Atom]:
        if let.primitive.name == "loop":
            return _literals(function.params[1:], Loop.of(let).args.like(args).consts)
        return {}

    def rules(self, primitive: Primitive, args: tuple, attributes: Any, types: tuple) -> tuple | None:
        """What the first rule that applies makes of an operation."""
        for one in RULES.get(primitive.name, ()):
            found = one(self, args, attributes, types)
            if found is not None:
                return found if isinstance(found, tuple) else (found,)
        if primitive.dims is POINTWISE:
            for one in RULES["pointwise"]:
                found = one(self, primitive, args, attributes, types)
                if found is not None:
                    return (found,)
        return folded(self, primitive, args, attributes, types) if not self.tables.isdisjoint(args) else None

    def make(self, primitive: Primitive, *args: Atom, **attributes: Any) -> Any:
        """A new operation, simplified."""
        types = primitive.type(*(a.type for a in args), **attributes)
        types = (types,) if isinstance(types, Array) else tuple(types)
        found = self.rules(primitive, args, attributes, types)
        if found is None:
            names = self.names if len(self.names) == len(types) else [primitive.name] * len(types)
            outs = tuple(Var(n, t) for n, t in zip(names, types))
            self.reads.update(args)
            self.add(Let(outs, primitive, args, attributes, self.span))
            found = outs
        return found if primitive.multiple else found[0]

    def inline(self, function: Function, args: Sequence[Atom]) -> tuple[Atom, ...]:
        """The Lets of `function` here, simplified; its results."""
        sizes: dict = {}
        env: dict[Var, Atom] = dict(zip(function.params, args))
        names, span = self.names, self.span
        outer, self.env = self.env, dict(self.env)
        for let in function.lets:
            new = copy_let(let, env, sizes)
            self.let(new)
            env.update((old, self.atom(fresh)) for old, fresh in zip(let.outs, new.outs))
        self.env, self.names, self.span = outer, names, span
        return tuple(env.get(r, r) if isinstance(r, Var) else r for r in function.results)

    def maker(self, atom: Atom, name: str) -> Let | None:
        """The Let that makes `atom`, if it is one of primitive `name` in this region."""
        let = self.makers.get(atom) if isinstance(atom, Var) else None
        return let if let is not None and let.primitive.name == name else None

    def store(self, atom: Atom) -> Let | None:
        """The store that makes `atom`, if it is one in this region."""
        let = self.makers.get(atom) if isinstance(atom, Var) else None
        return let if let is not None and let.primitive.stores else None

    def read_once(self, atom: Atom) -> bool:
        """Whether only the operation being looked at reads `atom`, as far as is known."""
        return self.reads[atom] <= 1

    def uniform(self, atom: Atom) -> Any:
        """The NumPy scalar that `atom` is everywhere, or None."""
        if isinstance(atom, Literal):
            return atom.value
        let = self.maker(atom, "broadcast")
        return self.uniform(let.args[0]) if let is not None else self.values.get(atom)


def _literals(params: Sequence[Var], args: Sequence[Atom]) -> dict[Var, Atom]:
    """Parameters that are literals, and parameters that are the same as an earlier one."""
    known: dict[Var, Atom] = {}
    first: dict[Var, Var] = {}
    for param, arg in zip(params, args):
        if isinstance(arg, Literal):
            known[param] = arg
        elif first.setdefault(arg, param) is not param:
            known[param] = first[arg]
    return known


@rule("pointwise")
def fold(rewriter: Rewriter, primitive: Primitive, args: tuple, attributes: Any, types: tuple) -> Atom | None:
    """An operation on literals is its value."""
    if not args or not all(isinstance(a, Literal) for a in args) or primitive.effect or primitive.transient:
        return None
    with np.errstate(all="ignore"):
        value = primitive.numpy(*(a.value for a in args), **attributes)
    return Literal(np.asarray(value, types[0].dtype)[()])


__all__ = ["simplify", "Rewriter", "rule", "RULES", "pre_ad_safe"]
