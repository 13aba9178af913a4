"""Loops that threads share: the same numbers however many threads there are, wherever the parts begin.

Parts are made so small here that every parallel loop of the programs has several.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differential import close
from grouped import build
from programs import PROGRAMS
from test_lockstep import branching, escape, lanes_of
from test_parallel import check_backwards
from thread_counts import thread_counts
from turns import turn

from metaphrase.astpasses.emit.cython_text import emit
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.schedule.nest import CallFn, Check, For, If, While, walk
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.core.build import trace
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import Array, f32, f64, type_of
from metaphrase.ops.arithmetic import add, mul
from metaphrase.ops.elementary import sin
from metaphrase.ops.linear_algebra import cholesky
from metaphrase.ops.reduce import reduce_max, reduce_sum
from metaphrase.ops.samples import SAMPLES
from metaphrase.ops.sorting import sort

SMALL = replace(CPU, a_part=20, few=2, block=2)
LARGE = replace(SMALL, whole=0)  # what is cut is under names that say nothing
n, m = Sym("n"), Sym("m")
random = np.random.default_rng(7)


def shared(program) -> list[For]:
    return [
        s for fn in (program.entry, *program.fns) for s in walk(fn.body) if isinstance(s, For) and s.parts is not None
    ]


def check(cases, target=SMALL, ulps: int = 64) -> None:
    """As Python loops and natively, to the bit the same with 1, 2 and 3 threads."""
    programs = {k: schedule(function, target, checked=True) for k, (function, _) in enumerate(cases)}
    compiled = build({k: function for k, (function, _) in enumerate(cases)}, programs, contract=True)
    for k, (function, arrays) in enumerate(cases):
        want = evaluate(function, *arrays)
        runs = [python_loops.run(programs[k], *arrays)]
        for _ in thread_counts(1, 2, 3):
            runs.append(compiled[k].run(arrays))
        for got in runs:
            assert all(close(g, w, ulps) for g, w in zip(got, want, strict=True)), python_loops.text(programs[k])
        for got in runs[2:]:
            assert [np.asarray(g).tobytes() for g in got] == [np.asarray(w).tobytes() for w in runs[1]]


@pytest.mark.parametrize("target", [SMALL, LARGE], ids=["whole", "in pieces"])
@pytest.mark.parametrize("name", turn(PROGRAMS, 6))
def test_programs(name, target):
    function, cases = PROGRAMS[name]
    cases = cases if isinstance(cases, list) else [cases[0]]
    check([(function, arrays) for arrays in cases], target, ulps=256)
    check_backwards(function, *cases[0], target=target, ulps=256)


def test_most_programs_have_loops_that_are_shared():
    counts = {name: len(shared(schedule(PROGRAMS[name][0], SMALL))) for name in PROGRAMS}
    assert sum(count > 0 for count in counts.values()) > 0.6 * len(counts), counts


def test_primitives():
    cases = []
    names = sorted(n for n in REGISTRY if REGISTRY[n].effect is None and not REGISTRY[n].transient)
    for name in turn(names, 10):
        for sample in SAMPLES[name]:
            params = [(f"x{k}", type_of(np.asarray(a))) for k, a in enumerate(sample.args)]
            rule = REGISTRY[name]
            function = trace(f"use_{name}", lambda *a, s=sample, rule=rule: rule(*a, **s.attributes) or (), params)
            cases.append((function, sample.args))
    assert len(cases) > 80
    for first in range(0, len(cases), 60):
        check(cases[first : first + 60], ulps=2**12)


@pytest.mark.parametrize("function", [escape(), branching()], ids=["escape", "branching"])
def test_lanes_in_lockstep(function):
    batched = lanes_of(function, [True] * len(function.params))
    arrays = tuple(random.uniform(-2, 1, 331) for _ in batched.params)
    check([(batched, arrays)], ulps=2**30)
    many = [s for s in shared(schedule(batched, SMALL)) if s.parts.several or s.parts.whole != s.parts.length]
    assert any(isinstance(s, While) for fn in schedule(batched, SMALL).fns for s in walk(fn.body)) and many


def test_lines_are_sorted_by_several_threads():
    function = trace("lines", lambda x: sort(x, axis=1), [("x", Array(f64, (n, 40)))])
    check([(function, (random.normal(size=(70, 40)),))])


def test_the_threads_of_a_library_wait_while_ours_call_it():
    function = trace("factor", lambda a: cholesky(a), [("a", Array(f64, (n, 4, 4)))])
    program = schedule(function, SMALL)
    assert len(shared(program)) == 1 and "mp_share_of_blas(c, " in emit(program).text
    sorting = schedule(trace("rows", lambda a: sort(a, axis=1), [("a", Array(f64, (n, 4)))]), SMALL)
    assert shared(sorting) and "mp_share(c, " in emit(sorting).text


def test_a_product_that_threads_share_by_itself_is_in_no_shared_loop():
    def products(size):
        sides = [(name, Array(f64, (n, size, size))) for name in "ab"]
        rule = REGISTRY["dot_general"]
        function = trace("products", lambda a, b: rule(a, b, contract=((2,), (1,)), batch=((0,), (0,))), sides)
        return schedule(function, CPU)

    assert shared(products(100)) and not shared(products(200)) and shared(products(m))
    conditions = [s for s in walk(products(m).entry.body) if isinstance(s, If)]
    assert len(conditions) == 1 and any(isinstance(s, For) and s.parts for s in conditions[0].then)


def test_places_that_are_further_apart_than_a_part_is_long():
    """In a function of a part it is not said how long the loop was."""
    rule = REGISTRY["concatenate"]
    function = trace("both", lambda a, b: rule(sin(a), sin(b), axis=0), [(k, Array(f64, (3, 4))) for k in "ab"])
    for target in (SMALL, LARGE, replace(SMALL, whole=-1, call=0)):
        check([(function, (random.normal(size=(3, 4)), random.normal(size=(3, 4))))], target)


def norms(x):
    return sin(mul(x, x)), reduce_sum(mul(x, x), axes=(0,)), reduce_max(x, axes=(0,))


def test_partial_results_are_combined_in_the_order_of_the_parts():
    function = trace("norms", norms, [("x", Array(f64, (n,)))])
    program = schedule(function, replace(CPU, a_part=4096))
    (loop,) = shared(program)
    (call,) = loop.body
    assert isinstance(call, CallFn) and {b.name for b in program.fns[0].bufs} >= {"x", "out"}
    totals = [s for s in program.entry.body if isinstance(s, For) and s.kind == "seq"]
    assert len(totals) == 2 and all(s.extent == loop.extent for s in totals)
    arrays = [(random.normal(size=size),) for size in (0, 1, 2, 100, 5000, 70_001) if size]
    for case in arrays:
        check([(function, case)], replace(CPU, a_part=4096))


def test_a_short_loop_is_left_alone():
    function = trace("norms", norms, [("x", Array(f64, (500,)))])
    assert not shared(schedule(function)) and not schedule(function).fns
    assert shared(schedule(trace("norms", norms, [("x", Array(f64, (500_000,)))])))


def test_an_outer_loop_of_few_iterations_leaves_its_threads_to_the_inner_one():
    function = trace("rows", lambda x: add(sin(x), x), [("x", Array(f32, (3, 100_000)))])
    (loop,) = shared(schedule(function))
    assert isinstance(loop.extent, int) and loop.extent > 3


def test_what_the_caller_sees_of_a_run_that_fails_is_stored_by_one_thread():
    """Iterations behind the one that fails have stored nothing into an argument."""
    for name in PROGRAMS:
        program = schedule(PROGRAMS[name][0], SMALL)
        arguments = {b for b in program.params}
        fns = {fn.name: fn for fn in program.fns}
        for loop in shared(program):
            call = loop.body[0]
            if any(isinstance(s, Check) for s in walk(fns[call.fn].body)):
                assert not arguments & call.writes, name
