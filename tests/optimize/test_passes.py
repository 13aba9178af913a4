"""What each pass does, on programs small enough to read; and what it must leave alone.

In: programs traced by hand. Out: the names of the operations left, and equal answers on NaN, infinities and
-0.0.
"""

from __future__ import annotations

import numpy as np
import pytest

from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.optimize.cse import cse
from metaphrase.astpasses.optimize.dead import dead
from metaphrase.astpasses.optimize.hoist import hoist
from metaphrase.astpasses.optimize.open_gradients import open_gradients
from metaphrase.astpasses.optimize.reuse import reuse
from metaphrase.astpasses.optimize.simplify import simplify
from metaphrase.astpasses.optimize.sizes import sizes
from metaphrase.astpasses.optimize.undo import undo
from metaphrase.core.build import literal, trace
from metaphrase.core.check import check
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function, Roles
from metaphrase.core.types import Array, bool_, f32, f64, i64
from metaphrase.ops.arithmetic import add, div, integer_pow, mul, neg, sub
from metaphrase.ops.arrays import as_dim, dim_value, undefined
from metaphrase.ops.compare import lt, not_, select
from metaphrase.ops.effects import check as check_
from metaphrase.ops.effects import print_
from metaphrase.ops.elementary import cos, exp, sin
from metaphrase.ops.families import like
from metaphrase.ops.indexing import gather, scatter, slice_update, start
from metaphrase.ops.indexing import slice as slice_
from metaphrase.ops.regions import call, cond, loop
from metaphrase.ops.shape import broadcast, convert, permute, reshape

n = Sym("n")
F, V, I = Array(f64), Array(f64, (n,)), Array(i64)
EDGES = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -2.5, 1e300, 1e-310])


def names(function: Function) -> list[str]:
    return [let.primitive.name for let in function.lets]


def full(x, value):
    return like(x, value)


# program of arrays x, y -> operations left
SIMPLER = {
    "double negation": (lambda x, y: neg(neg(x)), []),
    "times one": (lambda x, y: mul(full(x, 1.0), x), []),
    "times minus one": (lambda x, y: mul(x, full(x, -1.0)), ["neg"]),
    "by one": (lambda x, y: div(x, full(x, 1.0)), []),
    "plus minus zero": (lambda x, y: add(x, full(x, -0.0)), []),
    "minus zero": (lambda x, y: sub(x, full(x, 0.0)), []),
    "sum of negative": (lambda x, y: add(x, neg(y)), ["sub"]),
    "negative plus": (lambda x, y: add(neg(x), y), ["sub"]),
    "minus negative": (lambda x, y: sub(x, neg(y)), ["add"]),
    "product of negatives": (lambda x, y: mul(neg(x), neg(y)), ["mul"]),
    "sign moves out": (lambda x, y: sub(x, mul(neg(x), y)), ["mul", "add"]),
    "sign of quotient": (lambda x, y: add(y, div(x, neg(y))), ["div", "sub"]),
    "select of same": (lambda x, y: select(lt(x, y), x, x), []),
    "select turned": (lambda x, y: select(not_(lt(x, y)), x, y), ["lt", "select"]),
    "power one": (lambda x, y: integer_pow(x, exponent=1), []),
    "there and back": (lambda x, y: permute(permute(x, axes=(0,)), axes=(0,)), []),
    "reshape twice": (lambda x, y: reshape(reshape(x, shape=(1, n)), shape=(n,)), []),
    "widened and narrowed": (lambda x, y: convert(convert(convert(x, dtype=f32), dtype=f64), dtype=f32), ["convert"]),
    "slice of all": (lambda x, y: slice_(x, start(0), shape=(n,), step=(1,)), []),
    "write of all": (lambda x, y: slice_update(x, y, start(0), step=(1,)), []),
    "read what was written": (
        lambda x, y: slice_(
            slice_update(x, full(Array(f64, (1,)), 2.0), start(0), step=(1,)), start(0), shape=(1,), step=(1,)
        ),
        ["broadcast"],
    ),
    "before the broadcast": (
        lambda x, y: mul(broadcast(literal(2.0), shape=(n,), axes=()), broadcast(literal(3.0), shape=(n,), axes=())),
        ["broadcast"],
    ),
    "a size plus one": (lambda x, y: add(dim_value(dim=n), literal(1)), ["dim_value"]),
}


