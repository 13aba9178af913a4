"""What stands outside of a program: read at each call, or refused; never what it was while translating."""

import array
import collections
import contextlib
import datetime
import decimal
import fractions
import io
import itertools
import json
import math
import os
import pathlib
import queue
import random
import re
import sys
import threading
import time
import types
import uuid

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError

x = np.array([1.0, 2.0, 4.0])
lines = io.StringIO("1\n2\n3\n")
lock = threading.Lock()


def namespace(**names):
    return types.SimpleNamespace(**names)


REFUSED = {
    "time": lambda x: x + time.time(),
    "date": lambda x: x + datetime.datetime.now().microsecond,
    "today": lambda x: x + datetime.date.today().day,
    "random": lambda x: x + random.random(),
    "draws": lambda x: x + np.random.default_rng(0).normal(),
    "environ": lambda x: x + len(os.environ["PATH"]),
    "getenv": lambda x: x + len(os.getenv("PATH")),
    "exists": lambda x: x + os.path.exists("/"),
    "path": lambda x: x + pathlib.Path("/").exists(),
    "open": lambda x: x + len(open(__file__).read()),
    "input": lambda x: x + float(input()),
    "load": lambda x: x + np.load("weights.npy"),
    "readline": lambda x: x + float(lines.readline()),
    "uuid": lambda x: x + uuid.uuid4().int,
    "thread": lambda x: x + threading.get_ident(),
    "address": lambda x: x + id(x),
    "limit": lambda x: x + sys.getrecursionlimit(),
    "redirected": lambda x: (contextlib.redirect_stdout(io.StringIO()), x)[1],
}
THINGS = namespace(
    count=itertools.count(),
    cycle=itertools.cycle([1.0, 2.0]),
    squares=(k * k for k in range(9)),
    items=iter([1.0, 2.0]),
    recent=collections.deque([1.0], maxlen=4),
    bytes=bytearray(b"ab"),
    floats=array.array("d", [1.0]),
    jobs=queue.Queue(),
    chain=collections.ChainMap({"a": 1.0}),
    kinds=collections.Counter("a"),
    lists=collections.defaultdict(list),
    keys={1.0, 2.0},
    ordered=collections.OrderedDict(a=1.0, b=2.0),
)
CHANGED = {
    "next": lambda x: x + next(THINGS.count),
    "next of cycle": lambda x: x + next(THINGS.cycle),
    "for": lambda x: x + sum(k for k in THINGS.squares),
    "islice": lambda x: x + sum(itertools.islice(THINGS.items, 1)),
    "append": lambda x: (THINGS.recent.append(1.0), x)[1],
    "bytes": lambda x: (THINGS.bytes.append(1), x)[1],
    "floats": lambda x: (THINGS.floats.append(1.0), x)[1],
    "queue": lambda x: (THINGS.jobs.put(1.0), x)[1],
    "chain": lambda x: x + THINGS.chain["a"],
    "counted": lambda x: (THINGS.kinds.subtract("a"), x)[1],
    "default": lambda x: (THINGS.lists["new"], x)[1],
    "moved": lambda x: (THINGS.ordered.move_to_end("a"), x)[1],
    "fewer": lambda x: (THINGS.keys.difference_update({1.0}), x)[1],
}


@pytest.mark.parametrize("function", REFUSED.values(), ids=REFUSED)
def test_the_world_is_not_looked_at_while_translating(function):
    with pytest.raises(SourceError) as caught:
        mp.jit(function)(x)
    assert caught.value.code == "unsteady" and caught.value.remedy and caught.value.span is not None


def test_a_lock_is_not_held_while_translating():
    def guarded(x):
        with lock:
            return x + 1

    with pytest.raises(SourceError, match="`with` of a lock"):
        mp.jit(guarded)(x)


@pytest.mark.parametrize("function", CHANGED.values(), ids=CHANGED)
def test_things_from_outside_are_not_changed_while_translating(function):
    before = repr(THINGS)
    with pytest.raises(SourceError) as caught:
        mp.jit(function)(x)
    assert caught.value.code in ("outer-write", "unsteady") and caught.value.remedy
    assert repr(THINGS) == before


