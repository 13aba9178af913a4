"""Core Functions for the scheduler's tests: loops, whiles, branches, updates in place.

In: nothing. Out: `PROGRAMS`: name -> (Function, argument tuples).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.build import literal, trace
from metaphrase.core.dims import Sym
from metaphrase.core.ir import Function, Roles
from metaphrase.core.types import Array, Size, bool_, f32, f64, i64
from metaphrase.ops.arithmetic import abs_, add, div, max_, mul, neg, sub
from metaphrase.ops.arrays import as_dim, dim_value, iota, zeros
from metaphrase.ops.compare import and_, gt, lt, select
from metaphrase.ops.dot import dot_general
from metaphrase.ops.effects import check
from metaphrase.ops.elementary import cos, exp, sin
from metaphrase.ops.indexing import gather, scatter_add, slice, slice_add, slice_update
from metaphrase.ops.reduce import reduce_max, reduce_sum
from metaphrase.ops.regions import call, cond, loop
from metaphrase.ops.shape import broadcast, convert, permute, reshape

n, m = Sym("n"), Sym("m")
F, I = Array(f64), Array(i64)
V, M = Array(f64, (n,)), Array(f64, (n, m))
random = np.random.default_rng(0)
PROGRAMS: dict[str, tuple[Function, list[tuple]]] = {}


def program(params: list, *arguments: tuple) -> Any:
    def register(rule: Any) -> Any:
        PROGRAMS[rule.__name__] = trace(rule.__name__, rule, params), list(arguments)
        return rule

    return register


def one(value: float = 1.0) -> Any:
    return literal(value, f64)


@program([("e", F), ("M", F)], (0.3, 1.0), (0.9, 0.1))
def kepler(e, M):
    def residual(e, M, E):
        return sub(sub(E, mul(e, sin(E))), M)

    params = [("i", I), ("e", F), ("M", F), ("E", F)]
    body = trace("newton", lambda i, e, M, E: sub(E, div(residual(e, M, E), sub(one(), mul(e, cos(E))))), params)
    test = trace("going", lambda i, e, M, E: gt(abs_(residual(e, M, E)), one(1e-12)), params)
    trips, E = loop(e, M, M, body=body, cond=test, length=None, roles=Roles(2, 1, 0, 0), size="T")
    return E, trips


@program([("x", M)], (random.normal(size=(5, 3)),), (np.zeros((0, 3)),), (np.full((2, 4), np.inf),))
def softmax(x):
    top = broadcast(reduce_max(x, axes=(1,)), shape=(n, m), axes=(0,))
    y = exp(sub(x, top))
    return div(y, broadcast(reduce_sum(y, axes=(1,)), shape=(n, m), axes=(0,)))


@program([("x", M), ("scale", Array(f64, (m,)))], (random.normal(size=(4, 6)), random.normal(size=6)))
def layernorm(x, scale):
    count = convert(dim_value(dim=m), dtype=f64)

    def mean(v):
        return broadcast(div(reduce_sum(v, axes=(1,)), broadcast(count, shape=(n,), axes=())), shape=(n, m), axes=(0,))

    centred = sub(x, mean(x))
    return mul(div(centred, mean(mul(centred, centred))), broadcast(scale, shape=(n, m), axes=(1,)))


@program([("x", M)], (random.normal(size=(4, 6)),))
def column_sums(x):
    y = mul(x, x)
    return reduce_sum(y, axes=(0,)), reduce_sum(y, axes=(1,)), reduce_sum(y, axes=(0, 1))


@program([("x", V)], (random.normal(size=7),))
def running(x):
    """A loop over rows that carries a scalar and stacks another."""
    body = trace("step", lambda i, s, row: (add(s, row), mul(s, row)), [("i", I), ("s", F), ("row", F)])
    return loop(one(0.5), x, body=body, cond=None, length=n, roles=Roles(0, 1, 0, 1))


@program([("x", V)], (random.normal(size=7),))
def running_backwards(x):
    body = trace(
        "step",
        lambda i, s, row: (add(mul(s, one(0.5)), row), mul(s, convert(i, dtype=f64))),
        [("i", I), ("s", F), ("row", F)],
    )
    return loop(one(0.5), x, body=body, cond=None, length=n, roles=Roles(0, 1, 0, 1), reverse=True)


@program([("x", V)], (random.normal(size=7),), (random.normal(size=1),))
def squares_in_place(x):
    """n stores into one array: nothing is copied in the loop."""

    def step(i, x, y):
        v = gather(x, i, axes=(0,))
        return slice_update(y, reshape(mul(v, v), shape=(1,)), i, step=(1,))

    body = trace("step", step, [("i", I), ("x", V), ("y", V)])
    return loop(x, zeros(V), body=body, cond=None, length=n, roles=Roles(1, 1, 0, 0))


@program([("u", V), ("steps", I)], (random.normal(size=9), np.int64(4)), (random.normal(size=3), np.int64(3)))
def jacobi(u, steps):
    """Averages of neighbours, by an update of the inside."""
    T = as_dim(steps, size="S")

    def step(i, u):
        left, right = (slice(u, literal(k, i64), shape=(n - 2,), step=(1,)) for k in (0, 2))
        inside = mul(add(left, right), broadcast(one(0.5), shape=(n - 2,), axes=()))
        return slice_update(u, inside, literal(1, i64), step=(1,))

    body = trace("step", step, [("i", I), ("u", V)])
    assert T.type == Size(Sym("S"))
    return loop(u, body=body, cond=None, length=Sym("S"), roles=Roles(0, 1, 0, 0))


@program([("u", V), ("steps", I)], (random.normal(size=13), np.int64(4)), (random.normal(size=30), np.int64(3)))
def distant_neighbours(u, steps):
    """As jacobi, of too few elements to make all anew: the update is made in place, behind a temporary."""
    as_dim(steps, size="S")

    def step(i, u):
        left, right = (slice(u, literal(k, i64), shape=(n - 10,), step=(1,)) for k in (0, 10))
        return slice_update(u, add(left, right), literal(5, i64), step=(1,))

    body = trace("step", step, [("i", I), ("u", V)])
    return loop(u, body=body, cond=None, length=Sym("S"), roles=Roles(0, 1, 0, 0))


@program([("u", V), ("v", V)], (random.normal(size=5), random.normal(size=5)))
def exchange(u, v):
    """Two arrays that change places: pointers, not copies."""
    body = trace("step", lambda i, u, v: (v, u), [("i", I), ("u", V), ("v", V)])
    return loop(u, v, body=body, cond=None, length=3, roles=Roles(0, 2, 0, 0))


@program([("u", V), ("v", V)], (random.normal(size=5), random.normal(size=5)))
def leapfrog(u, v):
    """Two carried arrays, each from the other's old value."""
    dt = broadcast(one(0.1), shape=(n,), axes=())

    def step(i, dt, u, v):
        return add(u, mul(dt, v)), sub(v, mul(dt, u))

    body = trace("step", step, [("i", I), ("dt", V), ("u", V), ("v", V)])
    return loop(dt, u, v, body=body, cond=None, length=5, roles=Roles(1, 2, 0, 0))


