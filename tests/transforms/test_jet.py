"""Taylor mode: against jvp programs in one another, for every primitive; against closed forms and nested derivatives.

In: samples of primitives, and functions. Out: the same derivatives along the same curves.
"""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

import metaphrase as mp
import metaphrase.ops  # noqa: F401  (registers the primitives)
from metaphrase import lax
from metaphrase.astpasses.transforms.jet import jet
from metaphrase.astpasses.transforms.jvp import jvp
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import has_tangent
from metaphrase.ops.samples import SAMPLES
from metaphrase.source import DTypeError, ShapeError, UnsupportedError

from ..ops.rule_checks import differentiable, program

ORDER = 3


def nested(function, args, curve):
    """The derivatives by jvp programs in one another. A value is (number, order): its derivative is of one more."""
    params = [(k, 0) for k in range(len(args))]
    results = [(k, 0) for k in range(len(function.results))]
    for _ in range(ORDER):
        marks = [k in curve for k, _ in params]
        has = [has_tangent(r.type) for r in function.results]
        function, _ = jvp(function, marks, has)
        params += [(k, n + 1) for (k, n), m in zip(params, marks) if m]
        results += [(k, n + 1) for (k, n), m in zip(results, has) if m]
    outs = evaluate(function, *(args[k] if n == 0 else curve[k][n - 1] for k, n in params))
    return dict(zip(results, outs))


def moved(value, seed):
    generator = np.random.default_rng(seed)
    made = generator.uniform(-1, 1, np.shape(value))
    if np.asarray(value).dtype.kind == "c":
        made = made + 1j * generator.uniform(-1, 1, np.shape(value))
    return np.asarray(made).astype(np.asarray(value).dtype)[()]


def samples(name):
    return [s for s in SAMPLES[name] if differentiable(s) and all(np.size(a) for a in s.args)][:2]


def has_jvp(name):
    try:
        return any(
            jvp(program(REGISTRY[name], s), [k in differentiable(s) for k in range(len(s.args))]) for s in samples(name)
        )
    except UnsupportedError:
        return False


NAMES = [name for name in sorted(REGISTRY) if samples(name) and has_jvp(name)]


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", NAMES)
def test_every_primitive(name):
    for sample in samples(name):
        along = differentiable(sample)
        for places in {tuple(along), tuple(along[:1]), tuple(along[-1:])}:
            function = program(REGISTRY[name], sample)
            curve = {k: [moved(sample.args[k], 7 * k + n) for n in range(ORDER)] for k in places}
            marks = [k in places for k in range(len(sample.args))]
            has = [has_tangent(r.type) for r in function.results]
            made, _ = jet(function, marks, ORDER, has)
            check(made)
            given = [curve[k][n] for n in range(ORDER) for k in places]
            found = evaluate(made, *sample.args, *given)
            want = nested(function, sample.args, curve)
            smooth = [k for k, m in enumerate(has) if m]
            count = len(has)
            for k in range(count):
                np.testing.assert_allclose(found[k], want[k, 0], rtol=1e-12)
            for n in range(ORDER):
                for j, k in enumerate(smooth):
                    got = found[count + n * len(smooth) + j]
                    np.testing.assert_allclose(got, want[k, n + 1], rtol=1e-8, atol=1e-8, err_msg=f"order {n + 1}")


def test_most_primitives_are_there():
    assert len(NAMES) > 70 and {"sort", "cumprod", "scatter", "loop", "cond", "eigh", "dot_general"} < set(NAMES)


# ---- functions ------------------------------------------------------------------------------------------

X = np.array([0.3, 0.7, 1.2])


def loop(x):
    y = x * 0
    for i in range(3):
        y = np.sin(y + x) * x[i]
    return y


def until(x):
    s = x
    while np.max(s) < 5:
        s = s * s + x
    return s


def branches(x):
    if x[0] > 0.1:
        return np.tanh(x)
    return x


def stored(x):
    y = np.zeros(5)
    y[[0, 2, 4]] = x**2
    y[1:4] += np.exp(x)
    return y


def appended(x):
    rows = []
    for k in range(3):
        rows.append(x[k] ** (k + 1))
    return np.array(rows)


@mp.custom_jvp
def ruled(x):
    return np.sin(x)


@ruled.defjvp
def ruled_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return ruled(x), np.cos(x) * x_dot


