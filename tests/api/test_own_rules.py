"""`derivative_of`: rules that functions do not know of, in each transformation, and what is refused.

In: functions of NumPy and rules for them. Out: the derivatives that the functions have without the rules; programs that
are those of the rules; errors that name the place.
"""

from __future__ import annotations

import functools
import logging

import numpy as np
import pytest
from numpy.testing import assert_allclose

import metaphrase as mp
from metaphrase.api.plans.fingerprints import callable_fingerprint
from metaphrase.core.attached import rule_of
from metaphrase.source import SourceError
from metaphrase.tree_util import tree_leaves

X = np.array([0.3, 0.4, 0.5])


def wave(x, k):
    return np.sum(np.sin(x) * k)


def wave_backward(x, k, bar):
    sine, cosine = np.sin(x), np.cos(x)
    return cosine * k * bar, np.sum(sine) * bar


def grows(x):
    s = 0.0
    while s < 3:
        s = s + wave(x, s + 1) + 1
    return s


def branches(x, p):
    if p > 0:
        return wave(x, p)
    return wave(x, 2 * p) ** 2


def scanned(x):
    return mp.lax.scan(lambda carry, _: (carry + wave(x, carry), carry), 1.0, np.arange(4))[0]


def of_squares(x):
    return wave(x * x, 2.0)


def elements(x):
    return np.stack([wave(x, 1.0), of_squares(x)])


USES = {
    "grad": lambda: mp.grad(wave, (0, 1))(X, 2.0),
    "jit": lambda: mp.jit(mp.grad(grows))(X),
    "while": lambda: mp.grad(grows)(X),
    "branch": lambda: [mp.grad(branches, (0, 1))(X, p) for p in (1.0, -1.0)],
    "scan": lambda: mp.grad(scanned)(X),
    "checkpoint": lambda: mp.grad(lambda x: mp.checkpoint(wave)(x, 2.0) ** 2)(X),
    "vmap of grad": lambda: mp.vmap(mp.grad(wave, (0, 1)), (0, None))(np.stack([X, 2 * X]), 2.0),
    "grad of vmap": lambda: mp.grad(lambda x: mp.vmap(wave, (0, 0))(np.stack([x, 2 * x]), X[:2]).sum())(X),
    "jacrev": lambda: mp.jacrev(elements)(X),
    "jacfwd": lambda: mp.jacfwd(elements)(X),
    "forward over reverse": lambda: mp.hessian(of_squares)(X),
    "reverse over reverse": lambda: mp.jacrev(mp.jacrev(of_squares))(X),
    "reverse over forward": lambda: mp.jacrev(mp.jacfwd(of_squares))(X),
    "forward over forward": lambda: mp.jacfwd(mp.jacfwd(of_squares))(X),
    "third": lambda: mp.jacrev(mp.jacfwd(mp.grad(of_squares)))(X),
    "jvp": lambda: mp.jvp(wave, (X, 2.0), (np.ones(3), 1.0)),
    "linearize": lambda: mp.linearize(of_squares, X)[1](np.ones(3)),
    "jet": lambda: mp.jet(of_squares, (X,), ((np.ones(3), np.zeros(3)),)),
    "other types": lambda: [
        mp.grad(wave)(np.ones(s, t), t(2)) for s in ((), 1, 0, (2, 2)) for t in (float, np.float32)
    ],
}


@pytest.fixture
def ruled():
    """`wave` with its rule, for one test."""
    mp.derivative_of(wave)(wave_backward)
    yield
    mp.derivative_of(wave)(None)


@pytest.mark.turns(3)
@pytest.mark.parametrize("use", USES)
def test_a_right_rule_gives_what_the_function_has_without_it(use):
    want = USES[use]()
    mp.derivative_of(wave)(wave_backward)
    try:
        have = USES[use]()
    finally:
        mp.derivative_of(wave)(None)
    for a, b in zip(tree_leaves(have), tree_leaves(want), strict=True):
        assert_allclose(a, b, rtol=1e-5 if np.asarray(b).dtype == np.float32 else 1e-11)


