"""Random numbers from explicit keys: Threefry-2x32 counters, bit for bit those of JAX's default generator.

In: a key, an array of two uint32. Out: arrays that depend on the key and the shape alone. Float samples are
float64 and integers int64 unless a dtype is given, as in JAX with 64-bit types enabled. The hash is one
primitive (ops/counters.py), the rest is plain NumPy: it runs at once and is staged, batched and compiled like
any user's code.

>>> key = PRNGKey(0)
>>> np.round(uniform(key, (3,)), 4)
array([0.4185, 0.2163, 0.9653])
>>> split(key)[0]
array([1797259609, 2579123966], dtype=uint32)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._special import erf_inv
from ..ops.counters import threefry

# ---- the hash --------------------------------------------------------------------------------------------


def _word(high: Any, low: Any) -> Any:
    """Two uint32 as one uint64."""
    return (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)


def _halves(words: Any) -> tuple[Any, Any]:
    """The high and the low 32 bits."""
    return (words >> np.uint64(32)).astype(np.uint32), words.astype(np.uint32)


def _hash(key: Any, counters: Any) -> Any:
    """A vector of uint64 counters hashed under a key."""
    return threefry(np.broadcast_to(_word(key[0:1], key[1:2]), counters.shape), counters)


def _hash_counters(key: Any, shape: tuple) -> Any:
    """The hash of 0, 1, 2, ... for each element of an array of `shape`, flat."""
    count = 1
    for size in shape:
        count = count * size
    return _hash(key, np.arange(count).astype(np.uint64))


# ---- keys ------------------------------------------------------------------------------------------------


def key(seed: Any, *, impl: str | None = None) -> Any:
    """A key from an integer seed: its high and its low 32 bits."""
    if impl not in (None, "threefry2x32"):
        raise ValueError(f"random.key: the only generator is 'threefry2x32', not {impl!r}")
    if np.ndim(seed):
        raise TypeError(
            f"random.key takes one integer seed, and got an array of shape {np.shape(seed)}; use vmap for many"
        )
    if isinstance(seed, float) or np.asarray(seed).dtype.kind not in "iub":
        raise TypeError(f"random.key takes an integer seed, and got {seed!r}")
    seeds = np.reshape(np.asarray(seed, dtype=np.int64), (1,))
    return np.concatenate([(seeds >> 32).astype(np.uint32), seeds.astype(np.uint32)])


def PRNGKey(seed: Any, *, impl: str | None = None) -> Any:
    """A key from an integer seed."""
    return key(seed, impl=impl)


def _check_key(name: str, key: Any) -> Any:
    key = np.asarray(key)
    if key.dtype != np.uint32 or key.shape != (2,):
        raise TypeError(
            f"random.{name} takes one key, an array of two uint32, and got {key.dtype}{list(key.shape)}; "
            "make one with random.key(seed), or use vmap over an array of keys"
        )
    return key


def key_data(keys: Any) -> Any:
    """The uint32 array that a key is."""
    return keys


def wrap_key_data(key_bits_array: Any, *, impl: str | None = None) -> Any:
    """The key that a uint32 array is."""
    return key_bits_array


def split(key: Any, num: Any = 2) -> Any:
    """New keys, an array of shape (num, 2), or (*num, 2) for a tuple."""
    key = _check_key("split", key)
    shape = _shape(num)
    x0, x1 = _halves(_hash_counters(key, shape))
    return np.stack([np.reshape(x0, shape), np.reshape(x1, shape)], axis=-1)


def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and an integer."""
    key = _check_key("fold_in", key)
    if np.ndim(data):
        raise TypeError(
            f"random.fold_in takes one integer, and got an array of shape {np.shape(data)}; use vmap for many"
        )
    counter = np.reshape(np.asarray(data).astype(np.uint32), (1,)).astype(np.uint64)
    return np.concatenate(_halves(_hash(key, counter)))


def clone(key: Any) -> Any:
    """The same key."""
    return key


# ---- bits ------------------------------------------------------------------------------------------------


def _shape(shape: Any) -> tuple:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def _finish(flat: Any, shape: tuple) -> Any:
    """A vector of samples in its shape; a number where the shape is ()."""
    return np.reshape(flat, shape) if len(shape) else flat[0]


