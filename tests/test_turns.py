"""Each case has its day, in each way that it is tested in."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace

import pytest
import turns
from turns import part, takes, turn

CASES = list(range(57))


@pytest.fixture(params=[False, True], ids=["quick", "all"])
def everything(request, monkeypatch):
    monkeypatch.setattr(turns, "QUICK", not request.param)
    return request.param


def test_each_case_has_one_day(everything):
    days = [turn(CASES, 8, thorough=2, day=day) for day in range(100, 102 if everything else 108)]
    assert sorted(sum(days, [])) == CASES


def test_all_are_taken_where_all_are_asked_for(everything):
    assert (turn(CASES, 4, day=3) == CASES) == everything


def test_each_case_of_a_turn_has_each_way(everything):
    """Four days give all cases, and six such rounds all cases in each of the two ways."""
    seen = {k: set() for k in range(2)}
    for day in range(1000, 1024):
        today = turn(CASES, 4, day=day)
        for k in seen:
            some = part(today, 6, of=4, first=k, day=day)
            assert set(some) <= set(today)
            seen[k] |= set(some)
    assert seen[0] == seen[1] == set(CASES)


@pytest.mark.turns(3)
def test_a_marked_test_has_one_day_of_three(request, everything):
    days = [takes(request.node, day) for day in range(100, 103)]
    assert sum(days) == (3 if everything else 1)


@pytest.mark.parametrize("mark", [pytest.mark.turns(5), pytest.mark.turns(5, together=True)], ids=["apart", "together"])
def test_cases_have_days_of_their_own_or_that_of_their_file(mark, everything):
    names = [f"test_sum[{k}]" for k in range(60)]
    items = [
        SimpleNamespace(name=name, nodeid=f"tests/test_sums.py::{name}", get_closest_marker=lambda _: mark.mark)
        for name in names
    ]
    days = [{item.name for item in items if takes(item, day)} for day in range(100, 105)]
    assert set().union(*days) == set(names)
    if everything:
        assert all(day == set(names) for day in days)
    else:
        assert sum(map(len, days)) == len(names)
        assert sorted(map(bool, days)) == ([False] * 4 + [True] if mark.mark.kwargs else [True] * 5)


def calls_of(node: ast.AST) -> set[str]:
    return {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}


def waits_twice(text: str) -> list[str]:
    """Tests that have both a mark and cases of a turn: their days may never meet."""
    module = ast.parse(text)
    chosen = {"names_of_today", "TODAY"} | {
        name.id
        for node in module.body
        if isinstance(node, ast.Assign) and {"turn", "part"} & calls_of(node)
        for name in node.targets
        if isinstance(name, ast.Name)
    }
    marked = any(
        "pytestmark" in ast.unparse(node).split(" =")[0] and "turns" in ast.unparse(node) for node in module.body
    )
    found = []
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            decorators = node.decorator_list
            names = {part.id for d in decorators for part in ast.walk(d) if isinstance(part, ast.Name)}
            in_turn = any({"turn", "part"} & calls_of(d) for d in decorators) or names & chosen
            if in_turn and (marked or any("pytest.mark.turns" in calls_of(d) for d in decorators)):
                found.append(node.name)
    return found


def test_no_case_waits_for_two_turns_at_once():
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    assert {path.name: found for path in files if (found := waits_twice(path.read_text()))} == {}


def test_a_case_that_waits_twice_is_seen():
    case = '@pytest.mark.parametrize("name", turn(NAMES, 2))\ndef test_names(name): ...\n'
    assert waits_twice(case) == [] and waits_twice(f"@pytest.mark.turns(4)\n{case}") == ["test_names"]
    assert waits_twice(f"pytestmark = pytest.mark.turns(3)\n{case}") == ["test_names"]
    assert waits_twice("TODAY = turn(NAMES, 2)\n@pytest.mark.turns(4)\n" + case.replace("turn(NAMES, 2)", "TODAY"))
