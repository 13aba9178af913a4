"""custom_jvp, custom_vjp and custom_transpose in core: what each transformation makes of them.

In: small Functions with rules. Out: transformed Functions that are well formed, read back, and give what the rules say.
"""

from __future__ import annotations

import numpy as np
import pytest

from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.astpasses.transforms.jvp import jvp
from metaphrase.astpasses.transforms.reverse import linearize, vjp
from metaphrase.astpasses.transforms.transpose import transpose
from metaphrase.core.build import literal, trace
from metaphrase.core.calls import may_stay
from metaphrase.core.check import check
from metaphrase.core.custom import has_rules, through_rules, without_rules
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.core.types import Array, f64
from metaphrase.ops.arithmetic import add, mul
from metaphrase.ops.arrays import as_dim, zeros
from metaphrase.ops.custom_rules import custom_jvp, custom_transpose, custom_vjp
from metaphrase.ops.elementary import sin
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.regions import call
from metaphrase.ops.shape import broadcast
from metaphrase.source import UnsupportedError

SCALAR = Array(f64)
X = ("x", SCALAR)


def times(factor: float):
    return lambda x: mul(x, literal(factor, f64))


DOUBLE = trace("double", times(2.0), [X])
RULE = trace("double_jvp", lambda x, x_dot: (times(2.0)(x), times(7.0)(x_dot)), [X, ("x_dot", SCALAR)])
FORWARD = trace("double_fwd", lambda x: (times(2.0)(x), x), [X])
BACKWARD = trace("double_bwd", lambda x, bar: mul(times(5.0)(x), bar), [X, ("y_bar", SCALAR)])


def by_jvp(x):
    return custom_jvp(x, function=DOUBLE, rule=RULE, consts=0)[0]


def by_vjp(x):
    return custom_vjp(x, function=DOUBLE, forward=FORWARD, backward=BACKWARD, consts=0)[0]


def names(function: Function) -> list[str]:
    return [let.primitive.name for let in function.lets]


@pytest.mark.parametrize("used", [by_jvp, by_vjp])
def test_without_derivatives_they_are_the_function(used):
    program = check(trace("f", lambda x: sin(used(x)), [X]))
    assert has_rules(program) and same(read(show(program)), program)
    assert evaluate(program, np.float64(0.5)) == [np.sin(1.0)]
    assert names(without_rules(program)) == ["call", "sin"]
    assert names(optimize(program, before_transform=False)) == ["mul", "sin"]
    assert names(optimize(program, before_transform=True))[0].startswith("custom_")


def test_jvp_calls_the_rule():
    forward, nonzero = jvp(trace("f", by_jvp, [X]), [True])
    assert nonzero == [True] and names(check(forward)) == ["call"]
    assert evaluate(forward, np.float64(3.0), np.float64(1.0)) == [6.0, 7.0]


def test_a_tangent_that_is_zero_everywhere_is_none():
    flat = trace("flat", lambda x, x_dot: (times(2.0)(x), zeros(SCALAR)), [X, ("x_dot", SCALAR)])
    program = trace("f", lambda x: custom_jvp(x, function=DOUBLE, rule=flat, consts=0), [X])
    assert jvp(program, [True])[1] == [False]


def test_reverse_mode_calls_the_two_rules():
    program = trace("f", by_vjp, [X])
    parts = linearize(program, [True])
    assert names(parts.known) == ["call"] or "mul" in names(parts.known)
    assert names(check(parts.linear)) == ["custom_transpose"]
    backward, found = transpose(parts.linear, [False] * parts.residuals + [True])
    assert found == [True] and "custom_transpose" not in names(check(backward))
    assert evaluate(vjp(program, [True]), np.float64(3.0), np.float64(1.0)) == [6.0, 15.0]


def test_what_is_left_of_forward_mode_is_refused():
    forward, _ = jvp(trace("f", by_vjp, [X]), [True])
    assert names(forward) == ["call", "custom_transpose"]
    assert evaluate(forward, np.float64(3.0), np.float64(1.0)) == [6.0, 15.0]  # the map whose transpose is the rule
    with pytest.raises(UnsupportedError, match="custom-forward"):
        optimize(forward, before_transform=False)
    with pytest.raises(UnsupportedError, match="custom-forward"):
        jvp(forward, [False, True])
    unread = Function(forward.name, forward.params, forward.lets, forward.results[:1])
    assert names(optimize(unread, before_transform=False)) == ["mul"]


def test_forward_mode_goes_through_a_rule_that_lets_it():
    """In regions and lanes, too; reverse mode has the rule, and other rules stay."""

    def by_either(x):
        return custom_vjp(x, function=DOUBLE, forward=FORWARD, backward=BACKWARD, consts=0, through=True)[0]

    inner = trace("inner", lambda x: by_vjp(by_either(x)), [X])
    program = check(trace("f", lambda x: call(x, function=inner)[0], [X]))
    assert same(read(show(program)), program)
    left = through_rules(program).lets[0].attributes["function"]
    assert names(left) == ["call", "custom_vjp"] and through_rules(DOUBLE) is DOUBLE
    plain = trace("f", by_either, [X])
    forward, _ = jvp(through_rules(plain), [True])
    assert evaluate(check(forward), np.float64(3.0), np.float64(1.0)) == [6.0, 2.0]
    assert evaluate(vjp(plain, [True]), np.float64(3.0), np.float64(1.0)) == [6.0, 15.0]
    lanes, _ = batch(plain, 3, [True])
    assert names(through_rules(check(lanes))) == ["call"]


