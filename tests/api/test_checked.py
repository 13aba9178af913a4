"""Errors as values: `checked(f)` returns what a call of `f` would have raised, under every transformation.

In: functions of which some calls fail. Out: the same class, message and line that Python has, as a value; the results
of the calls that don't fail; one error for each lane.
"""

from __future__ import annotations

import copy
import pickle
import re
import runpy
import traceback
from pathlib import Path

import numpy as np
import pytest
from corpus import failures

import metaphrase as mp
from metaphrase import lax
from metaphrase.astpasses.transforms.checked import errors_as_results
from metaphrase.core.evaluate import evaluate
from metaphrase.core.facts import Facts
from metaphrase.core.read import read
from metaphrase.experimental import checkify
from metaphrase.experimental.checkify import all_checks, check, check_error, div_checks, index_checks, nan_checks
from metaphrase.source import SourceError, UnsupportedError

from . import failing_programs as programs
from .failing_programs import PROGRAMS, TABLE

X, K = np.array([0.5, 1.5, 2.5, 3.5, -1.0, 6.0]), np.array([0, 1, 2, 3, 1, -2])
LANES = list(zip(X.tolist(), K.tolist()))


def ran(function, *args):
    """What a call gives: the result, or the exception."""
    try:
        return function(*args)
    except Exception as error:
        return error


def line(error):
    """The last line of a file of ours in the traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.lineno for frame in frames if "tests" in frame.filename][-1]


def same(error, result, expected, lane=None):
    """Whether an error and a result are what a plain call gave."""
    if not isinstance(expected, Exception):
        assert error.get() is None and not error.failed and error.throw() is None, (lane, error)
        np.testing.assert_allclose(result, expected, rtol=1e-9, err_msg=f"{lane}")
        return
    assert error.failed, (lane, expected)
    with pytest.raises(type(expected)) as caught:
        error.throw()
    found = caught.value
    assert type(found) is type(expected) and str(found) == str(expected), (lane, found, expected)
    assert error.get().endswith(str(expected)) and vars(found).get("k") == vars(expected).get("k")
    assert line(error.exception()) == line(expected), (lane, expected)


def each_lane(error, results, expected):
    assert error.failed.shape == (len(expected),)
    for lane, one in enumerate(expected):
        same(error[lane], results[lane], one, lane)
    failed = [lane for lane, one in enumerate(expected) if isinstance(one, Exception)]
    assert (error.get() or "").count("in lane ") == len(failed)


@pytest.mark.parametrize("function", PROGRAMS)
def test_a_call_is_what_python_does(function):
    run = mp.checked(function)
    for x, k in LANES:
        same(*run(x, k), ran(function, x, k))


@pytest.mark.parametrize("function", PROGRAMS)
def test_lanes(function):
    expected = [ran(function, x, k) for x, k in LANES]
    assert {isinstance(e, Exception) for e in expected} == {False, True}
    each_lane(*mp.vmap(mp.checked(function))(X, K), expected)


SOME = [programs.domain, programs.raised_in_a_while, programs.rows_of_a_scan, programs.in_branches]


@pytest.mark.parametrize("function", [*SOME, programs.while_in_a_loop, programs.stored, programs.singular])
def test_lanes_of_gradients(function):
    slope = mp.grad(function)
    expected = [ran(slope, x, k) for x, k in LANES]
    each_lane(*mp.vmap(mp.checked(slope))(X, K), expected)


@pytest.mark.parametrize("function", [*SOME, programs.while_in_a_loop])
def test_gradients_of_what_is_checked(function):
    def loss(x, k):
        error, out = mp.checked(function)(x, k)
        return out, error

    slopes, errors = mp.vmap(mp.grad(loss, has_aux=True))(X, K)
    for lane, (x, k) in enumerate(LANES):
        expected = ran(function, x, k)
        if not isinstance(expected, Exception):
            expected = mp.grad(function)(x, k)
        same(errors[lane], slopes[lane], expected, lane)


def test_native_code():
    def everything(x, k):
        return [mp.checked(f)(x, k) for f in PROGRAMS]

    native = mp.jit(mp.vmap(everything))(X, K)
    for function, (error, out) in zip(PROGRAMS, native, strict=True):
        each_lane(error, out, [ran(function, x, k) for x, k in LANES])


def test_around_a_batch_and_in_a_scan():
    """One error of all lanes, with the message of a batch that raises; and an error among the rows of a scan."""
    function = programs.in_branches
    error, out = mp.checked(mp.vmap(function))(X, K)
    same(error, out, ran(mp.vmap(function), X, K))
    assert error.get().endswith("of vmap") and out.shape == X.shape

    def step(count, pair):
        return count + 1, mp.checked(function)(*pair)

    _, (errors, outs) = lax.scan(step, 0, (X, K))
    each_lane(errors, outs, [ran(function, x, k) for x, k in LANES])


def test_tangents_and_second_derivatives():
    def cubes(x):
        total = 0.0
        for i in range(3):
            assert x[i] < 5
            total += x[i] ** 3
        return total

    good, bad = np.array([1.0, 2.0, 3.0]), np.array([1.0, 7.0, 3.0])
    error, matrix = mp.checked(mp.hessian(cubes))(good)
    np.testing.assert_allclose(matrix, np.diag(6 * good))
    assert not error.failed and mp.checked(mp.hessian(cubes))(bad)[0].failed
    for x in (good, bad):
        (error, out), (_, out_dot) = mp.jvp(mp.checked(cubes), (x,), (np.ones(3),))
        assert error.failed == (x is bad) and (x is bad or np.isclose(out_dot, 3 * np.sum(x**2)))


def sizes(x, k):
    assert len(x) > 1
    steps = x[1:] - x[:-1]
    total = 0.0
    for i in range(len(steps)):
        total += steps[i] * x[k + i]
    return total, steps, x[x > x[k]]


def test_sizes_that_are_left_open():
    run = mp.checked(sizes)
    for n in (3, 4, 6, 9):
        x = np.arange(n) * 1.5
        for k in (0, 1, n + 1):
            error, out = run(x, k)
            expected = ran(sizes, x, k)
            if isinstance(expected, Exception):
                same(error, None, expected)
                assert out[1].shape == (n - 1,)
            else:
                assert error.get() is None and all(map(np.array_equal, out, expected))


def test_sizes_that_the_run_computes():
    def cut(x):
        n = int(x[0])
        y = np.zeros(n)
        if n == 1:
            raise OverflowError(f"{x[1]}")
        return y[1:] - y[:-1], x[x > x[n]]

    for first in (3.0, 1.0, -2.0, 9.0, np.nan):
        x = np.array([first, 4.0, 5.0, 6.0])
        for run in (mp.checked(cut), mp.jit(mp.checked(cut))):
            error, out = run(x)
            expected = ran(cut, x)
            if isinstance(expected, Exception):
                same(error, out, expected)
            else:
                assert error.get() is None and all(map(np.array_equal, out, expected))


def test_the_rest_of_a_program_is_one_branch_where_sizes_are_bound():
    def steps(x, k):
        x = x * TABLE[k]
        for i in range(3):
            y = 1.0
            while y < x + i:
                y = y * 1.5 + np.sin(x)
            x = x + y
        return x

    lanes = [(0.5, 0), (2.0, 7), (3.0, 1)]
    slope = mp.grad(steps)
    for x, k in lanes:
        same(*mp.checked(slope)(x, k), ran(slope, x, k))
    each_lane(*mp.vmap(mp.checked(slope))(*map(np.array, zip(*lanes))), [ran(slope, x, k) for x, k in lanes])


def test_a_result_whose_size_is_not_known_where_an_error_is():
    program = read(
        """
