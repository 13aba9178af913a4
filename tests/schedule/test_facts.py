"""The one prover of sizes: what it shows is true, and it shows what the scheduler asks."""

from __future__ import annotations

import itertools

import pytest

from metaphrase.core.dims import Sym, dim_max, dim_min, substitute
from metaphrase.core.facts import Facts, divide

n, m, i, j = (Sym(s) for s in "nmij")
INSIDE = Facts().index("i", n).index("j", m)

SHOWN = [
    (0, i), (i, n - 1), (i + 1, n), (i*m + j, n*m - 1), (0, n - i - 1), (i, i + j), (dim_max(i, j), i + j),
    (dim_min(i, n), i), (j % 4, 3), (0, i // 2), (i // 2, i), (2*i, 2*n - 2),
]  # fmt: skip
NOT_SHOWN = [(n, i), (1, n), (i, j), (i + 2, n), (n*m, n), (1, i)]


@pytest.mark.parametrize("a, b", SHOWN, ids=str)
def test_shown_and_true(a, b):
    assert INSIDE.less_equal(a, b)
    for sizes in itertools.product(range(1, 4), repeat=2):
        for place in itertools.product(range(sizes[0]), range(sizes[1])):
            values = dict(zip("nmij", (*sizes, *place)))
            assert substitute(a, values) <= substitute(b, values)


@pytest.mark.parametrize("a, b", NOT_SHOWN, ids=str)
def test_what_need_not_hold_is_not_shown(a, b):
    assert not INSIDE.less_equal(a, b)


def test_indices_of_reshapes_simplify():
    flat = i*m + j
    assert INSIDE.simplify(flat // m) == i
    assert INSIDE.simplify(flat % m) == j
    known = Facts().index("i", 6).index("j", 4)
    assert known.simplify((4*i + j) // 4) == i
    assert known.simplify((4*i + j) % 4) == j


def test_division_keeps_what_is_not_divisible():
    assert divide(3*n*m + j + 1, m) == (3*n, j + 1)
    assert divide(6*i + 5, 4) == (1, 6*i + 1)


def test_a_number_from_the_user_is_not_taken_for_a_size():
    assert not Facts().bounded("k", None, None).nonnegative(Sym("k"))
    assert Facts().nonnegative(Sym("k"))
