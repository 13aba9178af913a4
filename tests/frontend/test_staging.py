"""What staging promises beside results: captures, guards, pinning, sizes, no trace of trials, names and
places."""

from __future__ import annotations

import linecache
import logging
import math
import traceback
import types

import numpy as np
import pytest
from corpus.control_programs import walked

import metaphrase as mp
from metaphrase.astpasses.frontend.rewrite.parsing import NoSource, find_source
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.core.check import check
from metaphrase.core.dims import Sym
from metaphrase.core.evaluate import evaluate
from metaphrase.core.show import show
from metaphrase.core.types import Array, f64, i64

N, M = Sym("n"), Sym("m")


def run(function, *args, **kwargs):
    staged = stage(function, args, kwargs)
    check(staged.function)
    return staged.result(evaluate(staged.function, *staged.arguments(args, kwargs)), args, kwargs)


def count(function) -> int:
    return sum(1 + sum(count(r) for r in let.regions()) for let in function.lets)


# --- captures and guards ---

TABLE = {"w": np.array([1.0, 2.0])}
RATE = 2.0


def helper(x):
    return x + 1


def reads_outside(x):
    return helper(TABLE["w"] * x) * RATE


def test_captured_array_is_read_at_each_call():
    staged = stage(reads_outside, (3.0,))
    first = staged.result(evaluate(staged.function, *staged.arguments((3.0,))), (3.0,))
    kept = TABLE["w"]
    try:
        TABLE["w"] = np.array([10.0, 20.0])
        second = staged.result(evaluate(staged.function, *staged.arguments((3.0,))), (3.0,))
    finally:
        TABLE["w"] = kept
    np.testing.assert_array_equal(first, [8.0, 14.0])
    np.testing.assert_array_equal(second, [62.0, 122.0])


@pytest.mark.parametrize("name, value", [("RATE", 3.0), ("helper", lambda x: x)])
def test_a_changed_global_breaks_a_guard(name, value):
    staged = stage(reads_outside, (3.0,))
    assert all(g.holds() for g in staged.guards)
    kept = globals()[name]
    try:
        globals()[name] = value
        assert not all(g.holds() for g in staged.guards)
    finally:
        globals()[name] = kept
    assert all(g.holds() for g in staged.guards)


def test_closure_values_are_guarded():
    k = 2.0

    def scaled(x):
        return x * k

    staged = stage(scaled, (3.0,))
    assert all(g.holds() for g in staged.guards)
    k = 5.0
    assert not all(g.holds() for g in staged.guards)
    assert run(scaled, 3.0) == 15.0


def test_iterated_container_is_guarded_by_its_length():
    layers = [np.ones(2), np.ones(2)]

    def total(x):
        for w in layers:
            x = x + (w * x).sum()
        return x

    staged = stage(total, (1.0,))
    assert len(staged.captures) == 2 and all(g.holds() for g in staged.guards)
    layers.append(np.ones(2))
    assert not all(g.holds() for g in staged.guards)


def test_one_array_under_two_names_is_one_argument():
    a = np.ones(3)
    holder = {"a": a}

    def f(x):
        return a * x + holder["a"]

    assert len(stage(f, (2.0,)).captures) == 1


# --- static, pinned, sizes ---


def test_list_index_pins_the_argument(caplog):
    def pick(x, k):
        return [np.sin, np.cos, np.tan][k](x)

    with caplog.at_level(logging.INFO, "metaphrase"):
        staged = stage(pick, (2.0, 1))
    assert staged.pinned == (1,) and "pinned" in caplog.text
    assert [p.name for p in staged.function.params] == ["x"]


def test_bools_and_strings_are_static():
    def f(x, training, name):
        return x * 2 if training and name == "a" else x

    staged = stage(f, (2.0, True, "a"))
    assert [k for k, _ in staged.static] == [1, 2] and len(staged.function.params) == 1


def test_static_arguments_by_position_and_name():
    def f(x, n, *, m=1):
        return np.ones(n).sum() * x + m

    assert len(stage(f, (2.0, 3), {"m": 4}, static=(1, "m")).function.params) == 1


def test_a_number_as_a_size_is_a_symbol():
    def f(n, x):
        return np.zeros(n) + x

    staged = stage(f, (4, 1.0))
    (result,) = staged.function.result_types
    assert staged.pinned == () and not isinstance(result.dims[0], int)
    assert evaluate(staged.function, 7, 1.0)[0].shape == (7,)