FUNCTIONS = {
    "elementary": lambda x: np.exp(np.sin(x)) / (1 + np.log1p(x**2)),
    "powers": lambda x: x**2.5 + x**x + np.sqrt(x) - x**3,
    "inverses": lambda x: np.arctan(x) + np.arcsin(x / 2) + np.arctan2(x, x[::-1]),
    "products": lambda x: np.outer(x, x) @ x * np.sum(x),
    "solve": lambda x: np.linalg.solve(np.eye(3) + np.outer(x, x), x),
    "cholesky": lambda x: np.linalg.cholesky(np.eye(3) + np.outer(x, x)),
    "eigenvalues": lambda x: np.linalg.eigvalsh(np.diag([1.0, 2, 4]) + np.outer(x, x)),
    "where": lambda x: np.where(x > 0.5, np.exp(x), x**3),
    "extremes": lambda x: np.maximum(x, x**2) + np.max(x * x),
    "sorted": lambda x: np.sort(-x * x),
    "cumprod": lambda x: np.cumprod(x),
    "complex": lambda x: np.abs(np.exp(1j * x) + x),
    "spectrum": lambda x: np.abs(np.fft.fft(x**2)) ** 2,
    "loop": loop,
    "until": until,
    "branches": branches,
    "stored": stored,
    "appended": appended,
    "scan": lambda x: lax.scan(lambda c, v: (np.sin(c) * v, c + v), 0.5, x)[1],
    "a rule": lambda x: ruled(x) * x,
    "batched": mp.vmap(lambda v: np.exp(v) * v),
    "a gradient": mp.grad(lambda x: np.sum(np.sin(x) * x)),
    "stopped": lambda x: x * lax.stop_gradient(x**2),
}


