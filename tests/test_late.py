"""Dataclasses that are written late behave as those of the standard library, whatever is asked of them first.

In: the same classes by both decorators. Out: the same answers, and the same errors.
"""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
import threading
from dataclasses import field

import pytest

from metaphrase import late


def classes(dataclass):
    """A few classes: defaults, factories, fields that are not given, a base, what runs behind `__init__`."""

    @dataclass(frozen=True)
    class Point:
        x: int
        y: int = 2
        known: dict = field(default_factory=dict, compare=False)

        def norm(self):
            return abs(self.x) + abs(self.y)

    @dataclass(frozen=True)
    class Named(Point):
        name: str = "p"
        size: int = field(default=0, init=False, repr=False)

        def __post_init__(self):
            object.__setattr__(self, "size", len(self.name))

    @dataclass(eq=False)
    class Open:
        x: int
        rows: list = field(default_factory=list)

        def __repr__(self):
            return "open"

    @dataclass(frozen=True, order=True)
    class Ranked:
        x: int
        y: int = field(compare=False)

    return Point, Named, Open, Ranked


def told(make):
    """What `make()` gives, or its error, as text."""
    try:
        return str(make()).replace("classes.<locals>.", "").replace("slotted.<locals>.", "")
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("classes.<locals>.", "").replace("slotted.<locals>.", "")


def match(value, cls):
    match value:
        case cls(x, y):
            return x, y


def ranked(cls):
    return cls(1, 5) < cls(2, 3), sorted([cls(3, 1), cls(1, 2)]), cls(1, 5) >= cls(1, 3), cls(1, 2) < 3


QUESTIONS = {
    "repr": lambda P, N, O, R: [P(1), P(x=1, y=3), N(1, name="abc"), O(3)],
    "equal": lambda P, N, O, R: [P(1) == P(1, 2), P(1) == P(2), P(1) == N(1), N(1) == N(1), O(1) == O(1)],
    "hash": lambda P, N, O, R: [len({P(1), P(1, 2), P(2)}), hash(N(1)) == hash(N(1)), O.__hash__ is object.__hash__],
    "frozen": lambda P, N, O, R: setattr(P(1), "x", 2),
    "deleted": lambda P, N, O, R: delattr(N(1), "x"),
    "not frozen": lambda P, N, O, R: (lambda o: (setattr(o, "x", 5), o.x, o.rows))(O(1)),
    "replace": lambda P, N, O, R: [dataclasses.replace(P(1), y=7), dataclasses.replace(N(1), name="long").size],
    "fields": lambda P, N, O, R: [[f.name for f in dataclasses.fields(c)] for c in (N, P, O)],
    "is one": lambda P, N, O, R: [dataclasses.is_dataclass(c) for c in (P, N, O)],
    "match": lambda P, N, O, R: [P.__match_args__, N.__match_args__, O.__match_args__, match(P(1), P)],
    "factories": lambda P, N, O, R: P(1).known is P(1).known,
    "no argument": lambda P, N, O, R: P(),
    "too many": lambda P, N, O, R: P(1, 2, {}, 4),
    "unknown": lambda P, N, O, R: P(1, z=2),
    "twice": lambda P, N, O, R: P(1, x=2),
    "not given": lambda P, N, O, R: N(1, size=3),
    "default": lambda P, N, O, R: [P.y, N.y, N.size, hasattr(O, "rows"), hasattr(O, "x")],
    "copied": lambda P, N, O, R: [copy.deepcopy(N(1)), copy.copy(P(3)).norm()],
    "order": lambda P, N, O, R: ranked(R),
    "field without a default": lambda P, N, O, R: R(1),
    "as a dict": lambda P, N, O, R: dataclasses.asdict(N(1)),
}


@pytest.mark.parametrize("objects", [0, 1, 30])
@pytest.mark.parametrize("question", QUESTIONS)
def test_it_is_a_dataclass(question, objects):
    ask = QUESTIONS[question]
    ours, theirs = classes(late.dataclass), classes(dataclasses.dataclass)
    for _ in range(objects):
        ours[0](1), ours[1](2, name="before"), ours[2](x=3), ours[3](1, 2)
    assert told(lambda: ask(*ours)) == told(lambda: ask(*theirs))


