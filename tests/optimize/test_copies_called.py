"""Copies of a function that is called elsewhere become calls: which operations are a copy, and what stays as it is.

In: core programs as text, and staged ones. Out: where calls stand, and the values of what was there before.
"""

from __future__ import annotations

import numpy as np
import pytest

from metaphrase.astpasses.frontend import stage
from metaphrase.astpasses.optimize import optimize
from metaphrase.core.calls import written_out
from metaphrase.core.check import check
from metaphrase.core.copies import with_copies_called
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.read import read

CALLEE = """
    def inner(p: f64[3], q: f64[3]) -> f64:
        a: f64[3] = mul(p, q)
        b: f64[3] = sin(a)
        c: f64 = reduce_sum(b, axes=(0,))
        return c
"""

PROGRAM = """
def f(x: f64[3], y: f64[3]) -> {type}:
    d: f64[3] = {first}
    e: f64[3] = sin(d)
    g: f64 = reduce_sum(e, axes=({axes}))
{callee}
    h: f64 = call(y, x, function=inner)
    k: f64 = {last}
    return k{more}
"""


def program(first="mul(x, y)", axes="0,", last="add(g, h)", type="f64", more="") -> Function:
    text = PROGRAM.format(callee=CALLEE.strip("\n"), first=first, axes=axes, last=last, type=type, more=more)
    return check(read(text))


def names(function: Function) -> list[str]:
    return [let.primitive.name for let in function.lets]


def same_values(one: Function, other: Function) -> None:
    args = [np.linspace(0.1 + k, 1.3 + k, 3).astype(p.type.dtype) for k, p in enumerate(one.params)]
    for a, b in zip(evaluate(one, *args), evaluate(other, *args)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("first", ["mul(x, y)", "mul(y, x)", "mul(x, x)"])
def test_a_copy_becomes_a_call_of_what_it_was_given(first):
    function = program(first)
    new = check(with_copies_called(function))
    assert names(new) == ["call", "call", "add"]
    assert new.lets[0].args == function.lets[0].args
    assert {let.attributes["function"] for let in new.lets[:2]} == {function.lets[3].attributes["function"]}
    same_values(function, new)


OTHERS = {
    "another operation": {"first": "add(x, y)"},
    "a constant that is a parameter there": {"first": "mul(x, x)", "last": "add(e, e)", "type": "f64[3]"},
    "a value of its own is read behind it": {"last": "add(d, d)", "type": "f64[3]"},
    "a value of its own is a result": {"type": "(f64, f64[3])", "more": ", e"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_copy_stays(name):
    changes = dict(OTHERS[name])
    if changes.get("type") == "f64[3]":  # the last operation has another type
        text = PROGRAM.format(callee=CALLEE.strip("\n"), axes="0,", more="", **{"first": "mul(x, y)", **changes})
        function = check(read(text.replace("k: f64 =", "k: f64[3] =")))
    else:
        function = program(**changes)
    assert with_copies_called(function) is function


@pytest.mark.parametrize("given", ["d", "e"])
def test_what_is_given_a_value_of_its_own_is_no_copy(given):
    text = """
def f(x: f64[3], y: f64[3]) -> f64:
    d: f64[3] = sin(x)
    e: f64[3] = mul(d, y)
    g: f64[3] = mul(e, {given})
    i: f64 = reduce_sum(g, axes=(0,))
    def inner(p: f64[3], q: f64[3], r: f64[3]) -> f64:
        a: f64[3] = sin(p)
        b: f64[3] = mul(a, q)
        c: f64[3] = mul(b, r)
        s: f64 = reduce_sum(c, axes=(0,))
        return s
    h: f64 = call(y, x, y, function=inner)
    k: f64 = add(i, h)
    return k
"""
    function = check(read(text.format(given=given)))
    assert with_copies_called(function) is function


def test_attributes_and_literals_count():
    callee = """
    def inner(p: f64[3]) -> f64[3]:
        a: f64[3] = broadcast(2.0, shape=(3,), axes=())
        b: f64[3] = mul(p, a)
        c: f64[3] = cumsum(b, axis=0, reverse=False)
        return c
"""
    text = """
def f(x: f64[3]) -> f64[3]:
    d: f64[3] = broadcast({literal}, shape=(3,), axes=())
    e: f64[3] = mul(x, d)
    g: f64[3] = cumsum(e, axis=0, reverse=False)
{callee}
    h: f64[3] = call(g, function=inner)
    return h
"""
    for literal, copies in (("2.0", 1), ("-2.0", 0), ("3.0", 0)):
        function = check(read(text.format(literal=literal, callee=callee.strip("\n"))))
        new = check(with_copies_called(function))
        assert names(new).count("call") == 1 + copies
        same_values(function, new)


def test_copies_in_loops_and_branches_and_of_functions_that_call():
    def inner(x, w):
        return np.tanh(np.cumsum(x * w) + np.sum(x)) * np.max(np.cos(x)) + np.sin(np.cumsum(np.cos(x)))

    def outer(x, w):
        for _ in range(2):
            x = (inner(x, w) - inner(x + 1, w) * inner(x * x, w) + inner(w, x) + inner(x - 1, w)) / 8
        return x

    def program(x, w, n):
        y = outer(x, w)
        for k in range(n):
            if k > 2:
                y = outer(y, w) + outer(w, y)
            y = y + outer(x, y) - outer(y, x) * np.sum(outer(x, w)) + outer(w, w)
        return outer(outer(y, w), x)

    x, w = np.linspace(-0.3, 0.4, 5), np.linspace(0.2, -0.1, 5)
    function = stage(program, (x, w, 4)).function
    new = check(with_copies_called(function))
    assert new is not function
    assert with_copies_called(new) is new
    args = x, w, np.int64(4)
    kept = args[: len(function.params)]
    np.testing.assert_array_equal(evaluate(function, *kept), evaluate(new, *kept))
    np.testing.assert_allclose(evaluate(new, *kept)[0], program(*args), rtol=1e-12)
    plain = written_out(new, lambda callee: False)
    np.testing.assert_array_equal(evaluate(plain, *kept), evaluate(new, *kept))


def test_all_calls_of_equal_layers_are_calls():
    def layer(x, w):
        h = np.tanh(x @ w)
        return x + (h - h.mean(axis=-1, keepdims=True)) / np.sqrt((h * h).mean(axis=-1, keepdims=True) + 1.0)

    def network(x, ws):
        for w in ws:
            x = layer(x, w)
        return x

    rng = np.random.default_rng(0)
    function = stage(network, (rng.normal(size=(3, 4)), [rng.normal(size=(4, 4)) for _ in range(20)])).function
    finished = optimize(function, before_transform=False)
    assert names(finished) == ["call"] * 20
    assert len({let.attributes["function"] for let in finished.lets}) == 1