def test_the_program_is_the_rule_and_without_a_derivative_there_is_no_trace_of_it(ruled):
    text = mp.source(mp.grad(wave), X, 2.0)
    assert "cosine = np.cos(x)" in text and "wave" not in text.replace("grad_wave", "")
    plain = mp.source(wave, X, 2.0)
    mp.derivative_of(wave)(None)
    assert mp.source(wave, X, 2.0) == plain and rule_of(wave) is None


def test_a_function_that_is_compiled_already_gets_the_rule():
    @mp.jit
    def slope(x):
        return mp.grad(doubled)(x)

    def doubled(x):
        return 2.0 * x

    assert slope(3.0) == 2.0
    mp.derivative_of(doubled, check=False)(lambda x, bar: (7.0 * bar,))
    assert slope(3.0) == 7.0 and mp.grad(doubled)(3.0) == 7.0 and doubled(3.0) == 6.0
    mp.derivative_of(doubled, check=False)(lambda x, bar: (8.0 * bar,))
    assert slope(3.0) == 8.0 and mp.grad(doubled)(3.0) == 8.0
    mp.derivative_of(doubled)(None)
    assert slope(3.0) == 2.0 and mp.grad(doubled)(3.0) == 2.0


def test_a_function_without_source_gets_the_rule_too():
    names: dict = {}
    exec("def tripled(x):\n    return 3.0 * x", names)
    tripled = names["tripled"]
    slope = mp.jit(lambda x: mp.grad(tripled)(x))
    assert slope(2.0) == 3.0
    mp.derivative_of(tripled, check=False)(lambda x, bar: (7.0 * bar,))
    assert slope(2.0) == 7.0


def test_residuals_of_a_forward_rule():
    def root(a):
        x = a
        for _ in range(30):
            x = 0.5 * (x + a / x)
        return x

    def root_forward(a):
        x = np.sqrt(a)
        return x, x

    @mp.derivative_of(root, forward=root_forward, samples=[(2.0,), (9.0,)])
    def root_backward(x, bar):
        return (bar / (2 * x),)

    assert_allclose(mp.grad(root)(4.0), 0.25)
    assert "for" not in mp.source(mp.value_and_grad(root), 4.0)
    assert_allclose(mp.grad(mp.grad(root))(4.0), -1 / 32)
    assert_allclose(mp.jvp(root, (4.0,), (1.0,))[1], 0.25)  # of the function itself


def test_some_arguments():
    def scaled(x, k):
        return np.sum(x) * k

    @mp.derivative_of(scaled, argnums=0)
    def scaled_backward(x, k, bar):
        return (np.full(x.shape, k * bar),)

    assert_allclose(mp.grad(scaled)(X, 2.0), [2.0, 2.0, 2.0])
    with pytest.raises(SourceError, match=r"the derivative reaches `k`.*\[custom-capture\]"):
        mp.grad(scaled, 1)(X, 2.0)


def test_keywords_defaults_and_any_number_of_arguments():
    def keyed(x, k=2.0, *, power=1.0):
        return np.sum(x * x) * k * power

    @mp.derivative_of(keyed)
    def keyed_backward(x, k, power, bar):
        total = np.sum(x * x)
        return 2 * x * k * power * bar, total * power * bar, total * k * bar

    def total(*xs):
        return sum(np.sum(x * x) for x in xs)

    @mp.derivative_of(total)
    def total_backward(*args):
        *xs, bar = args
        return tuple(2 * x * bar for x in xs)

    assert_allclose(mp.grad(keyed)(X), 4 * X)
    assert_allclose(mp.grad(lambda x: keyed(k=3.0, x=x))(X), 6 * X)
    assert_allclose(mp.grad(lambda p: keyed(X, power=p))(2.0), 2 * np.sum(X * X))
    assert_allclose(mp.grad(total, (0, 1))(X, 2 * X), (2 * X, 4 * X))


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def energy(self, x):
        return np.sum(self.stiffness * x**2)


