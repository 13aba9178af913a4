"""Sizes that are known to be equal get one name: `as_dim` of the same number, of a size, of a size plus a
constant.

In: a Function. Out: the same with fewer size symbols, so that lengths meet (`4 - (j + 1)` and `3 - j`),
checks of their equality fold away, and a slice of all of an array is seen to be one.

    as_dim_1: size[j] = as_dim(j, size="j")
    add_1: i64 = add(j, 1)
    as_dim_2: size[k] = as_dim(add_1, size="k")     ->     k is written j + 1 from here on

What can't be negative, such as how many elements of a mask are true, is marked `counted`: nobody needs to check it.
"""

from __future__ import annotations

from collections.abc import Mapping

from metaphrase.core.build import substitute_attribute
from metaphrase.core.calls import derived
from metaphrase.core.dims import DimLike, Sym
from metaphrase.core.facts import Facts
from metaphrase.core.guarded import is_count
from metaphrase.core.ir import Atom, Function, Let, Literal, Var
from metaphrase.core.types import CoreTypeError, substitute_type
from metaphrase.ops.arrays import dim_value

from .rebuild import map_filled, replaced

pre_ad_safe = True


def sizes(function: Function) -> Function:
    if not _binds(function):
        return function
    apart: frozenset[str] = frozenset()
    while True:
        try:
            return _Sizes({}, {}, apart).function(function)
        except _Contradiction as found:
            apart |= found.symbols


def _binds(function: Function) -> bool:
    lets = function.lets
    made = (let.primitive.name == "as_dim" or any(map(_binds, let.regions())) for let in lets)
    return derived(function, "as_dim", lambda: any(made))


class _Contradiction(Exception):
    """Written otherwise, these symbols make sizes differ that have to be equal: a check before it fails
    whenever the program runs, and says so."""

    def __init__(self, symbols: frozenset[str]):
        super().__init__("sizes differ that have to be equal")
        self.symbols = symbols


class _Sizes:
    """One region: what numbers are which sizes (`known`), and which symbols are written otherwise
    (`same`); those in `apart` are not."""

    def __init__(self, known: Mapping[Atom, DimLike], env: dict[Var, Atom], apart: frozenset[str]):
        self.known: dict[Atom, DimLike] = dict(known)
        self.env, self.apart = env, apart
        self.same: dict[str, DimLike] = {}
        self.makers: dict[Var, Let] = {}
        self.changed = False

    def function(self, function: Function) -> Function:
        lets = [self.let(let) for let in function.lets]
        results = tuple(self.env.get(r, r) if isinstance(r, Var) else r for r in function.results)
        return Function(function.name, function.params, tuple(lets), results) if self.changed else function

    def let(self, old: Let) -> Let:
        let = self.renamed(old)
        let = map_filled(let, self.region)
        name = let.primitive.name
        if name == "as_dim":
            let = self.bound(let)
        elif name in ("add", "mul") and not let.out.type.dims:
            a, b = (self.dim(atom) for atom in let.args)
            if a is not None and b is not None and _not_negative(a) and _not_negative(b):
                self.known[let.out] = a + b if name == "add" else a * b
        self.changed |= let is not old
        self.makers.update((out, let) for out in let.outs)
        return let

    def region(self, region: Function, operands: tuple) -> Function:
        inner: dict[Atom, DimLike] = {}
        for param, operand in zip(region.params, operands):
            if operand is not None and operand[0] == "const" and (dim := self.dim(operand[1])) is not None:
                inner[param] = dim
        return _Sizes(inner, {}, self.apart).function(region) if _binds(region) else region

    def dim(self, atom: Atom) -> DimLike | None:
        if isinstance(atom, Literal):
            return int(atom.value) if atom.type.dtype.kind in "iu" else None
        return atom.type.value if atom.type.value is not None else self.known.get(atom)

    def bound(self, let: Let) -> Let:
        """An `as_dim`: a new size, or one that has a name already."""
        symbol, dim = let.attributes["size"], self.dim(let.args[0])
        if dim is None or not _not_negative(dim) or symbol in self.apart:
            self.known[let.args[0]] = Sym(symbol)
            if let.attributes.get("counted") or not is_count(let.args[0], self.makers):
                return let
            return Let(let.outs, let.primitive, let.args, {**let.attributes, "counted": True}, let.span)
        self.same[symbol] = dim
        out = Var(let.out.name, dim_value.type(dim=dim))
        self.env[let.out] = out
        return Let((out,), dim_value, (), {"dim": dim}, let.span)

    def renamed(self, let: Let) -> Let:
        """The Let with operands and symbols replaced."""
        if not self.same or not (let.uses_symbols() & self.same.keys()):
            return replaced(let, self.env)
        attributes = {k: substitute_attribute(v, self.same) for k, v in let.attributes.items()}
        outs = tuple(Var(v.name, substitute_type(v.type, self.same)) for v in let.outs)
        args = tuple(self.env.get(a, a) if isinstance(a, Var) else a for a in let.args)
        if not any(True for _ in let.regions()):
            try:
                let.primitive.type(*(a.type for a in args), **attributes)
            except CoreTypeError:
                raise _Contradiction(let.uses_symbols() & self.same.keys()) from None
        self.env.update(zip(let.outs, outs))
        return Let(outs, let.primitive, args, attributes, let.span)


def _not_negative(dim: DimLike) -> bool:
    """Whether it is seen of a dim that it is a size: `(n - 5)//2` may be none."""
    return Facts().nonnegative(dim)


__all__ = ["sizes", "pre_ad_safe"]
