"""What NumPy refuses at the edges of sizes is refused with its exception, not read beyond an array."""

import numpy as np
import pytest
from corpus import edges

import metaphrase as mp
from metaphrase.source import DTypeError

X, NONE, I = np.array([3.0, 1.0, 2.0, 5.0, 4.0]), np.array([]), np.array([1, 2])

REFUSED = [
    (edges.interpolated, (X, NONE, NONE)),
    (edges.interpolated, (X, np.sort(X), X[:2])),
    (edges.interpolated_of_some, (X, 9.0)),
    (edges.partition_of_some, (X, 4.0)),
    (edges.counted, (I, X)),
    (edges.histogram_bins, (X, -1)),
    (edges.repeated, (X, I)),
    (edges.rows_of, (X, 2)),
    (edges.rows_of, (NONE, 0)),
    (edges.unpacked_of_some, (X, 0.5)),
    (edges.quantiles, (X, 1.5)),
    (edges.digitized, (X, X)),
    (edges.frequencies_of_some, (X, 9.0)),
]


@pytest.mark.parametrize("function, args", REFUSED)
def test_refused_as_numpy_refuses(function, args):
    with pytest.raises(ValueError):
        function(*args)
    with pytest.raises(ValueError):
        mp.jit(function)(*args)


def test_an_empty_array_has_no_truth_value():
    def told(x):
        return 1.0 if x else 2.0

    assert mp.jit(told)(np.ones(1)) == 1.0 and mp.jit(told)(np.zeros((1, 1))) == 2.0
    for x in (np.zeros(0), np.zeros((1, 0))):
        with pytest.raises(DTypeError, match="The truth value of an empty array is ambiguous"):
            mp.jit(told)(x)
    with pytest.raises(DTypeError, match="more than one element"):
        mp.jit(told)(np.zeros(2))
