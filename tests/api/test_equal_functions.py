"""A function that is called many times is staged, differentiated, scheduled and written once, and called.

In: programs of equal layers and of helpers that call each other, from loops and branches too. Out: the values and
derivatives of NumPy and of differences, one function in each text, and a compile time that hardly grows with the
number of layers.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import tree_util
from metaphrase.astpasses.frontend import stage
from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.calls import operations, worth_calling, written_out
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.pipeline import cython, loops

pytestmark = pytest.mark.turns(2)

RNG = np.random.default_rng(3)
WIDTH = 6


def layer(x, w, b, g):
    h = np.tanh(x @ w + b)
    mean = h.mean(axis=-1, keepdims=True)
    spread = ((h - mean) ** 2).mean(axis=-1, keepdims=True)
    return x + g * (h - mean) / np.sqrt(spread + 1e-3)


def network(x, layers):
    for w, b, g in layers:
        x = layer(x, w, b, g)
    return (x * x).mean()


def made(count, width=WIDTH):
    shapes = (width, width), width, width
    layers = [tuple(RNG.normal(size=s) / width**0.5 for s in shapes) for _ in range(count)]
    return RNG.normal(size=(3, width)), layers


def staged(count):
    return stage(network, made(count)).function


def calls(function: Function) -> list[Function]:
    return [let.attributes["function"] for let in function.lets if let.primitive.name == "call"]


def same_slope(function, gradient, arguments, step=1e-6):
    """Whether a gradient says what differences along one direction say."""
    leaves, structure = tree_util.tree_flatten(arguments)
    way = [RNG.normal(size=np.shape(leaf)) for leaf in leaves]

    def at(t):
        return function(*structure.unflatten([leaf + t * d for leaf, d in zip(leaves, way)]))

    slope = sum(np.sum(g * d) for g, d in zip(tree_util.tree_leaves(gradient), way))
    np.testing.assert_allclose(slope, (at(step) - at(-step)) / (2 * step), rtol=2e-5, atol=1e-7)


# ---- one function for all calls -----------------------------------------------------------------------------


def test_equal_calls_are_staged_once():
    functions = calls(staged(16))
    assert len(functions) > 10
    assert len(set(functions)) == 1
    assert functions[0].name == "layer"


def test_derivatives_and_batches_call_one_function():
    function = optimize(staged(16), before_transform=True)
    backward = optimize(vjp(function, [True] * len(function.params)), before_transform=False)
    forward_and_back = set(calls(backward))
    assert len(calls(backward)) > 20
    assert {f.name for f in forward_and_back} == {"layer_forward", "layer_transposed"}
    assert len(forward_and_back) == 2
    batched, _ = batch(function, 4, [True] * len(function.params))
    assert len(set(calls(batched))) == 1


def test_a_call_means_what_is_written_out_means():
    function = staged(9)
    arguments = tree_util.tree_leaves(made(9))
    plain = written_out(function, lambda callee: False)
    assert calls(function) and not calls(plain)
    np.testing.assert_array_equal(evaluate(function, *arguments), evaluate(plain, *arguments))
    wrt = [True] * len(function.params)
    for one, two in zip(evaluate(vjp(function, wrt), *arguments, 1.0), evaluate(vjp(plain, wrt), *arguments, 1.0)):
        np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-14)


def test_the_text_says_a_function_once_and_reads_back():
    function = staged(12)
    text = show(function)
    assert text.count("def layer(") == 1
    assert same(check(read(text)), function)
    assert len(set(calls(read(text)))) == 1


def test_what_is_not_worth_a_call_is_written_out():
    function = staged(3)
    callee = calls(function)[0]
    assert operations(callee) > 8
    assert not worth_calling(function)(callee)  # few calls save few operations
    assert not calls(optimize(function, before_transform=False))

    def scaled(x, factor):
        return np.tanh(x * factor) * factor + np.sin(x) * np.cos(x) - np.exp(-x) * factor + x * x / (1 + x * x)

    def elementwise(x):
        for factor in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0):
            x = scaled(x, x * factor)
        return x

    assert not calls(optimize(stage(elementwise, (np.ones(5),)).function, before_transform=False))


@pytest.mark.parametrize("heavy", [False, True])
def test_a_loop_calls_what_takes_long(heavy):
    def slope(y, w):
        pull = np.sqrt((y * y).sum(axis=-1, keepdims=True) + 0.1)
        push = np.exp(-np.abs(y)).mean(axis=-1, keepdims=True) + np.log1p(y * y).max(axis=-1, keepdims=True)
        twist = np.sin(y) * np.cos(y) - np.tanh(y) / (1 + y * y) + np.arctan(y) * np.cbrt(pull)
        return (twist @ w if heavy else twist * w) - y * pull + push

    def program(y, w, n):
        for _ in range(n):
            a = slope(y, w)
            b = slope(y + 0.005 * a, w)
            c = slope(y + 0.005 * b, w)
            y = y + 0.01 * (a + 2 * b + 2 * c + slope(y + 0.01 * c, w)) / 6
        return y

    y, w = RNG.normal(size=(4, 48)), RNG.normal(size=(48, 48)) / 48 if heavy else RNG.normal(size=48)
    jitted = mp.jit(program)
    np.testing.assert_allclose(jitted(y, w, 100), program(y, w, 100), rtol=1e-8)
    assert jitted.source("cython").count("call_slope(c") == (4 if heavy else 0)


def test_each_text_has_one_function():
    x, layers = made(16)
    gradient = mp.jit(mp.grad(network, argnums=1))
    assert gradient.source("numpy", x, layers).count("def layer_transposed(") == 1
    assert gradient.source("cython", x, layers).count("cdef int call_layer_transposed(") == 1
    assert gradient.source("loops", x, layers).count("def call_layer_forward(") == 1


@pytest.mark.parametrize("count", [16, 64])
def test_values_and_gradients(count):
    x, layers = made(count)
    np.testing.assert_allclose(mp.jit(network)(x, layers), network(x, layers), rtol=1e-10)
    got = mp.jit(mp.grad(network, argnums=(0, 1)))(x, layers)
    for one, two in zip(tree_util.tree_leaves(got), tree_util.tree_leaves(mp.grad(network, argnums=(0, 1))(x, layers))):
        np.testing.assert_allclose(one, two, rtol=1e-8, atol=1e-10)
    if count == 16:
        same_slope(network, got, (x, layers))


def test_many_layers_compile_in_the_time_of_three():
    def seconds(count):
        x, layers = made(count)
        start = time.process_time()
        function = stage(network, (x, layers)).function
        function = optimize(function, before_transform=True)
        function = optimize(vjp(function, [True] * len(function.params)), before_transform=False)
        cython(loops(function))
        return time.process_time() - start

    seconds(3)
    three = min(seconds(3) for _ in range(3))
    many = min(seconds(64) for _ in range(3))
    assert many < 2 * three  # written out it takes 40 times as long


# ---- functions that call functions --------------------------------------------------------------------------


def normal(x, eps=1e-3):
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + eps)


def attention(x, w):
    scores = x @ w @ x.T
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    return (weights / weights.sum(axis=-1, keepdims=True)) @ x


def block(x, p, kind):
    x = x + attention(normal(x), p["a"])
    if kind == "wide":
        return x + np.tanh(normal(x) @ p["b"])
    return x - np.tanh(normal(x) @ p["b"]) * 0.5


def transformer(x, blocks):
    for k, p in enumerate(blocks):
        x = block(x, p, "wide" if k % 3 else "narrow")
    return np.sum(normal(x) * np.arange(x.shape[-1]))


def blocks(count):
    return [{"a": RNG.normal(size=(WIDTH, WIDTH)) / 4, "b": RNG.normal(size=(WIDTH, WIDTH)) / 4} for _ in range(count)]


def test_helpers_in_helpers():
    x, given = RNG.normal(size=(5, WIDTH)), blocks(14)
    functions = set(calls(stage(transformer, (x, given)).function))
    assert 1 < len(functions) < 5  # for the two kinds of blocks
    np.testing.assert_allclose(mp.jit(transformer)(x, given), transformer(x, given), rtol=1e-9)
    same_slope(transformer, mp.jit(mp.grad(transformer, argnums=(0, 1)))(x, given), (x, given))


def test_under_vmap_of_grad():
    xs, given = RNG.normal(size=(4, 5, WIDTH)), blocks(14)
    got = mp.jit(mp.vmap(mp.grad(transformer, argnums=1), in_axes=(0, None)))(xs, given)
    for lane, x in enumerate(xs):
        want = mp.grad(transformer, argnums=1)(x, given)
        for one, two in zip(tree_util.tree_leaves(got), tree_util.tree_leaves(want)):
            np.testing.assert_allclose(one[lane], two, rtol=1e-8, atol=1e-10)


def in_loops_and_branches(x, layers, n):
    total = 0.0
    for k in range(n):
        for w, b, g in layers:
            x = layer(x, w, b, g) * 0.5
        if x.sum() > 0.1:
            for w, b, g in layers:
                x = layer(x, w, b, g) * 0.3
        else:
            x = layer(x, *layers[0]) - 0.1
        total = total + x[0] @ x[1] * k
    while total > 1.0:
        for w, b, g in layers:
            x = layer(x, w, b, g)
        total = total / (2.0 + x[0, 0] ** 2)
    return total + x.sum()


def test_in_loops_and_branches():
    x, layers = made(7, width=40)  # where loops call functions
    assert mp.jit(in_loops_and_branches).source("cython", x, layers, 4).count("call_layer(c") > 7
    for n in (0, 5):
        np.testing.assert_allclose(
            mp.jit(in_loops_and_branches)(x, layers, n), in_loops_and_branches(x, layers, n), rtol=1e-9
        )
    x, layers = made(2)
    gradient = mp.jit(mp.grad(in_loops_and_branches, argnums=(0, 1)))
    same_slope(lambda x, layers: in_loops_and_branches(x, layers, 4), gradient(x, layers, 4), (x, layers))
    xs = RNG.normal(size=(3, *x.shape))
    got = mp.jit(mp.vmap(in_loops_and_branches, in_axes=(0, None, None)))(xs, layers, 3)
    np.testing.assert_allclose(got, [in_loops_and_branches(x, layers, 3) for x in xs], rtol=1e-9)


# ---- what a called function says and raises -----------------------------------------------------------------


def told(x, w, b, g):
    x = layer(x, w, b, g)
    print("mean", round(float(x.mean()), 6))
    assert x.max() < 50.0, f"too large: {x.max() > 50}"
    return x


def telling(x, layers):
    for w, b, g in layers:
        x = told(x, w, b, g)
    return x.sum()


def test_prints_in_order(capsys):
    x, layers = made(12)
    want, text = telling(x, layers), capsys.readouterr().out
    assert calls(stage(telling, (x, layers)).function)
    np.testing.assert_allclose(mp.jit(telling)(x, layers), want, rtol=1e-10)
    assert capsys.readouterr().out == text
    mp.jit(mp.grad(telling))(x, layers)
    assert capsys.readouterr().out == text


def test_a_check_that_fails_in_a_called_function(capsys):
    x, layers = made(12)
    layers[9] = (layers[9][0], layers[9][1], layers[9][2] + 100.0)
    with pytest.raises(AssertionError) as theirs:
        telling(x, layers)
    text = capsys.readouterr().out
    with pytest.raises(AssertionError) as ours:
        mp.jit(telling)(x, layers)
    assert str(ours.value).splitlines()[0] == str(theirs.value).splitlines()[0]
    assert capsys.readouterr().out == text


# ---- calls that only look equal -----------------------------------------------------------------------------


def test_static_values_and_types_have_functions_of_their_own():
    def power(x, w, exponent, negative):
        h = (np.tanh(x @ w) ** exponent).sum(axis=0) / (1.0 + np.abs(x).max(axis=0))
        h = h + np.sqrt(np.sum(x * x) + 1.0) + np.log1p(np.abs(x)).mean(axis=0)
        return x - h if negative else x + h

    def program(x, w):
        total = 0.0
        for k in range(12):
            x = power(x, w, 2 + k % 2, k % 3 == 0) / 2
            total = total + power(x.astype(np.float32), w.astype(np.float32), 2, True).sum()
        return x, total

    x, w = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    for one, two in zip(mp.jit(program)(x, w), program(x, w)):
        np.testing.assert_allclose(one, two, rtol=1e-5)


def test_what_a_function_reads_may_change_between_calls():
    scale = {"now": 1.0}

    def step(x, w):
        h = np.tanh(x @ w) * scale["now"]
        h = h - h.mean(axis=-1, keepdims=True)
        return x + h / np.sqrt((h * h).mean(axis=-1, keepdims=True) + 1.0) + np.exp(-h * h).sum(axis=0)

    def program(x, w):
        for k in range(9):
            scale["now"] = 1.0 if k < 6 else 2.0
            x = step(x, w) / 2
        return x

    x, w = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    np.testing.assert_allclose(mp.jit(program)(x, w), program(x, w), rtol=1e-10)


def test_views_and_stores_are_seen():
    def halves(x, w):
        h = np.tanh(x @ w)
        h = h - h.mean(axis=-1, keepdims=True) + np.sqrt((h * h).sum(axis=0) + 1.0) + np.exp(-h).max(axis=0)
        x[0] = h[0]
        return x[1:]

    def program(x, w):
        x = x.copy()
        for _ in range(9):
            rest = halves(x, w)
            rest *= 0.5
        return x

    x, w = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    np.testing.assert_allclose(mp.jit(program)(x, w), program(x, w), rtol=1e-10)


def test_sizes_of_the_caller():
    x, layers = made(12)
    jitted = mp.jit(network)
    for rows in (3, 5, 8):
        x = RNG.normal(size=(rows, WIDTH))
        np.testing.assert_allclose(jitted(x, layers), network(x, layers), rtol=1e-10)
    assert len(jitted.signatures) == 2


def test_arena_memory_is_given_back():
    def wide(x, w):
        h = np.tanh(x @ w)  # half a megabyte, more than a stack has
        h = h - h.mean(axis=0) + np.sqrt((h * h).sum(axis=0) + 1.0)
        h = np.exp(-h * h) + np.cos(h).max(axis=0)
        return np.tanh(h.sum(axis=-1, keepdims=True) / 256 + x)

    def program(x, matrices):
        for w in matrices:
            x = wide(x, w)
        return x

    x, w = RNG.normal(size=(256, 4)), [RNG.normal(size=(4, 256))] * 20
    np.testing.assert_allclose(mp.jit(program)(x, w), program(x, w), rtol=1e-9)
    function = optimize(stage(program, (x, w)).function, before_transform=False)
    (fn,) = (fn for fn in schedule(function).fns if fn.name.startswith("call_wide"))
    assert any(buf.dims == (256, 256) for buf in fn.temps)
    assert "c.release(c, mp_mark)" in mp.jit(program).source("cython", x, w)


# ---- many calls in a row are a loop in Cython --------------------------------------------------------------


def states(x, layers, total):
    """Results of some calls are those of the program; a number of it goes into an argument."""
    found = []
    for w, b, g in layers:
        x = layer(x, w, b, g)
        found.append(x)
    total[0] = x.sum()
    return found


def loops_of_calls(function, *args) -> int:
    return mp.source(function, *args, stage="cython").count("    for mp_call in range(")


def test_many_calls_are_a_loop_and_few_are_not():
    assert loops_of_calls(network, *made(24)) == 1 and loops_of_calls(mp.grad(network, argnums=(0, 1)), *made(24)) == 2
    assert loops_of_calls(network, *made(5)) == 0


@pytest.mark.parametrize("count", [11, 24])
def test_what_such_a_loop_gives(count):
    x, layers = made(count)
    value, gradient = mp.jit(mp.value_and_grad(network, argnums=(0, 1)))(x, layers)
    assert value == pytest.approx(network(x, layers), rel=1e-13)
    same_slope(network, gradient, (x, layers))


def test_results_and_arguments_are_among_the_places_of_such_a_loop():
    x, layers = made(20)
    mine, theirs = np.zeros(1), np.zeros(1)
    for got, want in zip(mp.jit(states)(x, layers, mine), states(x, layers, theirs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert mine == pytest.approx(theirs) and loops_of_calls(states, x, layers, mine) == 1


def test_where_temporaries_have_no_offsets_that_are_known_calls_stand_one_by_one():
    x, layers = made(12)
    compiled = mp.jit(network)
    for rows in (3, 2, 1):
        assert compiled(x[:rows], layers) == pytest.approx(network(x[:rows], layers), rel=1e-12)
