"""Classes, methods, properties, context managers, strings and configuration: computed while staging."""

import dataclasses
import enum

import numpy as np


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


class Model:
    def __init__(self, gain):
        self.gain = gain
        self.weights = np.array([1.0, 2.0, 3.0])

    @property
    def doubled(self):
        return self.gain * 2

    def apply(self, x):
        if x.sum() > 0:
            return self.weights * x * self.gain
        return x - self.doubled

    def __call__(self, x):
        return self.apply(x) + 1


class Deep(Model):
    def apply(self, x):
        return super().apply(x) * 10


class Accumulator:
    def __init__(self):
        self.total = 0.0
        self.__count = 0

    def add(self, v):
        self.total += v
        self.__count += 1
        return self

    @property
    def count(self):
        return self.__count

    @staticmethod
    def twice(x):
        return 2 * x

    @classmethod
    def of(cls, *values):
        made = cls()
        for v in values:
            made.add(v)
        return made


@dataclasses.dataclass(frozen=True)
class Config:
    steps: int = 3
    rate: float = 0.5
    mode: Mode = Mode.FAST


class Scope:
    def __init__(self, k):
        self.k = k

    def __enter__(self):
        return self.k * 2

    def __exit__(self, *error):
        return False


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __getitem__(self, k):
        return self.x if k == 0 else self.y


MODEL = Model(2.0)
DEEP = Deep(0.5)
CONFIG = Config()


def method_of_global(x):
    return MODEL.apply(x)


def callable_object(x):
    return MODEL(x)


def inherited(x):
    return DEEP(x)


def object_in_function(x):
    a = Accumulator()
    a.add(x).add(x * 2)
    return a.total, a.count, Accumulator.twice(x)


def class_method(x):
    return Accumulator.of(x, x, x).total


def object_in_loop(x):
    a = Accumulator()
    for v in x:
        if v > 0:
            a.add(v)
    return a.total


def with_config(x):
    for _ in range(CONFIG.steps):
        x = x * CONFIG.rate if CONFIG.mode is Mode.FAST else x + 1
    return x


def with_statement(x):
    with Scope(x) as k:
        y = k + 1
        if y > 3:
            y = y * 2
    return y


def operators_of_user(x):
    v = Vector(x, 1.0) + Vector(2.0, x)
    return v[0] * v[1]


def strings(x):
    name = f"layer_{3}"
    sizes = {"layer_3": 2.0}
    return x * sizes[name] if name.startswith("layer") else x


def dispatch(x, kind):
    table = {"square": lambda v: v * v, "double": lambda v: 2 * v}
    return table[kind](x)


def try_except(x, key):
    d = {"a": 1.0}
    try:
        k = d[key]
    except KeyError:
        k = 5.0
    return x * k


def set_and_sorted(x):
    names = sorted({"b", "a"})
    return x * len(names) if names[0] == "a" else x


def attribute_in_branch(x):
    a = Accumulator()
    if x > 0:
        a.total = x
    else:
        a.total = a.total - x * 2
    return a.total


def local_class_free(x):
    points = [Vector(k * x, 1.0) for k in range(3)]
    return sum(p.x * p.y for p in points)


_X = np.array([1.0, 2.0, -0.5])
CASES = [
    (method_of_global, (_X,)),
    (method_of_global, (-_X,)),
    (callable_object, (_X,)),
    (inherited, (_X,)),
    (object_in_function, (2.0,)),
    (class_method, (2.0,)),
    (object_in_loop, (_X,)),
    (with_config, (2.0,)),
    (with_statement, (1.0,)),
    (with_statement, (3.0,)),
    (operators_of_user, (2.0,)),
    (strings, (2.0,)),
    (dispatch, (3.0, "square")),
    (dispatch, (3.0, "double")),
    (try_except, (2.0, "a")),
    (try_except, (2.0, "b")),
    (set_and_sorted, (2.0,)),
    (attribute_in_branch, (1.0,)),
    (attribute_in_branch, (-1.0,)),
    (local_class_free, (2.0,)),
]
