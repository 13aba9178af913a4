"""Columns that a nest reads again and again are rows of a copy; where that changes nothing or costs more,
they stay."""

import numpy as np
import pytest

import metaphrase as mp


def rank_one_updates(c, a):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            c[i, : i + 1] += 0.5 * a[i, k] * a[: i + 1, k]
    return c


def products_of_rows_and_columns(a, b):
    c = np.zeros((a.shape[0], b.shape[1]))
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = a[i] @ b[:, j]
    return c


def changed_on_the_way(c, a):
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            c[i, :] += a[:, k]
            a[i, k] = c[i, k] * 0.25
    return c, a


def read_once(c, a):
    for k in range(a.shape[1]):
        c[:] += a[:, k] * k
    return c


def few(c, a):
    for i in range(40):
        for k in range(a.shape[1]):
            c[i, :4] += a[:4, k]
    return c


def matrix(rows, columns, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns))


PROGRAMS = {
    "rank_one_updates": (rank_one_updates, lambda: (matrix(30, 30), matrix(30, 20, 1)), True),
    "products": (products_of_rows_and_columns, lambda: (matrix(20, 30), matrix(30, 20, 1)), True),
    "changed": (changed_on_the_way, lambda: (matrix(20, 20), matrix(20, 20, 1)), False),
    "read_once": (read_once, lambda: (np.zeros(30), matrix(30, 20, 1)), False),
    "few": (few, lambda: (matrix(40, 8), matrix(8, 20, 1)), False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_are_copied_where_it_pays(name):
    function, arguments, copied = PROGRAMS[name]
    assert ("_columns" in mp.source(function, *arguments(), stage="cython")) == copied
    given = arguments()
    expected = function(*given)
    found_given = arguments()
    found = mp.jit(function)(*found_given)
    for a, b in zip((expected, *given), (found, *found_given)):
        np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["rank_one_updates", "products"])
def test_other_sizes_and_the_loops_run_as_python(name):
    from metaphrase import pipeline
    from metaphrase.api.arguments import take_apart
    from metaphrase.api.transforms import program_of
    from metaphrase.astpasses.schedule.python_loops import python_loops

    function, arguments, _ = PROGRAMS[name]
    call = take_apart(arguments(), {})
    program = pipeline.loops(pipeline.finished(program_of(function, call.structure, call.specs).function))
    assert "_columns" in python_loops(program)
    jitted = mp.jit(function)
    jitted(*arguments())
    for n in (9, 40, 2, 17):  # one program for all of these, which copies where it pays
        other = (matrix(n, n), matrix(n, 6, 1)) if name == "rank_one_updates" else (matrix(n, 11), matrix(11, n + 4))
        expected = function(*(x.copy() for x in other))
        np.testing.assert_allclose(jitted(*(x.copy() for x in other)), expected, rtol=1e-12, atol=1e-14)
    assert "if " in jitted.source("cython") and "_columns[" in jitted.source("cython")
    assert jitted.cache_info().misses == 2


def test_a_copy_is_made_only_where_it_pays_for_sizes_of_the_run():
    text = mp.source(rank_one_updates, "f64[n, n], f64[n, m]", stage="loops")
    test = next(line for line in text.splitlines() if line.strip().startswith("if ") and ">=" in line)
    assert "4*m*n" in test, test
    assert "_columns" not in mp.source(read_once, "f64[n], f64[n, m]", stage="loops")
    assert "_columns" not in mp.source(changed_on_the_way, "f64[n, m], f64[n, m]", stage="loops")


def test_both_nests_have_arrays_of_their_own():
    def solved(x):
        return np.sum(np.linalg.solve(np.outer(x, x) + np.eye(len(x)), np.ones(len(x))))

    curvature, slope = mp.jit(mp.hessian(solved)), mp.grad(solved)
    for n in (4, 6, 9, 20):  # with the second the size is one of the run: copies pay from 8 on
        x = matrix(n, 1)[:, 0] / 3
        wanted = [(slope(x + s) - slope(x - s)) / 2e-5 for s in 1e-5 * np.eye(n)]
        np.testing.assert_allclose(curvature(x), wanted, atol=1e-7)
