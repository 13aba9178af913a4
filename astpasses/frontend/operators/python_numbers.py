"""Arithmetic of staged Python numbers, by Python's own rules, which differ from NumPy's.

In: an operator and two Python numbers, at least one staged. Out: a staged Python number, and checks for what
Python raises. Python's ints have no limit and the program's have 64 bits: what may leave them is checked and
raises OverflowError. A sum with a size, a loop index or a constant below 2**44 is not checked.

    weak_binary("/", k, 2)      # k: a staged int; a float
    k * m                       # check: |float(k) * float(m)| < 2**63
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from metaphrase.core.build import literal
from metaphrase.core.dims import Dim
from metaphrase.core.facts import UNBOUNDED
from metaphrase.core.ir import Atom
from metaphrase.ops.arithmetic import abs_, add, div, fmod, integer_pow, mul, neg, sub
from metaphrase.ops.compare import and_, eq, ge, le, lt, ne, or_, select
from metaphrase.ops.effects import check
from metaphrase.ops.elementary import floor, rint, stop_gradient
from metaphrase.ops.limits import LIMIT, fits, surely_fits
from metaphrase.ops.shape import broadcast, convert

from ..rewrite.plain import OPERATORS, SWAPPED
from ..staging.knowledge import relate
from ..staging.session import Session, session
from ..values.capacities import capacity
from ..values.staged_values import Number, Staged
from .arithmetic import COMPARISONS, SPELLED, UFUNCS, decide, dim_binary, dim_of, symbolic
from .kinds import RANK, WEAK, is_wide, weak_type


def _takes_one_element() -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return float(np.ones(1)) == 1.0
        except TypeError:
            return False


LONE_ELEMENTS = _takes_one_element()  # whether an array of one element counts as a number, as until NumPy 2.3

_i64, _f64 = WEAK[int], WEAK[float]
_SMALL = 2**44  # sizes, loop indices, bools and small constants: sums with them are taken to stay in 64 bits
# In messages of what fails in translated code only: no handler of the user's takes it.
OURS = "when translated"
_TOO_LARGE = f"the result of '{{symbol}}' does not fit in 64 bits, all that Python ints have {OURS}"


def weak_binary(symbol: str, left: Any, right: Any) -> Any:
    """Both are Python numbers: Python's own rules, with staged operands."""
    here = session()
    kinds: Any = weak_type(left), weak_type(right)
    kind = RANK[max(map(RANK.index, kinds))]
    if is_wide(left) or is_wide(right):
        if symbol in COMPARISONS and kind is not complex:
            return _compared_with_wide(symbol, left, right)
        if kind is int:
            raise OverflowError(_TOO_LARGE.format(symbol=symbol))
    if kind is int and symbol in "+-*//%" and symbol != "/":
        found = dim_binary(here, symbol, left, right)
        if found is not None:
            if isinstance(found, Number) and isinstance(found.dim, Dim):
                _check_size_fits(here, symbol, found.dim)
            return found
        if isinstance(right, int) and (symbol in "+-" and right == 0 or symbol in ("*", "//") and right == 1):
            return left if kinds[0] is int else +left
        if isinstance(left, int) and (symbol == "+" and left == 0 or symbol == "*" and left == 1):
            return right if kinds[1] is int else +right
    _check_operands(here, symbol, kind, kinds)
    result = kind
    if symbol in COMPARISONS:
        result = bool
        if kind is int and (decided := decide(here, symbol, left, right)) is not None:
            return decided
    elif symbol == "/":
        kind = result = float if kind in (bool, int) else kind
    elif kind is bool and symbol not in "&|^":
        kind = result = int
    if symbol in ("/", "//", "%"):
        integers = all(k in (bool, int) for k in kinds)
        _check_divisor(here, right, int if integers else kind, symbol)
    if symbol == "**":
        return _weak_power(here, left, right)
    a, b = here.atom(left, WEAK[kind]), here.atom(right, WEAK[kind])
    if symbol in ("<<", ">>"):
        _require(here, here.emit(ge, b, literal(0)), "ValueError", "negative shift count")
    out = here.emit(SPELLED[UFUNCS[symbol]], a, b)
    if symbol in COMPARISONS and kind is int:
        relate(here, out, symbol, dim_of(left), dim_of(right))
    if result is int:
        _check_fits(here, symbol, (left, a), (right, b), out)
    return here.wrap(out, result, dim=symbolic(symbol, left, right) if result is int else None)