def test_a_rule_of_a_tangent_is_linear_by_itself():
    """`by_jvp` of a tangent, as a rule of second order may have it: its function is transposed."""
    program = trace("linear", lambda x, x_dot: by_jvp(mul(x, x_dot)), [X, ("x_dot", SCALAR)])
    backward, found = transpose(program, [False, True])
    assert found == [True] and evaluate(check(backward), np.float64(3.0), np.float64(1.0)) == [6.0]
    inner = jvp(trace("f", sin, [X]), [True])[0]
    rule = trace("rule", lambda x, d: (sin(x), by_vjp(call(x, d, function=inner)[1])), [X, ("x_dot", SCALAR)])
    ruled = trace("f", lambda x: custom_jvp(x, function=trace("s", sin, [X]), rule=rule, consts=0), [X])
    x, one = np.float64(0.3), np.float64(1.0)
    np.testing.assert_allclose(evaluate(vjp(ruled, [True]), x, one), [np.sin(x), 2 * np.cos(x)])


@pytest.mark.parametrize("used", [by_jvp, by_vjp])
def test_lanes_have_rules_too(used):
    program, marks = batch(trace("f", used, [X]), 3, [True])
    assert marks == [True] and has_rules(check(program)) and same(read(show(program)), program)
    x, bars = np.arange(3.0), np.ones(3)
    value, gradient = evaluate(check(vjp(program, [True])), x, bars)
    np.testing.assert_array_equal(value, 2 * x)
    np.testing.assert_array_equal(gradient, 7.0 * bars if used is by_jvp else 5.0 * x)


def test_the_tangents_of_lanes():
    forward, _ = jvp(trace("f", by_vjp, [X]), [True])
    program, marks = batch(forward, 2, [True, False])
    assert marks == [True, True]
    found = evaluate(check(program), np.array([1.0, 2.0]), np.float64(1.0))
    np.testing.assert_array_equal(found, [[2.0, 4.0], [5.0, 10.0]])


def test_residuals_of_a_size_that_the_forward_rule_binds():
    def repeated(x, n):
        size = as_dim(n, size="k").type.value
        return broadcast(x, shape=(size,), axes=())

    count = ("n", Array(np.dtype("int64")))
    function = trace("total", lambda n, x: reduce_sum(repeated(x, n), axes=(0,)), [count, X])
    forward = trace("ahead", lambda n, x: ((r := repeated(x, n)), reduce_sum(r, axes=(0,)))[::-1], [count, X])
    kept = forward.results[1].type.plain
    backward = trace("back", lambda r, bar: mul(reduce_sum(r, axes=(0,)), bar), [("r", kept), ("bar", SCALAR)])
    program = trace(
        "f", lambda n, x: custom_vjp(n, x, function=function, forward=forward, backward=backward, consts=0), [count, X]
    )
    check(program)
    check(jvp(program, [False, True])[0])
    assert program.lets[0].handed_symbols() and not program.lets[0].uses_symbols()
    n, x, one = np.int64(4), np.float64(1.5), np.float64(1.0)
    assert evaluate(check(vjp(program, [False, True])), n, x, one) == [6.0, 6.0]
    lanes, _ = batch(program, 2, [True, True])
    found = evaluate(check(vjp(check(lanes), [False, True])), np.array([4, 2]), np.array([1.5, 1.0]), np.ones(2))
    np.testing.assert_array_equal(found, [[6.0, 2.0], [6.0, 2.0]])


def test_types_are_checked():
    with pytest.raises(Exception, match="custom_jvp: double_fwd takes"):
        trace("f", lambda x: custom_jvp(x, function=DOUBLE, rule=FORWARD, consts=0), [X])
    with pytest.raises(Exception, match="custom_vjp: double takes"):
        trace("f", lambda x: custom_vjp(x, function=DOUBLE, forward=FORWARD, backward=DOUBLE, consts=0), [X])
    with pytest.raises(Exception, match="custom_transpose: double_bwd takes"):
        row = ("row", Array(f64, (2,)))
        trace("f", lambda r, d: custom_transpose(r, d, backward=BACKWARD, wanted=(True,), of="f"), [row, X])


def test_a_function_that_only_calls_an_elementwise_one_is_written_out():
    wrapper = trace("wrapper", lambda x: call(x, function=DOUBLE), [X])
    assert not may_stay(wrapper)
    program = trace("f", lambda x: add(*(call(x, function=wrapper)[0] for _ in range(2))), [X])
    assert "call" not in names(optimize(program, before_transform=False))