def test_methods_closures_and_jitted_functions():
    @mp.derivative_of(Spring.energy)
    def energy_backward(spring, x, bar):
        return None, 2 * spring.stiffness * x * bar

    spring = Spring(np.array([1.0, 2.0, 3.0]))
    slope = mp.jit(mp.grad(spring.energy))
    assert_allclose(slope(X), 2 * spring.stiffness * X)
    spring.stiffness = np.ones(3)
    assert_allclose(slope(X), 2 * X)
    assert_allclose(mp.grad(lambda x: spring.energy(x * 2))(X), 8 * X)

    def made(a):
        def square(x):
            return np.sum(a * x**2)

        mp.derivative_of(square)(lambda x, bar: (2 * a * x * bar,))
        return square

    two, three = made(2.0), made(3.0)
    assert_allclose(mp.grad(two)(X), 4 * X)
    assert_allclose(mp.grad(three)(X), 6 * X)

    @mp.jit
    def sine(x):
        return np.sin(x)

    mp.derivative_of(sine)(lambda x, bar: (np.cos(x) * bar,))
    assert_allclose(mp.grad(sine)(1.0), np.cos(1.0))
    assert rule_of(sine.jitted.fun) is not None


def test_integers_recursion_and_a_rule_that_calls_its_function():
    def power(x, n):
        return x if n == 1 else power(x, n - 1) * x

    @mp.derivative_of(power)
    def power_backward(x, n, bar):
        return n * power(x, n - 1) * bar, None

    assert_allclose(mp.grad(power)(2.0, 5), 80.0)

    def growth(x):
        return np.exp(x)

    mp.derivative_of(growth)(lambda x, bar: (growth(x) * bar,))
    for slope in (mp.grad(mp.grad(mp.grad(growth))), mp.jacfwd(mp.grad(growth)), mp.grad(mp.jacfwd(growth))):
        assert_allclose(slope(1.0), np.e)


def test_wrappers_and_copies_of_a_function_have_no_rule():
    def sine(x):
        return np.sin(x)

    mp.derivative_of(sine, check=False)(lambda x, bar: (7.0 * bar,))

    @functools.wraps(sine)
    def other(x):
        return np.cos(x)

    assert mp.grad(sine)(1.0) == 7.0
    assert_allclose(mp.grad(other)(1.0), -np.sin(1.0))


# ---- the check ---------------------------------------------------------------------------------------------------


def test_a_wrong_cotangent_is_named_with_its_place():
    def model(p, x):
        return p["w"] @ x + p["b"]

    @mp.derivative_of(model, samples=({"w": np.eye(2), "b": np.ones(2)}, np.array([1.0, 2.0])))
    def model_backward(p, x, bar):
        wrong = np.outer(bar, x)
        wrong[1, 0] = 5.0
        return {"w": wrong, "b": bar}, p["w"].T @ bar

    with pytest.raises(SourceError) as caught:
        mp.grad(lambda p, x: np.sum(model(p, x)))({"w": np.ones((3, 3)), "b": np.ones(3)}, X)
    text = str(caught.value)
    assert "the rule model_backward gives 5.0 for the cotangent of p['w'][1, 0]" in text
    assert "and the derivative of model is" in text and "x=[1.0, 2.0]" in text and "[wrong-rule]" in text
    assert f"{__file__}:" in text


def test_a_wrong_result_and_wrong_numbers_at_drawn_arguments():
    def cube(x):
        return x**3

    mp.derivative_of(cube, forward=lambda x: (x * x, x))(lambda x, bar: (3 * x * x * bar,))
    with pytest.raises(SourceError, match="gives .* for the result at x=.*, and cube gives"):
        mp.grad(cube)(2.0)
    mp.derivative_of(cube)(lambda x, bar: (2 * x * bar,))
    for _ in range(2):  # each time, not only the first
        with pytest.raises(SourceError, match="for the cotangent of x at x=2.0, and the derivative of cube is"):
            mp.grad(cube)(2.0)
    mp.derivative_of(cube, rtol=1.0)(lambda x, bar: (2.9 * x * x * bar,))
    assert_allclose(mp.grad(cube)(2.0), 11.6)
    mp.derivative_of(cube, check=False)(lambda x, bar: (bar,))
    assert mp.grad(cube)(2.0) == 1.0


