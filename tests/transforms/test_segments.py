"""Loops of run-time length inside loops: their residuals leave as segments, and every transformation is
right.

Each program is compared with finite differences of itself run as plain Python, and its second derivatives
with those of its gradient.
"""

from __future__ import annotations

import numpy as np
import pytest
from turns import turn

import metaphrase as mp
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.astpasses.transforms.reverse import linearize, vjp
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.core.types import has_tangent


def while_in_for(x):
    total = 0.0
    for k in range(5):
        y = x[0] * (k - 1)
        while y > 0.5:
            y = y * (0.5 + 0.1 * np.sin(y) * x[1])
        total += total * y + y * y * x[2]
    return total


def while_in_while(x):
    total, n = x[0], 0
    while total < 40.0 + 0.0 * x[1]:
        y = x[1] + 0.3 * n
        while y * y > 1.5 + x[2]:
            y = 0.7 * y + 0.02 * np.cos(y * x[2])
        total = total * 1.5 + y * x[2] + 0.7
        n += 1
    return total


def three_deep(x):
    total, n = x[0], 0
    while n < 3:
        m, z = 0, x[1] + total
        while m < n + 1 and z > 0.3:
            y = z + x[2]
            while y > 1.1:
                y = y * (0.6 + 0.05 * np.sin(y))
            z = z * 0.7 + y * x[0] * 0.1
            m += 1
        total = total * 0.8 + z * z
        n += 1
    return total


def four_deep(x):
    total = x[0]
    for a in range(2):
        b = 0
        while b < a + 2:
            c = 0
            while c < b + 1:
                y = total + x[1] * (c + 1)
                while y > 1.0:
                    y = y * 0.6 + 0.02 * y * np.sin(x[2] * y)
                total = total * 0.9 + y * y * 0.3
                c += 1
            b += 1
    return total


def vectors(x):
    total = x * 1.0
    for k in range(4):
        y = total * (k + 0.5) + x
        while np.sum(y * y) > 2.0:
            y = y * 0.7 + 0.05 * np.sin(y) * x[0]
        total = total * 0.5 + y
    return np.sum(total * total)


def two_in_one(x):
    total = 0.0
    for k in range(4):
        y, z = x[0] * k, x[1] * (4 - k) + total * 0.1
        while y > 0.5:
            y = y * (0.5 + 0.05 * y)
        while z > 0.4:
            z = z * (0.6 - 0.02 * np.cos(z * x[2]))
        total += y * z + y * y + z * x[2]
    return total


def counted_inside(x):
    total = x[0]
    n = 0
    while n < 4:
        y = x[1]
        for j in range(n):
            y = y * np.sin(y * x[2] + j)
        total = total * 0.7 + y * total
        n += 1
    return total


def masks(x):
    total = x[0]
    for k in range(3):
        y = x * (k + 1.0) + 0.0 * total
        picked = y[y > 0.9]
        total = total * 0.5 + np.sum(np.sin(picked) * picked) * total
    return total


def stores(x):
    x = x.copy()
    for k in range(12):
        i = k % 3
        y = x[i] + x[i - 1] * 0.5
        while y > 0.5:
            y = y * (0.6 + 0.1 * np.sin(y))
        x[i] = y * x[i] * 0.3 + x[i - 1]
    return np.sum(x * x)


