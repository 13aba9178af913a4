"""`a is b` where the paths of the program decide it."""

import pytest

import metaphrase as mp
from metaphrase.source import SourceError


class Best:
    def __init__(self, v, items=None):
        self.v = v
        self.items = [v, 1.0] if items is None else items

    def add(self):
        self.v += 1.0


def test_identity_where_it_depends_on_the_run():
    def same(x):
        a = Best(x)
        b = a
        if x > 0:
            a = Best(1.0)
        return 1.0 if a is b else 2.0

    def another(x):
        a, b = Best(x), Best(2.0)
        if x > 0:
            a = Best(1.0)
        return 1.0 if a is b else 2.0

    with pytest.raises(SourceError, match="its identity is asked for"):
        mp.jit(same)(1.0)
    assert mp.jit(another)(1.0) == 2.0
