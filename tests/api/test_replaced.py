"""Functions and classes that change after a program was made of them; objects that are equal, not the same.

What is compared: a plain function, and `jit` of it, called after each change.
"""

import enum
import math
import types
from dataclasses import dataclass

import numpy as np
import pytest

import metaphrase as mp

x = np.array([1.0, 2.5, -3.0])


def layers():
    """Classes and functions that a test may change."""

    class Layer:
        scale = 2.0

        def __init__(self, w):
            self.w = w

        def forward(self, x):
            return self.scale * self.w * x

        @property
        def gain(self):
            return self.w.sum()

        @staticmethod
        def activation(x):
            return np.tanh(x)

        @classmethod
        def shifted(cls, x):
            return x + cls.scale

        def __call__(self, x):
            return self.forward(x) + 1

        def __add__(self, other):
            return self.w + other

        def __getitem__(self, k):
            return self.w[k]

    class Residual(Layer):
        def forward(self, x):
            return super().forward(x) - 1

    def helper(x, k=3.0, *, j=1.0):
        return x * k + j

    first, second = Layer(np.arange(3.0)), Residual(np.arange(3.0))

    def run(x):
        mine = first.forward(x) + first.gain + first.activation(x) + Layer.shifted(x) + first(x) + first[1]
        return mine + (first + x) + second.forward(x) + helper(x) + Layer(x).forward(x)

    return types.SimpleNamespace(**{k: v for k, v in locals().items()})


def doubled(self, x):
    return 2.0 * x


def own_method(made):
    made.first.forward = lambda x: x * 11


def own_method_twice(made):
    made.first.forward = lambda x: x * 11
    made.jitted(x)
    made.first.forward = lambda x: x * 13


def own_method_gone(made):
    made.first.forward = lambda x: x * 11
    made.jitted(x)
    del made.first.forward


def code(made):
    def other(x, k=3.0, *, j=1.0):
        return x / k - j

    made.helper.__code__ = other.__code__


def own_code(made):
    Layer, first, helper, second = made.Layer, made.first, made.helper, made.second

    def run(x):
        return first.w + x * second.w - helper(x) + Layer.scale

    made.run.__code__ = run.__code__


def new_class(made):
    class Other(made.Layer):
        def forward(self, x):
            return x * 100

    made.first.__class__ = Other


def new_bases(made):
    class Other(made.Layer):
        def forward(self, x):
            return -x

    made.Residual.__bases__ = (Other,)


def set_in(name, key, value):
    def change(made):
        setattr(getattr(made, name), key, value)

    change.__name__ = f"{name}.{key}"
    return change


CHANGES = [
    own_method,
    own_method_twice,
    own_method_gone,
    code,
    own_code,
    new_class,
    new_bases,
    set_in("Layer", "forward", doubled),
    set_in("Layer", "gain", property(lambda self: 5.0)),
    set_in("Layer", "activation", staticmethod(np.cos)),
    set_in("Layer", "shifted", classmethod(lambda cls, x: x * 9)),
    set_in("Layer", "__call__", doubled),
    set_in("Layer", "__add__", lambda self, other: 5 * other),
    set_in("Layer", "__getitem__", lambda self, k: k + 0.5),
    set_in("Layer", "__getattribute__", object.__getattribute__),
    set_in("Layer", "__init__", lambda self, w: setattr(self, "w", 2 * w)),
    set_in("Layer", "scale", 9.0),
    set_in("Residual", "forward", doubled),
    set_in("Residual", "activation", staticmethod(np.sin)),
    set_in("helper", "__defaults__", (8.0,)),
    set_in("helper", "__kwdefaults__", {"j": 77.0}),
    lambda made: made.helper.__kwdefaults__.update(j=31.0),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__)
def test_what_is_replaced_is_noticed(change):
    made = layers()
    made.jitted = mp.jit(made.run)
    np.testing.assert_allclose(made.jitted(x), made.run(x), rtol=1e-13)
    change(made)
    for value in (x, x + 1, x):
        np.testing.assert_allclose(made.jitted(value), made.run(value), rtol=1e-13)


