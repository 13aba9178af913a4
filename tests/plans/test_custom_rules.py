"""Plans of programs with derivative rules of the user's own: another process finds them, and notices another rule.

In: a project whose functions and rules stand in two modules, run once; then with one rule changed. Out: the
derivatives that the rules say, and whether anything was translated.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from plans.process import report

pytestmark = pytest.mark.turns(6)

SHAPES = """
import numpy as np
import formulas

import metaphrase as mp


@mp.custom_jvp
def soft(x):
    return np.log1p(np.exp(x))


@soft.defjvp
def soft_jvp(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return soft(x), formulas.slope(x) * x_dot


@mp.custom_vjp
def clipped(x):
    return x


def clipped_fwd(x):
    return x, None


def clipped_bwd(_, bar):
    return (np.clip(bar, -1.0, 1.0),)


clipped.defvjp(clipped_fwd, clipped_bwd)
"""
FORMULAS = """
def slope(x):
    return x * 2.0
"""
MAIN = """
import json
import sys

import numpy as np
from shapes import clipped, soft

import metaphrase as mp


slope = mp.jit(mp.grad(lambda v: np.sum(soft(v) + clipped(v) * 3.0)))
value = mp.jit(lambda v: np.sum(soft(v)))
got = [*slope(np.array([0.5, 1.0, -2.0])).tolist(), float(value(np.ones(2)))]
print(json.dumps({"got": got, "translated": "metaphrase.astpasses.frontend.staging.stage" in sys.modules}))
"""
WANT = [1.0 + 1.0, 2.0 + 1.0, -4.0 + 1.0, 2.6265233750364456]
LOCAL = """
import json
import sys

import metaphrase as mp


def local(scale):
    @mp.custom_jvp
    def held(x):
        return x * scale

    @held.defjvp
    def held_jvp(primals, tangents):
        return held(*primals), tangents[0] * 7.0

    return mp.jit(mp.grad(held))


print(json.dumps({"got": float(local(3.0)(2.0)), "translated": "metaphrase.astpasses.frontend" in sys.modules}))
"""
OWN_MODEL = """
import numpy as np

SCALE = 2.0


def energy(x):
    return SCALE * np.sum(x * x)
"""
OWN_RULE = """
import numpy as np
from model import energy

import metaphrase as mp


@mp.derivative_of(energy, check=False)
def energy_backward(x, bar):
    return (7.0 * x * bar,)
"""
OWN_MAIN = """
import json
import os
import sys

import model
import numpy as np

import metaphrase as mp

if os.environ["RULE"] == "1":
    import rule
got = [mp.jit(mp.grad(f))(np.ones(1)).tolist() for f in (model.energy, lambda x: model.energy(x) * 10.0)]
print(json.dumps({"got": sum(got, []), "translated": "metaphrase.astpasses.frontend.staging.stage" in sys.modules}))
"""
Run = Callable[..., dict]


@pytest.fixture
def project(tmp_path) -> Run:
    def run(*edits: tuple[str, str, str]) -> dict:
        texts = {"shapes": SHAPES, "formulas": FORMULAS, "main": MAIN}
        for module, old, new in edits:
            assert texts[module].count(old) == 1, old
            texts[module] = texts[module].replace(old, new)
        for module, text in texts.items():
            (tmp_path / f"{module}.py").write_text(text)
        return report(tmp_path / "main.py", METAPHRASE_CACHE_DIR=str(tmp_path / "cache"))

    return run


def test_a_plan_is_found_and_a_changed_rule_noticed(project):
    first = project()
    assert first["translated"] and first["got"] == pytest.approx(WANT, abs=1e-12)
    again = project()
    assert not again["translated"] and again["got"] == first["got"]
    rule = project(("shapes", "formulas.slope(x) * x_dot", "formulas.slope(x) * x_dot * 2.0"))
    assert rule["translated"] and rule["got"][:3] == pytest.approx([3.0, 5.0, -7.0])
    elsewhere = project(("formulas", "x * 2.0", "x * 4.0"))
    assert elsewhere["translated"] and elsewhere["got"][:3] == pytest.approx([3.0, 5.0, -7.0])
    backward = project(("shapes", "-1.0, 1.0", "-2.0, 2.0"))
    assert backward["translated"] and backward["got"][:3] == pytest.approx([3.0, 4.0, -2.0])
    other = project(
        ("shapes", "clipped.defvjp(clipped_fwd, clipped_bwd)", "clipped.defvjp(clipped_fwd, lambda _, b: (b,))")
    )
    assert other["translated"] and other["got"][:3] == pytest.approx([4.0, 5.0, -1.0])
    back = project()
    assert not back["translated"] and back["got"] == first["got"]


def test_a_rule_that_nothing_names_is_translated_in_each_process(tmp_path):
    program = tmp_path / "main.py"
    for factor in (7.0, 8.0):
        program.write_text(LOCAL.replace("* 7.0", f"* {factor}"))
        for _ in range(2):
            assert report(program, METAPHRASE_CACHE_DIR=str(tmp_path / "cache")) == {"got": factor, "translated": True}


def test_a_plan_is_for_the_rule_that_derivative_of_gave_or_for_none(tmp_path):
    """Of the function itself, which is in the plan's key, and of one that calls it, where guards tell."""

    def run(rule: bool, factor: float = 7.0) -> dict:
        (tmp_path / "rule.py").write_text(OWN_RULE.replace("7.0", str(factor)))
        return report(tmp_path / "main.py", METAPHRASE_CACHE_DIR=str(tmp_path / "cache"), RULE=str(int(rule)))

    (tmp_path / "model.py").write_text(OWN_MODEL)
    (tmp_path / "main.py").write_text(OWN_MAIN)
    assert run(False) == {"got": [4.0, 40.0], "translated": True}
    assert run(True) == {"got": [7.0, 70.0], "translated": True}
    assert run(False) == {"got": [4.0, 40.0], "translated": False}
    assert run(True) == {"got": [7.0, 70.0], "translated": False}
    assert run(True, 8.0) == {"got": [8.0, 80.0], "translated": True}
