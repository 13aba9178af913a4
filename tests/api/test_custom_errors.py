"""What is wrong with a derivative rule is said at the rule's line: one cause, one remedy.

In: functions with rules that don't fit them. Out: the class of the error, its place and its message.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import DTypeError, ShapeError, SourceError, UnsupportedError

X = np.ones(3)


def twice(x):
    return x * 2.0


def jvp_of(rule, x=X, fun=twice):
    made = mp.custom_jvp(fun)
    made.defjvp(rule)
    return mp.grad(lambda x: np.sum(made(x)))(x)


def vjp_of(fwd, bwd, x=X, fun=twice):
    made = mp.custom_vjp(fun)
    made.defvjp(fwd, bwd)
    return mp.grad(lambda x: np.sum(made(x)))(x)


def no_pair(primals, tangents):
    return twice(*primals)


def other_tree(primals, tangents):
    return twice(*primals), (tangents[0], tangents[0])


def other_primal(primals, tangents):
    return [twice(*primals)], tangents[0]


def other_shape(primals, tangents):
    return twice(*primals), tangents[0][:2]


def other_dtype(primals, tangents):
    return twice(*primals), tangents[0].astype(np.float32)


def text_tangent(primals, tangents):
    return twice(*primals), "zero"


@pytest.mark.parametrize(
    ("rule", "kind", "said"),
    [
        (
            no_pair,
            DTypeError,
            r"the rule no_pair must return the pair \(primal_out, tangent_out\), and returns one value",
        ),
        (
            other_tree,
            DTypeError,
            r"the tangent_out that the rule other_tree returns is \(\*, \*\), and twice returns one",
        ),
        (
            other_primal,
            DTypeError,
            r"the primal_out that the rule other_primal returns is \[\*\], and twice returns one",
        ),
        (
            other_shape,
            ShapeError,
            r"the tangent of the result that .* other_shape returns is f64\[2\] and must be f64\[3\]",
        ),
        (
            other_dtype,
            DTypeError,
            r"the tangent of the result that .* other_dtype returns is f32\[3\] and must be f64\[3\]",
        ),
        (
            text_tangent,
            DTypeError,
            r"the tangent of the result that .* text_tangent returns is 'zero' and must be f64\[3\]",
        ),
    ],
)
def test_a_jvp_rule_that_does_not_fit(rule, kind, said):
    with pytest.raises(kind, match=said) as caught:
        jvp_of(rule)
    error = caught.value
    assert error.code == "custom-rule" and error.remedy
    assert (error.span.file, error.span.line) == (rule.__code__.co_filename, rule.__code__.co_firstlineno)


def forward(x):
    return twice(x), None


def alone(_, bar):
    return bar


def too_many(_, bar):
    return bar, bar


def a_dict(_, bar):
    return ({"x": bar},)


def too_short(_, bar):
    return (bar[:2],)


def an_integer(_, bar):
    return (np.arange(3),)


@pytest.mark.parametrize(
    ("rule", "kind", "said"),
    [
        (
            alone,
            DTypeError,
            r"must return a tuple with one cotangent for each of the arguments \(x\), and returns one value",
        ),
        (too_many, DTypeError, r"one cotangent for each of the arguments \(x\), and returns \(\*, \*\)"),
        (a_dict, DTypeError, r"the cotangent of x that the rule a_dict returns is {'x': \*}, and x is one value"),
        (too_short, ShapeError, r"the cotangent of x that the rule too_short returns is f64\[2\] and must be f64\[3\]"),
        (
            an_integer,
            DTypeError,
            r"the cotangent of x that the rule an_integer returns is i64\[3\] and must be f64\[3\]",
        ),
    ],
)
def test_a_backward_rule_that_does_not_fit(rule, kind, said):
    with pytest.raises(kind, match=said) as caught:
        vjp_of(forward, rule)
    assert caught.value.code == "custom-rule" and caught.value.span.line == rule.__code__.co_firstlineno


def test_a_forward_rule_that_does_not_fit():
    with pytest.raises(DTypeError, match=r"must return the pair \(out, residuals\), and returns one value"):
        vjp_of(twice, lambda _, bar: (bar,))
    with pytest.raises(
        DTypeError, match=r"the out that the rule function returns is \(\*, \*\), and twice returns one"
    ):
        vjp_of(lambda x: ((x, x), None), lambda _, bar: (bar,))


def test_zeros_may_be_none():
    np.testing.assert_array_equal(vjp_of(forward, lambda _, bar: (None,)), np.zeros(3))
    pair = mp.custom_vjp(lambda p: p["a"] * 2 + p["b"][0])
    pair.defvjp(lambda p: (pair(p), None), lambda _, bar: ({"a": bar * 5, "b": None},))
    assert mp.grad(pair)({"a": 1.0, "b": (2.0,)}) == {"a": 5.0, "b": (0.0,)}


@pytest.mark.parametrize("make", [mp.custom_jvp, mp.custom_vjp])
def test_without_a_rule_there_is_no_derivative(make):
    made = make(twice)
    assert made(2.0) == mp.jit(made)(2.0) == 4.0
    np.testing.assert_array_equal(mp.vmap(made)(X), 2 * X)
    with pytest.raises(SourceError, match=r"twice has no (jvp|vjp) rule yet, and its derivative is taken") as caught:
        mp.grad(made)(2.0)
    assert caught.value.code == "no-rule" and "def" in caught.value.remedy and caught.value.span.file == __file__


@pytest.mark.parametrize(
    "transform", [mp.jacfwd, lambda f: lambda x: mp.jvp(f, (x,), (x,)), lambda f: mp.linearize(f, 2.0)[1]]
)
def test_a_backward_rule_alone_serves_no_forward_mode(transform):
    made = mp.custom_vjp(twice)
    made.defvjp(forward, lambda _, bar: (bar,))
    with pytest.raises(
        UnsupportedError, match=r"can't apply forward-mode differentiation \(jvp, .*\) to twice"
    ) as caught:
        transform(lambda x: made(x))(2.0)
    assert caught.value.code == "custom-forward" and caught.value.span.file == __file__
    with pytest.raises(UnsupportedError, match="custom-forward"):
        mp.jit(mp.jacfwd(lambda x: made(x)))(2.0)
    with pytest.raises(UnsupportedError, match="custom-forward"):
        mp.value_and_grad(lambda x: mp.jvp(made, (x,), (1.0,))[1])(2.0)


def test_what_a_rule_says_nothing_of():
    def closed_over(w):
        made = mp.custom_vjp(lambda x: x * w)
        made.defvjp(lambda x: (x * w, None), lambda _, bar: (bar * w,))
        return made(2.0)

    with pytest.raises(UnsupportedError, match="the derivative reaches `w`") as caught:
        mp.grad(closed_over)(3.0)
    assert caught.value.code == "custom-capture"

    @functools.partial(mp.custom_jvp, nondiff_argnums=(1,))
    def scaled(x, w):
        return x * w

    scaled.defjvp(lambda w, p, t: (p[0] * w, t[0] * w))
    assert mp.grad(scaled)(2.0, 3.0) == 3.0
    with pytest.raises(UnsupportedError, match="the derivative reaches `w`"):
        mp.grad(scaled, 1)(2.0, 3.0)


def test_arguments():
    with pytest.raises(
        SourceError, match=r"custom_vjp: 2 names no parameter of twice, which has x \[custom-arguments\]"
    ):
        mp.custom_vjp(twice, nondiff_argnums=(2,))
    with pytest.raises(SourceError, match="'steps' names no parameter of twice"):
        mp.custom_jvp(twice, nondiff_argnames="steps")
    with pytest.raises(DTypeError, match="defjvps of twice, which has nondiff_argnums"):
        mp.custom_jvp(twice, nondiff_argnums=0).defjvps(None)
    with pytest.raises(DTypeError, match="custom_jvp of 3, which is not a function"):
        mp.custom_jvp(3)
    by_rule = mp.custom_jvp(twice)
    by_rule.defjvp(lambda p, t: (p[0] * 2.0, t[0]))
    by_name = mp.custom_jvp(lambda x, *, k=2.0: x * k)
    by_name.defjvp(lambda p, t: (p[0] * 2.0, t[0]))
    assert mp.grad(by_name)(1.0) == 1.0
    with pytest.raises(SourceError, match="takes k by name alone, and rules take arguments by position"):
        mp.grad(lambda x: by_name(x, k=3.0))(1.0)
    with pytest.raises(TypeError, match=r"twice\(\) missing a required argument: 'x'"):
        mp.grad(lambda x: by_rule() * x)(1.0)


def test_a_function_with_rules_keeps_its_arguments():
    def overwrite(x):
        x[0] = 5.0
        return x * 1.0

    made = mp.custom_jvp(overwrite)
    made.defjvp(lambda p, t: (p[0] * 1.0, t[0]))
    given = X.copy()
    assert mp.jit(made)(given)[0] == given[0] == 5.0
    with pytest.raises(UnsupportedError, match="custom_jvp of overwrite, which writes to") as caught:
        mp.grad(lambda x: np.sum(made(x * 2.0)))(X)
    assert caught.value.code == "transformed-write"


def test_a_rule_that_is_not_linear_is_told_at_its_line():
    with pytest.raises(UnsupportedError, match="is not linear") as caught:
        jvp_of(lambda p, t: (twice(p[0]), np.abs(t[0])))
    assert caught.value.span.file == __file__