def test_where_the_derivative_is_not_finite_the_rule_may_say_what_it_likes(caplog):
    def length(x):
        return np.sqrt(np.sum(x * x))

    @mp.derivative_of(length, samples=[(np.zeros(2),), (np.array([3.0, 4.0]),)])
    def length_backward(x, bar):
        size = np.sqrt(np.sum(x * x))
        return (np.where(size > 0, x / np.where(size > 0, size, 1.0), 0.0) * bar,)

    with caplog.at_level(logging.WARNING, "metaphrase"):
        assert_allclose(mp.grad(length)(np.zeros(2)), [0.0, 0.0])
        assert not caplog.text
        mp.derivative_of(length, samples=(np.zeros(2),))(length_backward)
        assert_allclose(mp.grad(length)(np.zeros(2)), [0.0, 0.0])
    assert "could not be checked (give samples): its derivative is nowhere finite" in caplog.text


def test_a_check_at_drawn_arguments_does_not_print(caplog, capsys):
    def shown(x):
        print("x is", x)
        return x * x

    mp.derivative_of(shown)(lambda x, bar: (2 * x * bar,))
    with caplog.at_level(logging.WARNING, "metaphrase"):
        assert mp.value_and_grad(shown)(2.0) == (4.0, 4.0)
    assert capsys.readouterr().out == "x is 2.0\n" and "it prints, or calls Python code" in caplog.text


def test_what_cannot_be_compared_at_drawn_arguments_is_logged(caplog):
    def picked(x, i):
        return x[i] ** 2

    @mp.derivative_of(picked)
    def picked_backward(x, i, bar):
        x_bar = np.zeros_like(x)
        x_bar[i] = 2 * x[i] * bar
        return x_bar, None

    with caplog.at_level(logging.WARNING, "metaphrase"):
        assert_allclose(mp.grad(picked)(X[:1], np.int64(0)), [0.6])
    assert "could not be checked at drawn arguments (give samples)" in caplog.text


SCALE = 2.0


def scaled_sum(x):
    return np.sum(x) * SCALE


def test_a_rule_is_compared_again_when_a_number_that_the_function_captures_has_changed(monkeypatch):
    mp.derivative_of(scaled_sum)(lambda x, bar: (np.full(x.shape, 2.0 * bar),))
    slope = mp.jit(mp.grad(scaled_sum))
    assert_allclose(slope(X), [2.0, 2.0, 2.0])
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    with pytest.raises(SourceError, match="and the derivative of scaled_sum is"):
        slope(X)


def test_a_rule_is_checked_for_each_text_and_bool_that_it_is_given():
    def wave_of(x, kind):
        return np.sin(x) if kind == "sine" else np.cos(x)

    mp.derivative_of(wave_of)(lambda x, kind, bar: (np.cos(x) * bar, None))
    assert_allclose(mp.grad(wave_of)(1.0, "sine"), np.cos(1.0))
    with pytest.raises(SourceError, match="for the cotangent of x at x=1.0, kind='cosine'"):
        mp.grad(wave_of)(1.0, "cosine")


def test_the_fingerprint_of_a_function_has_the_rule_which_may_hold_the_function():
    def growth(x):
        return np.exp(x)

    plain = callable_fingerprint(growth)
    mp.derivative_of(growth)(lambda x, bar: (growth(x) * bar,))
    ruled = callable_fingerprint(growth)
    mp.derivative_of(growth)(lambda x, bar: (np.exp(x) * bar,))
    assert len({plain, ruled, callable_fingerprint(growth)}) == 3
    mp.derivative_of(growth)(None)
    assert callable_fingerprint(growth) == plain


