"""Early and multiple returns, in branches and loops."""

import numpy as np


def early(x):
    if x < 0:
        return 0.0
    y = np.sqrt(x)
    if y > 3:
        return y - 3
    return y


def many(x, y):
    if x > y:
        if x > 2 * y:
            return 1.0
        return 2.0
    if y > 10:
        return 3.0
    return 4.0


def from_loop(x):
    for i in range(len(x)):
        if x[i] > 3:
            return x[i], i
    return 0.0, -1


def from_nested_loops(a):
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            if a[i, j] > 4:
                return i, j
    return -1, -1


def from_while(x):
    while True:
        x = x * 2
        if x > 100:
            return x


def after_loop(x):
    s = 0.0
    for v in x:
        if v < 0:
            return s
        s += v
    s = s * 10
    return s


def nothing(x):
    x = x + 1


def tuple_of_three(x):
    return x, x * 2, (x, 3)


def static_result(x):
    if True:
        return "text", None, 3
    return x


def both_raise_or_return(x):
    if x > 100:
        raise ValueError("too large")
    else:
        return x * 2


def raise_in_middle(x):
    if x < 0:
        raise ValueError("negative")
    y = np.sqrt(x)
    assert y < 100, "too large"
    return y


def raise_with_value(x):
    if x < 0:
        raise ValueError(f"negative: {x:.2f}")
    return x


def raise_in_loop(x):
    s = 0.0
    for v in x:
        if v == 0:
            raise ZeroDivisionError("a zero among the values")
        s += 1 / v
    return s


def maybe_unbound(x):
    if x > 0:
        y = x * 2
    return y + 1


def unbound_in_loop(x, limit):
    for v in x:
        if v > limit:
            hit = v
    return hit


def return_array_or_scaled(x, k):
    if k > 0:
        return x * k
    return x + 1


def deep_return(x):
    if x > 0:
        for k in range(10):
            if k * x > 5:
                if k > 3:
                    return k * x
                break
        else:
            return -1.0
        return -2.0
    return -3.0


def returns_argument(x):
    return x


def try_finally(x):
    try:
        y = x * 2
        if y > 10:
            return y
    finally:
        x = x + 1
    return x


_X = np.array([1.0, 2.0, 4.0, 8.0])
_M = np.arange(12.0).reshape(3, 4)


def none_or_number_from_a_loop(a, x):
    for i in range(len(a)):
        if a[i] > 4:
            return None
        if i > x:
            return 2.5
    return None


def none_from_a_loop(a, x):
    for v in a:
        if v > x:
            return
    return 3.0


def none_or_pair_from_a_loop(n, x):
    for i in range(n):
        if i > x:
            return (i, x * 2.0) if i % 2 else None
    return None


def none_or_index_from_a_while(n, x):
    i = 0
    while i < n:
        if i > x:
            return None
        if i == 5:
            return i
        i += 1
    return None


def _nested_search(a, n):
    for i in range(n):
        for j in range(n):
            if a[j] > i * j + 2:
                return None
            if a[i] + a[j] == 4:
                return i + j
    return 7


def none_of_a_nested_search(a, n):
    found = _nested_search(a, n)
    if found is None:
        return -1
    return found * 2


_ODD = np.array([1, 3, 5, 7])


CASES = [
    (early, (-1.0,)),
    (early, (4.0,)),
    (early, (25.0,)),
    (many, (5.0, 1.0)),
    (many, (3.0, 2.0)),
    (many, (3.0, 20.0)),
    (many, (3.0, 4.0)),
    (from_loop, (_X,)),
    (from_loop, (_X - 9,)),
    (from_nested_loops, (_M,)),
    (from_nested_loops, (_M - 9,)),
    (from_while, (1.0,)),
    (after_loop, (_X,)),
    (after_loop, (_X - 3,)),
    (nothing, (1.0,)),
    (tuple_of_three, (1.0,)),
    (static_result, (1.0,)),
    (both_raise_or_return, (3.0,)),
    (both_raise_or_return, (300.0,)),
    (raise_in_middle, (4.0,)),
    (raise_in_middle, (-4.0,)),
    (raise_in_middle, (4e9,)),
    (raise_with_value, (1.0,)),
    (raise_with_value, (-1.0,)),
    (raise_in_loop, (_X,)),
    (raise_in_loop, (_X - 4,)),
    (maybe_unbound, (1.0,)),
    (maybe_unbound, (-1.0,)),
    (unbound_in_loop, (_X, 3.0)),
    (unbound_in_loop, (_X, 30.0)),
    (return_array_or_scaled, (_X, 2.0)),
    (return_array_or_scaled, (_X, -2.0)),
    (deep_return, (1.0,)),
    (deep_return, (4.0,)),
    (deep_return, (0.1,)),
    (deep_return, (-1.0,)),
    (returns_argument, (_X,)),
    (returns_argument, (2.0,)),
    (try_finally, (6.0,)),
    (try_finally, (1.0,)),
    (none_or_number_from_a_loop, (_ODD, 0)),
    (none_or_number_from_a_loop, (_ODD, 1)),
    (none_or_number_from_a_loop, (_ODD, 9)),
    (none_from_a_loop, (_ODD, 2)),
    (none_from_a_loop, (_ODD, 9)),
    (none_or_pair_from_a_loop, (100, 2)),
    (none_or_pair_from_a_loop, (100, 3)),
    (none_or_pair_from_a_loop, (1, 3)),
    (none_or_index_from_a_while, (9, 9)),
    (none_or_index_from_a_while, (9, 2)),
    (none_or_index_from_a_while, (3, 9)),
    (none_of_a_nested_search, (_ODD, 4)),
    (none_of_a_nested_search, (_ODD, 1)),
    (none_of_a_nested_search, (_ODD * 0 + 2, 2)),
]
