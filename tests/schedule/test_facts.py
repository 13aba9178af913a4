"""The one prover of sizes: what it shows is true, and it shows what the scheduler asks."""

from __future__ import annotations

import itertools
import random

import pytest

from metaphrase.core.dims import DimLike, Sym, dim_max, dim_min, floordiv, mod, substitute
from metaphrase.core.facts import UNBOUNDED, Facts, divide

n, m, i, j = (Sym(s) for s in "nmij")
INSIDE = Facts().index("i", n).index("j", m)

SHOWN = [
    (0, i), (i, n - 1), (i + 1, n), (i*m + j, n*m - 1), (0, n - i - 1), (i, i + j), (dim_max(i, j), i + j),
    (dim_min(i, n), i), (j % 4, 3), (0, i // 2), (i // 2, i), (2*i, 2*n - 2),
]  # fmt: skip
NOT_SHOWN = [(n, i), (1, n), (i, j), (i + 2, n), (n * m, n), (1, i)]


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
    flat = i * m + j
    assert INSIDE.simplify(flat // m) == i
    assert INSIDE.simplify(flat % m) == j
    known = Facts().index("i", 6).index("j", 4)
    assert known.simplify((4 * i + j) // 4) == i
    assert known.simplify((4 * i + j) % 4) == j


def test_division_keeps_what_is_not_divisible():
    assert divide(3 * n * m + j + 1, m) == (3 * n, j + 1)
    assert divide(6 * i + 5, 4) == (1, 6 * i + 1)


def test_a_number_from_the_user_is_not_taken_for_a_size():
    assert not Facts().bounded("k", None, None).nonnegative(Sym("k"))
    assert Facts().nonnegative(Sym("k"))


def random_dim(choose: random.Random, names: str, depth: int) -> DimLike:
    """A sum, product, quotient, remainder, maximum or minimum, of any sign."""
    if depth == 0:
        return choose.choice([choose.randint(-4, 4), *map(Sym, names)])
    a, b = (random_dim(choose, names, depth - 1) for _ in range(2))
    divisor = choose.choice([-4, -3, -2, 2, 3, b])
    operation = choose.choice(["+", "-", "*", "//", "//", "%", "%", "max", "min"])
    if operation in ("//", "%"):
        return a if divisor == 0 else (floordiv if operation == "//" else mod)(a, divisor)
    return {"+": a + b, "-": a - b, "*": a * b, "max": dim_max(a, b), "min": dim_min(a, b)}[operation]


def values_of(dims: tuple[DimLike, ...], places: list[dict[str, int]]) -> list[tuple[int, ...]]:
    """The numbers that the dims are wherever none of them divides by 0."""
    rows = []
    for place in places:
        try:
            rows.append(tuple(int(substitute(dim, place)) for dim in dims))
        except ZeroDivisionError:
            pass
    return rows


@pytest.mark.turns(4)
@pytest.mark.parametrize("seed", range(8))
def test_random_dims_are_bounded_as_their_numbers_are(seed):
    """Signs, comparisons, bounds and simpler forms of random dims hold for each number that they may be."""
    choose = random.Random(seed)
    known = Facts().index("i", n).bounded("k", -3, 2)
    places = [
        {"n": size, "m": other, "i": index, "k": number}
        for size in (0, 1, 2, 5) for other in (0, 1, 3, 4) for index in range(size) for number in (-3, 0, 2)
    ]  # fmt: skip
    shown = 0
    for _ in range(250):
        dim = random_dim(choose, "nmik", 2)
        bounds = known.upper(dim, {"n", "m"}), known.upper(-dim, {"n", "m"})
        high, low = (0 if bound is None else bound for bound in bounds)
        for value, most, least, simple in values_of((dim, high, low, known.simplify(dim)), places):
            assert simple == value, dim
            assert value >= 0 or not known.nonnegative(dim), dim
            assert bounds[0] is None or value <= most, (dim, high)
            assert bounds[1] is None or -value <= least, (-dim, low)
        shown += known.nonnegative(dim) + sum(bound is not None for bound in bounds)
    assert shown > 50


def test_bounds_that_mention_each_other_have_no_magnitude():
    facts = Facts().bounded("i", 0, Sym("j")).bounded("j", Sym("i"), None)
    assert facts.magnitude(Sym("i")) == UNBOUNDED
