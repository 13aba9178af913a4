"""The language's own themes of the corpus in native code, and under vmap and grad.

In: the functions that Python runs without an exception. Out: the same from one native program a group of
them, at -O1 but for a seventeenth, another one each day; lanes as one by one; gradients as differences along a
direction.
"""

from __future__ import annotations

import numpy as np
import pytest
from corpus import alike, cases, fresh, outcome
from together import jitted

import metaphrase as mp
from metaphrase.source import SourceError
from metaphrase.tree_util import tree_leaves

pytestmark = pytest.mark.turns(8)

THEMES = (
    "statements",
    "expressions",
    "functions",
    "classes",
    "protocols",
    "matching",
    "lists",
    "failures",
    "iterators",
    "statistic",
    "heaps",
    "windows",
)
GROUP = 16
FINE = [(name, f, args) for name, f, args in cases(*THEMES) if not isinstance(outcome(f, args)[0], str)]
RAISED = [c for c in cases("failures", "printing") if isinstance(outcome(*c[1:])[0], str)]
PRINTED = [c for c in cases("printing") if not isinstance(outcome(*c[1:])[0], str)]
# At a tie, a jump or an infinite slope of these there is no derivative to compare.
JUMPS = {
    "matching.match_staged_guard",
    "matching.match_staged_pair",
    "matching.match_staged_pair_2",
    "matching.match_staged_pair_3",
    "protocols.containers_with_branches",
    "lists.append_rows",
    "expressions.lazy_or_value",
    "expressions.lazy_or_value_2",
    "failures.with_in_loop",
    "lists.append_either",
    "iterators.first_guarded",
    "protocols.numbers_of_objects",
}
LANES_DIFFER = {  # lists of other lengths, and other texts, in other lanes
    "lists.pair_of_smallest",
    "lists.append_in_while",
    "lists.append_in_branch",
    "lists.append_then_read",
    "lists.append_pairs",
    "lists.append_either",
    "lists.append_early_stop",
    "lists.comprehension_filter_staged",
}


def groups():
    made = []
    for theme in THEMES:
        of_theme = [c for c in FINE if c[0].split(".")[0] == theme]
        for k in range(0, len(of_theme), GROUP):
            made.append(pytest.param(of_theme[k : k + GROUP], id=f"{theme}-{k // GROUP}"))
    return made


@pytest.mark.parametrize("group", groups())
def test_native(group):
    functions, rows = [f for _, f, _ in group], [args for _, _, args in group]

    def everything(rows):
        return [f(*row) for f, row in zip(functions, rows)]

    function = jitted({group[0][0]: (everything, (fresh(rows),))})[group[0][0]]
    (made, (after,)), printed = outcome(function, (rows,))
    expected = [outcome(f, args) for _, f, args in group]
    for (name, _, _), got, left, (want, _) in zip(group, made, after, expected):
        assert alike((got, tuple(left)), want, 1e-9), name
    assert printed == "".join(text for _, text in expected)


EFFECTS = RAISED[::2] + PRINTED[::3]


@pytest.mark.parametrize("name, f, args", EFFECTS, ids=[c[0] for c in EFFECTS])
def test_native_effects(name, f, args):
    assert alike(outcome(mp.jit(f), args), outcome(f, args), 1e-9)


def taken(args):
    """The places of the arguments that have derivatives."""
    return [
        k for k, a in enumerate(args) if isinstance(a, float) or isinstance(a, np.ndarray) and a.dtype == np.float64
    ]


SMOOTH = [c for c in FINE if taken(c[2])]
names = pytest.mark.parametrize("name, f, args", SMOOTH, ids=[c[0] for c in SMOOTH])


def only(f, args):
    def called(*values):
        whole = list(fresh(args))
        for k, value in zip(taken(args), values):
            whole[k] = value
        return f(*whole)

    return called


def numbers(result):
    return [v for v in tree_leaves(result) if isinstance(v, (np.ndarray, np.generic, float, int, complex))]


@names
def test_lanes(name, f, args):
    one, values = only(f, args), [args[k] for k in taken(args)]
    lanes = [np.stack([np.asarray(v), np.asarray(v) * 0.75 + 0.1]) for v in values]
    singles = [outcome(one, tuple(lane[k] for lane in lanes)) for k in (0, 1)]
    if name.startswith("protocols") and np.ndim(lanes[0]) == 1:  # Python wants a `__bool__` of Python's bool
        singles = [outcome(one, tuple(float(lane[k]) for lane in lanes)) for k in (0, 1)]
    if name in LANES_DIFFER:
        with pytest.raises(SourceError, match="differs from lane to lane|one of several Python values"):
            mp.vmap(one)(*lanes)
        return
    got, printed = outcome(mp.vmap(one), tuple(lanes))
    raised = [s for s, _ in singles if isinstance(s, str)]
    if raised:  # the error of the first lane that fails
        assert got == raised[0]
        return
    found = numbers(got[0])
    for k, (single, _) in enumerate(singles):
        wanted = numbers(single[0])
        assert len(wanted) == len(found)
        for a, b in zip(found, wanted):
            assert np.allclose(np.asarray(a)[k] if np.ndim(a) > np.ndim(b) else a, b, 1e-9, 1e-9)
    assert printed == "".join(text for _, text in singles)


@names
def test_gradients(name, f, args):
    one, values = only(f, args), [args[k] for k in taken(args)]

    def total(*given):
        summed = 0.0
        for leaf in tree_leaves(one(*given)):
            if isinstance(leaf, float) or hasattr(leaf, "dtype") and leaf.dtype.kind == "f":
                summed = summed + np.sum(leaf)
        return summed

    rng = np.random.default_rng(7)
    along = [rng.normal(size=np.shape(v)) for v in values]

    def at(step):
        moved = [v + step * d for v, d in zip(values, along)]
        return total(*(float(m) if np.ndim(m) == 0 else m for m in moved))

    slopes = mp.grad(total, tuple(range(len(values))))(*fresh(values))
    got = sum(np.sum(np.asarray(s) * d) for s, d in zip(slopes, along))
    with np.errstate(all="ignore"):
        wanted = (at(1e-6) - at(-1e-6)) / 2e-6
    assert np.isfinite(got) or name in JUMPS
    assert np.allclose(got, wanted, 1e-4, 1e-4) or name in JUMPS
