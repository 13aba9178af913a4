"""Programs for the tests of the NumPy emitter: written by hand in core, with arguments to run them on.

In: nothing. Out: `PROGRAMS[name] = (function, arguments, parameters to differentiate)`.
"""

from __future__ import annotations

import numpy as np

from metaphrase.core.build import literal, trace
from metaphrase.core.dims import Sym
from metaphrase.core.ir import Function, Roles, Var
from metaphrase.core.types import Array, bool_, f32, f64, i64, u32
from metaphrase.ops.arithmetic import add, div, floor_div, mod, mul, neg, sub
from metaphrase.ops.arrays import as_dim, dim_value, iota, undefined, zeros
from metaphrase.ops.compare import and_, eq, gt, lt, ne, select
from metaphrase.ops.dot import dot_general
from metaphrase.ops.effects import check, print_
from metaphrase.ops.elementary import cos, exp, log, sin, tanh
from metaphrase.ops.indexing import gather, scatter_add, slice_add, slice_update, start
from metaphrase.ops.indexing import slice as slice_
from metaphrase.ops.reduce import reduce_max, reduce_sum
from metaphrase.ops.regions import call, cond, loop
from metaphrase.ops.shape import broadcast, convert, permute, reshape

n, m, k, d = (Sym(s) for s in "nmkd")
F, I, B = Array(f64), Array(i64), Array(bool_)
V, M = Array(f64, (n,)), Array(f64, (n, m))
PROGRAMS: dict[str, tuple[Function, tuple, tuple[int, ...]]] = {}
R = np.random.default_rng(7).standard_normal


def program(params: list, args: tuple, wrt: tuple[int, ...] = ()):
    """Register what the decorated function traces to."""

    def register(body):
        PROGRAMS[body.__name__] = (trace(body.__name__, body, params), args, wrt)
        return body

    return register


def named(value: Var, name: str) -> Var:
    """A value that the user has named."""
    value.name = name
    return value


def element(x, *index):
    """x[index], every axis given."""
    rank = x.type.ndim
    return reshape(slice_(x, *index, shape=(1,) * rank, step=(1,) * rank), shape=())


def put(x, value, *index):
    """x with x[index] = value."""
    rank = x.type.ndim
    return slice_update(x, reshape(value, shape=(1,) * rank), *index, step=(1,) * rank)


def dot(a, b):
    return dot_general(a, b, contract=((a.type.ndim - 1,), (max(b.type.ndim - 2, 0),)), batch=((), ()))


def sum_(x):
    return reduce_sum(x, axes=tuple(range(x.type.ndim)))


# --- loops of unknown length -------------------------------------------------------------------------------

_STATE = [("i", I), ("e", F), ("M", F), ("E", F)]


def residual(e, M, E):
    return sub(sub(E, mul(e, sin(E))), M)


@program([("e", F), ("M", F)], (np.float64(0.3), np.float64(1.0)), (0, 1))
def period(e, M):
    from metaphrase.ops.arithmetic import abs_

    go_on = trace("go_on", lambda i, e, M, E: gt(abs_(residual(e, M, E)), literal(1e-12)), _STATE)
    newton = trace(
        "newton", lambda i, e, M, E: sub(E, div(residual(e, M, E), sub(literal(1.0), mul(e, cos(E))))), _STATE
    )
    return loop(e, M, M, body=newton, cond=go_on, length=None, roles=Roles(2, 1, 0, 0), size="T")[1]


@program([("x", F)], (np.float64(3.7),))
def trips_and_history(x):
    """The trip count, the last value and all values on the way."""
    state = [("i", I), ("x", F)]
    go_on = trace("go_on", lambda i, x: and_(gt(x, literal(0.1)), lt(i, literal(50))), state)
    halve = trace("halve", lambda i, x: (div(x, literal(2.0)), mul(x, convert(i, dtype=f64))), state)
    return loop(x, body=halve, cond=go_on, length=None, roles=Roles(0, 1, 0, 0), size="T")


@program([("x", F)], (np.float64(-1.0),))
def no_iteration(x):
    """A loop that never runs leaves an empty stack of rows."""
    state = [("i", I), ("x", F), ("v", Array(f64, (3,)))]
    go_on = trace("go_on", lambda i, x, v: gt(x, literal(0.0)), state)
    body = trace("body", lambda i, x, v: (sub(x, literal(1.0)), v, v), state)
    start_ = zeros(Array(f64, (3,)))
    return loop(x, start_, body=body, cond=go_on, length=None, roles=Roles(0, 2, 0, 0), size="T")


@program([("a", I), ("b", I)], (np.int64(252), np.int64(105)))
def gcd(a, b):
    """Carries that are assigned at once, and a condition on one of them."""
    state = [("i", I), ("a", I), ("b", I)]
    go_on = trace("go_on", lambda i, a, b: ne(b, literal(0)), state)
    step = trace("step", lambda i, a, b: (b, mod(a, b)), state)
    return loop(a, b, body=step, cond=go_on, length=None, roles=Roles(0, 2, 0, 0), size="T")[1]


