"""What sizes may come to: products of them that 64 bits do not hold, arrays that no process has room for.

In: dims and shapes, and what is known of their symbols. Out: tests, as operations of the program, where
nothing is known that answers them. Example:

    fits(n*n*n - n)                     # f64(n)*f64(n)*f64(n) + f64(n) < 2**63
"""
from __future__ import annotations

from collections.abc import Collection

from ..core.build import literal
from ..core.dims import Dim, DimLike, product
from ..core.facts import Facts
from ..core.ir import Atom
from ..core.types import Array, f64, i64
from .arithmetic import abs_, add, mul
from .compare import lt
from .effects import check
from .promotion import scalar_dim

LIMIT = float(2**63 - 2**13)  # numbers are compared with it as floats: it keeps clear of their rounding
_ADDRESSES = 2**47  # bytes, of which a process has no more


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
    check(lt(count, literal(float(_ADDRESSES // type_.dtype.itemsize))), *shown, exception="MemoryError",
          message=f"Unable to allocate an array with shape ({shape}) and data type {type_.dtype}")


__all__ = ["LIMIT", "surely_fits", "fits", "check_memory"]
