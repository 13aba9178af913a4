"""Numbers: Python's rules for Python numbers, NumPy's for NumPy scalars, promotion."""

import math

import numpy as np


def int_arithmetic(a, b):
    return a + b, a - b, a * b, a // b, a % b, a / b, -a, abs(b)


def float_arithmetic(a, b):
    return a + b, a - b, a * b, a // b, a % b, a / b, a**b, -a


def negative_floor(a, b):
    return (-a) // b, (-a) % b, a // (-b), a % (-b), divmod(a, b)


def powers(x, n):
    return x**2, x**3, x**0.5, 2**n, x**-1, x**n


def bits(a, b):
    return a & b, a | b, a ^ b, ~a, a << 2, a >> 1


def comparisons(a, b):
    return a < b, a <= b, a > b, a >= b, a == b, a != b


def conversions(x):
    return int(x), float(int(x)), bool(x), round(x), complex(x)


def weak_with_f32(x):
    return x * 2.0 + 1, x + np.float64(1.0), x / 3


def f32_scalar(x):
    y = np.float32(2.5)
    return y * x, y + 1, np.float32(x) * 2


def mixed_promotion(k, x):
    return k + x, k * 2, k / 2, k + 1.5, k // 2


def int_types(k):
    return k.astype(np.int32) + 1, k.astype(np.float32) * k, (k > 2) + 1, (k > 2).sum()


def math_functions(x):
    return (
        math.sin(x) + math.cos(x),
        math.sqrt(x),
        math.exp(x),
        math.log(x),
        math.atan2(x, 2.0),
        math.floor(x),
        math.ceil(x),
        math.hypot(x, 1.0),
        math.pi * x,
        math.log10(x),
        math.tanh(x),
    )


def numpy_functions(x):
    return (np.sqrt(x) + np.exp(-x) * np.log1p(x), np.floor(x), np.sign(x), np.maximum(x, 2.0), np.arctan2(x, 1))


def division_by_zero(a, b):
    return a / b


def domain_error(x):
    return math.sqrt(x)


def complex_numbers(z):
    return z * (1 + 2j), abs(z), z.real, z.imag, z.conjugate(), np.exp(z)


def numpy_scalar_methods(x):
    s = x.sum()
    return s.item(), s.dtype.itemsize, s.astype(np.float32), s.ndim


def min_max(a, b, c):
    return min(a, b), max(a, b, c), min([a, b, c]), sum([a, b, c], 1.0)


def bool_logic(a, b):
    x = a > 0
    y = b > 0
    return x & y, x | y, x ^ y, not x, x + y


def is_checks(x, y=None):
    return (x is None), (y is None), (y is not None)


def membership(x):
    return x in (1.0, 2.0, 3.0), x not in [4.0, 5.0]


def type_checks(x, n):
    kind = 0
    if isinstance(x, float):
        kind += 1
    if isinstance(n, int):
        kind += 10
    if isinstance(x, np.ndarray):
        kind += 100
    return kind, type(n) is int


def number_as_size(n):
    return np.zeros(n) + 1


def number_as_index(x, i):
    return x[i], x[-i], x[i:], x[:i]


def list_index(x, i):
    return [x, x * 2, x * 3][i]


def integer_power_loop(x, n):
    out = 1.0
    while n > 0:
        if n % 2 == 1:
            out = out * x
        x = x * x
        n = n // 2
    return out


def special_values(x):
    return np.isnan(x), np.isinf(x), np.isfinite(x), np.nan_to_num(x), np.signbit(x)


def rounding(x):
    return np.round(x, 2), np.round(x), np.trunc(x), np.ceil(x), np.rint(x), x.round(1)


_X = np.array([1.25, -2.5, 3.75])


def in_sets(k, x):
    vowels, prices = {1, 5, 9}, {2: 0.5, 3: 1.5}
    return k in vowels, k not in frozenset((2, 3)), k in prices, x in {1.0, 2, "two"}, k in prices.keys()


def in_stepped_ranges(k):
    return k in range(1, 9, 2), k in range(8, 0, -3), k in range(0), k not in range(-4, 4, 4)


def among_many(k):
    return k in {2, 3, 5, 7, 11, 13, 17, 19, 23, 29}, k in [1, 4, 9, 16, 25, 36, 49, 64, 81, 100]


