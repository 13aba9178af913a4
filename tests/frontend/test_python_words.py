"""What Python's own errors say of staged values: the types that the user knows; and the same exceptions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import metaphrase as mp


class Number:
    """A user's class of the name of one of ours."""


def unpacked(x, n, a):
    p, q = x


def raised(x, n, a):
    raise x


def looped(x, n, a):
    for _ in n:
        pass


def stored(x, n, a):
    x.foo = 3


def item_stored(x, n, a):
    x[0] = 1


def added_in_place(x, n, a):
    x += "s"


SAME = {
    "len": lambda x, n, a: len(x),
    "len of an int": lambda x, n, a: len(n),
    "len of an element": lambda x, n, a: len(a[0]),
    "iterated": lambda x, n, a: [v for v in x],
    "list": lambda x, n, a: list(n),
    "sum": lambda x, n, a: sum(a[0]),
    "called": lambda x, n, a: x(3),
    "array called": lambda x, n, a: a(3),
    "added": lambda x, n, a: x + "s",
    "added to a str": lambda x, n, a: "s" + n,
    "added to a list": lambda x, n, a: x + [1],
    "added to None": lambda x, n, a: x + None,
    "compared": lambda x, n, a: x < "s",
    "compared with a str": lambda x, n, a: "a" < n,
    "in": lambda x, n, a: 3 in x,
    "in a str": lambda x, n, a: x in "abc",
    "range added": lambda x, n, a: range(n) + 1,
    "range called": lambda x, n, a: range(n)(3),
    "joined": lambda x, n, a: ",".join([x]),
    "ord": lambda x, n, a: ord(x),
    "sorted": lambda x, n, a: sorted(x),
    "zip": lambda x, n, a: list(zip(x, x)),
    "hashed": lambda x, n, a: {a: 1},
    "next": lambda x, n, a: next(a),
    "generator": lambda x, n, a: (v for v in a) + 1,
    "inverted": lambda x, n, a: ~x,
    "float of a list": lambda x, n, a: float([x, 2]),
    "int of a list": lambda x, n, a: int([x]),
    "floor of a list": lambda x, n, a: math.floor([x, 2]),
    "sqrt of a list": lambda x, n, a: math.sqrt([x]),
    "float of a complex": lambda x, n, a: float(1j * x),
    "pow": lambda x, n, a: pow(x, 2, 3),
    "a user's Number": lambda x, n, a: x + Number(),
    "len of a user's Number": lambda x, n, a: len(Number()),
    "unpacked": unpacked, "raised": raised, "looped": looped, "stored": stored, "item stored": item_stored,
    "added in place": added_in_place,
}  # fmt: skip


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", list(SAME))
def test_the_error_is_pythons(name, native):
    given = (2.5, 3, np.array([1.0, 2.0]))
    with pytest.raises((TypeError, AttributeError)) as wanted:
        SAME[name](*given)
    with mp.config(native=native), pytest.raises(wanted.type) as found:
        mp.jit(SAME[name])(*given)
    assert str(found.value) == str(wanted.value)


def test_a_handler_sees_the_words():
    def f(x):
        try:
            return len(x)
        except TypeError as error:
            return str(error)

    assert mp.jit(f)(2.5) == "object of type 'float' has no len()"


# --- what a derivative of a function that always raises raises ---


def unbound_in_a_loop(x):
    print("begun")
    for _ in range(3):
        y = unbound_name + x  # noqa: F821
    return y


def raised_on_both_sides(x):
    if x.sum() > 0:
        raise ValueError("positive")
    else:
        raise KeyError("negative")


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("f, error", [(unbound_in_a_loop, NameError), (raised_on_both_sides, ValueError)])
def test_derivatives_raise_what_the_function_raises(f, error, native, capsys):
    x = np.ones(2)
    with mp.config(native=native):
        for made in (mp.jit, mp.grad, mp.value_and_grad, mp.jacrev, mp.hessian):
            with pytest.raises(error):
                made(f)(x)
        with pytest.raises(error):
            mp.grad(f, has_aux=True)(x)


# --- variables that methods share ---


def counted_by_methods(x):
    total = 0.0

    class Counter:
        def add(self, v):
            nonlocal total
            if v > 1:
                total = total + v
            else:
                total -= 1

        @property
        def twice(self):
            nonlocal total
            total = total * 2
            return total

        def __enter__(self):
            nonlocal total
            total += x

        def __exit__(self, *error):
            pass

    counter = Counter()
    for k in range(5):
        counter.add(x * k)
    with counter:
        counter.add(x)
    return total, counter.twice, total


@pytest.mark.parametrize("native", [True, False])
def test_methods_of_a_local_class_change_its_variables(native):
    with mp.config(native=native):
        for x in (2.0, 0.5):
            assert mp.jit(counted_by_methods)(x) == counted_by_methods(x)


def outer():
    count = 0.0

    class Shared:
        def add(self, v):
            nonlocal count
            count += v
            return count

    return Shared


def test_a_variable_of_before_the_call_is_not_changed():
    shared = outer()()
    with pytest.raises(TypeError, match="the variable 'count', which outlives the call"):
        mp.jit(lambda x: shared.add(x))(1.0)