def inner_stores(x):
    x = x.copy()
    n = 0
    while n < 3:
        j = 0
        while j < n + 1:
            x[j] = x[j] * x[j + 1 - 2 * (j // 2)] * 0.9 + np.sin(x[j])
            j += 1
        n += 1
    return np.sum(x * x)


def branch_around(x):
    total = 0.0
    for k in range(5):
        y = x[0] * k + total * 0.1
        if k % 2 == 0:
            while y > 0.5:
                y = y * (0.5 + 0.1 * np.sin(y) * x[1])
        total += y * y * x[2]
    return total


def never(x):
    total, n = x[0], 0
    while total < -10.0:
        y = x[1]
        while y > 0.5:
            y = y * np.sin(y)
        total = total + y
        n += 1
    return total * x[2]


PROGRAMS = [
    while_in_for,
    while_in_while,
    three_deep,
    four_deep,
    vectors,
    two_in_one,
    counted_inside,
    masks,
    stores,
    inner_stores,
    branch_around,
    never,
]
X = np.array([1.13, 0.71, 0.93])
V = np.array([0.3, -0.5, 0.8])
LANES = np.array([[1.13, 0.71, 0.93], [0.4, 1.3, 0.6], [2.1, 0.35, 1.2]])


def slopes(function, x, step=1e-6):
    """Central differences of a function along every axis of its argument; axes of the argument come last."""
    sides = [[np.asarray(function(x + sign * step * e)) for e in np.eye(x.shape[0])] for sign in (1, -1)]
    return np.stack([(a - b) / (2 * step) for a, b in zip(*sides)], axis=-1)


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_gradients(function):
    expected = slopes(function, X)
    assert np.allclose(mp.grad(function)(X), expected, rtol=1e-6, atol=1e-7)
    assert np.allclose(mp.jit(mp.grad(function))(X), expected, rtol=1e-6, atol=1e-7)
    program = optimize(stage(function, (X,)).function, before_transform=True)
    for clean in (lambda f: f, lambda f: optimize(f, before_transform=True)):
        made = check(vjp(program, [has_tangent(p.type) for p in program.params], clean))
        assert same(read(show(made)), made)
        assert np.allclose(evaluate(made, X, np.float64(1.0))[1], expected, rtol=1e-6, atol=1e-7)
        small = check(optimize(made, before_transform=False))
        assert same(read(show(small)), small)
        assert np.allclose(evaluate(small, X, np.float64(1.0))[1], expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("jit", [lambda f: f, mp.jit], ids=["numpy", "native"])
@pytest.mark.parametrize("function", turn(PROGRAMS, 8), ids=lambda f: f.__name__)
def test_second_derivatives(function, jit):
    gradient = mp.grad(function)
    expected = slopes(gradient, X)
    along = expected @ V
    again = jit(mp.grad(lambda x: np.sum(mp.grad(function)(x) * V)))(X)
    assert np.allclose(again, along, rtol=1e-5, atol=1e-6)
    assert np.allclose(jit(lambda x, v: mp.jvp(gradient, (x,), (v,)))(X, V)[1], along, rtol=1e-5, atol=1e-6)
    assert np.allclose(jit(mp.hessian(function))(X), expected, rtol=1e-5, atol=1e-6)
    back = jit(mp.grad(lambda x: mp.jvp(function, (x,), (V,))[1]))(X)
    assert np.allclose(back, along, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("jit", [lambda f: f, mp.jit], ids=["numpy", "native"])
@pytest.mark.parametrize("function", turn(PROGRAMS, 8), ids=lambda f: f.__name__)
def test_batches(function, jit):
    expected = np.stack([slopes(function, x) for x in LANES])
    assert np.allclose(jit(mp.vmap(mp.grad(function)))(LANES), expected, rtol=1e-6, atol=1e-7)
    through = jit(mp.grad(lambda x: np.sum(mp.vmap(function)(x))))(LANES)
    assert np.allclose(through, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_batches_of_programs_with_segments(function):
    """`vmap` takes derivatives without segments; what has them is batched all the same."""
    program = optimize(stage(function, (X,)).function, before_transform=True)
    made = optimize(vjp(program, [has_tangent(p.type) for p in program.params]), before_transform=True)
    batched = check(batch(made, 3, [True, False], [True, True])[0])
    gradients = evaluate(batched, LANES, np.float64(1.0))[1]
    assert np.allclose(gradients, np.stack([slopes(function, x) for x in LANES]), rtol=1e-6, atol=1e-7)
    program = schedule(optimize(batched, before_transform=False))
    assert np.allclose(python_loops.run(program, LANES, np.float64(1.0))[1], gradients, rtol=1e-10)


@pytest.mark.parametrize("seeds", [2, 3])
def test_lanes_that_share_their_lengths_have_one_loop(seeds):
    """A pullback of many cotangents goes through the segments once for all of them."""
    program = optimize(stage(while_in_while, (X,)).function, before_transform=True)
    made = optimize(vjp(program, [True]), before_transform=False)
    batched, marks = batch(made, seeds, [False, True], [False, True])
    check(batched)
    loops = [let for let in batched.lets if let.primitive.name == "loop"]
    assert marks == [False, True] and not any(let.attributes.get("parallel") for let in loops)
    gradients = evaluate(batched, X, np.arange(1.0, seeds + 1))[1]
    expected = slopes(while_in_while, X)
    assert np.allclose(gradients, np.outer(np.arange(1.0, seeds + 1), expected), rtol=1e-6)


def has_segments(function):
    return any(let.primitive.name == "loop" and let.attributes["roles"].segments for let in function.lets)


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_who_has_segments(function):
    program = optimize(stage(function, (X,)).function, before_transform=True)
    made = optimize(vjp(program, [True]), before_transform=False)
    assert has_segments(made) == (function not in (masks, branch_around))
    without = optimize(linearize(program, [True], segments=False).known, before_transform=False)
    assert not has_segments(without)


def test_lanes_that_share_their_lengths_stay_together():
    def function(x, y):
        total = y[0]
        for k in range(4):
            z = x * (k + 0.5)
            while z > 0.5:
                z = z * 0.6
                total = total * y[1] * z + y[0]
        return total

    gradient = mp.grad(function, argnums=1)
    ys = LANES[:, :2]
    expected = np.stack([slopes(lambda y: function(1.3, y), y) for y in ys])
    batched = mp.vmap(gradient, (None, 0))
    assert np.allclose(batched(1.3, ys), expected, rtol=1e-6)
    assert np.allclose(mp.jit(batched)(1.3, ys), expected, rtol=1e-6)


def plain(x):
    y = x[0] * 3.0
    while y > 1.0:
        y = y * 0.6 + 0.1 * np.sin(y * x[1])
    return y * x[2]


def halves(x):
    y = x[0] * x[1] * 9.0
    while y > 1.0:
        y = y * 0.5
    return y + x[2]


KEEPING = [plain, halves, while_in_while, three_deep, vectors]


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", KEEPING, ids=lambda f: f.__name__)
def test_pullbacks_and_what_they_keep(function):
    """Residuals of run-time sizes go from a `vjp` to its pullback, also inside a program."""
    expected = slopes(function, X)

    def pulled(x):
        value, pullback = mp.vjp(function, x)
        return pullback(value * 2.0)[0]

    def in_a_loop(x):
        total = np.zeros(3)
        for k in range(30):
            _, pullback = mp.vjp(function, x + 0.01 * k)
            total += pullback(1.0)[0]
        return total

    value = function(X)
    assert np.allclose(mp.linearize(function, X)[1](V), expected @ V, rtol=1e-6)
    assert np.allclose(pulled(X), 2.0 * value * expected, rtol=1e-6)
    assert np.allclose(mp.jit(pulled)(X), 2.0 * value * expected, rtol=1e-6)
    lanes = np.stack([2.0 * function(x) * slopes(function, x) for x in LANES])
    assert np.allclose(mp.jit(mp.vmap(pulled))(LANES), lanes, rtol=1e-6)
    sums = np.sum([slopes(function, X + 0.01 * k) for k in range(30)], axis=0)
    assert np.allclose(mp.jit(in_a_loop)(X), sums, rtol=1e-6)
    again = slopes(lambda x: pulled(x) @ V, X)
    assert np.allclose(mp.jit(mp.grad(lambda x: pulled(x) @ V))(X), again, rtol=1e-5)
    assert np.allclose(mp.jit(mp.jacrev(lambda x: np.stack([function(x), x[0]])))(X)[0], expected, rtol=1e-6)


@pytest.mark.parametrize("function", [while_in_while, vectors], ids=lambda f: f.__name__)
def test_one_program_for_all_sizes(function):
    def more(x):
        return function(x) + np.sum(x * x)

    gradient = mp.jit(mp.grad(more))
    for n in (3, 4, 6, 9):
        x = np.concatenate([X, np.linspace(0.5, 1.0, n - 3)])
        assert np.allclose(gradient(x), slopes(more, x), rtol=1e-6, atol=1e-6)
