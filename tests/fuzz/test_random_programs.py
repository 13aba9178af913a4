"""Random Python programs: Python = control stage = core = NumPy source = native; and derivatives, and lanes.

In: a few seeds, others each day. Out: agreement, or the smallest program that shows the fault.
`make fuzz` runs thousands from a fresh seed.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

import pytest
from turns import turn

from fuzz import campaign, loops, oracle
from fuzz.campaign import Search, judge
from fuzz.programs import Case
from fuzz.transformed import IMPORT
from metaphrase.core.ir import Function
from metaphrase.ops.arithmetic import add
from metaphrase.ops.compare import le

COUNT, SEEDS = 25, range(8)

PROGRAM = """
import numpy as np


def program(x, v):
    v = v.copy()
    for i in range(len(v)):
        if v[i] > x:
            v[i] = x
            break
    return {result}


ARGUMENTS = [(0.5, np.array([0.25, 1.0, 2.0])), (3.0, np.array([0.25, 1.0, 2.0]))]
{more}
"""


@pytest.mark.parametrize("seed", turn(SEEDS, 8))
def test_every_stage_agrees(seed):
    search = Search(seed, COUNT)
    search.run()
    faults = [f"{verdict.detail}\n{case.text}" for case, verdict in search.faults()]
    assert not faults, "\n\n".join(faults)
    assert len(search.verdicts) == COUNT
    refused = [v.kind for v in search.verdicts.values() if v.kind != "agrees"]
    assert len(refused) <= COUNT // 4, refused


@pytest.mark.parametrize(
    "plan, result, more",
    [("plain", "x, v", ""), ("sizes", "x, v", ""), ("vmap", "v", "AXES = (0, 1)"), ("grad", "np.sum(v * v)", "")],
)
def test_the_oracle_agrees_with_itself(plan, result, more):
    assert judge(Case(PROGRAM.format(result=result, more=more), plan != "grad", plan)).kind == "agrees"


@pytest.mark.parametrize("name, other", [("sub", add), ("gt", le)])
def test_the_oracle_notices_a_planted_fault(monkeypatch, name, other):
    """One operation of the core program exchanged for another."""
    case = Case(PROGRAM.format(result="x - v[0], v", more=""), True)
    assert judge(case).kind == "agrees"

    def changed(value):
        if isinstance(value, tuple):
            return tuple(map(changed, value)) if type(value) is tuple else value
        if not isinstance(value, Function):
            return value
        lets = []
        for let in value.lets:
            primitive = other if let.primitive.name == name else let.primitive
            attributes = {key: changed(attribute) for key, attribute in let.attributes.items()}
            lets.append(replace(let, primitive=primitive, attributes=attributes))
        return replace(value, lets=tuple(lets))

    run = oracle.evaluate
    monkeypatch.setattr(oracle, "evaluate", lambda function, *arrays: run(changed(function), *arrays))
    assert judge(case).kind == "evaluated core disagrees"


def test_the_loops_notice_a_planted_fault(monkeypatch):
    program = "def program(x, m, s):\n    return grad(lambda y: y * y * x[0])(s), vmap(lambda y: (y, m))(x)\n"
    sets = "ARGUMENTS = [(np.array([0.5, 1.0]), np.ones((2, 3)), 2.0)]\n"
    case = Case(f"import numpy as np\n{IMPORT}\n\n{program}\n\n{sets}", False, "transformed")
    assert judge(case).kind == "agrees"
    monkeypatch.setattr(loops, "grad", lambda f: lambda x: 0.0)
    assert judge(case).kind == "transformed disagrees"


class Worker:
    """A process of a campaign whose second batch crashes."""

    commands: list[list[str]]

    def __init__(self, command, **_):
        self.commands.append(command)
        seed, count = (int(command[command.index(name) + 1]) for name in ("--seed", "--programs"))
        batches = count // campaign.BATCH
        good = 5 - seed if seed <= 5 < seed + batches else batches
        self.returncode = -11 if good < batches else 0
        self.stdout = [f'BATCH {{"agrees": {campaign.BATCH}}}\n'] * good

    def wait(self):
        return self.returncode


def test_a_crash_is_pinned_and_the_other_batches_run(monkeypatch):
    monkeypatch.setattr(Worker, "commands", [], raising=False)
    monkeypatch.setattr(campaign.subprocess, "Popen", Worker)
    options = Namespace(folder="kept", plans="plain", refused=False, gpu=False)
    kinds, faults = campaign.share(options, seed=4, count=4 * campaign.BATCH)
    assert kinds == {"agrees": 3 * campaign.BATCH}
    assert faults == ["the process ended with -11: kept/now-5.py"] * 2
    assert ["--alone" in command for command in Worker.commands] == [False, True, False]
