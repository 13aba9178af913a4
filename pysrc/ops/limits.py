"""What sizes may come to when the program runs: products of them that 64 bits do not hold, arrays that no
process has room for, numbers below 0.

In: dims and shapes, and what is known of their symbols. Out: tests, as operations of the program, where
nothing is known that answers them. Example:

    fits(n*n*n - n)                     # f64(n)*f64(n)*f64(n) + f64(n) < 2**63
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any

from ..core.build import known_facts, literal
from ..core.dims import Dim, DimLike, fresh_symbol, product
from ..core.facts import Facts
from ..core.ir import Atom
from ..core.types import Array, f64, i64
from ..source import UnsupportedError
from .arithmetic import abs_, add, floor_div, mul
from .arrays import as_dim
from .compare import and_, eq, ge, lt, ne, not_, or_, select
from .effects import check
from .promotion import count_of, known_size, scalar_dim, to_dtype

LIMIT = float(2**63 - 2**13)  # numbers are compared with it as floats: it keeps clear of their rounding
INDICES_OF_THE_RUN = "where the run makes the number, use np.nonzero(np.tri(n) > 0)"
_ADDRESSES = 2**47  # bytes, of which a process has no more


class UnknownSize(UnsupportedError):
    """A size has to be known while staging: where a number that is given says it, the front end may."""

    def __init__(self, what: str, dim: Any):
        remedy = "call it with arrays of one shape"
        if what == "linalg.lstsq":
            remedy = "solve the normal equations: np.linalg.solve(a.T @ a, a.T @ b)"
        elif what.endswith("indices"):
            remedy = INDICES_OF_THE_RUN
        super().__init__(f"numpy.{what} needs known sizes, got {dim}", code="size", remedy=remedy)
        self.dim = dim


def surely_fits(dim: Dim, facts: Facts, sizes: Collection[str], counts: Collection[DimLike]) -> bool:
    """Whether 64 bits hold each term of a dim, and their sum. `sizes` are those of arguments, `counts` how
    many elements the arguments have."""
    most = 0
    for monomial, coefficient in dim.terms:
        part = Dim(((monomial, 1),)) if monomial else 1
        most += abs(coefficient) * (_ADDRESSES if part in counts else facts.magnitude(part, sizes))
    return most < LIMIT


def fits(dim: Dim) -> Atom:
    """The same for the numbers that the run has."""
    total = literal(0.0)
    for monomial, coefficient in dim.terms:
        term = literal(float(abs(coefficient)))
        for atom, power in monomial:
            size = scalar_dim(Dim(((((atom, 1),), 1),)), f64)
            for _ in range(power):
                term = mul(term, size if atom.kind == "sym" else abs_(size))
        total = add(total, term)
    return lt(total, literal(LIMIT))


def check_sizes(type_: Array, facts: Facts) -> None:
    """ValueError for a size of an array that calls for fewer than no elements, as n - 3 may."""
    for dim in type_.dims:
        if not facts.nonnegative(dim):
            message = "negative dimensions are not allowed"
            check(ge(scalar_dim(dim, i64), literal(0)), exception="ValueError", message=message)


def check_memory(type_: Array, facts: Facts, sizes: Collection[str]) -> None:
    """MemoryError for an array that no process has room for, be it one that is fused away, where a number of
    the run is in its shape that nothing bounds: neither the `sizes` of arguments nor what they hold."""
    if facts.upper(product(type_.dims), sizes) is not None:
        return
    count = literal(1.0)
    for dim in type_.dims:
        count = mul(count, scalar_dim(dim, f64))
    shape = ", ".join("{}" if isinstance(dim, Dim) else str(dim) for dim in type_.dims)
    shape += "," * (type_.ndim == 1)
    shown = (scalar_dim(dim, i64) for dim in type_.dims if isinstance(dim, Dim))
    check(
        lt(count, literal(float(_ADDRESSES // type_.dtype.itemsize))),
        *shown,
        exception="MemoryError",
        message=f"Unable to allocate an array with shape ({shape}) and data type {type_.dtype}",
    )


def repeat_count(repeats: Any, size: DimLike) -> DimLike:
    """How often each of `size` elements is repeated; where there are none the number may be negative."""
    known = known_size(repeats)
    if known is not None and known_facts().less_equal(0, known):
        return known
    number = to_dtype(repeats, i64) if known is None else scalar_dim(known, i64)
    none = eq(scalar_dim(size, i64), literal(0))
    check(or_(ge(number, literal(0)), none), exception="ValueError", message="negative dimensions are not allowed")
    return count_of(repeats)


def reshape_sizes(total: Any, rest: Any, is_inferred: bool, *numbers: Any) -> tuple[Atom, ...]:
    """The sizes of a reshape that only the run knows: a negative one is what is left of the `total`. `rest`
    is the product of the others, `is_inferred` whether -1 is among them."""
    total, known, inferred = to_dtype(total, i64), to_dtype(rest, i64), literal(is_inferred)
    atoms = [to_dtype(number, i64) for number in numbers]
    unknown = [lt(a, literal(0)) for a in atoms]
    for a, flag in zip(atoms, unknown):
        check(not_(and_(inferred, flag)), exception="ValueError", message="can only specify one unknown dimension")
        known, inferred = mul(known, select(flag, literal(1), a)), or_(inferred, flag)
    if not is_inferred:
        check(
            or_(not_(inferred), ne(known, literal(0))),
            total,
            exception="ValueError",
            message="cannot reshape array of size {} into shape of 0 elements and an unknown dimension",
        )
        left = floor_div(total, known)
        atoms = [select(flag, left, a) for a, flag in zip(atoms, unknown)]
    return tuple(as_dim(a, size=fresh_symbol("size"), counted=True) for a in atoms)


def shape_in_words(dims: Sequence[DimLike]) -> tuple[str, list[Dim]]:
    """A shape as NumPy's error has it: -1 is not said in front and is "newaxis" elsewhere. `{}` stands for
    sizes that the run will know, the second part; a check shows three beside the array's own.

    >>> shape_in_words((-1, 3, -1))
    ('(3,newaxis)', [])
    """
    said = list(itertools.dropwhile(lambda dim: dim == -1, dims))
    open_ = [dim for dim in said if isinstance(dim, Dim)]
    if len(open_) > 3:
        return f"of {len(dims)} dims", []
    texts = ["newaxis" if dim == -1 else "{}" if isinstance(dim, Dim) else str(dim) for dim in said]
    return f"({','.join(texts)}{',' if len(dims) == 1 else ''})", open_


__all__ = [
    "LIMIT",
    "surely_fits",
    "fits",
    "check_sizes",
    "check_memory",
    "repeat_count",
    "reshape_sizes",
    "shape_in_words",
]
