"""Stores at places that data name: kernels of many threads, and results that are the same to the bit as in order."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import stand_in
from emulated import SMALL, emitted, run

import metaphrase as mp
from metaphrase.api.arguments import take_apart
from metaphrase.api.transforms import program_of
from metaphrase.astpasses.optimize import optimize
from metaphrase.core.evaluate import evaluate
from metaphrase.pipeline import finished

SOURCE = np.random.default_rng(7)
PLACES = SOURCE.integers(-9, 9, 400)
WEIGHTS = SOURCE.normal(size=400).astype(np.float32)
ROWS = SOURCE.normal(size=(400, 5)).astype(np.float32)


def embedding(table, places, rows):
    return (table[places] * rows).sum()


def added(places, weights):
    y = np.zeros(9, np.float32)
    np.add.at(y, places, weights)
    return y


def mixed(places, weights):
    y = np.ones(9, np.float32)
    for k in range(len(places)):
        y[places[k]] = 0.5 * y[places[k]] + weights[k]
    return y


def put(places, weights):
    y = np.zeros(9, np.float32)
    y[places] = weights
    return y


def put_rows(places, rows):
    y = np.zeros((9, 5), np.float32)
    y[places] += rows
    y[places] = rows
    return y


def pairs(i, j, weights):
    y = np.zeros((9, 4), np.float32)
    np.add.at(y, (i, j), weights)
    return y


def columns(places, rows):
    y = np.zeros((5, 9), np.float32)
    np.add.at(y, (slice(None), places), rows.T)
    return y


def grid_of_places(places, weights):
    y = np.zeros(9, np.float32)
    np.add.at(y, places, weights)
    return y


def sparse(rows, columns, values, x):
    y = np.zeros(9)
    for k in range(len(values)):
        y[rows[k]] += values[k] * x[columns[k]]
    return y


def some_added(places, weights):
    y = np.zeros(9, np.float32)
    for k in range(len(places)):
        if weights[k] > 0:
            y[places[k]] += weights[k]
    return y


def within(places, weights):
    """Places that lie outside are no error."""
    y = np.zeros((5, 2), np.float32)
    for k in range(len(places)):
        place = places[k]
        if 0 <= place < 4:
            y[place, 0] += weights[k]
            y[place + 1, 1] += 1 - weights[k]
    return y


def largest_of_floats(places, weights):
    y = np.full(9, -9.0, np.float32)
    for k in range(len(places)):
        y[places[k]] = max(y[places[k]], weights[k])
    return y


def sums_and_squares(places, weights):
    sums, squares = np.zeros(9), np.zeros(9)
    for k in range(len(places)):
        sums[places[k]] += weights[k]
        squares[places[k]] += weights[k] ** 2
    return sums, squares


def least(places, weights):
    best, which = np.full(9, 9.0, np.float32), np.full(9, -1)
    for k in range(len(places)):
        if weights[k] < best[places[k]]:
            best[places[k]] = weights[k]
            which[places[k]] = k
    return best, which


def either(places, weights):
    y = np.ones(9)
    for k in range(len(places)):
        if weights[k] > 0:
            y[places[k]] = weights[k]
        else:
            y[places[k]] = 0.5 * y[places[k]]
    return y


def forces(pairs, x):
    """Of each pair one on the other; one may be the other."""
    y = np.zeros(x.shape)
    for k in range(len(pairs)):
        i, j = pairs[k, 0], pairs[k, 1]
        u, v = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
        near = 1 / (u * u + v * v + 0.1)
        if near > 0.3:
            y[i, 0] += near * u
            y[i, 1] += near * v
            y[j, 0] -= near * u
            y[j, 1] -= near * v
    return y


def terms_of_loops(places, rows):
    y = np.zeros(9)
    for k in range(len(places)):
        length = 0.0
        for j in range(rows.shape[1]):
            length += rows[k, j] ** 2
        y[places[k]] += length
    return y


def stored_twice(places, weights):
    y = np.zeros(9)
    for k in range(len(places)):
        y[places[k]] = weights[k]
        y[places[k - 1]] *= 0.5
        y[places[k]] += 1
    return y


PROGRAMS = {
    "some_added": (some_added, (PLACES, WEIGHTS)),
    "within": (within, (PLACES, WEIGHTS)),
    "largest_of_floats": (largest_of_floats, (PLACES, WEIGHTS)),
    "sums_and_squares": (sums_and_squares, (PLACES, WEIGHTS)),
    "least": (least, (PLACES, WEIGHTS)),
    "either": (either, (PLACES, WEIGHTS)),
    "forces": (forces, (SOURCE.integers(0, 9, (300, 2)), SOURCE.normal(size=(9, 2)))),
    "terms_of_loops": (terms_of_loops, (PLACES, ROWS)),
    "stored_twice": (stored_twice, (PLACES, WEIGHTS)),
    "embedding": (mp.grad(embedding), (np.zeros((9, 5), np.float32), PLACES, ROWS)),
    "added": (added, (PLACES, WEIGHTS)),
    "mixed": (mixed, (PLACES, WEIGHTS)),
    "put": (put, (PLACES, WEIGHTS)),
    "put_rows": (put_rows, (PLACES, ROWS)),
    "pairs": (pairs, (PLACES, PLACES % 4, WEIGHTS)),
    "columns": (columns, (PLACES, ROWS)),
    "grid_of_places": (grid_of_places, (PLACES.reshape(20, 20), WEIGHTS.reshape(20, 20))),
    "sparse": (sparse, (PLACES, PLACES[::-1].copy(), WEIGHTS.astype(np.float64), np.arange(9.0))),
    "one place": (added, (np.full(300, 4), WEIGHTS[:300])),
    "places of their own": (added, (np.arange(-9, 0), WEIGHTS[:9])),
}


def counted(places):
    y = np.zeros(9, np.int32)
    np.add.at(y, places, 2)
    return y


def extremes(places, numbers):
    largest, smallest = np.full(9, -100), np.full(9, 100)
    np.maximum.at(largest, places, numbers)
    np.minimum.at(smallest, places, numbers)
    return largest, smallest


def tallied(places, numbers):
    table = np.zeros((9, 4), np.uint32)
    for k in range(len(places)):
        table[places[k], numbers[k] % 4] += 1
    return table


def of_numbers(places):
    return np.bincount(places + 9, minlength=5)


def each_counted(places):
    y = np.zeros(9, np.int64)
    for place in places:
        y[place] += 1
    return y


def some_counted(places, numbers):
    y = np.zeros(9, np.int64)
    for k in range(len(places)):
        if numbers[k] > 0:
            y[places[k]] += numbers[k]
    return y


def while_small(places, numbers):
    """What is stored decides what else is: not in any order."""
    y = np.zeros(9, np.int64)
    for k in range(len(places)):
        if y[places[k]] < 2:
            y[places[k]] += numbers[k]
    return y


def while_small_by_name(places, numbers):
    y = np.zeros(9, np.int64)
    for k in range(len(places)):
        old = y[places[k]]
        if old < 2:
            y[places[k]] = old + numbers[k]
    return y


def with_what_was_there(places, numbers):
    y, total = np.zeros(9, np.int64), np.zeros(400, np.int64)
    for k in range(len(places)):
        old = y[places[k]]
        total[k] = old
        y[places[k]] = old + numbers[k]
    return y, total


def exchanged(places, numbers):
    """What goes to a place lay at another."""
    y = np.arange(9)
    for k in range(len(places)):
        old = y[places[k]]
        y[places[k]] = y[numbers[k] % 9]
        y[numbers[k] % 9] = old
    return y


def of_another_array(places, numbers):
    y, z = np.zeros(9, np.int64), np.zeros(9, np.int64)
    for k in range(len(places)):
        y[places[k]] += numbers[k]
        z[numbers[k] % 9] += y[places[k]]
    return y, z


def read_before_it_is_stored(places, numbers):
    y = np.zeros(9)
    for k in range(len(places)):
        old = y[places[k]]
        y[numbers[k] % 9] = 1.5
        y[places[k]] = old + 1
    return y


def place_that_moves(places, numbers):
    y = np.zeros(9)
    for k in range(len(places)):
        place = places[k] % 9
        y[place] *= 0.5
        if numbers[k] > 0:
            place = (place + 1) % 9
        y[place] += numbers[k]
    return y


def checked_by_what_is_stored(places, numbers):
    y = np.zeros(9)
    for k in range(len(places)):
        assert y[places[k]] > -1e6
        y[places[k]] += numbers[k]
    return y


NUMBERS = SOURCE.integers(-50, 50, 400)
ATOMIC = {
    "counted": (counted, (PLACES,)),
    "extremes": (extremes, (PLACES, NUMBERS)),
    "tallied": (tallied, (PLACES, NUMBERS)),
    "of_numbers": (of_numbers, (PLACES,)),
    "each_counted": (each_counted, (PLACES,)),
    "some_counted": (some_counted, (PLACES, abs(NUMBERS) + 1)),
}
PROGRAMS |= ATOMIC


def program(name, simplified=True):
    function, args = PROGRAMS[name]
    call = take_apart(args, {})
    core = program_of(function, call.structure, call.specs).function
    return optimize(core, before_transform=False) if simplified else core, args


@pytest.mark.turns(3)
@pytest.mark.parametrize(
    "name, simplified",
    [*((name, True) for name in PROGRAMS if name not in ATOMIC), ("added", False), ("sparse", False)],
)
def test_results_are_those_of_the_order(name, simplified, monkeypatch):
    monkeypatch.setenv("CUEMU_ORDER", "rand")
    monkeypatch.setenv("CUEMU_RACES", "1")
    core, args = program(name, simplified)
    text = emitted(core, SMALL, checked=True)[1].text
    assert re.search(r"c\.library\(-1, 'argsort', \(keys\w*,\), \(order\w*,\), axis=0\)", text)
    for got, want in zip(run(core, args, SMALL), evaluate(core, *args), strict=True):
        assert np.array_equal(got, want) and got.dtype == np.asarray(want).dtype


@pytest.mark.parametrize("name", ATOMIC)
def test_integers_are_combined_in_any_order(name, monkeypatch):
    """By atomic operations: nothing is sorted, and no thread goes through all of them."""
    monkeypatch.setenv("CUEMU_ORDER", "rand")
    monkeypatch.setenv("CUEMU_RACES", "1")
    core, args = program(name)
    text = emitted(core, SMALL, checked=True)[1].text
    assert re.search(r"mp_atomic_\w+\(&", text) and "argsort" not in text
    for got, want in zip(run(core, args, SMALL), evaluate(core, *args), strict=True):
        assert np.array_equal(got, want) and got.dtype == np.asarray(want).dtype
    wrong = (np.where(np.arange(args[0].size).reshape(args[0].shape) == 7, 99, args[0]), *args[1:])
    if name != "of_numbers":
        with pytest.raises(IndexError, match="99"):
            run(core, wrong, SMALL)


UNSORTED = [
    while_small,
    while_small_by_name,
    with_what_was_there,
    exchanged,
    of_another_array,
    read_before_it_is_stored,
    place_that_moves,
    checked_by_what_is_stored,
]


@pytest.mark.parametrize("function", UNSORTED)
def test_what_is_stored_decides(function, monkeypatch):
    monkeypatch.setenv("CUEMU_RACES", "1")
    call = take_apart((PLACES, NUMBERS), {})
    core = program_of(function, call.structure, call.specs).function
    assert "mp_atomic" not in emitted(core, SMALL, checked=True)[1].text
    for got, want in zip(run(core, (PLACES, NUMBERS), SMALL), evaluate(core, PLACES, NUMBERS), strict=True):
        np.testing.assert_array_equal(got, want)


def counted_by_table(places, numbers):
    table, y = np.arange(9), np.zeros(9, np.int64)
    for k in range(len(places)):
        added = table[places[k]]
        if numbers[k] > 0:
            y[k % 9] += added
    return y


def test_a_check_before_the_branch_of_a_store_is_made_where_the_branch_is_not_taken():
    call = take_apart((PLACES, NUMBERS), {})
    core = optimize(program_of(counted_by_table, call.structure, call.specs).function, before_transform=False)
    assert np.array_equal(run(core, (PLACES, NUMBERS), SMALL)[0], counted_by_table(PLACES, NUMBERS))
    wrong = np.where(np.arange(400) == np.flatnonzero(NUMBERS <= 0)[7], 50, PLACES)
    with pytest.raises(IndexError, match="index 50 is out of bounds"):
        run(core, (wrong, NUMBERS), SMALL)


def test_the_first_wrong_place_is_told():
    core, (rows, columns, values, x) = program("sparse")
    rows, columns = rows.copy(), columns.copy()
    columns[70], rows[200] = 9, -10
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        run(core, (rows, columns, values, x), SMALL)
    columns[70] = 8
    with pytest.raises(IndexError, match="index -10 is out of bounds"):
        run(core, (rows, columns, values, x), SMALL)


def into(y, places, weights):
    for k in range(len(places)):
        y[places[k]] += weights[k]
    return y


def gathered(y, places, weights):
    for k in range(len(places)):
        y[k] = weights[places[k]]
    return y


def checked_by_what_it_stores(y, places, weights):
    for k in range(len(places)):
        assert y[places[k]] > -100.0
        y[places[k]] += weights[k]
    return y


@pytest.mark.parametrize("function, parts", [(into, 4), (gathered, 2), (checked_by_what_it_stores, 1)])
@pytest.mark.parametrize("size", [12, 400])
def test_a_loop_that_fails_has_stored_nothing_into_an_argument(function, parts, size):
    """Its checks are made first, so that all threads do both; unless they ask for what is stored."""
    types = f"f32[{10 * size}]", f"i64[{10 * size}]", f"f32[{10 * size}]"
    text = mp.source(function, *types, stage="cuda")
    assert len(re.findall(r"(?m)^    c\.\w+\(", text)) == (parts if size == 400 else 1)
    y, places = np.zeros(size, np.float32), PLACES[:size].copy()
    with stand_in.installed():
        moved = [mp.device_put(a, "gpu") for a in (y, places, WEIGHTS[:size])]
        got = mp.device_get(mp.jit(function)(*moved))
        assert np.array_equal(got, function(y.copy(), places, WEIGHTS[:size]))
        places[size // 2] = size
        moved = [mp.device_put(a, "gpu") for a in (y, places, WEIGHTS[:size])]
        with pytest.raises(IndexError, match=f"index {size} is out of bounds"):
            mp.jit(function)(*moved)
        assert parts == 1 or size == 12 or not mp.device_get(moved[0]).any()  # few iterations are one thread's


def test_short_loops_and_loops_with_one_place_stay():
    def few(x, places):
        return x[places].sum()

    assert "argsort" not in mp.source(mp.grad(few), "f32[9]", "i64[100]", stage="cuda")
    assert "argsort" in mp.source(mp.grad(few), "f32[9]", "i64[10000]", stage="cuda")
    assert "argsort" in mp.source(mp.grad(few), "f32[n]", "i64[m]", stage="cuda")

    def carried(places):
        y = np.zeros(9)
        for k in range(len(places)):
            y[places[k]] = y[k % 9] + 1
        return y

    assert "argsort" not in mp.source(carried, "i64[10000]", stage="cuda")


def test_floats_are_atomic_on_request():
    def product(data, cols, first, x):
        y = np.zeros(len(first) - 1)
        for i in range(len(y)):
            for k in range(first[i], first[i + 1]):
                y[i] += data[k] * x[cols[k]]
        return y

    def loss(data, cols, first, x):
        return (product(data, cols, first, x) ** 2).sum()

    slopes = mp.grad(loss, argnums=(0, 3))
    first = np.array([0, 3, 3, 7, 20, 24])
    given = SOURCE.random(24), SOURCE.integers(0, 6, 24), first, SOURCE.random(6)
    call = take_apart(given, {})
    program = finished(program_of(slopes, call.structure, call.specs).function)
    wanted = mp.jit(slopes)(*given)
    eager = replace(SMALL, atomic_floats=True, grid_work=1)
    for target, atomics in ((SMALL, 0), (eager, 1)):
        assert ("mp_atomic_sum(&" in emitted(program, target)[1].text) == atomics
        for got, want in zip(run(program, given, target), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    with mp.config(fastmath=True):
        text = mp.source(slopes, "f64[500000]", "i64[500000]", "i64[10001]", "f64[10000]", stage="cuda")
    assert "mp_atomic_sum(&" in text and "c.one" not in text.partition("\ndef ")[2]