def test_default_values_of_the_function_itself():
    def scaled(x, k=2.0, *, j=1.0):
        return x * k + j

    jitted = mp.jit(scaled)
    np.testing.assert_array_equal(jitted(x), scaled(x))
    scaled.__defaults__ = (5.0,)
    np.testing.assert_array_equal(jitted(x), scaled(x))
    scaled.__kwdefaults__["j"] = 7.0
    np.testing.assert_array_equal(jitted(x), scaled(x))

    def other(x, y, k=2.0, *, j=1.0, extra=3.0):
        return x * k - y * j + extra

    scaled.__code__, scaled.__kwdefaults__ = other.__code__, other.__kwdefaults__
    np.testing.assert_array_equal(jitted(x, y=x + 1), scaled(x, y=x + 1))
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        jitted(x)


def test_derivatives_notice_too():
    made = layers()
    slope = mp.grad(lambda x: made.first.forward(x).sum())
    np.testing.assert_array_equal(slope(x), 2.0 * made.first.w)
    made.Layer.forward = lambda self, x: x**2
    np.testing.assert_allclose(slope(x), 2 * x, rtol=1e-15)
    made.first.forward = lambda x: x**3
    np.testing.assert_allclose(slope(x), 3 * x**2, rtol=1e-15)


def test_a_jitted_function_inside_notices():
    made = layers()
    inner = mp.jit(lambda x: made.first.forward(x))
    outer = mp.jit(lambda x: inner(x) + 1)
    np.testing.assert_array_equal(outer(x), made.first.forward(x) + 1)
    made.Layer.forward = doubled
    np.testing.assert_array_equal(outer(x), 2 * x + 1)


def test_data_that_changes_in_a_class_compiles_nothing():
    class Counted:
        calls = 0

        def forward(self, x):
            return 2 * x

    counted = Counted()
    jitted = mp.jit(lambda x: counted.forward(x))
    for _ in range(20):
        Counted.calls += 1
        np.testing.assert_array_equal(jitted(x), 2 * x)
    assert jitted.cache_info().currsize == 1 and jitted.cache_info().misses == 1


def test_the_log_says_what_changed(caplog):
    made = layers()
    jitted = mp.jit(made.run)
    jitted(x)
    made.Layer.forward = doubled
    with caplog.at_level("INFO", "metaphrase"):
        jitted(x)
    assert "Residual has other methods now" in caplog.text or "Layer has other methods now" in caplog.text


# --- objects that are equal ---


@dataclass
class Counter:
    n: int


@dataclass(unsafe_hash=True)
class Hashed:
    n: int


@pytest.mark.parametrize("kind", [Counter, Hashed])
def test_equal_objects_are_not_the_same_object(kind):
    def counted(counter, x):
        counter.n = counter.n + 1
        return x * counter.n

    jitted = mp.jit(counted)
    mine, plain = [kind(1), kind(1)], [kind(1), kind(1)]
    for which in (0, 1, 0, 1, 0, 0, 1):
        np.testing.assert_array_equal(jitted(mine[which], x), counted(plain[which], x))
        assert mine == plain


@dataclass(frozen=True)
class Settings:
    order: int
    sign: float


def test_frozen_objects_go_by_their_fields():
    def powered(settings, x):
        return math.copysign(1.0, settings.sign) * x**settings.order

    jitted = mp.jit(powered)
    for order, sign in ((2, 0.0), (3, 0.0), (2, -0.0), (2, 0.0), (True, 0.0)):
        settings = Settings(order, sign)
        np.testing.assert_array_equal(jitted(settings, x), powered(settings, x))
    assert jitted.cache_info().currsize == 4


class Mode(enum.Enum):
    UP = 1
    DOWN = -1


@pytest.mark.parametrize(
    "values",
    [
        (0.0, -0.0, 0.0),
        ((1,), (True,), (1.0,), (1,)),
        ((0.0, "a"), (-0.0, "a")),
        (1, True, 1.0),
        (Mode.UP, Mode.DOWN, Mode.UP),
        (np.float32(0), np.float64(0), np.float64(-0.0)),
        (frozenset({1, 2}), frozenset({1, 2, 3}), frozenset({2, 1})),
    ],
    ids=str,
)
def test_static_values_go_by_type_and_bits(values):
    jitted = mp.jit(lambda x, s: (x, repr(s)), static_argnums=1)
    for value in values:
        assert jitted(x, value)[1] == repr(value)


