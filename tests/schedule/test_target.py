"""A target is a record that every pass asks: other numbers give other loops and the same results."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from programs import PROGRAMS

from metaphrase.astpasses import schedule as room
from metaphrase.astpasses.emit.cython_text import emit
from metaphrase.astpasses.schedule import python_loops, schedule
from metaphrase.astpasses.schedule.nest import For, LibraryCall, walk
from metaphrase.astpasses.schedule.stage import PASSES
from metaphrase.astpasses.schedule.target import CPU, ONE_THREAD
from metaphrase.core.build import trace
from metaphrase.core.evaluate import evaluate
from metaphrase.core.types import Array, f64
from metaphrase.ops.arithmetic import add
from metaphrase.ops.dot import dot_general
from metaphrase.ops.linear_algebra import cholesky
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.sorting import argsort, sort

OTHERS = {
    "few lanes": replace(CPU, lanes=4, sums_from=8),
    "no call is too small": replace(CPU, whole=-1, call=0),
    "one array in a loop": replace(CPU, streams=1),
    "no stack": replace(CPU, stack_bytes=0),
    "everything is stored": replace(CPU, repeated=0),
}


@pytest.mark.parametrize("target", OTHERS.values(), ids=OTHERS.keys())
@pytest.mark.parametrize("name", ["softmax", "layernorm", "column_sums", "leapfrog", "kepler", "running"])
def test_results_do_not_depend_on_the_target(name, target):
    function, cases = PROGRAMS[name]
    want = evaluate(function, *cases[0])
    for got, wanted in zip(python_loops.run(schedule(function, target), *cases[0]), want, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_partial_sums_are_as_many_as_the_target_says():
    function = trace("total", lambda x: reduce_sum(x, axes=(0,)), [("x", Array(f64, (4096,)))])
    assert "[32]" in emit(schedule(function)).text
    assert "[8]" in emit(schedule(function, replace(CPU, lanes=8))).text
    assert "lanes" not in emit(schedule(function, replace(CPU, sums_from=5000))).text


def test_a_target_whose_stack_is_small_takes_memory_elsewhere():
    function = trace("order", lambda x: argsort(sort(x, axis=0), axis=0), [("x", Array(f64, (20,)))])
    assert "mp_memory" not in emit(schedule(function)).text
    assert "mp_memory" in emit(schedule(function, replace(CPU, stack_bytes=8 * 19))).text


def test_a_target_without_a_library_says_so():
    function = trace("factor", lambda a: cholesky(a), [("a", Array(f64, (5, 5)))])
    with pytest.raises(AssertionError, match="no library of the target bare has 'cholesky'"):
        schedule(function, replace(CPU, name="bare", offers=()))


def test_fewer_streams_mean_more_loops():
    def loops(target):
        return sum(isinstance(s, For) for s in walk(schedule(PROGRAMS["layernorm"][0], target).entry.body))

    assert loops(replace(CPU, streams=1)) > loops(CPU)


def test_each_pass_has_a_name_and_a_reason():
    assert len({one.name for one in PASSES}) == len(PASSES)
    assert all(one.why and not one.why.endswith(".") for one in PASSES)


def test_names_are_no_words_of_the_target():
    function = trace(
        "f", lambda cdef, kernel: add(cdef, kernel), [("cdef", Array(f64, (3,))), ("kernel", Array(f64, (3,)))]
    )
    assert [buf.name for buf in schedule(function).params] == ["cdef_", "kernel"]
    other = replace(CPU, words=frozenset({"kernel"}))
    assert [buf.name for buf in schedule(function, other).params] == ["cdef", "kernel_"]


def test_a_library_is_known_by_its_offers_only():
    """No pass knows what a target's library is called, how it counts, or how its text reads."""
    words = re.compile(r"lapack|blas|gemm|getrf|\bld[abc]\b|__builtin_\w|mp_scratch", re.IGNORECASE)
    files = {file.name: file.read_text() for file in Path(room.__file__).parent.glob("*.py")}
    assert {name for name, text in files.items() if words.search(text)} == {"target.py"}


def test_what_is_called_side_by_side_shares_nothing():
    """Lines and matrices of a stack are independent: no piece of work space is common to them."""
    rows = ("x", Array(f64, (30, 40)))
    stack = ("a", Array(f64, (3, 5, 5)))
    for function in (
        trace("f", lambda x: sort(x, axis=0), [rows]),
        trace("f", lambda x: argsort(x, axis=1), [rows]),
        trace("f", lambda a: cholesky(a), [stack]),
    ):
        entry = schedule(function, ONE_THREAD).entry
        (call,) = [s for s in walk(entry.body) if isinstance(s, LibraryCall)]
        (loop,) = [s for s in walk(entry.body) if isinstance(s, For) and call in s.body]
        assert loop.kind == "par"
        assert {view.buf for view in (*call.reads, *call.writes)} <= {*entry.bufs} and not entry.temps


def test_a_target_may_offer_other_dtypes_and_sizes():
    """Of an offer the scheduler asks what it takes and when it pays."""
    function = trace(
        "f",
        lambda a, b: dot_general(a, b, contract=((1,), (0,)), batch=((), ())),
        [("a", Array(f64, (9, 8))), ("b", Array(f64, (8, 7)))],
    )
    offer = CPU.offer("dot_general")

    def calls(**change):
        target = replace(CPU, offers=(replace(offer, **change),))
        return [s for s in walk(schedule(function, target).entry.body) if isinstance(s, LibraryCall)]

    assert calls() == [] and calls(pays_from=0, dtypes=frozenset({"f4"})) == []
    (call,) = calls(pays_from=0)
    assert call.operation == "dot_general" and dict(call.attributes)["contract"] == ((1,), (0,))


def test_no_pass_keeps_numbers_of_a_machine():
    """Numbers at the top of a module are those of layout and of how tightly operators bind."""
    kept = set()
    for file in sorted(Path(room.__file__).parent.glob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Assign) and not any(
                isinstance(x, (ast.Call, ast.Name)) for x in ast.walk(node.value)
            ):
                if any(isinstance(x, ast.Constant) and isinstance(x.value, int) for x in ast.walk(node.value)):
                    kept |= {f"{file.stem}.{x.id}" for x in ast.walk(node) if isinstance(x, ast.Name)}
    assert {name for name in kept if not name.startswith(("expressions.", "target.", "python_"))} == {"fold.MAX_NODES"}
