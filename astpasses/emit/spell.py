"""Scalar expressions as Cython, C or CUDA C.

In: scalar expressions and a dialect. Out: text, and the set of functions that it calls. Operators where they
mean what NumPy means, casts where C would promote a narrow integer, functions (helpers.py) for everything else.

    x[i]*(y[i] + 1.0)        f64_max(x[i], 0.0)        <i8>(a[i] + b[i])
"""

from __future__ import annotations

import numpy as np

from metaphrase.astpasses.schedule.expressions import (
    ATOM,
    COMPARE,
    PLUS,
    SHIFT,
    UNARY,
    XOR,
    ExpressionPrinter,
    Text,
    address,
    group,
)
from metaphrase.astpasses.schedule.nest import Const, E, Load, Op
from metaphrase.core.dims import DimLike
from metaphrase.core.scalars import facts
from metaphrase.core.types import dtype_name

from .dialects import COMPLEX, CYTHON, FLOATS, HALVES, Dialect


def _zero_minus_integer(e: Op) -> bool:
    zero, number = e.args
    return (
        isinstance(zero, Const)
        and zero.value == 0
        and not np.signbit(zero.value)
        and isinstance(number, Op)
        and number.name == "convert"
        and number.args[0].dtype.kind == "i"
        and number.args[0].dtype.itemsize >= 4
    )


_COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
_WRAPPED = {"+", "-", "*", "~"}  # signs whose result C has at the width of int
CALL = COMPARE - 5  # an argument of a call needs no parentheses
_F32 = np.dtype("float32")


def c_name(dtype: np.dtype) -> str:
    """The type's name in the text: f64, i32, b1, ..."""
    name = dtype_name(dtype)
    return "b1" if name == "bool" else name