@program([("u", V)], (random.normal(size=6),))
def shift_around(u):
    """A new value that reads the old one elsewhere: two storages that change places."""

    def step(i, u):
        first = slice(u, literal(0, i64), shape=(1,), step=(1,))
        flipped = slice(u, dim_value(dim=n - 1), shape=(n,), step=(-1,))
        return add(flipped, broadcast(reshape(first, shape=()), shape=(n,), axes=()))

    body = trace("step", step, [("i", I), ("u", V)])
    return loop(u, body=body, cond=None, length=4, roles=Roles(0, 1, 0, 0))


@program([("x", V)], (random.normal(size=6),))
def swap_rows(x):
    """A view that is read after its base has changed is kept."""
    a = slice(x, literal(0, i64), shape=(1,), step=(1,))
    y = slice_update(mul(x, x), slice(x, literal(1, i64), shape=(1,), step=(1,)), literal(0, i64), step=(1,))
    b = slice(y, literal(2, i64), shape=(2,), step=(1,))
    z = slice_update(y, neg(b), literal(3, i64), step=(1,))
    return slice_update(z, b, literal(0, i64), step=(1,)), a


@program([("x", F)], (0.7,), (-0.7,), (np.nan,))
def branches(x):
    yes = trace("yes", lambda x: (sin(x), literal(1, i64)), [("x", F)])
    no = trace("no", lambda x: (neg(x), literal(2, i64)), [("x", F)])
    return cond(gt(x, one(0.0)), x, branches=(no, yes))


