"""The functions of `operator`, and strings that the run fills in: what Python gives, to the type."""

import array
import copy
import functools
import itertools
import operator

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import SourceError

VALUES = (3, 2, 3.5, -2.0, True, np.float32(1.5), np.array([1.0, -2.0]), [1, 2])
OTHERS = "attrgetter itemgetter methodcaller call is_ is_not countOf indexOf iconcat getitem setitem delitem"
FUNCTIONS = [name for name in operator.__all__ if name not in OTHERS.split()]


def shown(function, *args):
    try:
        with np.errstate(all="ignore"):
            made = function(*args)
    except Exception as error:
        return type(error)
    return type(made), repr(made)


@pytest.mark.turns(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_its_operator(name):
    function = getattr(operator, name)
    tried = [*itertools.product(VALUES, repeat=2), *((v,) for v in VALUES)]
    found = [(args, shown(function, *map(copy.deepcopy, args))) for args in tried]
    # The others are refused, or depend on the sign of a number of the run.
    known = [(args, want) for args, want in found if not isinstance(want, type) and want[0] is not complex]
    given = [tuple(map(copy.deepcopy, args)) for args, _ in known]
    made = mp.jit(lambda cases: [function(*args) for args in cases])(given)
    assert known and len(made) == len(known)
    for (args, want), got in zip(known, made):
        assert (type(got), repr(got)) == want, args


class Model:
    def __init__(self, gain):
        self.gain, self.parts = gain, {"k": gain}

    def run(self, x, offset=1.0):
        return self.gain * x + offset


def test_getters_and_folds():
    def run(x, n):
        pairs, model, values = [(x[0], 2.0), (x[1], 1.0)], Model(x[2]), [1, 2, 3]
        operator.setitem(values, 0, 9)
        operator.delitem(values, 1)
        return (
            sorted(pairs, key=operator.itemgetter(1)),
            operator.itemgetter(0, -1)(x),
            operator.attrgetter("gain")(model),
            operator.methodcaller("run", 2.0, offset=x[0])(model),
            operator.methodcaller("sum")(x),
            functools.reduce(operator.mul, [n, n, 2]),
            values,
            list(map(operator.neg, x)),
            operator.getitem(x, -1),
        )

    x = np.array([1.0, 2.0, 3.0])
    assert repr(mp.jit(run)(x, 2)) == repr(run(x, 2))


def test_strings_are_results_and_compile_once():
    class Log:
        last = ""

    log, plain = Log(), Log()

    def run(x, n, log):
        steps = 0
        while x[0] > 1:
            x, steps = x / 2, steps + 1
        log.last = f"{x[0]:.3f} after {steps}"
        told = "%d steps" % steps  # noqa: UP031
        return f"{n:03d} {x!r}", {"why": told}, [f"{v}" for v in x], " ".join(str(v) for v in x)

    jitted = mp.jit(run)
    for scale, n in itertools.product((1.0, 3.0, 100.0), (7, 40)):
        x = scale * np.array([5.0, 2.0, 3.0])
        assert jitted(x, n, log) == run(x, n, plain) and log.last == plain.last
    assert jitted.cache_info().currsize == 1


def test_a_string_has_no_derivative_and_no_lanes():
    def run(x):
        return x.sum(), f"{x[0]:.1f}"

    assert mp.grad(run, has_aux=True)(np.ones(3))[1] == "1.0"
    with pytest.raises(SourceError, match="returns a text"):
        mp.vmap(run)(np.ones((2, 3)))


def test_division_by_zero_says_which():
    for left, right in itertools.product((5, 5.0), (0, 0.0)):
        with pytest.raises(ZeroDivisionError) as wanted:
            left / right
        with pytest.raises(ZeroDivisionError) as got:
            mp.jit(lambda a, b: a / b)(left, right)
        assert str(got.value) == str(wanted.value)


NUMBERS = (3, 2.5, -2.0, True, 1 + 2j, np.float32(2), np.int64(3), np.array([1.5, -2.0]))


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
def test_attributes_of_numbers_are_what_they_are_in_python(value):
    def run(v):
        parts = v.real, v.imag, v.conjugate(), getattr(v, "numerator", 7), getattr(v, "shape", 5)
        return parts, [hasattr(v, name) for name in ("dtype", "ptp", "real", "is_integer", "sum", "append")]

    assert repr(mp.jit(run)(value)) == repr(run(value))


def test_digits_of_numbers_pin_them():
    def power(b, e):
        result = 1.0
        for k in range(e.bit_length()):
            if e >> k & 1:
                result = result * b
            b = b * b
        return result, hex(e), e.as_integer_ratio(), b.is_integer()

    jitted = mp.jit(power)
    for e in (10, 25):
        got, want = jitted(1.1, e), power(1.1, e)
        assert got[1:] == want[1:] and np.isclose(got[0], want[0], rtol=1e-14)


def test_the_source_of_what_is_no_array():
    def fixed(x):
        return f"got {x:.2f} {{}}", {1, 2}, set(), bytearray(b"ab"), array.array("d", [1.0])

    def chosen(x):
        if x > 0:
            message = f"up {x}"
        else:
            message = f"down {-x:.1f}"
        return message, x

    for function, x in itertools.product((fixed, chosen), (2.0, -3.5)):
        names = {}
        exec(mp.source(function, x), names)
        assert repr(names[function.__name__](x)) == repr(function(x))
