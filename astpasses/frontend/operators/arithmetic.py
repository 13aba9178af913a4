"""Operators on staged values: NumPy's promotion for arrays and NumPy scalars, Python's rules for Python
numbers.

In: two operands, at least one staged. Out: a staged value; broadcasting and conversion are operations of
the program.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from metaphrase import ops  # noqa: F401  (declares the primitives)
from metaphrase.core.dims import Dim, DimLike
from metaphrase.core.foreign import Spellings
from metaphrase.core.ir import Atom
from metaphrase.core.native import Point
from metaphrase.core.primitive import REGISTRY, Primitive
from metaphrase.core.types import is_inexact
from metaphrase.ops.arithmetic import integer_pow
from metaphrase.ops.compare import eq, ge, le
from metaphrase.ops.effects import check
from metaphrase.ops.elementary import sqrt
from metaphrase.ops.shape import broadcast, reshape
from metaphrase.ops.weak_integers import is_narrow

from ..flow.iterators import Ranged
from ..rewrite.plain import COMPARED, OPERATORS, SWAPPED
from ..staging.session import Session, session
from ..staging.stand_ins import no_numbers_of_the_run, takes_numbers
from ..values.capacities import cut
from ..values.staged_values import Number, Staged, StagedArray, counts
from .kinds import (
    WEAK,
    common_doubts,
    doubtful,
    dtype_of,
    is_doubtful,
    is_of_two_types,
    is_wide,
    settled_kinds,
    weak_type,
)

_UFUNCS = (
    "add subtract multiply true_divide floor_divide remainder power bitwise_and bitwise_or bitwise_xor "
    "left_shift right_shift less less_equal greater greater_equal equal not_equal"
)
_SYMBOLS = "+ - * / // % ** & | ^ << >> < <= > >= == !="
UFUNCS: dict[str, np.ufunc] = {s: getattr(np, n) for s, n in zip(_SYMBOLS.split(), _UFUNCS.split(), strict=True)}
SPELLED: dict[Callable, Primitive] = Spellings(
    {s: p for p in REGISTRY.values() if isinstance(p.native, Point) for s in p.spellings}
)
COMPARISONS = set(COMPARED)
_OPERANDS = (Staged, bool, int, float, complex, np.generic, np.ndarray, list, tuple)
_OF_KIND = {"i": int, "u": int, "f": float, "c": complex}


def operand(value: Any) -> Any:
    """Sequences and concrete arrays as staged arrays; all else as it is."""
    if isinstance(value, (list, tuple)) or is_range(value):
        from ..calls.creation import array_from

        return array_from(value)
    return session().lift(value) if isinstance(value, np.ndarray) else value


def is_range(value: Any) -> bool:
    return isinstance(value, range) or isinstance(value, Ranged) and bool(value.bounds)


def dims_of(value: Any) -> tuple:
    return value.type.dims if isinstance(value, StagedArray) else ()


# --- broadcasting ---


def broadcast_dims(shapes: Sequence[tuple]) -> tuple:
    """NumPy's broadcast of shapes; sizes that can't be compared are checked at run time."""
    rank = max(map(len, shapes))
    out: list[DimLike] = []
    for k in range(rank):
        column = [s[len(s) - rank + k] for s in shapes if len(s) - rank + k >= 0]
        wide = [d for d in column if d != 1]
        if not wide:
            out.append(1)
            continue
        known = next((d for d in wide if isinstance(d, int)), wide[0])
        for dim in wide:
            if dim != known and isinstance(dim, int) and isinstance(known, int):
                shown = " ".join(str(tuple(s)).replace(" ", "") for s in shapes)
                raise session().shape_error(
                    f"operands could not be broadcast together with shapes {shown}", remedy="make the sizes equal, or 1"
                )
        out.append(known)
    return tuple(out)


def spread(here: Session, atom: Atom, dims: tuple) -> Atom:
    """Broadcast an atom to `dims` by NumPy's rule. What surely has fewer elements has one."""
    have = atom.type.dims
    if have == dims:
        return atom
    offset = len(dims) - len(have)
    for k, d in enumerate(have):
        if d != 1 and d != (size := dims[offset + k]):
            atom = equal_size(here, atom, k, 1 if here.facts.less(d, size) else size, (d, size))
    have = atom.type.dims
    keep = [k for k, d in enumerate(have) if d != 1 or dims[offset + k] == 1]
    if len(keep) != len(have):
        atom = here.emit(reshape, atom, shape=tuple(atom.type.dims[k] for k in keep))
    if atom.type.dims == dims:
        return atom
    return here.emit(broadcast, atom, shape=dims, axes=tuple(offset + k for k in keep))


