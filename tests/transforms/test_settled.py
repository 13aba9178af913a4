"""Loops that store into an array and read from it: their derivatives read at the end only what stays.

In: hand-written loops in which places are, or are not, written to again, and random ones with indices that
are sums of counters. Out: the gradient's text gives what a complex step gives, which needs no derivative.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp
from metaphrase.astpasses.emit.numpy_source import compile_numpy


def recurrence(x):
    for i in range(1, len(x)):
        x[i] = x[i] * np.sin(x[i - 1])
    return np.sum(x)


def overwritten_by_the_next(x):
    for i in range(len(x) - 1):
        x[i] = x[i] * x[i + 1]
        x[i + 1] = x[i] * x[i + 1]
    return np.sum(x)


def reads_what_is_to_come(x):
    for i in range(1, len(x) - 1):
        x[i] = x[i - 1] * x[i + 1]
    return np.sum(x)


def from_the_end(x):
    for i in range(len(x) - 2, -1, -1):
        x[i] = x[i] * x[i + 1]
    return np.sum(x * x)


def one_place(x):
    for i in range(len(x)):
        x[0] = x[0] * x[i] + x[i]
    return x[0]


def rows(x):
    a = np.outer(x, x) + 1.0
    for i in range(1, len(x)):
        for j in range(i):
            a[i, j] = a[i, j] * a[j, j] + a[j, i]
        a[i, i] = a[i, i] * np.sum(a[i, :i])
    return np.sum(a)


def rows_twice(x):
    a = np.outer(x, x) + 1.0
    for i in range(1, len(x)):
        for j in range(i):
            a[i, j] = a[i, j] * a[j, j]
            a[j, j] = a[j, j] * a[i, j]
    return np.sum(a)


def sweeps(x):
    for _ in range(3):
        for i in range(1, len(x)):
            x[i] = x[i] * np.cos(x[i - 1])
    return np.sum(x)


def until(x):
    i = 1
    while i < len(x):
        x[i] = x[i - 1] * x[i]
        i += 1
    return np.sum(x)


def permuted(x):
    order = np.array([2, 0, 1, 2, 0])
    for i in range(5):
        x[order[i]] = x[order[i]] * x[i] + 1.0
    return np.sum(x)


def in_a_branch(x):
    for i in range(1, len(x)):
        if i % 2 == 0:
            x[i] = x[i] * x[i - 1]
        else:
            x[i - 1] = x[i] * x[i - 1]
    return np.sum(x)


def diagonal_in_a_branch(x):
    a = np.outer(x, x) + 1.0
    for i in range(len(x)):
        for j in range(i + 1):
            s = a[i, j] - np.sum(a[i, :j] * a[j, :j])
            if i == j:
                a[i, j] = np.sqrt(s * s + 1.0)
            else:
                a[i, j] = s / a[j, j]
    return np.sum(a)


def squares(x):
    for i in range(len(x) - 1):
        x[i + 1] = x[i] * x[i]
    return np.sum(x)


def triangle(x):
    a = np.outer(x, x)
    for i in range(1, len(x)):
        for j in range(i):
            a[i, j] = a[j, j] * a[i - 1, j]
    return np.sum(a)


def blocks(x):
    a = np.outer(x, x) + np.diag(2.0 + x)
    for k in range(len(x) - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] = a[k + 1 :, k + 1 :] - np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return np.sum(a * a)


def largest_so_far(x):
    """The second result of an inner loop is stored."""
    top = 0.0 * x
    for i in range(len(x)):
        place, largest = 0, 0.0 * x[0]
        for j in range(i + 1):
            if np.real(x[j] * x[j]) > np.real(largest):
                place, largest = j, x[j] * x[j]
        top[i] = largest
        x[i] = x[i] * np.sin(largest * x[place])
    return np.sum(np.cos(top) * x)


LOOPS = [
    recurrence,
    overwritten_by_the_next,
    reads_what_is_to_come,
    from_the_end,
    one_place,
    rows,
    largest_so_far,
    rows_twice,
    sweeps,
    until,
    permuted,
    in_a_branch,
    diagonal_in_a_branch,
    squares,
    triangle,
    blocks,
]


def complex_steps(function, x):
    """The gradient, one element at a time."""
    slopes = []
    for k in range(len(x)):
        moved = x.astype(complex)
        moved[k] += 1e-30j
        slopes.append(np.imag(function(moved)) / 1e-30)
    return np.array(slopes)


def assert_right(function, x):
    want = complex_steps(function, x)
    for types in ("f64[n]", f"f64[{len(x)}]"):
        text = mp.source(mp.grad(function), types)
        got = compile_numpy(text)(np.copy(x))
        largest = float(np.max(np.abs(want)))
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12 * largest + 1e-12, err_msg=text)


@pytest.mark.turns(3)
@pytest.mark.parametrize("function", LOOPS, ids=lambda f: f.__name__)
def test_gradients_are_complex_steps(function):
    assert_right(function, np.random.default_rng(5).uniform(0.5, 1.5, 6))


def test_arrays_that_stay_are_not_copied_for_each_iteration():
    for function in (squares, triangle):
        assert "append" not in mp.source(mp.grad(function), "f64[n]")
    assert "append" in mp.source(mp.grad(overwritten_by_the_next), "f64[n]")


def last_alone(x):
    y = np.zeros_like(x)
    for i in range(len(x) - 1):
        y[i] = x[i] * y[i - 1] + x[i]
        y[i + 1] = np.sin(y[i]) * x[i]
    return y[2] * y[4]


def where_positive(x):
    y = np.ones_like(x)
    for i in range(1, len(x)):
        if np.real(x[i]) > 1.0:
            y[i] = np.sin(x[i]) * y[i - 1]
    return np.sum(y)


def swapped(x):
    y, z = np.ones_like(x), np.ones_like(x)
    for i in range(len(x)):
        y[i] = z[i - 1] * x[i]
        y, z = z, y
    return np.sum(y) + z[0]


def in_an_inner_loop(x):
    y = np.ones((6, 6), x.dtype)
    for i in range(1, len(x)):
        for j in range(1, len(x)):
            y[i, j] = y[i - 1, j] * y[i, j - 1]
        y[0, i] = y[i, 2]
    return y[-1, -1] + np.sum(y[:, 3])


BUFFERS = [last_alone, where_positive, swapped, in_an_inner_loop]


@pytest.mark.parametrize("function", BUFFERS, ids=lambda f: f.__name__)
def test_gradients_through_buffers_are_complex_steps(function):
    assert_right(function, np.random.default_rng(6).uniform(0.5, 1.5, 6))


def recurrence_in_a_buffer(x):
    y = np.ones(len(x))
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1]
    return np.sum(y)


def branches_in_a_buffer(x):
    y = np.zeros(len(x))
    for i in range(1, len(x)):
        if x[i] > 0.0:
            y[i] = np.sin(x[i]) * y[i - 1]
    return np.sum(y)


def read_behind_the_loop(x):
    y = np.zeros(len(x))
    y[:] = x
    for i in range(1, len(x)):
        y[i] = x[i] * y[i - 1]
    return np.sum(y)


def test_a_place_that_nobody_reads_again_keeps_its_cotangent():
    for function in (recurrence_in_a_buffer, branches_in_a_buffer):
        assert "] = 0.0" not in mp.source(mp.grad(function), "f64[n]")
    assert "] = 0.0" in mp.source(mp.grad(read_behind_the_loop), "f64[n]")


def test_what_a_branch_leaves_unread_is_a_plain_zero():
    text = mp.source(mp.grad(branches_in_a_buffer), "f64[n]")
    assert "        else:\n            chosen = 0.0\n" in text and "np.float64" not in text


def written(rng: random.Random, number: int, branches: bool) -> str:
    """A function with one or two nested loops of stores at sums of counters, some in branches."""
    deep, buffer = rng.random() < 0.5, rng.random() < 0.5
    counters = ["i", "j"] if deep else ["i"]
    size = 9

    def place() -> str:
        terms = [c for c in counters if rng.random() < 0.7] or [rng.choice(["2", "4"])]
        x = rng.choice("xyy") if buffer else "x"
        return (
            f"{x}[({' + '.join(terms)} + {rng.randrange(3)}) % {size}]"
            if rng.random() < 0.15
            else (
                f"{x}[{' + '.join(terms)} + {rng.randrange(3)}]"
                if rng.random() < 0.8
                else f"{x}[{rng.choice(counters)}]"
            )
        )

    step = rng.choice(["range(3)", "range(1, 4)", "range(2, -1, -1)", "range(0, 4, 2)"])
    rows = [
        f"def loop_{number}(x):",
        f"    y = {rng.choice(['np.ones_like(x)', '0.5 * x + 1.0'])}",
        f"    for i in {step}:",
    ]
    indent = "        "
    if deep:
        inner = rng.choice(["range(3)", "range(i)", "range(i + 1)", "range(i, 3)", "range(2, -1, -1)"])
        rows.append(f"{indent}for j in {inner}:")
        indent += "    "
    for _ in range(rng.randrange(1, 3)):
        target, first, second = place(), place(), place()
        value = rng.choice(
            [
                f"{first} * {second}",
                f"np.sin({first}) + {target} * {second}",
                f"{target} - 0.3 * {first} * {second}",
                f"{first} / {second}",
            ]
        )
        store = f"{target} = {value}"
        if branches and rng.random() < 0.7:
            test = rng.choice(
                [f"{counters[-1]} % 2 == {rng.randrange(2)}", f"i == {counters[-1]}", "np.real(x[i]) > 1.0"]
            )
            rows += [f"{indent}if {test}:", f"{indent}    {store}"]
            if rng.random() < 0.6:
                rows += [f"{indent}else:", f"{indent}    {place()} = {first} * {rng.choice([target, second])}"]
        else:
            rows.append(indent + store)
    result = rng.choice(["np.sum(y)", "y[2]", "y[1] * x[3]", "np.sum(y[3:] * x[3:])"]) if buffer else "np.sum(x * x)"
    return "\n".join([*rows, f"    return {result}", "", ""])


@pytest.mark.turns(5)
@pytest.mark.parametrize(("seed", "branches"), [(0, False), (1, False), (2, False), (100, False), (101, True)])
def test_random_loops(seed, branches, tmp_path: Path):
    rng = random.Random(seed)
    source = tmp_path / f"loops_{seed}.py"
    source.write_text("import numpy as np\n\n\n" + "\n".join(written(rng, k, branches) for k in range(12)))
    spec = importlib.util.spec_from_file_location(source.stem, source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for number in range(12):
        assert_right(getattr(module, f"loop_{number}"), np.random.default_rng(number).uniform(0.6, 1.4, 9))