def test_symbolic_shapes():
    def f(a, x):
        rows, columns = a.shape
        total = np.zeros(rows)
        for i in range(rows):
            total[i] = a[i] @ x + columns
        return total / len(x)

    staged = stage(f, (Array(f64, (N, M)), Array(f64, (M,))))
    check(staged.function)
    for n, m in ((3, 4), (5, 2), (1, 1), (0, 3)):
        a, x = np.random.default_rng(0).normal(size=(n, m)), np.ones(m)
        np.testing.assert_allclose(evaluate(staged.function, a, x)[0], f(a, x))
    assert "check" not in show(staged.function)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[1:] - x[:-1],
        lambda x: x[::-1] * x,
        lambda x: x[-1] + x[0],
        lambda x: x.mean() + x.shape[0],
        lambda x: x.reshape(-1, 1) @ x.reshape(1, -1),
        lambda x: np.concatenate([x, x])[2:],
        lambda x: x[len(x) // 2],
        lambda x: np.stack([x, 2 * x]).T,
        lambda x: x[x > 0].sum(),
    ],
)
def test_symbolic_vector(function):
    staged = stage(function, (Array(f64, (N,)),))
    check(staged.function)
    for n in (2, 5):
        x = np.arange(1.0, n + 1)
        np.testing.assert_allclose(evaluate(staged.function, x)[0], function(x))


def test_boolean_mask_has_a_size_of_its_own():
    staged = stage(lambda x: x[x > 0], (np.ones(4),))
    assert evaluate(staged.function, np.array([1.0, -1.0, 2.0, -3.0]))[0].tolist() == [1.0, 2.0]


# --- loops ---


def many(x, n):
    for i in range(n):
        if i % 3 == 0:
            x = x + i
        else:
            x = x * 0.5
    return x


def test_program_size_does_not_grow_with_the_trip_count():
    sizes = {count(stage(many, (1.0, n), static=(1,)).function) for n in (10, 1000, 100_000)}
    assert len(sizes) == 1


def test_deep_nests_are_staged_a_few_times_only():
    calls = []

    def note(x):
        calls.append(1)
        return x

    def nest(a):
        for i in range(9):
            for j in range(9):
                for k in range(9):
                    for m in range(9):
                        a[i, j] = a[k, m] + 1
                        math.isnan(0.0)
                        noted()
        return a

    def noted():
        return None

    traced = types.FunctionType(noted.__code__, globals())
    assert traced() is None
    stage(nest, (np.zeros((9, 9)),))
    assert note(1) == 1 and len(calls) == 1


def test_items_that_elements_of_an_array_tell_are_read_in_a_rolled_loop():
    steps = np.resize([1, 3, 2, -1, 1, 0], 200)
    assert len(mp.source(walked, steps, 0, 5).splitlines()) < 60
    assert mp.jit(walked)(steps, 0, 5) == walked(steps, 0, 5)
    with pytest.raises(IndexError, match="list index out of range"):
        mp.jit(walked)(np.array([1, 4]), 0, 5)


def test_unrolling_is_logged_with_its_reason(caplog):
    def f(x):
        out = []
        for k in range(6):
            out.append(2 * k)
        return x * out[-1]

    with caplog.at_level(logging.INFO, "metaphrase"):
        assert run(f, 2.0) == 20.0
    assert "unrolled" in caplog.text and "length of a list" in caplog.text


def test_a_trial_given_up_leaves_no_trace():
    class Log:
        def __init__(self):
            self.items = []
            self.total = 0

    def f(x, log, names):
        for k in range(6):
            log.total = log.total + 1
            log.items.append(k)
            names["last"] = str(k)
        return x * log.total

    seen, names = Log(), {"last": "none"}

    def call(x):
        local = Log()
        return f(x, local, {}), len(local.items), local.total

    assert run(call, 2.0) == (12.0, 6, 6)
    assert seen.items == [] and names == {"last": "none"}


def test_staging_undoes_writes_to_the_users_objects():
    values = np.array([1.0, 2.0])
    d = {"a": values, "n": 1}

    def f(d, x):
        d["a"][0] = x
        d["n"] = d["n"] + 1
        d["new"] = x
        return d["a"].sum()

    staged = stage(f, (d, 3.0))
    assert values[0] == 1.0 and d.keys() == {"a", "n"} and d["a"] is values
    args = ({"a": values.copy(), "n": 1}, 3.0)
    result = staged.result(evaluate(staged.function, *staged.arguments(args)), args)
    assert result == 5.0 and args[0]["a"].tolist() == [3.0, 2.0] and args[0]["n"] == 2 and args[0]["new"] == 3.0


def test_python_while_on_static_values_runs_in_python():
    def f(x):
        stack = [1, 2, 3]
        total = 0
        while stack:
            total += stack.pop()
        return x * total

    assert run(f, 2.0) == 12.0


def test_state_of_a_loop_keeps_its_python_type():
    def f(n):
        k = 0
        while k * k < n:
            k += 1
        return k

    staged = stage(f, (10,))
    assert staged.outputs[0].python is int and run(f, 10) == 4 and type(run(f, 10)) is int


