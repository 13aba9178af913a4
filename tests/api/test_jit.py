"""jit: what leads to a new program and what does not; captures, writes, static values; what a jitted function
offers."""

from __future__ import annotations

import inspect
import logging
from typing import NamedTuple

import numpy as np
import pytest
from corpus import cases, fresh

import metaphrase as mp
from metaphrase.source import SourceError

SCALE = 2


class Pair(NamedTuple):
    a: object
    b: object


def make():
    @mp.jit
    def scaled(x, k=2.0, *, shift: bool = False):
        """Twice."""
        if shift:
            return x + k
        return x * k

    return scaled


def test_values_defaults_and_keywords():
    f, x = make(), np.arange(3.0)
    np.testing.assert_array_equal(f(x), [0, 2, 4])
    np.testing.assert_array_equal(f(x, 3.0), [0, 3, 6])
    np.testing.assert_array_equal(f(k=3.0, x=x), [0, 3, 6])
    np.testing.assert_array_equal(f(x, shift=True), [2, 3, 4])
    with pytest.raises(TypeError, match=r"scaled\(\) got an unexpected keyword argument 'z'"):
        f(x, z=1)
    with pytest.raises(TypeError, match=r"scaled\(\) missing a required argument: 'x'"):
        f()


def test_one_program_serves_all_sizes_from_the_second_on():
    f = make()
    for n in (3, 5, 7, 100, 3, 5):
        np.testing.assert_array_equal(f(np.arange(float(n))), 2 * np.arange(float(n)))
    assert f.cache_info().misses == 2 and f.cache_info().currsize == 2 and f.cache_info().hits == 4


@pytest.mark.parametrize("shape", [(0,), (1,), (2,), (), (2, 0), (1, 1)])
def test_small_shapes(shape):
    np.testing.assert_array_equal(make()(np.ones(shape)), 2 * np.ones(shape))


def test_the_log_says_what_changed(caplog):
    f, x = make(), np.arange(3.0)
    with caplog.at_level(logging.INFO, "metaphrase"):
        f(x)
        f(np.arange(4.0))
        f(x, 3)
        f(x, 3, shift=True)
    told = [m for m in caplog.messages if m.startswith("scaled")]
    assert told[0].startswith("scaled: translated (core ")
    assert told[1].startswith("scaled: translated again: x changed from f64[3] to f64[4]")
    assert told[2].startswith("scaled: translated again: k changed from float to int")
    assert told[3].startswith("scaled: translated again: shift changed from False to True")


def test_a_flag_may_change_between_calls():
    @mp.jit
    def layer(x, training: bool):
        return x * 0.5 if training else x

    assert [layer(2.0, t) for t in (True, False, True, False)] == [1.0, 2.0, 1.0, 2.0]
    assert layer.cache_info().currsize == 2


def test_captured_values_are_guarded_and_captured_arrays_read_afresh(monkeypatch):
    weights = np.ones(3)

    @mp.jit
    def f(x):
        return x * weights * SCALE

    x = np.arange(3.0)
    np.testing.assert_array_equal(f(x), [0, 2, 4])
    weights[:] = 5
    np.testing.assert_array_equal(f(x), [0, 10, 20])
    monkeypatch.setitem(globals(), "SCALE", 3)
    np.testing.assert_array_equal(f(x), [0, 15, 30])
    weights = np.ones((2, 3))
    assert f(x).shape == (2, 3)


def test_trees_in_and_out():
    @mp.jit
    def f(pair, extra):
        return {"pair": Pair(pair.b, pair.a * 2), "none": None, "word": "kept", "same": extra["x"]}

    x = np.arange(2.0)
    out = f(Pair(1.0, x), {"x": x})
    assert isinstance(out["pair"], Pair) and out["pair"].b == 2.0 and out["none"] is None and out["word"] == "kept"
    assert out["same"] is x
    np.testing.assert_array_equal(out["pair"].a, x)


def test_results_are_fresh_and_writable():
    f, x = mp.jit(lambda x: (x + 1, x + 1)), np.zeros(3)
    a, b = f(x)
    a[0] = 7
    assert b[0] == 1 and x[0] == 0 and f(x)[0][0] == 1


def test_writes_reach_the_callers_array():
    @mp.jit
    def f(x, k):
        x[1:] += k
        return x.sum()

    x = np.arange(4.0)
    assert f(x, 1.0) == 9.0 and x.tolist() == [0, 2, 3, 4]
    assert f(x, 1.0) == 12.0 and x.tolist() == [0, 3, 4, 5]
    frozen = np.arange(4.0)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        f(frozen, 1.0)


def test_compile_time_does_not_grow_with_trips():
    @mp.jit
    def total(n, x):
        s = 0.0
        for i in range(n):
            s = s + x * i
        return s

    assert total(10, 1.0) == 45.0 and total(100_000, 1.0) == 4999950000.0
    assert total.cache_info().currsize == 1


def test_methods_and_varargs():
    class Model:
        def __init__(self, k):
            self.k = k

        @mp.jit
        def scale(self, x):
            return x * self.k

    model = Model(3.0)
    assert model.scale(2.0) == 6.0
    model.k = 4.0
    assert model.scale(2.0) == 8.0
    f = mp.jit(lambda *args, **kw: args[0] + kw["b"])
    assert f(1.0, b=2.0) == 3.0 and f(5.0, b=2.0) == 7.0


