"""Branches on values: if, elif, else, ternaries, `and`/`or`/`not`, chained comparisons."""

import numpy as np


def absolute(x):
    if x < 0:
        return -x
    return x


def three_ways(x):
    if x > 1:
        y = x * 2
    elif x > 0:
        y = x + 10
    else:
        y = -x
    return y


def ternary(x, y):
    return x * y if x > y else x - y


def nested_ternary(x):
    return 1.0 if x > 2 else 2.0 * x if x > 1 else x**2


def both(x, y):
    if x > 0 and y > 0:
        return x + y
    if x < 0 or y < 0:
        return x - y
    return x * y


def between(x):
    if 0 < x < 1:
        return x * 3
    if 1 <= x <= 2 <= x + 1:
        return x * 5
    return x


def lazy_guard(values, i):
    if i < len(values) and values[i] > 0:
        return values[i]
    return 0.0


def not_positive(x):
    if not x > 0:
        x = x - 1
    return x


def only_then(x):
    y = x + 1
    if x > 0:
        y = y * 2
    return y


def branch_on_array(x):
    if x.sum() > 0:
        x = x * 2
    else:
        x = x - 1
    return x


def branch_in_place(x):
    y = x.copy()
    if y[0] > 0:
        y[1] = 10.0
    else:
        y[0] = -1.0
        y[2] += 5.0
    return y


def two_names(x):
    if x > 0:
        a, b = x, 2 * x
    else:
        b, a = x, 3 * x
    return a - b


def static_flag(x, training):
    if training:
        x = x * 2
    return x + 1


def relu(x):
    return np.where(x > 0, x, 0.0)


def leaky(x, slope=0.1):
    return x if x > 0 else slope * x


def deep(x, y):
    z = 0.0
    if x > 0:
        if y > 0:
            z = x * y
        else:
            if x > 2:
                z = x - y
            else:
                z = y
    return z


def and_or_values(x, y):
    a = x > 0 or y > 0
    b = x > 0 and y > 0
    return a, b, not a


def same_in_both(x):
    if x > 0:
        kind = "number"
        y = x
    else:
        kind = "number"
        y = -x
    return y if kind == "number" else None


def int_or_float(x):
    y = 1
    if x > 0:
        y = 2.5
    return y * x


def truth_of_number(x, n):
    y = x if n else -x
    if x:
        y = y + 1
    return y


def any_all(x):
    if np.any(x > 2) and not np.all(x > 2):
        return x.max()
    return x.min()


def early_default(x):
    y = None
    if x > 0:
        y = x * 2
    else:
        y = x * 3
    return y


def clamp(x, low, high):
    return max(low, min(x, high))


def truth_of_one_element(a, n):
    either = n > 1 or a > 0
    both = (a > 0) and n < 3 and (a < 9 or n == 0)
    assert a.size == 1 or n > 0
    if both and not (n < 0 or a > 100):
        return 1.0
    return 2.0 if either else 3.0


_A = np.array([1.0, -2.0, 3.0])
CASES = [
    (absolute, (2.0,)),
    (absolute, (-2.0,)),
    (three_ways, (2.0,)),
    (three_ways, (0.5,)),
    (three_ways, (-1.0,)),
    (ternary, (2.0, 1.0)),
    (ternary, (1.0, 2.0)),
    (nested_ternary, (3.0,)),
    (nested_ternary, (1.5,)),
    (nested_ternary, (0.5,)),
    (both, (1.0, 2.0)),
    (both, (-1.0, 2.0)),
    (both, (0.0, 2.0)),
    (between, (0.5,)),
    (between, (1.5,)),
    (between, (7.0,)),
    (lazy_guard, (_A, 0)),
    (lazy_guard, (_A, 5)),
    (not_positive, (-1.0,)),
    (only_then, (3.0,)),
    (branch_on_array, (_A,)),
    (branch_on_array, (-_A,)),
    (branch_in_place, (_A,)),
    (branch_in_place, (-_A,)),
    (two_names, (1.0,)),
    (two_names, (-1.0,)),
    (static_flag, (1.0, True)),
    (static_flag, (1.0, False)),
    (relu, (_A,)),
    (leaky, (-2.0,)),
    (deep, (1.0, -1.0)),
    (deep, (3.0, -1.0)),
    (and_or_values, (1.0, -1.0)),
    (same_in_both, (-4.0,)),
    (int_or_float, (2.0,)),
    (int_or_float, (-2.0,)),
    (truth_of_number, (2.0, 3)),
    (truth_of_number, (0.0, 0)),
    (any_all, (_A,)),
    (any_all, (_A - 9,)),
    (early_default, (1.0,)),
    (clamp, (5.0, 0.0, 1.0)),
    (clamp, (0.5, 0.0, 1.0)),
    *((truth_of_one_element, (np.array([[value]]), n)) for value in (3.0, -3.0) for n in (1, 5)),
]
