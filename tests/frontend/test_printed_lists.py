"""Lists whose length only the run knows are printed as Python prints them; other text of them is refused."""

from __future__ import annotations

import contextlib
import io
import sys

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError

TEMPLATE = "{} and {}"


def numbers(x):
    h = []
    for v in x:
        if v > 1:
            h.append(v)
    print(h)
    print("of", len(h), h, "}", h, sep=" {} ", end="!\n")


def every_item(x):
    h = [v * 2 for v in x]
    print(h)


def tuples(x):
    h = []
    for i, v in enumerate(x):
        if v > 1:
            h.append((i, v, float(v)))
    print(h)


def lists_and_arrays(x):
    h, g = [], []
    for v in x:
        if v > 1:
            h.append([v, v * 2])
            g.append(x[:3] * v)
    print(h, g)


def in_containers(x):
    h = []
    v = x[1]
    while v > 0.1:
        h.append(v)
        v = v / 2
    print({"a": h}, (h, 1), [h, [h]])


def strings(x):
    h = [i for i, v in enumerate(x) if v > 1]
    print(f"{h} of {len(h)}", str(h), repr(h), TEMPLATE.format(h, len(h)))


def begun_before_the_loop(x):
    h = [1, 2.5]
    for v in x:
        if v > 1:
            h.append(v)
    h.append(7)
    print(h)


def nothing(x):
    h = [v for v in x if v > 1000]
    print(h, "a}", "{b}")


def to_stderr(x):
    print([v for v in x if v > 1], file=sys.stderr)


def narrow_and_bool(x):
    y = x.astype(np.float32)
    print([v for v in y if v > 1], [v > 2 for v in x if v > 1])
    print([(x > 1)[0]], [x[0] > 2, y[0]], repr((x > 1)[1]))


class Tray:
    def __init__(self):
        self.h = []

    def __repr__(self):
        return f"Tray({self.h})"


def an_object(x):
    tray = Tray()
    for v in x:
        if v > 1:
            tray.h.append(v)
    print(tray)


PRINTED = [numbers, every_item, tuples, lists_and_arrays, in_containers, strings, begun_before_the_loop,
           nothing, to_stderr, narrow_and_bool, an_object]  # fmt: skip


def said(f, *args):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        f(*args)
    return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("f", PRINTED, ids=lambda f: f.__name__)
def test_as_python_prints_it(f, native):
    jitted = mp.jit(f)
    with mp.config(native=native):
        for x in (np.array([1.0, 2.0, 3.0]), np.arange(100.0), np.array([0.5, 1.5, 0.25])):
            assert said(jitted, x) == said(f, x)


def test_the_numpy_source_prints_it():
    space = {}
    exec(mp.source(in_containers, np.ones(3)), space)
    x = np.array([1.0, 2.0, 3.0])
    assert said(space["in_containers"], x) == said(in_containers, x)


def test_the_text_of_one_is_refused_elsewhere():
    def result(x):
        h = [v for v in x if v > 1]
        return f"{h}"

    def message(x):
        h = [v for v in x if v > 1]
        raise ValueError(f"bad: {h}")

    for f in (result, message):
        with pytest.raises(SourceError, match="the text of a list whose length is only known at run time"):
            mp.jit(f)(np.ones(3))


def test_the_text_of_one_of_known_length_is_a_result():
    def f(x):
        h = [v * 2 for v in x]
        return f"{h}"

    x = np.arange(100.0)
    assert mp.jit(f)(x) == f(x)
