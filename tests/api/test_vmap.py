"""vmap: axes in and out, branches and loops by lane, nesting with derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp

RNG = np.random.default_rng(1)


def loss(params, x, y):
    return np.mean((x @ params["w"] + params["b"] - y) ** 2)


def escape(re, im):
    x = y = 0.0
    count = 0
    while x * x + y * y < 4.0 and count < 50:
        x, y = x * x - y * y + re, 2 * x * y + im
        count += 1
    return count


def signed(x):
    if x > 0:
        return np.sqrt(x)
    return -x


@pytest.fixture(params=["numpy", "native"])
def compiled(request):
    return mp.jit if request.param == "native" else lambda f: f


def test_equals_a_loop(compiled):
    x = RNG.normal(size=(5, 3))
    np.testing.assert_allclose(
        compiled(mp.vmap(lambda v: v / np.sqrt(v @ v)))(x), x / np.linalg.norm(x, axis=1)[:, None]
    )


def test_axes(compiled):
    a, b = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(4, 2))

    def f(a, b):
        return a.sum(0) * 2, np.outer(b, b)

    first, second = compiled(mp.vmap(f, in_axes=(2, 0), out_axes=(0, -1)))(a, b)
    np.testing.assert_allclose(first, 2 * a.sum(0).T)
    np.testing.assert_allclose(second, np.einsum("ni,nj->ijn", b, b))


def test_axes_as_trees(compiled):
    params, x, y = {"w": RNG.normal(size=(5, 3)), "b": 0.5}, RNG.normal(size=(5, 2, 3)), RNG.normal(size=2)
    got = compiled(mp.vmap(loss, in_axes=({"w": 0, "b": None}, 0, None)))(params, x, y)
    want = [loss({"w": w, "b": 0.5}, row, y) for w, row in zip(params["w"], x)]
    np.testing.assert_allclose(got, want)
    out = mp.vmap(lambda v: {"same": 3.0, "own": v}, out_axes={"same": None, "own": 0})(np.arange(3.0))
    assert out["same"] == 3.0 and out["own"].shape == (3,)


def test_unbatched_results_are_repeated():
    got = mp.vmap(lambda x: (x, np.ones(2)))(np.arange(3.0))
    np.testing.assert_array_equal(got[1], np.ones((3, 2)))


def test_each_lane_takes_its_own_branch(compiled):
    x = np.array([-4.0, 4.0, 9.0, -1.0])
    np.testing.assert_allclose(compiled(mp.vmap(signed))(x), [4, 2, 3, 1])
    np.testing.assert_allclose(compiled(mp.vmap(mp.grad(signed)))(x), [-1, 0.25, 1 / 6, -1])


def test_each_lane_runs_its_own_trips(compiled):
    re, im = RNG.uniform(-2, 1, size=20), RNG.uniform(-1, 1, size=20)
    np.testing.assert_array_equal(compiled(mp.vmap(escape))(re, im), [escape(a, b) for a, b in zip(re, im)])


def test_nested_vmap(compiled):
    re, im = np.linspace(-2, 1, 7), np.linspace(-1, 1, 5)
    got = compiled(mp.vmap(mp.vmap(escape, (0, None)), (None, 0)))(re, im)
    np.testing.assert_array_equal(got, [[escape(a, b) for a in re] for b in im])


def test_per_example_gradients(compiled):
    params, x, y = {"w": RNG.normal(size=3), "b": 0.5}, RNG.normal(size=(4, 3)), RNG.normal(size=4)
    got = compiled(mp.vmap(mp.grad(loss), (None, 0, 0)))(params, x, y)
    for k in range(4):
        one = mp.grad(loss)(params, x[k], y[k])
        np.testing.assert_allclose(got["w"][k], one["w"])
        np.testing.assert_allclose(got["b"][k], one["b"])


def test_gradient_of_a_batched_loss(compiled):
    params, x, y = {"w": RNG.normal(size=3), "b": 0.5}, RNG.normal(size=(4, 3)), RNG.normal(size=4)

    def total(params):
        return np.mean(mp.vmap(loss, (None, 0, 0))(params, x, y))

    got = compiled(mp.grad(total))(params)
    want = mp.vmap(mp.grad(loss), (None, 0, 0))(params, x, y)
    np.testing.assert_allclose(got["w"], want["w"].mean(0))


def test_keyword_arguments_are_batched_along_axis_0():
    np.testing.assert_array_equal(mp.vmap(lambda x, y: x + y)(np.arange(3), y=np.arange(3)), [0, 2, 4])


def test_axis_size():
    np.testing.assert_array_equal(mp.vmap(lambda x: x, in_axes=None, axis_size=3)(2.0), [2, 2, 2])


def test_empty_batch():
    assert mp.vmap(lambda x: x * 2)(np.zeros((0, 3))).shape == (0, 3)


def damped(x, rate=0.5, *, shift=1.0):
    return np.sum(x) * rate + shift


def test_defaults_that_nobody_gave_are_no_arguments(compiled):
    x = RNG.normal(size=(4, 3))
    want = x.sum(1) * 0.5 + 1.0
    np.testing.assert_allclose(compiled(mp.vmap(damped, in_axes=(0,)))(x), want)
    np.testing.assert_allclose(compiled(mp.vmap(damped))(x), want)
    np.testing.assert_allclose(compiled(mp.vmap(mp.grad(damped), (0,)))(x), np.full((4, 3), 0.5))
    rates = np.arange(4.0)
    np.testing.assert_allclose(compiled(mp.vmap(damped))(x, rates), x.sum(1) * rates + 1.0)


def test_a_check_of_a_size_that_differs_by_lane(compiled):
    def peak(v, x):
        some = v[v > x]
        return some.max() * some[0]

    values = np.array([[0.5, -1.0, 2.0], [1.0, 3.0, -2.0]])
    np.testing.assert_array_equal(compiled(mp.vmap(peak, (0, None)))(values, 0.1), [1.0, 3.0])
    slopes = compiled(mp.vmap(mp.grad(peak), (0, None)))(values, 0.1)
    np.testing.assert_array_equal(slopes, [[2.0, 0.0, 0.5], [3.0, 1.0, 0.0]])
    with pytest.raises(ValueError, match="zero-size"):
        compiled(mp.vmap(peak, (0, None)))(values, 2.5)


def anomaly(e, m):
    """Kepler's equation by Newton's method, as many steps as a point needs."""
    a = m
    for _ in range(25):
        if abs(a - e * np.sin(a) - m) <= 1e-12:
            break
        a = a - (a - e * np.sin(a) - m) / (1 - e * np.cos(a))
    return a


@pytest.mark.parametrize("count", [1, 31, 32, 100])
def test_gradients_of_a_loop_that_ends_early(count):
    e = np.linspace(0.01, 0.9, count)
    a = np.array([anomaly(float(e), 1.0) for e in e])
    slopes = mp.jit(mp.vmap(mp.grad(anomaly), in_axes=(0, None)))(e, 1.0)
    np.testing.assert_allclose(slopes, np.sin(a) / (1 - e * np.cos(a)), rtol=1e-6)


def test_numbers_that_no_lane_changes(compiled):
    def f(x):
        return x, 3, np.float32(2), np.round(1234, -2), True, 0.5, "text", None

    out = compiled(mp.vmap(f))(np.ones(3))
    assert [type(v).__name__ for v in out[6:]] == ["str", "NoneType"]
    assert [(v.dtype.name, v.tolist()) for v in out[1:6]] == [
        ("int64", [3, 3, 3]),
        ("float32", [2.0, 2.0, 2.0]),
        ("int64", [1200, 1200, 1200]),
        ("bool", [True, True, True]),
        ("float64", [0.5, 0.5, 0.5]),
    ]


def root(a):
    x = a
    for _ in range(20):
        if x == 0.0:
            return x
        y = 0.5 * (x + a / x)
        if abs(y - x) < 1e-10:
            return y
        x = y
    return -x


@pytest.mark.parametrize("counts", [(33, 70), (65,), (100, 7)])
def test_gradients_of_a_loop_that_returns(counts):
    slopes = mp.jit(mp.vmap(mp.grad(root)))
    for count in counts:
        a = np.linspace(0.1, 5.0, count)
        np.testing.assert_allclose(slopes(a), 0.5 / np.sqrt(a), rtol=1e-9)
