"""The parts of floating-point numbers: `frexp`, `ldexp`, `spacing`.

In: floats. Out: core atoms.

    m, e = frexp(x)     # x == m * 2**e, 0.5 <= |m| < 1
"""

from __future__ import annotations

import numpy as np

from ..core.ir import Atom
from .arithmetic import abs_, add, div, max_, min_, mul, sub
from .compare import and_, eq, ge, gt, lt, not_, select
from .elementary import exp2, floor, isfinite, log2
from .families import like
from .library_elementwise import operands_of
from .promotion import Operand, broadcast_arrays, to_dtype, ufunc


def frexp(x: Operand) -> tuple[Atom, Atom]:
    """Scaled up where the number is subnormal; the logarithm may round, so the part is put right by one."""
    (x,) = operands_of(np.frexp, x)
    usual = and_(isfinite(x), not_(eq(x, like(x, 0))))
    tiny = and_(usual, lt(abs_(x), like(x, np.finfo(x.type.dtype).tiny)))
    bits = np.finfo(x.type.dtype).nmant + 1
    scaled = select(tiny, mul(x, like(x, 2.0**bits)), select(usual, x, like(x, 1)))
    exponent = add(floor(log2(abs_(scaled))), like(x, 1))
    half = floor(mul(exponent, like(x, 0.5)))  # in two steps: 2**1024 is no number
    part = div(div(scaled, exp2(half)), exp2(sub(exponent, half)))
    high, low = ge(abs_(part), like(x, 1)), lt(abs_(part), like(x, 0.5))
    part = select(high, mul(part, like(x, 0.5)), select(low, mul(part, like(x, 2)), part))
    exponent = add(exponent, select(high, like(x, 1), select(low, like(x, -1), like(x, 0))))
    exponent = select(tiny, sub(exponent, like(x, bits)), exponent)
    return select(usual, part, x), to_dtype(select(usual, exponent, like(x, 0)), np.int32)


def ldexp(x: Operand, exponent: Operand) -> Atom:
    """By powers of two that are numbers, the last of them such that a small result is rounded once."""
    x, exponent = operands_of(np.ldexp, x, exponent)
    if x.type.dtype.itemsize == 2:
        return to_dtype(ldexp(to_dtype(x, np.float32), exponent), x.type.dtype)
    x, power = broadcast_arrays(x, to_dtype(exponent, x.type.dtype))
    limits = np.finfo(x.type.dtype)
    most, least = int(limits.maxexp) - 1, int(limits.minexp)
    down = least + limits.nmant + 1
    for _ in range(2):
        large, small = gt(power, like(power, most)), lt(power, like(power, least))
        x = mul(x, select(large, like(x, 2.0**most), select(small, like(x, 2.0**down), like(x, 1))))
        step = select(large, like(power, most), select(small, like(power, down), like(power, 0)))
        power = sub(power, step)
    return mul(x, exp2(max_(min_(power, like(power, most)), like(power, least))))


def spacing(x: Operand) -> Atom:
    """The distance to the next number away from 0; of f16, to the next number above."""
    (x,) = operands_of(np.spacing, x)
    if x.type.dtype == np.float16:
        return select(isfinite(x), sub(ufunc(np.nextafter, x, np.inf), x), like(x, np.nan))
    size = abs_(x)
    step = sub(ufunc(np.nextafter, size, np.inf), size)
    step = select(isfinite(step), step, sub(size, ufunc(np.nextafter, size, 0.0)))
    return select(isfinite(x), ufunc(np.copysign, step, x), like(x, np.nan))


__all__ = ["frexp", "ldexp", "spacing"]