@pytest.mark.parametrize("title", SIMPLER)
def test_simplify_and_the_bits_stay(title):
    body, left = SIMPLER[title]
    function = trace("f", body, [("x", V), ("y", V)])
    after = check(dead(simplify(function)))
    assert names(after) == left, f"{function}\n{after}"
    grid = [a.ravel() for a in np.meshgrid(EDGES, EDGES)]
    for want, got in zip(evaluate(function, *grid), evaluate(after, *grid), strict=True):
        want, got = np.asarray(want), np.asarray(got)
        assert want.dtype == got.dtype and np.array_equal(want, got, equal_nan=want.dtype.kind == "f")
        if want.dtype.kind == "f":
            real = ~np.isnan(want)
            assert np.array_equal(np.signbit(want)[real], np.signbit(got)[real])


KEPT = {
    "plus zero": lambda x, y: add(x, full(x, 0.0)),
    "times zero": lambda x, y: mul(x, full(x, 0.0)),
    "minus itself": lambda x, y: sub(x, x),
    "zero minus": lambda x, y: sub(full(x, 0.0), x),
    "by itself": lambda x, y: div(x, x),
    "turned difference": lambda x, y: neg(sub(x, y)),
    "through a narrower dtype": lambda x, y: convert(convert(x, dtype=f32), dtype=f64),
}


@pytest.mark.parametrize("title", KEPT)
def test_what_is_not_exact_stays(title):
    function = trace("f", KEPT[title], [("x", V), ("y", V)])
    assert simplify(function) is function


def test_integers_have_no_signed_zero():
    function = trace("f", lambda k: add(mul(k, literal(1)), sub(k, k)), [("k", I)])
    assert simplify(function).results == (function.params[0],)


def test_an_accumulator_stays_a_sum():
    """The body of a loop may only add to its accumulators."""
    body = trace("body", lambda i, x, acc: add(acc, neg(mul(x, x))), [("i", I), ("x", F), ("acc", F)])
    function = trace(
        "f", lambda x: loop(x, literal(0.0), body=body, cond=None, length=3, roles=Roles(1, 0, 1, 0)), [("x", F)]
    )
    inner = optimize(function, before_transform=False).lets[-1].attributes["body"]
    assert "sub" not in names(inner) and names(inner)[-1] == "add"


def test_known_branch_stands_in_place():
    yes, no = (trace(t, f, [("x", F)]) for t, f in (("yes", sin), ("no", cos)))
    function = trace("f", lambda x: cond(literal(True), x, branches=(no, yes)), [("x", F)])
    assert names(simplify(function)) == ["sin"]


def test_literal_operands_go_into_regions():
    body = trace("body", lambda i, c, x: mul(x, c), [("i", I), ("c", F), ("x", F)])
    function = trace(
        "f", lambda x: loop(literal(1.0), x, body=body, cond=None, length=3, roles=Roles(1, 1, 0, 0)), [("x", F)]
    )
    after = optimize(function, before_transform=False)
    assert names(after) == [] and after.results == (after.params[0],)


def test_cse_shares_but_not_effects():
    function = trace("f", lambda x, y: mul(add(sin(x), mul(x, y)), add(sin(x), mul(y, x))), [("x", F), ("y", F)])
    assert names(cse(function)) == ["sin", "mul", "add", "mul"]

    def noisy(x):
        print_(x, template="{}")
        print_(x, template="{}")
        return x

    function = trace("f", noisy, [("x", F)])
    assert cse(function) is function


def test_cse_inside_regions_and_of_rows():
    body = trace("body", lambda i, x: (mul(sin(x), sin(x)), sin(x), sin(x)), [("i", I), ("x", F)])
    function = trace("f", lambda x: loop(x, body=body, cond=None, length=4, roles=Roles(0, 1, 0, 0)), [("x", F)])
    after = optimize(function, before_transform=False)
    assert names(after.lets[0].attributes["body"]) == ["sin", "mul"] and len(after.lets[0].outs) == 2
    for a, b in zip(evaluate(function, 0.4), evaluate(after, 0.4), strict=True):
        assert np.array_equal(a, b)


