"""Every primitive, written as NumPy source and run, gives what its NumPy rule gives: same dtype, shape and
bits.

In: the sample operands of the registry. Out: one function a sample, executed through its emitted text.
"""

from __future__ import annotations

import numpy as np
import pytest

import metaphrase.ops  # noqa: F401
from metaphrase.astpasses.emit.numpy_source import compile_numpy, numpy_source
from metaphrase.astpasses.emit.numpy_source_spellings import check_spelled
from metaphrase.core.build import trace
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.primitive import REGISTRY
from metaphrase.core.types import type_of
from metaphrase.ops.samples import SAMPLES


def test_every_primitive_has_a_spelling():
    assert check_spelled() == []


def program(name: str, sample) -> Function:
    """A function of the sample's operands that returns all results of the primitive."""
    primitive = REGISTRY[name]
    params = [(f"x{k}", type_of(a)) for k, a in enumerate(sample.args)]
    return trace(f"use_{name}", lambda *args: primitive(*args, **sample.attributes) or (), params)


def equal_bits(a, b, loose: bool = False) -> bool:
    """Same dtype, shape and bits; `loose`: the last bits may differ (einsum, and NumPy's products of complex
    scalars)."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if loose and a.dtype.kind in "fc":
        return np.allclose(a, b, rtol=8 * np.finfo(a.dtype).eps, atol=1e-14)
    same = a == b
    if a.dtype.kind in "fc":
        same = same | (np.isnan(a) & np.isnan(b))
        if a.dtype.kind == "f":
            same = same & ((np.signbit(a) == np.signbit(b)) | np.isnan(a))
    return bool(np.all(same))


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if not REGISTRY[n].transient))
def test_the_text_computes_what_the_rule_says(name):
    for sample in SAMPLES[name]:
        function = program(name, sample)
        want = evaluate(function, *sample.args)
        text = numpy_source(function)
        with np.errstate(all="ignore"):
            got = compile_numpy(text)(*(np.array(a)[()] for a in sample.args))
        got = (got,) if len(want) == 1 else () if not want else got
        assert len(got) == len(want), text
        odd = bool(want) and np.iscomplexobj(want[0]) and (not np.ndim(want[0]) or "outer" in text)
        loose = odd or "einsum" in text
        for g, w in zip(got, want):
            assert equal_bits(g, w, loose), f"{text}\n{sample.args}\ngot {g!r}\nwant {w!r}"
            assert np.ndim(w) or isinstance(g, np.generic), f"{text}\ngot {type(g)}"
        assert text == numpy_source(program(name, sample))
