"""`custom_vmap`: rules for lanes, under jit, derivatives and vmap of vmap, against the function of each lane and
against differences. Rules that give something else than the function show where they are used.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import lax
from metaphrase.custom_batching import custom_vmap
from metaphrase.source import SourceError

X, Y = np.array([0.5, 1.0, 2.0]), np.arange(6.0).reshape(3, 2)
OFFSET = np.array([100.0, 200.0])


@custom_vmap
def form(x, y):
    return {"sine": np.sin(x) * np.sum(y), "same": x}


@form.def_vmap
def form_of_lanes(axis_size, in_batched, x, y):
    """The rule's values tell which arguments are batched, and how many lanes there are."""
    x_batched, y_batched = in_batched
    total = np.sum(y, axis=1) if y_batched else np.sum(y)
    same = x + axis_size * OFFSET[0] if x_batched else x
    return {"sine": np.sin(x) * total + 10 * x_batched + 20 * y_batched, "same": same}, {
        "sine": True,
        "same": x_batched,
    }


@custom_vmap
def solved(a, b):
    return np.linalg.solve(a, b)


@solved.def_vmap
def solved_of_lanes(axis_size, in_batched, a, b):
    if in_batched == [False, True]:
        return np.linalg.solve(a, b.T).T, True
    a = a if in_batched[0] else np.broadcast_to(a, (axis_size, *a.shape))
    b = b if in_batched[1] else np.broadcast_to(b, (axis_size, *b.shape))
    return np.linalg.solve(a, b[..., None])[..., 0], True


@pytest.fixture(params=["numpy", "native"])
def compiled(request):
    return mp.jit if request.param == "native" else lambda f: f


def close(got, want, tolerance=1e-12):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_by_itself_it_is_the_function(compiled):
    for f in (form, compiled(form)):
        found = f(0.5, Y[1])
        close(found["sine"], np.sin(0.5) * 5)
        close(found["same"], 0.5)
    close(mp.grad(lambda x: form(x, Y[1])["sine"])(0.5), np.cos(0.5) * 5)


def test_what_is_batched(compiled):
    both = compiled(mp.vmap(form))(X, Y)
    close(both["sine"], np.sin(X) * Y.sum(1) + 30)
    close(both["same"], X + 300)
    first = compiled(mp.vmap(form, (0, None)))(X, Y[0])
    close(first["sine"], np.sin(X) + 10)
    second = compiled(mp.vmap(lambda y: form(0.5, y), out_axes={"sine": 0, "same": None}))(Y)
    close(second["sine"], np.sin(0.5) * Y.sum(1) + 20)
    close(second["same"], 0.5)
    neither = mp.vmap(lambda x, y: x * form(0.5, Y[1])["sine"])(X, Y)
    close(neither, X * np.sin(0.5) * 5)


def test_sizes_that_are_left_open(compiled):
    mapped = compiled(mp.vmap(form))
    for n in (3, 4, 6):
        found = mapped(np.ones(n), np.ones((n, 2)))
        close(found["sine"], np.full(n, np.sin(1.0) * 2 + 30))
        close(found["same"], np.full(n, 1 + 100.0 * n))


def test_captured_arrays_are_read_at_each_call():
    mapped = mp.jit(mp.vmap(form))
    before = mapped(X, Y)["same"]
    OFFSET[0] += 1
    try:
        close(mapped(X, Y)["same"], before + len(X))
    finally:
        OFFSET[0] -= 1


def test_vmap_of_vmap(compiled):
    twice = compiled(mp.vmap(mp.vmap(form)))(np.stack([X, 2 * X]), np.stack([Y, Y]))
    close(twice["sine"], np.sin(np.stack([X, 2 * X])) * Y.sum(1) + 30)
    crossed = compiled(mp.vmap(mp.vmap(form, (None, 0)), (0, None)))(X, Y)
    close(crossed["sine"], np.sin(X)[:, None] * Y.sum(1) + 20)
    outer = mp.vmap(lambda x: mp.vmap(lambda z: z * form(x, Y[1])["sine"])(X))(
        X
    )  # the outer axis alone has lanes of it
    close(outer, X * (np.sin(X)[:, None] * 5 + 10))


def test_derivatives_inside_are_those_of_the_function(compiled):
    value, slope = compiled(mp.vmap(mp.value_and_grad(lambda x, y: form(x, y)["sine"])))(X, Y)
    close(value, np.sin(X) * Y.sum(1) + 30)
    close(slope, np.cos(X) * Y.sum(1))
    value, dot = compiled(mp.vmap(lambda x, y: mp.jvp(lambda x: form(x, y)["sine"], (x,), (2.0,))))(X, Y)
    close(value, np.sin(X) * Y.sum(1) + 30)
    close(dot, 2 * np.cos(X) * Y.sum(1))
    second = compiled(mp.vmap(mp.grad(mp.grad(lambda x, y: form(x, y)["sine"]))))(X, Y)
    close(second, -np.sin(X) * Y.sum(1))