def _compared_with_wide(symbol: str, left: Any, right: Any) -> Any:
    """A comparison with an int that 64 bits do not hold: it is known of ints; floats may be as large."""
    if is_wide(left):
        return _compared_with_wide(SWAPPED[symbol], right, left)
    if left.python is not float:
        return bool(OPERATORS[symbol](0, right))
    if abs(right) < 2**1024 - 2**970:  # a float is as large, and where it is no int the nearest one is
        near = float(right)
        gap = int(near) - right
        return weak_binary(symbol, left, near) if not gap else _beside(symbol, left, near, gap)
    return _beside(symbol, left, math.inf, 1) if right > 0 else _beside(symbol, left, -math.inf, -1)


def _beside(symbol: str, left: Any, near: float, gap: int) -> Any:
    """A comparison with what lies beside `near` and is no float: below it where `gap` is positive."""
    if symbol in ("==", "!="):
        return symbol == "!="
    strict = (symbol[0] == "<") == (gap > 0)
    return weak_binary(symbol[0] + "=" * (not strict), left, near)


def _check_operands(here: Session, symbol: str, kind: type, kinds: tuple) -> None:
    """Operators that Python does not have for these types."""
    ordered = symbol in ("<", "<=", ">", ">=")
    bits = symbol in ("<<", ">>", "&", "|", "^")
    if kind is complex and (symbol in ("//", "%") or ordered) or bits and kind not in (bool, int):
        names = " and ".join(f"'{k.__name__}'" for k in kinds)
        raise here.dtype_error(
            f"'{symbol}' is not defined for {names}",
            remedy="convert the numbers with int(...), or take their real parts",
        )


def _require(here: Session, ok: Atom, exception: str, message: str, *values: Atom) -> None:
    here.emit(check, ok, *values, exception=exception, message=message)


def _check_divisor(here: Session, divisor: Any, kind: type, symbol: str) -> None:
    """Python numbers divided by zero raise."""
    if not isinstance(divisor, Number):
        if not divisor:
            words = {"/": "division by zero", "//": "integer division or modulo by zero", "%": "integer modulo by zero"}
            raise ZeroDivisionError(words[symbol])
        return
    if divisor.dim is not None and (here.facts.less(0, divisor.dim) or here.facts.less(divisor.dim, 0)):
        return
    atom = here.atom(divisor)
    message = "division by zero" if symbol == "/" else "integer division or modulo by zero"
    if kind is float:
        message = "float division by zero" if symbol == "/" else "float modulo"
    nonzero = here.emit(ne, atom, literal(0, atom.type.dtype))
    _require(here, nonzero, "ZeroDivisionError", message)


# --- 64 bits ---


def _magnitude(here: Session, value: Any) -> int:
    """What a number does not exceed, be it a constant, a bool, or made of sizes and loop indices. A variable
    that a loop carries counts if a test bounds it where it is used, as `while i < n` does."""
    if not isinstance(value, Number):
        return abs(value)
    if value.dim is None:
        return 1 if value.python is bool else UNBOUNDED
    return here.facts.magnitude(value.dim, here.argument_sizes)


def _check_size_fits(here: Session, symbol: str, dim: Dim) -> None:
    """OverflowError where products of sizes leave 64 bits: one test, of what does not change in a loop."""
    if not surely_fits(dim, here.facts, here.argument_sizes, here.argument_counts):
        with here.stamped():
            _overflow(here, fits(dim), symbol)


