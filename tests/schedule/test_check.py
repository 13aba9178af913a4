"""The checker of the loop-nest tree finds faults that are planted in programs that it passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from programs import PROGRAMS

import metaphrase as mp
import metaphrase.ops  # noqa: F401
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.check import CheckError, check
from metaphrase.astpasses.schedule.expand import expand
from metaphrase.astpasses.schedule.lower import lower
from metaphrase.astpasses.schedule.nest import (
    Bind,
    Buf,
    CallFn,
    Fn,
    For,
    If,
    Index,
    LibraryCall,
    Load,
    Program,
    Stmt,
    Store,
    Swap,
    constant,
    local,
    walk,
)
from metaphrase.astpasses.schedule.python_loops import python_loops
from metaphrase.astpasses.schedule.rewrite import rename_statement
from metaphrase.astpasses.schedule.stage import PASSES
from metaphrase.astpasses.schedule.target import CPU, CUDA, ONE_THREAD
from metaphrase.core.build import trace
from metaphrase.core.dims import Sym, dim_max, dim_min
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import Array, f32, f64, i64, type_of
from metaphrase.ops.arithmetic import div, sub
from metaphrase.ops.dot import dot_general
from metaphrase.ops.elementary import exp
from metaphrase.ops.reduce import reduce_max, reduce_sum
from metaphrase.ops.samples import SAMPLES
from metaphrase.ops.shape import broadcast
from metaphrase.pipeline import finished

Rewrite = Callable[[Stmt], "Stmt | tuple[Stmt, ...] | None"]


def loops(name: str) -> Program:
    """A program as it is before lanes: reductions are plain loops."""
    program = lower(expand(PROGRAMS[name][0]), ONE_THREAD)
    for one in PASSES[: [one.name for one in PASSES].index("lanes")]:
        program = one.run(program) if one.fused in (None, True) else program
    return program


def changed(program: Program, rewrite: Rewrite, only: int | None = None) -> Program:
    """The program with what `rewrite` gives in the place of the statements for which it gives something; `only`: of the
    so many-th of them."""
    count = 0

    def block(rows: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        nonlocal count
        made: list[Stmt] = []
        for stmt in rows:
            new = rewrite(stmt)
            if new is not None:
                count += 1
            if new is not None and only in (None, count - 1):
                made.extend(new if isinstance(new, tuple) else (new,))
            else:
                made.append(stmt.with_blocks(tuple(map(block, stmt.blocks))) if stmt.blocks else stmt)
        return tuple(made)

    body = block(program.entry.body)
    assert count > (only or 0), "nothing was changed"
    return replace(program, entry=replace(program.entry, body=body))


def on(kind: type, rule: Callable) -> Rewrite:
    return lambda stmt: rule(stmt) if isinstance(stmt, kind) else None


def inner_loops(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and not any(isinstance(s, For) for s in walk(stmt.body))


def as_parallel(kind: str) -> Rewrite:
    return on(For, lambda s: replace(s, kind="par") if s.kind == kind else None)


def first_value(stmt: Stmt) -> tuple[Stmt, ...] | None:
    """Nothing in the place of a variable's first value."""
    return () if isinstance(stmt, Store) and not stmt.index and not isinstance(stmt.value, Load) else None


def combined(rule: Callable[[Store], Stmt | tuple[Stmt, ...]]) -> Rewrite:
    return on(Store, lambda s: rule(s) if s.monoid else None)


def moved(by: object) -> Rewrite:
    return on(Store, lambda s: replace(s, index=(s.index[0] + by, *s.index[1:])) if s.index else None)  # type: ignore


def leave_behind(stmt: Stmt) -> tuple[Stmt, ...] | None:
    """What an iteration computes for itself is stored behind the loop."""
    if not isinstance(stmt, For) or stmt.kind != "par":
        return None
    store = next((s for s in stmt.body if isinstance(s, Store) and not s.index), None)
    last = next((s for s in walk(stmt.body) if isinstance(s, Store) and s.index), None)
    if store is None or last is None:
        return None
    return (stmt, Store(last.buf, (0,) * len(last.index), Load(store.buf)))


