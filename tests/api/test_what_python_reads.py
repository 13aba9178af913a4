"""What a program was translated by is noticed when it changes: which objects are one, attributes that were not there,
and the globals that methods read which Python calls by itself.
"""

from __future__ import annotations

import dataclasses
import enum
import types

import numpy as np
import pytest
from packaging.version import Version

import metaphrase as mp
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.source import UnsupportedError

STEP = 1
settings = types.ModuleType("settings")
first, second = [1.0], [1.0]
table, other_table = np.ones(3), np.ones(3)
rows = [[1.0], [1.0]]
maybe = [1.0]
numbers = [3.0, 1.0, 2.0]


class Plain:
    gain = 2.0


class Name:
    def __init__(self, size):
        self.size = size

    def __str__(self):
        return "x" * (self.size + STEP)

    def __eq__(self, other):
        return STEP == 1

    def __hash__(self):
        return 1

    def __iter__(self):
        return iter([1.0, 2.0 * STEP])


class Metaclass(type):
    @property
    def answer(cls):
        return 2.0 * STEP

    def __instancecheck__(cls, value):
        return STEP == 1


class Ruled(metaclass=Metaclass):
    def __class_getitem__(cls, index):
        return index * STEP


class Colour(enum.Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value):
        return cls.RED if STEP == 1 else None


@dataclasses.dataclass
class Options:
    step: float = dataclasses.field(default_factory=lambda: 1.0 * helper())


def helper():
    return STEP


class Answering:
    def __getattribute__(self, name):
        return 2.0 * STEP


name, another, answering = Name(1), Name(2), Answering()


def one_list(x):
    return x * (2.0 if first is second else 3.0)


def one_array(x):
    return x * (2.0 if table is other_table else 3.0)


def one_item(x):
    return x * sum(1 for row in rows if row is rows[0])


def nothing(x):
    return x * (2.0 if maybe is None else 3.0)


def of_a_module(x):
    return x * getattr(settings, "gain", 1.0)


def of_a_class(x):
    return x * (2.0 if hasattr(Plain, "extra") else 3.0)


def of_an_instance_made_here(x):
    return x * Plain().gain * getattr(Plain(), "extra", 1.0)


def text(x):
    return x * len(str(name)) * len(f"{name}")


def membership(x):
    return x * (2.0 if name in [another] else 3.0)


def taken_apart(x):
    a, b = name
    return x * a + b


def default(x):
    return x * Options().step


def of_a_metaclass(x):
    return x * Ruled.answer * Ruled[3] * (2.0 if isinstance(x, Ruled) else 3.0)


def of_its_own_words(x):
    return x * answering.anything


def member(x):
    try:
        return x * Colour(5).value
    except ValueError:
        return x * 100


def change(monkeypatch, **values):
    for key, value in values.items():
        monkeypatch.setitem(globals(), key, value)


CHANGES = {
    one_list: lambda m: change(m, second=first),
    one_array: lambda m: change(m, other_table=table),
    one_item: lambda m: change(m, rows=[rows[0], rows[0]]),
    nothing: lambda m: change(m, maybe=None),
    of_a_module: lambda m: m.setattr(settings, "gain", 4.0, raising=False),
    of_a_class: lambda m: m.setattr(Plain, "extra", 1.0, raising=False),
    of_an_instance_made_here: lambda m: (m.setattr(Plain, "gain", 5.0), m.setattr(Plain, "extra", 3.0, raising=False)),
    **dict.fromkeys(
        [text, membership, taken_apart, default, of_a_metaclass, of_its_own_words, member],
        lambda m: change(m, STEP=STEP + 1),
    ),
}


@pytest.mark.parametrize("function", CHANGES)
def test_a_change_is_noticed_and_so_is_its_end(function):
    compiled, outcomes = mp.jit(function), []
    with pytest.MonkeyPatch.context() as patches:
        for _ in range(2):
            outcomes.append((compiled(2.0), function(2.0)))
            CHANGES[function](patches)
        outcomes[1] = compiled(2.0), function(2.0)
    outcomes.append((compiled(2.0), function(2.0)))
    (before, want), (then, now), (after, back) = outcomes
    assert (before, then, after) == (want, now, back) and want == back != now


def test_whether_an_argument_is_a_captured_object_is_refused():
    @mp.jit
    def given(x):
        return 2.0 if x is first else 3.0

    with pytest.raises(UnsupportedError, match="an argument and what was there before are one object"):
        given(first)


def test_a_number_whose_value_is_needed_is_no_argument(monkeypatch):
    @mp.jit
    def larger(x):
        return x * sum([number for number in numbers if number > 0.5 * STEP])

    assert larger(2.0) == 12.0
    change(monkeypatch, STEP=3)
    assert larger(2.0) == 10.0
    change(monkeypatch, STEP=5)
    assert larger(2.0) == 6.0


def test_what_installed_packages_read_is_taken_as_it_is():
    """Their globals are many, and nobody changes them: guards would cost each call."""
    version = Version("1.2.3")

    def digits(x):
        return x * len(str(version))

    assert mp.jit(digits)(2.0) == 10.0
    assert len(stage(digits, (2.0,)).guards) < 10
