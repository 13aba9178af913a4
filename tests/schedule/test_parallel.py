"""Loops that are said to be parallel give the same when they run backwards, each iteration with storage of its own.

The loops stage as Python runs with two changes: a loop of kind "par" or "red" begins at its end, and what it says is
private is made anew, of no value, in each iteration.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from differential import close
from programs import PROGRAMS
from test_lockstep import branching, escape, lanes_of

import metaphrase.ops  # noqa: F401
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.schedule.nest import For, walk
from metaphrase.astpasses.schedule.target import CPU, ONE_THREAD
from metaphrase.core.build import trace
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import Array, dtype_name, f64, type_of
from metaphrase.ops.linear_algebra import cholesky
from metaphrase.ops.samples import SAMPLES
from metaphrase.ops.sorting import sort

random = np.random.default_rng(5)


class Backwards(python_loops.LoopsText):
    """A program whose parallel loops run backwards."""

    def stmt_For(self, depth, stmt):
        if stmt.kind == "seq":
            return super().stmt_For(depth, stmt)
        self.line(depth, f"for {stmt.index} in reversed(range({self.printer.dim(stmt.extent)})):")
        for buf in stmt.private:
            if buf.dims and buf.space != "stack":
                self.allocate(depth + 1, buf)
                self.line(depth + 1, f"{buf.name}[...] = garbage({dtype_name(buf.dtype)})")
            else:
                self.line(depth + 1, f"{buf.name} = None")
        self.block(depth + 1, stmt.body)


def garbage(dtype):
    """What nobody may read: NaN, and integers that are no index."""
    return dtype(np.nan) if np.dtype(dtype).kind in "fc" else dtype(1) if dtype == np.bool_ else dtype(101)


def check_backwards(function: Function, *arrays, target=CPU, ulps: int = 64) -> None:
    program = schedule(function, target, checked=True)
    got = python_loops.run(program, *arrays, text=Backwards(program).whole(), garbage=garbage, reversed=reversed)
    for g, w in zip(got, evaluate(function, *arrays), strict=True):
        assert close(g, w, ulps), python_loops.text(program)


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, cases = PROGRAMS[name]
    for arguments in cases if isinstance(cases, list) else [cases[0]]:
        check_backwards(function, *arguments)
        check_backwards(function, *arguments, target=replace(CPU, lanes=2, sums_from=3, lockstep_from=2))


@pytest.mark.turns(4)
@pytest.mark.parametrize(
    "name", sorted(n for n in REGISTRY if REGISTRY[n].effect is None and not REGISTRY[n].transient)
)
def test_primitives(name):
    for sample in SAMPLES[name]:
        params = [(f"x{k}", type_of(np.asarray(a))) for k, a in enumerate(sample.args)]
        function = trace(f"use_{name}", lambda *a, s=sample: REGISTRY[name](*a, **s.attributes) or (), params)
        check_backwards(function, *sample.args, ulps=2**12)


@pytest.mark.parametrize("function", [escape(), branching()], ids=["escape", "branching"])
def test_lanes_in_lockstep_are_blocks_that_do_not_depend_on_each_other(function):
    batched = lanes_of(function, [True] * len(function.params))
    program = schedule(batched, ONE_THREAD)
    blocks = [s for s in program.entry.body if isinstance(s, For)]
    assert {s.kind for s in blocks} == {"par"} and len(blocks[0].private) > 3
    check_backwards(batched, *(random.uniform(-2, 1, 71) for _ in batched.params), ulps=2**30)


@pytest.mark.parametrize("rule", [lambda x: sort(x, axis=1), lambda x: sort(x, axis=0)], ids=["rows", "columns"])
def test_lines_are_sorted_side_by_side(rule):
    function = trace("sorted_lines", rule, [("x", Array(f64, (6, 40)))])
    assert all(s.kind == "par" for s in walk(schedule(function).entry.body) if isinstance(s, For))
    check_backwards(function, random.normal(size=(6, 40)))


def test_matrices_are_factored_side_by_side():
    a = random.normal(size=(5, 4, 4))
    function = trace("factor", lambda a: cholesky(a), [("a", Array(f64, (5, 4, 4)))])
    assert all(s.kind == "par" for s in walk(schedule(function).entry.body) if isinstance(s, For))
    check_backwards(function, a @ a.swapaxes(1, 2) + 5 * np.eye(4))
