"""The emitted Cython: complete, readable, free of what Cython would turn into Python calls, exact in its
literals."""

from __future__ import annotations

import builtins
import re

import numpy as np
import pytest
from Cython.Compiler import Scanning

import metaphrase as mp
from metaphrase.astpasses.emit.cython_text import emit
from metaphrase.astpasses.emit.dialects import FLOATS, INTEGERS
from metaphrase.astpasses.emit.helpers import helper, with_needs
from metaphrase.astpasses.emit.spell import Printer
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.nest import Const, Load, Op, constant, local
from metaphrase.core.build import literal, trace
from metaphrase.core.dims import Sym
from metaphrase.core.ir import Roles
from metaphrase.core.types import SHORT, Array, f64, i64
from metaphrase.ops.arithmetic import abs_, add, div, mul, sub
from metaphrase.ops.compare import gt
from metaphrase.ops.elementary import cos, sin
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.regions import loop
from metaphrase.runtime import cython_build, cython_translate, dispatch

F, I = Array(f64), Array(i64)
n = Sym("n")


def kepler():
    def residual(e, M, E):
        return sub(sub(E, mul(e, sin(E))), M)

    def solve(e, M):
        params = [("i", I), ("e", F), ("M", F), ("E", F)]
        body = trace(
            "newton", lambda i, e, M, E: sub(E, div(residual(e, M, E), sub(literal(1.0), mul(e, cos(E))))), params
        )
        test = trace("going", lambda i, e, M, E: gt(abs_(residual(e, M, E)), literal(1e-12)), params)
        return loop(e, M, M, body=body, cond=test, length=None, roles=Roles(2, 1, 0, 0), size="T")[1]

    return trace("kepler", solve, [("e", F), ("M", F)])


ENTRY = """\
cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:
    cdef f64 e = (<f64_p>buffers[0])[0]
    cdef f64 M = (<f64_p>buffers[1])[0]
    cdef f64 E
    cdef i64 trips
    E = M
    trips = 0
    while f64_abs(E - e*f64_sin(E) - M) > 1e-12:
        if mp_poll(c, 55):
            return MP_INTERRUPTED
        E -= (E - e*f64_sin(E) - M)/(1.0 - e*f64_cos(E))
        trips += 1
    (<f64_p>buffers[2])[0] = E
    return 0
"""


def test_kepler_reads_like_kepler():
    text = emit(schedule(kepler())).text
    assert text[text.index("cdef int entry") :] == ENTRY


def test_the_same_program_gives_the_same_text():
    assert emit(schedule(kepler())).text == emit(schedule(kepler())).text


def test_functions_need_nothing_of_cython_at_run_time():
    c = cython_translate.translate(emit(schedule(kepler())).text)
    body = c[c.index("Code section: module_code") :]
    body = body[: body.index("Code section:", 30)]
    assert not re.findall(r"__Pyx_\w+\(", body)


def test_a_users_names_do_not_clash():
    def rule(register, c, buffers, f64_max, mp_poll):
        return add(add(register, c), mul(add(buffers, f64_max), mp_poll))

    names = ("register", "c", "buffers", "f64_max", "mp_poll")
    function = trace("clash", rule, [(name, F) for name in names])
    library = cython_build.build(emit(schedule(function)).text, name="clash")
    (got,) = dispatch.run_entry(library.address, [np.float64(v) for v in (1, 2, 3, 4, 5)], [(f64, ())])
    assert got == 1 + 2 + (3 + 4) * 5


def test_words_of_cython_are_no_names():
    """Arrays, numbers and sizes with names that Cython's parser takes for its own."""
    words = {*Scanning.pyx_reserved_words, *dir(builtins), "operator", "property", "api", "new", "cppclass"}
    names = sorted(w for w in words if w.isidentifier() and not w.startswith("_"))
    parameters = [(name, Array(f64, (Sym(name.lower()),)) if k % 2 else F) for k, name in enumerate(names)]

    def rule(*values):
        total = literal(0.0)
        for value in values:
            total = add(total, reduce_sum(value, axes=(0,)) if value.type.dims else value)
        return total

    text = emit(schedule(trace("words", rule, parameters))).text
    assert "c" in cython_translate.request(text, False, "f"), cython_translate.request(text, False, "f")["error"]
    parameters = [(name, F if k % 2 else Array(f64, (Sym(name.lower()),))) for k, name in enumerate(names)]
    text = emit(schedule(trace("words", rule, parameters))).text
    assert "c" in cython_translate.request(text, False, "f"), cython_translate.request(text, False, "f")["error"]


def literal_values():
    for name, dtype in SHORT.items():
        if name == "bool":
            yield from (np.True_, np.False_)
        elif dtype.kind in "iu":
            info = np.iinfo(dtype)
            yield from (dtype.type(v) for v in (info.min, info.max, 0, 1))
        else:
            for value in (0.0, -0.0, 1.5, 0.1, np.inf, -np.inf, np.nan, 1e-3):
                yield np.asarray(value).astype(dtype)[()]


def test_literals_are_exact():
    """Every dtype's numbers, stored by a native program, come back bit for bit."""
    from metaphrase.astpasses.schedule.nest import Buf, Fn, Program, Store

    values = list(literal_values())
    outs = tuple(Buf(f"y{k}", v.dtype, (1,), "out", k) for k, v in enumerate(values))
    body = tuple(Store(out, (0,), Const(v)) for out, v in zip(outs, values))
    program = Program("literals", (), outs, (), (), Fn("entry", outs, (), body))
    library = cython_build.build(emit(program).text, name="literals")
    got = dispatch.run_entry(library.address, [], [(v.dtype, (1,)) for v in values])
    for have, want in zip(got, values):
        if want != want:
            assert have[0] != have[0]
        else:
            assert have[0].tobytes() == want.tobytes(), (have, want, want.dtype)


def test_narrow_integers_wrap():
    a = Load(local("a", np.dtype("int8")))
    assert Printer().text(a + a * constant(2, np.int8)) == "<i8>(a + <i8>(a*2))"


def test_logic_on_bools_stays_in_bits():
    p = Load(local("p", np.dtype(bool)))
    q = Op("not", (p,), np.dtype(bool))
    assert Printer().text(Op("and", (p, q), np.dtype(bool))) == "p & (p ^ 1)"


@pytest.mark.parametrize(
    "name",
    [f"{t}_{op}" for t in FLOATS for op in ("max", "mod", "floor_div", "logaddexp")]
    + [f"{t}_{op}" for t in INTEGERS for op in ("floor_div", "pow", "shift_left")],
)
def test_helpers_come_after_what_they_need(name):
    seen: set[str] = set()
    for made in with_needs({name}):
        assert set(made.needs) <= seen
        seen.add(made.name)
    assert name in seen


def test_an_unknown_operation_is_named():
    with pytest.raises(KeyError, match="no native spelling for wiggle on f64"):
        helper("f64_wiggle")


def test_loops_around_short_ones_ask_no_signals():
    """They become vectors: the loop around them asks for a row."""

    def convolved(a, k):
        n, m = a.shape
        y = np.zeros((n - 2, m - 2))
        for i in range(n - 2):
            for j in range(m - 2):
                s = 0.0
                for p in range(3):
                    for q in range(3):
                        s += a[i + p, j + q] * k[p, q]
                y[i, j] = s
        return y

    text = mp.source(convolved, "f64[n,m]", "f64[3,3]", stage="cython")
    assert text.count("mp_poll(c, ") == 1 and "range(3):" in text
    a, k = np.arange(80.0).reshape(8, 10), np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(mp.jit(convolved)(a, k), convolved(a, k))
