"""The nest language by hand: programs written in it print as Python loops that run, and as Cython that
runs."""

from __future__ import annotations

import numpy as np
from differential import run_program

from metaphrase.astpasses.schedule import python_loops
from metaphrase.astpasses.schedule.fuse import Limits, fuse_block
from metaphrase.astpasses.schedule.nest import (
    Axis,
    Bind,
    Buf,
    Fn,
    For,
    Grow,
    If,
    Index,
    Load,
    Nest,
    Op,
    Program,
    SetDims,
    Store,
    While,
    constant,
    local,
    operation,
)
from metaphrase.astpasses.schedule.place import place
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.core.dims import Sym, dim_max, mod
from metaphrase.core.facts import Facts
from metaphrase.core.types import f64, i64

i, j, n, m = (Sym(s) for s in "ijnm")


def program(name, params, results, sizes, body, temps=()):
    return Program(name, params, results, (), sizes, place(Fn("entry", (*params, *results), sizes, body, temps), CPU))


def softmax_program():
    x = Buf("x", f64, (n, m), "arg", 0)
    y = Buf("y", f64, (n, m), "out", 0)
    top, total = local("top", f64), local("total", f64)
    e = operation("exp", Load(x, (i, j)) - Load(top))
    body = (
        For(
            "i",
            n,
            (
                Store(top, (), constant(-np.inf, f64)),
                For("j", m, (Store(top, (), Load(x, (i, j)), "max"),)),
                Store(total, (), constant(0.0, f64)),
                For("j", m, (Store(y, (i, j), e), Store(total, (), Load(y, (i, j)), "sum"))),
                For("j", m, (Store(y, (i, j), Load(y, (i, j)) / Load(total)),)),
            ),
        ),
    )
    return program("softmax", (x,), (y,), ("n", "m"), body, (top, total))


def test_softmax():
    x = np.random.default_rng(0).normal(size=(4, 5))
    want = np.exp(x - x.max(1)[:, None])
    want /= want.sum(1)[:, None]
    made = softmax_program()
    assert "for j in range(m):" in python_loops.text(made)
    for (got,) in (python_loops.run(made, x), run_program(made, [x], [((4, 5), f64)], [4, 5])):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def kepler_program():
    e, M = (Buf(name, f64, (), "arg", k) for k, name in enumerate("eM"))
    out, trips = Buf("out", f64, (), "out", 0), Buf("trips_out", i64, (), "out", 1)
    E = local("E", f64)
    residual = Load(E) - Load(e) * operation("sin", Load(E)) - Load(M)
    slope = 1.0 - Load(e) * operation("cos", Load(E))
    body = (
        Store(E, (), Load(M)),
        While("T", (), operation("abs", residual) > 1e-12, (Store(E, (), Load(E) - residual / slope),)),
        Store(out, (), Load(E)),
        Store(trips, (), Index(Sym("T"))),
    )
    return program("kepler", (e, M), (out, trips), (), body, (E,))


def test_kepler_while():
    made = kepler_program()
    loops, native = (python_loops.run(made, 0.3, 1.0), run_program(made, [0.3, 1.0], [((), f64), ((), i64)], []))
    E = float(loops[0])
    assert abs(E - 0.3 * np.sin(E) - 1.0) < 1e-12
    assert loops[1] == native[1] > 0
    np.testing.assert_allclose(native[0], E, rtol=1e-15)


def growing_program():
    """Powers of x below a limit, as many as there are."""
    x, limit = (Buf(name, f64, (), "arg", k) for k, name in enumerate(("x", "limit")))
    T = Sym("T")
    stack = Buf("stack", f64, (T,), "stack", dynamic=True)
    out = Buf("out", f64, (T,), "out", 0, dynamic=True)
    power = local("power", f64)
    body = (
        Store(power, (), Load(x)),
        While(
            "T",
            (),
            Load(power) < Load(limit),
            (Grow((stack,), T + 1), Store(stack, (T,), Load(power)), Store(power, (), Load(power) * Load(x))),
        ),
        SetDims(out),
        For("i", T, (Store(out, (i,), Load(stack, (i,))),)),
    )
    return program("powers", (x, limit), (out,), (), body, (power, stack))


def test_growing_stack():
    made = growing_program()
    want = 1.5 ** np.arange(1, 40)
    want = want[want < 1e5]
    for (got,) in (python_loops.run(made, 1.5, 1e5), run_program(made, [1.5, 1e5], [(1, f64)], [])):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_branches_and_integer_symbols():
    x = Buf("x", f64, (n,), "arg", 0)
    y = Buf("y", f64, (n,), "out", 0)
    body = (
        For(
            "i",
            n,
            (
                Bind("k", Index(n - 1 - i)),
                If(
                    Load(x, (Sym("k"),)) > 0.0,
                    (Store(y, (i,), Load(x, (Sym("k"),))),),
                    (Store(y, (i,), constant(-0.0, f64)),),
                ),
            ),
        ),
    )
    made = program("positives", (x,), (y,), ("n",), body)
    values = np.array([1.0, -2.0, np.nan, np.inf])
    want = np.array([np.inf, -0.0, -0.0, 1.0])
    for (got,) in (python_loops.run(made, values), run_program(made, [values], [((4,), f64)], [4])):
        assert got.tobytes() == want.tobytes()


def test_expressions_print_with_the_grouping_they_have():
    a, b, c = (Load(local(name, f64)) for name in "abc")
    printer = python_loops.PythonPrinter()
    assert printer.text(a - (b - c)) == "a - (b - c)"
    assert printer.text((a - b) - c) == "a - b - c"
    assert printer.text(a * (b + c) / c) == "a*(b + c)/c"
    assert printer.text(a / (b * c)) == "a/(b*c)"
    assert printer.text(-(a + b)) == "-(a + b)"
    assert printer.text(Op("select", (a < b, a, b), f64)) == "a if a < b else b"


def test_a_nest_that_never_runs_is_none():
    """`x[1 : n % 2] = 5.0`: it touches x[1], and so would keep loops apart, or have them take its length for theirs."""
    x, total = Buf("x", f64, (n,), "arg", 0), local("total", f64)
    store = (Store(x, (i + 1,), constant(5.0, f64)),)
    for length, stays in ((dim_max(0, mod(n, 2) - 1), False), (mod(n, 2), True), (n - 1, True)):
        assert bool(fuse_block((Nest((Axis("i", length, "par"),), store),), Facts(), Limits(16))) is stays
    adds, first = (Store(total, (), Load(x, (i,)), "sum"),), (Store(total, (), constant(0.0, f64)),)
    kept = fuse_block((Nest((Axis("i", dim_max(0, mod(n, 2) - 1), "red"),), adds, first),), Facts(), Limits(16))
    assert kept[0] == first[0]  # the sum of nothing
