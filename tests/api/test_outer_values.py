"""What an inner transformation takes from the function around it: arrays that it indexes, iterates over and
unpacks, and sizes.

In: functions that call `grad`, `vmap` and others on functions that close over their variables. Out: what they
give under `jit`, at three sizes, against themselves run by Python, where the captured arrays are NumPy's.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from metaphrase import grad, hessian, jacfwd, jacrev, jit, jvp, lax, linearize, tree_util, vjp, vmap
from metaphrase.config import config
from metaphrase.source import SourceError

ARGUMENTS = [[1.5, 2.5, 3.0], [1.7, -2.5, 3.0, 0.5], [-1.7, 2.5, 3.0, 0.5, 9.0]]
CASES = []


def case(function):
    CASES.append(function)
    return function


@case
def sums_of_sizes(x):
    n = len(x)
    return grad(lambda y: y * y * (n + 1) + (n - 1) // 2 * y)(2.0)


@case
def length_of_the_outer_array(x):
    return grad(lambda y: y * y * len(x))(2.0)


@case
def length_of_an_outer_list(x):
    halves = [v * 0.5 for v in x]
    return grad(lambda y: y * y * len(halves))(2.0), grad(lambda y: grad(lambda z: 0.5 * len(halves) * z)(y))(2.0)


@case
def arrays_like_the_outer_one(x):
    def g(y):
        made = np.zeros_like(x) + np.full_like(x, 2.0) * np.ones(np.shape(x))
        return y * made.sum() * np.size(x) + y * sum(1.0 for _ in range(len(x)))

    return grad(g)(2.0)


@case
def outer_arrays_in_lists(x):
    return grad(lambda y: (np.stack([x, x * 2]) * y).sum() + y * max(len(v) for v in [x, x[1:]]))(2.0)


@case
def size_of_a_range(x):
    n = len(x)
    return grad(lambda w: ((w * np.arange(n)) ** 2).sum() / n)(x)


@case
def size_of_new_arrays(x):
    n = len(x)
    return grad(lambda y: (np.ones(n) * y * x).sum())(2.0)


@case
def size_and_one(x):
    n = len(x)
    return grad(lambda y: (np.ones(n + 1) * y)[:n] @ x)(2.0)


@case
def loop_index(x):
    s = 0.0
    for i in range(len(x)):
        s += grad(lambda y: y * y * x[i])(2.0)  # noqa: B023
    return s


@case
def slices(x):
    a = x[1:]
    return grad(lambda y: (y * a[:-1] * a[1:]).sum())(2.0)


@case
def mutated(x):
    a = x * 2
    a[0] = 5.0
    g = grad(lambda y: y * a[0] * a[-1])(2.0)
    a[0] = 7.0
    return g + grad(lambda y: y * a[0])(2.0)


@case
def lists(x):
    xs = [x, x * 2, x[:2]]

    def g(y):
        t = 0.0
        for v in xs:
            t = t + v[0] * y * y
        p, q, r = xs
        return t + (p * q).sum() * y + np.sum(r) * y

    return grad(g)(2.0)


@case
def dicts(x):
    d = {"a": x, "b": (x * 3, 2.0)}
    return grad(lambda y: d["a"][1] * y * y * d["b"][0][0] * d["b"][1])(2.0)


@case
def value_or_none(x):
    if x[0] > 0:
        a = x * 2
    else:
        a = None

    def g(y):
        if a is not None:
            return y * y * a[1]
        return y

    return grad(g)(2.0)


@case
def missing_on_a_path(x):
    if x[0] > 0:
        a = x * 2
    if x[0] > 0:
        return grad(lambda y: y * y * a[1])(2.0)
    return 0.0


@case
def found_or_none(x):
    a = None
    for v in x:
        if v > 2.0:
            a = v
    return grad(lambda y: y * y * (a if a is not None else 1.0))(2.0)


@case
def gathered_numbers(x):
    out = []
    for v in x:
        out.append(v * v)
    return grad(lambda y: y * y * out[1] + y * sum(out))(2.0)


@case
def gathered_arrays(x):
    out = []
    for v in x:
        out.append(x * v)

    def g(y):
        t = 0.0
        for o in out:
            t = t + (o * y).sum()
        return t

    return grad(g)(2.0)


@case
def growing_list(x):
    st = [x[0]]
    i = 0
    while i < len(x):
        if x[i] > 0:
            st.append(x[i])
        elif len(st) > 1:
            st.pop()
        i += 1
    return grad(lambda y: y * y * st[-1] * len(st))(2.0)


@case
def three_deep(x):
    return vmap(lambda r: grad(lambda y: y * y * vmap(lambda z: z * x[0] * y * r)(x).sum())(2.0))(x)


@case
def second_derivative(x):
    return hessian(lambda w: (w[0] * x[0]) ** 2 * w[1] * x[1])(x)


@case
def innerjit(x):
    a, b = x[0], x[1]
    return jit(lambda y: y * x[1:] * a + b)(2.0)


@case
def returned(x):
    return vmap(lambda z: (z, x))(x)


@case
def views_returned(x):
    return jvp(lambda z: (z * x[0], x[1:]), (x,), (x,))


@case
def results_returned(x):
    y = x * 2
    return jit(lambda z: (z, y))(1.0)


@case
def found_place(x):
    k = np.argmax(x)
    return grad(lambda y: y * y * x[k])(2.0)


@case
def order(x):
    k = np.argsort(x)
    return grad(lambda w: (w * x[k]).sum())(x)


@case
def mask(x):
    m = x > 1.0
    return grad(lambda w: w[m].sum() * x[m][0])(x)


@case
def reversed_array(x):
    return grad(lambda w: (w * x[::-1]).sum())(x)


@case
def matrix(x):
    A = np.outer(x, x)

    def g(w):
        s = 0.0
        for row in A:
            s = s + row @ w
        return s + (A.T[0] * w).sum() + A[0, 1] * w[0] + (A.reshape(-1)[1 : 1 + len(w)] * w).sum()

    return grad(g)(x)


@case
def while_loop(x):
    def g(y):
        i = 0
        while x[i] < 2.2:
            i += 1
            y = y * x[i]
        return y

    return grad(g)(2.0)


@case
def attempt(x):
    def g(y):
        try:
            return y * x[0] / x[1]
        except ZeroDivisionError:
            return y

    return grad(g)(2.0)


@case
def linear(x):
    y, f = linearize(lambda w: w * x[::-1], x)
    return f(x * 2), y


@case
def pulled_back(x):
    y, f = vjp(lambda w: w * x[::-1], x)
    return f(x * 2), y


@case
def jacobians(x):
    return jacfwd(lambda w: w * x[0])(x), jacrev(lambda w: w[:2] * x[:2])(x)


@case
def scan(x):
    return lax.scan(lambda c, z: (c + z * x[0], c * x[-1]), 0.0, x)


@case
def fori(x):
    return lax.fori_loop(0, len(x), lambda i, c: c + grad(lambda y: y * y * x[i])(c), 1.0)


@case
def cond(x):
    return lax.cond(x[0] > 0, lambda y: grad(lambda z: z * x[1])(y), lambda y: y * x[2], 2.0)


@case
def unpacked_pair(x):
    t = (x, 3.0)

    def g(y):
        (u, v), w = t, y
        return u[0] * v * w * w

    return grad(g)(1.0)


@case
def attributes(x):
    class P:
        pass

    p = P()
    p.x = x
    p.k = x[1]
    return grad(lambda y: y * y * p.x[0] * p.k)(2.0)


@case
def default_value(x):
    def g(y, z=x):
        return y * z[0]

    return grad(g)(2.0)


@case
def bound_argument(x):
    def g(z, y):
        return y * z[0]

    return grad(functools.partial(g, x))(2.0)


@case
def zipped(x):
    def g(y):
        s = 0.0
        for i, (a, b) in enumerate(zip(x, x[1:])):
            s = s + a * b * y * i
        return s

    return grad(g)(2.0)


@case
def size_of_a_run(x):
    k = int((x > 0).sum())
    a = np.arange(k) * 1.0
    return grad(lambda y: (y * a[1:]).sum() + k * y)(2.0)


@case
def array_of_a_run(x):
    a = x[x > 1.7]
    return grad(lambda y: (y * a * a[::-1]).sum() * len(a))(2.0)


@case
def parts_of_complex(x):
    z = x + 1j * x
    return grad(lambda y: (y * z.real[0] * z.imag[1:]).sum())(2.0)


@case
def changed_copy(x):
    def g(y):
        a = x.copy()
        a[0] += y
        a *= y
        return a[0]

    return grad(g)(2.0)


@case
def flat(x):
    A = np.outer(x, x)
    return grad(lambda y: A.flat[2] * y + A.T.flat[1] * y)(2.0)


@case
def questions_of_shape(x):
    return grad(lambda y: y * len(x) * x.shape[0] * x.size * x.ndim)(2.0)


@case
def chosen_function(x):
    fn = np.sin if x[0] > 0 else np.cos
    return grad(lambda y: fn(y * x[1]))(2.0)


@case
def one_of_two(x):
    a = x * 2
    b = x * 3
    c = a if x[0] > 1 else b
    return grad(lambda y: y * c[0])(2.0)


@case
def membership(x):
    return grad(lambda y: y * (2.5 in x) + (y * x[0] if x.any() else y))(2.0)


@case
def reductions(x):
    return grad(
        lambda y: (
            y * np.add.reduce(x[1:]) * np.linalg.norm(x) * np.concatenate([x, x[:1]])[-1] * np.where(x > 1, x, 0.0)[0]
        )
    )(2.0)


def alike(a, b):
    first, second = tree_util.tree_leaves(a), tree_util.tree_leaves(b)
    return len(first) == len(second) and all(np.allclose(p, q) for p, q in zip(first, second))


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", CASES, ids=[f.__name__ for f in CASES])
def test_outer_values_are_used_as_arguments_are(function):
    with config(native=False):
        jitted = jit(function)
        for argument in ARGUMENTS:
            got, want = jitted(np.array(argument)), function(np.array(argument))
            assert alike(got, want), f"{got} for {want}"


@jit
def natively(x):
    n, rows = len(x), np.outer(x, x)

    def loss(y):
        first, *_ = rows
        return sum(row @ first * y for row in rows) + y * y * x[-1] * n

    return grad(loss)(2.0), vmap(lambda z: (z * x[0], x))(x)


def test_native_code():
    for argument in ARGUMENTS:
        x = np.array(argument)
        slope, (products, repeated) = natively(x)
        assert np.isclose(slope, (x * x).sum() * x[0] * x.sum() + 4 * x[-1] * len(x))
        assert alike((products, repeated), (x * x[0], np.tile(x, (len(x), 1))))


def test_the_example_of_a_nested_vmap():
    r = np.arange(6.0).reshape(3, 2) + 1
    assert np.array_equal(vmap(lambda row: vmap(lambda z: z * row[0])(row))(r), r * r[:, :1])


@pytest.mark.parametrize(
    "inner",
    [
        lambda x: grad(lambda y: store(x, y))(2.0),
        lambda x: grad(lambda y: store(x[1:], y))(2.0),
        lambda x: grad(lambda y: increase(x, y))(2.0),
        lambda x: jit(lambda y: store(x, y))(2.0),
    ],
    ids=["item", "view", "in place", "jit"],
)
def test_a_store_into_an_outer_array_is_refused(inner):
    with pytest.raises(SourceError, match="stores into an array from outside it"):
        jit(inner)(np.ones(3))


def store(x, y):
    x[0] = y
    return y


def increase(x, y):
    x += y
    return y