@program([("x", F)], (np.float64(5.0),), (0,))
def at_most_four(x):
    """A length and a condition."""
    state = [("i", I), ("x", F)]
    go_on = trace("go_on", lambda i, x: gt(x, literal(1.0)), state)
    body = trace("body", lambda i, x: mul(x, sin(x)), state)
    return loop(x, body=body, cond=go_on, length=4, roles=Roles(0, 1, 0, 0), size="T")[1]


# --- loops of known length ---------------------------------------------------------------------------------


@program([("x", V), ("c", F)], (R(6), np.float64(1.1)), (0, 1))
def powers(x, c):
    """A loop of stores into an array."""
    body = trace(
        "step", lambda i, c, x: put(x, mul(element(x, i), c), add(i, literal(1))), [("i", I), ("c", F), ("x", V)]
    )
    return sum_(loop(c, x, body=body, cond=None, length=n - 1, roles=Roles(1, 1, 0, 0))[0])


@program([("a", M), ("x", Array(f64, (m,)))], (R((3, 4)), R(4)), (0, 1))
def matvec(a, x):
    """A loop in a loop."""
    vector = Array(f64, (m,))
    inner = trace(
        "inner",
        lambda j, i, a, x, s: add(s, mul(element(a, i, j), element(x, j))),
        [("j", I), ("i", I), ("a", M), ("x", vector), ("s", F)],
    )

    def row(i, a, x, y):
        s = loop(i, a, x, literal(0.0), body=inner, cond=None, length=m, roles=Roles(3, 1, 0, 0))[0]
        return put(y, s, i)

    outer = trace("outer", row, [("i", I), ("a", M), ("x", vector), ("y", V)])
    y = loop(a, x, zeros(V), body=outer, cond=None, length=n, roles=Roles(2, 1, 0, 0))[0]
    return sum_(mul(y, y))


_W, _H = Array(f64, (k, k)), Array(f64, (k,))


@program([("w", _W), ("h", _H), ("xs", Array(f64, (n, k)))], (R((3, 3)), R(3), R((7, 3))), (0, 2))
def rnn(w, h, xs):
    """Rows in, rows out, one carry."""

    def cell(i, w, h, x):
        new = named(tanh(add(dot(w, h), x)), "h")
        return new, new

    body = trace("cell", cell, [("i", I), ("w", _W), ("h", _H), ("x", _H)])
    _, hs = loop(w, h, xs, body=body, cond=None, length=n, roles=Roles(1, 1, 0, 1))
    return sum_(mul(hs, hs))


@program([("xs", M), ("index", Array(i64, (n,)))], (R((5, 3)), np.array([0, 2, 2, 1, 0])))
def accumulate_rows(xs, index):
    """Two accumulators, in a parallel loop that runs backwards."""

    def body(i, total, table, x, k_):
        return add(total, sum_(mul(x, x))), scatter_add(table, element(x, literal(0)), k_, axes=(0,), unique=True)

    params = [("i", I), ("total", F), ("table", Array(f64, (4,))), ("x", Array(f64, (m,))), ("k", I)]
    function = trace("body", body, params)
    table = zeros(Array(f64, (4,)))
    return loop(
        literal(0.0), table, xs, index, body=function, cond=None, length=n, roles=Roles(0, 0, 2, 2), reverse=True
    )


@program([("u", V), ("v", V)], (R(4), R(4)))
def swap_and_write(u, v):
    """Two arrays that change places, one of them written in place."""

    def body(i, u, v):
        return v, put(u, mul(element(v, literal(0)), literal(0.5)), literal(1))

    function = trace("body", body, [("i", I), ("u", V), ("v", V)])
    return loop(u, v, body=function, cond=None, length=5, roles=Roles(0, 2, 0, 0))


@program([("x", V)], (R(4),))
def history_of_writes(x):
    """An array written in place of which every state is kept."""

    def body(i, x):
        return put(x, literal(9.0), i), x

    function = trace("body", body, [("i", I), ("x", V)])
    return loop(x, body=function, cond=None, length=n, roles=Roles(0, 1, 0, 0))


@program([("x", V)], (R(6),))
def old_and_new(x):
    """The array before a write is read after it."""
    y = slice_update(x, slice_(x, literal(0), shape=(2,), step=(1,)), literal(2), step=(1,))
    z = slice_add(y, slice_(y, literal(3), shape=(1,), step=(1,)), literal(0), step=(1,))
    return sum_(mul(x, y)), z, slice_(y, literal(0), shape=(3,), step=(1,))


# --- branches ----------------------------------------------------------------------------------------------


@program([("x", F)], (np.float64(0.3),), (0,))
def branchy(x):
    yes = trace("yes", lambda x: mul(x, sin(x)), [("x", F)])
    no = trace("no", neg, [("x", F)])
    return cond(gt(x, literal(0.0)), x, branches=(no, yes))[0]