def one_loop(stmt: Stmt) -> Stmt | None:
    """Two inner loops of one length as one: the second needs all of the first."""
    if not isinstance(stmt, For) or len(stmt.body) < 2:
        return None
    for k, (a, b) in enumerate(zip(stmt.body, stmt.body[1:])):
        if inner_loops(a) and inner_loops(b) and a.extent == b.extent:  # type: ignore[attr-defined]
            rows = tuple(rename_statement(s, {b.index: Sym(a.index)}) for s in b.body)  # type: ignore[attr-defined]
            joined = replace(a, body=(*a.body, *rows), kind="red")  # type: ignore[call-arg, attr-defined]
            return replace(stmt, body=(*stmt.body[:k], joined, *stmt.body[k + 2 :]))
    return None


def from_neighbour(stmt: Stmt) -> Stmt:
    """A store that takes over what the iteration before has stored."""
    if isinstance(stmt, Store) and stmt.index:
        return replace(stmt, value=Load(stmt.buf, (stmt.index[0] - 1, *stmt.index[1:])))  # type: ignore[operator]
    return stmt


MEET = "iterations of the (par|red) loop over .* meet in"
FAULTS: dict[str, tuple[str, Rewrite, int | None, str]] = {
    "an index that nobody binds": ("softmax", on(For, lambda s: replace(s, index="q")), 0, "i has no value here"),
    "an index of two loops": (
        "dense",
        lambda s: (
            replace(s, body=tuple(replace(b, index=s.index) for b in s.body))
            if isinstance(s, For) and all(isinstance(b, For) for b in s.body)
            else None
        ),
        None,
        "is bound elsewhere, too",
    ),
    "an index that is a size": (
        "running",
        on(For, lambda s: replace(rename_statement(s, {s.index: Sym("n")}), index="n")),
        None,
        "the index n of a loop is bound elsewhere",
    ),
    "an index behind its loop": (
        "squares_in_place",
        lambda s: (replace(s, body=()), *s.body) if isinstance(s, For) else None,
        None,
        "has no value here",
    ),
    "a place behind the end": ("leapfrog", moved(Sym("n")), 0, "is no index of an axis of n"),
    "a place before the start": ("leapfrog", moved(-Sym("n")), 0, "is no index of an axis of n"),
    "too few indices": (
        "softmax",
        on(Store, lambda s: replace(s, index=s.index[1:]) if s.index else None),
        None,
        "1 indi",
    ),
    "a value of another dtype": (
        "running",
        on(Store, lambda s: replace(s, value=constant(1.0, f32)) if s.index else None),
        None,
        "a float32 is stored into out_1",
    ),
    "a sum without a start": ("softmax", first_value, 1, "is read before anything is stored in it"),
    "a carried value without a start": ("running", first_value, 0, "s is read before anything is stored"),
    "an array that nobody stores": (
        "leapfrog",
        on(For, lambda s: () if s.kind == "par" else None),
        0,
        "u_1 is read before anything is stored",
    ),
    "a sum in a parallel loop": ("softmax", as_parallel("red"), None, MEET),
    "a recurrence in a parallel loop": ("running", as_parallel("seq"), None, f"{MEET} s"),
    "steps in time in parallel": ("leapfrog", as_parallel("seq"), None, f"{MEET} (u_1|u_2|out_1)"),
    "elimination in parallel": ("running_backwards", as_parallel("seq"), None, MEET),
    "a read of what another iteration writes": (
        "running_backwards",
        lambda s: replace(s, kind="par", body=(*s.body, *map(from_neighbour, s.body))) if inner_loops(s) else None,
        None,
        MEET,
    ),
    "a stencil that is updated in place": ("distant_neighbours", one_loop, None, f"{MEET} out"),
    "a variable that is read behind the loop": ("softmax", leave_behind, None, f"{MEET} t"),
    "loops joined in which one needs all of the other": ("softmax", one_loop, None, MEET),
    "a sum that is read on its way": (
        "softmax",
        combined(lambda s: (s, Store(local("seen", f64), (), Load(s.buf)))),
        0,
        MEET,
    ),
    "two ways to combine": ("softmax", combined(lambda s: (s, replace(s, monoid="prod"))), 0, MEET),
    "two storages of one name": (
        "running",
        on(For, lambda s: (Store(Buf("out_1", f64, ()), (), constant(0.0, f64)), s)),
        None,
        "two storages are called out_1",
    ),
    "a symbol that only one branch binds": (
        "running",
        lambda s: (
            (
                If(constant(True, bool), (), (Bind("late", Index(1)),)),
                Bind("copy", Index(Sym("late") + Sym("later"))),
                s,
            )
            if isinstance(s, For)
            else None
        ),
        None,
        "later has no value here",
    ),
    "arrays of two dtypes that change places": (
        "leapfrog",
        on(Swap, lambda s: replace(s, b=Buf("other", f32, s.b.dims))),
        None,
        "change places",
    ),
    "a float as an integer": (
        "running",
        on(For, lambda s: (Bind("k", constant(1.0, f64)), s)),
        None,
        "k is bound to a float64",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name):
    program, rewrite, only, message = FAULTS[name]
    sound = check(loops(program))
    with pytest.raises(CheckError, match=message):
        check(changed(sound, rewrite, only))


def test_a_place_of_known_sizes():
    function = trace("row", lambda x: REGISTRY["neg"](x), [("x", Array(f64, (7,)))])
    sound = check(schedule(function))
    for place in (7, -1, Sym("i") + 7, Sym("i") - 7):
        with pytest.raises(CheckError, match="is no index of an axis of 7 of out"):
            check(changed(sound, on(Store, lambda s, place=place: replace(s, index=(place,)))))


def test_a_view_that_reaches_too_far():
    square = Array(f64, (40, 40))
    function = trace(
        "product", lambda a, b: dot_general(a, b, contract=((1,), (0,)), batch=((), ())), [("a", square), ("b", square)]
    )
    sound = check(schedule(function))
    longer = on(LibraryCall, lambda s: replace(s, writes=tuple(replace(v, extents=(41, 40)) for v in s.writes)))
    with pytest.raises(CheckError, match="a view of out: .* reaches element 1639"):
        check(changed(sound, longer))


def test_a_call_of_a_function_that_takes_something_else():
    sound = check(schedule(PROGRAMS["layernorm"][0], replace(CPU, whole=-1, call=0)))
    assert sound.fns
    for rule, message in (
        (lambda s: replace(s, sizes=s.sizes[1:]), "sizes, not"),
        (lambda s: replace(s, bufs=s.bufs[1:]), "takes .* not"),
        (lambda s: replace(s, fn="nest_99"), "there is no function nest_99"),
    ):
        with pytest.raises(CheckError, match=message):
            check(changed(sound, on(CallFn, rule), 0))


def test_what_a_loop_says_is_private_is():
    sound = check(schedule(PROGRAMS["layernorm"][0], ONE_THREAD))
    rows = next(s for s in sound.entry.body if isinstance(s, For))
    assert {buf.name for buf in rows.private} >= {"t_1", "t_2", "t_3", "t_4"}
    shared = on(For, lambda s: replace(s, private=()) if s is rows else None)
    with pytest.raises(CheckError, match="iterations of the par loop over i meet in t_1"):
        check(changed(sound, shared))
    out = sound.results[0]
    with pytest.raises(CheckError, match="out is not private to iterations of the loop over i"):
        check(
            changed(sound, on(For, lambda s: (replace(s, private=(*s.private, out)), use(out)) if s is rows else None))
        )


def test_what_a_loop_says_is_a_partial_result_is():
    sound = check(schedule(PROGRAMS["softmax"][0], ONE_THREAD))
    marked = [s for s in walk(sound.entry.body) if isinstance(s, For) and s.partials]
    assert {monoid for s in marked for _, monoid in s.partials} == {"max", "sum"}
    other = on(For, lambda s: replace(s, partials=tuple((b, "prod") for b, _ in s.partials)) if s.partials else None)
    with pytest.raises(CheckError, match="is no partial prod of the loop over"):
        check(changed(sound, other))
    ordered = on(For, lambda s: replace(s, kind="par") if s.partials else None)
    with pytest.raises(CheckError, match="is no partial"):
        check(changed(sound, ordered))


def use(buf: Buf) -> Stmt:
    return Store(local("used", f64), (), Load(buf, (0,) * len(buf.dims)))


@pytest.mark.parametrize("monoid", ["sum", None])
def test_a_function_may_go_on_with_the_sum_of_a_loop_that_calls_it(monoid):
    i, x = (Sym("i"),), Buf("x", f64, (5,), "arg", 0)
    sofar, given = Buf("a0", f64, (), "temp"), Buf("x0", f64, (5,), "arg")
    more = For("i", 5, (Store(sofar, (), Load(given, i), monoid),), "red" if monoid else "seq")
    fn = Fn("nest_0", (given, sofar), (), (more,), result=sofar)
    total, out = local("total", f64), Buf("out", f64, (), "out", 0)
    call = For("k", 3, (CallFn("nest_0", (x, total), (), result=total),), "red")
    body = (Store(total, (), constant(0.0, f64)), call, Store(out, (), Load(total, ())))
    program = loops("running")
    program = replace(program, entry=replace(program.entry, bufs=(x, out), sizes=(), body=body), fns=(fn,))
    if monoid:
        assert check(program) is program
    else:  # the last one wins
        with pytest.raises(CheckError, match="iterations of the red loop over k meet in total"):
            check(program)


def test_what_only_a_function_uses_is_its_own_though_its_caller_has_the_room():
    """A row may be too large for a function's stack: the caller has the room, and nothing else in it."""
    i, j = Sym("i"), Sym("j")
    x, row, y = (Buf(name, f64, dims, "arg") for name, dims in (("x0", (0, 5)), ("y1", (0,)), ("y2", (0, 5))))
    body = For("j", 5, (Store(row, (j,), Load(x, (i, j))),)), For("j", 5, (Store(y, (i, j), Load(row, (4 - j,))),))
    fn = Fn("nest_0", (x, row, y), (), (For("i", 3, body, "par"),), scratch=frozenset(["y1"]))
    given, out = Buf("x", f64, (3, 5), "arg", 0), Buf("out", f64, (3, 5), "out", 0)
    room = Buf("row", f64, (5,))
    call = CallFn("nest_0", (given, room, out), (), writes=frozenset([room, out]))
    program = loops("running")
    program = replace(program, entry=replace(program.entry, bufs=(given, out), sizes=(), body=(call,)), fns=(fn,))
    assert check(program) is program
    with pytest.raises(CheckError, match="iterations of the par loop over i meet in y1"):
        check(replace(program, fns=(replace(fn, scratch=frozenset()),)))
    assert any(fn.scratch for fn in schedule(PROGRAMS["layernorm"][0], replace(CPU, whole=-1, call=0)).fns)


def test_what_cannot_be_shown_is_no_fault():
    """Indices that are data may all be different, and a condition may keep the others away."""
    n, index = Sym("n"), Buf("index", i64, (Sym("n"),), "arg", 0)
    y = Buf("y", f64, (n,), "out", 0)
    store = Store(y, (Sym("k"),), constant(1.0, f64))
    scatter = For("i", n, (Bind("k", Load(index, (Sym("i"),))), store), "par")
    program = loops("running")
    entry = replace(program.entry, bufs=(index, y), sizes=("n",), body=(scatter,))
    assert check(replace(program, entry=entry)).entry is entry


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if not REGISTRY[n].transient))
def test_every_primitive_keeps_the_rules_in_every_pass(name, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CHECK", "1")
    for sample in SAMPLES[name]:
        params = [(f"x{k}", type_of(np.asarray(a))) for k, a in enumerate(sample.args)]
        function = trace(f"use_{name}", lambda *a, s=sample: REGISTRY[name](*a, **s.attributes) or (), params)
        assert check(schedule(function)).name == function.name


def test_variables_of_a_kernels_iterations_are_no_fault_before_they_are_placed(monkeypatch):
    """Loops that a block divides name arrays alone as theirs."""
    monkeypatch.setenv("METAPHRASE_CHECK", "1")

    def means(x):
        e = exp(sub(x, broadcast(reduce_max(x, axes=(1,)), shape=(3, 4), axes=(0,))))
        return div(e, broadcast(reduce_sum(e, axes=(1,)), shape=(3, 4), axes=(0,)))

    function = trace("means", means, [("x", Array(f64, (3, 4)))])
    program = schedule(function, CUDA)
    assert any(fn.kernel for fn in program.fns)


def test_a_pass_that_breaks_a_program_is_named(monkeypatch):
    from metaphrase.astpasses.schedule import stage

    monkeypatch.setenv("METAPHRASE_CHECK", "1")
    broken = stage.Pass("mine", lambda program: changed(program, as_parallel("seq")), "to be found")
    monkeypatch.setattr(stage, "PASSES", (*stage.PASSES[:3], broken, *stage.PASSES[3:]))
    with pytest.raises(CheckError, match="the pass mine broke running"):
        schedule(PROGRAMS["running"][0])


@pytest.mark.parametrize("side, taken", [(0, False), (1, True)])
def test_a_branch_that_is_never_taken_may_reach_anywhere(side, taken):
    """As where a staged size turned out to be known: the branch for longer arrays is still there."""
    x, out = Buf("x", f64, (3,), "arg", 0), Buf("out", f64, (), "out", 0)
    outside = (Store(out, (), Load(x, (3,))),)
    program = loops("running")

    def branch(condition: bool) -> Program:
        sides = (outside, ()) if side == 0 else ((), outside)
        body = (Store(out, (), constant(0.0, f64)), If(constant(condition, bool), *sides))
        return replace(program, entry=replace(program.entry, bufs=(x, out), sizes=(), body=body))

    assert check(branch(taken))
    with pytest.raises(CheckError, match="3 is no index of an axis of 3 of x"):
        check(branch(not taken))


@pytest.mark.parametrize(
    "length, runs",
    [
        (Sym("n"), True),
        (Sym("n") - 3, True),
        (Sym("k"), False),
        (dim_max(Sym("k") - 3, 0), False),
        ((dim_max(dim_min(Sym("m"), Sym("n")) - Sym("m"), 0) + 1) // 2, False),
    ],
)
def test_a_loop_that_may_never_have_an_iteration_may_reach_anywhere(length, runs):
    """`x[3:k] = 1.0` of three elements: nothing is stored, whatever k. What a caller may give is another matter."""
    out, count = Buf("out", f64, (3,), "out", 0), Buf("count", i64, (), "arg", 0)
    body = (
        Bind("k", Load(count)),
        For("i", 3, (Store(out, (Sym("i"),), constant(0.0, f64)),)),
        For("j", length, (Store(out, (Sym("j") + 3,), constant(1.0, f64)),)),
    )
    program = loops("running")
    program = replace(program, entry=replace(program.entry, bufs=(count, out), sizes=("n", "m"), body=body))
    if not runs:
        assert check(program)
    else:
        with pytest.raises(CheckError, match="j [+] 3 is no index of an axis of 3 of out"):
            check(program)


@pytest.mark.parametrize("values, sound", [((0.0, 0.0), True), ((0.0, 1.0), False)])
def test_iterations_may_all_store_one_number(values, sound):
    """As the cotangent of what a loop overwrites: it is 0 after each iteration."""
    total, bar, out = local("total", f64), local("bar", f64), Buf("out", f64, (), "out", 0)
    rows = (*(Store(bar, (), constant(v, f64)) for v in values), Store(total, (), constant(2.0, f64), "sum"))
    start = (Store(total, (), constant(0.0, f64)), Store(bar, (), constant(3.0, f64)))
    body = (*start, For("i", 5, rows, "red"), Store(out, (), Load(bar)))
    program = loops("running")
    program = replace(program, entry=replace(program.entry, bufs=(out,), sizes=(), body=body))
    if sound:
        assert check(program)
    else:
        with pytest.raises(CheckError, match="iterations of the red loop over i meet in bar"):
            check(program)


def test_loops_over_no_rows_are_no_functions():
    """Three rows that have no place: nothing reads there, and the checker is not asked to show that."""

    def turned(A):
        for _ in range(3):
            A = np.clip(np.flip(-A, 0), -40.0, 40.0)
        return A

    program = mp.jit(turned).lower("f64[0, 3]").program
    scheduled = schedule(finished(program.function), replace(CPU, whole=-1, call=0), checked=True)
    assert "for" not in python_loops(scheduled)


def doubled_end(x, i):
    end = x[i:] * 2
    x[:i] = 0
    return end.sum()


def sorted_end(x, i):
    end = x[i:].copy()
    end.sort()
    return end.sum()


def end_of_rows(x, i):
    end = x[i:].copy()
    x[:] = 1
    return end.sum()


def end_of_columns(x, i):
    end = x[:, i:].copy()
    x[:] = 1
    return end.sum()


EMPTY = [(doubled_end, (0,)), (sorted_end, (0,)), (end_of_rows, (0, 3)), (end_of_columns, (3, 0))]


@pytest.mark.parametrize("function, dims", EMPTY)
def test_ends_of_arrays_without_elements(function, dims):
    """Their length is 0 - k, k being 0 at most: nobody fills them, and nobody reads them."""
    with mp.config(check=True):
        jitted = mp.jit(function)
        for i in (0, 2, -2):
            assert jitted(np.zeros(dims), i) == function(np.zeros(dims), i)
