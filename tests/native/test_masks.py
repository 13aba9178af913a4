"""Places and elements where a mask is true: as in NumPy, for sizes around eight, and bytes that are no bools."""

import threading

import numpy as np
import pytest
from thread_counts import thread_counts

import metaphrase as mp

random = np.random.default_rng(2)


@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 0.5, 0.97, 1.0])
def test_places_and_elements(density):
    places = mp.jit(lambda mask: np.flatnonzero(mask))
    elements = mp.jit(lambda x, mask: x[mask])
    for size in (0, 1, 7, 8, 9, 15, 16, 17, 100, 1003, 8191, 8192, 8193, 50_001):
        mask, x = random.random(size) < density, random.standard_normal(size)
        for _ in thread_counts(1, 3):
            for some in (mask, mask[::2], mask[::-1]):
                np.testing.assert_array_equal(places(some), np.flatnonzero(some))
            np.testing.assert_array_equal(elements(x, mask), x[mask])


def test_bytes_that_are_no_bools_read_nothing_else():
    """NumPy's count is undefined then; ours may be, too, but no place lies outside."""
    places = mp.jit(lambda mask: np.flatnonzero(mask))
    for size in (1, 9, 100, 30_000):
        found = places(random.integers(0, 256, size).astype(np.uint8).view(bool))
        assert found.size == 0 or 0 <= found.min() <= found.max() < size


def test_parts_of_a_long_mask_are_listed_by_themselves():
    text = mp.source(lambda x: x[x > 0], "f64[n]", stage="loops")
    assert "first=first_2)" in text and "begins[i + 1] = begins[i + 1] + begins[i]" in text
    assert "begins" not in mp.source(lambda x: x[x > 0], "f64[8000]", stage="loops")


def test_a_mask_that_changes_meanwhile_reads_nothing_else():
    """What another thread does to a mask may change how many are found, and no place lies outside."""
    mask, x, ended = np.zeros(200_000, bool), np.arange(200_000.0), threading.Event()

    def change():
        while not ended.is_set():
            mask[random.integers(0, 200_000, 1000)] ^= True

    elements = mp.jit(lambda x, mask: np.flatnonzero(mask) + 0 * len(x))
    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in thread_counts(2):
            for _ in range(200):
                found = elements(x, mask)
                assert found.size == 0 or 0 <= found.min() <= found.max() < mask.size
    finally:
        ended.set()
        other.join()
