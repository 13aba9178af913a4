"""One table: how a scalar operation of a dtype is written in Cython.

In: scalar expressions. Out: text, and the set of helpers it calls. Plain C operators where they mean what
NumPy means, casts where C would promote a narrow integer, helpers (emit/helpers.py) for everything else.

    x[i]*(y[i] + 1.0)        f64_max(x[i], 0.0)        <i8>(a[i] + b[i])
"""

from __future__ import annotations

import numpy as np

from metaphrase.astpasses.schedule.expressions import (
    ATOM,
    COMPARE,
    PLUS,
    UNARY,
    XOR,
    ExpressionPrinter,
    Text,
    address,
)
from metaphrase.astpasses.schedule.nest import Const, E, Load, Op
from metaphrase.core.dims import DimLike
from metaphrase.core.types import dtype_name

from .helpers import HALVES


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


_ARITHMETIC = {"add", "sub", "mul"}
_BITS = {"and", "or", "xor"}
_COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
_NARROW = {"i8", "i16", "u8", "u16"}
ROOTS = {0.5: "1_2", 1.5: "3_2", -0.5: "m1_2", -1.5: "m3_2"}  # powers that need no pow
CALL = COMPARE - 5  # an argument of a call needs no parentheses


def c_name(dtype: np.dtype) -> str:
    """The type's name in the text: f64, i32, b1, ..."""
    name = dtype_name(dtype)
    return "b1" if name == "bool" else name


