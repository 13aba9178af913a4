"""The derivatives of every corpus function: native code = evaluated core program = saved NumPy source.

And = finite differences, where a step changes no decision; and forward and reverse mode are each other's
transposes. Bounds are as in test_values, but `BOUND` is wider: derivatives magnify the last bits of what they
are computed from (1 - tanh(x)**2 near 0 makes one unit a hundred).
"""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest
from corpus import fresh
from derivatives import Derived, derive, derived_loops, moved, programs
from grouped import build
from saved import foreign, run_alone
from stages import CASES, CHUNKS, SAMPLE, TODAY, TURNS, names_of_today
from together import jitted
from turns import part
from ways import SMALL_PARTS, Outcome, assert_same, caught, distance, failures, is_exact, run_loops, several_threads

import metaphrase as mp
from metaphrase.astpasses.emit.numpy_source import compile_numpy, numpy_source
from metaphrase.astpasses.schedule import schedule
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.core import evaluate as evaluation
from metaphrase.core.build import Builder
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.ops.arithmetic import mul
from metaphrase.ops.families import like

BOUND = 256
NEAR = 4  # of the NumPy text, which computes as the evaluator does


def listed(run, function):
    """The results as a list of arrays, whatever way they come."""
    count = len(function.results)

    def arrays(*args):
        results = run(*args)
        results = [results] if count == 1 and not isinstance(results, list | tuple) else list(results)
        return [np.asarray(r) for r in results]

    return arrays


@names_of_today
def test_programs_read_back_and_their_loops_run(name):
    for mode, (function, args) in programs(derive(name)).items():
        check(function)
        assert same(read(show(function)), function), mode
        program = derived_loops(name)[mode]
        got = caught(listed(lambda *a, p=program: run_loops(p, a), function), args)
        assert_same(evaluated(function, args), got, bound(function), f"{mode} loops")


def evaluated(function: Function, args: tuple) -> Outcome:
    return caught(listed(lambda *a: evaluate(function, *a), function), args)


def bound(function: Function) -> int:
    return 0 if is_exact(function) else BOUND


WAYS = [(chunk, "fused") for chunk in TODAY]
WAYS += [(chunk, way) for k, way in enumerate(("unfused", "shared")) for chunk in part(TODAY, 6, of=TURNS, first=k)]


@pytest.mark.parametrize("chunk, way", WAYS)
def test_native_derivatives(chunk, way):
    found = {(name, mode): pair for name in CHUNKS[chunk] for mode, pair in programs(derive(name)).items()}
    functions = {key: function for key, (function, _) in found.items()}
    if way == "fused":
        made = {(name, mode): p for name in CHUNKS[chunk] for mode, p in derived_loops(name).items()}
    else:
        target = SMALL_PARTS if way == "shared" else CPU
        made = {key: schedule(f, target, fuse=way != "unfused") for key, f in functions.items()}
    compiled = build(functions, made)

    def test(key):
        function, args = found[key]
        got = caught(listed(lambda *a: compiled[key].run(a), function), args)
        assert_same(evaluated(function, args), got, bound(function), "native")

    with several_threads() if way == "shared" else contextlib.nullcontext():
        assert not (wrong := failures(found, test)), wrong


@names_of_today
def test_the_texts_of_derivatives(name):
    for mode, (function, args) in programs(derive(name)).items():
        text = numpy_source(function, name="saved")
        assert not foreign(text), text
        got = caught(listed(compile_numpy(text), function), args)
        assert_same(evaluated(function, args), got, NEAR, f"the text of {mode}")


@pytest.mark.turns(3)
def test_texts_of_derivatives_run_without_us():
    found = {(name, mode): pair for name in SAMPLE for mode, pair in programs(derive(name)).items()}
    alone = run_alone({key: (numpy_source(f, name="saved"), args) for key, (f, args) in found.items()})
    assert alone.keys() == found.keys() and len(found) > len(SAMPLE)
    for key, (function, args) in found.items():
        want = evaluated(function, args)
        if want.error is not None:
            assert alone[key] == want.error.__name__, key
        else:
            got = listed(lambda key=key: alone[key], function)()
            assert distance(got, [np.asarray(r) for r in want.result]) <= NEAR, key


# ---- finite differences and duality ------------------------------------------------------------------------


@pytest.fixture
def decisions(monkeypatch):
    """All that is computed and is no floating-point number: a step that changes it is no small one."""
    seen = []
    run_let = evaluation.run_let

    def recorded(let, values, sizes):
        outs = run_let(let, values, sizes)
        seen.extend(np.asarray(o).tobytes() for o in outs if np.asarray(o).dtype.kind not in "fcV")
        return outs

    monkeypatch.setattr(evaluation, "run_let", recorded)
    return seen


def around(derived: Derived, step: float, decisions: list) -> list[list[np.ndarray]] | None:
    """The smooth results at -2, -1, 0, 1 and 2 steps; None where the steps part the program's ways."""
    values, ways = [], []
    for k in (-2, -1, 0, 1, 2):
        decisions.clear()
        try:
            results = evaluate(derived.primal, *moved(derived, k * step))
        except (AttributeError, NotImplementedError, TypeError):  # a fault of ours
            raise
        except Exception:  # what the program raises, classes of its own among them
            return None
        values.append([np.asarray(r) for r, s in zip(results, derived.smooth) if s])
        ways.append(list(decisions))
    return values if all(way == ways[2] for way in ways) else None


def has_singles(function: Function) -> bool:
    """Whether something is computed with the 24 bits of a float32."""
    types = [*function.param_types, *(out.type for let in function.lets for out in let.outs)]
    return any(t.dtype in ("float32", "complex64", "float16") for t in types) or any(
        has_singles(region) for let in function.lets for region in let.regions()
    )