def test_static_arguments():
    f = mp.jit(lambda x, n: x * np.arange(n).sum(), static_argnums=1)
    assert f(1.0, 4) == 6.0 and f(1.0, 5) == 10.0
    g = mp.jit(lambda x, shape: np.ones(shape) * x, static_argnames="shape")
    assert g(2.0, shape=(2, 3)).shape == (2, 3) and g(2.0, (1, 2)).shape == (1, 2)
    with pytest.raises(SourceError, match="static_argnames has 'k'"):
        mp.jit(lambda x: x, static_argnames="k")


def test_what_a_jitted_function_offers():
    f = make()
    assert f.__name__ == "scaled" and f.__doc__ == "Twice." and f.__wrapped__ is f.py_func
    assert str(inspect.signature(f)) == str(inspect.signature(f.py_func))
    with pytest.raises(SourceError, match="has not been called"):
        f.source()
    f(np.arange(3.0))
    assert repr(f.signatures) == "[(f64[3], float, False)]"
    assert "def scaled(" in f.source() and "mul" in f.source("core")
    f.clear_cache()
    assert f.cache_info().currsize == 0 and f.signatures == []


def test_what_a_compiled_function_raises_is_its_own_error():
    compiled = mp.jit(lambda x, k: x[k] * 2).lower(np.ones(3), 1).compile()
    assert compiled(np.ones(3), 2) == 2.0
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        compiled(np.ones(3), 7)
    with pytest.raises(SourceError, match="was compiled for"):
        compiled(np.ones(4), 1)


def test_lower_and_compile():
    f = mp.jit(lambda x: {"y": x * 2})
    lowered = f.lower(mp.ShapeDtypeStruct((3,), np.float64))
    assert lowered.out_info == {"y": mp.ShapeDtypeStruct((3,), np.float64)}
    assert "mul" in lowered.as_text() and "noexcept nogil" in lowered.compile().as_text()
    np.testing.assert_array_equal(lowered.compile()(np.arange(3.0))["y"], [0, 2, 4])


def test_what_a_lowered_function_takes_and_gives():
    f = mp.jit(lambda x, k, *, y=1.0, s="a": {"a": x * k, "b": (y, x[0])}, static_argnames=("k", "s"))
    lowered = f.lower("f64[n]", 3, y=2.0, s="b")
    number = mp.ShapeDtypeStruct((), np.float64)
    for one in (lowered, f.lower(np.ones(4), 3, y=2.0, s="b").compile()):
        args, kwargs = one.args_info
        assert [(a.dtype, len(a.shape)) for a in args] == [(np.float64, 1)]
        assert list(kwargs) == ["y"] and kwargs["y"].shape == () and kwargs["y"].weak_type
        assert one.in_tree == mp.tree_util.tree_structure(((0,), {"y": 0}))
        assert one.out_tree == mp.tree_util.tree_structure({"a": 0, "b": (0, 0)})
        assert one.out_info["b"] == (number, number)
    assert (
        str(lowered.args_info[0][0].shape[0]) == "n"
        and lowered.compile().args_info[0][0].shape == lowered.args_info[0][0].shape
    )


def test_disabled():
    seen = []

    @mp.jit
    def f(x):
        seen.append(type(x))
        return x

    with mp.disable_jit():
        assert f(2.0) == 2.0
    assert seen == [float]


def test_programs_are_built_as_kernels():
    """A whole extension takes several times as long; only what needs Cython's utilities is built as one."""
    chosen = [case for theme in ("whiles", "stores", "sizes") for case in list(cases(theme))[::12]]
    forms = {}
    for name, function, args in chosen:
        jitted = mp.jit(function)
        jitted(*fresh(args))
        row = next(iter(jitted.jitted._memo.table.values()))[0]
        forms[name] = row.extra["library"].form
    assert len(forms) > 4 and set(forms.values()) == {"kernel"}, forms


def test_the_numpy_stage_runs_without_a_compiler(monkeypatch, caplog):
    from metaphrase.api import jit as module

    monkeypatch.setenv("METAPHRASE_CC", "no-such-compiler")
    monkeypatch.setattr(module, "_warned_of_no_compiler", False)
    with caplog.at_level(logging.WARNING, "metaphrase"):
        assert mp.jit(lambda x: x * 2)(3.0) == 6.0
        assert mp.jit(lambda x: x * 3)(3.0) == 9.0
    warnings = [m for m in caplog.messages if "NumPy source runs instead" in m]
    assert len(warnings) == 1


def test_errors_at_run_time_point_at_the_users_line():
    @mp.jit
    def pick(x, i):
        return x[i]

    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3") as caught:
        pick(np.arange(3.0), 7)
    last = caught.traceback[-1]
    assert "return x[i]" in str(last.statement)


def test_nested_transformations_inside_staged_code():
    @mp.jit
    def step(w, x):
        value, slope = mp.value_and_grad(lambda w: np.sum((x * w) ** 2))(w)
        inner = mp.vmap(lambda v: mp.jit(lambda u: u * w)(v))(x)
        return value, w - 0.1 * slope, inner

    x = np.array([1.0, 2.0])
    value, w, inner = step(0.5, x)
    assert np.isclose(value, 1.25) and np.isclose(w, 0.0) and inner.tolist() == [0.5, 1.0]


def test_eval_shape():
    out = mp.eval_shape(
        lambda p, x: {"y": x @ p["w"], "n": 3},
        {"w": mp.ShapeDtypeStruct((3, 2), np.float32)},
        np.ones((5, 3), np.float32),
    )
    assert out == {"y": mp.ShapeDtypeStruct((5, 2), np.float32), "n": 3}
