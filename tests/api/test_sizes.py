"""At most two programs for any number of sizes: the whole corpus called with five lengths of its arrays.

In: every corpus function with array arguments. All sizes of a call grow together, so that sizes which were
equal stay equal; lengths at which Python itself fails are left out. Out: Python's results each time, and how
many programs were made. What its function can't be run for without its sizes stands in NEEDS_SIZES, with why.
"""

from __future__ import annotations

import numpy as np
import pytest
from corpus import THEMES, alike, cases, fresh
from resized import has_lengths, runs_of
from turns import turn

import metaphrase as mp
from metaphrase.source import ShapeError, SourceError

# Why a length may be needed while a program is translated: for a list, a tuple or a dict of so many elements.
PYTHONS_OWN = ("the length of an array", "the number of items", "a list whose length is only known")
# Functions whose meaning or translation depends on sizes otherwise: these are translated for each.
NEEDS_SIZES = {
    "whiles.rows_of_halves": "a dict with as many keys as a loop over the length counts",
    "nested.ragged_by_value": "the lists in a list have lengths of their own",
    "nested.given_to_builtins": "lists in a list are joined one by one",
    "nested.same_item": "it asks which array an item of a list is",
    "nested.relaxed_in_place": "an item of a list that a loop made is changed afterwards",
    "nested.item_changed": "an item of a list that a loop made is changed afterwards",
    "nested.dict_changed": "an item of a list that a loop made is changed afterwards",
    "nested.one_row": "an item of a list that a loop made is changed afterwards",
    "nested.last_row": "an item of a list that a loop made is changed afterwards",
    "nested.views": "an item of a list that a loop made is changed afterwards",
    "nested.rows_of_argument": "an item of a list that a loop made is changed afterwards",
    "nested.in_two_lists": "an item of a list that a loop made is changed afterwards",
    "nested.carried_on": "an item of a list that a loop made is changed afterwards",
    "classes.object_argument": "each call is given another object, which is another program",
    "functions.generator_shared_by_loops": "an iterator that two loops share moves on in Python",
    "statements.unpack_in_loop": "a row is unpacked into names, which are as many as it has elements",
    "published.neville": "a Python list is repeated as often as an array has elements",
    "published.doolittle": "a Python list is repeated as often as an array has elements",
    "textbook.knapsack": "a table is made of Python lists",
    "control_programs.merged_heights": "a Python list is repeated as often as an array has elements",
    "control_programs.smoothed": "numpy.linalg.pinv asks for known sizes",
    "published.fft": "how deep a recursion goes depends on the size",
    "attempts.inverse_or_pseudo": "numpy.linalg.pinv asks for known sizes",
    "attempts.around_a_loop": "a loop in `try` that may fail is written out, to be left in the middle",
    "swept.parents_of_each_round": "a Python list is repeated as often as an array has elements",
    "views.reshape_of_cut_rows": "it writes to a reshape, and sizes say whether that is a view",
    "choices.counted_by_word": "a list of texts is a Python list, which is as long as the array",
    "control_programs.unscented": "a list with None among its items is a Python list, as long as the array",
    "found.ordinary_least_squares": "numpy.linalg.lstsq asks for known sizes",
    "found.not_for_such_matrices": "a list of texts is a Python list, with as many as sizes have errors",
    "found.quantiles_of_nothing": "whether an array has elements says which exception is raised",
    "mutation.strided_stores": "a Python list is cut to the number of elements of a slice",
}


@pytest.mark.parametrize("theme", turn(THEMES, 8))
def test_two_programs_serve_all_lengths(theme):
    problems, tried, refused = [], 0, 0
    for name, function, args in cases(theme):
        base = name.rpartition("_")[0] if name.rpartition("_")[2].isdecimal() else name
        runs = runs_of(function, args) if has_lengths(args) else []
        jitted = mp.jit(function)
        for given, want, after in runs:
            mine = fresh(given)
            try:
                with mp.config(native=False):
                    got = jitted(*mine)
            except SourceError:  # of the exact sizes: a branch that fits these lengths no more, say
                refused += 1
                break
            if not (alike(got, want, 1e-9) and alike(mine, after, 1e-9)):
                problems.append(f"{name}: {got!r} is not {want!r}")
                break
        tried += bool(runs)
        reasons = [*jitted.jitted._memo.sized.values()]
        known = {name, base} & NEEDS_SIZES.keys() or any(own in r for own in PYTHONS_OWN for r in reasons)
        if len(jitted.signatures) > 2 and not known:
            problems.append(f"{name}: {jitted.signatures}, {reasons}")
    assert not problems, "\n".join(problems)
    assert refused <= 3 or refused < tried / 4


