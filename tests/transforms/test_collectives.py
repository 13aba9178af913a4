"""Collectives over named axes: the corpus against NumPy on whole arrays, values and derivatives in every order, alone
and under other transformations; names, sizes, and what is refused.

In: `corpus.collectives`. The gradient inside of vmap is that of what all lanes give, added up: finite differences of
the whole.
"""

from __future__ import annotations

import numpy as np
import pytest
from corpus.collectives import CORPUS, LANES

import metaphrase as mp
from metaphrase import lax
from metaphrase.source import SourceError

pytestmark = pytest.mark.turns(6)

RNG = np.random.default_rng(7)
X = RNG.uniform(-1.5, 1.5, (LANES, 3))
T = RNG.uniform(-1, 1, (LANES, 3))
H = 1e-4
SMOOTH = sorted(name for name, p in CORPUS.items() if p.smooth)
TWICE = sorted(name for name, p in CORPUS.items() if p.smooth > 1)


def mapped(f):
    return mp.vmap(f, axis_name="i")


def weights(f):
    """Numbers that each lane weighs its results with."""
    shape = np.shape(CORPUS[f].whole(X))[1:]
    return np.cos(np.arange(1.0, 1 + np.prod(shape))).reshape(shape)


def total(name):
    """What all lanes give, weighted, of a whole array."""
    whole, w = CORPUS[name].whole, weights(name)
    return lambda A: np.sum(whole(A) * w)


def lane_total(name):
    lane, w = CORPUS[name].lane, weights(name)
    return lambda x: np.sum(lane(x) * w)


def slope(f, A, along):
    """The derivative of f at A along a direction, by a five-point difference."""
    far, near, back, behind = (f(A + k * H * along) for k in (2, 1, -1, -2))
    return (behind - far + 8 * (near - back)) / (12 * H)


def gradient(f, A):
    """The gradient of f at A by differences."""
    found = np.empty_like(A)
    for place in np.ndindex(A.shape):
        unit = np.zeros_like(A)
        unit[place] = 1
        found[place] = slope(f, A, unit)
    return found


