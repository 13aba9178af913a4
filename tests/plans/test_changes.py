"""A plan on disk serves a process in which all is as it was, and no other: one change a test.

In: a small project of two modules, run once. Then one thing is changed in it, and it is run again with the same
cache. Out: Python's results, and whether anything was translated.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from plans.process import report

pytestmark = pytest.mark.turns(12)

PHYSICS = """
import dataclasses
import enum
import functools
import os

import numpy as np

import metaphrase as mp

GRAVITY = 9.5
TABLE = {"drag": 0.25, "lift": [1.0, 2.0]}
WEIGHTS = np.array([1.0, 2.0, float(os.environ.get("THIRD", "3.0"))])


class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


@dataclasses.dataclass(frozen=True)
class Options:
    power: int = 2
    mode: Mode = Mode.FAST


OPTIONS = Options()


def base(v):
    return v + 1.0


def damped(v, rate=0.5):
    return base(v) * rate


class Body:
    mass = 2.0

    def __init__(self, size):
        self.size = size

    @property
    def weight(self):
        return self.mass * GRAVITY

    def force(self, v):
        return v * self.weight + self.size


def scaled(factor):
    def scale(v):
        return v * factor
    return scale


@mp.jit
def inner(v):
    return v - 0.125


shifted = functools.partial(damped, rate=0.75)
"""

MAIN = """
import json
import sys

import numpy as np
import physics
from physics import OPTIONS, TABLE, Body, Mode, damped, inner, scaled, shifted

import metaphrase as mp

body = Body(1.5)
twice = scaled(2.0)
STEPS = (1.0, 2.0)


@mp.jit
def step(v, k=2):
    total = damped(v) * body.force(v) + twice(v) * TABLE["drag"]
    if OPTIONS.mode is Mode.FAST:
        total = total ** OPTIONS.power
    for s in STEPS:
        total = total + s * physics.WEIGHTS.sum() * len(TABLE["lift"])
    return inner(total) + shifted(v) * k


slope = mp.jit(mp.grad(lambda v: step(v).sum()))
v = np.array([0.5, 1.0, -2.0])
got = [step(v).tolist(), slope(v).tolist()]
with mp.disable_jit():
    want = step(v).tolist()