@program([("k", I), ("x", V)], (np.int64(2), R(3)), (1,))
def switch(k_, x):
    """An integer index, arrays, two results, one of which a branch passes on."""
    params = [("x", V)]
    branches = (
        trace("a", lambda x: (x, sum_(x)), params),
        trace("b", lambda x: (neg(x), literal(2.0)), params),
        trace("c", lambda x: (mul(x, x), sum_(sin(x))), params),
    )
    y, s = cond(k_, x, branches=branches)
    return mul(y, broadcast(s, shape=(n,), axes=()))


@program([("x", V), ("p", B)], (R(5), np.bool_(True)))
def write_in_a_branch(x, p):
    """One branch writes into the array, the other leaves it."""
    y = mul(x, x)
    yes = trace("yes", lambda y: put(y, literal(0.0), literal(1)), [("y", V)])
    no = trace("no", lambda y: y, [("y", V)])
    return cond(p, y, branches=(no, yes))[0]


@program([("x", F)], (np.float64(2.0),))
def checked(x):
    """A branch that raises, a message with values."""

    def wrong(x):
        check(literal(False), x, exception="ValueError", message="{} is negative")
        return undefined(dtype=f64, shape=())

    branches = (trace("fine", log, [("x", F)]), trace("wrong", wrong, [("x", F)]))
    y = cond(lt(x, literal(0.0)), x, branches=branches)[0]
    check(lt(y, literal(3.0)), y, x, exception="IndexError", message="log {1} = {0:.3f}, which is too large")
    return y


# --- straight lines ----------------------------------------------------------------------------------------

_NET = [
    ("x", Array(f64, (n, d))),
    ("w1", Array(f64, (d, k))),
    ("b1", Array(f64, (k,))),
    ("w2", Array(f64, (k, m))),
    ("y", Array(i64, (n,))),
]


@program(_NET, (R((5, 3)), R((3, 4)), R(4), R((4, 6)), np.array([0, 3, 2, 5, 1])), (1, 2, 3))
def loss(x, w1, b1, w2, y):
    """A two-layer network with a softmax."""
    h = named(tanh(add(dot(x, w1), broadcast(b1, shape=(n, k), axes=(1,)))), "h")
    z = named(dot(h, w2), "z")
    s = sub(z, broadcast(reduce_max(z, axes=(1,)), shape=(n, m), axes=(0,)))
    sums = reduce_sum(exp(s), axes=(1,))
    logp = named(sub(s, broadcast(log(sums), shape=(n, m), axes=(0,))), "logp")
    picked = gather(logp, iota(length=n, dtype=i64), y, axes=(0, 1))
    return neg(div(sum_(picked), convert(dim_value(dim=n), dtype=f64)))


@program([("x", Array(f32, (n,))), ("a", Array(f32))], (R(5).astype("f4"), np.float32(0.1)), (0, 1))
def single_precision(x, a):
    """Literals and scalars keep f32."""
    y = mul(add(x, broadcast(literal(0.1, f32), shape=(n,), axes=())), broadcast(a, shape=(n,), axes=()))
    return div(sum_(y), add(a, literal(3.0, f32)))


@program([("x", V)], (R(9),), (0,))
def slices(x):
    """Every way to write a slice."""
    part = lambda first, length, step: slice_(x, start(first), shape=(length,), step=(step,))  # noqa: E731
    a = add(part(1, n - 1, 1), part(0, n - 1, 1))
    b = slice_(x, start(n - 1), shape=(n,), step=(-1,))
    return sum_(mul(a, a)), mul(b, x), part(2, 3, 2), part(n - 2, 2, 1), part(0, (n + 1) // 2, 2)


@program([("x", M)], (R((3, 4)),), (0,))
def axes(x):
    """Transposition, outer products, new axes."""
    column = reduce_sum(x, axes=(1,))
    outer = mul(
        broadcast(column, shape=(n, m), axes=(0,)), broadcast(reduce_sum(x, axes=(0,)), shape=(n, m), axes=(1,))
    )
    return sum_(mul(outer, x)), permute(x, axes=(1, 0)), dot(permute(x, axes=(1, 0)), x)


@program([("k", I), ("x", V)], (np.int64(3), R(7)))
def sized(k_, x):
    """A size that is a value of the program."""
    size = as_dim(k_, size="K")
    rows = iota(length=Sym("K"), dtype=i64)
    return add(gather(x, rows, axes=(0,)), convert(rows, dtype=f64)), mul(size, literal(2))


@program([("a", Array(u32)), ("b", I)], (np.uint32(4000000000), np.int64(17)))
def integers(a, b):
    """Arithmetic that wraps around, and division that rounds down."""
    return mul(a, literal(7, u32)), floor_div(neg(b), literal(5)), mod(neg(b), literal(5))


@program([("x", V), ("y", V)], (R(4), R(4)))
def choices(x, y):
    mask = named(gt(x, y), "larger")
    return (
        select(mask, x, y),
        select(eq(sum_(x), literal(0.0)), literal(1.0), sum_(y)),
        sum_(convert(mask, dtype=i64)),
    )


@program([("x", F)], (np.float64(1.5),))
def called(x):
    inner = trace("square", lambda x: mul(x, x), [("x", F)])
    y = call(x, function=inner)[0]
    print_(x, y, template="{} squared is {:.2f}")
    return call(y, function=inner)[0]