def test_static_containers_go_by_what_they_hold():
    def run(x, values):
        return x * len(values) + values[0]

    jitted, values = mp.jit(run, static_argnums=1), [1.0, 2.0]
    for step in range(4):
        np.testing.assert_array_equal(jitted(x, values), run(x, values))
        values[0] += 0.5
        if step == 1:
            values.append(3.0)
    np.testing.assert_array_equal(jitted(x, [1.0, 2.0]), run(x, [1.0, 2.0]))
    assert jitted.cache_info().currsize == 4
    shape = np.array([2, 3])
    shaped = mp.jit(lambda x, shape: x.sum() + np.ones(tuple(shape)), static_argnums=1)
    assert shaped(x, shape).shape == (2, 3)
    shape[1] = 5
    assert shaped(x, shape).shape == (2, 5)


def test_sets_are_looked_at_in_each_call():
    jitted, members = mp.jit(lambda x, members: x * len(members) + (1.0 in members)), {1.0, 2.0}
    np.testing.assert_array_equal(jitted(x, members), 2 * x + 1)
    members.add(3.0)
    np.testing.assert_array_equal(jitted(x, members), 3 * x + 1)
    members.remove(1.0)
    np.testing.assert_array_equal(jitted(x, members), 2 * x)


class Tagged:
    def __init__(self, a, tag):
        self.a, self.tag = a, tag


mp.tree_util.register_pytree_node(Tagged, lambda t: ((t.a,), t.tag), lambda tag, children: Tagged(*children, tag))
TAGS = (0.0, -0.0, 1, True, 1.0, (0.0,), (-0.0,), float("nan"), float("nan"), 0.0)


def test_metadata_of_containers_goes_by_type_and_bits():
    def run(node):
        first = node.tag[0] if isinstance(node.tag, tuple) else node.tag
        return node.a * (1 if math.copysign(1.0, first) > 0 else 2) + len(repr(first))

    jitted, slope, batched = mp.jit(run), mp.grad(lambda node: run(node).sum()), mp.vmap(run)
    for tag in TAGS:
        np.testing.assert_array_equal(jitted(Tagged(x, tag)), run(Tagged(x, tag)))
        np.testing.assert_array_equal(slope(Tagged(x, tag)).a, 1 + _negative(tag))
        np.testing.assert_array_equal(batched(Tagged(np.stack([x, 2 * x]), tag))[1], run(Tagged(2 * x, tag)))
    assert jitted.cache_info().currsize == 8


def _negative(tag):
    first = tag[0] if isinstance(tag, tuple) else tag
    return np.ones(3) * (math.copysign(1.0, first) < 0)


def test_keys_of_dicts_go_by_type():
    jitted = mp.jit(lambda d: sum(len(repr(key)) * value for key, value in d.items()))
    for key in (1, True, 1.0, 1):
        np.testing.assert_array_equal(jitted({key: x}), len(repr(key)) * x)
    for keys in ((1, 2), (True, 2), (1.0, 2)):
        np.testing.assert_array_equal(jitted({k: x for k in keys}), (len(repr(keys[0])) + 1) * x)


def test_a_pinned_number_has_a_sign():
    def chosen(x, s):
        return x + [1, 2][int(math.copysign(1.0, s))]

    jitted = mp.jit(chosen)
    for s in (0.0, -0.0, 1.0, -1.0, 0.0):
        np.testing.assert_array_equal(jitted(x, s), chosen(x, s))


def test_a_function_with_many_programs_says_so(caplog):
    class Model:
        def __init__(self, k):
            self.k = k

    def run(model, x):
        return x * len(repr(type(model)))

    with mp.config(native=False):
        jitted = mp.jit(run)
        with caplog.at_level("WARNING", "metaphrase"):
            for k in range(40):
                jitted(Model(k), x)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1 and told[0].startswith("run has 32 programs by now")
    assert "model changed from" in told[0]
