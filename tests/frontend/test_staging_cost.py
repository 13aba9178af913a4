"""What translating may cost: linear in lines and in depth, and nothing for the trips of a loop.

In: the generated programs of benchmarks/staging.py. Out: the number of calls that staging makes (what a clock
would say, without the clock; the benchmark has the seconds), compared with each other, and results.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from corpus import alike, fresh
from corpus.published import doolittle

import metaphrase as mp
from metaphrase import pipeline
from metaphrase.astpasses.frontend.flow import loops
from metaphrase.astpasses.frontend.staging import reach
from metaphrase.astpasses.frontend.staging.stage import stage

PATH = Path(__file__).resolve().parents[2] / "benchmarks" / "staging.py"
_spec = importlib.util.spec_from_file_location("staging_benchmark", PATH)
assert _spec is not None and _spec.loader is not None
benchmark = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(benchmark)


def calls(text: str, name: str, args: tuple) -> int:
    """How many Python functions are called to stage a function that has not been seen before."""
    stage(benchmark.load(text, name), args)  # what is made once
    function = benchmark.load(text, name)
    return counted(lambda: stage(function, args))


def counted(run) -> int:
    count = 0

    def one_more(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(one_more)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_the_long_function_is_what_it_is_called():
    text = benchmark.long_function(500)
    body = text[text.index("def long_function") :]
    calls = sum(body.count(f"{helper}(") for helper in ("limited", "smooth", "energy", "settle", "pushed"))
    assert 480 <= body.count("\n") <= 520 and calls == 50


def test_the_long_function_gives_what_python_gives():
    text, name, args = benchmark.programs()["long, 100 lines"]
    function = benchmark.load(text, name)
    with mp.config(native=False):
        got = mp.jit(function)(*fresh(args))
    assert alike(got, function(*fresh(args)), 1e-9)


def test_staging_is_linear_in_the_lines():
    short = calls(*benchmark.programs()["long, 100 lines"])
    long = calls(*benchmark.programs()["long, 500 lines"])
    assert long < 5 * 1.5 * short


@pytest.mark.parametrize("kind", ["for", "if"])
def test_staging_is_no_power_of_the_depth(kind):
    args = (np.linspace(0.1, 1.0, 8), 4)
    shallow = calls(benchmark.nest(2, kind), "nested", args)
    deep = calls(benchmark.nest(8, kind), "nested", args)
    assert deep < 16 * shallow  # 2 ** 6 would be 64
    function = benchmark.load(benchmark.nest(6, kind), "nested")
    with mp.config(native=False):
        assert alike(mp.jit(function)(*args), function(*args), 1e-9)


def test_the_trips_of_a_loop_cost_nothing():
    few, many = (benchmark.programs()[name] for name in ("10 iterations", "100000 iterations"))
    assert benchmark.measured(*few, native=False)["lines"] == benchmark.measured(*many, native=False)["lines"]
    assert calls(*many) <= 1.1 * calls(*few)


def test_the_lengths_of_nested_comprehensions_cost_nothing():
    small, large = (benchmark.programs()[f"{n} by {n} values"] for n in (6, 60))
    sizes = [benchmark.measured(*program, native=False)["lines"] for program in (small, large)]
    assert max(sizes) < 150  # of 60, four rounds of a loop are written out
    assert calls(*large) <= 1.1 * calls(*small)
    function = benchmark.load(*small[:2])
    with mp.config(native=False):
        assert alike(mp.jit(function)(*small[2]), function(*small[2]), 1e-9)


def test_scheduling_is_linear_in_straight_code():
    def scheduled(lines: int) -> int:
        text, name, args = benchmark.programs()[f"{lines} numbers"]
        finished = pipeline.finished(stage(benchmark.load(text, name), args).function)
        return counted(lambda: pipeline.loops(finished))

    assert scheduled(400) < 4 * 1.5 * scheduled(100)


def test_all_objects_are_looked_at_only_where_a_store_may_be_refused(monkeypatch):
    """Lists that were joined at branches are written to; nearly all that were one with them can't be the same."""
    asked = []
    monkeypatch.setattr(reach, "collect_all", lambda: asked.append(1))
    stage(doolittle, (np.eye(8) + 0.125,))
    assert len(asked) < 8


