"""Random programs that share, swap, view and write arrays: NumPy's aliasing, or a refusal that says so."""

from __future__ import annotations

import itertools
import linecache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.source import UnsupportedError

pytestmark = pytest.mark.turns(4, together=True)

numbers = itertools.count()
ARRAYS = ("a", "b", "c", "p")
outcomes = {"run": 0, "refused": 0}


@st.composite
def statements(draw):
    one, two = draw(st.sampled_from(ARRAYS)), draw(st.sampled_from(ARRAYS))
    return draw(
        st.sampled_from(
            [
                f"{one} = {two}",
                f"{one} = {two} * 0.5",
                f"{one}, {two} = {two}, {one}",
                f"{one}[0] = {two}[1]",
                f"{one}[1:] = {two}[:-1] + 1",
                f"{one} += {two}",
                f"{one} = {two}[::-1]",
                f"{one} = {two}.copy()",
                f"t = t + {one}[2]",
                f"{one}[2] = t",
            ]
        )
    )


@st.composite
def blocks(draw, depth):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 5)) if depth else 0
        if kind <= 3:
            lines.append(draw(statements()))
        elif kind == 4:
            lines += [f"if {draw(st.sampled_from(ARRAYS))}[0] > t:", *indent(draw(blocks(depth - 1)))]
            if draw(st.booleans()):
                lines += ["else:", *indent(draw(blocks(depth - 1)))]
        else:
            count = draw(st.sampled_from(["n", "5", "1"]))
            lines += [f"for _ in range({count}):", "    t = 0.5 if abs(t) > 20 else t"]
            lines += indent(draw(blocks(depth - 1)))
    return lines


def indent(lines):
    return ["    " + line for line in lines]


@st.composite
def programs(draw):
    head = ["def program(p, t, n):", "    a = p * 2", "    b = np.zeros(3)", "    c = p.copy()"]
    tail = ["    return t, a, b, c, p"]
    return "\n".join([*head, *indent(draw(blocks(2))), *tail]) + "\n"


def compiled(text):
    file = f"<random aliases {next(numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"np": np}
    exec(compile(text, file, "exec"), scope)
    return scope["program"]


def arguments(n):
    return np.array([1.5, -0.5, 2.0]), 0.75, n


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs())
def test_aliases(text):
    function = compiled(text)
    with np.errstate(all="ignore"):
        try:
            staged = stage(function, arguments(3))
        except UnsupportedError as refusal:
            assert refusal.code in ("alias", "loop", "join"), text
            outcomes["refused"] += 1
            return
        outcomes["run"] += 1
        check(staged.function)
        for n in (3, 0, 1, 4):
            if n != 3 and staged.pinned:
                continue
            expected_args, args = arguments(n), arguments(n)
            expected = function(*expected_args)
            found = staged.result(evaluate(staged.function, *staged.arguments(args)), args)
            for a, b in zip((*found, args[0]), (*expected, expected_args[0])):
                np.testing.assert_allclose(a, b, rtol=1e-9, err_msg=text)


def test_most_programs_are_not_refused():
    if not outcomes["run"]:
        test_aliases()
    assert outcomes["run"] > 3 * outcomes["refused"], outcomes