def f(x: f64[n], y: f64) -> f64[n - 3]:
    ok: bool = lt(y, 1.0)
    check(ok, exception="ValueError", message="")
    part: f64[n - 3] = slice(x, 0, shape=(n - 3,), step=(1,))
    return part
"""
    )
    with pytest.raises(UnsupportedError, match="size that is not known where an error is"):
        errors_as_results(program, lambda let: True, Facts())
    made, failures = errors_as_results(program, lambda let: True, Facts().bounded("n", 3, None))
    assert len(failures) == 1 and len(evaluate(made, np.ones(5), np.array(2.0))[0]) == 2


def test_printing_ends_where_the_error_is(capsys):
    def steps(x, k):
        for i in range(4):
            print(i)
            x = x * TABLE[k + i]
        print("end")
        return x

    assert isinstance(ran(steps, 1.0, 1), IndexError)
    expected = capsys.readouterr().out
    assert mp.checked(steps)(1.0, 1)[0].failed and capsys.readouterr().out == expected == "0\n1\n2\n"


def test_stores_are_those_of_the_call_that_raises():
    def stores(x, k):
        for i in range(4):
            x[i] = 7.0
            assert i < k
        return x

    plain, value = np.zeros(4), np.zeros(4)
    assert isinstance(ran(stores, plain, 1), AssertionError)
    error, out = mp.checked(stores)(value, 1)
    assert error.failed and out is value and value.tolist() == plain.tolist() == [7.0, 7.0, 0.0, 0.0]

    def moves(model, k):
        model["t"] = TABLE[k]
        return k

    with pytest.raises(Exception, match="stores into an attribute or a container, and may fail"):
        mp.checked(moves)({"t": 0.0}, 1)


def test_lists_that_grow_and_functions_that_are_called_often():
    def grown(n, k):
        out = [0.0]
        while len(out) < n:
            out.append(out[-1] + TABLE[k])
            if len(out) > 100:
                k = k + 1
        return sum(out)

    for n in (10, 90, 150):
        same(*mp.checked(grown)(n, 0), ran(grown, n, 0))

    def layer(x, k):
        for _ in range(3):
            if x > 50:
                raise OverflowError(f"{x}")
            x = x * TABLE[k] + np.sin(x)
        return x + np.cos(x) * np.exp(-x) + x * x / (1 + x * x) - np.tanh(x) * x + np.sqrt(x * x + 1)

    def network(x, k):
        for _ in [0, 1, 2, 3, 4]:
            x = layer(x, k)
        return x

    for x, k in ((0.5, 0), (0.5, 3), (4.0, 2)):
        same(*mp.checked(network)(x, k), ran(network, x, k))


def test_which_errors():
    def function(x, k):
        assert x > 0, "not positive"
        return x * TABLE[k]

    assert mp.checked(function, errors=index_checks)(1.0, 7)[0].get().startswith("IndexError: index 7")
    with pytest.raises(AssertionError, match="not positive"):
        mp.checked(function, errors=index_checks)(-1.0, 1)
    assert checkify.checkify(function)(-1.0, 7)[0].get() == "AssertionError: not positive"
    with pytest.raises(IndexError):
        checkify.checkify(function)(1.0, 7)
    with pytest.raises(SourceError, match="no set of errors"):
        mp.checked(function, errors="all")


def test_nans_and_divisions():
    def function(x):
        return np.sqrt(x).sum() / x[0]

    values = np.array([[4.0, 1.0], [0.0, 1.0], [1.0, -1.0]])
    error, _ = mp.vmap(mp.checked(function, errors=all_checks))(values)
    zero, nan = "ZeroDivisionError: div(1.0, 0.0): division by zero", "FloatingPointError: sqrt(-1.0) is nan"
    assert error.get() == f"in lane 1: {zero}\nin lane 2: {nan}"
    assert not mp.checked(function, errors=div_checks)(values[2])[0].failed
    slope, _ = mp.checked(mp.grad(np.sqrt), errors=nan_checks)(-1.0)
    assert slope.get() == "FloatingPointError: sqrt(-1.0) is nan"
    quotient = mp.checked(mp.grad(lambda x: np.where(x > 0, np.sqrt(x), 0.0)), errors=div_checks)(0.0)[0]
    assert "adjoint" in "".join(quotient.exception().__notes__)


def test_check_and_check_error():
    def inverse(x):
        check(x != 0, "{} is {x}", "x", x=x)
        return 1 / x

    error, _ = mp.vmap(mp.checked(inverse))(np.array([2.0, 0.0]))
    assert error.get() == "in lane 1: metaphrase.experimental.checkify.FailedCheckError: x is 0.0"
    with pytest.raises(checkify.FailedCheckError, match="^x is 0.0, in lane 1 of vmap$") as caught:
        error.throw()
    assert caught.traceback[-1].lineno + 1 == inverse.__code__.co_firstlineno + 1

    @mp.vmap
    def guarded(x):
        error, y = mp.checked(inverse)(x)
        check_error(error)
        return y

    with pytest.raises(checkify.FailedCheckError, match="x is 0.0, in lane 1 of vmap"):
        guarded(np.array([2.0, 0.0]))

    def instead(x):
        error, y = mp.checked(inverse)(x)
        return -1.0 if error.failed else y

    assert mp.vmap(instead)(np.array([2.0, 0.0])).tolist() == [0.5, -1.0]
    assert mp.checked(lambda x: mp.checked(inverse)(x)[0].throw())(0.0)[0].get() == error[1].get()


def test_an_error_is_a_pytree_of_integers():
    error, _ = mp.vmap(mp.checked(programs.in_branches))(X, K)
    again = pickle.loads(pickle.dumps(error))
    assert again.get() == error.get() and mp.jit(lambda e: e[1:])(error).get() == error[1:].get()
    assert [leaf.dtype for leaf in mp.tree.leaves(error)] == [np.dtype(int)] * len(mp.tree.leaves(error))
    assert [one.failed for one in error] == error.failed.tolist() and len(error) == len(X)
    assert "Error(" in repr(mp.eval_shape(mp.checked(programs.domain), 1.0, 1))


@pytest.mark.parametrize("function, args", failures.CASES, ids=[f.__name__ for f, _ in failures.CASES])
def test_the_corpus_of_failures(function, args):
    expected = ran(function, *copy.deepcopy(args))
    error, _ = mp.checked(function)(*copy.deepcopy(args))
    assert type(error.exception()) is (type(expected) if isinstance(expected, Exception) else type(None))


def test_the_program_reads_well():
    text = mp.source(mp.checked(programs.raised_in_a_while), 1.0, 1)
    assert "    while error == 0 and x < 100.0:\n" in text and "raise" not in text.replace("raised_in", "")


def test_the_page_says_what_is_printed(tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "debugging.md").read_text()
    section = page[page.index("## Errors as values") : page.index("## Looking at values")]
    (program,), (printed, text) = (
        re.findall(r"```python\n(.*?)```", section, re.S),
        re.findall(r"```\n(\w.*?)```", section.replace("```python", ""), re.S),
    )
    path = tmp_path / "walks.py"
    path.write_text("import numpy as np\nimport metaphrase as mp\n" + program)
    scope = runpy.run_path(str(path))
    assert capsys.readouterr().out == printed
    assert mp.source(mp.checked(scope["walk"]), 1.0, 0).endswith(text + "\n" * (not text.endswith("\n")))
