"""Places and elements where a mask is true: as in NumPy, for sizes around eight, and bytes that are no bools."""

import ctypes
import mmap
import platform
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


@pytest.mark.turns(3)
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "f2", "f4", "i4", "f8", "c8", "c16"])
def test_elements_of_all_widths(dtype):
    """In vectors or one by one, in parts or not, and into a part of an array: nothing else is written."""

    def picked(x, y, mask):
        found = np.zeros(len(x) + 3, x.dtype)
        some = x[mask]
        found[1 : 1 + len(some)] = some
        return found, y[mask], x[mask] == y[mask]

    jitted = mp.jit(picked)
    for size in (0, 5, 63, 64, 65, 200, 30_001):
        x, y = (random.integers(0, 100, size).astype(dtype) for _ in range(2))
        for density in (0.0, 0.01, 0.5, 0.99, 1.0):
            mask = random.random(size) < density
            wanted = picked(x, y, mask)
            for _ in thread_counts(1, 3):
                for have, want in zip(jitted(x, y, mask), wanted):
                    np.testing.assert_array_equal(have, want)


def test_without_wide_vectors(tmp_path, monkeypatch):
    """The form that any processor runs gives the same."""
    script = tmp_path / "cc"
    without = "-mno-avx512f" if platform.machine() == "x86_64" else ""  # others have no other form
    script.write_text(f'#!/bin/sh\necho "$@" >> "$0.calls"; exec gcc "$@" {without}\n')
    script.chmod(0o700)
    monkeypatch.setenv("METAPHRASE_CC", str(script))
    jitted = mp.jit(lambda x, y, mask: (x[mask], y[mask], np.flatnonzero(mask), mask.sum()))
    for size in (9, 64, 1003, 30_001):
        x, y = random.standard_normal(size), random.standard_normal(size).astype(np.float32)
        for density in (0.0, 0.3, 0.999, 1.0):
            mask = random.random(size) < density
            found, others, places, count = jitted(x, y, mask)
            np.testing.assert_array_equal(found, x[mask])
            np.testing.assert_array_equal(others, y[mask])
            np.testing.assert_array_equal(places, np.flatnonzero(mask))
            assert count == mask.sum()
    assert "kernel" in (tmp_path / "cc.calls").read_text()


def shrinking(values, steps):
    """Arrays that get shorter from step to step, by masks that are found out on the way."""
    at, left = np.arange(len(values)), values.copy()
    steps_of = np.zeros(len(values), np.int64)
    for step in range(steps):
        left = left * 2.0 - 0.75
        gone = left > 4.0
        steps_of[at[gone]] = step + 1
        at, left = at[~gone], left[~gone]
    return steps_of, at, left


def test_arrays_that_shrink():
    jitted = mp.jit(shrinking)
    for size in (0, 100, 833, 1665, 40_000):
        values = random.random(size) * 2
        for _ in thread_counts(1, 2, 3, 8):
            for have, want in zip(jitted(values, 20), shrinking(values, 20)):
                np.testing.assert_array_equal(have, want)


def test_elements_are_picked_as_the_mask_is_read():
    """No list of places, one pass for the arrays of a mask, and its count comes from where it is made."""
    text = mp.source(shrinking, "f64[n]", 20, stage="loops")
    calls = [line for line in text.splitlines() if "library('nonzero'" in line]
    assert sum("view(left" in line for line in calls) == sum("view(at" in line for line in calls) == 2
    assert sum("_parts, (number" in line for line in calls) == 2  # how many are gone, and how many stay
    checked = mp.source(lambda x, mask: x[mask], "f64[n]", "bool[k]", stage="loops")  # of one length, it says
    assert "view(x" in checked and "view(x" not in mp.source(
        lambda x, mask: x[np.flatnonzero(mask)], "f64[n]", "bool[k]", stage="loops"
    )
    assert "left_2[p]" not in text and "begins[i + 1] = begins[i + 1]" not in text


def test_counts_that_are_no_integers_of_64_bits():
    """Parts of a mask are counted by its routine in those only."""

    def counts(x, mask):
        return np.mean(mask), mask.sum(dtype=np.int32), np.sum(mask, dtype=np.float32), x[mask], mask.sum()

    jitted = mp.jit(counts)
    for size in (100, 100_003, 200_000):
        x, mask = random.standard_normal(size), random.random(size) < 0.4
        for _ in thread_counts(1, 3):
            for have, want in zip(jitted(x, mask), counts(x, mask)):
                np.testing.assert_allclose(have, want)


def test_a_mask_or_an_array_that_changes_in_between():
    """What is picked is what was there, by the mask as it was."""

    def changed(x, mask):
        places = np.flatnonzero(mask)
        mask[:] = ~mask
        first = x[places]
        x[:] = -x
        return first, x[places], x[mask], places

    jitted = mp.jit(changed)
    for size in (10, 20_000):
        x, mask = random.standard_normal(size), random.random(size) < 0.4
        for _ in thread_counts(1, 2):
            for have, want in zip(jitted(x.copy(), mask.copy()), changed(x.copy(), mask.copy())):
                np.testing.assert_array_equal(have, want)


def test_an_array_that_is_shorter_than_the_mask():
    """Places are checked, and nothing behind the array is read: its end is the end of readable memory."""
    picked = mp.jit(lambda x, mask: x[np.flatnonzero(mask & True)])
    page = mmap.PAGESIZE
    held = mmap.mmap(-1, 3 * page)
    libc = ctypes.CDLL(None, use_errno=True)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(held))
    assert libc.mprotect(ctypes.c_void_p(begin + page), ctypes.c_size_t(page), 0) == 0
    for dtype in ("f4", "f8", "c16", "i2"):
        x = np.frombuffer(held, dtype, page // np.dtype(dtype).itemsize)
        x[:] = np.arange(len(x))
        for longer in (1, 37, 64, 10_000):
            mask = random.random(len(x) + longer) < 0.5
            mask[len(x) :] = False
            for _ in thread_counts(1, 2):
                np.testing.assert_array_equal(picked(x, mask), x[mask[: len(x)]])
            mask[len(x)] = True
            with pytest.raises(IndexError):
                picked(x, mask)
    assert libc.mprotect(ctypes.c_void_p(begin + page), ctypes.c_size_t(page), 3) == 0


def test_bytes_that_are_no_bools_read_nothing_else():
    """NumPy's count is undefined then; ours may be, too, but no place lies outside."""
    places = mp.jit(lambda mask: np.flatnonzero(mask))
    for size in (1, 9, 100, 30_000):
        found = places(random.integers(0, 256, size).astype(np.uint8).view(bool))
        assert found.size == 0 or 0 <= found.min() <= found.max() < size


def test_parts_of_a_long_mask_are_listed_by_themselves():
    text = mp.source(lambda x: np.flatnonzero(x > 0), "f64[n]", stage="loops")
    assert "first=first_1)" in text and "begins[i + 1] = begins[i] + t_1_parts[i]" in text
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