def test_sequences_from_outside_are_read_at_each_call():
    recent, floats, argv = collections.deque([1.0, 2.0]), array.array("d", [1.0, 2.0]), sys.argv

    def run(x):
        total = 0.0
        for value in recent:
            total = total + value
        return (
            x
            + total
            + sum(floats)
            + np.array(recent).sum()
            + len(recent)
            + recent[0]
            + list(floats)[-1]
            + len(argv)
            + len(sys.argv)
            + max(recent)
        )

    jitted = mp.jit(run)
    for step in range(4):
        np.testing.assert_allclose(jitted(x), run(x), rtol=1e-14)
        recent.append(float(step))
        recent[0] += 0.5
        floats[1] *= 2
        if step == 2:
            floats.append(9.0)


def test_a_counter_and_the_attributes_of_an_object_are_read_at_each_call():
    kinds, thing = collections.Counter("aab"), namespace(a=1.0)

    def run(x):
        return x + kinds["a"] + kinds["c"] + len(kinds) + len(vars(thing)) + hasattr(thing, "b")

    jitted = mp.jit(run)
    np.testing.assert_array_equal(jitted(x), run(x))
    kinds["c"] += 5
    np.testing.assert_array_equal(jitted(x), run(x))
    thing.b = 2.0
    np.testing.assert_array_equal(jitted(x), run(x))
    kinds["a"] = 7
    np.testing.assert_array_equal(jitted(x), run(x))


def test_what_depends_on_its_arguments_alone_runs():
    when, price = datetime.datetime(2020, 1, 2), decimal.Decimal("1.5")
    third, digits = fractions.Fraction(1, 3), re.compile("[0-9]")

    def run(x):
        name = os.path.join("a", str(pathlib.Path("b") / "c"))
        later = (when + datetime.timedelta(days=1) - when).total_seconds()
        found = len(digits.findall("a1b2")) + json.loads("[1.5]")[0] + math.comb(5, 2)
        return x + len(name) + later + float(price) + float(third * 3) + found + when.year

    np.testing.assert_allclose(mp.jit(run)(x), run(x), rtol=1e-15)


def test_standard_output_is_written_at_each_call(capfd):
    def told(x):
        sys.stdout.write(f"first {x[0]}\n")
        print("then")
        sys.stderr.write("else\n")
        sys.stdout.flush()
        return x

    jitted = mp.jit(told)
    for _ in range(3):
        jitted(x)
    sys.stdout.flush()
    out, err = capfd.readouterr()
    assert out == "first 1.0\nthen\n" * 3 and err.count("else\n") == 3


SOURCE = """
import math
import numpy as np

def helper(x):
    return np.sin(x)

def run(x):
    return helper(x) + abs(x) + math.sqrt(4.0) + np.cos(x).sum() + sum([1.0, 2.0]) + len(x)
"""


@pytest.mark.parametrize(
    "name, value",
    [
        ("abs", lambda v: 100 * v),
        ("sum", np.max),
        ("len", lambda v: 0.5),
        ("helper", np.tan),
        ("np", types.SimpleNamespace(sin=np.cos, cos=np.tanh)),
        ("math", types.SimpleNamespace(sqrt=lambda v: v)),
    ],
)
def test_names_of_a_module_may_be_bound_anew(tmp_path, monkeypatch, name, value):
    (tmp_path / "outer_names.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "outer_names", raising=False)
    import outer_names as module

    jitted = mp.jit(module.run)
    np.testing.assert_allclose(jitted(x), module.run(x), rtol=1e-14)
    with monkeypatch.context() as patch:
        patch.setattr(module, name, value, raising=False)
        np.testing.assert_allclose(jitted(x), module.run(x), rtol=1e-14)
    np.testing.assert_allclose(jitted(x), module.run(x), rtol=1e-14)


def test_each_closure_of_one_code_is_watched():
    def scaled(k, inner):
        def run(x):
            return inner(x) * k

        return run

    first, second = scaled(1.0, np.sin), scaled(2.0, np.cos)
    jitted = mp.jit(lambda x: first(x) + second(x))
    np.testing.assert_allclose(jitted(x), np.sin(x) + 2 * np.cos(x), rtol=1e-14)
    second.__closure__[0].cell_contents = np.tan
    np.testing.assert_allclose(jitted(x), np.sin(x) + 2 * np.tan(x), rtol=1e-14)
