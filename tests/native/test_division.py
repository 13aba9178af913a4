"""Whole numbers divided by constants: in vectors, by quotients of doubles that are put right, and one by one."""

import numpy as np
import pytest

import metaphrase as mp

RANDOM = np.random.default_rng(3)
DIVISORS = [3, 5, 7, 10, 12, 641, 1000, 10**9 + 7, 2**31 - 1, 1, 2, 64, 2**31, 2**40 + 1, -1, -7, -(2**20), 0]


def numbers(dtype):
    """Around multiples of each divisor, at every size that there is, and at both ends."""
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    sizes = [int(2.0 ** RANDOM.uniform(0, np.log2(float(most)) - 1e-9)) for _ in range(60)]
    near = [s - s % d + k for d in DIVISORS if d > 0 for s in sizes for k in (-1, 0, 1)]
    near += [2**53 + k for k in range(-9, 9)] + [2**62 + k for k in range(-9, 9)]
    near += [v for k in range(40) for v in (least + k, most - k)]
    return np.array([v for n in near for v in (n, -n) if least <= v <= most], dtype)


@pytest.mark.parametrize("dtype", ["i8", "i4", "i1", "u8", "u2"])
def test_every_size(dtype):
    x = numbers(dtype)
    fitting = [d for d in DIVISORS if np.iinfo(dtype).min <= d <= np.iinfo(dtype).max]

    def divided(x):
        return [np.floor_divide(x, d) for d in fitting], [x % d for d in fitting]

    with np.errstate(all="ignore"):
        want = divided(x)
    for got, ones in zip(mp.jit(divided)(x), want, strict=True):
        for one, other, d in zip(got, ones, fitting, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"by {d}")


def test_elsewhere():
    """In loops of the user's, in places, and where nothing runs side by side."""

    def digits(n):
        total = 0
        while n > 0:
            total += n % 10
            n //= 10
        return total

    def spread(x, k):
        out = np.zeros(len(k))
        for i in range(len(k)):
            out[i] = x[(k[i] // 3) % 11] + k[i] % 7
        return out, np.repeat(x, 3), x[np.arange(24) // 5]

    x, k = np.arange(11.0), RANDOM.integers(-1000, 1000, 300)
    assert [mp.jit(digits)(n) for n in (0, 907, 2**62 + 12345)] == [digits(n) for n in (0, 907, 2**62 + 12345)]
    for one, other in zip(mp.jit(spread)(x, k), spread(x, k), strict=True):
        np.testing.assert_array_equal(one, other)
    rows = k.reshape(3, 100)
    np.testing.assert_array_equal(mp.jit(mp.vmap(lambda r: r // 7 + r % 9))(rows), rows // 7 + rows % 9)
