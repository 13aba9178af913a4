"""The functions that expressions call: one for each operation of a dtype that has no operator.

In: a function's name (`f64_max`) and a dialect. Out: its text, made from the declaration of the operation
(core/scalars.py), its declaration for Cython, the functions that it needs. NumPy's results are the rule: NaN
goes through `max`, x // 0 is 0 for integers, shifts by the width or more give 0, products wrap around.

    >>> from metaphrase.astpasses.emit.dialects import CUDA
    >>> print(helper("i64_mod", CUDA).text.splitlines()[0])
    static __device__ inline i64 i64_mod(i64 a, i64 b) {
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection

from metaphrase.core.scalars import Scalar, Text, facts
from metaphrase.late import dataclass

from .dialects import COMPLEX, FLOATS, C, Dialect


@dataclass(frozen=True)
class Helper:
    """`text`: the definition, if it is not in the header `header`. `declaration`: its head, as Cython takes it.
    `needs`: names of other helpers."""

    name: str
    text: str
    declaration: str
    needs: tuple[str, ...] = ()
    header: str = ""


@functools.cache
def helper(name: str, dialect: Dialect = C) -> Helper:
    """The helper called `type_operation`."""
    t, operation = name.split("_", 1)
    scalar = facts(operation)
    function = dialect.function(scalar, t)
    if function:
        return _of_library(name, t, function, scalar, dialect)
    text = _conversion(t, operation) or scalar.text(t)
    if text is None and scalar.builtin and t in FLOATS:
        operands = ", ".join("xyz"[: scalar.operands])
        text = Text("f", f"{scalar.builtin}$({operands})", operands)
    if text is None:
        raise KeyError(f"no native spelling for {operation} on {t}")
    return _of_text(name, t, text, dialect, "b1" if scalar.predicate else "T")


def with_needs(names: Collection[str], dialect: Dialect = C) -> list[Helper]:
    """The helpers of `names` and all they need, each after what it needs."""
    done: dict[str, Helper] = {}

    def add(name: str) -> None:
        if name not in done:
            made = helper(name, dialect)
            for need in made.needs:
                add(need)
            done[name] = made

    for name in sorted(names):
        add(name)
    return list(done.values())


def _of_library(name: str, t: str, function: str, scalar: Scalar, dialect: Dialect) -> Helper:
    """A function of the mathematical library, or one of ours in its place. Of the library's some have vector versions:
    with MP_SIMD gcc uses them."""
    operands = "xyz"[: scalar.operands]
    declaration = f"{t} {name}({', '.join(f'{t} {x}' for x in operands)})"
    text = dialect.library.format(declaration, function, ", ".join(operands))
    if scalar.side_by_side and t in FLOATS and dialect.maths:
        if scalar.ours:
            text = ""
        elif scalar.circular:
            text = f"MP_CIRCULAR {text} MP_VECTORS({name.replace('_', ', ', 1)})"
        else:
            text = f"MP_SIMD {text}"
    return Helper(name, text, declaration, header=dialect.maths)


def _of_text(name: str, t: str, text: Text, dialect: Dialect, result: str) -> Helper:
    """The function that a text is the body of."""
    real = COMPLEX.get(t, t)
    complex_ = next((c for c, r in COMPLEX.items() if r == real), t)
    words = {"T": t, "R": real, "Z": complex_, "U": "u" + t[1:]}

    def typed(text: str) -> str:
        return re.sub(r"(?<![A-Za-z0-9])[TRUZ](?![A-Za-z0-9])", lambda match: words[match[0]], text)

    body = typed(text.body.strip("\n"))
    used = {word for word in re.findall(r"\w+_\w+", body) if word.split("_")[0] in C.types}
    body = re.sub(r"(\w+)\$(?=\()", lambda match: dialect.instruction(match[1], FLOATS.get(real, "")), body)
    body = re.sub(r"\bpair(?=\()", dialect.pair.format(complex_), body)
    body = re.sub(r"\b(re|im)\((\w+)\)", lambda match: dialect.parts[match[1]].format(match[2]), body)
    if ";" not in body:
        body = f"return {body};"
    parameters = [p if " " in p else f"{t} {p}" for p in text.parameters.split(", ") if p]
    head = f"{typed(text.result or result)} {name}({', '.join(parameters) or 'void'})"
    rows = body.splitlines()
    block = f"{{ {body} }}" if len(rows) == 1 else "\n".join(["{", *("    " + row for row in rows), "}"])
    return Helper(name, f"{dialect.defines} {head} {block}", head, tuple(sorted(used - {name})))


_TO_BF16 = """\
u32 i = u32_bits_of_f32(x);
if (x != x) return (bf16)(i >> 16 & 0x8000u) | 0x7fc0u;
return (bf16)((i + 0x7fffu + (i >> 16 & 1u)) >> 16);
"""
_CONVERSIONS = {
    "f16_to_f32": Text("h", "(f32)x", result="f32"),
    "f16_of_f32": Text("h", "(f16)x", "f32 x"),
    "f16_of_f64": Text("h", "(f16)x", "f64 x"),
    "bf16_to_f32": Text("h", "f32_bits_of_u32((u32)x << 16)", result="f32"),
    "bf16_of_f32": Text("h", _TO_BF16, "f32 x"),
    "bf16_of_f64": Text("h", "bf16_of_f32((f32)x)", "f64 x"),
}


def _conversion(t: str, operation: str) -> Text | None:
    """What no operation is: constants, bits, two-byte floats, which are f32 in arithmetic."""
    if operation in ("special_inf", "special_nan"):
        return Text("f", "inf$()" if operation == "special_inf" else 'nan$("")', "")
    if operation.startswith("bits_of_"):
        source = operation.removeprefix("bits_of_")
        return Text(t, f"union {{ {source} from; {t} to; }} bits = {{ x }};\nreturn bits.to;", f"{source} x")
    return _CONVERSIONS.get(f"{t}_{operation}")


__all__ = ["Helper", "helper", "with_needs"]
