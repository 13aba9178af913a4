"""Loops and views as programs of others have them, and remedies that work."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import special

import metaphrase as mp
from metaphrase.api import memory
from metaphrase.astpasses.frontend.staging import reach
from metaphrase.source import UnsupportedError


def haar(s, levels):
    w = [s]
    n = 2
    while n < levels and len(w[0]) != 1:
        w.insert(0, w[0][::2] + w[0][1::2])
        n += 1
    return w


def means(a, ids, k, most):
    centers = np.array([a[i] for i in ids])
    step = 0
    while step < most:
        step += 1
        new = []
        for i in range(k):
            new.append(centers[i] * 0.5)
        centers = np.array(new)
    return centers


def binomial(s, n):
    v = [[0.0 for _ in np.arange(i + 1)] for i in np.arange(n + 1)]
    for j in np.arange(n + 1):
        v[n][j] = s * j
    for i in np.arange(n - 1, -1, -1):
        for j in np.arange(i + 1):
            v[i][j] = 0.5 * (v[i + 1][j] + v[i + 1][j + 1])
    return v[0][0]


def changed_under_way(x):
    at = np.arange(3)
    for k in at:
        at[2] = 0
        x[k] = x[k] * 2 + 1
    return x


def diagonal_in_a_loop(a):
    for _ in range(5):
        if a[0, 0] < 1e-3:
            return np.diagonal(a)
        a[0, 0] *= 0.01
    return a[0]


def diagonal_or_row(a, c):
    d = np.diagonal(a) if c > 0 else a[0]
    a[0, 0] = 5
    return d.copy(), a


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (haar, (np.arange(16.0), 4)),
        (haar, (np.arange(16.0), 64)),
        (means, (np.arange(12.0).reshape(6, 2), np.array([0, 2]), 2, 3)),
        (binomial, (2.0, 5)),
        (changed_under_way, (np.arange(3.0),)),
        (diagonal_in_a_loop, (np.eye(3) + 1,)),
        (diagonal_in_a_loop, (np.eye(3) * 1e14,)),
        (diagonal_or_row, (np.arange(9.0).reshape(3, 3), 1.0)),
        (diagonal_or_row, (np.arange(9.0).reshape(3, 3), -1.0)),
    ],
)
def test_as_in_numpy(function, args):
    fresh = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    wanted, got = function(*args), mp.jit(function)(*fresh)
    for one, other in zip(wanted, got, strict=True) if isinstance(wanted, (list, tuple)) else [(wanted, got)]:
        np.testing.assert_array_equal(one, other)
    for one, other in zip(args, fresh, strict=True):
        np.testing.assert_array_equal(one, other)


def pivot(rows, k):
    rows = [r.copy() for r in rows]
    rows[np.argmin(k)] /= 2.0
    return rows[0]


def pivot_of_one_array(rows, k):
    items = np.stack([r.copy() for r in rows])
    items[np.argmin(k)] /= 2.0
    return items[0]


def simplex(x):
    found = [[x, math.sin(x[0])], [x + 1, math.sin(x[0] + 1)]]
    found.sort(key=lambda r: r[1])
    return found[0][0]


def window(n):
    return np.bartlett(n)


@pytest.mark.parametrize(
    ("function", "args", "message", "remedy"),
    [
        (pivot, (np.ones((2, 3)), np.arange(2.0)), "an item of a list may or may not share memory", "np.stack"),
        (simplex, (np.ones(2),), "the order of items that are not numbers", "np.argsort"),
        (window, (5,), "numpy.bartlett has no translation", "static_argnames"),
    ],
)
def test_messages(function, args, message, remedy):
    with pytest.raises(UnsupportedError) as refused:
        mp.jit(function)(*args)
    assert message in str(refused.value) and remedy in refused.value.remedy


def test_the_remedies_work():
    rows, k = np.ones((2, 3)), np.array([1.0, 2.0])
    np.testing.assert_array_equal(mp.jit(pivot_of_one_array)(rows, k), pivot(rows, k))
    np.testing.assert_array_equal(mp.jit(window, static_argnames="n")(5), np.bartlett(5))


def test_what_arguments_are_called_is_made_for_messages_only(monkeypatch):
    def appended(items, weights):
        items.append(items[-1] + int(weights["a"][0]))
        return items

    jitted, weights = mp.jit(appended), {name: np.ones(3) for name in "abc"}
    assert jitted([1, 2], weights) == [1, 2, 3]
    monkeypatch.setattr(memory, "leaf_labels", None)
    assert jitted([1, 3], weights) == [1, 3, 4]


def filled(image, level):
    """The sizes of the regions above a level, each filled from a stack."""
    height, width = image.shape
    labels, sizes, count = np.full((height, width), -1), [], 0
    for i in range(height):
        for j in range(width):
            if image[i, j] < level or labels[i, j] >= 0:
                continue
            stack, n = [(i, j)], 0
            labels[i, j] = count
            while stack:
                a, b = stack.pop()
                n += 1
                for da, db in ((0, 1), (1, 0), (0, -1), (-1, 0)):
                    x, y = a + da, b + db
                    if 0 <= x < height and 0 <= y < width and labels[x, y] < 0 and image[x, y] >= level:
                        labels[x, y] = count
                        stack.append((x, y))
            sizes.append(n)
            count += 1
    return labels, np.array(sizes)


def test_tests_of_two_kinds_of_bool_do_not_have_a_loop_unrolled():
    image = np.random.default_rng(1).random((5, 7)).astype(np.float32)
    assert len(mp.source(filled, image, 0.45).splitlines()) < 250
    for got, want in zip(mp.jit(filled)(image, 0.45), filled(image, 0.45)):
        np.testing.assert_array_equal(got, want)


def joined_rows(x):
    rows = [[v, 2 * v] for v in x]
    return sum(rows, [])


def test_lists_of_many_rows_are_joined():
    jitted = mp.jit(joined_rows)
    for count in (40, 80, 31):
        x = np.arange(float(count))
        assert jitted(x) == joined_rows(x)


def longer_by_two(x):
    out = []
    for v in x:
        out = out + [v, 2 * v]
    return out


@pytest.mark.parametrize("native", [True, False])
def test_a_list_that_is_made_anew_has_room_for_what_is_added(native):
    jitted = mp.jit(longer_by_two)
    with mp.config(native=native):
        for count in (31, 32, 33, 40, 400):
            x = np.arange(float(count))
            assert jitted(x) == longer_by_two(x)


def counted_rounds(x, v, k, s, n):
    rounds = 0
    for _ in range(n):
        rounds += 1
        j = 0
        while j < 5:
            j += 1
            s += 0.05
            v = k
            x = np.where(k > s, v, x)
    return x, v, s, rounds


def test_a_while_loop_that_surely_runs_and_binds_an_array_anew():
    """Its trips are no dim, and nothing asks for them."""
    x, v, k = np.zeros(3), np.ones(3), np.array([0.1, 0.3, 0.9])
    jitted = mp.jit(counted_rounds)
    for n in (0, 1, 2):
        for got, want in zip(jitted(x, v, k, 0.1, n), counted_rounds(x, v, k, 0.1, n)):
            np.testing.assert_array_equal(got, want)


def filtered(x, zs):
    states, total = [], 0.0
    for z in zs:
        x = x * 0.5 + z
        if not np.isnan(z):
            total += np.sum(x)
        states.append((x, 2 * x))
    return states, total


def test_a_number_of_two_types_does_not_have_a_loop_unrolled_that_appends_arrays():
    x, zs = np.arange(3.0), np.linspace(0.0, 1.0, 20)
    zs[7] = np.nan
    assert mp.source(filtered, x, zs).count("np.isnan") == 1
    (states, total), (expected, sums) = mp.jit(filtered)(x, zs), filtered(x, zs)
    np.testing.assert_allclose(total, sums)
    np.testing.assert_allclose(states, expected)


def near(heads, following, n):
    total = 0.0
    for a in (-1, 0, 1):
        for b in (-1, 0, 1):
            for c in (-1, 0, 1):
                j = heads[(a + b + c) % n]
                while j >= 0:
                    total += (1.5 + a) * b + c * j
                    j = following[j]
    return total


def test_loops_over_a_few_ints_are_rolled_around_loops():
    args = (np.array([2, 0, 1]), np.array([-1, -1, 0]), 3)
    assert mp.source(near, *args).count("while") < 9
    assert mp.jit(near)(*args) == near(*args)


def by_halves(f, a, b, tol, depth=0):
    m = 0.5 * (a + b)
    one, two = (b - a) * f(m), 0.5 * (b - a) * (f(0.5 * (a + m)) + f(0.5 * (m + b)))
    if depth > 15 or abs(two - one) < tol:
        return two
    return by_halves(f, a, m, tol / 2, depth + 1) + by_halves(f, m, b, tol / 2, depth + 1)


def area(w, b):
    return by_halves(lambda x: np.exp(-w * x * x), 0.0, b, 1e-2)


def area_of(p):
    return area(p[0], p[1])


def test_a_recursion_that_calls_itself_twice_under_tests_ends_or_is_refused():
    np.testing.assert_allclose(mp.jit(area)(3.0, 1.0), area(3.0, 1.0), rtol=1e-14)
    with pytest.raises(UnsupportedError, match="the depth to which 'by_halves' calls itself"):
        mp.jit(area_of)(np.array([3.0, 1.0]))


def longest_in_common(s, t):
    table = [[0] * (len(t) + 1) for _ in range(len(s) + 1)]
    for i in range(len(s)):
        for j in range(len(t)):
            table[i + 1][j + 1] = table[i][j] + 1 if s[i] == t[j] else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def test_stores_into_lists_of_a_table_collect_no_garbage(monkeypatch):
    collected = []
    monkeypatch.setattr(reach, "collect_all", lambda: collected.append(1))
    s, t = np.array([1, 2, 3, 1, 2, 0]), np.array([2, 3, 3, 1, 0, 2])
    assert mp.jit(longest_in_common)(s, t) == longest_in_common(s, t) == 4
    assert len(collected) < 6


def test_ndtr():
    for x in (np.linspace(-30.0, 9.0, 100), np.linspace(-9, 3, 9, dtype=np.float32), 0.5, 3):
        want = special.ndtr(x)
        got = mp.jit(lambda x: special.ndtr(x))(x)
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_allclose(got, want, rtol=1e-13 if want.dtype == np.float64 else 1e-5)
    slopes = mp.grad(lambda x: np.sum(special.ndtr(x)))(np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_allclose(slopes, np.exp(-0.5 * np.array([1.0, 0.0, 4.0])) / np.sqrt(2 * np.pi))


def implicit(k, x, array):
    xs = [x]
    for i in range(9):
        x = xs[-1]
        while np.max(np.abs(k * x + x - xs[-1])) > 1e-12:
            x = x - (k * x + x - xs[-1]) / (1.5 + k)
        xs.append(x + i)
    return np.array(xs) if array else xs


def test_a_list_that_is_read_has_no_loop_unrolled_that_has_loops_inside():
    x = np.array([1.0, 2.0])
    array = functools.partial(implicit, array=True)
    assert mp.source(array, 0.5, x).count("while") < 4
    np.testing.assert_allclose(mp.jit(array)(0.5, x), array(0.5, x))
    rows = mp.jit(mp.vmap(array, (0, None)))(np.array([0.5, 0.75]), x)
    np.testing.assert_allclose(rows, [array(0.5, x), array(0.75, x)])


def test_a_list_of_few_items_that_is_returned_has_its_items():
    x = np.array([1.0, 2.0])
    items = functools.partial(implicit, array=False)
    np.testing.assert_allclose(mp.jit(items)(0.5, x), items(0.5, x))
    rows = mp.jit(mp.vmap(items, (0, None)))(np.array([0.5, 0.75]), x)
    assert type(rows) is list and len(rows) == 10
    np.testing.assert_allclose(np.array(rows)[:, 1], items(0.75, x))


@pytest.mark.parametrize("factor", [2, -1, -3, 1103515245, 2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_products_with_a_constant_that_64_bits_just_hold(factor):
    jitted = mp.jit(lambda x: (factor * x, x * factor))
    least, most = sorted((-(2**63) // factor, (2**63 - 1) // factor))
    for x in (x for edge in (least, most) for x in range(edge - 2, edge + 3) if -(2**63) <= x < 2**63):
        if -(2**63) <= factor * x < 2**63:
            assert jitted(x) == (factor * x, factor * x)
        else:
            with pytest.raises(OverflowError):
                jitted(x)


def halves(x, m):
    total = 0.0
    for start in range(m):
        for i in range(start, len(x), len(x) // 2):
            total += x[i]
    return total


def steps_of_a_length(x, start):
    return sum([i for i in range(start, 10, len(x))])


def steps_of_0_on_a_path(x, start):
    count = 0
    if start > 3:
        for i in range(start, 10, 0):
            count += i
    return count


@pytest.mark.parametrize("start", [0, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 3, 5])
@pytest.mark.parametrize("function", [halves, steps_of_a_length, steps_of_0_on_a_path])
def test_ranges_of_step_0(function, size, start):
    jitted, x = mp.jit(function), np.arange(float(size))
    try:
        want = function(x, start)
    except ValueError as error:
        with pytest.raises(ValueError, match="must not be zero") as caught:
            jitted(x, start)
        assert str(error) in str(caught.value)
    else:
        assert jitted(x, start) == want


EDGES = [0, 2, 5, -1, -6, 2**63 - 2, 2**63 - 1, -(2**63)]


def overwritten_backwards(x, i, j):
    x[i:j:-1] = 7
    return x


@pytest.mark.parametrize(
    "function", [lambda x, i, j: x[i:j:-1].copy(), lambda x, i, j: x[i:j:-2].copy(), overwritten_backwards]
)
def test_slices_backwards_whose_bounds_64_bits_just_hold(function):
    jitted = mp.jit(function)
    for size in (0, 1, 6):
        for i, j in itertools.product(EDGES, EDGES):
            np.testing.assert_array_equal(jitted(np.arange(size), i, j), function(np.arange(size), i, j))


def beyond_all_arrays(x, a):
    place = 9223372036854775807 * 5
    return x[0] if a > 0 else x[place]


def test_an_index_that_64_bits_do_not_hold():
    jitted = mp.jit(beyond_all_arrays)
    for size in (4, 5, 6):
        assert jitted(np.arange(float(size)), 1) == 0.0
        with pytest.raises(IndexError, match="46116860184273879035 is out of bounds"):
            jitted(np.arange(float(size)), -1)
