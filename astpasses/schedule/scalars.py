"""Building scalar expressions: integer arithmetic on sizes and indices is done now, as dims; constants are
folded.

In: operation names and expressions. Out: an expression; comparisons that the facts decide become constants.

    apply(facts, "add", (Index(i), Const(1)), i64) == Index(i + 1)
"""

from __future__ import annotations

import numpy as np

from metaphrase.core.dims import DimLike, dim_max, dim_min, floordiv, mod, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.scalars import facts as of
from metaphrase.core.types import i64

from .nest import Const, E, Index, Op, boolean, constant

_RING = {"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}
# These are folded only on sizes and loop indices: on numbers that may wrap around, their algebra would not
# hold.
_BOUNDED = {"max": dim_max, "min": dim_min}
_QUOTIENTS = {"floor_div": floordiv, "mod": mod}
_ORDER = {"lt", "le", "gt", "ge", "eq", "ne"}


def as_dim(e: E) -> DimLike | None:
    """The dim an i64 expression is, if it is one."""
    if isinstance(e, Index):
        return e.dim
    if isinstance(e, Const) and e.value.dtype == i64:
        return int(e.value)
    return None


def is_small(dim: DimLike) -> bool:
    """Few terms of low degree: worth carrying on as a polynomial."""
    return isinstance(dim, int) or (len(dim.terms) <= 6 and all(sum(p for _, p in m) <= 3 for m, _ in dim.terms))


def is_size(facts: Facts, dim: DimLike) -> bool:
    """A short sum of sizes and loop indices that is not negative: as good a size as a symbol."""
    return not isinstance(dim, int) and len(dim.terms) <= 3 and _bounded(facts, dim) and facts.nonnegative(dim)


def apply(facts: Facts, name: str, args: tuple[E, ...], dtype: np.dtype) -> E:
    """`name(*args)` at `dtype`, folded where that is exact."""
    if name == "identity":
        return args[0]
    if name == "convert":
        return _convert(args[0], dtype)
    dims = tuple(map(as_dim, args))
    if dims and all(d is not None for d in dims):
        folded = _integer(facts, name, dims, dtype)  # type: ignore[arg-type]
        if folded is not None:
            return folded
    if dtype.kind in "iu" and (bits := _of_power(name, args, dtype)) is not None:
        return bits
    if name in ("and", "or") and dtype.kind == "b":
        return _logic(name, args[0], args[1])
    if name == "not" and isinstance(args[0], Const) and dtype.kind == "b":
        return boolean(not args[0].value)
    if name == "select" and isinstance(args[0], Const):
        return args[1] if args[0].value else args[2]
    return Op(name, args, np.dtype(dtype))


def _of_power(name: str, args: tuple[E, ...], dtype: np.dtype) -> E | None:
    """A division by a power of two as an operation of bits, where there is one."""
    bits = of(name).of_power
    divisor = args[1].value if bits and isinstance(args[1], Const) else as_dim(args[1]) if bits else None
    if not isinstance(divisor, (int, np.integer)) or divisor <= 0 or int(divisor).bit_count() != 1:
        return None
    assert bits is not None
    other = int(divisor) - 1 if bits == "and" else int(divisor).bit_length() - 1
    return Op(bits, (args[0], constant(other, dtype)), dtype)


def _convert(x: E, dtype: np.dtype) -> E:
    if x.dtype == dtype:
        return x
    if isinstance(x, Const) and not (x.value.dtype.kind in "fc" and np.dtype(dtype).kind in "iu"):
        with np.errstate(all="ignore"):
            return constant(np.asarray(x.value).astype(dtype)[()], dtype)
    if isinstance(x, Index) and isinstance(x.dim, int) and np.dtype(dtype).kind in "fc":
        return constant(x.dim, dtype)
    return Op("convert", (x,), np.dtype(dtype))


def _integer(facts: Facts, name: str, dims: tuple[DimLike, ...], dtype: np.dtype) -> E | None:
    if name in _RING and dtype == i64:
        result = _RING[name](*dims)
    elif name == "neg" and dtype == i64:
        result = -dims[0]
    elif name in _BOUNDED and all(_bounded(facts, d) for d in dims):
        result = facts.simplify(_BOUNDED[name](*dims))
    elif name in _QUOTIENTS and all(_bounded(facts, d) for d in dims) and isinstance(dims[1], int) and dims[1] > 0:
        result = facts.simplify(_QUOTIENTS[name](*dims))
    elif name in _ORDER and all(_bounded(facts, d) for d in dims):
        return _decide(facts, name, *dims)
    else:
        return None
    if isinstance(result, int) and not -(2**63) <= result < 2**63:
        return None
    return Index(result) if is_small(result) and _coefficients_fit(result) else None


def _coefficients_fit(dim: DimLike) -> bool:
    return isinstance(dim, int) or all(abs(c) < 2**31 for _, c in dim.terms)


def _bounded(facts: Facts, dim: DimLike) -> bool:
    return all(facts.ranges.get(s, (0, None)) != (None, None) for s in symbols(dim))


def _decide(facts: Facts, name: str, a: DimLike, b: DimLike) -> E | None:
    if name in ("gt", "ge"):
        return _decide(facts, {"gt": "lt", "ge": "le"}[name], b, a)
    if name == "lt":
        return boolean(True) if facts.less(a, b) else boolean(False) if facts.less_equal(b, a) else None
    if name == "le":
        return boolean(True) if facts.less_equal(a, b) else boolean(False) if facts.less(b, a) else None
    apart = facts.less(a, b) or facts.less(b, a)
    if a == b or apart:
        return boolean((a == b) == (name == "eq"))
    return None


def _logic(name: str, a: E, b: E) -> E:
    for x, other in ((a, b), (b, a)):
        if isinstance(x, Const):
            return other if bool(x.value) == (name == "and") else x
    return Op(name, (a, b), np.dtype(bool))


_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def negated(e: E) -> E:
    """`not e`, without two `not` in a row. An order of floats has no opposite: none holds beside NaN."""
    truth = np.dtype(bool)
    if isinstance(e, Op) and e.name == "not":
        return e.args[0]
    if isinstance(e, Op) and e.name in ("and", "or"):
        return Op({"and": "or", "or": "and"}[e.name], tuple(map(negated, e.args)), truth)
    if isinstance(e, Op) and e.name in _OPPOSITE and all(x.dtype.kind in "iu" for x in e.args):
        return Op(_OPPOSITE[e.name], e.args, truth, e.span)
    return Op("not", (e,), truth)


__all__ = ["apply", "as_dim", "is_size", "is_small", "negated"]
