"""Where the elements of a view lie in its base: strides, and whether a reshape is a view or a copy.

In: a staged array (a chain of steps from a C-contiguous base) and a shape. Out: "view", "copy", or "unknown"
where it depends on sizes that are known only when the program runs, or the base may lie otherwise
(orders.py).

    reshaped(a[:, 1:], (-1,))    # of an a: f64[n, m], with the axes [(n, m), (m - 1, 1)], as (dim, stride): "copy"
"""

from __future__ import annotations

from metaphrase.core.dims import DimLike, product
from metaphrase.core.facts import Facts

from ..staging.session import Session
from .orders import has_rows, lies_by_rows
from .staged_values import StagedArray
from .views import Bits, Broadcast, Diagonal, Part, Permute, Pick, Rectangle, Reshape, Spaced

Axes = list[tuple[DimLike, DimLike]]
_LIMIT = 32


def _walk(here: Session, array: StagedArray) -> tuple[Axes, bool]:
    """(dim, stride in elements) of each axis, and whether a step on the way depends on the base being contiguous."""
    axes, relies = _contiguous(array.box.atom.type.dims), False
    for step in array.chain:
        if isinstance(step, Rectangle):
            axes = [(d, s * k) for (_, s), d, k in zip(axes, step.shape, step.step)]
        elif isinstance(step, Spaced):
            count, stride = step.indices[0].type.dims[0], axes[step.axis][1] * step.stride
            axes = [(count, stride) if k == step.axis else axis for k, axis in enumerate(axes)]
        elif isinstance(step, Pick):
            axes = [axis for k, axis in enumerate(axes) if k not in step.axes]
        elif isinstance(step, Permute):
            axes = [axes[k] for k in step.axes]
        elif isinstance(step, Broadcast):
            axes = [(d, axes[step.axes.index(k)][1] if k in step.axes else 0) for k, d in enumerate(step.shape)]
        elif isinstance(step, Part):
            axes = [(d, s * 2) for d, s in axes]
        elif isinstance(step, Diagonal):
            first, second = axes[step.axes[0]], axes[step.axes[1]]
            rest = [axis for k, axis in enumerate(axes) if k not in step.axes]
            axes = [*rest, (step.length, first[1] + second[1])]
        elif not isinstance(step, Bits):
            assert isinstance(step, Reshape)
            verdict, found, merges = _regroup(here, axes, step.shape)
            relies = relies or merges
            axes = found if verdict == "view" else [(d, 0) for d in step.shape]
    return axes, relies


def _contiguous(dims: tuple) -> Axes:
    return [(d, product(dims[k + 1 :])) for k, d in enumerate(dims)]


def reshaped(array: StagedArray, shape: tuple) -> tuple[str, bool]:
    """The verdict for a reshape in C order, and whether it holds only for a contiguous base."""
    axes, relies = _walk(array.session, array)
    if has_rows(array.type) and not lies_by_rows(array.session, array.box):
        return "unknown", False
    verdict, _, merges = _regroup(array.session, axes, shape)
    return verdict, relies or merges


def is_contiguous(array: StagedArray) -> tuple[str, bool]:
    """Whether the elements lie side by side in C order: "view" (yes), "copy" (no) or "unknown"; and whether
    that holds only for a contiguous base."""
    here = array.session
    axes, relies = _walk(here, array)
    if not lies_by_rows(here, array.box):
        return "unknown", False
    verdict, found, merges = _regroup(here, axes, (product(array.type.dims),))
    if verdict == "view" and found and found[0][0] != 1 and found[0][1] != 1:
        step, size = found[0][1], found[0][0]
        apart = isinstance(step, int) and _sizes_from_two(here).less(1, size)
        verdict = "copy" if apart else "unknown"
    return verdict, relies or merges or len(axes) == 1


def keeps_order(array: StagedArray) -> bool:
    """Whether what stands for the array from here on lies in memory as a new one would."""
    return (is_contiguous(array)[0] == "view") if array.chain else array.box.by_rows is not False


def _regroup(here: Session, axes: Axes, shape: tuple) -> tuple[str, Axes, bool]:
    """NumPy's attempt at a reshape without a copy: groups of old axes that hold as many elements as groups
    of new ones must be contiguous in themselves. Both hold as many elements in all: what is left is equal."""
    facts = _sizes_from_two(here)
    if any(isinstance(d, int) and d == 0 for d in (*shape, *(d for d, _ in axes))):
        return "view", _contiguous(shape), False
    old = [axis for axis in axes if axis[0] != 1]
    new = [d for d in shape if d != 1]
    made: list[DimLike] = []
    verdict, merges = "view", False
    i = j = 0
    while i < len(old) or j < len(new):
        left, right = (old[i][0] if i < len(old) else 1), (new[j] if j < len(new) else 1)
        first, begin = i, j
        i, j = min(i + 1, len(old)), min(j + 1, len(new))
        apart = True  # no fewer axes than these hold equally many elements
        for _ in range(_LIMIT):
            if facts.equal(left, right) or i == len(old) and j == len(new):
                break
            apart = apart and (facts.less(right, left) or facts.less(left, right))
            if j < len(new) and (i == len(old) or facts.less(right, left)):
                right, j = right * new[j], j + 1
            elif i < len(old):
                left, i = left * old[i][0], i + 1
            else:
                return "unknown", [], True
        group = old[first:i]
        merges = merges or len(group) > 1
        for (_, outer), (dim, inner) in zip(group, group[1:]):
            difference = outer - dim * inner
            if not isinstance(difference, int):
                difference = facts.simplify(difference)
            if difference == 0:
                continue
            gap = isinstance(difference, int) or facts.less(0, difference) or facts.less(difference, 0)
            several = facts.less(1, dim) and facts.less(1, group[0][0])
            copies = gap and several and (apart or len(new[begin:j]) == 1) and verdict != "unknown"
            verdict = "copy" if copies else "unknown"
        last = group[-1][1] if group else 1
        cut = new[begin:j]
        made += [last * product(cut[k + 1 :]) for k in range(len(cut))]
    if verdict != "view":
        return verdict, [], merges
    found = iter(made)
    return "view", [(d, next(found) if d != 1 else 1) for d in shape], merges


def _sizes_from_two(here: Session) -> Facts:
    """What is known here, and that the sizes of arguments are at least 2: 0 and 1 have programs of their own."""
    facts = Facts(here.facts.ranges)
    for name in here.argument_sizes:
        facts.ranges.setdefault(name, (2, None))
    return facts