@program([("k", I), ("x", V)], (np.int64(0), np.ones(3)), (np.int64(1), np.ones(3)), (np.int64(2), np.ones(3)))
def switch_arrays(k, x):
    bodies = tuple(
        trace(f"case_{c}", lambda x, c=c: (mul(x, broadcast(one(c), shape=(n,), axes=())) if c else x,), [("x", V)])
        for c in range(3)
    )
    return cond(k, x, branches=bodies)


@program([("x", V)], (np.array([1.0, -2.0, 3.0, -4.0]),))
def update_in_branch(x):
    """Only one branch stores: the other leaves the array where it is."""

    def step(i, x, y):
        v = gather(x, i, axes=(0,))
        store = trace(
            "store",
            lambda i, v, y: slice_update(y, reshape(v, shape=(1,)), i, step=(1,)),
            [("i", I), ("v", F), ("y", V)],
        )
        leave = trace("leave", lambda i, v, y: y, [("i", I), ("v", F), ("y", V)])
        return cond(gt(v, one(0.0)), i, v, y, branches=(leave, store))

    body = trace("step", step, [("i", I), ("x", V), ("y", V)])
    return loop(x, zeros(V), body=body, cond=None, length=n, roles=Roles(1, 1, 0, 0))


@program([("x", F), ("limit", F)], (1.0, 100.0), (5.0, 1.0))
def doubling(x, limit):
    """Residuals of a while: a stack that grows."""
    params = [("i", I), ("limit", F), ("x", F)]
    body = trace("double", lambda i, limit, x: (mul(x, one(2.0)), x, mul(x, x)), params)
    test = trace("below", lambda i, limit, x: lt(x, limit), params)
    return loop(limit, x, body=body, cond=test, length=None, roles=Roles(1, 1, 0, 0), size="T")


@program([("x", V), ("limit", F)], (np.array([1.0, 2.0]), 40.0), (np.array([50.0]), 40.0))
def doubling_rows(x, limit):
    params = [("i", I), ("limit", F), ("x", V)]
    body = trace("double", lambda i, limit, x: (add(x, x), x), params)
    test = trace("below", lambda i, limit, x: lt(reduce_max(x, axes=(0,)), limit), params)
    trips, last, rows = loop(limit, x, body=body, cond=test, length=None, roles=Roles(1, 1, 0, 0), size="T")
    return last, rows, reduce_sum(rows, axes=(0,))


@program([("es", V), ("M", F)], (np.linspace(0.1, 0.9, 7), 1.0))
def kepler_lanes(es, M):
    solve = PROGRAMS["kepler"][0]
    body = trace("lane", lambda i, M, e: call(e, M, function=solve), [("i", I), ("M", F), ("e", F)])
    return loop(M, es, body=body, cond=None, length=n, roles=Roles(1, 0, 0, 1), parallel=True)


@program([("x", V), ("k", Array(i64, (m,)))], (random.normal(size=5), np.array([0, 3, 3, 1])))
def scatter_gradient(x, k):
    picked = gather(x, k, axes=(0,))
    return scatter_add(zeros(V), mul(picked, picked), k, axes=(0,))


