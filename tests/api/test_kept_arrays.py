"""Objects whose attributes are, or become, one array or views of one: what they share after each call.

The plain methods and the jitted ones are called in one order on two objects alike; after each call these
hold the same numbers, and the same pairs of arrays share memory: those held now, before, and at the start.
"""

import itertools

import numpy as np
import pytest

import metaphrase as mp


class Model:
    """Arrays that methods pass round among attributes."""

    def __init__(self):
        self.a, self.b = np.arange(4.0), np.ones(4)
        self.grid, self.best, self.least = np.zeros((3, 4)), np.full(4, 7.0), 1e9
        self.both = [self.a, self.a * 2]

    def poke_a(self):
        self.a[0] += 10.0

    def poke_b(self):
        self.b[1] -= 3.0

    def poke_best(self):
        self.best[0] += 7.0

    def share_if(self, c):
        if c > 0:
            self.b = self.a
        return self.b.sum()

    def share_if_both(self, c, d):
        if c > 0:
            if d > 0:
                self.b = self.a
            else:
                self.b = self.a * 2
        return self.b.sum()

    def share_new(self, c):
        self.a = self.a * 3
        if c > 0:
            self.b = self.a
        else:
            self.b = np.ones(4)

    def copy_if(self, c):
        if c > 0:
            self.best = self.a.copy()

    def row(self, i):
        self.best = self.grid[i]

    def column_views(self):
        z = np.arange(16.0).reshape(4, 4)
        self.a, self.b, self.best = z[0], z[:, 1], z[1:2].T[:, 0]

    def part(self, low):
        self.best = self.a[low : low + 4]

    def reversed_part(self):
        self.best = self.a[::-1]

    def row_or_array(self, c, i):
        if c > 0:
            self.best = self.grid[i]
        else:
            self.best = self.a

    def least_of(self, rows):
        for i in range(len(rows)):
            value = rows[i].sum()
            if value < self.least:
                self.least, self.best = value, rows[i] * 1.0
        return self.least

    def least_by_variable(self, rows):
        best, least = self.best, self.least
        for row in rows:
            if row.sum() < least:
                least, best = row.sum(), row.copy()
        self.best, self.least = best, least

    def advance(self, n):
        for _ in range(n):
            self.a, self.b = self.a + 0.5 * self.b, self.a
        return self.a

    def item_if(self, c):
        if c > 0:
            self.both[1] = self.both[0]
        self.both[1][2] += 1.0

    def fresh(self):
        self.a, self.b, self.best = np.arange(4.0), np.ones(4), np.full(4, 7.0)


HIGH, LOW = np.full((3, 4), 9e9), np.random.default_rng(0).random((70, 4))
POKES = [("poke_a",), ("poke_b",), ("poke_best",)]
SCENARIOS = {
    "share_if": [("share_if", 1.0), *POKES, ("share_if", -1.0), *POKES],
    "share_if_not": [("share_if", -1.0), *POKES, ("share_if", 1.0), *POKES],
    "share_if_both": [
        ("share_if_both", 1.0, -1.0),
        *POKES,
        ("share_if_both", 1.0, 1.0),
        *POKES,
        ("share_if_both", -1.0, 1.0),
        *POKES,
    ],
    "share_new": [("share_new", 1.0), *POKES, ("share_new", -1.0), *POKES],
    "copy_if": [("copy_if", -1.0), *POKES, ("copy_if", 1.0), *POKES],
    "row": [("row", 1), *POKES, ("row", -1), *POKES, ("row", 0), *POKES],
    "column_views": [("column_views",), *POKES, ("share_if_both", -1.0, 1.0), *POKES],
    "part": [("part", 0), *POKES, ("reversed_part",), *POKES],
    "row_or_array": [("row_or_array", 1.0, 1), *POKES, ("row_or_array", -1.0, 1), *POKES],
    "least_of": [("least_of", HIGH), *POKES, ("least_of", LOW), *POKES, ("least_of", LOW), *POKES],
    "least_by_variable": [("least_by_variable", HIGH), *POKES, ("least_by_variable", LOW), *POKES],
    "advance": [("advance", 0), *POKES, ("advance", 1), *POKES, ("advance", 80), *POKES],
    "item_if": [("item_if", -1.0), ("poke_a",), ("item_if", 1.0), ("poke_a",), ("item_if", -1.0)],
}


def arrays_of(model: Model) -> list:
    return [value for held in vars(model).values() for value in (held if type(held) is list else [held])]


def sharing(arrays: list) -> list:
    return [np.shares_memory(x, y) for x, y in itertools.combinations(arrays, 2)]


@pytest.mark.turns(3)
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("how", ["native", "text"])
def test_what_is_shared_after_each_call(name, how):
    plain, ours = Model(), Model()
    held = [arrays_of(plain)], [arrays_of(ours)]
    compiled: dict = {}
    for method, *args in SCENARIOS[name]:
        want = getattr(plain, method)(*args)
        if how == "text":
            module: dict = {}
            exec(mp.source(getattr(Model, method), ours, *args, stage="numpy"), module)
            got = module[method](ours, *args)
        else:
            got = compiled.setdefault(method, mp.jit(getattr(Model, method)))(ours, *args)
        np.testing.assert_allclose(want if want is not None else 0, got if got is not None else 0)
        for history, model in zip(held, (plain, ours)):
            history.append(arrays_of(model))
        for x, y in zip(*(itertools.chain(*history) for history in held)):
            np.testing.assert_array_equal(x, y)
        assert sharing(list(itertools.chain(*held[0]))) == sharing(list(itertools.chain(*held[1]))), method