def _flat_bits(key: Any, shape: tuple, width: int) -> Any:
    words = _hash_counters(key, shape)
    if width == 64:
        return words
    x0, x1 = _halves(words)
    mixed = x0 ^ x1
    return mixed if width == 32 else mixed.astype(np.dtype(f"uint{width}"))


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Uniform random bits as unsigned integers (uint64 unless a dtype is given)."""
    dtype = np.dtype(np.uint64 if dtype is None else dtype)
    if dtype.kind != "u":
        raise ValueError(f"random.bits makes unsigned integers, not {dtype}")
    shape = _shape(shape)
    return _finish(_flat_bits(_check_key("bits", key), shape, 8 * dtype.itemsize), shape)


def _unit_floats(key: Any, shape: tuple, dtype: np.dtype) -> Any:
    """A vector of floats in [0, 1): as many random bits as the mantissa holds."""
    width = 8 * dtype.itemsize
    mantissa = np.finfo(dtype).nmant
    counts = _flat_bits(key, shape, width) >> np.dtype(f"uint{width}").type(width - mantissa)
    return counts.astype(dtype) * dtype.type(2.0**-mantissa)


def _float_dtype(name: str, dtype: Any) -> np.dtype:
    dtype = np.dtype(dtype)
    if dtype.kind != "f" or dtype.itemsize not in (2, 4, 8):
        raise ValueError(f"random.{name} makes floating-point numbers, not {dtype}")
    return dtype


def _as_vector(value: Any, shape: tuple) -> Any:
    """A number as a vector of one element, an array broadcast to `shape` as a vector of all."""
    return np.reshape(value if np.ndim(value) == 0 else np.broadcast_to(value, shape), (-1,))


def _flat_uniform(key: Any, shape: tuple, dtype: np.dtype, minval: Any, maxval: Any) -> Any:
    low = _as_vector(np.asarray(minval).astype(dtype), shape)
    high = _as_vector(np.asarray(maxval).astype(dtype), shape)
    return np.maximum(low, _unit_floats(key, shape, dtype) * (high - low) + low)


def uniform(key: Any, shape: Any = (), dtype: Any = float, minval: Any = 0.0, maxval: Any = 1.0) -> Any:
    """Uniform on [minval, maxval)."""
    shape, dtype = _shape(shape), _float_dtype("uniform", dtype)
    return _finish(_flat_uniform(_check_key("uniform", key), shape, dtype, minval, maxval), shape)


def _in_range(value: Any, dtype: np.dtype) -> Any:
    """Integers converted to `dtype`, clipped to its range."""
    value = np.asarray(value)
    if value.dtype.kind not in "iu":
        value = value.astype(np.int64)
    have, want = np.iinfo(value.dtype), np.iinfo(dtype)
    return np.clip(value, max(have.min, want.min), min(have.max, want.max)).astype(dtype)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = int) -> Any:
    """Integers uniform on [minval, maxval)."""
    shape, dtype = _shape(shape), np.dtype(dtype)
    if dtype.kind not in "iu":
        raise TypeError(f"random.randint makes integers, not {dtype}")
    key = _check_key("randint", key)
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.int32)
    if wide is not dtype:
        info = np.iinfo(dtype)
        minval = np.clip(np.asarray(minval).astype(wide), info.min, info.max)
        maxval = np.clip(np.asarray(maxval).astype(wide), info.min, info.max + 1)
    width = 8 * wide.itemsize
    unsigned = np.dtype(f"uint{width}").type
    # vectors throughout: NumPy warns when a scalar wraps around, and here wrapping is meant
    above = _as_vector(np.asarray(maxval) > np.iinfo(wide).max, shape)
    low, high = _as_vector(_in_range(minval, wide), shape), _as_vector(_in_range(maxval, wide), shape)
    span = np.where(high <= low, unsigned(1), (high - low).astype(unsigned))
    span = np.where(above & (high > low), span + unsigned(1), span)
    keys = split(key)
    upper, lower = _flat_bits(keys[0], shape, width), _flat_bits(keys[1], shape, width)
    # a 2w-bit number (upper, lower) modulo span, in w-bit arithmetic; span 0 is the whole range, 2 ** width
    divisor = np.where(span == 0, unsigned(1), span)
    multiplier = unsigned(2 ** (width // 2)) % divisor
    multiplier = multiplier * multiplier % divisor
    offset = ((upper % divisor) * multiplier + lower % divisor) % divisor
    offset = np.where(span == 0, lower, offset)
    return _finish((low + offset.astype(wide)).astype(dtype), shape)


# ---- distributions ---------------------------------------------------------------------------------------


def normal(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Standard normal; complex dtypes have independent parts of variance 1/2."""
    dtype, shape = np.dtype(dtype), _shape(shape)
    if dtype.kind == "c":
        keys = split(_check_key("normal", key))
        part = np.dtype(np.float32 if dtype.itemsize == 8 else np.float64)
        both = normal(keys[0], shape, part) + 1j * normal(keys[1], shape, part)
        return (both / np.sqrt(2)).astype(dtype)
    dtype = _float_dtype("normal", dtype)
    low = np.nextafter(dtype.type(-1), dtype.type(0))
    u = _flat_uniform(_check_key("normal", key), shape, dtype, low, 1)
    return _finish(dtype.type(np.sqrt(2)) * erf_inv(u), shape)


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = float) -> Any:
    """Standard normal restricted to [lower, upper]."""
    from scipy.special import erf

    dtype = _float_dtype("truncated_normal", dtype)
    shape = np.broadcast_shapes(np.shape(lower), np.shape(upper)) if shape is None else _shape(shape)
    root = dtype.type(np.sqrt(2))
    low, high = np.asarray(lower).astype(dtype), np.asarray(upper).astype(dtype)
    u = _flat_uniform(_check_key("truncated_normal", key), shape, dtype, erf(low / root), erf(high / root))
    infinity = dtype.type(np.inf)
    least, most = np.nextafter(low, infinity), np.nextafter(high, -infinity)
    return _finish(np.clip(root * erf_inv(u), _as_vector(least, shape), _as_vector(most, shape)), shape)


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Any:
    """True with probability p."""
    p = np.asarray(p)
    if p.dtype.kind != "f":
        p = p.astype(np.float64)
    shape = np.shape(p) if shape is None else _shape(shape)
    return uniform(key, shape, p.dtype) < p


