"""Dimensions: integers, or polynomials over size symbols with `//`, `%`, `max`, `min` as atoms.

In: ints and `Sym("n")`. Out: the same again; a constant always is an `int`, and two dims are equal iff their
normal forms are.

>>> n = Sym("n")
>>> -(n // 2), -(n % 2) + 1
(-(n//2), -(n%2) + 1)
>>> (n + 1) * 2 - 2, (2 * n + 4) // 2, n - n
(2*n, n + 2, 0)
>>> m = Sym("m")
>>> m*n*n + m*m*n, m*m*n + m*n*n
(m**2*n + m*n**2, m**2*n + m*n**2)
>>> n // -2, n % -3     # a constant divisor is positive in the normal form: a remainder by it is not negative
((-n)//2, -((-n)%3))
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence


class Atom:
    """`kind` is "sym" (then `name` is set) or one of "floordiv", "mod", "max", "min" over `operands`."""

    __slots__ = ("kind", "name", "operands", "text", "_hash")

    def __init__(self, kind: str, name: str = "", operands: tuple[DimLike, ...] = ()):
        self.kind, self.name, self.operands = kind, name, operands
        if kind == "sym":
            self.text = name
        elif kind in ("max", "min"):
            self.text = f"{kind}({', '.join(map(str, operands))})"
        else:
            a, b = (f"({x})" if isinstance(x, Dim) and not x.is_sym else str(x) for x in operands)
            self.text = f"{a}//{b}" if kind == "floordiv" else f"{a}%{b}"
        self._hash = hash((kind, name, operands))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Atom)
            and self._hash == other._hash
            and (self.kind, self.name, self.operands) == (other.kind, other.name, other.operands)
        )

    def __hash__(self) -> int:
        return self._hash


Monomial = tuple[tuple[Atom, int], ...]


class Dim:
    """A polynomial in normal form: sorted (monomial, coefficient) pairs. Never constant; build with
    operators."""

    __slots__ = ("terms", "_hash", "_symbols")

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]):
        self.terms = terms
        self._hash = hash(terms)
        self._symbols: frozenset[str] | None = None  # found when they are first asked for

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self._hash == other._hash and self.terms == other.terms)

    def __hash__(self) -> int:
        return self._hash

    @property
    def is_sym(self) -> bool:
        """True for a bare symbol."""
        return (
            len(self.terms) == 1
            and self.terms[0][1] == 1
            and len(self.terms[0][0]) == 1
            and self.terms[0][0][0][1] == 1
            and self.terms[0][0][0][0].kind == "sym"
        )

    @property
    def name(self) -> str:
        """The name of a bare symbol."""
        assert self.is_sym, self
        return self.terms[0][0][0][0].name

    def __add__(self, other: DimLike) -> DimLike:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        if isinstance(other, int) and not other:
            return self
        total = dict(self.terms)
        for monomial, coefficient in terms_of(other):
            total[monomial] = total.get(monomial, 0) + coefficient
        return of_terms(total)

    __radd__ = __add__

    def __mul__(self, other: DimLike) -> DimLike:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        if isinstance(other, int):  # the monomials and their order stay
            return Dim(tuple((m, c * other) for m, c in self.terms)) if other else 0
        total: dict[Monomial, int] = {}
        for (left, a), (right, b) in itertools.product(self.terms, terms_of(other)):
            powers: dict[Atom, int] = dict(left)
            for atom, power in right:
                powers[atom] = powers.get(atom, 0) + power
            monomial = tuple(sorted(powers.items(), key=lambda item: item[0].text))
            total[monomial] = total.get(monomial, 0) + a * b
        return of_terms(total)

    __rmul__ = __mul__

    def __neg__(self) -> DimLike:
        return self * -1

    def __sub__(self, other: DimLike) -> DimLike:
        return self + -other if isinstance(other, (int, Dim)) else NotImplemented

    def __rsub__(self, other: DimLike) -> DimLike:
        return -self + other if isinstance(other, (int, Dim)) else NotImplemented

    def __floordiv__(self, other: DimLike) -> DimLike:
        return floordiv(self, other) if isinstance(other, (int, Dim)) else NotImplemented

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        return floordiv(other, self) if isinstance(other, (int, Dim)) else NotImplemented

    def __mod__(self, other: DimLike) -> DimLike:
        return mod(self, other) if isinstance(other, (int, Dim)) else NotImplemented

    def __rmod__(self, other: DimLike) -> DimLike:
        return mod(other, self) if isinstance(other, (int, Dim)) else NotImplemented

    def __bool__(self) -> bool:
        raise TypeError(f"the size {self} is not known here, so it has no truth value")

    def __repr__(self) -> str:
        rows = ""
        for monomial, coefficient in self.terms:
            parts = [atom.text if power == 1 else f"{atom.text}**{power}" for atom, power in monomial]
            if "//" in "".join(parts) or "%" in "".join(parts):
                parts = [
                    f"({p})"
                    if ("//" in p or "%" in p)
                    and (len(parts) > 1 or abs(coefficient) != 1 or coefficient < 0 and not rows)
                    else p  # and -n//2 is (-n)//2
                    for p in parts
                ]
            size = abs(coefficient)
            text = "*".join(([str(size)] if size != 1 or not parts else []) + parts)
            rows += (" - " if coefficient < 0 else " + ") + text if rows else ("-" if coefficient < 0 else "") + text
        return rows

    __str__ = __repr__

    def __pow__(self, power: int) -> DimLike:
        result: DimLike = 1
        for _ in range(power):
            result = result * self
        return result


DimLike = int | Dim


@functools.lru_cache(maxsize=1 << 12)
def Sym(name: str) -> Dim:
    """The size symbol called `name`."""
    return Dim(((((Atom("sym", name), 1),), 1),))


def terms_of(dim: DimLike) -> tuple[tuple[Monomial, int], ...]:
    return dim.terms if isinstance(dim, Dim) else ((((), dim),) if dim else ())


def of_terms(terms: Mapping[Monomial, int]) -> DimLike:
    """The sum of monomials with coefficients."""
    kept = [(m, c) for m, c in terms.items() if c]
    if not kept:
        return 0
    if len(kept) == 1 and kept[0][0] == ():
        return kept[0][1]
    if len(kept) > 1:
        kept.sort(key=_order)
    return Dim(tuple(kept))


Order = tuple[int, tuple[str, ...], tuple[int, ...]]


def _order(term: tuple[Monomial, int]) -> Order:
    """Higher degrees first, then by the atoms' texts, then by their powers."""
    return _monomial_order(term[0])


