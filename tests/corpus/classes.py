"""Users' classes in staged code: operators, protocols, dataclasses, named tuples, containers, inheritance."""

import abc
import dataclasses
import functools
from typing import NamedTuple

import numpy as np

from metaphrase import tree_util


class Dual:
    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __add__(self, other):
        other = as_dual(other)
        return Dual(self.value + other.value, self.slope + other.slope)

    __radd__ = __add__

    def __mul__(self, other):
        other = as_dual(other)
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __rmul__(self, other):
        return self * other

    def __sub__(self, other):
        return self + -1.0 * as_dual(other)

    def __rsub__(self, other):
        return as_dual(other) - self

    def __neg__(self):
        return Dual(-self.value, -self.slope)

    def __pow__(self, n):
        return Dual(self.value**n, n * self.value ** (n - 1) * self.slope)

    def __abs__(self):
        return self if self.value >= 0 else -self

    def __lt__(self, other):
        return self.value < as_dual(other).value

    def __gt__(self, other):
        return self.value > as_dual(other).value

    def __eq__(self, other):
        return self.value == as_dual(other).value

    def __hash__(self):
        return 1

    def __bool__(self):
        return True

    def __matmul__(self, other):
        return self.value * other.slope

    def __iadd__(self, other):
        self.value = self.value + as_dual(other).value
        return self


def as_dual(x):
    return x if isinstance(x, Dual) else Dual(x, 0.0)


class Polynomial:
    def __init__(self, *coefficients):
        self.coefficients = list(coefficients)

    def __len__(self):
        return len(self.coefficients)

    def __getitem__(self, k):
        return self.coefficients[k]

    def __setitem__(self, k, value):
        self.coefficients[k] = value

    def __delitem__(self, k):
        del self.coefficients[k]

    def __iter__(self):
        return iter(self.coefficients)

    def __contains__(self, k):
        return 0 <= k < len(self)

    def __reversed__(self):
        return reversed(self.coefficients)

    def __call__(self, x):
        total = 0.0
        for c in reversed(self):
            total = total * x + c
        return total


class Countdown:
    """An iterator of its own."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


class Yielding:
    def __init__(self, *values):
        self.values = values

    def __iter__(self):
        for v in self.values:
            yield v * 2


class Temperature:
    def __init__(self, celsius):
        self._celsius = celsius

    @property
    def kelvin(self):
        return self._celsius + 273.15 if self._celsius > -273.15 else 0.0

    @kelvin.setter
    def kelvin(self, value):
        self._celsius = value - 273.15

    @functools.cached_property
    def squared(self):
        return self._celsius**2

    def __getattr__(self, name):
        if name == "fahrenheit":
            return self._celsius * 1.8 + 32
        raise AttributeError(name)

    def __str__(self):
        return "a temperature"


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a, b=2.0):
        self.a = a
        self.b = b

    def total(self):
        self.a += self.b
        return self.a


class Shape(abc.ABC):
    count = 0

    def __init__(self, size):
        self.size = size

    @abc.abstractmethod
    def area(self): ...

    def scaled(self, k):
        return type(self)(self.size * k)

    @classmethod
    def unit(cls):
        return cls(1.0)

    @staticmethod
    def double(v):
        return v * 2


class Square(Shape):
    def area(self):
        return self.size**2 if self.size > 0 else 0.0


class Box(Square):
    def __init__(self, size, depth):
        super().__init__(size)
        self.depth = depth

    def area(self):
        return super().area() * self.depth


class Logged:
    def describe(self):
        return [type(self).__name__]


class LoggedSquare(Logged, Square):
    def describe(self):
        return super().describe() + ["square"]


class Point(NamedTuple):
    x: float
    y: float = 1.0

    def dot(self, other):
        return self.x * other.x + self.y * other.y

    def __add__(self, other):
        return Point(self.x + other.x, self.y + other.y)


@dataclasses.dataclass
class Config:
    rate: float
    steps: int = 3
    weights: list = dataclasses.field(default_factory=lambda: [1.0, 2.0])

    def __post_init__(self):
        self.doubled = self.rate * 2


@dataclasses.dataclass(frozen=True, order=True)
class Frozen:
    a: float
    b: float = 1.0

    @property
    def product(self):
        return self.a * self.b


@tree_util.register_pytree_node_class
class State:
    def __init__(self, position, velocity, name="s"):
        self.position, self.velocity, self.name = position, velocity, name

    def tree_flatten(self):
        return (self.position, self.velocity), self.name

    @classmethod
    def tree_unflatten(cls, name, children):
        return cls(*children, name)

    def step(self, dt):
        return State(self.position + dt * self.velocity, self.velocity * 0.5, self.name)


class Typed:
    """A descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return getattr(instance, self.name) * 2

    def __set__(self, instance, value):
        setattr(instance, self.name, value + 1)


class Described:
    field = Typed()


def users_operators(x):
    d = Dual(x, 1.0)
    e = 2.0 * d * d + d - 3.0
    f = 5.0 - e**2
    f += 1.0
    return f.value, f.slope, (-f).value, abs(f).value, f @ d


def users_comparisons(x):
    a, b = Dual(x, 1.0), Dual(2.0, 0.0)
    if a < b:
        y = a * 2.0
    else:
        y = b + a
    y += 1.0
    z = a + b if x > 2 else a - b
    return y.value, y.slope, z.slope, a == b, a > 1.0