def along(f, order):
    """The derivatives of f by a number, one jvp inside another."""
    found = [f]
    for _ in range(order):
        found.append((lambda g: lambda t: mp.jvp(g, (t,), (1.0,))[1])(found[-1]))
    return [g(0.0) for g in found]


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    f = FUNCTIONS[name]
    a, b, c = np.cos(X), np.array([0.5, -1.0, 0.2]), np.array([0.1, 0.4, -0.3])
    want = along(lambda t: f(X + t * a + t**2 / 2 * b + t**3 / 6 * c), 3)
    y, series = mp.jet(f, (X,), ((a, b, c),))
    for got, expected in zip((y, *series), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-8)
    jitted = mp.jit(lambda x, a, b, c: mp.jet(f, (x,), ((a, b, c),)))(X, a, b, c)
    np.testing.assert_allclose(jitted[1][2], want[3], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("order", [1, 5, 9])
def test_closed_forms(order):
    t = (0.4, (1.0, *[0.0] * (order - 1)))
    value, series = mp.jet(np.exp, (t[0],), (t[1],))
    np.testing.assert_allclose([value, *series], [np.exp(0.4)] * (order + 1))
    _, series = mp.jet(lambda x: 1 / (1 - x), (t[0],), (t[1],))
    np.testing.assert_allclose(series, [factorial(k) / 0.6 ** (k + 1) for k in range(1, order + 1)])
    _, series = mp.jet(np.sin, (t[0],), (t[1],))
    np.testing.assert_allclose(series, [np.sin(0.4 + k * np.pi / 2) for k in range(1, order + 1)])
    _, series = mp.jet(np.log, (t[0],), (t[1],), factorial_scaled=False)
    np.testing.assert_allclose(series, [-((-1 / 0.4) ** k) / k for k in range(1, order + 1)])


def test_the_curve_may_bend():
    """exp(t + t ** 2), whose derivatives at 0 are y_(k+1) = y_k + 2 k y_(k-1)."""
    want = [1.0, 1.0]
    for k in range(1, 6):
        want.append(want[k] + 2 * k * want[k - 1])
    _, series = mp.jet(np.exp, (0.0,), ((1.0, 2.0, 0.0, 0.0, 0.0, 0.0),))
    np.testing.assert_allclose(series, want[1:])
    _, plain = mp.jet(np.exp, (0.0,), ((1.0, 1.0, 0.0, 0.0, 0.0, 0.0),), factorial_scaled=False)
    np.testing.assert_allclose(plain, [w / factorial(k) for k, w in enumerate(want)][1:])


def test_solutions_of_differential_equations():
    """y' = y ** 2 from y(0) = 1 is 1 / (1 - t): the coefficients, one order after the other."""
    curve = [1.0]
    for k in range(5):
        _, found = mp.jet(lambda y: y**2, (1.0,), (curve,))
        curve.append(found[k])
    np.testing.assert_allclose(curve, [factorial(k) for k in range(1, 7)])


def test_trees_integers_and_several_arguments():
    def f(p, y, n):
        return {"a": p["u"] * y, "b": (p["u"].sum() ** n, np.arange(2)), "c": "text"}

    value, series = mp.jet(f, ({"u": X}, 2.0, 3), ([{"u": X}, {"u": 0 * X}], [1.0, 0.0], [False, False]))
    np.testing.assert_allclose(series["a"], [X * 3, 2 * X])
    s = X.sum()
    np.testing.assert_allclose(series["b"][0], [3 * s**3, 6 * s**3])
    assert series["b"][1][0].dtype == bool and value["c"] == "text" and value["b"][1].tolist() == [0, 1]


def test_under_other_transformations():
    def third(x):
        return mp.jet(lambda y: np.sin(y) * y, (x,), ((1.0, 0.0, 0.0),))[1][2]

    want = along(lambda t: np.sin(X + t) * (X + t), 4)
    np.testing.assert_allclose(mp.vmap(third)(X), want[3])
    np.testing.assert_allclose(mp.vmap(mp.grad(third))(X), want[4])
    np.testing.assert_allclose(mp.jit(mp.vmap(lambda x: mp.jvp(third, (x,), (1.0,))[1]))(X), want[4])
    twice = mp.jet(lambda x: mp.jet(np.exp, (x,), ((1.0, 0.0),))[1][1], (0.4,), ((1.0, 0.0),))[1]
    np.testing.assert_allclose(twice, [np.exp(0.4)] * 2)
    for n in (3, 5, 9):
        x = np.linspace(0.1, 1, n)
        np.testing.assert_allclose(mp.jit(lambda x: mp.jet(np.exp, (x,), ((x * 0 + 1, x * 0),))[1])(x), [np.exp(x)] * 2)


def test_work_grows_as_a_power_of_the_order():
    def size(f, order):
        series = ((1.0, *[0.0] * (order - 1)),)
        return len(mp.source(lambda x: mp.jet(f, (x,), series)[1], 0.3, stage="numpy").splitlines())

    for f in (lambda x: np.tanh(np.sin(x)), lambda x: np.sqrt(1 / (1 + x)), lambda x: x**2.5):
        four, eight = size(f, 4), size(f, 8)
        assert eight < 8 * four  # nested, 16 times


def test_long_programs():
    def f(x):
        for k in [0.01 * k for k in range(200)]:
            x = np.sin(x) + k
        return x

    got = mp.jet(f, (0.3,), ((1.0, 0.0, 0.0),))[1]
    want = along(lambda t: f(0.3 + t), 1)
    np.testing.assert_allclose(got[0], want[1], rtol=1e-9, atol=1e-30)


def test_what_is_refused():
    with pytest.raises(DTypeError, match="the primals are a float"):
        mp.jet(np.sin, 0.5, ((1.0,),))
    with pytest.raises(ShapeError, match="equally many derivatives"):
        mp.jet(lambda x, y: x * y, (0.5, 0.5), ((1.0,), (1.0, 0.0)))
    with pytest.raises(ShapeError, match="derivative 2 of x is f64.2., and x is f64.3."):
        mp.jet(lambda x: x, (X,), ((X, np.ones(2)),))
    reverse = mp.custom_vjp(lambda x: np.sin(x))
    reverse.defvjp(lambda x: (np.sin(x), x), lambda x, bar: (bar * np.cos(x),))
    with pytest.raises(UnsupportedError, match="forward-mode differentiation"):
        mp.jet(lambda x: reverse(x), (X,), ((X, X),))


def test_a_rule_with_a_branch_in_it():
    """The cofactors in the derivative of `det` are a choice between two programs."""

    def determinant(x):
        return np.linalg.det(np.stack([np.stack([np.sin(x[0] * x[1]), x[0]]), np.stack([x[1], x[0] * x[1] + 2.0])]))

    x, d = np.array([0.4, 1.1]), np.array([0.3, -0.7])
    for function in (determinant, lambda x: mp.grad(determinant)(x) @ d):
        value, (first, second) = mp.jet(function, (x,), ([d, np.zeros(2)],))
        at = [function(x + k * 1e-3 * d) for k in (-1, 0, 1)]
        assert value == pytest.approx(at[1], rel=1e-14) and first == pytest.approx((at[2] - at[0]) / 2e-3, rel=1e-5)
        assert second == pytest.approx((at[2] - 2 * at[1] + at[0]) / 1e-6, rel=1e-5)
