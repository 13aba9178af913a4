"""Expressions: lazy operators, chains, `:=`, comprehensions, starred parts, slices, ternaries."""

import numpy as np


def ternary_in_index(xs, k):
    return xs[k if k < len(xs) else 0] + xs[-1 if k > 0 else 0]


def ternary_of_arrays(x):
    y = x * 2 if x.sum() > 0 else -x
    return y + (1.0 if x[0] > x[1] else 0.0)


def lazy_and_guards_index(xs, k):
    return k < len(xs) and xs[k] > 1.0


def lazy_or_value(x, y):
    return x or y or 3.0


def lazy_of_mixed(x, n):
    return (n > 2 and x) or (n < 0 and x - 1) or x * n


def not_of_everything(x, n):
    return not x, not n, not (x and n), not (x > 1) or n == 2


def chain_of_four(a, b, c):
    return 0 < a < b <= c != 7


def chain_calls_once(xs):
    calls = []

    def middle():
        calls.append(1)
        return xs[1]

    inside = xs[0] < middle() < xs[2]
    return inside, len(calls)


def chain_is_lazy(n):
    return 0 < n < 10 / n if n != 0 else False


def chain_of_mixed_operators(x, kinds):
    return "a" in kinds is not None, 1 < x < 3 in (True, False)


def walrus_in_if(x):
    if (y := x * 2) > 3:
        return y
    return -y


def walrus_in_while(n):
    steps = 0
    while (n := n - 3) > 0:
        steps += 1
    return steps, n


def walrus_in_comprehension(x):
    kept = [last := x * k for k in range(3)]
    return kept, last


def walrus_in_condition(xs):
    return [y for k in (0, 1, 2) if (y := xs[k] * 2) is not None]


def walrus_in_call(x):
    return np.maximum(y := x + 1, 2.0) * y


def walrus_in_and(x):
    if x > 0 and (y := x * 2) > 3:
        return y
    return 0.0


def walrus_in_ternary(x):
    return y + 1 if (y := x * 3) > 2 else y - 1


def walrus_in_lambda(x):
    f = lambda v: (w := v * 2) + w  # noqa: E731
    return f(x)


def nested_comprehension(x):
    return [[x * i + j for j in range(i)] for i in range(4)]


def two_generators(x):
    return [i * x + j for i in range(3) for j in range(i, 3) if i != j]


def comprehension_filter_static(x):
    return sum([x * k for k in range(6) if k % 2])


def comprehension_over_array(xs):
    return [x * 2 for x in xs]


def comprehension_over_zip(xs, ys):
    return [x * y for x, y in zip(xs, ys)]


def array_of_comprehension(xs):
    return np.array([x * x if x > 0 else 0.0 for x in xs])


def dict_comprehension_of_arrays(params):
    return {k: v * 2 for k, v in params.items() if not k.startswith("_")}


def set_comprehension(x):
    names = {name.lower() for name in ("A", "a", "B")}
    return x * len(names)


def generator_in_calls(xs):
    return sum(x * 2 for x in xs), max(x for x in xs), any(x > 2 for x in xs), all(x > 2 for x in xs)


def scope_of_comprehension(x):
    k = 5
    values = [k * x for k in range(3)]
    return values, k


def comprehension_reads_outer(x):
    scale = x * 2
    return [scale * k for k in range(3)], {k: scale for k in "ab"}


def starred_call(x, args):
    def f(a, b, c=1.0, *rest, scale=1.0):
        return (a + b * c + sum(rest)) * scale

    return f(x, *args), f(*args, x), f(x, *args[:1], **{"scale": 2.0}), f(*(x, x), *[x, x])


def starred_displays(x, xs):
    pair = (x, 2 * x)
    a = [*pair, *xs]
    b = (*pair, 3.0)
    c = {**{"a": x}, "b": 2 * x, **{"c": 3.0}}
    first, *middle, last = a
    return b, c, first, len(middle), last


def unpack_array(xs):
    a, b, c = xs
    first, *rest = xs
    return a * b - c, first, rest


def unpack_matrix(a):
    (p, q), (r, s) = a
    return p * s - q * r


def unpack_nested(x):
    (a, (b, *c)), d = (x, (x + 1, x + 2, x + 3)), x + 4
    return a, b, c, d


def slices_of_everything(a, n):
    return a[1:, ::-1], a[:n], a[..., 0], a[None, :, 1], a[-1], a[0, 1:n]


def lists_sliced(x):
    values = [x, 2 * x, 3 * x, 4 * x]
    values[1:3] = [x]
    return values[::-1], values[-2:]


def operators_of_all_kinds(i, j):
    return i + j, i - j, i * j, i / j, i // j, i % j, i**2, i & j, i | j, i ^ j, i << 1, i >> 1, ~i, +i, -i


def matmul(a):
    return a @ a.T


def in_place_of_all_kinds(i):
    i += 3
    i -= 1
    i *= 2
    i //= 3
    i %= 7
    i **= 2
    i <<= 2
    i >>= 1
    i &= 0xFF
    i |= 1
    i ^= 2
    x = i * 1.0
    x /= 4
    return i, x


def in_place_matmul(a):
    b = a.copy()
    b @= a
    return b


