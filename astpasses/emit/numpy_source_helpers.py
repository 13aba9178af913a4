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
    "on_each_matrix": '''\
def on_each_matrix(function, results, *stacks):
    """`function` of each matrix, and whether NumPy refuses it: there the results are NaN."""
    lead = stacks[0].shape[:-2]
    made = [np.full((*lead, *shape), np.nan, dtype) for shape, dtype in results]
    failed = np.zeros(lead, bool)
    for index in np.ndindex(*lead):
        try:
            parts = function(*(x[index] for x in stacks))
        except np.linalg.LinAlgError:
            failed[index] = True
            continue
        for whole, part in zip(made, parts if len(made) > 1 else [parts]):
            whole[index] = part
    return *made, failed''',
    "cofactors_of": '''\
def cofactors_of(a, det):
    """The derivative of each determinant: det inv(a).T, or, where it is 0 or infinite, by singular values."""
    det = np.asarray(det)[..., None, None]
    if np.all(np.isfinite(det) & (det != 0)):
        return det * np.swapaxes(np.linalg.inv(a), -1, -2)
    finite = np.isfinite(a).all((-2, -1), keepdims=True)
    u, s, vh = np.linalg.svd(np.where(finite, a, 0))
    others = np.where(np.eye(a.shape[-1], dtype=bool), 1, s[..., None, :]).prod(-1)[..., None, :]
    turn = np.linalg.slogdet(u)[0] * np.linalg.slogdet(vh)[0]
    return np.where(finite, turn[..., None, None] * np.conj(u * others @ vh), np.nan).astype(a.dtype)''',
    "inverse_or_nan": '''\
def inverse_or_nan(a):
    """np.linalg.inv, and NaN of singular matrices."""
    try:
        return np.linalg.inv(a)
    except np.linalg.LinAlgError:
        singular = np.linalg.slogdet(a)[0] == 0
        return np.linalg.inv(np.where(singular[..., None, None], np.nan, a).astype(a.dtype))''',
    "exception_of": '''\
def exception_of(kind, /, *args, **attributes):
    """An exception that holds these, whatever its `__init__` takes."""
    made = kind.__new__(kind, *args)
    made.args = args
    vars(made).update(attributes)
    return made''',
    "integer_power": '''\
def integer_power(a, b):
    """a ** b of integers, also for negative b: 1 / a rounded towards zero."""
    small = np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0))
    return np.where(b < 0, small, np.power(a, np.maximum(b, 0))).astype(a.dtype)[()]''',
    "threefry": '''\
def threefry(key, counter):
    """Twenty rounds of Threefry-2x32 on words of 64 bits, the high half first."""
    u32, low = np.uint32, np.uint64(0xFFFFFFFF)
    with np.errstate(over="ignore"):
        keys = [(key >> np.uint64(32)).astype(u32), (key & low).astype(u32)]
        keys.append(keys[0] ^ keys[1] ^ u32(0x1BD11BDA))
        x0, x1 = (counter >> np.uint64(32)).astype(u32) + keys[0], (counter & low).astype(u32) + keys[1]
        for step in range(5):
            for rotation in ((13, 15, 26, 6), (17, 29, 16, 24))[step % 2]:
                x0 = x0 + x1
                x1 = (x1 << u32(rotation) | x1 >> u32(32 - rotation)) ^ x0
            x0 = x0 + keys[(step + 1) % 3]
            x1 = x1 + keys[(step + 2) % 3] + u32(step + 1)
        return x0.astype(np.uint64) << np.uint64(32) | x1.astype(np.uint64)''',
}

__all__ = ["HELPERS"]
