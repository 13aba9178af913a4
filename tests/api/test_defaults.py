"""Default values that can be changed: read at each call, wherever the function that has them is called."""

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.source import UnsupportedError

WEIGHTS, RATES, LEVELS = np.ones(2), {"rate": 1.0}, [1.0, 2.0]


def helper(x, w=WEIGHTS, e=RATES, n=LEVELS, *, q=WEIGHTS):
    return x * w * e["rate"] + n[0] + q


class Holder:
    def scaled(self, x, w=WEIGHTS):
        return x * w


HOLDER = Holder()


def through_helpers(x):
    return helper(x), HOLDER.scaled(x)


def beside_arguments(x, w=WEIGHTS, e=RATES, *others):
    return x * w * e["rate"]


def behind_arguments(x, *others, w=WEIGHTS, n=LEVELS):
    return x * w + n[0]


def by_position(x, /, w=WEIGHTS):
    return x * w


def beside_keywords(x, w=WEIGHTS, **others):
    return x * w


FUNCTIONS = [through_helpers, beside_arguments, behind_arguments, by_position, beside_keywords]


@pytest.mark.parametrize("native", [True, False], ids=["native", "numpy"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_defaults_are_read_at_each_call(function, native):
    def change(k):
        WEIGHTS[0], RATES["rate"], LEVELS[0] = 1.0 + (k > 0), 1.0 + (k > 1), 1.0 + (k > 2)

    with mp.config(native=native):
        compiled = mp.jit(function)
        for k in range(4):
            change(k)
            assert np.array_equal(compiled(1.5), function(1.5))
    change(0)


def test_a_list_of_a_helpers_default_that_grows_is_refused():
    def gathered(x, held=[]):  # noqa: B006 - it is what is tested
        held.append(x)
        return len(held)

    with pytest.raises(UnsupportedError, match="was not given"):
        mp.jit(lambda x: gathered(x))(1.0)
