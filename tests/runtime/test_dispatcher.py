"""The callable itself: how arguments are bound, how entries are tried, what it can carry."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from metaphrase.core.dims import Sym
from metaphrase.runtime import entry as E
from metaphrase.runtime.dispatch import REQUIRED, Dispatcher, called_fast, disable

n = Sym("n")


@pytest.fixture
def echo(program):
    """A dispatcher of f(a, b=2, *, c=3) that gives its bound arguments back, through `bind` where Python
    would refuse."""

    def refuse(args, kwargs):
        raise TypeError(f"refused {args} {kwargs}")

    return Dispatcher(
        None, ("a", "b", "c"), miss=lambda args: args, bind=refuse, defaults=(REQUIRED, 2, 3), keyword_only=1
    )


def test_arguments_are_bound_as_python_binds_them(echo):
    assert echo(1) == (1, 2, 3) and echo(1, 5) == (1, 5, 3) and echo(1, c=9) == (1, 2, 9)
    assert echo(c=9, b=8, a=7) == (7, 8, 9)
    key = "".join(["c"])
    assert echo(1, **{key: 4}) == (1, 2, 4)
    for args, kwargs in [((), {}), ((1, 2, 3), {}), ((1,), {"a": 2}), ((1,), {"d": 2})]:
        with pytest.raises(TypeError, match="refused"):
            echo(*args, **kwargs)


def test_bind_takes_what_has_no_simple_parameters():
    call = Dispatcher(None, None, miss=lambda args: args, bind=lambda args, kwargs: (args, kwargs))
    assert call(1, 2, k=3) == ((1, 2), {"k": 3})


def test_a_method(program):
    class Model:
        step = Dispatcher(None, ("self", "x"), miss=lambda args: args)

    model = Model()
    assert model.step(3) == (model, 3) and isinstance(Model.step, Dispatcher)


def test_it_carries_attributes_and_can_be_weakly_referenced(echo):
    echo.__name__, echo.__doc__ = "f", "doc"
    assert echo.__name__ == "f" and echo.__doc__ == "doc" and weakref.ref(echo)() is echo and callable(echo)
    assert echo.__call__(1) == (1, 2, 3)


def test_a_subclass_is_called_the_same_way():
    @called_fast
    class Jitted(Dispatcher):
        def lower(self):
            return "lowered"

    call = Jitted(None, ("x",), miss=lambda args: args)
    assert call(1) == (1,) and call(x=2) == (2,) and call.lower() == "lowered"


def test_entries_are_tried_newest_first_and_counted(add, program):
    x, y = E.ArrayLeaf("f8", (n,)), E.ArrayLeaf("f8", (n,))
    calls = []
    call = Dispatcher(None, ("x", "y"), miss=lambda args: calls.append(args))
    call(np.zeros(2), np.zeros(2))
    first = call.add(
        E.Entry(
            program("return 0").address,
            (E.Root(E.Position(0), E.AnyLeaf()), E.Root(E.Position(1), E.AnyLeaf())),
            name="any",
        )
    )
    second = call.add(
        E.Entry(
            add.address,
            (E.Root(E.Position(0), x), E.Root(E.Position(1), y)),
            (x, y),
            ("n",),
            (E.Fresh("f8", (n,)),),
            E.Argument(x),
            name="arrays",
        )
    )
    assert call.entries == (second, first) and [entry.name for entry in call.entries] == ["arrays", "any"]
    a = np.zeros(2)
    assert call(a, a) is a and call(1, 2) is None
    assert call.hits == 2 and call.misses == 1 and len(calls) == 1
    assert call.matches(second, (a, a)) and not call.matches(second, (a, 1)) and call.run(second, (a, a)) is a
    with pytest.raises(LookupError, match="do not match arrays"):
        call.run(second, (1, 2))
    call.clear()
    assert call.entries == () and call(a, a) is None and call.misses == 2


def test_disabled_it_calls_the_function():
    call = Dispatcher(lambda x, k=1: (x, k), ("x", "k"), miss=lambda args: "missed", defaults=(REQUIRED, 1))
    assert disable(True) is False
    try:
        assert call(1) == (1, 1) and call(1, k=3) == (1, 3)
    finally:
        assert disable(False) is True
    assert call(1) == "missed"
