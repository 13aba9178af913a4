"""Distances of accesses, against all pairs of iterations; and what asks for them."""

from __future__ import annotations

import itertools
import random

import pytest

from metaphrase.astpasses.schedule.dependence import Distance, disjoint, distance, in_blocks, in_step
from metaphrase.astpasses.schedule.fuse import Limits, fuse_block
from metaphrase.astpasses.schedule.lanes import in_lanes
from metaphrase.astpasses.schedule.names import Names
from metaphrase.astpasses.schedule.nest import Axis, Buf, For, Load, Nest, Store, Sym, local, walk
from metaphrase.astpasses.schedule.target import CPU
from metaphrase.core.dims import substitute, symbols
from metaphrase.core.facts import Facts
from metaphrase.core.types import f64

i, j, n = Sym("i"), Sym("j"), Sym("n")
ROUNDS, INNER = 5, 3
NONE = frozenset()


def places(index, step):
    """The places that one iteration names: one for each round of the loop inside."""
    return {tuple(substitute(e, {"i": step, "j": k}) for e in index) for k in range(INNER)}


@pytest.mark.parametrize("seed", range(4))
def test_all_pairs_of_iterations(seed):
    choose = random.Random(seed)
    sure = 0
    for _ in range(400):
        rank = choose.choice((1, 2))
        a, b = (
            tuple(
                choose.choice((0, 1, 1, 2)) * i + choose.choice((0, 0, 1)) * j + choose.choice((0, 1, 2))
                for _ in range(rank)
            )
            for _ in range(2)
        )
        found = distance(a, b, "i", ROUNDS, frozenset("j"), NONE)
        meeting = {q - p for p, q in itertools.product(range(ROUNDS), repeat=2) if places(a, p) & places(b, q)}
        if found is None:
            assert not meeting, (a, b)
            continue
        if found.at is not None:
            assert meeting <= {found.at}, (a, b, found)
        if found.sure:
            sure += 1
            everywhere = {q - p for p, q in itertools.product(range(ROUNDS), repeat=2)}
            assert meeting == ({found.at} if found.at is not None else everywhere), (a, b, found)
    assert sure > 20


@pytest.mark.parametrize(
    "a, b, want",
    [
        ((i,), (i,), Distance(0, True)),
        ((i + 2,), (i,), Distance(2, True)),
        ((i, j), (i - 1, j), Distance(1, True)),
        ((3 * i,), (3 * i + 1,), None),
        ((i, 0), (i, 1), None),
        ((i, i + 1), (i, i), None),
        ((0,), (0,), Distance(None, True)),
        ((i + n,), (i,), Distance(None, False)),
        ((i * n,), (i * n,), Distance(None, False)),
        ((i + j,), (i + j,), Distance(None, False)),
        ((Sym("p"),), (Sym("p"),), Distance(None, False)),
        ((i, Sym("p")), (i, Sym("p") + 1), Distance(0, False)),
    ],
)
def test_known_distances(a, b, want):
    assert distance(a, b, "i", Sym("m"), frozenset("j"), frozenset("p")) == want


def test_iterations_that_a_short_loop_does_not_have():
    assert distance((i + 5,), (i,), "i", 5, NONE, NONE) is None
    assert distance((i + 4,), (i,), "i", 5, NONE, NONE) == Distance(4, True)


def store(buf, *index, value=None):
    return Store(buf, index, Load(Buf("x", f64, (n,), "arg"), (index[0],)) if value is None else value)


def fused(first, second):
    nests = (Nest((Axis("a", n),), (first,)), Nest((Axis("b", n),), (second,)))
    return len(fuse_block(nests, Facts(), Limits(CPU.streams))) == 1


def test_loops_are_fused_in_step_only():
    t, y, a, b = Buf("t", f64, (n + 1,)), Buf("y", f64, (n,), "out"), Sym("a"), Sym("b")
    assert fused(store(t, a), store(y, b, value=Load(t, (b,))))
    assert not fused(store(t, a), store(y, b, value=Load(t, (b + 1,))))
    assert not fused(store(t, a + 1), store(y, b, value=Load(t, (b,))))


@pytest.mark.parametrize("place, side_by_side", [(i, True), (i + 1, False), (i - 1, False), (0, False)])
def test_sums_side_by_side_read_what_their_own_iteration_has_stored(place, side_by_side):
    s, y = local("s", f64), Buf("y", f64, (2048,), "out")
    body = (store(y, i, value=Load(Buf("x", f64, (2048,), "arg"), (i,))), Store(s, (), Load(y, (place,)), "sum"))
    rows = in_lanes((For("i", 2048, body, "red"),), Names(), Facts(), CPU)
    assert (len([s for s in walk(rows) if isinstance(s, For)]) > 1) == side_by_side
    assert in_step((i,), (place,), "i", 2048) == side_by_side
    assert not symbols(place) - {"i"}


def test_blocks_that_iterations_have_to_themselves():
    facts = Facts({"j": (0, 31), "k": (0, 31), "l": (0, 32)})
    k, l = Sym("k"), Sym("l")
    assert in_blocks((32 * i + j,), (32 * i + k,), "i", facts)
    assert in_blocks((n, 31 - 32 * i - j + 31), (n, 62 - 32 * i - k), "i", facts) is False
    assert in_blocks((5 - 32 * i + j - 5,), (k - 32 * i,), "i", facts)
    assert not in_blocks((32 * i + j,), (32 * i + l,), "i", facts)
    assert not in_blocks((32 * i + j,), (31 * i + k,), "i", facts)
    assert not in_blocks((32 * i + j - 1,), (32 * i + k,), "i", facts)


def test_what_an_inner_loop_runs_to_is_its_own_iterations_index():
    """`for i: for j in range(i): a[i, j] = a[n - 1, i]`: one iteration's j is not below the i of another."""
    facts = Facts({"i": (0, n - 1), "j": (0, Sym("i") - 1)})
    i, j = Sym("i"), Sym("j")
    assert not disjoint((n - 1, i), (i, j), facts, frozenset("ij"))
    assert not disjoint((i, j), (n - 1, i), facts, frozenset("ij"))
    assert disjoint((i + j + 1,), (-j - 1,), facts, frozenset("j"))