def _check_fits(here: Session, symbol: str, left: tuple, right: tuple, out: Atom) -> None:
    """OverflowError where the integer result is not what Python's unlimited ints would give.

    It is no exception that a `try` around it could mean, so it is not refused there.
    """
    (a_value, a), (b_value, b) = left, right
    sizes = _magnitude(here, a_value), _magnitude(here, b_value)
    if symbol in ("+", "-"):
        if min(sizes) < _SMALL:
            return
        # the signs: a sum leaves the range only if both operands have the sign that the result has not
        first = here.emit(ge, a, literal(0))
        second = here.emit(ge if symbol == "+" else lt, b, literal(0))
        ok = here.emit(or_, here.emit(ne, first, second), here.emit(eq, here.emit(ge, out, literal(0)), first))
    elif symbol == "*":
        if sizes[0] * sizes[1] < LIMIT:
            return
        dim = symbolic(symbol, a_value, b_value)
        largest = None if dim is None or not here.facts.nonnegative(dim) else capacity(here, [dim])
        if isinstance(largest, Dim):
            return _check_size_fits(here, symbol, largest)
        factor, x = (a_value, b) if isinstance(a_value, int) else (b_value, a)
        if isinstance(factor, int):
            down, up = (2**63, 2**63 - 1) if factor > 0 else (2**63 - 1, 2**63)
            low, high = -(down // abs(factor)), min(up // abs(factor), 2**63 - 1)
            ok = here.emit(and_, here.emit(ge, x, literal(low)), here.emit(le, x, literal(high)))
        else:
            wide = here.emit(mul, here.emit(convert, a, dtype=_f64), here.emit(convert, b, dtype=_f64))
            ok = here.emit(lt, here.emit(abs_, wide), literal(LIMIT))
    elif symbol == "<<":
        ok = here.emit(eq, here.emit(SPELLED[np.right_shift], out, b), a)
        ok = here.emit(and_, ok, here.emit(lt, b, literal(64)))
        ok = here.emit(or_, ok, here.emit(eq, a, literal(0)))
    else:
        return
    _overflow(here, ok, symbol)


def _overflow(here: Session, ok: Atom, symbol: str) -> None:
    attributes = {"exception": "OverflowError", "message": _TOO_LARGE.format(symbol=symbol)}
    here.region.builder.bind(check, (ok,), attributes, span=here.span())


_WIDE = f"cannot convert float {{}} to an integer of 64 bits, all that Python ints have {OURS}"


_UNSIGNED = f"an unsigned integer has more than the 64 bits with a sign that Python ints have {OURS}"


def to_integer(here: Session, atom: Atom, limit: str = _WIDE) -> Atom:
    """A number as Python's int, a float cut towards zero; NaN and what 64 bits do not hold raise."""
    if atom.type.dtype == np.uint64:
        most: Atom = literal(2**63 - 1, atom.type.dtype)
        if atom.type.dims:
            most = here.emit(broadcast, most, shape=atom.type.dims, axes=())
        _require(here, here.emit(le, atom, most), "OverflowError", _UNSIGNED)
        return here.emit(convert, atom, dtype=_i64)
    if atom.type.dtype.kind != "f":
        return here.atom(atom, _i64)
    wide = here.atom(atom, _f64)
    _require(here, here.emit(eq, wide, wide), "ValueError", "cannot convert float NaN to integer")
    fits = here.emit(lt, here.emit(abs_, wide), literal(2.0**63))
    _require(here, fits, "OverflowError", limit, wide)
    return here.emit(convert, wide, dtype=_i64)


def held(here: Session, value: Any, dtype: np.dtype) -> Atom:
    """A value as an array or a scalar of `dtype` takes it: a float that its integers do not hold raises.
    Unsigned ones take NumPy's floats modulo their range, as NumPy does."""
    if isinstance(value, Number) and value.python is complex and dtype.kind in "iuf":
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    checked = isinstance(value, Number) and value.dtype.kind == "f" and dtype != np.uint64
    if not checked or dtype.kind not in ("iu" if value.python is float else "i"):
        return here.atom(value, dtype)
    whole = to_integer(here, here.atom(value), "Python int too large to convert to C long")
    return here.atom(here.wrap(whole, int), dtype)


def round_python(value: Staged, digits: int | None) -> Any:
    """`round(x)`: an int for Python numbers; halves to even."""
    if isinstance(digits, float):
        raise TypeError("'float' object cannot be interpreted as an integer")
    from ..calls.call import call_value

    if not isinstance(value, Number) or value.python is complex:
        kind = "complex" if isinstance(value, Number) else "numpy.ndarray"
        raise TypeError(f"type {kind} doesn't define __round__ method")
    if value.python is int:
        return value if digits is None or digits >= 0 else _round_int(value, 10**-digits)
    here = session()
    if value.python is float and isinstance(digits, int) and 0 < abs(digits) <= 22:
        return round_digits(here, value, digits)
    out = call_value(np.round, (value, digits or 0), {})
    if digits is None:
        return here.wrap(to_integer(here, here.atom(out)), int)
    return here.wrap(here.atom(out), value.python)


def _round_int(value: Number, unit: int) -> Any:
    """The nearest multiple of `unit`; halves to the even one."""
    from ..flow.lazy import choose

    if unit >= 2**62:
        return value * 0
    below = value // unit
    rest = value - below * unit
    up = choose(rest * 2 == unit, lambda: below % 2 == 1, lambda: rest * 2 > unit)
    return (below + choose(up, lambda: 1, lambda: 0)) * unit


def round_digits(here: Session, value: Number, digits: int) -> Number:
    """`round(x, digits)` of a float, by its exact value, for up to 22 digits before or after the point:
    10**22 is a float."""
    x = here.atom(value)
    out = _round_decimals(here, x, 10.0**digits) if digits > 0 else _round_multiple(here, x, 10.0**-digits)
    return here.wrap(here.emit(stop_gradient, out), float)


def _round_decimals(here: Session, x: Atom, unit: float) -> Atom:
    """To multiples of `1 / unit`. The float 2.675 is a little less: where the product with `unit` seems to be
    halfway, what was lost in it decides. Of factors of 24 and 29 bits no product loses any."""
    parts = [literal(float(np.float32(unit))), literal(unit - float(np.float32(unit)))]
    product = here.emit(mul, x, literal(unit))
    whole = here.emit(rint, product)
    high = here.emit(convert, here.emit(convert, x, dtype=np.dtype(np.float32)), dtype=_f64)
    lost = here.emit(sub, here.emit(mul, high, parts[0]), product)
    for factor in (high, here.emit(sub, x, high)):
        for part in parts[factor is high :]:
            lost = here.emit(add, lost, here.emit(mul, factor, part))
    gap = here.emit(sub, product, whole)
    half, zero, one = literal(0.5), literal(0.0), literal(1.0)
    up = here.emit(and_, here.emit(eq, gap, half), here.emit(lt, zero, lost))
    down = here.emit(and_, here.emit(eq, gap, literal(-0.5)), here.emit(lt, lost, zero))
    lower = here.emit(select, down, here.emit(sub, whole, one), whole)
    whole = here.emit(select, up, here.emit(add, whole, one), lower)
    small = here.emit(lt, here.emit(abs_, product), literal(2.0**53))
    return here.emit(select, small, here.emit(div, whole, literal(unit)), x)


def _round_multiple(here: Session, x: Atom, unit: float) -> Atom:
    """To multiples of `unit`; halves to the even one."""
    size, step, one = here.emit(abs_, x), literal(unit), literal(1.0)
    rest = here.emit(fmod, size, step)
    count = here.emit(div, here.emit(sub, size, rest), step)
    half = here.emit(rint, here.emit(mul, count, literal(0.5)))
    odd = here.emit(ne, here.emit(add, half, half), count)
    twice = here.emit(add, rest, rest)
    tie = here.emit(and_, here.emit(eq, twice, step), odd)
    more = here.emit(or_, here.emit(lt, step, twice), tie)
    found = here.emit(mul, here.emit(select, more, here.emit(add, count, one), count), step)
    signed = here.emit(select, here.emit(lt, x, literal(0.0)), here.emit(neg, found), found)
    fits = here.emit(lt, size, literal(unit * 2.0**53))
    return here.emit(select, here.emit(and_, fits, here.emit(lt, literal(0.0), size)), signed, x)


# --- powers ---


def _weak_power(here: Session, left: Any, right: Any) -> Any:
    """`left ** right`: an int to a negative int is a float, so the sign of the exponent has to be known."""
    kinds: list[Any] = [int if weak_type(v) is bool else weak_type(v) for v in (left, right)]
    kind = RANK[max(map(RANK.index, kinds))]
    if isinstance(right, (bool, int)) and abs(right) <= 64:
        kind = kinds[0]
        if right < 0:
            kind = float if kind is int else kind
            _check_base(here, left, kind)
        atom = here.atom(left, WEAK[kind])
        out = here.emit(integer_pow, atom, exponent=int(right))
        if kind is int and right > 1:
            wide = here.emit(integer_pow, here.emit(convert, atom, dtype=_f64), exponent=int(right))
            _overflow(here, here.emit(lt, here.emit(abs_, wide), literal(LIMIT)), "**")
        return here.wrap(out, kind)
    if kind is int and isinstance(right, int) and right < 0:
        kind = float
    a, b = here.atom(left, WEAK[kind]), here.atom(right, WEAK[kind])
    power = SPELLED[np.power]
    if kind is int:
        message = f"an int to a negative int is a float in Python; the exponent must not be negative {OURS}"
        _require(here, here.emit(ge, b, literal(0)), "ValueError", message)
        out = here.emit(power, a, b)
        wide = here.emit(power, *(here.emit(convert, v, dtype=_f64) for v in (a, b)))
        _overflow(here, here.emit(lt, here.emit(abs_, wide), literal(LIMIT)), "**")
        return here.wrap(out, int)
    if kind is float:
        _check_float_power(here, left, right, a, b)
    else:
        real = isinstance(right, (int, float)) or isinstance(right, complex) and right.imag == 0
        if not (real and complex(right).real >= 0):
            _check_base(here, left, complex)
    return here.wrap(here.emit(power, a, b), kind)


def _check_base(here: Session, base: Any, kind: type) -> None:
    """Zero to a negative power."""
    what = "0.0 to a negative or complex power" if kind is complex else "zero to a negative power"
    if isinstance(base, Number):
        atom = here.atom(base, WEAK[kind])
        _require(here, here.emit(ne, atom, literal(0, WEAK[kind])), "ZeroDivisionError", what)
    elif base == 0:
        raise ZeroDivisionError(what)


def _check_float_power(here: Session, left: Any, right: Any, a: Atom, b: Atom) -> None:
    """Where Python's `**` gives a complex number, or raises."""
    zero = literal(0.0)
    whole = isinstance(right, int) or isinstance(right, float) and right.is_integer()
    if isinstance(right, Number) and right.python is int:
        whole = True
    if not whole and not (isinstance(left, (int, float)) and left >= 0):
        ok = here.emit(ge, a, zero)
        ok = here.emit(or_, ok, here.emit(ne, a, a))  # NaN stays NaN
        if isinstance(right, Number):
            ok = here.emit(or_, ok, here.emit(eq, here.emit(floor, b), b))
        refusal = f"{{}} to a fractional power is complex in Python; {OURS}, convert by complex(...) first"
        _require(here, ok, "ValueError", refusal, a)
    if isinstance(right, Number):
        ok = here.emit(or_, here.emit(ne, a, zero), here.emit(ge, b, zero))
        if not (isinstance(left, (int, float)) and left != 0):
            _require(here, ok, "ZeroDivisionError", "zero to a negative power")
    elif right < 0:
        _check_base(here, left, float)
