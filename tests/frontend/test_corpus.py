"""Every corpus function: Python = control stage on NumPy = evaluated core program; and the program reads
back."""

from __future__ import annotations

import copy
import types

import pytest
from corpus import alike, cases, fresh, outcome

from metaphrase.astpasses.frontend.rewrite.convert import control_stage, converted
from metaphrase.astpasses.frontend.rewrite.normal import normal
from metaphrase.astpasses.frontend.rewrite.plain import stager
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.read import read
from metaphrase.core.show import same, show

CASES = list(cases())
names = pytest.mark.parametrize("function, args", [c[1:] for c in CASES], ids=[c[0] for c in CASES])


def normal_form(function):
    """`function` compiled from its normal form, over the same globals and cells."""
    form = normal(function)
    free = function.__code__.co_freevars
    inside = "\n".join("    " + line for line in form.text().splitlines())
    scope = dict(function.__globals__)
    exec(f"def factory({', '.join(free)}):\n{inside}\n    return {form.node.name}\n", scope)
    made = scope["factory"](*(c.cell_contents for c in function.__closure__ or ()))
    made.__defaults__, made.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return made


@names
def test_normal_form_runs(function, args):
    if isinstance(function, types.FunctionType):
        assert alike(outcome(normal_form(function), args), outcome(function, args))
        assert control_stage(function).text().startswith("def ")


@names
def test_control_stage_on_numpy(function, args):
    if isinstance(function, types.FunctionType):
        assert alike(outcome(converted(function, stager), args), outcome(function, args))


@names
def test_staged_program(function, args):
    expected = outcome(function, args)
    given = fresh(args)
    staged = stage(function, given)
    assert alike(given, fresh(args)), "staging left a trace in the arguments"
    check(staged.function)
    assert same(read(show(staged.function)), staged.function)

    def run(*values):
        return staged.result(evaluate(staged.function, *staged.arguments(values)), values)

    assert alike(outcome(run, args), expected, 1e-9)


def test_staging_twice_gives_the_same_program():
    for _, function, args in CASES[::7]:
        first, second = (stage(function, copy.deepcopy(args)).function for _ in range(2))
        assert show(first, canonical=True) == show(second, canonical=True)