def differences(name: str, decisions: list) -> int:
    """Check the elements at which the function has a derivative in this direction; how many there are."""
    derived = derive(name)
    if derived is None:
        return 0
    single = has_singles(derived.primal)
    step, tolerance = (1e-2, 2e-2) if single else (1e-5, 1e-6)
    points = around(derived, step, decisions)
    if points is None:
        return 0
    dots = evaluate(derived.jvp, *derived.args, *derived.dots)[len(derived.smooth) :]
    checked = 0
    for k, dot in enumerate(dots):
        a, b, c, d, e = (np.asarray(p[k], np.clongdouble) for p in points)
        slope = (8 * (d - b) - (e - a)) / (12 * step)
        with np.errstate(invalid="ignore"):
            kink = np.abs((d - c) - (c - b)) / step > (0.1 if single else 1e-3) * (1 + np.abs(slope))
            far = np.abs(slope - dot) > tolerance * (1 + np.abs(slope))
        known = np.isfinite(slope) & ~kink
        assert not (far & known).any(), f"{name}: result {k} moves by\n{slope}\nnot\n{dot}"
        checked += int(known.sum())
    return checked


@names_of_today
def test_forward_mode_is_the_slope(name, decisions):
    derived = derive(name)
    checked = differences(name, decisions)
    assert checked >= 0 and (derived is not None or checked == 0)


@pytest.mark.turns(3)
def test_most_derivatives_have_a_slope_to_compare(decisions):
    differentiable = [name for name in SAMPLE if derive(name) is not None]
    checked = [name for name in differentiable if differences(name, decisions)]
    assert len(differentiable) > 0.7 * len(SAMPLE)
    assert len(checked) > 0.75 * len(differentiable), sorted(set(differentiable) - set(checked))


def test_a_wrong_slope_is_seen(decisions, monkeypatch):
    derived = derive("closures.inner_function")
    assert derived is not None and differences("closures.inner_function", decisions) > 0
    wrong = dataclasses.replace(derived, primal=scaled(derived.primal))
    monkeypatch.setitem(globals(), "derive", lambda name: wrong)
    with pytest.raises(AssertionError, match="moves by"):
        differences("closures.inner_function", decisions)


def scaled(function: Function) -> Function:
    """The function, and one result in a thousand more."""
    with Builder(function.name) as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        first, *rest = builder.replay(function, params)
        return builder.function([mul(first, like(first.type, 1.001)), *rest])


@names_of_today
def test_reverse_mode_is_the_transpose_of_forward_mode(name):
    derived = derive(name)
    if derived is None or derived.vjp is None:
        return
    count = len(derived.smooth)
    try:
        dots = evaluate(derived.jvp, *derived.args, *derived.dots)[count:]
    except Exception as problem:
        with pytest.raises(type(problem)):
            evaluate(derived.vjp, *derived.args, *derived.bars)
        return
    bars = evaluate(derived.vjp, *derived.args, *derived.bars)[count:]
    pairs = [
        [np.asarray(x * y, np.complex128).ravel().real for x, y in zip(*side, strict=True)]
        for side in ((derived.bars, dots), (bars, derived.dots))
    ]
    left, right = map(np.concatenate, pairs)
    size = np.abs(left).sum() + np.abs(right).sum()
    single = has_singles(derived.primal)
    single = single or any(np.asarray(v).dtype.itemsize <= 4 for v in (*derived.bars, *derived.dots))
    if np.isfinite(size):
        assert abs(left.sum() - right.sum()) <= (1e-5 if single else 1e-12) * size


# ---- as users call it --------------------------------------------------------------------------------------


def is_scalar(name: str) -> bool:
    """A float alone as the result, a float first among the arguments, nothing written."""
    derived, (function, args) = derive(name), CASES[name]
    if derived is None or derived.vjp is None or len(derived.primal.results) != 1 or not args:
        return False
    result = derived.primal.results[0].type
    first = isinstance(args[0], float | np.ndarray) and np.asarray(args[0]).dtype == float
    alone = result.dims == () and result.dtype == float
    return first and alone and np.isscalar(caught(function, args).result)


@pytest.mark.parametrize("chunk", TODAY)
def test_jitted_gradients(chunk):
    """`jit(grad)`, `grad` and `jit(jvp)` agree, of every second function."""
    scalar = list(filter(is_scalar, CHUNKS[chunk]))[::2]
    with mp.config(contract=False):
        gradients = jitted({name: (mp.grad(CASES[name][0]), fresh(CASES[name][1])) for name in scalar})
        slopes = jitted({name: slope(name) for name in scalar})

    def test(name):
        function, args = CASES[name]
        want = caught(mp.grad(function), args)
        with mp.config(contract=False):
            assert_same(want, caught(gradients[name], args), BOUND, "jit(grad)")
            got = caught(lambda x, *_: slopes[name](x, np.ones_like(x)[()]), args)
        assert got.error == want.error
        if want.error is None:
            assert abs(got.result - np.sum(want.result)) <= 1e-10 * (1 + np.sum(np.abs(want.result)))

    assert not (wrong := failures(scalar, test)), wrong


def slope(name: str) -> tuple:
    """The slope of a corpus function by its first argument, and that argument with a tangent."""
    function, args = CASES[name]
    first, *rest = fresh(args)

    def forward(x, t):
        return mp.jvp(lambda y: function(y, *rest), (x,), (t,))[1]

    return forward, (first, np.ones_like(first)[()])


@pytest.mark.turns(3)
def test_there_are_scalar_functions():
    assert sum(map(is_scalar, SAMPLE)) > 0.05 * len(SAMPLE)
