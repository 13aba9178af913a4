"""debug_nans and debug_infs: who made the first one is named exactly, and what is finite stays silent.

In: the functions of `nan_makers.py`. Out: the line, the iterations, the lanes and the role of each error.
"""

from __future__ import annotations

import linecache
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import config

from .nan_makers import LANES, MAKERS, SILENT, X


def found(maker, native: bool) -> FloatingPointError:
    name = f"debug_{maker.kind}s"
    function = maker.transform(maker.function)
    with config(native=native, **{name: True}), pytest.raises(FloatingPointError) as raised:
        maker.call(function)
    return raised.value


def agrees(error, maker) -> None:
    line = linecache.getline(error.span.file, error.span.line).strip()
    assert (line, error.span.line) == (maker.text(), maker.line)
    assert (error.iterations, error.lanes, error.role) == (maker.iterations, maker.lanes, maker.role)
    assert str(error).partition(": ")[2].startswith(f"the first {maker.kind} ")


@pytest.mark.parametrize("name", MAKERS)
def test_the_maker_is_named(name):
    agrees(found(MAKERS[name], native=False), MAKERS[name])


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", list(MAKERS)[::3])
def test_the_maker_is_named_in_native_code(name):
    agrees(found(MAKERS[name], native=True), MAKERS[name])


@pytest.mark.parametrize("name", MAKERS)
def test_nothing_is_said_when_it_is_off(name):
    with config(native=False):
        maker = MAKERS[name]
        maker.call(maker.transform(maker.function))


@pytest.mark.parametrize("name", SILENT)
def test_what_is_finite_is_silent(name):
    with config(native=False, debug_nans=True, debug_infs=True):
        SILENT[name]()


# ---- what an error says ----------------------------------------------------------------------------------------------


def text_of(run) -> str:
    with config(native=False, debug_nans=True), pytest.raises(FloatingPointError) as raised:
        run()
    return str(raised.value)


def test_the_text_shows_the_line_the_operands_and_the_loops():
    text = text_of(lambda: mp.jit(mp.vmap(MAKERS["roots"].function))(LANES))
    assert "sqrt(-2.0) is nan [non-finite]" in text
    assert "s = s + t + np.sqrt(x[i] + 1.0)  # here\n              ^^^^^^^^^^^^^^^^^^^\n" in text
    assert "  in iteration 3 (from 0) of the loop at nan_makers.py:" in text
    assert text.endswith("  in lane 1 of the batch")


def test_a_nan_of_an_inf_says_where_the_inf_comes_from():
    text = text_of(lambda: mp.jit(lambda x: (np.exp(x * 1000.0) - np.exp(x * 2000.0)).sum())(X))
    assert "sub(inf, inf) is nan" in text and "its inf is made here: exp(2000.0)" in text


def test_what_was_given_is_not_made():
    given = np.array([[1.0, 2.0], [3.0, np.nan]])
    text = text_of(lambda: mp.jit(lambda tree: np.log(tree["a"]).sum())({"a": given}))
    assert "nan in the result of the function comes from tree['a'][1, 1]" in text


def test_a_captured_array_is_named():
    weights = np.array([1.0, np.nan])
    text = text_of(lambda: mp.jit(lambda x: (x * weights).sum())(2.0))
    assert "comes from the captured array weights[1]" in text


def test_an_argument_that_is_stored_into_is_kept_as_it_was():
    def roots(x):
        for i in range(len(x)):
            x[i] = np.sqrt(x[i] - 2.0)
        return x[0]

    x = np.array([20.0, 10.0, 1.0, 9.0, 8.0])
    with config(native=False, debug_nans=True), pytest.raises(FloatingPointError) as raised:
        mp.jit(roots)(x)
    assert (raised.value.iterations, raised.value.operation) == ((2,), "sqrt(-1.0)")


def test_a_pullback_is_looked_at_and_its_residuals_are_no_result():
    def f(x):
        return np.where(x > 0, np.sqrt(x), 0.0).sum()

    with config(native=False, debug_nans=True, debug_infs=True):
        _, pullback = mp.vjp(f, np.zeros(2))
        with pytest.raises(FloatingPointError, match="adjoint code of line"):
            pullback(1.0)


def test_prints_and_warnings_are_not_repeated(capsys):
    def f(x):
        print("x is", x)
        return np.log(x)

    text_of(lambda: mp.jit(f)(-1.0))
    assert capsys.readouterr().out == "x is -1.0\n"


def test_a_loop_that_only_a_nan_ends_is_found():
    def f(x):
        while x > 0:  # a NaN is not
            x = np.sqrt(x - 1.0) + 0.1
        return x

    assert "in iteration 2" in text_of(lambda: mp.jit(f)(3.0))


# ---- the settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [mp.debug_nans, lambda on=True: config(debug_nans=on)])
def test_a_compiled_program_is_looked_at_while_it_is_on(block):
    f = mp.jit(lambda x: np.log(x))
    assert np.isnan(f(-1.0))
    with block():
        assert f(1.0) == 0.0
        with pytest.raises(FloatingPointError):
            f(-1.0)
        with block(False):
            assert np.isnan(f(-1.0))
        with pytest.raises(FloatingPointError):
            f.lower(1.0).compile()(-1.0)
    misses = f.cache_info().misses
    assert np.isnan(f(-1.0)) and f.cache_info().misses == misses


def test_the_names_of_jax():
    try:
        config.update("jax_debug_infs", True)
        with pytest.raises(FloatingPointError, match="first inf"):
            mp.grad(lambda x: np.sqrt(x))(0.0)
    finally:
        config.update("jax_debug_infs", False)


def test_infs_and_nans_at_once():
    with mp.debug_nans(), mp.debug_infs(), pytest.raises(FloatingPointError) as raised:
        mp.vmap(lambda x: np.exp(x) - np.exp(2 * x))(np.array([1.0, 1000.0]))
    assert (raised.value.operation, raised.value.lanes) == ("exp(1000.0)", (1,))


def test_the_page_shows_what_is_said(tmp_path):
    page = (Path(__file__).resolve().parents[2] / "docs" / "debugging.md").read_text()
    program, said = re.search(r"```python\n(def loss.*?)```\n\n```\n(.*?)```", page, re.S).groups()
    file = tmp_path / "debugging.py"
    file.write_text("import numpy as np\nimport metaphrase as mp\n\n" + program)
    with pytest.raises(FloatingPointError) as raised:
        runpy.run_path(str(file))
    assert str(raised.value).replace(f"{tmp_path}/", "") == said.strip()
