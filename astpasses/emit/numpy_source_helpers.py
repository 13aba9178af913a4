"""Small functions that emitted modules define for themselves where NumPy has no one call.

In: a name. Out: the text of that function.
"""

from __future__ import annotations

HELPERS = {
    "backwards": '''\
def backwards(start, length, step):
    """The slice of `length` elements from `start` on, going down by `-step`."""
    stop = start + length * step
    return slice(start, stop if stop >= 0 else None, step) if length else slice(0, 0)''',
    "complex_of": '''\
def complex_of(real, imag):
    """real + 1j * imag, also where one of them is infinite."""
    made = np.empty(real.shape, np.result_type(real, np.complex64))
    made.real, made.imag = real, imag
    return made''',
    "spread_out": '''\
def spread_out(x, value, low, high, interior):
    """x with `value` before, after and between its elements."""
    shape = [a + max(n + (n - 1) * i, 0) + b for n, a, b, i in zip(x.shape, low, high, interior)]
    made = np.full(shape, value, x.dtype)
    inside = [slice(a, a + n * (i + 1) - i if n else a, i + 1) for n, a, i in zip(x.shape, low, interior)]
    made[tuple(inside)] = x
    return made''',
    "integer_power": '''\
def integer_power(a, b):
    """a ** b of integers, also for negative b: 1 / a rounded towards zero."""
    small = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
    return np.where(b < 0, small, np.power(a, np.maximum(b, 0))).astype(a.dtype)[()]''',
}

__all__ = ["HELPERS"]
