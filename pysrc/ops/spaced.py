"""Places on a line, as `np.linspace` and `np.arange` have them: a product and a sum that stay two operations.

    y: f64[n] = spaced(place, step, start)

Made one operation, which rounds once, -1 and ten times 0.1 would be 5.6e-17 where NumPy has 0.
"""

from __future__ import annotations

from ..core.scalars import MEDIUM, Text, instruction
from .arithmetic import mul
from .families import elementwise, library_float

spaced = elementwise(
    "spaced",
    lambda place, step, start: place * step + start,
    type=library_float,
    spellings=None,
    jvp=(
        lambda place_dot, y, place, step, start: mul(place_dot, step),
        lambda step_dot, y, place, step, start: mul(place, step_dot),
        lambda start_dot, y, place, step, start: start_dot,
    ),
    # A compiler does not make one operation of the two where something else wants the product, too.
    scalar=instruction(
        MEDIUM, Text("f", "T product = a*b;\nreturn product != product ? product : product + c;", "a, b, c"), operands=3
    ),
    doc="place*step + start, rounded after each.",
)

__all__ = ["spaced"]