class Count:
    """An object that loops change."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * x


def counted_in_nests(x):
    count, total = Count(), 0.0
    for i in range(x.shape[0]):
        total = total + count(x[i])
        for j in range(x.shape[0]):
            total = total + count(x[j])
            for k in range(x.shape[0]):
                total = total + count(x[k])
    return total, count.calls


def counted_where_no_text_says_it(x):
    count, total = Count(), 0.0
    for i in range(x.shape[0]):
        total = total + (count,)[0](x[i])
        for j in range(x.shape[0]):
            total = total + (count,)[0](x[j])
            for k in range(x.shape[0]):
                total = total + (count,)[0](x[k])
    return total, count.calls


def rate(y, t):
    """Longer than what is as well written out at each call."""
    for weight in (1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125):
        y = y + weight * (np.sin(y) - t * np.tanh(y)) / (1.0 + y @ y)
    return y


def called_in_nests(x):
    total = np.zeros_like(x)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            y = x * x[i] + x[j]
            for k in range(x.shape[0]):
                first = rate(y, x[k])
                second = rate(first, x[k])
                y = rate(first + second, x[k]) + rate(second, x[j]) / 2
            total = total + y
    return total


# Each loop is staged once; where the text does not say what changes, once more for each loop around, in which it is
# known then: were it found anew each time, 2, 4 and 8 times. What an iteration calls often needs no other pass.
@pytest.mark.parametrize(
    "function, times",
    [(counted_in_nests, (1, 1, 1)), (counted_where_no_text_says_it, (2, 3, 4)), (called_in_nests, (1, 1, 1))],
)
def test_what_a_loop_was_seen_to_change_is_known_in_the_next_pass_over_those_around(function, times, monkeypatch):
    passes = []
    plain = loops._pass
    monkeypatch.setattr(
        loops, "_pass", lambda here, loop, *rest: passes.append(loop.span.line) or plain(here, loop, *rest)
    )
    x = np.linspace(0.1, 1.0, 20)
    with mp.config(native=False):
        assert alike(mp.jit(function)(x), function(x), 1e-9)
    assert tuple(passes.count(line) for line in sorted(set(passes))) == times


# ---- collections of garbage: in processes of their own, where they don't go through all that other tests keep ------

MANY_STAGES = """
import gc, weakref
from metaphrase import interpreter
from metaphrase.interpreter import deep_calls

class Ring:
    def __init__(self):
        self.ring = self

gone = []
for _ in range(interpreter._BETWEEN_COLLECTIONS + 1):
    with deep_calls():
        gone.append(weakref.ref(Ring()))
assert sum(ring() is not None for ring in gone) == 1
print("done")
"""
OLDER_OBJECTS = """
import gc
from metaphrase import late
from metaphrase.interpreter import collect_all, deep_calls

if {frozen}:
    gc.freeze()
frozen = gc.get_freeze_count()
assert (frozen > 0) == {frozen}
with deep_calls():
    assert not frozen or gc.get_freeze_count() == frozen  # what others have frozen stays so
assert late._kept_out == bool(frozen)  # and is not counted again: counting goes through all of it
gc.unfreeze()
late._kept_out = False
with deep_calls():
    assert gc.get_freeze_count() > 1000
    collect_all()
    assert gc.get_freeze_count() > 1000
assert gc.get_freeze_count() == 0
print("done")
"""


def runs(program: str) -> None:
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_what_many_stages_leave_behind_is_collected():
    runs(MANY_STAGES)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_stage_leaves_older_objects_out_of_collections(frozen):
    runs(OLDER_OBJECTS.format(frozen=frozen))
