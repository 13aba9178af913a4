"""Loops as people write them that carry sums, counts and extremes, and what they are given.

`DIVIDED`: iterations only combine into variables. `ORDERED`: they depend on one another. `agree` compares with Python.
"""

from __future__ import annotations

import numpy as np

random = np.random.default_rng(11)


def integral(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 0.5 * (x[i] + x[i + 1]) * np.exp(-i / 10)
    return total


def pair_energy(x):
    e = 0.0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            r2 = (x[i] - x[j]) ** 2 + 0.1
            e += 1 / r2**3 - 1 / r2
    return e


def statistics(x):
    lo = x[0]
    hi = x[0]
    count = 0
    total = 0.0
    for v in x:
        if v < lo:
            lo = v
        if hi < v:
            hi = v
        if v > 0.3:
            count += 1
            total = total + v - 0.25
        elif v < -0.3:
            count += 2
    return lo, hi, count, total


def by_functions(x):
    lo, hi = np.inf, -np.inf
    some = False
    product = 1.0
    for v in x:
        lo = min(lo, v)
        hi = np.maximum(v, hi)
        some = some or v > 1.0
        product *= 1 + v / 100
    return lo, hi, some, product


def nearest(x):
    best = np.inf
    where = -1
    for i in range(len(x)):
        d = (x[i] - 0.25) ** 2
        if d < best:
            best = d
            where = i
    return where, best


def last_peak(x):
    top, where, height = x[0], 0, 0.0
    for i in range(len(x)):
        if x[i] >= top:
            where = i
            top = x[i]
            height = 2 * x[i] + i
    return where, top, height


def both_ends(x):
    lo, hi = np.inf, -np.inf
    first, last = -1, -1
    for i in range(len(x)):
        v = np.round(x[i], 1)
        if v < lo:
            lo, first = v, i
        if v > hi:
            hi, last = v, i
    return lo, first, hi, last


def closest_pair(x):
    best = 1e9
    a, b = 0, 0
    for i in range(len(x)):
        for j in range(i + 1, len(x)):
            d = abs(x[i] - x[j])
            if d < best:
                best = d
                a = i
                b = j
    return a, b, best


def whole_numbers(x):
    k = (x * 5).astype(int)
    least, place, odd, total = 100, -1, 0, 7
    for i in range(len(k)):
        if k[i] <= least:
            least = k[i]
            place = i
        if k[i] % 2:
            odd += 1
        total -= k[i]
    return least, place, odd, total


def sums_in_rounds(x):
    out = np.zeros(3)
    for step in range(3):
        s = 0.0
        for v in x:
            s += np.cos(v * step)
        out[step] = s
    return out


def with_own_array(x):
    best, kept = -np.inf, 0.0
    for i in range(len(x)):
        powers = np.zeros(3)
        for k in range(3):
            powers[k] = x[i] ** k
        value = powers.sum() * np.sin(x[i])
        if value > best:
            best = value
            kept = powers[2]
    return best, kept


DIVIDED = {
    "integral": integral,
    "pair_energy": pair_energy,
    "statistics": statistics,
    "by_functions": by_functions,
    "nearest": nearest,
    "last_peak": last_peak,
    "both_ends": both_ends,
    "closest_pair": closest_pair,
    "whole_numbers": whole_numbers,
    "sums_in_rounds": sums_in_rounds,
    "with_own_array": with_own_array,
}


def compensated(x):
    """W. Kahan's sum (1965)."""
    s, c = 0.0, 0.0
    for v in x:
        y = v - c
        t = s + y
        c = (t - s) - y
        s = t
    return s


def read_on_the_way(x):
    s, over = 0.0, 0
    for v in x:
        s += v
        if s > 1.0:
            over += 1
    return s, over


def improvements(x):
    best, count = np.inf, 0
    for v in x:
        if v < best:
            best = v
            count += 1
    return best, count


def before_last(x):
    """The second largest: the largest of before is read."""
    top, second = -np.inf, -np.inf
    for v in x:
        if v > top:
            second = top
            top = v
        elif v > second:
            second = v
    return top, second


def kept_elsewhere(x):
    best, where = np.inf, 0
    for i in range(len(x)):
        if x[i] < best:
            best = x[i]
            where = i
        if x[i] > 2.0:
            where = -1
    return best, where


def mixed_ways(x):
    s = 1.0
    for v in x:
        if v > 0:
            s += v
        else:
            s *= 0.5
    return s


def last_sign(x):
    """What the last iteration leaves is wanted."""
    best, where, positive = np.inf, 0, False
    for i in range(len(x)):
        positive = x[i] > 0
        if positive and x[i] < best:
            best = x[i]
            where = i
    return best, where, positive


ORDERED = {
    f.__name__: f
    for f in (compensated, read_on_the_way, improvements, before_last, kept_elsewhere, last_sign, mixed_ways)
}
INPUTS = {
    "many": random.normal(size=70),
    "ties": np.round(random.normal(size=40), 1),
    "few": np.array([0.7, -0.2, 0.6]),
    "nans": np.where(random.random(30) < 0.3, np.nan, random.normal(size=30)),
    "nothing but nan": np.full(5, np.nan),
    "infinities": np.array([np.inf, 1.0, -np.inf, 1.0, np.inf]),
    "zeros": np.array([0.0, -0.0, 0.0, -0.0]),
}


def flat(results):
    return [np.asarray(r) for r in (results if isinstance(results, tuple) else (results,))]


def agree(function, x, got):
    with np.errstate(all="ignore"):
        wanted = flat(function(x))
    for mine, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
        if theirs.dtype.kind in "iub":
            np.testing.assert_array_equal(mine, theirs)
