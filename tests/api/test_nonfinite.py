"""debug_nans and debug_infs: who made the first one is named exactly, and what is finite stays silent.

In: the functions of `nan_makers.py`. Out: the line, the iterations, the lanes and the role of each error.
"""

from __future__ import annotations

import linecache

import numpy as np
import pytest
from .nan_makers import MAKERS, SILENT, X

import metaphrase as mp
from metaphrase import config


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
    assert error.code == f"debug_{maker.kind}s"


@pytest.mark.parametrize("name", MAKERS)
def test_the_maker_is_named(name):
    agrees(found(MAKERS[name], native=False), MAKERS[name])


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
