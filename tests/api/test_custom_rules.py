"""custom_jvp, custom_vjp, custom_gradient: the derivative is what the rule says, in every mode and transformation.

In: `custom_functions.CASES`. Out: gradients by NumPy source and by native code, of lanes, of one lane among many, in
forward mode, against differences or the formula of a rule that says something else.
"""

from __future__ import annotations

import copy
import inspect
import pickle

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import tree

from .custom_functions import ABOVE, CASES, X, cube, hypot, log1pexp, norm, root, ruled, scalar_root

NAMES = sorted(CASES)


def total(name):
    function = CASES[name].function
    return lambda x: sum(np.sum(leaf) for leaf in tree.leaves(function(x)))


def differences(f, x, h=1e-6):
    leaves, structure = tree.flatten(x)
    found = []
    for k, leaf in enumerate(leaves):
        out = np.zeros(np.shape(leaf))
        for place in np.ndindex(out.shape):
            step = np.zeros(out.shape)
            step[place] = h
            there = [structure.unflatten([*leaves[:k], leaf + s, *leaves[k + 1 :]]) for s in (step, -step)]
            out[place] = (f(there[0]) - f(there[1])) / (2 * h)
        found.append(out)
    return structure.unflatten(found)


def wanted(name):
    case = CASES[name]
    return differences(total(name), case.x) if case.wanted is None else case.wanted(case.x)


def close(got, want, tolerance=1e-6):
    got, want = tree.leaves(got), tree.leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_what_the_rule_says(name):
    close(mp.grad(total(name))(CASES[name].x), wanted(name))


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", NAMES)
def test_native_code_gives_the_same(name):
    case, f = CASES[name], total(name)
    value, gradient = mp.jit(mp.value_and_grad(f))(case.x)
    close(gradient, wanted(name))
    close(value, f(case.x), 1e-12)
    close(mp.jit(f)(case.x), f(case.x), 1e-12)


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", [n for n in NAMES if n != "a_growing_list"])
def test_lanes_of_gradients_and_gradients_of_lanes(name):
    case, f = CASES[name], total(name)
    lanes = tree.map(lambda leaf: np.stack([leaf, np.asarray(leaf) * 1.25]), case.x)
    each = [mp.grad(f)(tree.map(lambda leaf, k=k: leaf[k], lanes)) for k in range(2)]
    want = tree.map(lambda *parts: np.stack(parts), *each)
    close(mp.vmap(mp.grad(f))(lanes), want, 1e-12)
    close(mp.grad(lambda lanes: np.sum(mp.vmap(f)(lanes)))(lanes), want, 1e-12)


@pytest.mark.parametrize("name", [n for n in NAMES if CASES[n].forward])
def test_forward_mode_follows_the_rule(name):
    case, f = CASES[name], total(name)
    direction = tree.map(lambda leaf: np.cos(np.arange(np.size(leaf))).reshape(np.shape(leaf)), case.x)
    value, tangent = mp.jvp(f, (case.x,), (direction,))
    close(value, f(case.x), 1e-12)
    close(tangent, sum(np.sum(a * b) for a, b in zip(tree.leaves(wanted(name)), tree.leaves(direction))))


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", NAMES)
def test_outside_of_derivatives_there_is_no_rule(name):
    """A call runs the function; a program has the text that the function gives, and nothing of a rule."""
    case = CASES[name]
    close(case.function(case.x), mp.jit(case.function)(case.x), 1e-12)
    text = mp.source(case.function, case.x, stage="core")
    assert "custom_jvp(" not in text and "custom_vjp(" not in text


def test_a_rule_costs_nothing_where_no_derivative_is_taken():
    def by_rule(x):
        return np.sum(log1pexp(x) * x)

    plain = log1pexp.__wrapped__

    def loss(x):
        return np.sum(plain(x) * x)

    texts = [mp.source(f, X, stage="cython").replace("by_rule", "loss") for f in (by_rule, loss)]
    assert texts[0] == texts[1] and texts[0].count("for ") == 1


def test_the_printed_derivative_is_the_users_rule():
    text = mp.source(mp.grad(lambda x: norm(x) ** 2), np.ones(3))
    assert "scale = 1.0 / sqrt if sqrt > 0.0 else" in text
    assert mp.source(mp.grad(scalar_root), 2.0).count("while ") == 1  # its iteration is not differentiated


# ---- second order -----------------------------------------------------------------------------------------


def test_rules_are_differentiated_by_their_own_rules():
    """The rule of cube says 3 square(x), that of square says 200 x, which nothing else gives."""
    derivatives = [cube]
    for _ in range(4):
        derivatives.append(mp.grad(derivatives[-1]))
    assert [float(f(2.0)) for f in derivatives] == [8.0, 12.0, 1200.0, 600.0, 0.0]
    assert mp.jit(mp.grad(mp.grad(cube)))(2.0) == 1200.0
    assert mp.jacfwd(mp.jacfwd(cube))(2.0) == mp.jacrev(mp.jacfwd(cube))(2.0) == mp.hessian(cube)(2.0) == 1200.0


