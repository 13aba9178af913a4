"""What a program says, as arguments of printf: the messages of its errors, what it prints, its warnings.

In: a message with fields as `str.format` has them, the dtypes of its values, and where C finds them. Out: the format
and its arguments. Example:

    printf_of("index {} is not below {:4d}", ["i8", "i8"], ["v[0]", "v[1]"])
    # ('"index %lld is not below %4lld"', ["(long long)v[0]", "(long long)v[1]"])

Numbers are shown as Python shows them. Of format specifications C has these: `[<>][+][0][width][.precision]` and one
of `d e f g %`; a number with another is shown as without.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.types import NAMES
from ..exceptions import Site, fields

_SPEC = re.compile(r"([<>]?)(\+?)(0?)(\d*)((?:\.\d+)?)([defg%]?)")


def quoted_c(text: str) -> str:
    """A string of C.

    >>> print(quoted_c("two\\nlines"))
    "two\\nlines"
    """
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "?": "\\?"}
    parts = [escapes.get(c, c) if " " <= c <= "~" or c in escapes else _octal(c) for c in text]
    return f'"{"".join(parts)}"'


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def printf_of(template: str, dtypes: Sequence[Any], values: Sequence[str]) -> tuple[str, list[str]]:
    """The format as C writes it, and its arguments. `values`: an expression of C for each dtype.

    >>> printf_of("x is {:.3f}", ["f8"], ["x"])
    ('"x is %.3f"', ['x'])
    """
    format_, arguments, count = "", [], 0
    for literal, field, spec, conversion in string.Formatter().parse(template):
        format_ += literal.replace("%", "%%")
        if field is None:
            continue
        k = int(field) if field else count
        count += 1
        directive, argument = _directive(np.dtype(dtypes[k]), values[k], spec or "", conversion == "r")
        format_ += directive
        arguments.append(argument)
    return quoted_c(format_), arguments


def _directive(dtype: np.dtype, value: str, spec: str, is_repr: bool) -> tuple[str, str]:
    match = _SPEC.fullmatch(spec)
    align, sign, zero, width, precision, kind = match.groups() if match else ("",) * 6
    head = f"%{'-' if align == '<' else ''}{sign}{zero}{width}"
    if dtype.kind == "b":
        return "%s", f'({value}) ? "True" : "False"'
    if dtype.kind in "iu" and kind in ("", "d") and not precision:
        letter, cast = ("d", "long long") if dtype.kind == "i" else ("u", "unsigned long long")
        return _narrow(dtype, f"{head}ll{letter}", is_repr), f"({cast}){value}"
    if dtype.kind == "c":
        return "%s", f"mp_shown_complex(({value}).real, ({value}).imag).text"
    number = f"(double)({value})" if dtype.kind in "iu" else value
    if kind == "%":
        return f"{head}{precision}f%%", f"100*{number}"
    if kind or precision:
        return f"{head}{precision}{kind or 'g'}", number
    single = "true" if dtype.itemsize < 8 else "false"
    return _narrow(
        dtype, f"%{'-' if align == '<' else ''}{width}s", is_repr
    ), f"mp_shown({number}, {single}, false).text"


def _narrow(dtype: np.dtype, directive: str, is_repr: bool) -> str:
    """What `repr` of NumPy's numbers says besides: those of 64 bits are Python's here."""
    return directive if not is_repr or dtype.itemsize == 8 else f"np.{dtype.name}({directive})"


# ---- errors ------------------------------------------------------------------------------------------------------


def error_case(site: Site) -> str:
    """The statement of C that describes a failing site."""
    template, dtypes = _said(site)
    dtypes = [*dtypes, *[np.dtype("i8")] * (fields(template) - len(dtypes))]
    values, at = [], 0
    for dtype in map(np.dtype, dtypes):
        values.append(_recorded(dtype, at))
        at += 2 if dtype.kind == "c" else 1
    format_, arguments = printf_of(template, dtypes, values)
    place = f"{quoted_c(Path(site.span.file).name)}, {site.span.line}" if site.span else '"", 0'
    exception = site.exception.rpartition(":")[2].rpartition(".")[2] or "RuntimeError"
    return f"mp_says(error, {', '.join([quoted_c(exception), place, format_, *arguments])});"


def _recorded(dtype: np.dtype, at: int) -> str:
    """A recorded value, of 64 bits each."""
    if dtype.kind == "c":
        return f"(metaphrase_complex128){{mp_double(v[{at}]), mp_double(v[{at + 1}])}}"
    return f"mp_double(v[{at}])" if dtype.kind in "fV" else f"v[{at}]"


def _said(site: Site) -> tuple[str, Sequence[Any]]:
    """The text of an exception; of one that holds more than a message, its arguments."""
    if not site.holds:
        return site.message, site.dtypes
    parts = [_part(part) for part in site.holds[0]]
    return (parts[0] if len(parts) == 1 else f"({', '.join(parts)})" if parts else ""), site.dtypes


def _part(part: tuple[str, Any]) -> str:
    kind, value = part
    if kind == "text":
        return value
    if kind == "number":
        return "{}"
    if kind == "value":
        return str(value).replace("{", "{{").replace("}", "}}")
    return f"({', '.join(map(_part, value))})"


# ---- effects -----------------------------------------------------------------------------------------------------


def effect_case(site: Site, c_types: dict[str, str]) -> str | None:
    """The statement of C for an ordered effect; None for one that C can't do: it calls Python, or prints an array."""
    if site.kind == "callback" or any(site.ranks):
        return None
    if any(np.dtype(dtype).kind == "V" or np.dtype(dtype) == "f2" for dtype in site.dtypes):
        return None
    values = [f"*({c_types[NAMES[np.dtype(dtype)]]} *)args[{2 * k}]" for k, dtype in enumerate(site.dtypes)]
    message = site.message
    if site.kind == "warn":
        at = f"{Path(site.span.file).name}:{site.span.line}: " if site.span else ""
        message = f"{at}{site.exception.rpartition(':')[2]}: {message}\n".replace("\n\n", "\n")
    format_, arguments = printf_of(message, site.dtypes, values)
    stream, *flush = ["stderr"] if site.kind == "warn" else site.exception.split()
    call = f"fprintf({', '.join([stream, format_, *arguments])});"
    return f"{call} fflush({stream});" if flush else call


__all__ = ["effect_case", "error_case", "printf_of", "quoted_c"]