def in_set_of_elements(xs):
    hits = 0
    for x in xs:
        if int(x) in {1, 4}:
            hits += 1
    return hits


def order_of_complex(z, w):
    larger, smaller = np.maximum(z, w), np.minimum(z, w)
    picked = np.where(z <= w, z, w)
    return z < w, z >= w, larger, smaller, picked, max(z[0], w[0]), z[1] > w[1]


def rounded_to(x, places):
    return np.round(x, places), x.round(decimals=-places), np.round(1234, -places), round(x[0], places)


def triangles_by_float(x):
    return np.triu(x, 1.0), np.tril(x, k=-1.0)


def chosen_halves(x):
    return np.where(x > 0, x, 2.0) > 1.75, np.nan_to_num(x) < 0


def single_times_number(x):
    return np.dot(x, 2.0), np.inner(x, 2), np.kron(x, 2.0), np.vander(x), np.arange(x[0], 9.5)


def powers_modulo(base, exponent, modulus):
    return pow(base, exponent, modulus), pow(base, -3, 7), pow(base, exponent, mod=-7)


CASES = [
    (powers_modulo, (5, 117, 19)),
    (powers_modulo, (-4, 3, 9)),
    (powers_modulo, (123456789, 987654321, 1000000007)),
    (powers_modulo, (3, -1, -10)),
    (powers_modulo, (2, -1, 4)),
    (powers_modulo, (2, 3, 0)),
    (powers_modulo, (2, 0, 1)),
    (int_arithmetic, (17, 5)),
    (int_arithmetic, (-17, 5)),
    (float_arithmetic, (7.5, 2.0)),
    (negative_floor, (7, 3)),
    (negative_floor, (7.5, 2.0)),
    (powers, (2.5, 3)),
    (bits, (12, 10)),
    (comparisons, (1, 2)),
    (comparisons, (2.0, 2)),
    (conversions, (2.75,)),
    (weak_with_f32, (np.array([1, 2], np.float32),)),
    (weak_with_f32, (np.float32(3),)),
    (f32_scalar, (1.5,)),
    (mixed_promotion, (np.array([1, 2, 3]), np.array([0.5, 1.0, 2.0], np.float32))),
    (int_types, (np.array([1, 2, 3]),)),
    (math_functions, (1.7,)),
    (numpy_functions, (1.7,)),
    (division_by_zero, (1.0, 2.0)),
    (division_by_zero, (1.0, 0.0)),
    (domain_error, (4.0,)),
    (domain_error, (-4.0,)),
    (complex_numbers, (1.0 + 0.5j,)),
    (numpy_scalar_methods, (_X,)),
    (min_max, (3.0, 1.0, 2.0)),
    (bool_logic, (1.0, -1.0)),
    (is_checks, (1.0,)),
    (is_checks, (1.0, 2.0)),
    (membership, (2.0,)),
    (membership, (4.0,)),
    (type_checks, (1.0, 2)),
    (number_as_size, (4,)),
    (number_as_index, (_X, 1)),
    (list_index, (2.0, 1)),
    (integer_power_loop, (1.5, 11)),
    (special_values, (np.array([1.0, np.nan, -np.inf, -0.0]),)),
    (rounding, (np.array([1.255, -2.5, 3.5]),)),
    (in_sets, (5, 2.0)),
    (in_sets, (2, 3.0)),
    (in_stepped_ranges, (5,)),
    (in_stepped_ranges, (-4,)),
    (among_many, (9,)),
    (among_many, (13,)),
    (in_set_of_elements, (np.array([1.0, 2.0, 4.5, 4.0]),)),
    (
        order_of_complex,
        (
            np.array([1 + 2j, 3j, 1.0, complex(np.nan, 1), complex(1, np.nan), complex(np.inf, 0)]),
            np.array([1 + 1j, 3j, 2.0, 1.0, 2.0, complex(np.inf, -1)]),
        ),
    ),
    (rounded_to, (np.array([12.345, -0.675, 2.5]), 2)),
    (triangles_by_float, (np.arange(12.0).reshape(3, 4),)),
    (chosen_halves, (np.array([1.5, -2.0, np.nan], dtype=np.float16),)),
    (single_times_number, (np.array([1.5, -2.0, 0.25], dtype=np.float32),)),
]
