"""Lists that grow beyond the room that a run gives them: it is begun again with more.

The corpus (`growing`, `growing_uses`, `deques`) has what can be done to such lists; here they are long.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.frontend.values.sources import room_of
from metaphrase.exceptions import FIRST_ROOM, ListFull
from metaphrase.source import SourceError

LONG = 40 * FIRST_ROOM


def decay(x, n):
    ts = [x]
    while len(ts) < n:
        ts.append(ts[-1] * 0.999 + 0.1)
    return np.array(ts).sum() + ts[len(ts) // 2]


def slope(n):
    powers = 0.999 ** np.arange(n)
    return powers.sum() + powers[n // 2]


def test_native_runs_get_more_room():
    f = mp.jit(decay)
    for n in (3, LONG, 5, FIRST_ROOM, FIRST_ROOM + 1):
        np.testing.assert_allclose(f(1.0, n), decay(1.0, n))


def test_room_is_kept_for_later_calls():
    f = mp.jit(decay)
    f(1.0, LONG)
    (program,) = [row.program for rows in f.jitted._memo.table.values() for row in rows]
    (room,) = [room for c in program.captures if (room := room_of(c)) is not None]
    size = int(room.size)
    assert LONG <= size < 4 * LONG
    f(1.0, LONG)
    assert int(room.size) == size


@pytest.mark.parametrize("jit", [False, True])
def test_derivatives(jit):
    wrap = mp.jit if jit else lambda f: f
    np.testing.assert_allclose(wrap(mp.grad(decay))(1.0, LONG), slope(LONG))
    np.testing.assert_allclose(wrap(lambda x: mp.grad(decay)(x, LONG))(1.0), slope(LONG))
    _, tangent = mp.jvp(lambda x: decay(x, LONG), (1.0,), (2.0,))
    np.testing.assert_allclose(tangent, 2 * slope(LONG))
    _, pullback = mp.vjp(lambda x: decay(x, LONG), 1.0)
    np.testing.assert_allclose(pullback(1.0)[0], slope(LONG))
    twice = wrap(mp.grad(mp.grad(lambda x, n: decay(x * x, n))))
    np.testing.assert_allclose(twice(1.0, LONG), 2 * slope(LONG))


def test_lanes_of_several_lengths():
    xs, counts = np.arange(4.0), np.array([3, LONG, FIRST_ROOM + 1, 10])
    want = [decay(float(x), int(n)) for x, n in zip(xs, counts)]
    np.testing.assert_allclose(mp.vmap(decay)(xs, counts), want)
    np.testing.assert_allclose(mp.jit(mp.vmap(decay))(xs, counts), want)
    np.testing.assert_allclose(mp.jit(mp.vmap(mp.grad(decay)))(xs, counts), [slope(n) for n in counts])


def history(a, n):
    a[0] += 1.0
    xs = [a[0]]
    while len(xs) < n:
        xs.append(xs[-1] + a[1])
        a[1] *= 0.999
    return xs


@pytest.mark.parametrize("n", [5, LONG])
def test_arguments_are_changed_once(n):
    f = mp.jit(history)
    for _ in range(2):
        have, want = np.array([1.0, 2.0]), np.array([1.0, 2.0])
        got, expected = f(have, n), history(want, n)
        assert type(got) is list and len(got) == n
        np.testing.assert_allclose(got, expected)
        np.testing.assert_allclose(have, want)


def test_source_stands_by_itself(tmp_path):
    for function, name in ((decay, "decay"), (mp.grad(decay), "grad_decay")):
        text = mp.source(function, 1.0, 9)
        (tmp_path / "saved.py").write_text(text)
        code = f"import sys; sys.modules['metaphrase'] = None; import saved; print(saved.{name}(1.0, {LONG}))"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(float(done.stdout), function(1.0, LONG))


def test_the_program_alone_says_that_a_list_is_full():
    from metaphrase.core.evaluate import evaluate

    staged = stage(decay, (1.0, 9))
    with pytest.raises(ListFull, match="room"):
        evaluate(staged.function, *staged.arguments((1.0, LONG)))


def test_lists_of_unknown_length_have_no_batch():
    with pytest.raises(SourceError, match="vmap: the function returns a list"):
        mp.vmap(history_of)(np.arange(3.0) + 2.0)


def history_of(x):
    xs = [x]
    while xs[-1] > 1.0:
        xs.append(xs[-1] / 2)
    return xs


def test_nested_calls_give_lists():
    inner = mp.jit(history_of)

    def outer(x):
        values = inner(x)
        values.append(7.0)
        return values, len(values), values[-2]

    values, count, last = mp.jit(outer)(9.0)
    assert values == [*history_of(9.0), 7.0] and count == len(values) and last == history_of(9.0)[-1]


def test_items_keep_their_kinds():
    def kinds(n, x, v):
        numbers, scalars, vectors, pairs = [n], [x], [v], [(n, v)]
        while len(numbers) < n:
            numbers.append(numbers[-1] * 2)
            scalars.append(scalars[-1] * x)
            vectors.append(vectors[-1] + 1)
            pairs.append((pairs[-1][0] + 1, pairs[-1][1] * 2))
        return numbers, scalars, vectors, pairs

    args = (4, np.float32(1.5), np.arange(3.0))
    for got, want in zip(mp.jit(kinds)(*args), kinds(*args)):
        assert [type(g) for g in got] == [type(w) for w in want]
        np.testing.assert_array_equal(
            np.asarray([g[0] if isinstance(g, tuple) else g for g in got]),
            np.asarray([w[0] if isinstance(w, tuple) else w for w in want]),
        )


def test_lists_are_explained_and_have_shapes():
    from metaphrase.explanation import explain

    assert "copies" not in explain(history_of, 9.0)
    (shape,) = mp.eval_shape(history_of, 9.0)
    assert shape.dtype == np.float64 and len(shape.shape) == 1


def halvings(x):
    """An array of a size that only the run knows, or None."""
    if x < 0:
        return None
    steps = []
    while x > 1:
        steps.append(x)
        x = x / 1.1
    return np.array(steps), len(steps)


def sum_of_halvings(x):
    found = halvings(x)
    return 0.0 if found is None else np.sum(found[0])


def test_arrays_that_part_on_a_branch_get_more_room():
    f = mp.jit(halvings)
    for x in (2.0, 1e50, -1.0, 3.0):
        want, got = halvings(x), f(x)
        assert (want is None) == (got is None)
        if want is not None:
            np.testing.assert_allclose(got[0], want[0])
            assert got[1] == want[1] and len(got[0]) == want[1]
    slope_of_sum = sum(1.1**-k for k in range(halvings(1e50)[1]))
    np.testing.assert_allclose(mp.jit(mp.grad(sum_of_halvings))(1e50), slope_of_sum)
    assert mp.jit(mp.grad(sum_of_halvings))(-1.0) == 0
    np.testing.assert_allclose(
        mp.vmap(sum_of_halvings)(np.array([2.0, -1.0, 1e50])), [sum_of_halvings(x) for x in (2.0, -1.0, 1e50)]
    )
