"""The transformations from Function to Function: order of parameters and results, and their values."""

from __future__ import annotations

import numpy as np
import pytest

from metaphrase.api import programs as programs
from metaphrase.core.build import trace
from metaphrase.core.check import check
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate
from metaphrase.core.types import Array
from metaphrase.ops.arithmetic import mul
from metaphrase.ops.compare import lt
from metaphrase.ops.elementary import sin
from metaphrase.ops.reduce import reduce_sum

F64, N, B = np.dtype(np.float64), Sym("n"), Sym("b")
X, Y = np.arange(3.0) + 1, np.float64(2.0)
VECTOR, SCALAR = Array(F64, (N,)), Array(F64)


def both(x, y):
    """A vector of x, a scalar of y, and a result without tangent."""
    return mul(sin(x), x), mul(y, y), lt(y, y)


FUNCTION = trace("f", both, [("x", VECTOR), ("y", SCALAR)])
TOTAL = trace("total", lambda x, y: (reduce_sum(mul(sin(x), x), axes=(0,)), mul(y, y)), [("x", VECTOR), ("y", SCALAR)])
SLOPE = np.sin(X) + X * np.cos(X)


def run(program, *args):
    check(program)
    return evaluate(program, *args)


def same(got, want):
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, atol=1e-14)


def test_forward_gives_a_tangent_for_every_differentiable_result():
    same(run(programs.forward(FUNCTION, [True, False]), X, Y, np.ones(3)), [X * np.sin(X), 4, False, SLOPE, 0])
    same(run(programs.forward(FUNCTION, [False, True]), X, Y, 1.0), [X * np.sin(X), 4, False, np.zeros(3), 4])


def test_gradient_is_of_the_first_result_only():
    total = (X * np.sin(X)).sum()
    same(run(programs.gradient(TOTAL, [True, True]), X, Y), [total, 4, SLOPE, 0])
    same(run(programs.gradient(TOTAL, [False, True]), X, Y), [total, 4, 0])


def test_linear_parts_agree_with_each_other():
    parts = programs.linear_parts(FUNCTION, [True, True])
    outs = run(parts.known, X, Y)
    same(outs[:3], [X * np.sin(X), 4, False])
    residuals = outs[3:]
    x_dot, y_dot, x_bar, y_bar = np.array([1.0, -2, 3]), 0.5, np.array([4.0, 5, 6]), 7.0
    forward = run(parts.pushforward, *residuals, x_dot, y_dot)
    back = run(parts.pullback, *residuals, x_bar, y_bar)
    same(forward, [SLOPE * x_dot, 4 * y_dot])
    assert np.isclose(forward[0] @ x_bar + forward[1] * y_bar, back[0] @ x_dot + back[1] * y_dot)


def test_batched_moves_axes():
    rows = np.arange(6.0).reshape(3, 2)
    types = [Array(F64, (N, B)), SCALAR]
    want = rows * np.sin(rows)
    same(run(programs.batched(FUNCTION, B, [1, None], [0, None, None], types), rows, Y), [want.T, 4, False])
    same(run(programs.batched(FUNCTION, B, [1, None], [1, 0, 0], types), rows, Y), [want, [4, 4], [False, False]])
    with pytest.raises(ValueError, match="0"):
        programs.batched(FUNCTION, B, [1, None], [None, None, None], types)


@pytest.mark.parametrize("jacobian", [programs.jacobian_forward, programs.jacobian_reverse])
def test_jacobians(jacobian):
    outs = run(jacobian(FUNCTION, [True, True]), X, Y)
    same(outs, [X * np.sin(X), 4, False, np.diag(SLOPE), np.zeros(3), np.zeros(3), 4])


def test_hessian_by_composition():
    hessian = programs.jacobian_forward(programs.gradient(TOTAL, [True, False]), [True, False])
    outs = run(hessian, X, Y)
    np.testing.assert_allclose(outs[-1], np.diag(2 * np.cos(X) - X * np.sin(X)), atol=1e-12)
