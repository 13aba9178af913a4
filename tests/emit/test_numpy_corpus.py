"""The NumPy source of every corpus function and of its derivative: the evaluator's results, bit for bit, and
again in a process that can import NumPy and nothing of ours.

In: the corpus, each day another part of it. Out: texts, run here and there; an exception counts as a result.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from corpus import fresh
from saved import foreign, run_alone
from stages import CASES, SAMPLE, core, names_of_today, once, primal, staged

from metaphrase.astpasses.emit.numpy_source import compile_numpy, numpy_source
from metaphrase.astpasses.optimize import optimize
from metaphrase.astpasses.transforms.reverse import vjp
from metaphrase.core.build import Builder
from metaphrase.core.check import check
from metaphrase.core.evaluate import evaluate
from metaphrase.core.ir import Function
from metaphrase.core.types import has_tangent, type_symbols
from metaphrase.ops.families import like
from metaphrase.source import SourceError


def gradient(function: Function) -> Function:
    """Cotangents of all inexact parameters, for ones as the cotangents of all results."""
    backward = vjp(function, [has_tangent(p.type) for p in function.params])
    with Builder(f"grad_{function.name}") as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        ones = [like(p.type, 1) for p in backward.params[len(params) :]]
        return builder.function(builder.replay(backward, [*params, *ones])[len(function.results) :])


def outcome(run, args: list) -> list | str:
    try:
        with np.errstate(all="ignore"):
            return run(args)
    except SourceError:
        raise
    except Exception as error:
        return type(error).__name__


def same_bits(a, b, text: str = "") -> bool:
    """Equal dtypes, shapes and bits. NumPy's `**` of scalars is the C library's, its np.power is not
    always."""
    loose = re.search(r"\*\* (?!2\b)|einsum", text) is not None
    if isinstance(a, str) or isinstance(b, str):
        return isinstance(a, str) and a == b
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=True)]
    return all(x.dtype == y.dtype and x.shape == y.shape and _equal(x, y, loose) for x, y in pairs)


def _equal(x: np.ndarray, y: np.ndarray, loose: bool) -> bool:
    """The same numbers; complex and `loose` ones up to the last few bits."""
    if x.dtype.kind == "b" or x.dtype.kind in "iu":
        return np.array_equal(x, y)
    if x.dtype.kind == "c" or loose:
        return np.allclose(x, y, rtol=1e-13, atol=1e-13, equal_nan=True)
    return np.array_equal(x, y, equal_nan=True)


@once
def programs(name: str) -> dict[str, tuple[Function, list]]:
    """The core program of a case and of its derivative, with flat arguments."""
    function = staged(name).function
    flat = [np.array(a)[()] for a in staged(name).arguments(fresh(CASES[name][1]))]
    found = {name: (core(name), flat)}
    sizes = {s for p in function.params for s in type_symbols(p.type)}
    results = [r.type for r in function.results if has_tangent(r.type)]
    known = all(type_symbols(t) <= sizes for t in results)  # a size made inside has no cotangent of ones
    if results and known and any(has_tangent(p.type) for p in function.params):
        try:
            derivative = gradient(primal(name))
        except SourceError:  # a refusal that the transformations' own tests cover
            return found
        found[f"grad {name}"] = (optimize(derivative, before_transform=False), flat)
    return found


def listed(value, count: int) -> list:
    return [] if count == 0 else [value] if count == 1 else list(value)


@names_of_today
def test_the_text_gives_what_the_program_gives(name):
    for title, (function, args) in programs(name).items():
        check(function)
        text = numpy_source(function)
        assert not foreign(text), text
        want = outcome(lambda a, f=function: evaluate(f, *a), [np.copy(a)[()] for a in args])
        run = compile_numpy(text)
        count = len(function.results)
        given = [np.copy(a)[()] for a in args]
        got = outcome(lambda a, r=run, n=count: listed(r(*a), n), given)
        assert same_bits(want, got, text), f"{title}\n{function}\n{text}\nwant {want}\ngot {got}"
        assert all(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc") for a, b in zip(args, given)), (
            f"{title} writes to an argument\n{text}"
        )
        assert text == numpy_source(function), title


@pytest.mark.turns(3)
def test_saved_texts_run_without_us():
    found = {title: pair for name in SAMPLE for title, pair in programs(name).items()}
    texts = {title: numpy_source(function, name="saved") for title, (function, _) in found.items()}
    alone = run_alone({title: (texts[title], args) for title, (_, args) in found.items()})
    assert len(alone) > len(SAMPLE)
    for title, (function, args) in found.items():
        want, got = outcome(lambda a, f=function: evaluate(f, *a), args), alone[title]
        if not (isinstance(got, str) and isinstance(want, str)):
            got = listed(got, len(function.results))
        assert same_bits(want, got, texts[title]), f"{title}\n{texts[title]}\n{want}\n{got}"
