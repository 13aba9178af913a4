"""What is known of size symbols and loop indices, and the one prover that uses it.

In: ranges of symbols. Out: answers to `a <= b`, `a == b`, and dims simplified by them. False means "not
shown".

>>> from metaphrase.core.dims import Sym
>>> n, i = Sym("n"), Sym("i")
>>> facts = Facts().index("i", n)
>>> facts.less(i, n), facts.less_equal(i + 1, n), facts.less(i + 1, n), facts.simplify((i + 3 * n) // n)
(True, True, False, 3)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from .dims import Atom, Dim, DimLike, Sym, dim_max, dim_min, floordiv, linear_in, mod, symbols, terms_of

Range = tuple[DimLike | None, DimLike | None]
_DEPTH = 7
LONGEST = 2**42  # no axis of an array that a machine holds is longer
UNBOUNDED = 2**64


class Facts:
    """`index` and `bounded` give larger sets of facts. A symbol without a range is a size: not negative."""

    def __init__(self, ranges: Mapping[str, Range] | None = None):
        self.ranges: dict[str, Range] = dict(ranges or {})
        self._order: dict[str, int] | None = None  # the number of each name among them
        self._answers: dict[tuple[Dim, int], bool] | None = None  # of the question that is being answered

    def bounded(self, name: str, low: DimLike | None, high: DimLike | None) -> Facts:
        """low <= name <= high; None where nothing is known."""
        made = Facts(self.ranges)
        made.ranges.pop(name, None)  # the newest is the last
        made.ranges[name] = (low, high)
        return made

    def learn(self, name: str, low: DimLike | None, high: DimLike | None) -> None:
        """Add low <= name <= high to these facts; for whoever builds up facts about names that are all
        different."""
        self.ranges[name] = (low, high)
        self._order = None

    def index(self, name: str, extent: DimLike) -> Facts:
        """0 <= name < extent."""
        return self.bounded(name, 0, extent - 1)

    def less_equal(self, a: DimLike, b: DimLike) -> bool:
        return self.nonnegative(b - a)

    def less(self, a: DimLike, b: DimLike) -> bool:
        return self.nonnegative(b - a - 1)

    def equal(self, a: DimLike, b: DimLike) -> bool:
        return a == b or self.simplify(a) == self.simplify(b)

    def clamp(self, low: DimLike, dim: DimLike, high: DimLike) -> DimLike:
        """min(max(dim, low), high), simplified by what is known."""
        if self.less_equal(dim, low):
            dim = low
        elif not self.less_equal(low, dim):
            dim = dim_max(dim, low)
        if self.less_equal(high, dim):
            return high
        return dim if self.less_equal(dim, high) else dim_min(dim, high)

    def nonnegative(self, dim: DimLike, depth: int = _DEPTH) -> bool:
        """Whether dim >= 0 can be shown, by putting bounds in the place of symbols."""
        if isinstance(dim, int):
            return dim >= 0
        if self._answers is None:
            self._answers = {}
            try:
                return self._shown(dim, depth)
            finally:
                self._answers = None
        found = self._answers.get((dim, depth))
        if found is None:  # nested sizes, as n//2//2//2, ask the same again and again
            found = self._answers[dim, depth] = self._shown(dim, depth)
        return found

    def _shown(self, dim: Dim, depth: int) -> bool:
        if all(c >= 0 and all(self._low_zero(atom, depth) for atom, _ in monomial) for monomial, c in dim.terms):
            return True
        if depth == 0:
            return False
        atoms = {atom for monomial, _ in dim.terms for atom, _ in monomial}
        for atom in sorted(atoms, key=self._rank, reverse=True) if len(atoms) > 1 else atoms:
            split = linear_in(dim, atom)
            if split is None:
                continue
            slope, rest = split
            lows, highs = self._bounds(atom)
            for bound in lows if self.nonnegative(slope, depth - 1) else ():
                if self.nonnegative(slope * bound + rest, depth - 1):
                    return True
            for bound in highs if self.nonnegative(-slope, depth - 1) else ():
                if self.nonnegative(slope * bound + rest, depth - 1):
                    return True
        return False

    def _rank(self, atom: Atom) -> tuple[int, str]:
        """Inner indices first: their bounds mention outer ones."""
        if self._order is None:
            self._order = {name: k for k, name in enumerate(self.ranges)}
        return (self._order.get(atom.name, -1) if atom.kind == "sym" else len(self._order), atom.text)

    def _low_zero(self, atom: Atom, depth: int) -> bool:
        if atom.kind == "sym":
            low = self.ranges.get(atom.name, (0, None))[0]
            return low is not None and (
                isinstance(low, int) and low >= 0 or depth > 0 and self.nonnegative(low, depth - 1)
            )
        a, b = atom.operands
        if atom.kind == "mod":  # it has the sign of its divisor; what divides by 0 gives 0
            return self.nonnegative(b, depth - 1) if depth > 0 else isinstance(b, int) and b > 0
        below = [self.nonnegative(x, depth - 1) for x in (a, b)] if depth > 0 else [False]
        return any(below) if atom.kind == "max" else all(below)

    def _bounds(self, atom: Atom) -> tuple[list[DimLike], list[DimLike]]:
        """Lower and upper bounds of an atom, as lists of dims."""
        if atom.kind == "sym":
            low, high = self.ranges.get(atom.name, (0, None))
            return [x for x in (low,) if x is not None], [x for x in (high,) if x is not None]
        a, b = atom.operands
        if atom.kind == "mod":
            if self.nonnegative(b, 2):
                return [0], [b - 1 if self.nonnegative(b - 1, 2) else b]
            return ([b + 1], [0]) if self.nonnegative(-b - 1, 2) else ([], [])
        if atom.kind == "max":
            return [a, b], ([a + b] if self.nonnegative(a, 2) and self.nonnegative(b, 2) else [])
        if atom.kind == "min":
            return ([0] if self.nonnegative(a, 2) and self.nonnegative(b, 2) else []), [a, b]
        if not self.nonnegative(a, 2) or not self.nonnegative(b - 1, 2):
            return [], []
        halved = self.nonnegative(a - 1, 2) and self.nonnegative(b - 2, 2)
        return [0], [a - 1 if halved else a]

    def upper(self, dim: DimLike, known: Collection[str]) -> DimLike | None:
        """A bound from above that mentions only the `known` symbols; None where there is none.

        >>> Facts().bounded("k", 0, Sym("n")).upper(Sym("k") * 2 + 1, {"n"})
        2*n + 1
        """
        return self._bound(dim, known, True, _DEPTH)

    def _bound(self, dim: DimLike, known: Collection[str], above: bool, depth: int) -> DimLike | None:
        if isinstance(dim, int) or symbols(dim) <= set(known):
            return dim
        if depth == 0:
            return None if above or not self.nonnegative(dim) else 0
        total: DimLike = 0
        for monomial, coefficient in dim.terms:
            product: DimLike = coefficient
            for atom, power in monomial:
                bound = self._atom_bound(atom, known, above == (coefficient > 0), depth)
                alone = len(monomial) == 1 and power == 1
                if bound is None or not alone and not self._low_zero(atom, depth):  # a product of bounds
                    return None
                for _ in range(power):
                    product = product * bound
            total = total + product
        return total

    def _atom_bound(self, atom: Atom, known: Collection[str], above: bool, depth: int) -> DimLike | None:
        """The same for an atom; one that is shown to be not negative has no bound below 0."""
        least = 0 if not above and self._low_zero(atom, depth) else None
        if atom.kind == "sym":
            if atom.name in known:
                return Sym(atom.name)
            low, high = self.ranges.get(atom.name, (0, None))
            if above:
                return None if high is None else self._bound(high, known, True, depth - 1)
            found = None if low is None else self._bound(low, known, False, depth - 1)
            return found if found is not None and (least is None or self.nonnegative(found)) else least
        a, b = atom.operands
        first, second = (self._bound(x, known, above, depth - 1) for x in (a, b))
        if atom.kind == "max":
            return least if first is None or second is None else dim_max(first, second)
        if atom.kind == "min":
            if first is None or second is None:
                return (second if first is None else first) if above else least
            return dim_min(first, second)
        if not above or not self.nonnegative(b):
            return least
        if atom.kind == "mod":
            return second if second is None or not self.nonnegative(b - 1) else second - 1
        if isinstance(b, int) and b > 0 and first is not None:
            return floordiv(first, b)
        return first if first is None or self.nonnegative(first) else dim_max(first, 0)

    def magnitude(self, dim: DimLike, sizes: Collection[str] = (), depth: int = _DEPTH) -> int:
        """What |dim| does not exceed for axes of at most `LONGEST`: those of `sizes`, and symbols without a
        range.

        >>> Facts().magnitude(Sym("n") * 3 % 8), Facts().magnitude(Sym("n") - 1) == LONGEST + 1
        (7, True)
        """
        total = 0
        for monomial, coefficient in terms_of(dim):
            product = abs(coefficient)
            for atom, power in monomial:
                product *= self._atom_magnitude(atom, sizes, depth) ** power
            total += product
        return min(total, UNBOUNDED)

    def _atom_magnitude(self, atom: Atom, sizes: Collection[str], depth: int) -> int:
        if depth == 0:  # the bounds of two symbols may mention each other
            return UNBOUNDED
        if atom.kind == "sym":
            if atom.name in sizes or atom.name not in self.ranges:
                return LONGEST
            bounds = self.ranges[atom.name]
            return max(UNBOUNDED if b is None else self.magnitude(b, sizes, depth - 1) for b in bounds)
        first, second = (self.magnitude(x, sizes, depth - 1) for x in atom.operands)
        if isinstance(divisor := atom.operands[1], int) and atom.kind in ("mod", "floordiv"):
            return divisor - 1 if atom.kind == "mod" else first // divisor + 1
        return {"mod": second, "floordiv": first}.get(atom.kind, max(first, second))

    def simplify(self, dim: DimLike) -> DimLike:
        """The same number with floordiv, mod, max, min resolved where the facts decide them."""
        if isinstance(dim, int) or all(a.kind == "sym" for m, _ in dim.terms for a, _ in m):
            return dim
        total: DimLike = 0
        for monomial, coefficient in dim.terms:
            product: DimLike = coefficient
            for atom, power in monomial:
                value = Sym(atom.name) if atom.kind == "sym" else self._simplify_atom(atom)
                for _ in range(power):
                    product = product * value
            total = total + product
        return total

    def _simplify_atom(self, atom: Atom) -> DimLike:
        a, b = (self.simplify(x) for x in atom.operands)
        if atom.kind in ("max", "min"):
            larger = a if self.less_equal(b, a) else b if self.less_equal(a, b) else None
            if larger is None:
                return dim_max(a, b) if atom.kind == "max" else dim_min(a, b)
            return larger if atom.kind == "max" else (b if larger is a else a)
        quotient, rest = divide(a, b)
        if self.nonnegative(rest) and self.less(rest, b):
            return quotient if atom.kind == "floordiv" else rest
        if self.nonnegative(b - 1):
            return quotient + floordiv(rest, b) if atom.kind == "floordiv" else mod(rest, b)
        for factor in symbols(b):  # by one factor after the other, if that leaves a remainder of the first
            (high, other), (quotient, rest) = divide(b, Sym(factor)), divide(a, Sym(factor))
            if other == 0 and high != 1 and self.nonnegative(rest) and self.less(rest, Sym(factor)):
                inner = self.simplify(floordiv(quotient, high) if atom.kind == "floordiv" else mod(quotient, high))
                return inner if atom.kind == "floordiv" else inner * Sym(factor) + rest
        return floordiv(a, b) if atom.kind == "floordiv" else mod(a, b)


def divide(a: DimLike, b: DimLike) -> tuple[DimLike, DimLike]:
    """q, r with a = q * b + r: the terms of `a` that `b` divides, and the others.

    >>> from metaphrase.core.dims import Sym
    >>> divide(Sym("i") * Sym("m") + Sym("j"), Sym("m"))
    (i, j)
    """
    if isinstance(b, int):
        if b == 0:
            return 0, a
        if isinstance(a, int):
            return a // b, a % b
        quotient: DimLike = 0
        rest: DimLike = 0
        for monomial, coefficient in a.terms:
            whole, left = (
                (coefficient // b, coefficient % b)
                if not monomial
                else ((coefficient // b, 0) if coefficient % b == 0 else (0, coefficient))
            )
            quotient = quotient + Dim(((monomial, 1),)) * whole if monomial else quotient + whole
            rest = rest + Dim(((monomial, 1),)) * left if monomial else rest + left
        return quotient, rest
    if len(b.terms) != 1:
        return (1, 0) if a == b else (0, a)
    divisor, scale = dict(b.terms[0][0]), b.terms[0][1]
    quotient, rest = 0, 0
    for monomial, coefficient in terms_of(a):
        powers = dict(monomial)
        if coefficient % scale == 0 and all(powers.get(atom, 0) >= power for atom, power in divisor.items()):
            left_over = tuple(
                (atom, power - divisor.get(atom, 0)) for atom, power in monomial if power > divisor.get(atom, 0)
            )
            quotient = quotient + (
                Dim(((left_over, 1),)) * (coefficient // scale) if left_over else coefficient // scale
            )
        else:
            rest = rest + (Dim(((monomial, 1),)) * coefficient if monomial else coefficient)
    return quotient, rest