def test_second_derivatives_in_reverse_mode():
    close(mp.grad(mp.grad(scalar_root))(2.0), -0.25 * 2.0**-1.5)
    close(mp.vmap(mp.grad(mp.grad(scalar_root)))(ABOVE), -0.25 * ABOVE**-1.5)
    close(mp.jacrev(mp.grad(lambda x: np.sum(root(x))))(ABOVE), np.diag(-0.25 * ABOVE**-1.5))


def test_forward_over_reverse_differentiates_the_two_rules():
    """The forward rule must not call the function then: that has no derivative in forward mode."""
    squared = mp.custom_vjp(lambda x: x * x)
    squared.defvjp(lambda x: (x * x, x), lambda x, bar: (6.0 * x * bar,))
    x = np.array([1.0, 2.0])
    close(mp.hessian(lambda x: np.sum(squared(x)))(x), 6.0 * np.eye(2))
    close(mp.jvp(mp.grad(squared), (3.0,), (2.0,)), (18.0, 12.0))


def test_vjp_and_linearize():
    value, pullback = mp.vjp(hypot, 3.0, 4.0)
    close((value, pullback(10.0)), (5.0, (6.0, 8.0)))
    close(mp.linearize(hypot, 3.0, 4.0)[1](1.0, 1.0), 1.4)
    close(mp.vjp(scalar_root, 4.0)[1](1.0), (0.25,))
    close(mp.grad(lambda x: mp.vjp(cube, x)[1](1.0)[0])(2.0), 1200.0)
    close(mp.grad(lambda x: mp.jvp(cube, (x,), (1.0,))[1])(2.0), 1200.0)


def test_what_nobody_reads_needs_no_forward_derivative():
    close(mp.jvp(lambda x: mp.lax.stop_gradient(scalar_root(x)) * x, (4.0,), (1.0,)), (8.0, 2.0))


# ---- lanes ------------------------------------------------------------------------------------------------


def test_a_result_that_is_one_for_all_lanes_has_a_cotangent_a_lane():
    both = mp.custom_vjp(lambda x, y: (y * 2, x * y))
    both.defvjp(lambda x, y: (both(x, y), (x, y)), lambda r, bars: (bars[1] * r[1], bars[0] * 2 + bars[1] * r[0]))
    lanes = np.arange(3.0)
    gradient = mp.grad(lambda y: sum(np.sum(a) for a in mp.vmap(both, (0, None))(lanes, y)))(2.0)
    assert gradient == 3 * 2 + lanes.sum()


def test_lanes_in_lanes():
    inner = mp.vmap(hypot, (0, None))
    gradient = mp.grad(lambda y: np.sum(mp.vmap(inner, (None, 0))(X, y)))(ABOVE)
    close(gradient, (ABOVE / np.hypot(X[:, None], ABOVE)).sum(axis=0))


def test_integers_and_options_among_lanes():
    power = ruled(lambda x, n: x**n, lambda p, t: (p[0] ** p[1], 100.0 * p[1] * t[0]))
    close(mp.vmap(mp.grad(power), (0, 0))(X, np.arange(4)), 100.0 * np.arange(4))


# ---- what may change --------------------------------------------------------------------------------------


def test_another_rule_is_noticed():
    f = mp.custom_jvp(lambda x: x * 2.0)
    f.defjvp(lambda p, t: (f(*p), 3.0 * t[0]))
    native, plain = mp.jit(mp.grad(lambda x: f(x))), mp.grad(f)
    assert (native(1.0), plain(1.0)) == (3.0, 3.0)

    def second(primals, tangents):
        return f(*primals), SCALE * tangents[0]

    f.defjvp(second)
    assert (native(1.0), plain(1.0)) == (5.0, 5.0)

    def third(primals, tangents):
        return f(*primals), 7.0 * tangents[0] + 0.0 * SCALE

    second.__code__ = third.__code__
    assert (native(1.0), plain(1.0)) == (7.0, 7.0)


SCALE = 5.0


def test_what_a_rule_captures_is_read_afresh(monkeypatch):
    scaled = ruled(lambda x: x * 2.0, lambda p, t: (p[0] * 2.0, FACTOR * t[0]))
    native = mp.jit(mp.grad(lambda x: np.sum(scaled(x))))
    np.testing.assert_array_equal(native(np.ones(2)), [1.0, 2.0])
    monkeypatch.setitem(globals(), "FACTOR", np.array([3.0, 4.0]))
    np.testing.assert_array_equal(native(np.ones(2)), [3.0, 4.0])
    FACTOR[0] = 9.0
    np.testing.assert_array_equal(native(np.ones(2)), [9.0, 4.0])