def test_dead_carries_rows_and_constants_go():
    body = trace(
        "body",
        lambda i, c, d, x, y, row: (mul(x, c), add(y, d), mul(row, x), sin(row)),
        [("i", I), ("c", F), ("d", F), ("x", F), ("y", F), ("row", F)],
    )
    function = trace(
        "f",
        lambda c, d, x, y, rows: loop(c, d, x, y, rows, body=body, cond=None, length=n, roles=Roles(2, 2, 0, 1))[0],
        [("c", F), ("d", F), ("x", F), ("y", F), ("rows", V)],
    )
    after = check(dead(function))
    assert after.lets[0].attributes["roles"] == Roles(1, 1, 0, 0)
    assert names(after.lets[0].attributes["body"]) == ["mul"]
    assert evaluate(after, 2.0, 0.0, 1.0, 0.0, np.ones(3)) == [8.0]


def test_a_carry_that_never_changes_is_a_constant():
    body = trace("body", lambda i, x, y: (mul(x, y), y), [("i", I), ("x", F), ("y", F)])
    test = trace("test", lambda i, x, y: lt(x, y), [("i", I), ("x", F), ("y", F)])
    function = trace(
        "f",
        lambda x, y: loop(x, y, body=body, cond=test, length=None, roles=Roles(0, 2, 0, 0), size="T")[1:],
        [("x", F), ("y", F)],
    )
    after = check(dead(function))
    assert after.lets[0].attributes["roles"] == Roles(1, 1, 0, 0)
    assert evaluate(after, 2.0, 5.0) == evaluate(function, 2.0, 5.0) == [10.0, 5.0]


def test_dead_branch_results_and_operands_go():
    yes = trace("yes", lambda x, y, z: (sin(x), y, cos(z)), [("x", F), ("y", F), ("z", F)])
    no = trace("no", lambda x, y, z: (x, y, z), [("x", F), ("y", F), ("z", F)])
    function = trace(
        "f",
        lambda p, x, y, z: cond(p, x, y, z, branches=(no, yes))[:2],
        [("p", Array(bool_)), ("x", F), ("y", F), ("z", F)],
    )
    after = check(dead(function))
    assert len(after.lets[0].args) == 2 and after.results[1] is after.params[2]


def test_effects_stay():
    def body(x):
        check_(lt(x, literal(3.0)), x, exception="ValueError", message="{} is too large")
        return literal(0.0)

    after = optimize(trace("f", body, [("x", F)]), before_transform=False)
    assert names(after) == ["lt", "check"]
    with pytest.raises(ValueError, match="7.0 is too large"):
        evaluate(after, 7.0)


def test_hoist_moves_what_computes_and_only_that():
    body = trace("body", lambda i, c, x: mul(x, mul(exp(c), full(c, 2.0))), [("i", I), ("c", F), ("x", F)])
    function = trace(
        "f", lambda c, x: loop(c, x, body=body, cond=None, length=5, roles=Roles(1, 1, 0, 0)), [("c", F), ("x", F)]
    )
    after = check(dead(hoist(function)))
    assert names(after) == ["exp", "mul", "loop"] and names(after.lets[-1].attributes["body"]) == ["mul"]
    assert evaluate(after, 0.5, 1.0) == evaluate(function, 0.5, 1.0)
    checked = trace(
        "checked",
        lambda i, c, x: (check_(lt(c, x), exception="ValueError", message="no"), x)[1],
        [("i", I), ("c", F), ("x", F)],
    )
    guarded = trace(
        "f", lambda c, x: loop(c, x, body=checked, cond=None, length=0, roles=Roles(1, 1, 0, 0)), [("c", F), ("x", F)]
    )
    assert evaluate(hoist(guarded), 2.0, 1.0) == [1.0]


def test_stop_gradient_stays_before_differentiation():
    from metaphrase.core.primitive import REGISTRY

    function = trace("f", lambda x: mul(x, REGISTRY["stop_gradient"](x)), [("x", F)])
    assert optimize(function, before_transform=True) is function
    assert names(open_gradients(function)) == ["mul"]


def test_calls_are_inlined_at_every_depth():
    inner = trace("inner", sin, [("x", F)])
    middle = trace("middle", lambda x: mul(call(x, function=inner)[0], x), [("x", F)])
    function = trace("f", lambda x: call(x, function=middle)[0], [("x", F)])
    assert names(optimize(function, before_transform=True)) == ["sin", "mul"]