def equal_size(here: Session, atom: Atom, axis: int, dim: DimLike, shown: Sequence[DimLike] | None = None) -> Atom:
    """Say that a size is `dim`: by proof, else by a check when the program runs. `shown`: the sizes in its message."""
    message = "operands could not be broadcast together: sizes {} and {}"
    require_equal(here, atom.type.dims[axis], dim, message, values=shown)
    return cut(here, atom, tuple(dim if k == axis else d for k, d in enumerate(atom.type.dims)))


def require_equal(
    here: Session,
    have: DimLike,
    wanted: DimLike,
    message: str,
    remedy: str = "",
    code: str = "shape",
    exception: str = "ValueError",
    values: Sequence[DimLike] | None = None,
) -> None:
    """Two sizes are equal: by proof, else by an exception when the program runs. `message` may show them, or
    `values`."""
    if isinstance(have - wanted, int):
        if have != wanted:
            shown = (have, wanted) if values is None else values
            raise here.shape_error(message.format(*shown), remedy=remedy, code=code)
    elif not here.facts.equal(have, wanted):
        a, b = here.dim_atom(have), here.dim_atom(wanted)
        atoms = (a, b)[: message.count("{")] if values is None else map(here.dim_atom, values)
        here.emit(check, here.emit(eq, a, b), *atoms, exception=exception, message=message)


def require_room(here: Session, dims: tuple, target: tuple) -> None:
    """Refuse a result that can't be stretched to the array it is stored into. Where only the run knows a size
    (`H[3 * k : 3 * k + 3] += f`), spreading the result checks it."""
    merged = broadcast_dims([dims, target])
    if len(merged) != len(target) or any(
        m != t and isinstance(m, int) and isinstance(t, int) for m, t in zip(merged, target)
    ):
        raise here.shape_error(
            f"non-broadcastable output operand with shape {target} doesn't match the broadcast shape {merged}",
            remedy="make the sizes equal, or write x = x + ... to make a new array",
        )


def require_count(here: Session, have: DimLike, count: int) -> None:
    """Refuse to unpack `have` values into another `count` of names, here or when the program runs."""
    few = f"not enough values to unpack (expected {count}, got {{}})"
    many = f"too many values to unpack (expected {count})"
    if isinstance(have, int):
        raise ValueError(many if have > count else few.format(have))
    size, wanted = here.dim_atom(have), here.dim_atom(count)
    for holds, message in ((ge, few), (le, many)):
        shown = (size,)[: message.count("{")]
        here.emit(check, here.emit(holds, size, wanted), *shown, exception="ValueError", message=message)


# --- NumPy's elementwise functions ---


def resolve(ufunc: np.ufunc, dtypes: Sequence[Any]) -> tuple:
    """Input dtypes by NumPy's own resolution, weak numbers as Python types."""
    if all(isinstance(d, type) for d in dtypes):
        dtypes = [WEAK[d] for d in dtypes]
    try:
        return ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))[: ufunc.nin]
    except TypeError:
        shown = ", ".join(d.__name__ if isinstance(d, type) else str(d) for d in dtypes)
        raise session().dtype_error(
            f"{ufunc.__name__} does not take operands of type {shown}", remedy="convert the operands with .astype(...)"
        ) from None


def elementwise(
    primitive: Primitive,
    values: Sequence[Any],
    dtypes: Sequence[Any],
    *,
    python: type | None = None,
    always_array: bool = False,
    **attributes: Any,
) -> Any:
    """Convert, broadcast and bind."""
    here = session()
    dims = broadcast_dims([dims_of(v) for v in values])
    atoms = [spread(here, here.atom(v, np.dtype(d)), dims) for v, d in zip(values, dtypes)]
    out = here.emit(primitive, *atoms, **attributes)
    return here.array(out) if always_array else here.wrap(out, python)


def ufunc(function: np.ufunc, values: Sequence[Any]) -> Any:
    """Apply a NumPy ufunc that a primitive answers to."""
    values = settled_kinds([operand(v) for v in values], True)
    if any(map(is_of_two_types, values)):
        return apply_to_both(function, values, lambda values: ufunc(function, values))
    primitive = SPELLED[function]
    return elementwise(primitive, values, resolve(function, [dtype_of(v) for v in values]))