def exponential(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Exponential with rate 1."""
    return -np.log1p(-uniform(key, shape, _float_dtype("exponential", dtype)))


def gumbel(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Standard Gumbel."""
    dtype = _float_dtype("gumbel", dtype)
    return -np.log(-np.log(uniform(key, shape, dtype, minval=np.finfo(dtype).tiny)))


def laplace(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Standard Laplace."""
    dtype = _float_dtype("laplace", dtype)
    u = uniform(key, shape, dtype, minval=-1 + np.finfo(dtype).epsneg)
    return np.sign(u) * np.log1p(-np.abs(u))


def logistic(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Standard logistic."""
    dtype = _float_dtype("logistic", dtype)
    u = uniform(key, shape, dtype, minval=np.finfo(dtype).tiny)
    return np.log(u) - np.log1p(-u)


def cauchy(key: Any, shape: Any = (), dtype: Any = float) -> Any:
    """Standard Cauchy."""
    dtype = _float_dtype("cauchy", dtype)
    return np.tan(dtype.type(np.pi) * (uniform(key, shape, dtype, minval=np.finfo(dtype).eps) - dtype.type(0.5)))


def rademacher(key: Any, shape: Any = (), dtype: Any = int) -> Any:
    """-1 or 1, each with probability 1/2."""
    return (2 * bernoulli(key, 0.5, shape) - 1).astype(dtype)


# ---- orders and choices ----------------------------------------------------------------------------------


def _shuffle(key: Any, x: Any, axis: int) -> Any:
    """x in a random order along `axis`, each line of x in its own; sorted by fresh bits often enough for no
    ties."""
    rounds = math.ceil(3 * math.log(max(1, x.size)) / math.log(2**32 - 1))
    for _ in range(rounds):
        keys = split(key)
        key = keys[0]
        order = np.argsort(bits(keys[1], x.shape, np.uint32), axis=axis, kind="stable")
        x = np.take_along_axis(x, order, axis)
    return x


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Any:
    """A random order of range(x), or of x along an axis; `independent` orders each line by itself."""
    key = _check_key("permutation", key)
    if np.ndim(x) == 0:
        return _shuffle(key, np.arange(x), 0)
    if independent or np.ndim(x) == 1:
        return _shuffle(key, np.asarray(x), axis)
    x = np.asarray(x)
    return np.take(x, _shuffle(key, np.arange(x.shape[axis]), 0), axis=axis)


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Any:
    """Items of a (or of range(a)), with or without replacement, with probabilities p."""
    key, shape = _check_key("choice", key), _shape(shape)
    count = a if np.ndim(a) == 0 else np.shape(a)[axis]
    draws = 1
    for size in shape:
        draws = draws * size
    if not replace and draws > count:
        raise ValueError(f"random.choice cannot take {draws} of {count} items without replacement")
    if p is None and not replace:
        if np.ndim(a) == 0:
            return np.reshape(permutation(key, a)[:draws], shape)
        taken = np.take(permutation(key, a, axis), np.arange(draws), axis=axis)
        return np.reshape(taken, _around(np.shape(a), axis, shape))
    if p is None:
        where = randint(key, shape, 0, count)
    else:
        p = np.asarray(p)
        if p.shape != (count,):
            raise ValueError(f"random.choice: p has the shape {p.shape} and must have {(count,)}")
        if replace:
            total = np.cumsum(p)
            where = np.searchsorted(total, total[-1] * (1 - uniform(key, shape, total.dtype)))
        else:
            where = np.reshape(np.argsort(-(gumbel(key, (count,), p.dtype) + np.log(p)), kind="stable")[:draws], shape)
    return where if np.ndim(a) == 0 else np.take(a, where, axis=axis)


def _around(dims: tuple, axis: int, shape: tuple) -> tuple:
    axis = axis % len(dims)
    return (*dims[:axis], *shape, *dims[axis + 1 :])


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Any:
    """Indices along `axis` drawn with probability softmax(logits)."""
    key, logits = _check_key("categorical", key), np.asarray(logits)
    axis = axis % logits.ndim - logits.ndim
    dims = logits.shape
    rest = dims[:axis] + dims[axis + 1 :] if axis != -1 else dims[:-1]
    shape = rest if shape is None else _shape(shape)
    if len(shape) < len(rest) or shape[len(shape) - len(rest) :] != rest:
        raise ValueError(
            f"random.categorical: the shape {shape} must end in {rest}, the shape of the logits without axis {axis}"
        )
    noise = gumbel(key, shape[: len(shape) - len(rest)] + dims, logits.dtype)
    return np.argmax(noise + logits, axis=axis)
