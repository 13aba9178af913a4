"""What integers of a program are worth: sizes, counters of loops and sums of these; and whether two places in
an array are apart.

In: the operations and loops as they are met. Out: answers; False means "not shown".

    n: size[c] = as_dim(i)
    loop(..., length=c)               # its counter j: apart([(i, 1)], [(j, 1)]) is True, as j < i
"""

from __future__ import annotations

from collections.abc import Sequence

from .dims import Dim, DimLike, Sym, symbols
from .facts import Facts
from .ir import Atom, Function, Let, Literal, Var
from .loops import Loop
from .types import i64

Range = tuple[DimLike, DimLike]  # the smallest and the largest; a start and a length
LARGEST = 2**40  # sums of numbers up to this do not wrap around


class Places:
    """The numbers met so far; a Var is met once."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.worth: dict[Var, DimLike] = {}
        self.unknown: set[str] = set()

    def of(self, atom: Atom) -> DimLike:
        """What a number is, by sizes, counters and numbers of which nothing is known."""
        if isinstance(atom, Literal):
            return int(atom.value)
        if atom.type.value is not None:
            return atom.type.value
        if atom not in self.worth:
            self.worth[atom] = self._symbol(atom, None, None)
            self.unknown |= symbols(self.worth[atom])
        return self.worth[atom]

    def _symbol(self, var: Var, low: DimLike | None, high: DimLike | None) -> Dim:
        name = f"{var.name}%{len(self.worth)}"
        self.facts.learn(name, low, high)
        return Sym(name)

    def let(self, let: Let) -> None:
        """Learn what an operation says of its result."""
        kind = let.primitive.name
        if kind == "as_dim":
            for symbol in let.own_symbols():
                worth = self.of(let.args[0])
                self.facts.learn(symbol, worth, worth)
        elif kind in ("add", "sub") and not let.out.type.dims and let.out.type.dtype == i64:
            a, b = (self.of(x) for x in let.args)
            self.worth[let.out] = a + b if kind == "add" else a - b

    def region(self, let: Let, args: Sequence[Atom], function: Function) -> None:
        """Learn what the parameters of a region are: the counter of a loop, what is handed in."""
        kind, params = let.primitive.name, list(function.params)
        given: Sequence[Atom] = args
        if kind == "loop":
            loop = Loop.of(let)
            index, *params = params
            if index not in self.worth:
                self.worth[index] = self._symbol(index, 0, None if loop.length is None else loop.length - 1)
            given = loop.args.like(args).consts
        elif kind == "cond":
            given = args[1:]
        else:
            return
        for param, arg in zip(params, given):
            if not param.type.dims and param.type.dtype == i64 and param.type.value is None:
                self.worth[param] = self.of(arg)

    def apart(self, one: Sequence[Range], other: Sequence[Range]) -> bool:
        """Whether two regions of an array have no element in common; each has starts and lengths."""
        return any(
            self.facts.nonnegative(a - b - more) or self.facts.nonnegative(b - a - count)
            for (a, count), (b, more) in zip(one, other, strict=True)
        )

    def compared(self, kind: str, a: Range, b: Range) -> bool | None:
        """Which way a comparison of numbers of these ranges goes, if they are sums of sizes and counters."""
        if any(self._may_wrap(z) for z in (*a, *b)):
            return None
        if kind in ("gt", "ge"):
            kind, a, b = {"gt": "lt", "ge": "le"}[kind], b, a
        (a_low, a_high), (b_low, b_high) = a, b
        if (self.facts.less if kind == "lt" else self.facts.less_equal)(a_high, b_low):
            return True
        if (self.facts.less_equal if kind == "lt" else self.facts.less)(b_high, a_low):
            return False
        return None

    def same(self, a: Atom, b: Atom) -> bool:
        """Whether one of two numbers is a size, and the other is the number that became it."""
        if a.type.dtype != i64 or (a.type.value is None) == (b.type.value is None):
            return False
        size, number = (self.of(x) for x in ((b, a) if a.type.value is None else (a, b)))
        return isinstance(size, Dim) and size.is_sym and self.facts.ranges.get(size.name) == (number, number)

    def _may_wrap(self, dim: DimLike) -> bool:
        if isinstance(dim, int):
            return abs(dim) > LARGEST
        return bool(symbols(dim) & self.unknown) or any(
            abs(count) > (LARGEST if not monomial else 8) or sum(power for _, power in monomial) > 1
            for monomial, count in dim.terms
        )


__all__ = ["Places"]