class Printer(ExpressionPrinter):
    """Expressions of one function. `helpers` collects what they call."""

    compared = SHIFT  # in C, & binds less tightly than a comparison

    def __init__(self, dialect: Dialect = CYTHON) -> None:
        self.dialect = dialect
        self.helpers: set[str] = set()
        self.in_lanes = False  # whether a loop that becomes vectors is printed

    def call(self, name: str, *args: str) -> Text:
        self.helpers.add(name)
        return f"{name}({', '.join(args)})", ATOM

    def cast(self, name: str, text: str) -> Text:
        return self.dialect.cast.format(name, text), UNARY

    # --- leaves -----------------------------------------------------------------------------------

    def constant(self, e: Const) -> Text:
        return self.literal(e.value)

    def literal(self, value: np.generic) -> Text:
        name = c_name(value.dtype)
        if name == "b1":
            return str(int(value)), ATOM
        if name in COMPLEX:
            return self.pair(name, *(self.float_literal(x, COMPLEX[name])[0] for x in (value.real, value.imag)))
        if value.dtype.kind in "iu":
            return self.integer_literal(int(value), name)
        if name == "bf16" and self.dialect.writes_constants:
            return str(int(value.view(np.uint16))), ATOM
        if name in HALVES:
            number = self.float_literal(value, "f32")[0]
            return self.cast(name, number) if self.dialect.writes_constants else self.call(f"{name}_of_f32", number)
        return self.float_literal(value, name)

    def pair(self, name: str, re: str, im: str) -> Text:
        """A complex number of its parts."""
        if self.dialect.writes_constants:
            return f"{self.dialect.pair.format(name)}({re}, {im})", ATOM
        return self.call(f"{COMPLEX[name]}_complex", re, im)

    def integer_literal(self, value: int, name: str) -> Text:
        if name in ("u32", "u64"):
            return f"{value}{'U' if name == 'u32' else 'ULL'}", ATOM
        if value == -(2**63):
            return "(-9223372036854775807LL - 1)", ATOM
        if value == -(2**31) and name == "i32":
            return "(-2147483647 - 1)", ATOM
        wide = "LL" if abs(value) >= 2**31 else ""  # without it Cython takes a large one for a Python int
        return f"{value}{wide}", ATOM if value >= 0 else UNARY

    def whole_number(self, value: int) -> str:
        return self.integer_literal(value, "i64")[0]

    def float_literal(self, number: np.generic, name: str) -> Text:
        value, suffix = float(number), FLOATS[name]
        if not np.isfinite(value):
            special, arguments = ("nan", '""') if value != value else ("inf", "")
            if self.dialect.writes_constants:
                text = f"{self.dialect.instruction(special, suffix)}({arguments})"
            else:
                text = self.call(f"{name}_special_{special}")[0]
            return (f"-{text}", UNARY) if value < 0 else (text, ATOM)
        text = repr(value)
        if suffix and not self.dialect.writes_constants:
            return self.cast(name, text)
        return text + suffix, UNARY if text.startswith("-") else ATOM

    def place(self, e: Load) -> Text:
        if not e.buf.dims:
            return e.buf.name, ATOM
        return f"{e.buf.name}[{address(e.index, e.buf.dims, self)}]", ATOM

    def index_value(self, dim: DimLike) -> Text:
        if isinstance(dim, int):
            return self.integer_literal(dim, "i64")
        return self.spell_dim(dim)

    def dim_function(self, kind: str, operands: tuple[str, ...]) -> str:
        name = "floor_div" if kind == "floordiv" else kind
        return self.call(f"i64_{self.in_vectors(name, operands[1])}", *operands)[0]

    def in_vectors(self, name: str, operand: str) -> str:
        """An operation of i64, as it is called where loops become vectors and the second operand is a constant."""
        number = int(operand) if self.in_lanes and operand.isdecimal() else 0
        return facts(name).in_lanes or name if 2 < number < 2**31 and number & (number - 1) else name

    # --- operations -------------------------------------------------------------------------------

    def is_infix(self, e: Op) -> bool:
        sign, operand = facts(e.name).sign, e.args[0].dtype
        if operand.kind == "c" or c_name(operand) in HALVES:
            return False
        return sign in _COMPARISONS or sign in ("&", "|", "^") or e.dtype != bool

    def spell(self, e: E) -> Text:
        if not isinstance(e, Op):
            return super().spell(e)
        if e.name == "sub" and e.dtype.kind == "f" and _zero_minus_integer(e):
            # gcc 12 makes -(double)i of 0.0 - (double)i, which is -0.0 where i is 0
            assert isinstance(e.args[1], Op)
            return self.cast(c_name(e.dtype), f"(0 - {self.text(e.args[1].args[0], PLUS + 1)})")
        text = super().spell(e)
        if e.dtype.kind in "iu" and e.dtype.itemsize < 4 and facts(e.name).sign in _WRAPPED:
            return self.cast(c_name(e.dtype), f"({text[0]})")
        return text

    def function(self, e: Op) -> Text:
        if e.name == "convert":
            return self.convert(e.args[0], e.dtype)
        operand = e.args[-1].dtype
        name, known = c_name(operand), facts(e.name)
        if e.name == "bitcast":
            return self.call(f"{c_name(e.dtype)}_bits_of_{name}", *self.arguments(e))
        if e.name == "identity":
            return self.spell(e.args[0])
        if name in HALVES and known.text(name) is None:
            return self.half(e, operand)
        if name == "b1" and known.of_bools:
            return self.spell(Op(known.of_bools, e.args, e.dtype))
        if name == "b1" and e.name == "not":
            return f"{self.text(e.args[0], XOR)} ^ 1", XOR
        if known.sign and len(e.args) == 1 and operand.kind in "iuf":
            return f"{known.sign}{self.text(e.args[0], UNARY + 1)}", UNARY
        if known.powers and isinstance(e.args[1], Const) and operand.kind == "f":
            root = dict(known.powers).get(float(e.args[1].value))
            if root is not None:
                return self.call(f"{name}_{root}", self.arguments(e)[0])
        arguments = self.arguments(e)
        called = self.in_vectors(e.name, arguments[1]) if name == "i64" and len(arguments) == 2 else e.name
        return self.call(f"{name}_{called}", *arguments)

    def arguments(self, e: Op) -> list[str]:
        return [self.text(a, CALL) for a in e.args]

    def half(self, e: Op, dtype: np.dtype) -> Text:
        """Two-byte floats compute in f32 and round after every operation."""
        wide = tuple(Op("convert", (a,), _F32) if a.dtype == dtype else a for a in e.args)
        if e.dtype != dtype:
            return self.spell(Op(e.name, wide, e.dtype))
        return self.call(f"{c_name(dtype)}_of_f32", self.text(Op(e.name, wide, _F32), CALL))

    def convert(self, x: E, dtype: np.dtype) -> Text:
        source, target = c_name(x.dtype), c_name(dtype)
        if source == target:
            return self.spell(x)
        if source in HALVES:
            return self.converted(self.call(f"{source}_to_f32", self.text(x, CALL)), "f32", target)
        if source in COMPLEX:
            if target in COMPLEX:
                return self.pair_of_parts(x, source, target)
            if target == "b1":
                zero = self.literal(x.dtype.type(0))[0]
                return self.call(f"{source}_ne", self.text(x, CALL), zero)
            return self.converted(self.call(f"{source}_real", self.text(x, CALL)), COMPLEX[source], target)
        return self.converted(self.spell(x), source, target)

    def pair_of_parts(self, x: E, source: str, target: str) -> Text:
        parts = (self.call(f"{source}_{part}", self.text(x, CALL)) for part in ("real", "imag"))
        return self.pair(target, *(self.converted(part, COMPLEX[source], COMPLEX[target])[0] for part in parts))

    def converted(self, text: Text, source: str, target: str) -> Text:
        """The text of a real number, of another type."""
        if source == target:
            return text
        if target == "b1":
            return f"{group(text, self.compared)} != 0", COMPARE
        if target in COMPLEX:
            real = COMPLEX[target]
            return self.pair(target, self.converted(text, source, real)[0], self.float_literal(np.float64(0), real)[0])
        if target in HALVES:
            if source not in FLOATS:
                text, source = self.cast("f32", group(text, UNARY + 1)), "f32"
            return self.call(f"{target}_of_{source}", text[0])
        return self.cast(target, group(text, UNARY + 1))


__all__ = ["CALL", "Printer", "c_name"]