def test_derivatives_outside_are_those_of_the_rule(compiled):
    a, b = np.array([[3.0, 1.0], [0.5, 2.0]]), Y

    def loss(a, b):
        return np.sum(np.sin(mp.vmap(solved, (None, 0))(a, b)))

    def plain(a, b):
        return np.sum(np.sin([np.linalg.solve(a, row) for row in b]))

    for k, found in enumerate(compiled(mp.grad(loss, (0, 1)))(a, b)):
        want = np.empty_like(found)
        for place in np.ndindex(want.shape):
            steps = []
            for h in (1e-6, -1e-6):
                args = [a.copy(), b.copy()]
                args[k][place] += h
                steps.append(plain(*args))
            want[place] = (steps[0] - steps[1]) / 2e-6
        close(found, want, 1e-8)
    hessian = mp.jacfwd(mp.grad(loss, 1), 1)(a, b)
    close(hessian, hessian.transpose(2, 3, 0, 1), 1e-10)


def test_in_loops_branches_and_called_functions(compiled):
    def lane(x, y):
        for _ in range(2):
            x = form(x, y)["same"] / 2
        return lax.cond(y[0] > 1, lambda x: x, lambda x: -x, x) + mp.jit(lambda x: form(x, y)["sine"])(x)

    x = X
    for _ in range(2):
        x = (x + 300) / 2
    close(compiled(mp.vmap(lane))(X, Y), np.where(Y[:, 0] > 1, x, -x) + np.sin(x) * Y.sum(1) + 30, 1e-9)


@pytest.mark.parametrize("axes", [(None, 0), (0, None), (0, 0)])
def test_one_matrix_is_factored_once(axes):
    a = np.array([[3.0, 1.0], [0.5, 2.0]])
    a, b = np.stack([a, a + 1, a + 2]) if axes[0] == 0 else a, Y if axes[1] == 0 else Y[1]
    rows = zip(*(part if axis == 0 else [part] * 3 for part, axis in zip((a, b), axes)))
    close(mp.vmap(solved, axes)(a, b), [np.linalg.solve(*row) for row in rows])


def test_a_rule_that_calls_its_function(compiled):
    @custom_vmap
    def doubled(x):
        return 2 * x

    @doubled.def_vmap
    def doubled_of_lanes(axis_size, in_batched, x):
        return doubled(x.ravel()).reshape(x.shape) + 1, in_batched[0]

    close(compiled(mp.vmap(doubled))(Y), 2 * Y + 1)
    close(
        compiled(mp.vmap(mp.vmap(doubled)))(np.stack([Y, Y])), 2 * np.stack([Y, Y]) + 1 + np.ones(2)[:, None, None] * 1
    )


def ruled(rule):
    @custom_vmap
    def doubled(x):
        return 2 * x

    if rule is not None:
        doubled.def_vmap(rule)
    return lambda: mp.vmap(doubled)(X)


def of_a_captured_lane():
    def lane(x):
        @custom_vmap
        def shifted(y):
            return x + y

        shifted.def_vmap(lambda axis_size, in_batched, y: (x + y, True))
        return shifted(x)

    return mp.vmap(lane)(X)


def reads_for_some(size, batched, x, y):
    if batched != [True, True]:
        return x + OFFSET[0] * np.ones(size), True
    return x + y, True


def of_an_array_that_some_read():
    @custom_vmap
    def added(x, y):
        return x + y

    added.def_vmap(reads_for_some)
    return mp.vmap(lambda x: added(x, 1.0))(X)


FACTOR = 2.0


def test_a_number_that_a_rule_reads_for_some_arguments_is_watched():
    """It can't be read at each call, as arrays are, which have to be known before: it is a constant of each program."""
    global FACTOR

    @custom_vmap
    def added(x, y):
        return x + y

    added.def_vmap(lambda size, batched, x, y: (x + (y if batched[1] else FACTOR * y), True))
    mapped = mp.jit(mp.vmap(lambda x: added(x, 1.0)))
    close(mapped(X), X + 2)
    FACTOR = 3.0
    try:
        close(mapped(X), X + 3)
    finally:
        FACTOR = 2.0


REFUSED = {
    "for some arguments only": of_an_array_that_some_read,
    "has no vmap rule yet, and it is mapped over an axis": ruled(None),
    "the pair": ruled(lambda size, batched, x: 2 * x),
    r"f64\[2\] and must be f64\[3\]": ruled(lambda size, batched, x: (2 * x[1:], True)),
    r"f64\[3\] and must be f64 ": ruled(lambda size, batched, x: (2 * x, False)),
    "True or False": ruled(lambda size, batched, x: (2 * x, "yes")),
    "and doubled returns": ruled(lambda size, batched, x: ((2 * x, x), True)),
    "differs from lane to lane": of_a_captured_lane,
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message):
    with pytest.raises(SourceError, match=message):
        REFUSED[message]()