def test_most_of_the_corpus_is_tried():
    tried = [name for name, function, args in cases("fors") if has_lengths(args) and runs_of(function, args)]
    assert len(tried) > 20


def test_native_programs_serve_all_lengths():
    @mp.jit
    def smoothed(x, w):
        y = x.copy()
        for i in range(1, len(x) - 1):
            y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
        return np.sum(y * w), y[::-1], np.argmax(x)

    for n in (5, 9, 3, 17, 2, 100, 4):
        x, w = np.cos(np.arange(n)), np.arange(1.0, n + 1)
        assert alike(smoothed(x, w), smoothed.py_func(x, w), 1e-12)
    assert len(smoothed.signatures) == 2


def test_a_size_that_the_program_needs_is_a_guard():
    """`b[1:3]` has two elements where b has three: one program from the least length seen on."""

    @mp.jit
    def patched(b):
        return list(b[1:3])

    for n in (4, 5, 6, 60):
        assert alike(patched(np.arange(n)), patched.py_func(np.arange(n)))
    assert len(patched.signatures) == 2
    assert alike(patched(np.arange(3)), patched.py_func(np.arange(3)))
    assert len(patched.signatures) == 3
    assert alike(patched(np.arange(9)), patched.py_func(np.arange(9)))
    assert len(patched.signatures) == 3
    assert alike(patched(np.arange(2)), patched.py_func(np.arange(2)))  # here it has one


def test_sizes_that_a_store_needs_are_checked_by_the_run():
    @mp.jit
    def patched(a):
        b = a.copy()
        b[1:3, 1:3] += np.ones((2, 2))
        return b

    for n in (4, 5, 6, 60, 3):
        assert alike(patched(np.zeros((n, n))), patched.py_func(np.zeros((n, n))))
    assert len(patched.signatures) == 2
    with pytest.raises(ValueError):
        patched(np.zeros((2, 2)))  # as in Python: the shapes differ


def test_what_has_as_many_keys_as_an_array_has_elements_is_translated_for_each_length(caplog):
    @mp.jit
    def by_name(x):
        return {f"x{i}": x[i] * 2 for i in range(len(x))}

    with caplog.at_level("INFO", "metaphrase"):
        for n in (4, 5, 6):
            assert list(by_name(np.ones(n))) == [f"x{i}" for i in range(n)]
    assert len(by_name.signatures) == 3
    assert "the program depends on the sizes, and is translated for each" in caplog.text


def test_a_number_whose_value_is_needed_is_made_static_and_logged(caplog):
    @mp.jit
    def along(x, axis, scale):
        return np.sum(x, axis=axis) * scale

    x = np.arange(6.0).reshape(2, 3)
    with caplog.at_level("INFO", "metaphrase"):
        for axis, scale in ((0, 1.0), (1, 2.0), (0, 3.0), (1, 4.0)):
            assert alike(along(x, axis, scale), np.sum(x, axis=axis) * scale)
    assert len(along.signatures) == 2  # one an axis; the scale is not static
    assert "is pinned to 0" in caplog.text and "is pinned to 1" in caplog.text
    assert "whose value the program depends on, changed from 0 to 1" in caplog.text


def test_transformed_functions_serve_all_lengths():
    slope = mp.jit(mp.value_and_grad(lambda w, x, y: np.mean((x @ w - y) ** 2)))
    rows = mp.jit(mp.vmap(lambda x: np.sort(x)[-1] - x.mean()))
    for n in (4, 7, 9, 3):
        x, y, w = np.cos(np.arange(3.0 * n)).reshape(n, 3), np.arange(float(n)), np.array([1.0, -2.0, 0.5])
        value, gradient = slope(w, x, y)
        assert np.allclose(value, np.mean((x @ w - y) ** 2))
        assert np.allclose(gradient, 2 / n * x.T @ (x @ w - y))
        assert np.allclose(rows(x), np.max(x, axis=1) - x.mean(axis=1))
    assert len(slope.signatures) == len(rows.signatures) == 2