class CythonPrinter(ExpressionPrinter):
    """Expressions of one function. `helpers` collects what they call; `locals_` are array names that are C
    variables."""

    def __init__(self) -> None:
        self.helpers: set[str] = set()

    def call(self, name: str, *args: str) -> Text:
        self.helpers.add(name)
        return f"{name}({', '.join(args)})", ATOM

    # --- leaves -----------------------------------------------------------------------------------

    def constant(self, e: Const) -> Text:
        return self.literal(e.value)

    def literal(self, value: np.generic) -> Text:
        name = c_name(value.dtype)
        if name == "b1":
            return str(int(value)), ATOM
        if value.dtype.kind == "c":
            real = "f64" if name == "c128" else "f32"
            parts = [self.float_literal(float(x), real)[0] for x in (value.real, value.imag)]
            return self.call(f"{name}_of", *parts)
        if value.dtype.kind in "iu":
            return self.integer_literal(int(value), name)
        if name in HALVES:
            return self.call(f"{name}_of_f32", self.float_literal(float(value), "f32")[0])
        return self.float_literal(float(value), name)

    def integer_literal(self, value: int, name: str) -> Text:
        if name[0] == "u" and name in ("u32", "u64"):
            return f"{value}{'U' if name == 'u32' else 'ULL'}", ATOM
        if value == -(2**63):
            return "(-9223372036854775807LL - 1)", ATOM
        if value == -(2**31) and name == "i32":
            return "(-2147483647 - 1)", ATOM
        wide = "LL" if abs(value) >= 2**31 else ""  # without it Cython takes a large one for a Python int
        return f"{value}{wide}", ATOM if value >= 0 else UNARY

    def whole_number(self, value: int) -> str:
        return self.integer_literal(value, "i64")[0]

    def float_literal(self, value: float, name: str) -> Text:
        if value != value:
            text, strength = self.call(f"{name}_special_nan")
            return text, strength
        if value in (np.inf, -np.inf):
            text, strength = self.call(f"{name}_special_inf")
            return (text, strength) if value > 0 else (f"-{text}", UNARY)
        text = repr(value)
        strength = UNARY if text.startswith("-") else ATOM
        if name == "f32":
            return f"<f32>{text}", UNARY
        return text, strength

    def place(self, e: Load) -> Text:
        if not e.buf.dims:
            return e.buf.name, ATOM
        return f"{e.buf.name}[{address(e.index, e.buf.dims, self)}]", ATOM

    def index_value(self, dim: DimLike) -> Text:
        if isinstance(dim, int):
            return self.integer_literal(dim, "i64")
        return self.spell_dim(dim)

    def dim_function(self, kind: str, operands: tuple[str, ...]) -> str:
        return self.call(
            {"floordiv": "i64_floor_div", "mod": "i64_mod", "max": "i64_max", "min": "i64_min"}[kind],
            *operands,
        )[0]

    # --- operations -------------------------------------------------------------------------------

    def is_infix(self, e: Op) -> bool:
        operand = c_name(e.args[0].dtype)
        if operand in HALVES or e.args[0].dtype.kind == "c":
            return False
        if e.name in _COMPARISONS:
            return True
        if e.name in _BITS:
            return True
        if e.dtype == bool:
            return False
        return e.name in _ARITHMETIC or e.name == "div" and e.dtype.kind == "f"

    def spell(self, e: E) -> Text:
        if isinstance(e, Op) and e.name == "sub" and e.dtype.kind == "f" and _zero_minus_integer(e):
            # gcc 12 makes -(double)i of 0.0 - (double)i, which is -0.0 where i is 0
            assert isinstance(e.args[1], Op)
            return f"<{c_name(e.dtype)}>(0 - {self.text(e.args[1].args[0], PLUS + 1)})", UNARY
        text = super().spell(e)
        if isinstance(e, Op) and e.name in _ARITHMETIC and c_name(e.dtype) in _NARROW:
            return f"<{c_name(e.dtype)}>({text[0]})", UNARY
        return text

    def function(self, e: Op) -> Text:
        operand = e.args[0].dtype if e.name != "select" else e.args[1].dtype
        name = c_name(operand)
        if e.name == "convert":
            return self.convert(e)
        if e.name == "bitcast":
            return self.call(f"{c_name(e.dtype)}_bits_of_{name}", *self.arguments(e))
        if name in HALVES and e.name != "select":
            return self.half(e, name)
        if e.dtype == bool and e.name == "select":
            return self.call("b1_select", *self.arguments(e))
        if operand.kind == "b":
            return self.boolean(e)
        if e.name == "neg" and operand.kind != "c":
            text = f"-{self.text(e.args[0], UNARY + 1)}", UNARY
            return (f"<{name}>({text[0]})", UNARY) if name in _NARROW else text
        if e.name == "not" and operand.kind != "c":
            text = f"~{self.text(e.args[0], UNARY + 1)}", UNARY
            return (f"<{name}>({text[0]})", UNARY) if name in _NARROW else text
        if e.name in ("complex_",):
            return self.call(f"{c_name(e.dtype)}_of", *self.arguments(e))
        if operand.kind in "iu" and e.name in ("isnan", "isinf"):
            return "0", ATOM
        if operand.kind in "iu" and e.name == "isfinite":
            return "1", ATOM
        if operand.kind in "iu" and e.name == "signbit":
            return f"{self.text(e.args[0], COMPARE + 1)} < 0", COMPARE
        if operand.kind in "iu" and e.name in ("floor", "ceil", "trunc", "rint"):
            return self.spell(e.args[0])
        if e.name == "pow" and operand.kind == "f" and isinstance(e.args[1], Const):
            if float(e.args[1].value) in ROOTS:
                return self.call(f"{name}_pow_{ROOTS[float(e.args[1].value)]}", self.arguments(e)[0])
        return self.call(f"{name}_{e.name}", *self.arguments(e))

    def arguments(self, e: Op) -> list[str]:
        return [self.text(a, CALL) for a in e.args]

    def boolean(self, e: Op) -> Text:
        """Operations whose operands are bools: 0 or 1."""
        a = e.args[0]
        if e.name == "not":
            return f"{self.text(a, XOR)} ^ 1", XOR
        sign = {"add": "|", "max": "|", "mul": "&", "min": "&", "sub": "^"}.get(e.name)
        if sign is not None:
            return self.spell(Op({"|": "or", "&": "and", "^": "xor"}[sign], e.args, e.dtype))
        if e.name in ("abs", "sign", "floor", "ceil", "trunc", "rint"):
            return self.spell(a)
        if e.name in ("isnan", "isinf", "signbit"):
            return "0", ATOM
        if e.name == "isfinite":
            return "1", ATOM
        raise KeyError(f"no native spelling for {e.name} on bool")

    def half(self, e: Op, name: str) -> Text:
        """Two-byte floats compute in f32 and round after every operation."""
        if e.name == "nextafter":
            return self.call(f"{name}_nextafter", *(self.text(a, CALL) for a in e.args))
        f32 = np.dtype("float32")
        wide = tuple(Op("convert", (a,), f32) if c_name(a.dtype) == name else a for a in e.args)
        if c_name(e.dtype) != name:
            return self.spell(Op(e.name, wide, e.dtype))
        return self.call(f"{name}_of_f32", self.text(Op(e.name, wide, f32), CALL))

    def convert(self, e: Op) -> Text:
        (x,) = e.args
        source, target = c_name(x.dtype), c_name(e.dtype)
        if source == target:
            return self.spell(x)
        f32 = np.dtype("float32")
        if source in HALVES:
            widened = self.call(f"{source}_to_f32", self.text(x, CALL))
            if target == "f32":
                return widened
            if target == "b1":
                return f"{widened[0]} != 0", COMPARE
            if target in HALVES:
                return self.call(f"{target}_of_f32", widened[0])
            if e.dtype.kind == "c":
                return self.call(f"{target}_of", widened[0], "0")
            return f"<{target}>{widened[0]}", UNARY
        if x.dtype.kind == "c":
            if e.dtype.kind == "c":
                parts = [self.call(f"{source}_{p}", self.text(x, CALL))[0] for p in ("real", "imag")]
                return self.call(f"{target}_of", *parts)
            if target == "b1":
                zero = self.call(f"{source}_of", "0", "0")[0]
                return self.call(f"{source}_ne", self.text(x, CALL), zero)
            real = self.call(f"{source}_real", self.text(x, CALL))
            part = np.dtype("float64" if source == "c128" else "float32")
            if c_name(part) == target:
                return real
            if target in HALVES:
                return self.call(f"{target}_of_f32", real[0])
            return f"<{target}>{real[0]}", UNARY
        if e.dtype.kind == "c":
            real_name = "f64" if target == "c128" else "f32"
            return self.call(f"{target}_of", f"<{real_name}>{self.text(x, UNARY + 1)}", "0")
        if target == "b1":
            return f"{self.text(x, COMPARE + 1)} != 0", COMPARE
        if target in HALVES:
            if source == "f64":
                return self.call(f"{target}_of_f64", self.text(x, CALL))
            return self.call(f"{target}_of_f32", self.text(Op("convert", (x,), f32), CALL))
        return f"<{target}>{self.text(x, UNARY + 1)}", UNARY


__all__ = ["CythonPrinter", "c_name", "CALL"]
