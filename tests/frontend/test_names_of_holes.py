"""A user's variables may be called like the holes of the front end's templates.

In: programs that bind one name in every way that there is. Out: for each name of a hole, what Python gives.
"""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from metaphrase.astpasses.frontend import rewrite
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.evaluate import evaluate

TEXTS = [path.read_text() for path in Path(rewrite.__file__).parent.glob("*.py")]
HOLES = sorted(
    {
        hole
        for text in TEXTS
        for call in re.findall(r"(?:statements|expression)\((.*)\)", text)
        for hole in re.findall(r"\b([a-z_]+)=", call)
    }
)

PROGRAM = """
def parameter(NAME):
    total = 0.0
    for k in range(3):
        if NAME[k] > 1:
            total = total + NAME[k]
    return total + sum([2 * v for v in NAME])

def of_loop(x):
    total = 0.0
    for NAME in x:
        total = total + NAME
        if total > 4:
            break
    else:
        total = -total
    return total + NAME

def of_while(x):
    NAME = x[0]
    while NAME < 10:
        NAME = 2 * NAME
        if NAME > 7:
            return NAME
    return -NAME

def of_branch(x):
    if x[0] > 0:
        NAME = x[0] + 1
    else:
        NAME = 0.0
    return NAME if NAME > 1 and x[1] > 0 else -NAME

def of_comprehension(x):
    made = {"a": x[0], "b": x[1]}
    low = sum([2 * NAME for NAME in made.values()]) + sum(NAME for NAME in x)
    pairs = [(NAME, v) for NAME, v in made.items()]
    high = max(map(lambda NAME: NAME + 1, x))
    return low + sum({k: NAME for k, NAME in pairs}["a"] for _ in range(2)) + high

def of_closure(x):
    NAME = x[0]

    def moved(y):
        nonlocal NAME
        NAME = NAME + y
        return NAME

    return moved(1.0) + moved(2.0) + (lambda NAME=3.0: NAME + 1)()

def of_walrus(x):
    return (NAME if (NAME := x[0] * 2) > 1 else 0.0) + NAME

def of_try(x):
    total = 0.0
    try:
        NAME = x[1]
        total = total + NAME
    finally:
        total = total + 1
    return total

def of_unpacking(x):
    (NAME, second), *others = (x[0], x[1]), x[2], x[0]
    NAME, second = second, NAME
    for k, NAME in enumerate(others):
        second = second + k * NAME
    return NAME + second

def of_match(x, kind="up"):
    match (kind, 3):
        case ("up", NAME):
            return x[0] + NAME
        case _:
            return x[0]

def of_keyword(x):
    def until(y, *, NAME=2.0):
        while y < 5:
            y = y + NAME
        return y

    return until(x[0]) + until(x[1], NAME=x[2])

def NAME(x):
    return x[0] + 1 if x[1] > 0 else x[0]
"""
FUNCTIONS = re.findall(r"^def (\w+)\(", PROGRAM, re.M)


def module_of(tmp_path, name):
    path = tmp_path / f"holes_{name}.py"
    path.write_text(PROGRAM.replace("NAME", name))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_holes():
    assert {"value", "body", "test"} <= set(HOLES)


@pytest.mark.parametrize("name", HOLES)
def test_every_name_can_be_bound_in_every_way(tmp_path, name):
    module, x = module_of(tmp_path, name), np.array([1.0, 2.0, 0.5])
    for function in FUNCTIONS:
        run = getattr(module, function.replace("NAME", name))
        staged = stage(run, (x,))
        (got,) = evaluate(staged.function, x)
        np.testing.assert_array_equal(got, run(x), err_msg=function)