def test_a_change_of_the_source_is_logged(caplog):
    def cube(x):
        return x**3

    with caplog.at_level(logging.WARNING, "metaphrase"):
        mp.derivative_of(cube, source="0" * 16)(lambda x, bar: (3 * x * x * bar,))
        assert_allclose(mp.grad(cube)(2.0), 12.0)
        assert "cube has changed since its derivative function was written; at the sample points it is right" in (
            caplog.text
        )
        mp.derivative_of(cube, source="0" * 16)(lambda x, bar: (2 * x * x * bar,))
        with pytest.raises(SourceError, match=r"cube has changed since the rule was written"):
            mp.grad(cube)(2.0)


def test_another_rule_takes_the_place_of_the_first_and_says_so(caplog):
    def first_backward(x, bar):
        return (2 * x * bar,)

    def second_backward(x, bar):
        return (x * bar + bar * x,)

    def square(x):
        return x * x

    with caplog.at_level(logging.WARNING, "metaphrase"):
        mp.derivative_of(square)(first_backward)
        mp.derivative_of(square)(first_backward)
        assert not caplog.text
        mp.derivative_of(square)(second_backward)
    assert "square had the derivative" in caplog.text and "second_backward replaces" in caplog.text
    assert rule_of(square).backward is second_backward


# ---- what is refused ---------------------------------------------------------------------------------------------


def writes(x):
    x[0] = 3.0
    return np.sum(x * x)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (np.sin, "derivative_of(sin), which is no function written in Python"),
        (mp.grad(wave), "derivative_of(grad_wave), which is a transformed function already"),
        (mp.custom_vjp(wave), "derivative_of(wave), which has derivative rules already"),
        (mp.nn.relu, "derivative_of(metaphrase.nn.relu), which is no function of yours"),
        (functools.partial(wave, X), "which is no function written in Python"),
    ],
)
def test_only_functions_of_the_users_have_rules(function, told):
    with pytest.raises(TypeError) as caught:
        mp.derivative_of(function)(wave_backward)
    assert told in str(caught.value) and "[own-rule]" in str(caught.value)


def test_arguments_that_do_not_fit():
    with pytest.raises(TypeError, match=r"derivative_of\(wave\) of 3, which is no function"):
        mp.derivative_of(wave)(3)
    with pytest.raises(SourceError, match=r"argnums is 4.*\[argnums\]"):
        mp.derivative_of(wave, argnums=4)
    with pytest.raises(SourceError, match="samples of wave: too many positional arguments"):
        mp.derivative_of(wave, samples=(1.0, 2.0, 3.0))
    with pytest.raises(SourceError, match="samples of wave: 3.0 is no tuple of arguments"):
        mp.derivative_of(wave, samples=3.0)


def test_a_rule_in_translated_code_and_a_function_that_stores_into_its_arguments():
    @mp.jit
    def inside(x):
        mp.derivative_of(wave)(wave_backward)
        return x

    with pytest.raises(SourceError, match="in a function that is being translated"):
        inside(1.0)
    assert rule_of(wave) is None
    mp.derivative_of(writes)(lambda x, bar: (2 * x * bar,))
    with pytest.raises(SourceError, match=r"of writes, which writes to x.*\[transformed-write\]"):
        mp.grad(writes)(X.copy())


def test_cotangents_that_do_not_fit():
    def both(p):
        return p["a"] * p["b"]

    for backward, told in (
        (lambda p, bar: p["b"], "must return a tuple with one cotangent for each of the arguments"),
        (lambda p, bar: ({"a": p["b"]},), "the cotangent of p that the rule function returns is {'a': *}"),
        (
            lambda p, bar: ({"a": np.ones(3), "b": None},),
            "the cotangent of p['a'] that the rule function returns is f64[3]",
        ),
    ):
        mp.derivative_of(both)(backward)
        with pytest.raises(SourceError) as caught:
            mp.grad(both)({"a": 1.0, "b": 2.0})
        assert told in str(caught.value)