def test_optimize_is_linear_enough_and_stable():
    """A long program is walked a fixed number of times, and a second run finds nothing."""

    def long(x):
        for k in range(2000):
            x = add(mul(x, literal(1.0)), neg(sin(x) if k % 3 else undefined(dtype=f64, shape=())))
        return x

    function = trace("f", long, [("x", F)])
    once = optimize(function, before_transform=False)
    assert len(once.lets) < len(function.lets)
    assert optimize(once, before_transform=False) is once


def test_what_no_branch_binds_is_unbound_after_them():
    """The result of a function that has not returned yet: nobody reads it, but all branches hand it on."""

    def branch(value):
        return trace("branch", lambda x: (sin(x), undefined(dtype=f64, shape=()), value(x)), [("x", F)])

    inner = branch(lambda x: undefined(dtype=f64, shape=()))
    outer = trace("outer", lambda x: tuple(cond(lt(x, literal(2.0)), x, branches=(inner, branch(neg)))), [("x", F)])
    function = trace("f", lambda x: tuple(cond(lt(x, literal(1.0)), x, branches=(outer, branch(exp)))), [("x", F)])
    simple = simplify(function)
    check(simple)
    assert sorted(names(simple)) == ["cond", "lt", "undefined"]
    let = next(let for let in simple.lets if let.primitive is cond)
    assert [len(b.results) for b in let.attributes["branches"]] == [2, 2]
    assert evaluate(simple, np.float64(1.5))[0] == evaluate(function, np.float64(1.5))[0]


@pytest.mark.parametrize("dim, left", [
    (n // 2 + 1, ["dim_value", "dim_value", "broadcast"]),
    ((n - 5) // 2, ["dim_value", "as_dim", "broadcast"]),
])  # fmt: skip
def test_a_size_that_may_be_negative_is_checked_where_it_is_made(dim, left):
    def program(v):
        as_dim(dim_value(dim=dim), size="k")
        return broadcast(literal(1.0), shape=(Sym("k"),), axes=())

    assert names(sizes(trace("f", program, [("v", V)]))) == left


def test_a_reshape_stays_behind_the_sizes_that_it_names():
    """Neither a slice before them draws it to itself, nor a write that its slice is done before."""

    def program(v, k):
        part = slice_(v, literal(0), shape=(12,), step=(1,))
        written = slice_update(v, slice_(v, literal(1), shape=(1,), step=(1,)), literal(0), step=(1,))
        late = slice_(v, literal(0), shape=(12,), step=(1,))
        rows = as_dim(k, size="rows")
        columns = as_dim(sub(literal(12), k), size="columns")
        shape = (rows.type.value, columns.type.value)
        return reshape(part, shape=shape), reshape(late, shape=shape), written

    function = trace("f", program, [("v", Array(f64, (12,))), ("k", I)])
    check(reuse(function))


def test_undo_of_two_arrays_whose_steps_are_stored_in_the_other_order():
    """Both arrays go, whichever of the two is stacked first."""

    def forward(i, x, y):
        one, other = gather(x, i, axes=(0,)), gather(y, i, axes=(0,))
        return scatter(x, mul(one, other), i, axes=(0,)), scatter(y, add(one, other), i, axes=(0,)), y, x

    def back(i, bar, y, x):
        return (add(bar, mul(gather(x, i, axes=(0,)), neg(gather(y, i, axes=(0,))))),)

    def program(x, y):
        vector = Array(f64, (4,))
        stepped = trace("forward", forward, [("i", I), ("x", vector), ("y", vector)])
        _, _, ys, xs = loop(x, y, body=stepped, cond=None, length=4, roles=Roles(0, 2, 0, 0))
        run_back = trace("back", back, [("i", I), ("bar", F), ("y", vector), ("x", vector)])
        zero = literal(0.0, f64)
        return loop(zero, ys, xs, body=run_back, cond=None, length=4, roles=Roles(0, 1, 0, 2), reverse=True)

    before = trace("program", program, [("x", Array(f64, (4,))), ("y", Array(f64, (4,)))])
    after = undo(before)
    check(after)
    assert not any(v.type.ndim == 2 for let in after.lets for v in let.outs)
    x, y = np.array([1.5, -0.5, 2.0, 3.0]), np.array([0.25, 4.0, -1.0, 0.5])
    np.testing.assert_array_equal(evaluate(after, x, y)[0], evaluate(before, x, y)[0])
