"""Calls of the CPU's library as Cython expressions: C of ours in cython_order.py and cython_fourier.py, BLAS and LAPACK
in cython_lapack.py.

In: a `LibraryCall` and the function it stands in. Out: the call; the C of the routine goes into the writer's
`routines`. A call gives 0, or what the program returns where it can't go on. Memory for its work is the arena's.

    dot_general(a, b, c) of C-contiguous f64   ->   f64_product(c, 0, c'N', c'N', n, m, k, b, n, a, k, out, n)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metaphrase.astpasses.schedule.nest import Combine, LibraryCall
from metaphrase.core.scalars import MONOIDS

from .cython_fourier import fourier_call
from .cython_lapack import lapack_call
from .cython_order import ORDER
from .cython_products import product_call

if TYPE_CHECKING:
    from .cython_function import FunctionWriter


def library_call(writer: FunctionWriter, stmt: LibraryCall) -> str:
    """The text of one call."""
    return _ROUTINES.get(stmt.operation, lapack_call)(writer, stmt)


_ROUTINES = {"dot_general": product_call, **dict.fromkeys(("fft", "rfft", "irfft"), fourier_call), **ORDER}


def combination(writer: FunctionWriter, stmt: Combine) -> str:
    """The statement that combines partial results into a variable."""
    lanes, total, monoid = stmt.partials, stmt.buf, MONOIDS[stmt.monoid]
    name = writer.type(lanes.dtype)
    function = f"{name}_{monoid.combine}"
    if monoid.assigns:
        combined = f"a {monoid.assigns[:-1]} b"
    else:  # of 0.0 and -0.0, which are equal, `max` and `min` give their second operand
        combined = writer.printer.call(function, "b", "a")[0]
    width, routine = lanes.dims[0], f"{name}_lanes_{monoid.name}"
    writer.routines[routine] = (
        f"""\
static inline {name} {routine}({name}* lanes) {{
    for (int half = {width}/2; half; half /= 2)
        for (int k = 0; k < half; k++) {{
            {name} a = lanes[k], b = lanes[k + half];
            lanes[k] = {combined};
        }}
    return lanes[0];
}}""",
        f"{name} {routine}({name}* lanes)",
    )
    call = f"{routine}({lanes.name})"
    if monoid.assigns:
        return f"{total.name} {monoid.assigns} {call}"
    return f"{total.name} = {writer.printer.call(function, total.name, call)[0]}"


__all__ = ["combination", "library_call"]
