"""Every primitive and its derivative give the same bits before and after every pass, edge cases of floats
included.

In: the sample operands of the registry. Out: programs and their vjps, run by the evaluator before and after
`optimize`.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase.ops  # noqa: F401
from metaphrase.astpasses.optimize import PASSES, optimize
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.build import trace
from metaphrase.core.check import check
from metaphrase.core.dims import Dim
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function, Var
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import has_tangent, type_of
from metaphrase.ops.collectives import MAPPED  # no finished program has them
from metaphrase.ops.samples import SAMPLES


def equal_bits(a, b) -> bool:
    """Same dtype, shape and bits; any NaN equals any NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind == "c":
        return equal_bits(a.real, b.real) and equal_bits(a.imag, b.imag)
    same = a == b
    if a.dtype.kind == "f":
        same = same & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
    return bool(np.all(same))


def program(name: str, sample) -> Function:
    params = [(f"x{k}", type_of(a)) for k, a in enumerate(sample.args)]
    return trace(f"use_{name}", lambda *args: REGISTRY[name](*args, **sample.attributes) or (), params)


def assert_same(before: Function, after: Function, args) -> None:
    check(after)
    for a, b in zip(evaluate(before, *args), evaluate(after, *args), strict=True):
        assert equal_bits(a, b), f"{before}\n{after}\n{args}\n{a!r}\n{b!r}"


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if n != "custom_transpose"))
def test_each_pass_keeps_the_answer(name, monkeypatch):
    monkeypatch.setenv("METAPHRASE_CHECK", "1")
    for sample in SAMPLES[name]:
        function = program(name, sample)
        for one in PASSES:
            assert_same(function, one.run(function), sample.args)
        assert_same(function, optimize(function, before_transform=True), sample.args)
        assert_same(function, optimize(function, before_transform=name in MAPPED), sample.args)


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if any(s.smooth for s in SAMPLES[n])))
def test_the_derivative_stays_the_derivative(name, monkeypatch):
    """vjp of the program simplified before differentiation is the vjp, up to rounding; simplified after, bit
    for bit."""
    monkeypatch.setenv("METAPHRASE_CHECK", "1")
    rng = np.random.default_rng(5)
    for sample in [s for s in SAMPLES[name] if s.smooth][:6]:
        function = program(name, sample)
        wrt = [has_tangent(p.type) for p in function.params]
        if not any(wrt) or any(isinstance(d, Dim) for type_ in function.result_types for d in type_.dims):
            continue  # cotangents of sizes that the run tells: the tests of the transformations have them
        backward = vjp(function, wrt)
        bars = [
            np.asarray(rng.standard_normal(tuple(p.type.dims))).astype(p.type.dtype)[()]
            for p in backward.params[len(function.params) :]
        ]
        args = [*sample.args, *bars]
        assert_same(backward, optimize(backward, before_transform=True), args)
        late = evaluate(optimize(backward, before_transform=name in MAPPED), *args)
        for a, b in zip(evaluate(backward, *args), late, strict=True):  # zero_sums may change the sign of a zero
            assert np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b, equal_nan=True)
        early = vjp(optimize(function, before_transform=True), wrt)
        for a, b in zip(evaluate(backward, *args), evaluate(early, *args), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5 if np.asarray(a).dtype.itemsize <= 4 else 1e-11, atol=1e-30)


def test_the_passes_leave_no_unread_operation():
    """`dead` ends every round, so each Let of an optimized derivative is read or has an effect."""
    for name in ("tanh", "dot_general", "loop", "cond", "slice_update", "reduce_max"):
        sample = next(s for s in SAMPLES[name] if s.smooth)
        function = program(name, sample)
        after = optimize(vjp(function, [has_tangent(p.type) for p in function.params]), before_transform=False)
        read = {a for let in after.lets for a in let.args} | set(after.results)
        for let in after.lets:
            assert let.primitive.effect or any(v in read for v in let.outs), f"{let}\n{after}"
            assert all(isinstance(v, Var) for v in let.outs)