@program([("a", Array(f64, (n, n)))], (random.normal(size=(4, 4)) + 4 * np.eye(4),))
def lu(a):
    """Elimination with slices: rows below k less their multiple of row k."""

    def step(k, a):
        below = as_dim(sub(dim_value(dim=n - 1), k), size="B")
        B = below.type.value
        one_ = literal(1, i64)
        k1 = add(k, one_)
        pivot = gather(a, k, k, axes=(0, 1))
        column = slice(a, k1, k, shape=(B, 1), step=(1, 1))
        column = div(column, broadcast(pivot, shape=(B, 1), axes=()))
        a = slice_update(a, column, k1, k, step=(1, 1))
        row = slice(a, k, k1, shape=(1, B), step=(1, 1))
        product = mul(
            broadcast(reshape(column, shape=(B,)), shape=(B, B), axes=(0,)),
            broadcast(reshape(row, shape=(B,)), shape=(B, B), axes=(1,)),
        )
        return slice_add(a, neg(product), k1, k1, step=(1, 1))

    body = trace("step", step, [("k", I), ("a", Array(f64, (n, n)))])
    return loop(a, body=body, cond=None, length=n, roles=Roles(0, 1, 0, 0))


@program(
    [("w", Array(f64, (n, m))), ("x", Array(f64, (40, n))), ("b", Array(f64, (m,)))],
    (random.normal(size=(30, 50)), random.normal(size=(40, 30)), random.normal(size=50)),
)
def dense(w, x, b):
    h = dot_general(x, w, contract=((1,), (0,)), batch=((), ()))
    h = max_(add(h, broadcast(b, shape=(40, m), axes=(1,))), broadcast(one(0.0), shape=(40, m), axes=()))
    back = dot_general(h, w, contract=((1,), (1,)), batch=((), ()))
    return h, back, dot_general(x, h, contract=((0,), (0,)), batch=((), ()))


@program([("x", V), ("y", V)], (random.normal(size=6), random.normal(size=6)))
def accumulate_over_rows(x, y):
    """An accumulator: array and scalar, added to in the body."""

    def step(i, x, total, acc, row):
        return add(total, mul(row, row)), slice_add(acc, reshape(row, shape=(1,)), i, step=(1,))

    body = trace("step", step, [("i", I), ("x", V), ("total", F), ("acc", V), ("row", F)])
    return loop(x, one(0.0), zeros(V), y, body=body, cond=None, length=n, roles=Roles(1, 0, 2, 1))


@program([("x", M)], (random.normal(size=(3, 4)),), (np.ones((1, 1)),))
def moves(x):
    flat = reshape(x, shape=(n * m,))
    back = reshape(permute(x, axes=(1, 0)), shape=(n * m,))
    return add(flat, back), reshape(flat, shape=(n, m)), permute(mul(x, x), axes=(1, 0))


@program([("x", V)], (random.normal(size=4),))
def guarded(x):
    ok = lt(reduce_sum(x, axes=(0,)), one(1e6))
    check(ok, exception="ValueError", message="too large")
    small = lt(x, broadcast(one(1e3), shape=(n,), axes=()))
    check(small, x, exception="ValueError", message="element {0} is too large")
    return add(x, x)


@program(
    [("x", Array(f32, (n,))), ("keep", Array(bool_, (n,)))],
    (random.normal(size=5).astype("f4"), np.array([True, False, True, True, False])),
)
def masked(x, keep):
    return select(keep, mul(x, x), neg(x)), reduce_sum(convert(keep, dtype=i64), axes=(0,)), and_(keep, keep)


@program([("count", I)], (np.int64(5),), (np.int64(0),))
def counted(count):
    size = as_dim(count, size="K")
    K = size.type.value
    values = convert(iota(length=K, dtype=i64), dtype=f64)
    return mul(values, values), reduce_sum(values, axes=(0,))


@program([("n0", I)], (np.int64(27),), (np.int64(1),))
def collatz(n0):
    """Integers as carries: quotient, product, branch."""
    from metaphrase.ops.arithmetic import floor_div, mod
    from metaphrase.ops.compare import eq, ne

    two, three, unit = (literal(k, i64) for k in (2, 3, 1))

    def step(i, v):
        half = trace("half", lambda v: floor_div(v, two), [("v", I)])
        grow = trace("grow", lambda v: add(mul(three, v), unit), [("v", I)])
        return cond(eq(mod(v, two), literal(0, i64)), v, branches=(grow, half))

    body = trace("step", step, [("i", I), ("v", I)])
    test = trace("test", lambda i, v: ne(v, unit), [("i", I), ("v", I)])
    return loop(n0, body=body, cond=test, length=None, roles=Roles(0, 1, 0, 0), size="T")
