"""Functions that change what they are given: shared and read-only memory, layouts, objects, private copies.

In: small functions that store. Out: what plain Python leaves; or an error before anything has run.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import metaphrase as mp
from metaphrase import tree_util
from metaphrase.api.memory import ReadOnlyError
from metaphrase.source import UnsupportedError

NATIVE = pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])


def feed(x, y):
    x[0] = 5.0
    y[1] += x[0]
    return x.sum()


def values(n=4):
    return np.arange(float(n))


def both(function, make):
    """What Python leaves and what the jitted function leaves, three calls each."""
    expected, given = make(), make()
    jitted = mp.jit(function)
    for _ in range(3):
        assert np.allclose(function(*expected), jitted(*given))
        for a, b in zip(expected, given):
            assert np.array_equal(a, b)


@NATIVE
def test_one_array_given_twice_is_one_array(native):
    def twice():
        x = values()
        return x, x

    def two_views():
        x = values(8)
        return x[::2], x[::2]

    with mp.config(native=native):
        both(feed, twice)
        both(feed, two_views)
        both(feed, lambda: (values(), values()))


@NATIVE
def test_the_program_for_one_array_does_not_serve_two(native):
    with mp.config(native=native):
        jitted = mp.jit(feed)
        x = values()
        assert jitted(x, x) == 16.0
        a, b = values(), values()
        assert jitted(a, b) == 11.0 and a[1] == 1.0 and b[1] == 6.0
        x = values()
        assert jitted(x, x) == 16.0


@NATIVE
def test_memory_that_overlaps_in_part_is_refused(native):
    with mp.config(native=native):
        jitted = mp.jit(feed)
        for _ in range(2):
            x = values(5)
            with pytest.raises(UnsupportedError, match="shares memory with") as caught:
                jitted(x[:4], x[1:])
            assert caught.value.code == "overlap"
            assert np.array_equal(x, values(5))
        x = values(8)
        assert jitted(x[::2], x[1::2]) == 17.0, "interleaved arrays share nothing"


@NATIVE
def test_arrays_that_are_only_read_may_overlap(native):
    with mp.config(native=native):
        jitted = mp.jit(lambda x, y: x @ y)
        x = values(5)
        assert jitted(x[1:], x[:-1]) == 20.0 and jitted(x, x) == 30.0


STATE = np.zeros(3)


def add_to_state(x):
    STATE[0] += x.sum()
    return STATE.sum()


def test_a_captured_array_that_is_an_argument_too_is_refused():
    jitted = mp.jit(add_to_state)
    STATE[:] = 0.0
    assert jitted(np.ones(3)) == 3.0 and jitted(np.ones(3)) == 6.0 and STATE[0] == 6.0
    with pytest.raises(UnsupportedError, match="the captured array STATE"):
        jitted(STATE)
    assert STATE[0] == 6.0


@NATIVE
def test_read_only_arrays_are_refused_before_anything_runs(native):
    with mp.config(native=native):
        jitted = mp.jit(feed)
        for _ in range(2):
            x, y = values(), values()
            y.flags.writeable = False
            with pytest.raises(ReadOnlyError, match="read-only: feed writes to"):
                jitted(x, y)
            assert np.array_equal(x, values())
            jitted(x, values())


@NATIVE
def test_a_reshape_written_through_needs_a_contiguous_array(native):
    def first(a):
        r = a.ravel()
        r[0] = 99.0
        return a.sum()

    with mp.config(native=native):
        jitted = mp.jit(first)
        assert jitted(np.ones((2, 3))) == 104.0
        for a in (np.asfortranarray(np.ones((2, 3))), np.ones((2, 6))[:, ::2], np.ones((3, 2)).T):
            with pytest.raises(UnsupportedError) as caught:
                jitted(a)
            assert caught.value.code == "layout" and a.max() == 1.0
        assert jitted(np.ones((2, 3))) == 104.0


@NATIVE
def test_any_layout_may_be_written(native):
    def change(a):
        a[1:] += a[:-1]
        a.T[0] = -1.0
        return a.sum()

    def make(build):
        return lambda: (build(np.arange(12.0).reshape(3, 4)),)

    with mp.config(native=native):
        both(change, make(lambda a: a))
        both(change, make(np.asfortranarray))
        both(change, make(lambda a: a[::-1, ::2]))
        both(change, make(lambda a: a.T[::-1]))
        both(change, make(lambda a: a[:0]))


@NATIVE
def test_a_row_behind_a_place_may_be_written_in_any_layout(native):
    """An index that drops an axis, and one of length 1 more or less, are views of whatever lies in memory."""

    def eliminate(a, k):
        for i in range(k + 1, len(a)):
            a[i, k:] -= a[i, k] * a[k, k:]
        a[:, None][0, 0, 1] = 7.0
        np.expand_dims(a, 0).squeeze()[1, 1:] *= 2.0
        a[k:, 2] += 1.0
        return a.sum()

    def make(build):
        return lambda: (build(np.arange(16.0).reshape(4, 4) + np.eye(4)), 1)

    with mp.config(native=native):
        both(eliminate, make(lambda a: a))
        both(eliminate, make(np.asfortranarray))
        both(eliminate, make(lambda a: np.repeat(a, 2, axis=1)[:, ::2]))
        both(eliminate, make(lambda a: a.T[::-1]))


class Field:
    def __init__(self, n):
        self.u, self.time = np.ones(n), 0.0

    def step(self, dt):
        self.u[1:] -= dt * (self.u[1:] - self.u[:-1])
        self.u = self.u * 0.5
        self.time += dt
        return self.u.sum()


@NATIVE
def test_attributes_of_objects_are_changed(native):
    with mp.config(native=native):
        jitted, ours, theirs = mp.jit(Field.step), Field(4), Field(4)
        for _ in range(3):
            before = ours.u
            assert jitted(ours, 0.1) == theirs.step(0.1)
            assert np.array_equal(ours.u, theirs.u) and ours.time == theirs.time
            assert before is not ours.u


@dataclasses.dataclass
class State:
    w: np.ndarray
    n: float


tree_util.register_dataclass(State, ["w", "n"], [])


def update(state):
    state.w[0] = 7.0
    state.n = state.n + 1.0
    state.w = state.w * 2
    return state.w.sum()


def test_attributes_of_pytree_arguments_are_changed():
    ours, theirs = State(values(3), 1.0), State(values(3), 1.0)
    mine, yours = ours.w, theirs.w
    assert mp.jit(update)(ours) == update(theirs)
    assert np.array_equal(ours.w, theirs.w) and ours.n == theirs.n and np.array_equal(mine, yours)


class Settings:
    scale = 1.0


def set_scale(x):
    Settings.scale = x
    return x


def test_attributes_of_classes_are_not():
    with pytest.raises(UnsupportedError, match="attribute 'scale' of the class Settings"):
        mp.jit(set_scale)(2.0)
    assert Settings.scale == 1.0


def in_place(x):
    x[0] *= x[1]
    x[1:] += x[0]
    return (x * x).sum()


def test_derivatives_work_on_private_copies():
    x = np.array([1.0, 2.0, 3.0])
    before = x.copy()
    step = 1e-6
    expected = [(in_place(x + step * e) - in_place(x - step * e)) / (2 * step) for e in np.eye(3)]
    for gradient in (
        mp.grad(in_place)(x),
        mp.jit(mp.grad(in_place))(x),
        mp.value_and_grad(in_place)(x)[1],
        mp.jacrev(in_place)(x),
        mp.jacfwd(in_place)(x),
        mp.vjp(in_place, x)[1](1.0)[0],
        mp.jit(lambda x: mp.grad(in_place)(x))(x),
        np.array([mp.jvp(in_place, (x,), (e,))[1] for e in np.eye(3)]),
        mp.vmap(mp.grad(in_place))(np.stack([x, x]))[1],
    ):
        assert np.allclose(gradient, expected, rtol=1e-6)
        assert np.array_equal(x, before), "a derivative leaves its arguments as they are"


def test_a_result_that_is_the_written_argument_is_differentiated():
    def scaled(x):
        x *= 2.0
        return x

    x = np.array([1.0, 2.0])
    assert np.array_equal(mp.jacrev(scaled)(x), 2 * np.eye(2)) and np.array_equal(x, [1.0, 2.0])
    out, pullback = mp.vjp(scaled, x)
    assert np.array_equal(out, [2.0, 4.0]) and np.array_equal(pullback(np.ones(2))[0], [2.0, 2.0])


def test_derivatives_of_functions_that_change_other_things_are_refused():
    with pytest.raises(UnsupportedError, match="the captured array STATE"):
        mp.grad(add_to_state)(np.ones(3))
    with pytest.raises(UnsupportedError, match="writes to x"):
        mp.vmap(in_place)(np.ones((2, 3)))


def test_a_jitted_function_called_in_another_sees_every_alias():
    inner = mp.jit(feed)

    def outer(x):
        first = inner(x[:4], x[1:])
        return first + x[1]

    x, y = values(5), values(5)
    expected = feed(y[:4], y[1:]) + y[1]
    assert mp.jit(outer)(x) == expected and np.array_equal(x, y)


def test_an_error_leaves_the_arguments_as_they_were_or_as_python_leaves_them():
    def stops(x, k):
        x[0] = 100.0
        x[k] = 1.0

    jitted, x = mp.jit(stops), values()
    jitted(x, 1)
    assert x[0] == 100.0 and x[1] == 1.0
    for native in (True, False):
        x, y = values(), values()
        with mp.config(native=native), pytest.raises(IndexError):
            mp.jit(stops)(x, 9)
        with pytest.raises(IndexError):
            stops(y, 9)
        assert np.array_equal(x, values()) or np.array_equal(x, y)


@NATIVE
def test_a_number_given_twice_as_one_array_is_one_array(native):
    def f(a, b):
        a += 1
        return a + b

    with mp.config(native=native):
        compiled = mp.jit(f)
        for _ in range(2):
            one = np.array(1.0)
            assert compiled(one, one) == 4.0 and one == 2.0
            assert compiled(np.array(1.0), one) == 4.0


@NATIVE
def test_numpys_integers_name_places_in_captured_lists(native):
    class Held:
        pass

    held = Held()
    held.values, held.at = [1.0, 2.0], np.int64(1)

    def store(x):
        held.values[held.at] = x
        held.values[np.int64(-1)] = held.values[held.at] + 1
        return held.values[1]

    with mp.config(native=native):
        compiled = mp.jit(store)
        assert compiled(3.0) == 4.0 and held.values == [1.0, 4.0]
        held.at = np.int64(0)
        assert compiled(5.0) == 6.0 and held.values == [5.0, 6.0]


@NATIVE
def test_a_container_given_twice_and_written_to_is_refused(native):
    def f(a, b, x):
        a[0] += x
        b[0] *= 2
        return a[0] + b[0]

    with mp.config(native=native):
        compiled = mp.jit(f)
        one, other = [1.0, 2.0], [1.0, 2.0]
        for _ in range(2):
            assert compiled([1.0, 2.0], other.copy(), 1.0) == 4.0
            with pytest.raises(UnsupportedError, match="a list that it is given twice"):
                compiled(one, one, 1.0)
            assert one == [1.0, 2.0]
        assert mp.jit(lambda a, b: a[0] + b[0])(one, one) == 2.0


@NATIVE
def test_the_class_of_a_value_is_pythons(native):
    with mp.config(native=native):
        assert mp.jit(lambda x: x.__class__.__name__)(1.0) == "float"
        assert mp.jit(lambda x: x.__class__ is np.ndarray)(np.ones(2)) is True