near = max(abs(a - b) for a, b in zip(got[0], want)) < 1e-12
translated = "metaphrase.astpasses.frontend.staging.stage" in sys.modules
print(json.dumps({"got": got, "right": near, "translated": translated}))
"""

Run = Callable[..., dict]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """project(*edits, **environment): what the program says, with these (module, old text, new text) in it."""
    place = tmp_path_factory.mktemp("project")

    def run(*edits: tuple[str, str, str], **environment: str) -> dict:
        texts = {"physics": PHYSICS, "main": MAIN}
        for module, old, new in edits:
            assert texts[module].count(old) == 1, old
            texts[module] = texts[module].replace(old, new)
        for module, text in texts.items():
            (place / f"{module}.py").write_text(text)
        return report(place / "main.py", METAPHRASE_CACHE_DIR=str(place / "cache"), **environment)

    first = run()
    assert first["right"] and first["translated"]
    run.first = first  # type: ignore[attr-defined]
    run.place = place  # type: ignore[attr-defined]
    return run


def test_nothing_is_translated_where_all_is_as_it_was(project):
    again = project()
    assert not again["translated"] and again["got"] == project.first["got"]


CHANGES = {
    "a global number": ("physics", "GRAVITY = 9.5", "GRAVITY = 9.0"),
    "a helper's code": ("physics", "return v + 1.0", "return v + 1.5"),
    "a default value": ("physics", "rate=0.5)", "rate=0.25)"),
    "the function itself": ("main", "total ** OPTIONS.power", "total * OPTIONS.power"),
    "its default value": ("main", "k=2)", "k=3)"),
    "what a closure holds": ("main", "scaled(2.0)", "scaled(3.0)"),
    "the code of a closure": ("physics", "return v * factor", "return v / factor"),
    "a method": ("physics", "return v * self.weight + self.size", "return v * self.weight - self.size"),
    "a property": ("physics", "return self.mass * GRAVITY", "return self.mass + GRAVITY"),
    "an attribute of a class": ("physics", "mass = 2.0", "mass = 2.5"),
    "an attribute of an object": ("main", "Body(1.5)", "Body(1.75)"),
    "an attribute of another type": ("main", "Body(1.5)", "Body(np.float32(1.5))"),
    "an item of a dict": ("physics", '"drag": 0.25', '"drag": 0.5'),
    "the length of a list": ("physics", "[1.0, 2.0]}", "[1.0, 2.0, 3.0]}"),
    "a field of a dataclass": ("physics", "OPTIONS = Options()", "OPTIONS = Options(3)"),
    "a member of an enum": ("physics", "OPTIONS = Options()", "OPTIONS = Options(mode=Mode.SLOW)"),
    "the items of a tuple": ("main", "STEPS = (1.0, 2.0)", "STEPS = (1.0, 2.0, 3.0)"),
    "the dtype of an array": ("physics", "WEIGHTS = np.array", "WEIGHTS = np.array([1, 2, 3])\nUNUSED = np.array"),
    "the shape of an array": ("physics", "WEIGHTS = np.array", "WEIGHTS = np.ones((2, 2))\nUNUSED = np.array"),
    "a jitted function": ("physics", "return v - 0.125", "return v - 0.25"),
    "what a partial holds": ("physics", "rate=0.75)", "rate=0.5 * 1.5 + 0.25)"),
    "a name for another function": ("main", "twice = scaled(2.0)", "twice = np.cos"),
    "a class for another": ("main", "body = Body(1.5)", "class Ball(Body):\n    mass = 4.0\n\n\nbody = Ball(1.5)"),
    "a builtin's name": ("main", "STEPS = (1.0, 2.0)", "STEPS = (1.0, 2.0)\nlen = lambda v: 7"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_noticed(project, change):
    changed = project(CHANGES[change])
    assert changed["translated"] and changed["right"], change
    assert changed["got"] != project.first["got"] or change in ("an attribute of another type", "the dtype of an array")
    back = project()
    assert not back["translated"] and back["got"] == project.first["got"]


def test_another_value_of_an_array_is_no_change(project):
    project()
    other = project(THIRD="4.0")
    assert other["right"] and not other["translated"] and other["got"] != project.first["got"]


def test_lines_that_move_keep_messages_right(project):
    moved = project(("main", "import json\n", "import json\n\n# one line more\n"))
    assert moved["right"] and moved["translated"]


@pytest.mark.parametrize(
    "environment",
    [{"METAPHRASE_CONTRACT": "0"}, {"METAPHRASE_FUSE": "0"}, {"METAPHRASE_PLANS": "0"}, {"METAPHRASE_CACHE": "0"}],
)
def test_settings_are_part_of_a_plan(project, environment):
    assert project(**environment)["translated"]


def damaged(plan: Path) -> None:
    plan.write_text(plan.read_text().replace("f64", "f32", 1))


def cut(plan: Path) -> None:
    plan.write_text(plan.read_text()[:200])


def open_to_all(plan: Path) -> None:
    plan.chmod(0o666)


def emptied(plan: Path) -> None:
    plan.write_text("")


@pytest.mark.parametrize("harm", [damaged, cut, open_to_all, emptied])
def test_a_damaged_plan_is_made_anew(project, harm):
    project()
    plans = list((project.place / "cache").glob("texts-*/*.py"))
    assert plans
    for plan in plans:
        harm(plan)
    healed = project()
    assert healed["right"] and healed["translated"]
    assert not project()["translated"]


def test_a_plan_of_another_call_is_none_of_this_one(project):
    """Whatever has put it there: its first line names the call."""
    project()
    one, other = [path for path in (project.place / "cache").glob("texts-*/*.py") if path.stat().st_size][:2]
    here, there = one.read_bytes(), other.read_bytes()
    assert here != there
    one.write_bytes(there)
    other.write_bytes(here)
    healed = project()
    assert healed["right"] and healed["translated"]
    assert not project()["translated"]


def test_a_plan_whose_library_is_gone_is_made_anew(project):
    for library in (project.place / "cache").glob("*/library.so"):
        library.unlink()
    healed = project()
    assert healed["right"] and healed["translated"] and not project()["translated"]


def test_plans_read_as_python(project):
    project()
    texts = [path.read_text() for path in (project.place / "cache").glob("texts-*/*.py")]
    assert any("Item(Globals(), 'TABLE')" in text and compile(text, "a plan", "eval") for text in texts)


PROCESS = """
import json, sys, logging, os
import numpy as np
import metaphrase as mp

token = object()


@mp.jit
def told(x):
    return x * {expression}


x = np.ones(2)
got = told(x).tolist()
print(json.dumps({{"got": got, "translated": "metaphrase.astpasses.frontend.staging.stage" in sys.modules}}))
"""


@pytest.mark.parametrize(
    "expression", ["(id(token) % 1000)", "(hash('word') % 1000)", "logging.getLogger().level", "os.cpu_count()"]
)
def test_what_only_this_process_knows_is_not_kept(tmp_path, expression):
    program = tmp_path / "main.py"
    program.write_text(PROCESS.format(expression=expression))
    for _ in range(2):
        assert report(program, METAPHRASE_CACHE_DIR=str(tmp_path / "cache"))["translated"]
