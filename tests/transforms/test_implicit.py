"""custom_root and linear_solve in core: what each transformation makes of them.

In: x with x x = a, and x with a x = b, beside their sizes. Out: transformed Functions that are well formed, read back,
and hold the equation's derivative; the functions that solve are not differentiated.
"""

from __future__ import annotations

import numpy as np
import pytest

from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.transforms.batch import batch
from metaphrase.astpasses.transforms.jvp import jvp
from metaphrase.astpasses.transforms.reverse import linearize, vjp
from metaphrase.astpasses.transforms.transpose import transpose
from metaphrase.core.build import literal, trace
from metaphrase.core.check import check
from metaphrase.core.custom import has_rules, without_rules
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.core.types import Array, f64
from metaphrase.ops.arithmetic import add, div, mul, sub
from metaphrase.ops.elementary import floor, sqrt
from metaphrase.ops.implicit import custom_root, linear_solve
from metaphrase.source import SourceError, UnsupportedError

SCALAR = Array(f64)
A, B, X, R = (("a", SCALAR), ("b", SCALAR), ("x", SCALAR), ("r", SCALAR))
A_OF, ONE, TWO = np.float64(2.25), np.float64(1.0), np.float64(2.0)


def steps(x):
    """What has no derivative: a solver's result, rounded to a thousandth."""
    return div(floor(add(mul(x, literal(1000.0, f64)), literal(0.5, f64))), literal(1000.0, f64))


ROOT = {
    "function": trace("root", lambda a: (steps(sqrt(a)), mul(a, a)), [A]),  # the solution, and something beside it
    "residual": trace("square", lambda a, x: sub(mul(x, x), a), [A, X]),
    "tangent": trace("slope", lambda a, x, r: div(r, add(x, x)), [A, X, R]),
}
OVER = trace("over", lambda a, b: (steps(div(b, a)), a), [A, B])
BACK = trace("back", lambda a, b: steps(div(b, a)), [A, B])
TIMES = trace("times", mul, [A, X])
SOLVE = {"function": OVER, "matvec": TIMES, "back": BACK, "vecmat": TIMES}


def root(a):
    return custom_root(a, **ROOT)[0]


def quotient(a, b):
    return linear_solve(a, b, **SOLVE)[0]


def names(function: Function) -> list[str]:
    return [let.primitive.name for let in function.lets]


def test_without_derivatives_they_are_the_function():
    for program, args in ((trace("f", root, [A]), (A_OF,)), (trace("f", quotient, [A, B]), (TWO, 3 * ONE))):
        check(program)
        assert has_rules(program) and same(read(show(program)), program)
        assert evaluate(program, *args) == [1.5]
        assert names(without_rules(program)) == ["call"]
        assert not {"custom_root", "linear_solve"} & set(names(optimize(program, before_transform=False)))


def test_the_tangent_of_a_root_is_its_equations():
    program = trace("f", lambda a: custom_root(a, **ROOT), [A])
    forward, nonzero = jvp(program, [True])
    assert nonzero == [True, False]  # what stands beside the solution has none
    assert evaluate(check(forward), A_OF, ONE) == [1.5, A_OF**2, 1 / 3]
    twice, _ = jvp(forward, [True, False])
    assert evaluate(check(twice), A_OF, ONE, ONE)[-1] == pytest.approx(-0.25 * A_OF**-1.5)


def test_the_tangent_of_a_solution_is_a_solution():
    program = trace("f", quotient, [A, B])
    for marks, dots, want in (
        ([True, False], [ONE], -0.75),
        ([False, True], [ONE], 0.5),
        ([True] * 2, [ONE] * 2, -0.25),
    ):
        forward, nonzero = jvp(program, marks)
        assert nonzero == [True] and names(check(forward)).count("linear_solve") == 2
        assert evaluate(forward, TWO, 3 * ONE, *dots) == [1.5, want]


def test_the_transpose_has_the_functions_exchanged():
    parts = linearize(trace("f", quotient, [A, B]), [False, True])
    assert names(check(parts.linear)) == ["linear_solve"]
    backward, found = transpose(parts.linear, [False] * parts.residuals + [True])
    (let,) = [let for let in check(backward).lets if let.primitive is linear_solve]
    assert found == [True] and let.attributes["function"].name == "back" and let.attributes["back"].name == "over"
    assert len(let.attributes["back"].results) == 1
    assert evaluate(vjp(trace("f", quotient, [A, B]), [True, True]), TWO, 3 * ONE, ONE) == [1.5, -0.75, 0.5]


def test_reverse_mode_of_a_root():
    assert evaluate(vjp(trace("f", root, [A]), [True]), A_OF, ONE) == [1.5, 1 / 3]


def test_what_can_not_be_transposed_is_refused():
    alone = trace("f", lambda a, b: linear_solve(a, b, **{**SOLVE, "back": None, "vecmat": None})[0], [A, B])
    assert same(read(show(alone)), alone) and evaluate(jvp(alone, [False, True])[0], TWO, ONE, ONE) == [0.5, 0.5]
    with pytest.raises(SourceError, match="no transpose_solve"):
        vjp(alone, [False, True])
    with pytest.raises(UnsupportedError, match="not linear in what its equation reads"):
        transpose(trace("f", quotient, [A, B]), [True, False])


@pytest.mark.parametrize("marks", [[True, False], [False, True], [True, True]])
def test_lanes(marks):
    lanes = np.array([2.0, 4.0, 5.0])
    args = [lanes if m else TWO for m in marks]
    program, out = batch(trace("f", quotient, [A, B]), 3, marks)
    assert out == [True] and has_rules(check(program)) and same(read(show(program)), program)
    np.testing.assert_allclose(evaluate(program, *args)[0], np.round(args[1] / args[0] + np.zeros(3), 3))
    wanted = [-(args[1] / args[0] + np.zeros(3)) / args[0], 1 / args[0] + np.zeros(3)]
    found = evaluate(vjp(program, [True, True]), *args, np.ones(3))[1:]
    for bar, want, mark in zip(found, wanted, marks):
        np.testing.assert_allclose(bar, want if mark else want.sum(), rtol=1e-3)


def test_roots_in_lanes():
    program, out = batch(trace("f", lambda a: custom_root(a, **ROOT), [A]), 3, [True])
    assert out == [True, True]
    lanes = np.array([1.0, 2.25, 4.0])
    np.testing.assert_allclose(evaluate(vjp(check(program), [True]), lanes, np.ones(3))[2], [0.5, 1 / 3, 0.25])
