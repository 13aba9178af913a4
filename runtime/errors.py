"""A failing site of a native program -> the Python exception, with a traceback that ends at the user's line.

In: the table of sites that the emitter numbered; at run time a site, an iteration and 64-bit values.
Out: an exception raised. Example:

    table = SiteTable((Site(IndexError, "index {0} is out of bounds for axis {1} with size {2}", (span,)),))
    entry = Entry(..., raise_site=table.raise_site)

    Traceback (most recent call last):
      File "use.py", line 9, in <module>
        f(x, 7)
      File "model.py", line 3, in f
        return x[i]
               ~^^^
    IndexError: index 7 is out of bounds for axis 0 with size 5
"""

from __future__ import annotations

import ast
import struct
import sys
import types
from typing import Any, NoReturn

import numpy as np

from ..exceptions import exception_class, raised
from ..late import dataclass
from ..source import Span


def exception_type(name: str | type) -> type[BaseException]:
    """The exception class of a name: a builtin's, NumPy's or a user's; RuntimeError for one that is none.

    >>> exception_type("IndexError")
    <class 'IndexError'>
    """
    return name if isinstance(name, type) else exception_class(name)


@dataclass(frozen=True)
class Site:
    """What a failing site raises. `spans`: the user's places, outermost call first. `dtypes` say what the
    recorded values are: a floating one is the bits of an f64, a complex one two of these, the others are
    integers; a value without a dtype is an integer."""

    exception: str | type
    message: str
    spans: tuple[Span, ...] = ()
    dtypes: tuple[Any, ...] = ()
    holds: tuple = ()  # what an exception holds that is more than a message


PLAIN = ("float64", "int64", "bool", "complex128")  # shown as Python's numbers


def decode(values: tuple[int, ...], dtypes: tuple[Any, ...]) -> list[Any]:
    """The recorded 64-bit values as numbers: Python's, or NumPy's of a narrower type.

    >>> decode((3, 4607182418800017408, 1), ("int64", "float32", "bool"))
    [3, np.float32(1.0), True]
    """
    decoded: list[Any] = []
    kinds = map(np.dtype, dtypes)
    left = iter(values)
    for value in left:
        dtype = next(kinds, np.dtype(np.int64))
        number: Any = value
        if dtype.kind == "c":
            number = complex(_float(value), _float(next(left)))
        elif dtype.kind in "fV":  # V: bfloat16 and its like
            number = _float(value)
        elif dtype.kind == "b":
            number = bool(value)
        elif dtype.kind == "u":
            number = value & 0xFFFFFFFFFFFFFFFF
        decoded.append(number if dtype.name in PLAIN else dtype.type(number))
    return decoded


def _float(bits: int) -> float:
    return struct.unpack("=d", struct.pack("=q", bits))[0]


ROLES = {"tangent": "the tangent of", "adjoint": "the adjoint of", "recomputed": "anew, for the adjoint,"}


@dataclass(frozen=True)
class SiteTable:
    """The sites of one program, by number."""

    sites: tuple[Site, ...]

    def raise_site(self, site: int, iteration: int, values: tuple[int, ...]) -> NoReturn:
        """Raise what `site` stands for."""
        if not 0 <= site < len(self.sites):
            raise RuntimeError(f"the program failed at site {site}, of which nothing is known")
        known = self.sites[site]
        error = raised(known.exception, known.message, known.holds, decode(values, known.dtypes))
        raise placed(error, known.spans)


def placed(error: BaseException, spans: tuple[Span, ...]) -> BaseException:
    """The error, its traceback ending at the user's line, with a note if it is that line's derivative."""
    role = spans[-1].role if spans else "primal"
    if role in ROLES:
        error.add_note(f"while computing {ROLES[role]} line {spans[-1].line}")
    return error.with_traceback(traceback_at(spans))


def traceback_at(spans: tuple[Span, ...]) -> types.TracebackType | None:
    """A traceback whose frames stand at these places; None where there are none."""
    chain = None
    for span in reversed(spans):
        frame, last = _frame_at(span)
        chain = types.TracebackType(chain, frame, last, span.line)
    return chain


def _frame_at(span: Span) -> tuple[types.FrameType, int]:
    """A frame of code that stands at the span: Python shows the user's line and marks the columns."""
    line = span.text()

    def column(characters: int) -> int:
        return len(line[:characters].encode())  # the compiler counts bytes

    end_line = span.end_line or span.line
    end = span.end_column if span.end_column is not None else len(line)
    place = {
        "lineno": span.line,
        "end_lineno": end_line,
        "col_offset": column(span.column),
        "end_col_offset": column(end) if end_line == span.line else end,
    }
    call = ast.Call(ast.Name("here", ast.Load(), **place), [], [], **place)
    code = compile(ast.Module([ast.Expr(call, **place)], []), span.file, "exec")
    code = code.replace(co_name=span.function or "<module>")
    code = code.replace(co_qualname=span.function or "<module>")
    found: list[tuple[types.FrameType, int]] = []

    def here() -> None:
        caller = sys._getframe(1)
        found.append((caller, caller.f_lasti))

    exec(code, {"here": here})
    return found[0]
