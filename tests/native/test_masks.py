"""Places and elements where a mask is true: as in NumPy, for sizes around eight, and bytes that are no bools."""

import numpy as np
import pytest

import metaphrase as mp

random = np.random.default_rng(2)


@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 0.5, 0.97, 1.0])
def test_places_and_elements(density):
    places = mp.jit(lambda mask: np.flatnonzero(mask))
    elements = mp.jit(lambda x, mask: x[mask])
    for size in (0, 1, 7, 8, 9, 15, 16, 17, 100, 1003):
        mask, x = random.random(size) < density, random.standard_normal(size)
        for some in (mask, mask[::2], mask[::-1]):
            np.testing.assert_array_equal(places(some), np.flatnonzero(some))
        np.testing.assert_array_equal(elements(x, mask), x[mask])


def test_bytes_that_are_no_bools_read_nothing_else():
    """NumPy's count is undefined then; ours may be, too, but no place lies outside."""
    places = mp.jit(lambda mask: np.flatnonzero(mask))
    for size in (1, 9, 100):
        found = places(random.integers(0, 256, size).astype(np.uint8).view(bool))
        assert found.size == 0 or 0 <= found.min() <= found.max() < size