def users_object_in_loop(x, n):
    total, power = Dual(0.0, 0.0), Dual(1.0, 0.0)
    for k in range(n):
        total = total + power * (1.0 / (k + 1))
        power = power * Dual(x, 1.0)
    return total.value, total.slope


def users_object_in_while(x):
    s = Slotted(x, 3.0)
    while s.a > 1.0:
        s = Slotted(s.a / s.b, s.b + 0.5)
    return s.a, s.b


def users_container(x):
    p = Polynomial(x, 2.0, 3.0)
    p[1] = x * 4
    p[0] += 1.0
    del p[2]
    return p(x), len(p), [c for c in p], 1 in p, 5 in p, p[-1], sum(p), list(reversed(p))


def users_polynomial_array(xs):
    return Polynomial(1.0, 2.0, 3.0)(xs)


def users_iterator(x):
    total = 0.0
    for k in Countdown(4):
        total += k * x
    return total, list(Countdown(3)), list(Yielding(x, 1.0))


def users_properties(x):
    t = Temperature(x)
    before = t.kelvin
    t.kelvin = 300.0
    return before, t._celsius, t.squared, t.fahrenheit, str(t)


def property_on_staged_branch(x):
    t = Temperature(x)
    if x > 0:
        t.kelvin = x
    return t.kelvin


def slots(x):
    s = Slotted(x)
    return s.total() + s.total(), s.b


def abstract_and_super(x):
    s, b = Square(x), Box(x, 3.0)
    return s.area(), b.area(), s.scaled(2.0).area(), Square.unit().area(), Shape.double(x), isinstance(b, Box)


def mixins(x):
    s = LoggedSquare(x)
    return s.area(), s.describe(), LoggedSquare.__mro__[1].__name__


def named_tuples(x):
    p = Point(x)
    q = p._replace(y=x * 2)
    a, b = q
    return p + q, p.dot(q), a * b, q._asdict()["y"], p.x, len(p)


def named_tuple_in_loop(n):
    p = Point(0.0, 1.0)
    for _ in range(n):
        p = Point(p.x + p.y, p.x)
    return p


def dataclasses_made(x):
    c = Config(x)
    d = dataclasses.replace(c, rate=x * 3)
    return c.doubled, d.doubled, c.weights, d.steps, dataclasses.asdict(c)["rate"]


def frozen_dataclass(x):
    f = Frozen(x, 2.0)
    return f.product, dataclasses.replace(f, b=x).product


def registered_in_loop(x, n):
    s = State(x, x * 0 + 1.0)
    for _ in range(n):
        s = s.step(0.5)
    return s


def registered_in_branch(s, x):
    if x > 0:
        s = s.step(0.5)
    return s


def attributes_in_loop(x, n):
    class Counter:
        def __init__(self):
            self.total = 0.0
            self.calls = 0

    c = Counter()
    for k in range(n):
        c.total += x * k
        c.calls += 1
    return c.total, c.calls


def object_argument(config, x):
    return config.rate * x + sum(config.weights)


def descriptors(x):
    d = Described()
    d.field = x
    return d.field


def getattr_and_setattr(x):
    s = Slotted(x)
    name = "b"
    setattr(s, name, x * 3)
    return getattr(s, name), getattr(s, "missing", 7.0), hasattr(s, "a"), hasattr(s, "c")


def class_attributes(x):
    class Counting:
        made = 0

        def __init__(self):
            Counting.made += 1

    Counting()
    Counting()
    return x * Counting.made


def callable_in_loop(x):
    p = Polynomial(0.5, 0.5)
    for _ in range(6):
        x = p(x)
    return x


def methods_as_values(x):
    methods = {name: getattr(Polynomial(x, 1.0), name) for name in ("__len__", "__call__")}
    return methods["__len__"](), methods["__call__"](2.0)


def object_shared(x):
    a = Slotted(x)
    b = a
    b.a = x * 5
    return a.a


_X = np.array([1.0, 3.0, 2.0])
CASES = [
    (users_operators, (2.0,)),
    (users_comparisons, (1.5,)),
    (users_comparisons, (2.5,)),
    (users_object_in_loop, (0.5, 6)),
    (users_object_in_while, (50.0,)),
    (users_container, (2.0,)),
    (users_polynomial_array, (_X,)),
    (users_iterator, (2.0,)),
    (users_properties, (20.0,)),
    (property_on_staged_branch, (20.0,)),
    (property_on_staged_branch, (-300.0,)),
    (slots, (2.0,)),
    (abstract_and_super, (2.0,)),
    (mixins, (2.0,)),
    (named_tuples, (2.0,)),
    (named_tuple_in_loop, (9,)),
    (dataclasses_made, (2.0,)),
    (frozen_dataclass, (2.0,)),
    (registered_in_loop, (_X, 5)),
    (registered_in_branch, (State(_X, _X), 1.0)),
    (registered_in_branch, (State(_X, _X), -1.0)),
    (attributes_in_loop, (2.0, 6)),
    (object_argument, (Config(2.0), _X)),
    (descriptors, (2.0,)),
    (getattr_and_setattr, (2.0,)),
    (class_attributes, (2.0,)),
    (callable_in_loop, (2.0,)),
    (methods_as_values, (2.0,)),
    (object_shared, (2.0,)),
]