def close(got, want, tolerance=1e-7):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CORPUS)
def test_values(name):
    close(mapped(CORPUS[name].lane)(X), CORPUS[name].whole(X), 1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_native_values_and_gradients(name):
    values, found = mp.jit(mapped(lambda x: (CORPUS[name].lane(x), mp.grad(lane_total(name))(x))))(X)
    close(values, CORPUS[name].whole(X), 1e-12)
    close(found, gradient(total(name), X))


@pytest.mark.parametrize("name", SMOOTH)
def test_grad_outside(name):
    w = weights(name)
    close(mp.grad(lambda A: np.sum(mapped(CORPUS[name].lane)(A) * w))(X), gradient(total(name), X))


@pytest.mark.parametrize("name", TWICE)
def test_jvp_inside_and_outside(name):
    lane, whole = CORPUS[name].lane, CORPUS[name].whole
    want = slope(whole, X, T)
    close(mapped(lambda x, t: mp.jvp(lane, (x,), (t,))[1])(X, T), want)
    close(mp.jvp(mapped(lane), (X,), (T,))[1], want)


@pytest.mark.parametrize("name", TWICE)
def test_twice(name):
    """grad of grad inside, and jvp outside of grad inside, against differences of the gradient."""
    inner = mp.grad(lane_total(name))
    want = slope(mapped(inner), X, T)
    close(mp.jvp(mapped(inner), (X,), (T,))[1], want, 1e-6)
    close(mapped(lambda x, t: mp.jvp(inner, (x,), (t,))[1])(X, T), want, 1e-6)
    # lanes' second cotangents are all ones, and the Hessian of the total is symmetric
    want = slope(mapped(inner), X, np.ones_like(X))
    close(mapped(mp.grad(lambda x: np.sum(inner(x))))(X), want, 1e-6)


@pytest.mark.parametrize("name", SMOOTH)
def test_under_another_axis(name):
    many = np.stack([X, X[::-1], 0.5 * X])
    got = mp.vmap(mapped(mp.grad(lane_total(name))), in_axes=1, out_axes=1, axis_name="j")(many.transpose(1, 0, 2))
    close(got, np.stack([gradient(total(name), A) for A in many], 1))


@pytest.mark.parametrize("name", ["summed", "largest", "gathered", "exchanged", "ring", "in_a_branch", "until_each"])
def test_jacobians_inside(name):
    """All lanes have the same tangent at a time, and the same cotangent."""
    lane, whole = CORPUS[name].lane, CORPUS[name].whole
    columns = [slope(whole, X, np.tile(unit, (LANES, 1))) for unit in np.eye(3)]
    close(mapped(mp.jacfwd(lane))(X), np.stack(columns, -1))
    found = mapped(mp.jacrev(lane))(X)
    rows = found.reshape(LANES, -1, 3)
    for k in range(rows.shape[1]):
        close(rows[:, k], gradient(lambda A, k=k: np.sum(whole(A).reshape(LANES, -1)[:, k]), X))


# ---- names, sizes, operands -----------------------------------------------------------------------------------

CUBE = RNG.normal(size=(2, 3, 4))


@pytest.fixture(params=["numpy", "native"])
def compiled(request):
    return mp.jit if request.param == "native" else lambda f: f


TWO_AXES = {
    "sum": (lambda x: x * lax.psum(x, ("i", "j")), CUBE * CUBE.sum((0, 1))),
    "list": (lambda x: lax.pmin(x, ["i", "j"]) + x, CUBE.min((0, 1)) + CUBE),
    "each": (lambda x: x * lax.psum(x, "i") + lax.pmax(x, "j"), CUBE * CUBE.sum(0) + CUBE.max(1, keepdims=True)),
    "gather": (lambda x: lax.all_gather(x, ("i", "j")), np.broadcast_to(CUBE.reshape(6, 4), (2, 3, 6, 4))),
    "other order": (
        lambda x: lax.all_gather(x, ("j", "i"), axis=1, tiled=False),
        np.broadcast_to(CUBE.transpose(2, 1, 0).reshape(4, 6), (2, 3, 4, 6)),
    ),
    "index": (lambda x: lax.axis_index(("i", "j")) * x, np.arange(6).reshape(2, 3, 1) * CUBE),
    "scatter": (
        lambda x: lax.psum_scatter(np.outer(np.arange(12.0), x), ("i", "j"), tiled=True),
        np.outer(np.arange(12), CUBE.sum((0, 1))).reshape(2, 3, 2, 4),
    ),
    "size": (lambda x: lax.psum(1, ("i", "j")) * x + lax.axis_size("j"), 6 * CUBE + 3),
}


@pytest.mark.parametrize("name", TWO_AXES)
def test_two_axes(name, compiled):
    lane, want = TWO_AXES[name]
    close(compiled(mp.vmap(mp.vmap(lane, axis_name="j"), axis_name="i"))(CUBE), want, 1e-12)


def test_an_inner_axis_hides_an_outer_one_of_its_name():
    hidden = mp.vmap(mp.vmap(lambda x: lax.psum(x, "i"), axis_name="i"), axis_name="i")
    close(hidden(CUBE), np.broadcast_to(CUBE.sum(1, keepdims=True), CUBE.shape))

    def around(row):
        total, pull = mp.vjp(lambda x: lax.psum(x**2, "i"), row)  # over the outer axis, pulled back in the inner one
        return mp.vmap(lambda w: pull(w * total)[0], axis_name="i")(np.array([1.0, 2.0]))

    a = CUBE[0]
    want = 2 * a[:, None] * np.array([1.0, 2.0])[:, None] * (a**2).sum(0) * len(a)
    close(mp.vmap(around, axis_name="i")(a), want)


def test_sizes_that_are_left_open(compiled):
    names = compiled(
        mp.vmap(
            lambda x: (
                lax.all_gather(x, "i").sum(0) * x,
                lax.psum(1, "i") * x,
                lax.psum(2.0, "i"),
                lax.pmean(x, "i"),
                mp.grad(lambda x: np.sum(lax.all_gather(x, "i") ** 2))(x),
                lax.all_to_all(np.broadcast_to(x, (lax.axis_size("i"), 2)), "i", 0, 0),
            ),
            axis_name="i",
        )
    )
    for n in (3, 5, 7, 1, 2):
        a = RNG.normal(size=(n, 2))
        found = names(a)
        want = (a * a.sum(0), n * a, np.full(n, 2.0 * n), np.tile(a.mean(0), (n, 1)), 2 * n * a)
        for got, right in zip(found, (*want, np.broadcast_to(a, (n, n, 2)))):
            close(got, right, 1e-12)


def test_each_size_has_its_own_permutation(compiled):
    shifted = compiled(
        mp.vmap(
            lambda x: lax.ppermute(x, "i", [(k, (k + 1) % lax.axis_size("i")) for k in range(lax.axis_size("i"))]),
            axis_name="i",
        )
    )
    for n in (3, 5, 4):
        close(shifted(np.arange(n)), np.roll(np.arange(n), 1))


def test_operands_that_are_the_same_in_all_lanes(compiled):
    def lane(x, y):
        alike = lax.psum(y, "i"), lax.pmean(y, "i"), lax.pmax(y, "i"), lax.all_gather(y, "i")
        own = lax.psum_scatter(y, "i"), lax.all_to_all(y, "i", 0, 0), lax.ppermute(y, "i", [(0, 1)])
        return alike, own, lax.ppermute(y, "i", [(0, 1), (1, 2), (2, 0)])

    y = CUBE[1]
    f = compiled(mp.vmap(lane, in_axes=(0, None), out_axes=(None, 0, None), axis_name="i"))
    alike, own, turned = f(CUBE[0], y)
    for got, want in zip(alike, (3 * y, y, y, np.stack([y, y, y]))):
        close(got, want)
    for got, want in zip(own, (3 * y, np.repeat(y[:, None], 3, 1), np.stack([0 * y, y, 0 * y]))):
        close(got, want)
    close(turned, y)


def test_the_dtypes_of_sums():
    def of(a):
        return mp.vmap(lambda x: (lax.psum(x, "i"), lax.pmean(x, "i")), axis_name="i")(a)

    for dtype, total, mean in (
        (bool, np.int64, np.float64),
        (np.int32, np.int32, np.float64),
        (np.float32, np.float32, np.float32),
        (np.complex128, np.complex128, np.complex128),
    ):
        assert [r.dtype for r in of(np.ones(3, dtype))] == [total, mean]


def test_constants(compiled):
    def lane(x):
        return (
            lax.psum({"a": np.ones(2), "b": [np.float64(2), True]}, axis_name="i"),
            lax.pmax(3, "i"),
            lax.pmean(2, "i"),
            lax.psum(1j, "i"),
            lax.all_gather(1.5, "i"),
            np.ones(lax.psum(1, "i")),
        )

    sums, largest, mean, imaginary, gathered, ones = compiled(mp.vmap(lane, out_axes=None, axis_name="i"))(X)
    close(sums["a"], [4.0, 4.0])
    assert (*sums["b"], largest, mean, imaginary) == (8.0, 4, 3, 2.0, 4j)
    close(gathered, np.full(4, 1.5))
    close(ones, np.ones(4))


def test_axis_size_alone():
    assert mp.vmap(lambda x: lax.psum(x, "i"), None, None, "i", 4)(2.0) == 8.0
    numbered = mp.vmap(lambda x: x * lax.axis_index("i"), None, 0, axis_name="i", axis_size=4, spmd_axis_name="i")
    close(numbered(2.0), 2 * np.arange(4.0))


# ---- lanes that part ways -------------------------------------------------------------------------------------

TABLE = np.array([1.0, 2.0, 3.0])


def test_lanes_that_fail_or_print_beside_a_collective(capsys):
    """What does not lead to a collective stays where it was: in the lanes that come by."""

    def lane(x, k):
        if k >= 0:
            total = lax.psum(x, "i")
            print(f"at {k}")
            return total * TABLE[k]
        return x

    close(mapped(lane)(np.arange(3.0), np.array([2, -9, 0])), [9.0, 1.0, 3.0])
    assert capsys.readouterr().out == "at 2\nat 0\n"
    with pytest.raises(IndexError):
        mapped(lane)(np.arange(3.0), np.array([2, -9, 3]))


def test_a_loop_that_all_lanes_leave_together_may_fail():
    def lane(x, k):
        while lax.pmax(x, "i") > 1:
            x = x / TABLE[k]
            k = k - 1
        return x

    close(mapped(lane)(np.array([1.0, 6.0]), np.array([1, 2])), [0.5, 1.0])
    with pytest.raises(IndexError):
        mapped(lane)(np.array([1.0, 99.0]), np.array([0, 0]))


def checked(x, k):
    return lax.psum(x[k], "i") if x[0] > 0 else x[1]


REFUSED = {
    "unbound axis name: 'k'; the axes around are 'i'": lambda: mapped(lambda x: lax.psum(x, "k"))(X),
    "write 'batch'": lambda: mp.vmap(lambda x: lax.psum(x, "bacth"), axis_name="batch")(X),
    "no axis around has a name": lambda: mp.jit(mp.vmap(lambda x: lax.psum(x, "i")))(X),
    "unbound axis name: 'i'": lambda: lax.psum(3.0, "i"),
    "there is no lane 5": lambda: mapped(lambda x: lax.ppermute(x, "i", [(0, 5)]))(X),
    "lane 0 sends": lambda: mapped(lambda x: lax.ppermute(x, "i", [(0, 1), (0, 0)]))(X),
    "lane 1 is sent two": lambda: mapped(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)]))(X),
    "perm has 2 lanes of 4": lambda: mapped(lambda x: lax.pshuffle(x, "i", [1, 0]))(X),
    "is 3 and must be 4": lambda: mapped(lambda x: lax.psum_scatter(x, "i"))(X),
    "must be a multiple of 4": lambda: mapped(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True))(X),
    "axis_index_groups": lambda: mapped(lambda x: lax.psum(x, "i", axis_index_groups=[[0], [1]]))(X),
    "complex": lambda: mapped(lambda x: lax.pmax(x, "i"))(X + 1j),
    "psum of a str": lambda: mapped(lambda x: lax.psum("a", "i"))(X),
    "asks for axis 5": lambda: mapped(lambda x: lax.all_gather(x, "i", axis=5))(X),
    "over 2 axes": lambda: mapped(mp.vmap(lambda x: lax.ppermute(x, ("i", "j"), []), axis_name="j"))(X),
    "pcast to 'reduced'": lambda: mapped(lambda x: lax.pcast(x, "i", to="reduced"))(X),
    "needs all lanes of the axis 'i'": lambda: mapped(checked)(X, np.arange(LANES) % 3),
    "which has no hash": lambda: mp.vmap(lambda x: x, axis_name={"i": 1})(X),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    with pytest.raises(SourceError, match=message) as caught:
        REFUSED[message]()
    assert caught.value.span is not None and caught.value.span.file == __file__


def test_an_unknown_name_is_a_name_error():
    with pytest.raises(NameError):
        mapped(lambda x: lax.psum(x, "k"))(X)


def test_a_linear_function_does_not_leave_the_axis_it_names():
    with pytest.raises(SourceError, match="axis"):
        mapped(lambda x: mp.vjp(lambda x: lax.psum(x**2, "i"), x)[1])(X)(np.ones(3))
