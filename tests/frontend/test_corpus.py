"""Every corpus function: Python = control stage on NumPy = evaluated core program; and the program reads
back. All of them are staged each day; the stages before that have another part of the corpus each day."""

from __future__ import annotations

import types

import pytest
from corpus import alike, fresh, outcome
from stages import CASES, SAMPLE, given, names, names_of_today, staged

from metaphrase.astpasses.frontend.rewrite.convert import control_stage, converted
from metaphrase.astpasses.frontend.rewrite.normal import normal
from metaphrase.astpasses.frontend.rewrite.plain import stager
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.read import read
from metaphrase.core.show import same, show


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


@names_of_today
def test_normal_form_runs(name):
    function, args = CASES[name]
    if isinstance(function, types.FunctionType):
        assert alike(outcome(normal_form(function), args), outcome(function, args))
        assert control_stage(function).text().startswith("def ")


@names_of_today
def test_control_stage_on_numpy(name):
    function, args = CASES[name]
    if isinstance(function, types.FunctionType):
        assert alike(outcome(converted(function, stager), args), outcome(function, args))


@names
def test_staged_program(name):
    function, args = CASES[name]
    case, theirs = given(name)
    assert alike(theirs, fresh(args)), "staging left a trace in the arguments"
    check(case.function)

    def run(*values):
        return case.result(evaluate(case.function, *case.arguments(values)), values)

    assert alike(outcome(run, args), outcome(function, args), 1e-9)


@names_of_today
def test_it_reads_back(name):
    function = staged(name).function
    assert same(read(show(function)), function)


@pytest.mark.turns(3)
def test_staging_twice_gives_the_same_program():
    for name in SAMPLE:
        function, args = CASES[name]
        again = stage(function, fresh(args)).function
        assert show(again, canonical=True) == show(staged(name).function, canonical=True)