FACTOR = np.array([1.0, 2.0])


def test_residuals_may_be_numbers_of_python():
    f = mp.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, (x, 3.0, 2)), lambda kept, bar: (bar * kept[1] * kept[0] ** kept[2],))
    assert mp.grad(lambda x: f(x))(2.0) == 12.0


@pytest.mark.parametrize("integer", [int, np.int64])
def test_a_length_in_a_container_of_residuals_is_a_length(integer):
    f = mp.custom_vjp(lambda x: np.sum(x))
    f.defvjp(lambda x: (np.sum(x), (integer(len(x)),)), lambda kept, bar: (np.full(int(kept[0]), 2 * bar),))
    native = mp.jit(mp.grad(lambda x: f(x)))
    for n in (1, 3, 4):
        close(mp.grad(lambda x: f(x))(np.ones(n)), 2.0 * np.ones(n))
        close(native(np.ones(n)), 2.0 * np.ones(n))


def test_one_program_serves_all_sizes():
    zeros = mp.custom_vjp(lambda x: np.concatenate([x, x]))
    zeros.defvjp(lambda x: (zeros(x), x.shape[0]), lambda n, bar: (np.zeros(n) + bar[:n] + 2 * bar[n:],))
    native = mp.jit(mp.grad(lambda x: np.sum(zeros(x))))
    for n in (3, 4, 5, 9):
        close(native(np.ones(n)), 3.0 * np.ones(n))
    assert native.cache_info().currsize == 2


def test_many_layers_are_one_program():
    layer = mp.custom_vjp(lambda x, w: np.tanh(x @ w))

    def backward(residuals, bar):
        x, w, y = residuals
        inner = bar * (1 - y * y)
        return inner @ w.T, np.outer(x, inner)

    layer.defvjp(lambda x, w: (lambda y: (y, (x, w, y)))(layer(x, w)), backward)

    def plain(x, w):
        return np.tanh(x @ w)

    def net(step):
        def loss(weights, x):
            for w in weights:
                x = step(x, w)
            return np.sum(x)

        return loss

    weights = [np.eye(4) * (0.5 + 0.01 * k) for k in range(40)]
    close(mp.jit(mp.grad(net(layer)))(weights, X), mp.grad(net(plain))(weights, X), 1e-10)


def test_prints_come_as_the_rule_prints(capsys):
    def shown(x):
        print("value of", x)
        return x * 2.0

    f = mp.custom_jvp(shown)

    @f.defjvp
    def rule(primals, tangents):
        print("rule of", primals[0])
        return f(*primals), tangents[0]

    assert mp.jit(mp.grad(f))(1.5) == 1.0
    assert capsys.readouterr().out == "rule of 1.5\nvalue of 1.5\n"
    assert mp.jit(f)(1.5) == 3.0
    assert capsys.readouterr().out == "value of 1.5\n"


def test_rules_that_call_each_other_end():
    """Each derivative needs the rules one level deeper, and no more."""
    sine, cosine = mp.custom_jvp(lambda x: np.sin(x)), mp.custom_jvp(lambda x: np.cos(x))
    sine.defjvp(lambda p, t: (sine(*p), cosine(*p) * t[0]))
    cosine.defjvp(lambda p, t: (cosine(*p), -sine(*p) * t[0]))
    found = [sine]
    for _ in range(4):
        found.append(mp.grad(found[-1]))
    close([f(0.3) for f in found], [np.sin(0.3), np.cos(0.3), -np.sin(0.3), -np.cos(0.3), np.sin(0.3)], 1e-12)


def test_a_function_that_always_raises():
    failing = mp.custom_jvp(raises)
    failing.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(ValueError, match="never"):
        mp.grad(lambda x: failing(x=x) * 2.0)(1.0)


def raises(x):
    raise ValueError("never")


def test_it_is_a_function_to_python():
    assert pickle.loads(pickle.dumps(log1pexp)) is log1pexp and copy.deepcopy(log1pexp) is log1pexp
    assert log1pexp.__name__ == "log1pexp" and list(inspect.signature(hypot).parameters) == ["x", "y"]
    assert repr(log1pexp) == "<custom_jvp of log1pexp>"


def test_float32_and_complex():
    doubled = mp.custom_vjp(lambda x: x * np.float32(2))
    doubled.defvjp(lambda x: (doubled(x), x), lambda x, bar: (bar * x,))
    gradient = mp.jit(mp.grad(lambda x: np.sum(doubled(x))))(np.ones(3, np.float32))
    assert gradient.dtype == np.float32
    square = mp.custom_vjp(lambda z: z * z)
    square.defvjp(lambda z: (z * z, z), lambda z, bar: (2 * z * bar,))
    x = 0.75
    close(mp.grad(lambda x: np.abs(square(x + 1j)))(x), 2 * x)