def test_a_jitted_function_called_in_another_gives_arrays_of_run_time_size():
    positive = mp.jit(lambda x: x[x > 0])

    def both(x):
        return positive(x).sum(), positive(-x), len(positive(x))

    total, rest, count = mp.jit(both)(np.array([1.0, -1.0, 2.0]))
    assert total == 3.0 and rest.tolist() == [1.0] and count == 2


def test_a_reshape_that_never_fits_is_refused_when_it_runs():
    """The optimizer knows that n m + 1 is never n m; the check before says so."""

    def function(n, m, x):
        if x > 0:
            return np.sum(np.ones((n, m)).reshape(n * m + 1))
        return x

    staged = mp.jit(function)
    assert staged(2, 3, -1.0) == -1.0
    with pytest.raises(ValueError, match=r"cannot reshape array of size 6 into shape \(7,\)"):
        staged(2, 3, 1.0)


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_a_size_that_turns_out_to_divide_by_0_is_no_fault_of_the_compiler(in_a_loop):
    """`reshape(k, -1)` has size // k columns; where k is 0, NumPy says so when it runs, and so do we."""

    def columns(y, table, n):
        total = 0.0
        for _ in range(3 if in_a_loop else 1):
            total += table.reshape(-(n * (y.size % -3) % -5), -1)[0, 0]
        return total

    table = np.arange(1.0, 9.0).reshape(4, 2)
    jitted = mp.jit(columns)
    for length in (9, 10, 4, 12):
        if length % 3 == 0:
            with pytest.raises(ValueError, match=r"cannot reshape array of size 8 into shape \(0,newaxis\)"):
                jitted(np.ones(length), table, 1)
        else:
            assert jitted(np.ones(length), table, 1) == columns(np.ones(length), table, 1)


def first_of_the_rest(m, x):
    rest = (np.array([0.5, -1.0, 2.0]) * x)[m % 3 :][:1]
    return np.sum(np.tanh(rest * np.ones(3))), np.where(rest > 0, rest, np.arange(3.0)), np.add(rest, np.ones((2, 3)))


def at_most_one(m, x):
    none = np.ones(3)[3 - m % 2 :]
    return none + np.arange(4.0) * x


@pytest.mark.parametrize("native", [True, False])
def test_what_surely_has_fewer_elements_has_one(native):
    with mp.config(native=native):
        for m in (3, -1, 1):
            for got, want in zip(mp.jit(first_of_the_rest)(m, 1.3), first_of_the_rest(m, 1.3), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-15)
        slope = mp.jit(mp.grad(lambda m, x: first_of_the_rest(m, x)[0], 1))(4, 1.3)
        ends = [first_of_the_rest(4, 1.3 + s * 1e-6)[0] for s in (1, -1)]
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-8)
        np.testing.assert_array_equal(mp.jit(at_most_one)(3, 2.0), at_most_one(3, 2.0))
        with pytest.raises(ValueError, match="could not be broadcast together"):
            at_most_one(2, 2.0)
        with pytest.raises(ValueError, match="could not be broadcast together: sizes 0 and 4"):
            mp.jit(at_most_one)(2, 2.0)


@pytest.mark.parametrize("native", [True, False])
def test_a_division_by_a_size_stays_behind_the_check_of_the_size(native):
    """Out of the loop it would divide by 0 before `reshape` can refuse that."""

    def stored(x, table, rounds):
        for k in range(rounds):
            x[k] = table.reshape(-(len(x) * 2 % -5), -1)[0, 0]
        return x

    table = np.arange(1.0, 9.0).reshape(4, 2)
    with mp.config(native=native):
        jitted = mp.jit(stored)
        for length in (4, 7, 5, 12):
            if length == 5:
                with pytest.raises(ValueError, match=r"cannot reshape array of size 8 into shape \(0,newaxis\)"):
                    jitted(np.zeros(length), table, 2)
            else:
                assert jitted(np.zeros(length), table, 2).tolist() == stored(np.zeros(length), table, 2).tolist()


def test_what_a_branch_would_need_that_is_not_taken_may_be_less_than_nothing():
    @mp.jit
    def f(x, y):
        if len(x) > len(y):
            return np.sort(np.exp(x)[: len(x) - len(y)] * np.ones(len(x) - len(y)))[::-1]
        return y

    for n, m in ((5, 3), (6, 4), (3, 5), (4, 9), (5, 5)):
        x, y = np.arange(float(n)), np.ones(m)
        np.testing.assert_allclose(f(x, y), np.exp(x[: n - m])[::-1] if n > m else y)


