"""`config.double_where`: derivatives of choices leave out what is not taken, in every mode, and the log says where."""

import logging
import re
from pathlib import Path

import numpy as np
import pytest

import metaphrase as mp

X = np.array([0.0, 1.0, 4.0, -1.0])
ROOTS = np.array([0.0, 0.5, 0.25, 0.0])


def plain(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0))


def otherwise(x):
    return np.sum(np.where(x <= 0, 0.0, np.sqrt(x)))


def used_twice(x):
    y = np.log(x)
    return np.sum(np.where(x > 0, y, 0.0) + np.where(x > 1, y * y, 0.0))


def chosen_twice(x):
    return np.sum(np.where(x > 0, np.where(x > 2, np.log(x - 2), np.sqrt(x)), x))


def in_a_loop(x):
    total = 0.0
    for k in range(len(x)):
        total += np.where(x[k] > 0, np.sqrt(x[k]), -x[k])
    return total


def in_a_branch(x):
    return np.sum(np.where(x > 0, np.sqrt(x), 0.0)) if x[1] > 0 else 0.0


def with_where(x):
    out = np.zeros_like(x)
    np.sqrt(x, where=x > 0, out=out)
    return out.sum()


def in_pieces(x):
    return np.sum(np.piecewise(x, [x > 0], [np.sqrt, 0.0]))


def selected(x):
    return np.sum(np.select([x > 1, x > 0], [np.sqrt(x), np.log(x)], 0.0))


def masked(x):
    y = np.zeros_like(x)
    y[x > 0] = np.log(x)[x > 0]
    return y.sum()


def distances(x):
    d = x[:, None] - x
    near = np.abs(d) < 2
    return np.sum(np.where(near & (d != 0), 1 / d**2, 0.0))


def masked_table(x):
    table = np.stack([x, 2 * x])
    return np.sum(np.sqrt(table)[table > 0])


def at_places(x):
    table = np.stack([x, 2 * x])
    rows, columns = np.nonzero(table > 0)
    return np.sum(np.sqrt(table)[rows, columns])


def rows_taken(x):
    return np.sum(np.sqrt(np.stack([x, x], axis=1))[x > 0])


def taken(x):
    return np.sum(np.sqrt(x)[np.array([2, 1, 2])])


FUNCTIONS = {
    plain: ROOTS,
    otherwise: ROOTS,
    used_twice: [0, 1, 0.25 + np.log(4) / 2, 0],
    chosen_twice: [1, 0.5, 0.5, 1],
    in_a_loop: [-1, 0.5, 0.25, -1],
    in_a_branch: ROOTS,
    with_where: ROOTS,
    in_pieces: ROOTS,
    selected: [0, 1, 0.25, 0],
    masked: [0, 1, 0.25, 0],
    distances: [0, -4, 0, 4],
    masked_table: ROOTS * (1 + np.sqrt(2)),
    at_places: ROOTS * (1 + np.sqrt(2)),
    rows_taken: 2 * ROOTS,
    taken: [0, 0.5, 0.5, 0],
}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_in_both_modes(function):
    with np.errstate(all="ignore"):
        want = function(X)
        assert np.isnan(mp.grad(function)(X)).any()
        with mp.config(double_where=True):
            value, gradient = mp.value_and_grad(function)(X)
            forward = mp.jacfwd(function)(X)
            second = mp.jacrev(mp.grad(function))(X)
        assert np.isnan(mp.grad(function)(X)).any()
    np.testing.assert_allclose(value, want)
    np.testing.assert_allclose(gradient, FUNCTIONS[function])
    np.testing.assert_allclose(forward, FUNCTIONS[function])
    assert np.isfinite(second).all() and np.allclose(second, second.T)


def test_native_code_and_lanes():
    def smooth(x):
        return np.where(x == 0, 1.0, np.sin(x) / x)

    def all_of(x):
        slopes = mp.vmap(mp.grad(smooth))(x)
        of_lanes = mp.grad(lambda x: mp.vmap(smooth)(x).sum())(x)
        return slopes, of_lanes, mp.grad(plain)(x), mp.grad(in_a_loop)(x), mp.hessian(plain)(x)

    with mp.config(double_where=True):
        slopes, of_lanes, roots, looped, second = mp.jit(all_of)(X)
    with np.errstate(all="ignore"):
        want = np.where(X == 0, 0, np.cos(X) / X - np.sin(X) / X**2)
    np.testing.assert_allclose(slopes, want)
    np.testing.assert_allclose(of_lanes, want)
    np.testing.assert_allclose(roots, ROOTS)
    np.testing.assert_allclose(looped, [-1, 0.5, 0.25, -1])
    np.testing.assert_allclose(second, np.diag([0, -0.25, -1 / 32, 0]))


def test_gradients_of_gradients():
    with mp.config(double_where=True), np.errstate(all="ignore"):
        made = mp.grad(lambda x: np.sum(mp.grad(plain)(x) ** 2))(X)
    np.testing.assert_allclose(made, [0, -0.25, -2 * 0.25 / 32, 0])


def test_nothing_is_computed_twice_and_linear_choices_stay():
    def both(x):
        return np.sum(np.where(x > 0, 2.0 * x, -x)), np.sum(np.where(x > 0, np.exp(x), x))

    with mp.config(double_where=True):
        text = mp.source(lambda x: both(x), X)
        core = mp.source(lambda x: np.where(x > 0, 2.0 * x, -x), X, stage="core")
    assert text.count("np.exp") == 1 and "only_where" not in text + core


def test_the_log_names_the_line(caplog):
    with caplog.at_level(logging.INFO, "metaphrase"), mp.config(double_where=True):
        mp.source(mp.grad(plain), X)
    line = plain.__code__.co_firstlineno + 1
    said = [r.getMessage() for r in caplog.records if "double_where" in r.getMessage()]
    assert said == [f"{__file__}:{line}: derivatives leave out what is not chosen here (double_where)"]


def test_the_page_shows_what_it_does(tmp_path, caplog):
    page = (Path(__file__).parents[2] / "docs" / "conventions.md").read_text()
    first, second = re.findall(r"```python\n(.*?)```", page, re.S)
    path = tmp_path / "choices.py"
    path.write_text(
        "import numpy as np\nimport metaphrase as mp\n\n"
        + first.replace("mp.grad", "\na = mp.grad")
        + second.replace("mp.grad", "b = mp.grad")
    )
    namespace: dict = {}
    with caplog.at_level(logging.INFO, "metaphrase"), np.errstate(all="ignore"):
        exec(compile(path.read_text(), str(path), "exec"), namespace)
    np.testing.assert_array_equal(namespace["a"], [np.nan, 0.25])
    np.testing.assert_array_equal(namespace["b"], [0.0, 0.25])
    assert re.search(r"```text\n(.*?)\n```", page, re.S).group(1) in caplog.text
