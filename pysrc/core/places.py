"""What integers of a program are worth: sizes, counters of loops and sums of these; and whether two places in
an array are apart.

In: the operations and loops as they are met. Out: answers; False means "not shown".

    n: size[c] = as_dim(i)
    loop(..., length=c)               # its counter j: apart([(i, 1)], [(j, 1)]) is True, as j < i
    p: bool = and_(ge(k, 0), lt(k, n))
    cond(p, k, ...)                   # the second branch's k: compared("lt", k, n) is True
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .dims import Dim, DimLike, Sym, substitute, symbols
from .facts import Facts
from .ir import Atom, Function, Let, Literal, Var
from .loops import Loop
from .types import i64

Range = tuple[DimLike, DimLike]  # the smallest and the largest; a start and a length
LARGEST = 2**40  # sums of numbers up to this do not wrap around
NOT = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}


class Places:
    """The numbers met so far; a Var is met once."""

    def __init__(self) -> None:
        self.facts = Facts()
        self.worth: dict[Var, DimLike] = {}
        self.unknown: set[str] = set()
        self.open: set[str] = set()  # of which one bound is known: sums of them may wrap around
        self.conditions: dict[Var, Let] = {}

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
        elif kind in NOT or kind in ("eq", "and_", "or_", "not_") or kind == "cond" and len(let.outs) == 1:
            self.conditions[let.out] = let

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
        here = self._learned(let, args, function) if kind == "cond" else {}
        for param, arg in zip(params, given):
            if not param.type.dims and param.type.dtype == i64 and param.type.value is None:
                self.worth[param] = substitute(self.of(arg), here) if here else self.of(arg)

    def truths(self, let: Let, args: Sequence[Atom], function: Function) -> dict[Var, bool]:
        """The conditions that hold in a branch, or do not: that of the cond, and what it is made of."""
        false, *true = let.attributes["branches"]
        if args[0].type.dtype != bool or len(true) != 1 or true[0] is false:
            return {}
        return dict(self._parts(args[0], function is true[0]))

    def _parts(self, condition: Atom, holds: bool) -> Iterator[tuple[Var, bool]]:
        if not isinstance(condition, Var):
            return
        yield condition, holds
        let = self.conditions.get(condition)
        kind = "" if let is None else let.primitive.name
        if let is not None and (kind == "not_" or kind == ("and_" if holds else "or_")):
            for one in let.args:
                yield from self._parts(one, holds is not (kind == "not_"))
        elif let is not None and kind == "cond" and let.args[0].type.dtype == bool:  # `p and ...`, `p or ...`
            other = let.attributes["branches"][not holds].results[0]
            if isinstance(other, Literal) and bool(other.value) is not holds:
                yield from self._parts(let.args[0], holds)

    def _learned(self, let: Let, args: Sequence[Atom], function: Function) -> dict[str, DimLike]:
        """What a branch knows of numbers that the condition compares: symbols of its own in the place of theirs."""
        bounds: dict[str, list[DimLike | None]] = {}
        for condition, holds in self.truths(let, args, function).items():
            for name, low, high in self._bounds(condition, holds):
                known = bounds.setdefault(name, [None, None])
                for side, bound in enumerate((low, high)):
                    known[side] = bound if bound is not None else known[side]
        here: dict[str, DimLike] = {}
        for name, (low, high) in bounds.items():
            if name not in self.unknown:  # what was known of it stays known
                low, high = (Sym(name) if bound is None else bound for bound in (low, high))
            made = f"{name}%{len(self.facts.ranges)}"
            self.facts.learn(made, low, high)
            here[name] = Sym(made)
            if any(b is None or not isinstance(b, int) and symbols(b) & self.open for b in (low, high)):
                self.open.add(made)
        return here

    def _bounds(self, condition: Var, holds: bool) -> Iterator[tuple[str, DimLike | None, DimLike | None]]:
        """The bounds of symbols that a comparison tells: (name, low, high)."""
        let = self.conditions.get(condition)
        if let is None or not all(a.type.dtype == i64 and not a.type.dims for a in let.args):
            return
        kind = let.primitive.name if holds else NOT.get(let.primitive.name)
        if kind not in (*NOT, "eq"):
            return
        a, b = (self.of(x) for x in let.args)
        small, large = (b, a) if kind in ("gt", "ge") else (a, b)
        less = 1 if kind in ("lt", "gt") else 0
        for one, bound, is_low in ((small, large - less, False), (large, small + less, True)):
            if isinstance(one, Dim) and one.is_sym and not self._may_wrap(bound):
                both = kind == "eq"
                yield one.name, bound if is_low or both else None, None if is_low and not both else bound

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
        if symbols(dim) & self.open:
            return not dim.is_sym
        return bool(symbols(dim) & self.unknown) or any(
            abs(count) > (LARGEST if not monomial else 8) or sum(power for _, power in monomial) > 1
            for monomial, count in dim.terms
        )


__all__ = ["Places"]