def comparisons_of_all_kinds(x, y):
    return x == y, x != y, x < y, x <= y, x > y, x >= y, x is y, x is not y


def membership(k):
    return k in (1, 2, 3), k not in [4, 5], k in {1: 2, 3: 4}.keys() if False else k in range(5)


def members_of_a_display(x):
    twice = x * 2
    return x in {twice, x + 1, 9}, twice in {x, 4}, x not in {twice, "x"}, [k in {x, twice} for k in range(5)]


def strings_and_bytes(x):
    name = "scale" + "_" + "x" * 2
    return x * len(name) + b"ab"[0] + len(f"{name!r:>12}")


def concatenated_f_string_key(x):
    table = {f"w{k}": x * k for k in range(3)}
    return table["w2"] + table["w" + "1"]


def slice_object(xs):
    window = slice(1, None)
    return xs[window], xs[slice(None, 2)]


def conditional_lambda(x):
    return (lambda v: v * 2 if v > 1 else v)(x)


def immediately_called(x):
    return (lambda *a, k=2: sum(a) * k)(x, x, k=3)


def constants(x):
    return x, 1, 2.5, True, None, "text", 3j, ..., b"bytes"


def attribute_chains(x):
    return np.array([x, 2 * x]).reshape(2, 1).T.copy().sum(axis=0)[0]


def big_chain_of_calls(x):
    return abs(float(np.sin(min(max(x, 0.5), 1.5)))) ** 2


_A = np.array([[1.0, 2.0], [0.5, -2.0]])
_X = np.array([1.0, 3.0, 2.0])


def ranges_beside_arrays(x):
    """NumPy takes a range for a sequence of numbers."""
    y = (x + range(len(x))) / len(x)
    y[1:] = range(len(x) - 1)
    y[:2] *= range(3, 5)
    same = x == range(len(x)), range(len(x)) < x, len(x) == range(3)
    return (
        y,
        *same,
        range(3, 3 + len(x)) * x[0],
        np.maximum(x, range(len(x))),
        x @ range(len(x)),
        np.array(range(len(x))),
    )


CASES = [
    (ranges_beside_arrays, (np.array([0.5, 1.0, 2.0, 1.5]),)),
    (ternary_in_index, (_X, 1)),
    (ternary_in_index, (_X, 7)),
    (ternary_of_arrays, (_X,)),
    (ternary_of_arrays, (-_X,)),
    (lazy_and_guards_index, (_X, 1)),
    (lazy_and_guards_index, (_X, 9)),
    (lazy_or_value, (0.0, 2.0)),
    (lazy_or_value, (0.0, 0.0)),
    (lazy_of_mixed, (2.0, 3)),
    (lazy_of_mixed, (0.0, -3)),
    (not_of_everything, (2.0, 0)),
    (chain_of_four, (1, 2, 3)),
    (chain_of_four, (1, 1, 3)),
    (chain_calls_once, (np.array([1.0, 2.0, 3.0]),)),
    (chain_calls_once, (np.array([3.0, 2.0, 3.0]),)),
    (chain_is_lazy, (3,)),
    (chain_is_lazy, (0,)),
    (chain_of_mixed_operators, (2, ("a", "b"))),
    (walrus_in_if, (2.0,)),
    (walrus_in_if, (1.0,)),
    (walrus_in_while, (10,)),
    (walrus_in_comprehension, (2.0,)),
    (walrus_in_condition, (_X,)),
    (walrus_in_call, (2.0,)),
    (walrus_in_and, (2.0,)),
    (walrus_in_and, (-2.0,)),
    (walrus_in_ternary, (2.0,)),
    (walrus_in_lambda, (2.0,)),
    (nested_comprehension, (2.0,)),
    (two_generators, (2.0,)),
    (comprehension_filter_static, (2.0,)),
    (comprehension_over_array, (_X,)),
    (comprehension_over_zip, (_X, _X + 1)),
    (array_of_comprehension, (_X - 2,)),
    (dict_comprehension_of_arrays, ({"w": _X, "_skip": _X, "b": 2.0},)),
    (set_comprehension, (2.0,)),
    (generator_in_calls, (_X,)),
    (scope_of_comprehension, (2.0,)),
    (comprehension_reads_outer, (2.0,)),
    (starred_call, (2.0, (3.0, 4.0))),
    (starred_displays, (2.0, _X)),
    (unpack_array, (_X,)),
    (unpack_matrix, (_A,)),
    (unpack_nested, (2.0,)),
    (slices_of_everything, (_A, 1)),
    (lists_sliced, (2.0,)),
    (operators_of_all_kinds, (13, 3)),
    (matmul, (_A,)),
    (in_place_of_all_kinds, (13,)),
    (in_place_matmul, (_A,)),
    (comparisons_of_all_kinds, (2.0, 3.0)),
    (membership, (2,)),
    (membership, (9,)),
    (members_of_a_display, (2,)),
    (members_of_a_display, (0.0,)),
    (strings_and_bytes, (2.0,)),
    (concatenated_f_string_key, (2.0,)),
    (slice_object, (_X,)),
    (conditional_lambda, (2.0,)),
    (immediately_called, (2.0,)),
    (constants, (2.0,)),
    (attribute_chains, (2.0,)),
    (big_chain_of_calls, (2.0,)),
]
