"""Each ordered pair of transformations of each function of the corpus, against differences and loops.

In: the corpus. Out: what a transformation of a transformed function gives, from NumPy source and from native code, and
differences (of order 6) of the transformed function, which is another day's outer one; of a function itself they are
those of a plain call. Each day others of the pairs are taken; METAPHRASE_PAIRS=all takes all. Example:

    METAPHRASE_PAIRS=all pytest tests/pairs -k kepler
"""

from __future__ import annotations

import contextlib
import copy
import io
import os
import zlib

import numpy as np
import pytest
from together import jitted
from turns import QUICK

import metaphrase as mp
from metaphrase.source import UnsupportedError

from . import kept, operators, own_rules, solved  # noqa: F401
from .corpus import CASES
from .transformations import OUTERMOST, TRANSFORMATIONS, by_differences, composed, flat, may_follow, pairs

PARTS = 4  # of the functions, of which a quick run takes one a day
pytestmark = pytest.mark.turns(PARTS)

# A function's pairs are others each time that it is taken.
DAY = int(os.environ["METAPHRASE_TESTS_DAY"]) // (PARTS if QUICK else 1)
TURNS = 1 if os.environ.get("METAPHRASE_PAIRS") == "all" else 48
NATIVE = 8  # of so many functions one has native code
SECOND = ("hessian", "jet")  # differences of order 2 are less exact


def turn(name: str) -> int:
    return zlib.crc32(name.encode()) + DAY


def todays(name: str) -> list[tuple[str, ...]]:
    """The pairs of the day, and of each fourth function a triple."""
    case = CASES[name]
    found = [pair for k, pair in enumerate(pairs(case)) if (k + turn(name)) % TURNS == 0]
    if turn(name) % 4:
        return found
    light = [t for t in TRANSFORMATIONS if t not in ("hessian", "jet")]
    a, b, c = (light[turn(name + which) % len(light)] for which in "abc")
    return [*found, *([(a, b, c)] if may_follow(case, a, b, c) else [])]


def quiet(function):
    def called(*args):
        with contextlib.redirect_stdout(io.StringIO()):
            return function(*copy.deepcopy(args))

    return called


def wanted(name: str, names: tuple[str, ...]) -> list:
    case = CASES[name]
    if case.frozen:
        return flat(composed(names, case.frozen)(*case.args))
    inner = quiet(mp.jit(composed(names[1:], case.function)) if names[1:] else case.function)
    return by_differences(names[0], inner, case.args)


def check(got: list, want: list, tolerance: float) -> None:
    assert len(got) == len(want)
    for a, b in zip(got, want):
        scale = max(1.0, np.max(np.abs(b), initial=0.0))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", CASES)
def test_pairs(name):
    """As plain calls, which run NumPy source."""
    case = CASES[name]
    with mp.config(native=False):
        for names in todays(name):
            got = flat(quiet(composed(names, case.function))(*case.args))
            check(got, wanted(name, names), case.tolerance * (10 if names[0] in SECOND else 1))


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].sparse])
@pytest.mark.parametrize("inner", ["grad", "linearize"])
def test_a_pattern_that_cannot_be_told_is_refused(name, inner):
    with pytest.raises(UnsupportedError, match=r"\[sparsity\]"):
        composed(("sparse", inner), CASES[name].function)(*CASES[name].args)


def test_native_code():
    some = [name for name in CASES if turn(name) % NATIVE == 0]
    chosen = {name: [names for names in todays(name) if names[0] not in OUTERMOST][-1:] for name in some}
    calls = {
        (name, *names): (composed(names, CASES[name].function), CASES[name].args)
        for name, some in chosen.items()
        for names in some
    }
    assert len(calls) > len(CASES) // (2 * NATIVE)
    for key, function in jitted(calls).items():
        case = CASES[key[0]]
        with mp.config(native=False):
            want = flat(quiet(calls[key][0])(*case.args))
        check(flat(quiet(function)(*case.args)), want, 1e-9)


def test_the_corpus_has_all_rules():
    rules = {word for case in CASES.values() for word in case.rule.split()}
    assert len(CASES) >= 60
    assert rules >= {"custom_jvp", "custom_vjp", "custom_gradient", "custom_vmap", "checkpoint", "loop_checkpoint"}
    assert sum(len(pairs(case)) for case in CASES.values()) > 8000