def apply_to_both(function: np.ufunc, values: Sequence[Any], apply: Callable) -> Any:
    """`apply(values)` where some values are Python's numbers on some paths and NumPy's, of a narrower type, on others.
    They are held as wide as Python's; beside NumPy's numbers and arrays they take the types that these give them."""
    here = session()
    two = [v if is_of_two_types(v) else None for v in values]
    others = any(t is None and weak_type(v) is None for v, t in zip(values, two))
    narrow = [dtype_of(v) if t is None else np.dtype(t.narrow) for v, t in zip(values, two)]
    kinds: Sequence[Any] = [None if t is None else np.result_type(t.dtype, WEAK[_OF_KIND[t.dtype.kind]]) for t in two]
    by_value = function in map(UFUNCS.get, COMPARISONS) and all(t is None or counts(t) for t in two)
    if others and not by_value:
        weak = [k if t is None else _OF_KIND[t.dtype.kind] for k, t in zip(narrow, two)]
        kinds = list(map(np.promote_types, resolve(function, narrow), resolve(function, weak)))
    made = apply([v if t is None else here.wrap(here.atom(v, k)) for v, t, k in zip(values, two, kinds)])
    if others or function.nout > 1:
        return made
    result = function.resolve_dtypes((*narrow, None))[-1]
    return made if result == made.dtype else here.wrap(here.atom(made), result.type)


# --- Python's operators ---


def binary(symbol: str, left: Any, right: Any) -> Any:
    """`left symbol right`."""
    for value in (left, right):
        if not isinstance(value, _OPERANDS) and not is_range(value):
            if isinstance(value, numbers.Number):
                _refuse_exact(symbol, left, right, type(value).__name__)
            if symbol in ("==", "!="):
                return symbol == "!="
            return NotImplemented
    if _is_sequence_operation(symbol, left, right) or _is_sequence_operation(symbol, right, left):
        return NotImplemented
    left, right = operand(left), operand(right)
    left, right = settled_kinds((left, right))
    if (symbol in "+-*" or symbol in COMPARISONS) and (doubts := common_doubts(left, right, int)):
        made = binary(symbol, *(v.either() if is_doubtful(v) else v for v in (left, right)))
        return doubtful(made.session, made._atom, bool if symbol in COMPARISONS else float, doubts)
    if symbol == "@":
        from ..calls.call import call_value

        return call_value(np.matmul, (left, right), {})
    if weak_type(left) is not None and weak_type(right) is not None:
        from .python_numbers import weak_binary

        return weak_binary(symbol, left, right)
    if any(map(is_of_two_types, (left, right))):
        return apply_to_both(UFUNCS[symbol], (left, right), lambda values: binary(symbol, *values))
    if symbol == "**":
        special = _special_power(left, right)
        if special is not None:
            return special
        if not any(weak_type(v) in (float, complex) for v in (left, right)):
            return _by_library(symbol, left, right)
    if symbol in COMPARISONS:
        kinds = [dtype_of(v) for v in (left, right)]
        mixed = np.dtype("uint64") in kinds and any(getattr(k, "kind", "") == "i" for k in kinds)
        mixed |= any(getattr(k, "kind", "") in ("i", "u") for k in kinds) and any(map(is_wide, (left, right)))
        if mixed or int in kinds and any(isinstance(k, np.dtype) and is_narrow(k) for k in kinds):
            return _by_library(symbol, left, right)
        if symbol not in ("==", "!=") and any(k is complex or getattr(k, "kind", "") == "c" for k in kinds):
            return _by_library(symbol, left, right)
    return ufunc(UFUNCS[symbol], (left, right))


def _refuse_exact(symbol: str, left: Any, right: Any, name: str) -> None:
    """A fraction, or a decimal number, and a staged value: Python knows what that is, where they fit."""
    if takes_numbers(OPERATORS[symbol], (left, right), {}):
        here = session()
        raise no_numbers_of_the_run(here, f"`{symbol}` of a {name} and a staged value has no translation")


def _is_sequence_operation(symbol: str, items: Any, number: Any) -> bool:
    """A list and a staged scalar where NumPy has no part: `[0.0] * n` repeats the list, in Python."""
    if is_range(items):
        return weak_type(number) is not None
    if not isinstance(items, (list, tuple)) or not isinstance(number, Number):
        return False
    if symbol == "*" and number.dtype.kind not in "iub":
        name = number.python.__name__ if number.python else f"numpy.{number.dtype}"
        raise TypeError(f"can't multiply sequence by non-int of type '{name}'")
    return symbol == "*" or number.python is not None


def _by_library(symbol: str, left: Any, right: Any) -> Any:
    """What is more than one primitive: the library of `ops` writes it."""
    from ..calls.library_calls import call_library

    return call_library(UFUNCS[symbol], (left, right), {})


def _special_power(base: Any, exponent: Any) -> Any:
    """x ** 2 as a product, x ** 0.5 as a root, as NumPy does for arrays."""
    if not isinstance(exponent, (int, float)) or isinstance(exponent, bool) or not hasattr(base, "dtype"):
        return None
    kind = base.dtype
    if exponent == 0.5 and isinstance(base, StagedArray) and is_inexact(kind) and kind.kind != "c":
        return elementwise(sqrt, [base], [kind])
    if isinstance(exponent, float) and not (exponent.is_integer() and is_inexact(kind)):
        return None
    if kind.kind == "b" and exponent == 2 and isinstance(base, StagedArray):  # a square, which bools make i8
        kind = np.dtype(np.int8)
        return elementwise(integer_pow, [session().array(session().atom(base, kind))], [kind], exponent=2)
    if kind.kind == "b" or abs(exponent) > 64 or (exponent < 0 and not is_inexact(kind)):
        return None
    return elementwise(integer_pow, [base], [kind], exponent=int(exponent))