def test_nothing_is_written_before_it_is_asked_for():
    point, named, *_ = classes(late.dataclass)
    assert type(vars(point)["__eq__"]) is type(vars(named)["__init__"]) is late._Asked
    assert point(1).norm() == 3 and type(vars(point)["__init__"]) is late._Filled
    assert named(1).norm() == 3 and callable(vars(named)["__eq__"]) and callable(vars(point)["__eq__"])


def test_one_of_which_many_objects_are_made_is_written():
    point, *_ = classes(late.dataclass)
    made = [point(k, known={"k": k}) for k in range(100)]
    assert callable(vars(point)["__init__"]) and [vars(one) for one in made[:40:39]] == [
        {"x": 0, "y": 2, "known": {"k": 0}},
        {"x": 39, "y": 2, "known": {"k": 39}},
    ]


def test_threads_that_make_the_first_objects():
    for _ in range(20):
        point, named, *_ = classes(late.dataclass)
        found, barrier = [], threading.Barrier(4)

        def make(named=named, found=found, barrier=barrier):
            barrier.wait()
            found.extend(hash(named(1, name="n")) for _ in range(16))

        threads = [threading.Thread(target=make) for _ in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert len(found) == 64 and len(set(found)) == 1


def slotted(dataclass):
    @dataclass(frozen=True, slots=True, repr=False)
    class Place:
        line: int
        column: int = 0
        turns: tuple = field(default=(), compare=False)
        known: dict = field(default_factory=dict, compare=False)
        found: int = field(default=0, init=False)

        def __str__(self):
            return f"{self.line}:{self.column}"

    return Place


OF_SLOTS = {
    "text": lambda P: [str(P(1)), str(P(1, column=2)), "object at" in repr(P(1))],
    "equal": lambda P: [P(1) == P(1, 0, (2,)), P(1) == P(2), len({P(1), P(1), P(2)})],
    "slots": lambda P: [P.__slots__, P.__name__, P.__qualname__, P.__module__, hasattr(P(1), "__dict__")],
    "default": lambda P: [type(P.column).__name__, P(1).turns],
    "frozen": lambda P: setattr(P(1), "line", 2),
    "no argument": lambda P: P(),
    "not given": lambda P: P(1, found=3),
    "too many": lambda P: P(1, 2, (), {}, 4),
    "made": lambda P: [P(1).known, P(1, known={2: 3}).known, P(1).known is P(1).known, P(1).found],
    "copied": lambda P: [copy.copy(P(3)) == P(3), dataclasses.replace(P(1), column=7).column, P(3).__reduce_ex__(2)[2]],
    "fields": lambda P: [f.name for f in dataclasses.fields(P)],
    "match": lambda P: P.__match_args__,
}


@pytest.mark.parametrize("objects", [0, 1, 30])
@pytest.mark.parametrize("question", OF_SLOTS)
def test_one_with_slots(question, objects):
    ours, theirs = slotted(late.dataclass), slotted(dataclasses.dataclass)
    assert type(vars(ours)["__init__"]) is late._Filled
    for k in range(objects):
        ours(k)
    assert told(lambda: OF_SLOTS[question](ours)) == told(lambda: OF_SLOTS[question](theirs))


@late.dataclass(frozen=True)
class Sent:
    x: int
    y: int = 2


def test_one_that_comes_from_another_process():
    sent = pickle.loads(pickle.dumps(Sent(1)))
    assert sent == Sent(1) and repr(sent) == "Sent(x=1, y=2)"


def test_modules_and_the_log():
    program = """
import sys
from metaphrase import late
sys.modules.pop("colorsys", None)
colorsys = late.module("colorsys")
late.log.info("lost")
assert "colorsys" not in sys.modules and "logging" not in sys.modules
assert colorsys.rgb_to_hls(0, 0, 0) == (0.0, 0.0, 0.0)
assert "colorsys" in sys.modules
late.log.warning("seen")
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "seen\n")