@functools.lru_cache(maxsize=1 << 14)
def _monomial_order(monomial: Monomial) -> Order:
    powers = tuple(p for _, p in monomial)
    return -sum(powers), tuple(a.text for a, _ in monomial), tuple(-p for p in powers)


def _atom(kind: str, *operands: DimLike) -> Dim:
    return Dim(((((Atom(kind, "", operands), 1),), 1),))


def floordiv(a: DimLike, b: DimLike) -> DimLike:
    """`a // b`, exact parts divided out. By 0 it is 0: a check that fails stands before whatever has such a size."""
    if isinstance(b, int) and b == 0:
        return 0
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if a == b:
        return 1
    if isinstance(b, int) and b < 0:
        return floordiv(-a, -b)
    if isinstance(b, int) and b > 0:
        if b == 1:
            return a
        whole = of_terms({m: c // b for m, c in terms_of(a) if c % b == 0})
        rest = of_terms({m: c for m, c in terms_of(a) if c % b})
        if isinstance(rest, int):
            return whole + rest // b
        return whole + _atom("floordiv", rest, b)
    return _atom("floordiv", a, b)


def mod(a: DimLike, b: DimLike) -> DimLike:
    """`a % b`; by 0 as in `floordiv`."""
    if isinstance(b, int) and b == 0:
        return 0
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if a == b:
        return 0
    if isinstance(b, int) and b < 0:
        return -mod(-a, -b)
    if isinstance(b, int) and b > 0:  # the coefficients nearest to 0, of which products stay small
        half = (b - 1) // 2
        rest = of_terms({m: (c + half) % b - half if m else c % b for m, c in terms_of(a)})
        return rest % b if isinstance(rest, int) else _atom("mod", rest, b)
    return _atom("mod", a, b)


def _extreme(kind: str, pick: Callable[[int, int], int], a: DimLike, b: DimLike) -> DimLike:
    difference = a - b
    if isinstance(difference, int):
        return a if pick(difference, 0) == difference else b
    return _atom(kind, *sorted((a, b), key=str))


def dim_max(a: DimLike, b: DimLike) -> DimLike:
    return _extreme("max", max, a, b)


def dim_min(a: DimLike, b: DimLike) -> DimLike:
    return _extreme("min", min, a, b)


_OPERATIONS: dict[str, Callable[[DimLike, DimLike], DimLike]] = {
    "floordiv": floordiv,
    "mod": mod,
    "max": dim_max,
    "min": dim_min,
}


NO_SYMBOLS: frozenset[str] = frozenset()


def substitute(dim: DimLike, values: Mapping[str, DimLike]) -> DimLike:
    """Put `values` in the place of symbols; a symbol without a value stays.

    >>> substitute(Sym("n") // 2 + 1, {"n": 7})
    4
    """
    if isinstance(dim, int) or symbols(dim).isdisjoint(values):
        return dim
    if dim.is_sym:
        return values[dim.name]
    total: DimLike = 0
    for monomial, coefficient in dim.terms:
        product: DimLike = coefficient
        for atom, power in monomial:
            value: DimLike
            if atom.kind == "sym":
                value = values.get(atom.name, Sym(atom.name))
            else:
                value = _OPERATIONS[atom.kind](*(substitute(x, values) for x in atom.operands))
            for _ in range(power):
                product = product * value
        total = total + product
    return total


def symbols(dim: DimLike) -> frozenset[str]:
    """The names of the symbols in `dim`."""
    if isinstance(dim, int):
        return NO_SYMBOLS
    if dim._symbols is None:
        names: set[str] = set()
        for monomial, _ in dim.terms:
            for atom, _ in monomial:
                names.update((atom.name,) if atom.kind == "sym" else symbols_of(atom.operands))
        dim._symbols = frozenset(names)
    return dim._symbols


def divides(dim: DimLike | None) -> bool:
    """Whether `dim` is divided by a size that the run decides, which may be 0.

    >>> n = Sym("n")
    >>> divides(n // 2), divides(4 // n + 1)
    (False, True)
    """
    if not isinstance(dim, Dim):
        return False
    atoms = [atom for monomial, _ in dim.terms for atom, _ in monomial if atom.kind != "sym"]
    return any(
        atom.kind in ("floordiv", "mod") and isinstance(atom.operands[1], Dim) or any(map(divides, atom.operands))
        for atom in atoms
    )


def symbols_of(dims: Iterable[DimLike]) -> frozenset[str]:
    """The names of the symbols in several dims."""
    return frozenset().union(*map(symbols, dims))


def linear_in(dim: Dim, atom: Atom) -> tuple[DimLike, DimLike] | None:
    """(slope, rest) with dim = slope * atom + rest and the atom in neither but for what is inside other atoms; None
    if it is not so.

    >>> n, m = Sym("n"), Sym("m")
    >>> linear_in(2 * n * m + n // 2, Atom("sym", "n")), linear_in(n * n, Atom("sym", "n"))
    ((2*m, n//2), None)
    """
    slope: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in dim.terms:
        powers = [power for a, power in monomial if a == atom]
        if not powers:
            rest[monomial] = coefficient
        elif powers == [1]:
            slope[tuple(pair for pair in monomial if pair[0] != atom)] = coefficient
        else:
            return None
    return of_terms(slope), of_terms(rest)


def solutions(names: Iterable[str], dims: Sequence[DimLike]) -> list[tuple[str, int, int, DimLike]]:
    """How symbols follow from dims whose values are known: (name, k, coefficient, rest), where the symbol is
    (the k-th value - rest) // coefficient. A rest has symbols that are not among `names`, or stand before.

    >>> n, m = Sym("n"), Sym("m")
    >>> solutions(["n", "m"], [n + m, 2 * n])
    [('n', 1, 2, 0), ('m', 0, 1, n)]
    """
    left, found = set(names), list[tuple[str, int, int, DimLike]]()
    while True:
        for k, dim in enumerate(dims):
            unknown = symbols(dim) & left
            if not isinstance(dim, Dim) or len(unknown) != 1:
                continue
            (name,) = unknown
            slope, rest = linear_in(dim, Atom("sym", name)) or (0, 0)
            if isinstance(slope, int) and slope and name not in symbols(rest):
                found.append((name, k, slope, rest))
                left -= unknown
                break
        else:
            return found


def product(dims: Iterable[DimLike]) -> DimLike:
    """The number of elements of a shape."""
    total: DimLike = 1
    for dim in dims:
        total = total * dim
    return total


_fresh = itertools.count(1)


def in_users_words(message: str) -> str:
    """A message in which sizes that the run decides have the names that the user gave them, if any.

    >>> in_users_words("shapes (n__7, 3) and (min__12,)")
    'shapes (n, 3) and (size,)'
    """
    from .primitive import REGISTRY

    def shown(found: re.Match) -> str:
        return "size" if found[1] in REGISTRY or found[1] + "_" in REGISTRY else found[1]

    return re.sub(r"(?<![\w.'\"])([A-Za-z]\w*?)__\d+\b", shown, message)


def fresh_symbol(base: str) -> str:
    """A symbol name that no program has yet: `base` and a number."""
    return f"{base.split('__')[0]}__{next(_fresh)}"