@pytest.mark.parametrize("native", [True, False])
def test_fewer_elements_than_none_are_a_value_error(native):
    def summed(x):
        return np.ones((len(x) - 3, len(x) - 4)).sum()

    def ordered(x):
        return np.sort(np.zeros(len(x) - 4))[::-1].sum()

    for function in (summed, ordered):
        with mp.config(native=native):
            jitted = mp.jit(function)
            assert [float(jitted(np.ones(n))) for n in (6, 7, 4)] == [function(np.ones(n)) for n in (6, 7, 4)]
            for n in (3, 2):
                with pytest.raises(ValueError, match="negative dimensions"):
                    jitted(np.ones(n))


# ---- sizes of the run in what a pullback takes and gives ----------------------------------------------------


def ordered_together(q):
    return np.union1d(q, q + 0.5)


def least_of_both(q):
    return np.sort(np.concatenate([q[q > 0], 2 * q]))[:3]


def trimmed(q):
    return np.trim_zeros(np.round(q[q > -3])) + np.sum(q * q)


def different(q):
    return np.unique(np.concatenate([q[q > 0] * 0.3, q]))


@pytest.mark.parametrize("function", [ordered_together, least_of_both, trimmed, different])
@pytest.mark.parametrize("native", [True, False])
def test_pullbacks_of_sizes_that_a_run_decides(function, native):
    @mp.jit
    def pulled(q, weights):
        y, pullback = mp.vjp(function, q)
        return pullback(np.ones_like(y) * weights[: len(y)])[0]

    weights = np.array([1.0, -2.0, 0.5, 3.0, -1.0, 0.25] * 3)
    with mp.config(native=native):
        for q in ([0.1, 1.2, -2.3, 3.4], [1.6, -0.7, 2.9, 0.3, -2.2], [2.6, 1.4, 0.8]):
            q = np.array(q)
            steps = 1e-6 * np.eye(len(q))
            wanted = [(function(q + s) - function(q - s)) @ weights[: len(function(q))] / 2e-6 for s in steps]
            np.testing.assert_allclose(pulled(q, weights), wanted, atol=1e-7)