# --- nested stagings ---


class Inlined:
    """A transformation that transforms nothing."""

    def __init__(self, function):
        self.function = function

    def __metaphrase_stage__(self, args, kwargs):
        return stage(self.function, args, kwargs)


def test_a_transformed_function_takes_outer_values_as_captures():
    def f(x, w):
        scale = x.sum()
        inner = Inlined(lambda v: v * w + scale if v.sum() > 0 else v - scale)
        return inner(x) + inner(-x)

    x, w = np.array([1.0, 2.0]), np.array([3.0, 4.0])

    def plain(x, w):
        scale = x.sum()
        return (x * w + scale) + (-x - scale)

    np.testing.assert_allclose(run(f, x, w), plain(x, w))


def test_a_store_into_a_captured_array_is_refused():
    def f(x):
        y = np.zeros(2)

        def inner(v):
            y[0] = v
            return v

        return Inlined(inner)(x) + y[0]

    with pytest.raises(Exception, match="stores into an array from outside"):
        stage(f, (1.0,))


# --- names, places, sources ---


def named(first, second):
    product = first * second
    shifted = product + 1.0
    return np.sin(shifted)


def test_variables_have_the_users_names_and_places():
    staged = stage(named, (2.0, 3.0))
    assert [p.name for p in staged.function.params] == ["first", "second"]
    lets = staged.function.lets
    assert [let.out.name for let in lets] == ["product", "shifted", "sin"]
    start = named.__code__.co_firstlineno
    assert [let.span.line - start for let in lets] == [1, 2, 3]
    assert all(let.span.file == __file__ for let in lets)
    assert lets[0].span.text()[lets[0].span.column : lets[0].span.end_column] == "first * second"


def test_pytree_leaves_are_named_by_path():
    staged = stage(lambda params, x: params["w"] * x + params["b"], ({"w": 1.0, "b": 2.0}, 3.0))
    assert [p.name for p in staged.function.params] == ["params_b", "params_w", "x"]


def test_exceptions_show_the_users_line():
    def broken(x):
        y = x * 2
        return y.no_such_thing

    with pytest.raises(AttributeError) as caught:
        stage(broken, (1.0,))
    lines = [
        f.lineno - broken.__code__.co_firstlineno
        for f in traceback.extract_tb(caught.value.__traceback__)
        if f.filename == __file__
    ]
    assert 2 in lines


def test_functions_of_the_repl_have_source():
    text = "def typed_in(x):\n    while x > 1:\n        x = x / 2\n    return x\n"
    file = "<metaphrase-test-cell>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict = {}
    exec(compile(text, file, "exec"), scope)
    assert run(scope["typed_in"], 9.0) == 0.5625 * 1.0


def test_lambdas_on_one_line_are_told_apart():
    pair = [lambda x: x + 1 if x > 0 else x, lambda x: x * 2 if x > 0 else -x]
    assert [run(f, 3.0) for f in pair] == [4.0, 6.0]


def test_edited_files_have_no_source():
    scope: dict = {}
    exec(compile("\n\ndef gone(x):\n    return x\n", __file__, "exec"), scope)
    with pytest.raises(NoSource):
        find_source(scope["gone"])


def test_a_function_without_source_still_runs():
    scope: dict = {"np": np}
    exec("def plain(x):\n    return np.sin(x) * 2 + x", scope)
    np.testing.assert_allclose(run(scope["plain"], np.ones(3)), np.sin(1.0) * 2 + 1)


# --- run-time checks ---


def test_checks_raise_at_run_time_not_at_staging():
    def f(x, k):
        assert x > 0, f"x is {x:.1f}"
        return np.arange(3.0)[k] / x

    staged = stage(f, (1.0, Array(i64)))
    with pytest.raises(AssertionError, match="x is -1.0"):
        evaluate(staged.function, -1.0, 0)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 3"):
        evaluate(staged.function, 1.0, 5)
    assert evaluate(staged.function, 2.0, 1)[0] == 0.5


def test_printing_is_an_effect_of_the_program(capsys):
    def f(x):
        print("x is", x, f"half {x / 2:.2f}")
        return x

    staged = stage(f, (3.0,))
    assert capsys.readouterr().out == ""
    evaluate(staged.function, 3.0)
    assert capsys.readouterr().out == "x is 3.0 half 1.50\n"


def test_read_only_arguments_are_not_written():
    x = np.ones(3)
    x.flags.writeable = False

    def f(x):
        x[0] = 2
        return x

    with pytest.raises(ValueError, match="read-only"):
        stage(f, (x,))


def test_the_sum_of_a_list_of_ints_keeps_to_64_bits():
    def f(n):
        return sum([n + k for k in range(6)])

    assert run(f, 3) == 33
    with pytest.raises(OverflowError):
        run(f, 2**62)