def dim_of(value: Any) -> DimLike | None:
    """The expression an integer equals, as far as it is known."""
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, np.integer)):
        return int(value)
    return value.dim if isinstance(value, Number) else None


def symbolic(symbol: str, left: Any, right: Any) -> DimLike | None:
    a, b = dim_of(left), dim_of(right)
    if a is None or b is None:
        return None
    divides = symbol in ("//", "%") and isinstance(b, int) and b != 0
    return OPERATORS[symbol](a, b) if symbol in ("+", "-", "*") or divides else None


def dim_binary(here: Session, symbol: str, left: Any, right: Any) -> Any:
    """Sizes stay sizes: n + 1 is no operation of the program while types can say it."""
    dim = symbolic(symbol, left, right)
    if dim is None:
        return None
    if isinstance(dim, int):
        return dim
    pure = all(not isinstance(v, Number) or v._atom is None for v in (left, right))
    return Number(here, None, int, dim) if pure and here.is_bound(dim) else None


def decide(here: Session, symbol: str, left: Any, right: Any) -> bool | None:
    """A comparison of sizes or loop indices that holds, or fails, whatever they are."""
    a, b = dim_of(left), dim_of(right)
    if a is None or b is None:
        return None
    facts = here.facts
    if symbol in ("==", "!="):
        if a == b:
            return symbol == "=="
        if facts.less(a, b) or facts.less(b, a):
            return symbol == "!="
        return None
    if symbol in (">", ">="):
        a, b, symbol = b, a, SWAPPED[symbol]
    if symbol == "<":
        return True if facts.less(a, b) else False if facts.less_equal(b, a) else None
    return True if facts.less_equal(a, b) else False if facts.less(b, a) else None


def unary(name: str, value: Staged) -> Any:
    """`-x`, `+x`, `~x`, `abs(x)`."""
    here = session()
    function = {"neg": np.negative, "pos": np.positive, "invert": np.invert, "abs": np.absolute}[name]
    if isinstance(value, Number) and value.python is not None:
        if name == "neg" and value.dim is not None and value._atom is None:
            dim: DimLike | None = -value.dim
            return Number(here, None, int, dim) if isinstance(dim, Dim) else dim
        if name == "invert" and value.python not in (int, bool):
            raise TypeError(f"bad operand type for unary ~: {value.python.__name__!r}")
        if name == "invert":
            return -value - 1
        kind = int if value.python is bool else value.python
        if name == "pos":
            return here.wrap(here.atom(value, WEAK[kind]), kind, value.dim)
        result = float if kind is complex and name == "abs" else kind
        dim = None if value.dim is None else -value.dim if name == "neg" else None
        return here.wrap(here.emit(SPELLED[function], here.atom(value, WEAK[kind])), result, dim)
    if name == "pos":
        if value.dtype == bool:
            raise here.dtype_error("unary + takes no bools", remedy="convert them with .astype(...)")
        return here.wrap(here.atom(value))
    return ufunc(function, (value,))


def inplace(symbol: str, target: StagedArray, value: Any) -> StagedArray:
    """`target op= value`: the array's content changes, its dtype does not."""
    here = session()
    result = binary(symbol, target, value)
    return result if result is NotImplemented else store_result(here, result, target, symbol)


def store_result(
    here: Session, result: Any, target: StagedArray, symbol: str, casting: Any = "same_kind"
) -> StagedArray:
    """The result of an operation as the content of an array that is there."""
    from .indexing import write_view

    check_castable(here, result, target, symbol, casting)
    require_room(here, dims_of(result), target.type.dims)
    write_view(target, spread(here, here.atom(result, target.dtype), target.type.dims))
    return target


def check_castable(here: Session, result: Any, target: Any, symbol: str, casting: Any = "same_kind") -> None:
    """NumPy refuses `ints += floats`, and `out=ints` of floats."""
    have = dtype_of(result)
    have = WEAK[have] if isinstance(have, type) else have
    if not np.can_cast(have, target.dtype, casting):
        raise here.dtype_error(
            f"Cannot cast output of '{symbol}=' from {have} to {target.dtype}",
            remedy=f"make the array {have} first, or "
            + ("leave `out` out" if symbol == "out" else f"write x = x {symbol} ..."),
        )