OF_SIZES = {
    "a part": lambda q: q[1:] ** 2,
    "differences": lambda q: np.diff(q) ** 2,
    "every other": lambda q: q[::2] ** 2,
    "a half": lambda q: q[len(q) // 2 :] ** 2,
    "without one": lambda q: np.delete(q, 0) * 2,
    "one more": lambda q: np.insert(q, 1, q[0]) ** 2,
    "windows": lambda q: np.convolve(q, np.ones(3), "valid") ** 2,
    "both": lambda q: np.concatenate([q, q[1:]]) ** 2,
    "a table": lambda q: np.outer(q, q[1:]),
}


@pytest.mark.parametrize("name", OF_SIZES)
def test_linear_functions_of_sizes_that_are_made_of_others(name):
    function = OF_SIZES[name]

    @mp.jit
    def pulled(q):
        y, pullback = mp.vjp(function, q)
        return pullback(y)[0]

    @mp.jit
    def pushed(q):
        return mp.linearize(function, q)[1](np.ones(len(q)))

    for n in (5, 4, 9):
        q = np.random.default_rng(n).normal(size=n)
        slopes = [(function(q + s) - function(q - s)).ravel() / 2e-6 for s in 1e-6 * np.eye(n)]
        np.testing.assert_allclose(pulled(q), slopes @ function(q).ravel(), rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(pushed(q).ravel(), np.sum(slopes, axis=0), rtol=1e-6, atol=1e-7)


def gathered(x):
    squares, pairs = [], []
    for i in range(len(x)):
        if x[i] > 0:
            squares.append(x[i] ** 2)
            pairs.append((x[i], {"all": x[i] * x}))
    return {"squares": squares, "pairs": pairs, "x": (x, [x[0]])}


def test_the_pullback_of_a_list_that_grew_takes_such_a_list():
    def pulled(x):
        y, pullback = mp.vjp(gathered, x)
        return pullback(y)[0]

    def energy(x):
        y = gathered(x)
        total = sum(s * s for s in y["squares"]) + sum(v * v + np.sum(p["all"] ** 2) for v, p in y["pairs"])
        return (total + np.sum(y["x"][0] ** 2) + y["x"][1][0] ** 2) / 2

    for x in (np.array([1.0, -1.0, 2.0]), np.array([-1.0, -0.5]), np.array([0.5, 0.25, 2.0, -3.0])):
        wanted = [(energy(x + s) - energy(x - s)) / 2e-6 for s in 1e-6 * np.eye(len(x))]
        np.testing.assert_allclose(pulled(x), wanted, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(mp.jit(pulled)(x), wanted, rtol=1e-6, atol=1e-8)
    y, pullback = mp.vjp(gathered, np.array([1.0, -1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"takes \(\{'pairs': \[\*, \*, ...\], .*'pairs': \[\*, \*\]") as refused:
        pullback(y | {"pairs": [1.0, 2.0]})
    assert "Listed" not in str(refused.value)


def test_arrays_of_the_class_itself_serve_all_sizes(caplog):
    def doubled(x):
        c = np.ndarray(x.shape, dtype=x.dtype)
        c[:] = x * 2
        return c

    jitted = mp.jit(doubled)
    with caplog.at_level("INFO", logger="metaphrase"):
        for n in (5, 6, 7, 8):
            np.testing.assert_array_equal(jitted(np.ones(n)), doubled(np.ones(n)))
    assert sum("translated" in record.getMessage() for record in caplog.records) == 2
    with pytest.raises(SourceError, match="over a buffer"):
        mp.jit(lambda x: np.ndarray((2,), buffer=x))(np.ones(2))


# ---- a grid and its frame ------------------------------------------------------------------------------------


def diffused(field, out, weights):
    n, m = out.shape
    mean = (field[:-2, 1:-1] + field[2:, 1:-1] + field[1:-1, :-2] + field[1:-1, 2:]) / 4
    out[:] = field[1 : n + 1, 1 : m + 1] + weights * (mean - field[1 : n + 1, 1 : m + 1])
    return np.sum(out * weights)


def framed(rng, n, m, more=2):
    return rng.normal(size=(n + more, m + more)), np.zeros((n, m)), rng.normal(size=(n, m))


@pytest.mark.parametrize("native", [True, False])
def test_sizes_that_stay_so_far_apart(native, caplog):
    rng = np.random.default_rng(1)
    jitted = mp.jit(diffused)
    with mp.config(native=native), caplog.at_level("INFO", logger="metaphrase"):
        for n, m in ((6, 5), (9, 4), (30, 31), (2, 2), (7, 40), (1, 4), (3, 1)):
            field, out, weights = framed(rng, n, m)
            ours = out.copy()
            np.testing.assert_allclose(jitted(field, ours, weights), diffused(field, out, weights), rtol=1e-12)
            np.testing.assert_allclose(ours, out, rtol=1e-13)
        assert sum("translated" in r.getMessage() for r in caplog.records) == 4  # two for all, and those of size 1
        for more in (3, 1):  # it was so by chance
            field, out, weights = framed(rng, 5, 6, more)
            for function in (diffused, jitted):
                with pytest.raises(ValueError):
                    function(field, out.copy(), weights)
        field, out, weights = framed(rng, 5, 6)
        assert jitted(field, out, weights) == pytest.approx(diffused(field, out.copy(), weights))
    gradient = mp.jit(mp.grad(lambda field, weights: diffused(field, np.zeros(weights.shape), weights)))
    for n in (4, 6, 9):
        field, _, weights = framed(rng, n, n + 1)
        step = rng.normal(size=field.shape)
        ends = [diffused(field + s * step, np.zeros(weights.shape), weights) for s in (1e-6, -1e-6)]
        np.testing.assert_allclose(np.sum(gradient(field, weights) * step), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_sizes_that_were_so_far_apart_by_chance():
    @mp.jit
    def ends(x, y):
        return x[-1] + y[0] * len(x), np.concatenate([x, y])

    for n, m in ((5, 7), (8, 10), (3, 30), (30, 3), (11, 13), (6, 6)):
        x, y = np.arange(n) + 0.5, np.arange(m) - 1.0
        total, both = ends(x, y)
        assert total == x[-1] + y[0] * n
        np.testing.assert_array_equal(both, np.concatenate([x, y]))
