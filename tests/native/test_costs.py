"""What native code costs: no array copies in loops that write in place, and as many steps as stores, in
gradients too.

Steps are lines that the loops stage runs as Python: a count, which no busy machine changes.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest
from corpus.kernels import cholesky_in_place, lu
from ways import run_loops

import metaphrase as mp
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate
from metaphrase.core.types import has_tangent
from metaphrase.explanation import explain

pytestmark = pytest.mark.optimized


def cholesky(A):
    return cholesky_in_place(A.copy())


def jacobi(A, B, steps):
    for _ in range(steps):
        B[1:-1, 1:-1] = 0.2 * (A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1])
        A[1:-1, 1:-1] = 0.2 * (B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1])


def remembering(x, steps):
    total = 0.0
    for i in range(steps):
        old = x.copy()
        x[i] = x[i] * x[i - 1]
        total += old @ x
    return total


def stores(x):
    """Each element from itself and its neighbour: the gradient needs both as they were."""
    x = x.copy()
    for i in range(1, x.shape[0]):
        x[i] = x[i] * x[i - 1] + np.sin(x[i])
    return x


def row_stores(x):
    x = x.copy()
    for i in range(1, x.shape[0]):
        x[i] = x[i] * x[i - 1]
    return x


def matrix(size):
    a = np.random.default_rng(0).random((size, size))
    return a @ a.T + size * np.eye(size)


IN_PLACE = [(cholesky, (matrix(20),)), (lu, (matrix(20),)), (jacobi, (matrix(9), matrix(9), 4))]


@pytest.mark.parametrize("kernel, args", IN_PLACE, ids=lambda x: getattr(x, "__name__", ""))
@pytest.mark.parametrize("symbolic", [False, True], ids=["sizes known", "any size"])
def test_kernels_copy_no_array_in_a_loop(kernel, args, symbolic):
    if symbolic:
        square = mp.ShapeDtypeStruct((Sym("n"), Sym("n")), np.float64)
        args = tuple(square if isinstance(a, np.ndarray) else a for a in args)
    report = explain(kernel, *args)
    assert "loops: " in report and "copies" not in report, report


def test_a_copy_in_a_loop_is_explained():
    report = explain(remembering, np.ones(5), 3)
    assert "array copies inside loops:" in report
    assert "test_costs.py" in report.split("array copies inside loops:")[1]


# ---- steps -----------------------------------------------------------------------------------------------


def backward(function, *args):
    """(program of the gradient, its arguments)."""
    program = optimize(stage(function, args).function, before_transform=True)
    made = optimize(vjp(program, [has_tangent(p.type) for p in program.params]), before_transform=False)
    return made, [*args, *(np.ones_like(r) for r in evaluate(program, *args))]


def steps(function, args):
    """How many lines the loops stage runs."""
    count, program, before = 0, schedule(function), sys.gettrace()

    def trace(frame, event, argument):
        nonlocal count
        if not frame.f_code.co_filename.startswith("<loops of"):
            return None
        count += event == "line"
        return trace

    sys.settrace(trace)
    try:
        run_loops(program, args)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("function", [stores, row_stores], ids=lambda f: f.__name__)
def test_a_gradient_takes_as_many_steps_as_there_are_stores(function):
    shape = (lambda n: n) if function is stores else (lambda n: (n, 4))
    few, many = (steps(*backward(function, np.full(shape(n), 0.9))) for n in (40, 160))
    assert 3.5 * few < many < 4.5 * few


def visits(n):
    """A list that is read, appended to, popped from and appended to under a test in one loop."""
    stack, kept, count = [1.0], [1.0], 0
    while count < n:
        top = stack.pop()
        stack.append(top * 0.99)
        stack.append(kept[-1] * 0.5)
        if top > 0.01:
            kept.append(top + kept[-1] * 0.1)
        count += 1
    return kept[-1] + stack[-1]


def grown(x, n):
    values = [x]
    while len(values) < n:
        values.append(values[-1] * 0.99)
    return values[-1] + values[n // 2]


def test_lists_that_grow_are_not_copied():
    assert "copies" not in explain(visits, 40) and "copies" not in explain(grown, 2.0, 40)


def test_appending_takes_as_many_steps_as_there_are_items():
    few, many = (
        steps(
            optimize(stage(grown, (2.0, n)).function, before_transform=True),
            [*stage(grown, (2.0, n)).capture_values(), 2.0, n],
        )
        for n in (10, 40)
    )
    assert many < 4.5 * few
    made = [stage(lambda x, n=n: grown(x, n), (2.0,)) for n in (15, 60)]
    programs = [optimize(s.function, before_transform=True) for s in made]
    reverse = [optimize(vjp(p, [False, True]), before_transform=False) for p in programs]
    few, many = (steps(p, [*s.capture_values(), 2.0, 1.0]) for p, s in zip(reverse, made))
    assert many < 4.5 * few


def test_the_gradient_of_cholesky_is_cubic():
    counts = [steps(*backward(cholesky, matrix(n))) for n in (8, 16, 32)]
    assert counts[1] < 9 * counts[0] and counts[2] < 9 * counts[1], counts


def roots(x):
    """A loop of unknown length in one: each run of the inner one ends at another step."""
    total, n = x, 0
    while n < 40:
        y = x + 0.1 * n
        while abs(y * y - x) > 1e-9:
            y = 0.7 * y + 0.3 * 0.5 * (y + x / y)
        total = total * 0.9 + y * x
        n += 1
    return total


def three_deep(x):
    total, n = x, 0
    while n < 10:
        m, z = 0, x
        while m < n + 2:
            y = z + 0.1 * m + 1
            while abs(y * y - z) > 1e-6:
                y = 0.7 * y + 0.3 * 0.5 * (y + z / y)
            z = z * 0.9 + 0.05 * y
            m += 1
        total = total * 0.5 + z * x
        n += 1
    return total


@pytest.mark.parametrize("function", [roots, three_deep], ids=lambda f: f.__name__)
def test_the_gradient_of_nested_loops_runs_no_loop_again(function):
    program = optimize(stage(function, (2.3,)).function, before_transform=True)
    made, args = backward(function, np.float64(2.3))
    assert steps(made, args) < 3 * steps(program, [np.float64(2.3)])
    slope = (function(2.3 + 1e-6) - function(2.3 - 1e-6)) / 2e-6
    assert np.isclose(evaluate(made, *args)[1], slope, rtol=1e-6)


@pytest.mark.parametrize("function", [cholesky, lu, stores, row_stores], ids=lambda f: f.__name__)
def test_gradients_that_undo_are_right(function):
    x = matrix(6) if function is not stores else np.linspace(0.5, 1.5, 6)
    made, (x, bars) = backward(function, x)
    bars = np.random.default_rng(1).normal(size=bars.shape)
    direction = np.random.default_rng(2).normal(size=x.shape)
    gradient = evaluate(made, x, bars)[1]
    slope = (function(x + 1e-6 * direction) - function(x - 1e-6 * direction)) / 2e-6
    assert np.isclose(np.sum(gradient * direction), np.sum(slope * bars), rtol=1e-6)
    jitted = mp.jit(lambda a: mp.grad(lambda b: np.sum(function(b) * bars))(a))(x)
    assert np.allclose(jitted, gradient, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("what", ["values", "gradient"])
def test_time_is_linear_in_the_stores(what):
    run = mp.jit(stores if what == "values" else mp.grad(lambda x: stores(x)[-1]))

    def seconds(n):
        x, best = np.full(n, 0.9), np.inf
        run(x)
        for _ in range(7):
            start = time.process_time_ns()
            for _ in range(10):
                run(x)
            best = min(best, time.process_time_ns() - start)
        return best

    few, many = seconds(2000), seconds(32000)
    assert many < 64 * few, f"16 times the stores take {many / few:.1f} times as long"
