"""Random programs of branches, loops and jumps: Python = normal form = control stage = staged program."""

from __future__ import annotations

import itertools
import linecache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metaphrase.astpasses.frontend.convert import converted
from metaphrase.astpasses.frontend.normal import normal
from metaphrase.astpasses.frontend.plain import stager
from metaphrase.astpasses.frontend.stage import stage
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.read import read
from metaphrase.core.show import same, show

numbers = itertools.count()
NAMES = ("x", "y", "z", "k")


@st.composite
def expressions(draw, depth=0):
    kind = draw(st.integers(0, 9 if depth < 2 else 2))
    if kind <= 1:
        return draw(st.sampled_from(NAMES))
    if kind == 2:
        return repr(draw(st.sampled_from([0.5, 1.0, 2.0, -1.5, 3.0])))
    a, b = draw(expressions(depth + 1)), draw(expressions(depth + 1))
    if kind <= 5:
        return f"({a} {draw(st.sampled_from('+-*'))} {b})"
    if kind == 6:
        return f"({a} if {draw(conditions())} else {b})"
    if kind == 7:
        return f"np.minimum({a}, {b})"
    if kind == 8:
        return f"helper({a}, {b})"
    return f"v[{draw(st.integers(-3, 2))}]"


@st.composite
def conditions(draw):
    a, b = draw(st.sampled_from(NAMES)), draw(st.sampled_from((*NAMES, "0.7", "2.0")))
    kind = draw(st.integers(0, 5))
    plain = f"{a} {draw(st.sampled_from(['<', '<=', '>', '>=']))} {b}"
    if kind == 4:
        return f"({plain} and {draw(st.sampled_from(NAMES))} > -1)"
    if kind == 5:
        return f"-2.0 < {a} <= {b}"
    return plain


@st.composite
def blocks(draw, depth, in_loop):
    lines = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 11))
        name = draw(st.sampled_from(NAMES[:3]))
        if kind <= 3 or depth == 0:
            operator = draw(st.sampled_from(["=", "=", "+=", "-="]))
            lines.append(f"{name} {operator} {draw(expressions())}")
        elif kind == 4:
            lines.append(
                f"v[{draw(st.integers(0, 2))}] {draw(st.sampled_from(['=', '+=']))} {draw(expressions())}"
            )
        elif kind <= 6:
            lines.append(f"if {draw(conditions())}:")
            lines += indent(draw(blocks(depth - 1, in_loop)))
            if draw(st.booleans()):
                lines.append("else:")
                lines += indent(draw(blocks(depth - 1, in_loop)))
        elif kind == 7:
            counter = f"c{next(numbers)}"
            lines += [
                f"{counter} = 0",
                f"while {counter} < {draw(st.integers(1, 5))} and {draw(conditions())}:",
                f"    {counter} += 1",
                "    x = clip(x)",
                "    y = clip(y)",
                "    z = clip(z)",
            ]
            lines += indent(draw(blocks(depth - 1, True)))
        elif kind <= 9:
            target = "k" if draw(st.booleans()) else f"i{next(numbers)}"
            source = draw(st.sampled_from(["range(5)", "range(n)", "v", "range(1, n + 1)"]))
            lines += [f"for {target} in {source}:", "    x = clip(x)", "    y = clip(y)", "    z = clip(z)"]
            lines += indent(draw(blocks(depth - 1, True)))
            if draw(st.integers(0, 4)) == 0:
                lines += ["else:", *indent(draw(blocks(depth - 1, in_loop)))]
        elif kind == 10 and in_loop:
            jump = draw(st.sampled_from(["break", "continue", "return x, z, v"]))
            lines += [f"if {draw(conditions())}:", f"    {jump}"]
        else:
            lines += [f"if {draw(conditions())}:", f"    return {name}, y, v"]
    return lines


def indent(lines):
    return ["    " + line for line in lines]


@st.composite
def programs(draw):
    body = draw(blocks(2, False))
    head = ["def program(x, y, n, v):", "    z = x - y", "    k = n * 1.0", "    v = v.copy()"]
    tail = ["    return x + z, y, v"]
    return "\n".join([*head, *indent(body), *tail]) + "\n"


def clip(x):
    return x if -50.0 < x < 50.0 else 0.25


def helper(a, b):
    if a > b:
        return a - b
    return a * 0.5


def compiled(text):
    file = f"<random program {next(numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope = {"np": np, "clip": clip, "helper": helper}
    exec(compile(text, file, "exec"), scope)
    return scope["program"]


def flat(result):
    return [np.asarray(r, np.float64) for r in result]


ARGUMENTS = [(1.5, -0.5, 3), (0.2, 2.5, 0), (-3.0, 1.0, 6)]


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(programs())
def test_every_stage_agrees(text):
    function = compiled(text)
    controlled = converted(function, stager)
    scope = dict(function.__globals__)
    exec(normal(function).text(), scope)
    v = np.array([0.5, -1.0, 2.0])
    staged = stage(function, (*ARGUMENTS[0], v))
    check(staged.function)
    assert same(read(show(staged.function)), staged.function)
    for args in ARGUMENTS:
        expected = flat(function(*args, v))
        for other in (scope["program"], controlled):
            for a, b in zip(flat(other(*args, v)), expected):
                np.testing.assert_array_equal(a, b)
        values = (*args, v)
        if staged.pinned and args != ARGUMENTS[0]:
            continue
        found = flat(staged.result(evaluate(staged.function, *staged.arguments(values)), values))
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=text)


def test_the_test_would_notice():
    function = compiled("def program(x, y, n, v):\n    return x + 1, y, v\n")
    wrong = compiled("def program(x, y, n, v):\n    return x + 2, y, v\n")
    args = (1.0, 2.0, 3, np.ones(3))
    staged = stage(wrong, args)
    found = flat(staged.result(evaluate(staged.function, *staged.arguments(args)), args))
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(found[0], flat(function(*args))[0])
