"""Orders that programs can see: of stores, of tests that are not computed, of what iterators read and when.

In: plain functions. Out: what Python gives; each once gave something else, or a crash.
"""

import numpy as np


def places_before_names(a, i):
    a[i], i = i, a[i]
    return a, i


def place_by_a_later_name(a, b, i):
    (b[i], i), a[i] = (a[i], 2), 7.0
    for a[i], i in ((1.5, 0), (2.5, 1)):
        b[i] += a[i]
    return a, b, i


def targets_that_rebind_the_value(i, x):
    i, j = k = i, x
    i, j = m = n = (j, i)
    (i, j), i = (1, x), 3
    return i, j, k, m, n


def any_stops(a, x):
    calls = [0]

    def larger(v):
        calls[0] += 1
        return v > x

    first = any(larger(v) for v in a), calls[0]
    second = all(larger(v) for v in a), calls[0]
    third = any([larger(v) for v in a]), calls[0]
    return first, second, third


def any_guards_indices(a):
    rising = all(a[i + 1] > a[i] for i in range(len(a)))
    return rising, any(a[i] == 2.0 or a[i + 1] > 100 for i in range(len(a)))


def any_prints(a, x):
    def larger(v):
        print("seen", v)
        return v > x

    return any(larger(v) for v in a), all(larger(v) for v in (x + 1, x, x - 1))


def quantifiers_of_many(a, b):
    pairs = any(a[i] == b[j] for i in range(len(a)) for j in range(len(b)) if i != j)
    below = all(x < y for x, y in zip(a, b))
    return pairs, below, all(x > 1 for x in a if x < 2 if x > 0), any(x for x in [])


def primes(n):
    return [m for m in range(2, 20) if all(m % d for d in range(2, m))], all(n % k for k in range(2, n))


def until_none_is_larger(a, x):
    k = 0
    while any(v > x for v in a) and k < 20:
        a = a * 0.7
        k += 1
    return a, k


def other_any(a):
    any = sum
    return any(v for v in a)


def map_is_lazy(a, x):
    def scaled(v):
        print("scaled", v)
        return v * x

    out = []
    for y in map(scaled, [1.0, 2.0]):
        print("taken", y)
        out.append(y)
    differences = map(lambda p, q: p - q, a, a[::-1])
    return out, list(differences), list(differences)


def read_when_its_turn_comes(a):
    squares, pairs, plain = map(lambda t: t * t, a), zip(a, [1, 2, 3]), iter(a)
    a[0], a[2] = 100.0, -5.0
    return sum(squares), [p * q for p, q in pairs], next(plain), list(plain)


def left_early_where_known(x):
    numbers = iter([1.0, 2.0, 3.0, 4.0])
    for v in numbers:
        if v == 2.0:
            break
    return [v * x for v in numbers], next(numbers, 5)


def rounded_ints(n):
    return round(n, -2), round(n, -1), round(n, 0), round(n, 3), round(n), round(n, -30)


def rounded_decimals(x):
    return round(x, 2), round(x, 1), round(-x, 3), round(x, 10), round(x)


def rounded_far(x):
    """Digits before the point, and more than ten after it."""
    return round(x, -1), round(x, -2), round(x, -22), round(x, 11), round(x, 15), round(x, 22)


def narrow_numbers_in_print(x):
    print(np.float32(x), np.float16(x), np.complex64(x), str(np.float32(x)), [np.float32(x)])
    print(f"{np.float32(x)} {np.float32(x)!s} {np.float32(x)!r}", "%s" % np.float32(x))  # noqa: UP031


def unique_of_none(a):
    return np.unique(a), np.unique(a, True, True, True), np.unique(a, return_counts=True)


def squared_bools(a):
    return a**2, a**3, np.square(a)


def float_into_integers(a, x):
    a[0] = x
    a[1:3] = np.float64(x)
    a[a > 3] = x
    return a, np.int8(x), np.array([x], np.int16), np.array(x, np.int32)


def int_into_narrow_array(n):
    return np.array([n, 1], np.int8)


def same_number_twice(a, b):
    a += 1
    return a + b


CASES = [
    (places_before_names, (np.arange(8) * 2, 2)),
    (place_by_a_later_name, (np.arange(4.0), np.ones(4), 1)),
    (targets_that_rebind_the_value, (2, 3.0)),
    (any_stops, (np.array([3.0, -1.0, 1.0]), 0.0)),
    (any_stops, (np.arange(9.0), 4.0)),
    (any_stops, (np.zeros(0), 4.0)),
    (any_guards_indices, (np.array([3.0, 2.0, 1.0]),)),
    (any_guards_indices, (np.arange(9.0)[::-1],)),
    (any_prints, (np.arange(3.0), 0.5)),
    (any_prints, (np.arange(7.0), 2.5)),
    (quantifiers_of_many, (np.arange(3.0), np.arange(3.0)[::-1])),
    (quantifiers_of_many, (np.arange(6.0), np.arange(6.0) + 9)),
    (primes, (13,)),
    (primes, (15,)),
    (until_none_is_larger, (np.arange(5.0), 1.0)),
    (other_any, (np.arange(3.0),)),
    (map_is_lazy, (np.arange(3.0), 2.0)),
    (read_when_its_turn_comes, (np.arange(3.0),)),
    (left_early_where_known, (2.0,)),
    *((rounded_ints, (n,)) for n in (1250, 1350, -1250, 5, 15, -151)),
    *((rounded_far, (x,)) for x in (1250.0, -1350.0, 5e22, -0.0, 1.0 / 3.0, 123.45678901234565, 1e300)),
    *((rounded_decimals, (x,)) for x in (2.675, 2.665, 1.005, 0.125, 0.375, -0.045, 1234567890123.125, 1e18)),
    (narrow_numbers_in_print, (0.1,)),
    (narrow_numbers_in_print, (3.7,)),
    (unique_of_none, (np.zeros((2, 0)),)),
    (squared_bools, (np.array([True, False]),)),
    *((float_into_integers, (np.arange(4, dtype=np.int8), x)) for x in (2.7, -1.5, 450.0, float("nan"))),
    (float_into_integers, (np.arange(4), 1e30)),
    (int_into_narrow_array, (5,)),
    (int_into_narrow_array, (300,)),
    (same_number_twice, (np.array(1.0), np.array(2.0))),
]
