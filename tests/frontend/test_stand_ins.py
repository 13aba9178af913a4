"""Python's own code that takes no staged numbers is refused with its line, where it takes numbers."""

import collections
import datetime
import struct
import types
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.staging.stand_ins import by_python
from metaphrase.source import UnsupportedError

REFUSED = {
    "decimal": (lambda x: float(Decimal(x) * 2), 2, "`Decimal` takes no values"),
    "decimal of a float": (lambda x: float(Decimal(x + 1)), 2.0, "`Decimal` takes no values"),
    "fraction": (lambda n: float(Fraction(n, 3)), 2, "`Fraction` takes no values"),
    "class method": (lambda x: float(Fraction.from_float(x)), 2.0, "`Fraction.from_float` takes no values"),
    "method in C": (lambda x: float(Decimal.from_float(x)), 2.0, "`from_float` takes no values"),
    "time": (lambda x: datetime.timedelta(seconds=x).total_seconds(), 2.0, "`timedelta` takes no values"),
    "bytes": (lambda x: struct.pack("d", x)[0], 2.0, "`pack` takes no values"),
    "product": (lambda x: float(Fraction(1, 3) * x), 2, "`*` of a Fraction and a staged value"),
    "difference": (lambda x: float(x - Decimal("1.5")), 2, "`-` of a Decimal and a staged value"),
    "comparison": (lambda x: x == Fraction(1, 2), 0.5, "`==` of a Fraction and a staged value"),
    "array": (lambda x: x * Fraction(1, 2), np.ones(2), "`*` of a Fraction and a staged value"),
}


def caught(x):
    try:
        return float(Decimal(x))
    except TypeError:
        return 0.0


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    f, given, words = REFUSED[name]
    f(given)
    with pytest.raises(UnsupportedError) as error:
        mp.jit(f)(given)
    assert words in error.value.message and error.value.code == "no-translation"
    assert error.value.span.file == __file__ and error.value.remedy


def test_a_handler_does_not_take_the_refusal():
    with pytest.raises(UnsupportedError, match="`Decimal` takes no values"):
        mp.jit(caught)(2.0)


RAISED = [
    (lambda x: float(Decimal("1.5") + x), 2.0),
    (lambda x: Decimal([x, x]), 2.0),
    (lambda x: datetime.timedelta(hour=x), 2.0),
    (lambda x: x < Decimal("nan"), 2j),
]


@pytest.mark.parametrize("f, given", RAISED)
def test_what_raises_in_python_raises(f, given):
    with pytest.raises(Exception) as want:
        f(given)
    with pytest.raises(want.type) as got:
        mp.jit(f)(given)
    assert str(got.value) == str(want.value) and not isinstance(got.value, UnsupportedError)


def test_what_takes_staged_numbers_does():
    assert mp.jit(lambda n: datetime.date(n, 1, 1).year)(2002) == 2002
    assert mp.jit(lambda n: collections.Counter([n])[2])(2) == 1


def test_other_code_is_not_called_with_made_up_numbers():
    given = []

    def driver(value):
        given.append(value)
        raise TypeError("a voltage must be a number")

    driver.__module__ = "a_driver"
    here = types.SimpleNamespace(span=lambda: None)
    staged = object()
    with pytest.raises(UnsupportedError, match="only known when the program runs"):
        by_python(here, "driver", driver, (staged,), {})
    assert given == [staged]
