"""Lists that grow in a rolled loop: what each iteration appends becomes rows of the loop's results.

In: a list that the body of a loop appends to, always or in a branch. Out: after the loop the list holds one
`Rows`, which stands for the items of all iterations; reading the list makes an array of them.

    while x > 1:                    trips, x, element = loop(...)        # element: f64[trips]
        trace.append(x)             trace is [Rows(element)]
        x = x / 2                   np.array(trace) is element
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

import numpy as np

from metaphrase import tree_util
from metaphrase._tree_registry import REGISTRY, Kind, number_keys
from metaphrase.late import module
from metaphrase.source import UnsupportedError

from ..operators.kinds import WEAK
from ..operators.python_numbers import to_integer
from ..staging.demand import roots_of
from ..staging.journal import StructureLocation
from ..staging.session import Session, session
from ..staging.signals import TrialOver
from ..values.listed import listed
from ..values.objects import is_mutable
from ..values.staged_values import Number, Staged, StagedArray

call: Any = module("metaphrase.astpasses.frontend.calls.call")

FEW = 64  # iterations up to which a loop that appends on every one is unrolled, so that the list stays a list
TABLE = 1024  # the same for one that appends lists of constants


class Rows:
    """Many items of a list: `arrays` hold one leaf of every item, in the structure of an item. `python`: the
    Python types of leaves that are Python's numbers."""

    def __init__(self, tree: Any, arrays: list[StagedArray], python: list[type | None]):
        self.tree, self.arrays = tree, arrays
        self.python = [kind if kind in WEAK else None for kind in python]  # of two types: as wide as both need

    def __repr__(self) -> str:
        return f"<rows of {self.tree}>"

    def length(self, here: Session) -> Any:
        return self.arrays[0].session.size(self.arrays[0].type.dims[0])  # of the function that made the list

    def now(self) -> Rows:
        """The items as they are now, whatever becomes of the list."""
        return self

    def item_at(self, here: Session, index: Any) -> tuple[Any] | None:
        """The item at an index, where there is a shorter way to it than through the arrays."""
        return None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        raise not_a_list(session())

    __hash__ = None  # type: ignore[assignment]


# A list that is gathered is made of arrays: so it is an item of another one, and rows of rows are rows.
REGISTRY[Rows] = Kind(
    Rows,
    lambda rows: (list(rows.arrays), (rows.tree, tuple(rows.python))),
    lambda metadata, children: Rows(metadata[0], list(children), list(metadata[1])),
    number_keys,
)


class ListGrows(TrialOver):
    """A branch appends to a list on one side only: the loop around it has to gather what is appended."""

    def __init__(self, grown: list, reason: str, span: Any, remedy: str):
        super().__init__(reason, span, remedy)
        self.list = grown


def refuse_read(here: Session, value: Any) -> None:
    """A list that grows in the loop around can't be read there: its length is another in each iteration."""
    if here.growing and any(value is grown for grown in here.growing):
        from .stacks import NeedStack

        raise NeedStack(value, None, "a list is read in the loop that changes it", here.span())


def python_kind(value: Any) -> type | None:
    if isinstance(value, Number):
        return value.kind
    return type(value) if type(value) in (int, float, complex, bool) else None


def is_gathered(value: Any) -> TypeGuard[list]:
    return type(value) is list and any(isinstance(item, Rows) for item in value)


def gathered(here: Session, value: list) -> Any:
    """A list that was gathered as an array; of several leaves an item, as columns."""
    parts: list = []
    for item in value:
        if not isinstance(item, Rows):
            parts.append(call.call_value(np.array, ([item],), {}))
        else:
            parts.append(_stacked(item.tree, iter(item.arrays), 1))
    return parts[0] if len(parts) == 1 else call.call_value(np.concatenate, (parts,), {})


def items_of_array(here: Session, array: StagedArray, python: type | None = None) -> list | None:
    """`list(x)` and `x.tolist()` where only the run knows how many there are. None where staging can know it: of
    an argument's size, and where numbers that are given make it."""
    count = array.type.dims[0] if array.ndim == 1 else 0
    roots = set() if isinstance(count, int) else roots_of(here, here.dim_atom(count))
    if all(root[0] == "argument" for root in roots):
        return None
    here.gathers = True
    items = array.read()
    if python is int and items.type.dtype == np.uint64:
        items = to_integer(here, items)
    return here.born([Rows(tree_util.tree_flatten(0)[1], [here.array(items)], [python])])


def of_the_run(here: Session, size: Any) -> bool:
    """Whether a size follows from what arrays hold or loops compute, so that staging can't know it."""
    roots = set() if isinstance(size, int) else roots_of(here, here.dim_atom(size))
    return any(root[0] in ("array", "carry") for root in roots)


def as_argument(here: Session, function: Any, value: list) -> Any:
    """What a function of C is given for a gathered list: an array; but the items, where functions of Python
    would tell Python's numbers, lists and tuples from NumPy's (`max` of pairs, `map` over lists)."""
    if is_of_arrays(function) or not all_known(value):
        return gathered(here, value)
    numbers = all(not isinstance(item, Rows) or item.tree.is_leaf() for item in value)
    return gathered(here, value) if numbers and not is_short(value) else expanded(here, value)


def is_of_arrays(function: Any) -> bool:
    """Whether a function takes arrays wherever it takes lists of numbers."""
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return True
    module = getattr(function, "__module__", None) or type(function).__module__
    return module.split(".")[0] in ("numpy", "scipy", "metaphrase")


def arrays_inside(here: Session, value: Any, function: Any = None, depth: int = 4) -> Any:
    """What a function of NumPy is given, with an array in the place of each gathered list, as in
    `np.stack([ts, ys])`. For `np.block` a list is a row: it stays one, of an array."""
    if is_gathered(value):
        refuse_read(here, value)
        return [gathered(here, value)] if function is np.block else gathered(here, value)
    if type(value) not in (list, tuple) or not depth:
        return value
    made = [arrays_inside(here, item, function, depth - 1) for item in value]
    return value if all(new is old for new, old in zip(made, value)) else type(value)(made)


def is_short(value: list, most: int = FEW) -> bool:
    """Whether a gathered list is known to have few items."""
    counts: list[Any] = [item.arrays[0].type.dims[0] if isinstance(item, Rows) else 1 for item in value]
    return all(isinstance(count, int) for count in counts) and sum(counts) <= most


def _stacked(tree: tree_util.PyTreeDef, arrays: Iterator[StagedArray], axis: int) -> StagedArray:
    """The leaves of items as one array: what an item holds goes along this axis and those that follow."""
    if tree.is_leaf():
        return next(arrays)
    if tree.kind is not None and tree.kind.type is Rows:
        return _stacked(tree.metadata[0], arrays, axis + 1)
    children = [_stacked(child, arrays, axis) for child in tree.children()]
    if len(children) == 1 and _only_rows(tree):
        return children[0]
    return call.call_value(np.stack, (children,), {"axis": axis})


def _only_rows(tree: tree_util.PyTreeDef) -> bool:
    """Whether a list has its items in Rows, all of them."""
    (child,) = tree.children()
    return child.kind is not None and child.kind.type is Rows


def lists_in(tree: tree_util.PyTreeDef) -> tree_util.PyTreeDef:
    """The structure of an item as results have it: rows in it become lists of their own."""
    if tree.is_leaf():
        return tree
    inside = [child for child in tree.children() if child.kind is not None and child.kind.type is Rows]
    if not inside:
        return tree_util.PyTreeDef(tree.kind, tree.metadata, tuple(map(lists_in, tree.children())))
    if len(tree.children()) > 1:
        raise not_a_list(session())
    item, python = inside[0].metadata
    return listed(lists_in(item), list(python))


def snapshot(here: Session, value: list) -> list:
    """A new list of the items that a gathered one has now."""
    return here.born([item.now() if isinstance(item, Rows) else item for item in value])


def holds(here: Session, value: list, wanted: Any) -> Any:
    """`wanted in value` for a gathered list."""
    from .branches import negated

    leaves, tree = tree_util.tree_flatten(wanted)
    found: Any = False
    for item in value:
        if not isinstance(item, Rows) or item.tree != tree or any(a.ndim > 1 for a in item.arrays):
            raise not_a_list(here)
        same: Any = None
        for array, leaf in zip(item.arrays, leaves):
            mask = array == leaf
            same = mask if same is None else same & mask
        there = call.call_value(np.any, (same,), {})
        found = there if found is False else found | there
    return negated(negated(found))


def length(here: Session, value: list) -> Any:
    total: Any = 0
    for item in value:
        total = total + (item.length(here) if isinstance(item, Rows) else 1)
    return total


def item_of(here: Session, value: list, index: Any) -> Any:
    """`value[index]` of a list that was gathered."""
    if isinstance(index, int) and len(value) > 1:  # items apart from the rows are there as they are
        if not any(isinstance(v, Rows) for v in (value[: index + 1] if index >= 0 else value[index:])):
            return value[index]
    if isinstance(index, slice) and (tail := _tail(value, index)) is not None:
        return snapshot(here, tail)
    rows = value[0] if len(value) == 1 else one_of_all(here, value)
    if not isinstance(index, (slice, StagedArray)) and (found := rows.item_at(here, index)) is not None:
        return found[0]
    if isinstance(index, slice):
        return here.born([Rows(rows.tree, [a[index] for a in rows.arrays], rows.python)])
    return unflattened(here, rows, [a[index] for a in rows.arrays])


def _tail(value: list, index: slice) -> list | None:
    """`value[k:]` where all before k is known to be there, so that each item stays what it is."""
    known = next(k for k, item in enumerate(value) if isinstance(item, Rows))
    if index.stop is None and index.step in (None, 1):
        if index.start is None or type(index.start) is int and 0 <= index.start <= known:
            return value[index.start :]
    return None


def containers_in(item: Any) -> Iterator[Any]:
    """The mutable objects in an item, outer before inner."""
    kind = None if isinstance(item, (Staged, Rows)) else tree_util.kind_of(item)
    if kind is not None:
        if is_mutable(item):
            yield item
        for child in kind.flatten(item)[0]:
            yield from containers_in(child)


def unflattened(here: Session, rows: Rows, leaves: list, copy: bool = True) -> Any:
    """One item from its leaves, Python's numbers as such. `copy`: the list has its parts, not this object."""
    made = [
        Number(here, leaf._atom, python, leaf.dim) if python and isinstance(leaf, Number) else leaf
        for leaf, python in zip(leaves, rows.python)
    ]
    if rows.tree.is_leaf():
        return made[0]
    item = tree_util.tree_unflatten(rows.tree, made)
    for container in containers_in(item):
        here.born(container)
        if copy:
            here.journal.shared.add_copy(container, here.span())
    return item


def expanded(here: Session, value: list, copy: bool = True) -> list:
    """The list with its items one by one, where their number is known."""
    out: list = []
    for item in value:
        if not isinstance(item, Rows):
            out.append(item)
            continue
        count = item.arrays[0].type.dims[0]
        if not isinstance(count, int):
            raise not_a_list(here)
        out += [unflattened(here, item, [a[k] for a in item.arrays], copy) for k in range(count)]
    return out


def all_known(value: list) -> bool:
    """Whether the number of items is known."""
    return all(isinstance(v.arrays[0].type.dims[0], int) for v in value if isinstance(v, Rows))


def expand_inside(here: Session, value: Any, depth: int = 6) -> None:
    """Expand every gathered list in a value that goes to code which is not translated, and those among its items."""
    if not here.gathers or not depth:
        return
    if is_gathered(value):
        make_plain(here, value)
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            expand_inside(here, item, depth - 1)


def not_a_list(here: Session) -> UnsupportedError:
    return here.unsupported(
        "a list whose length is only known at run time can't be used as a list here",
        "make an array of it: np.array(values)",
        code="gathered",
    )


def columns(here: Session, value: list) -> tuple[Any, list[StagedArray], list[type | None]]:
    """The structure of the items of a gathered list, an array for each leaf, and their Python types."""
    parts = []
    for item in value:
        if isinstance(item, Rows):
            parts.append((item.tree, item.arrays, item.now().python))
            continue
        leaves, tree = tree_util.tree_flatten(item)
        arrays = [call.call_value(np.array, ([leaf],), {}) for leaf in leaves]
        parts.append((tree, arrays, Rows(tree, arrays, list(map(python_kind, leaves))).python))
    tree = parts[0][0]
    if any(part[0] != tree for part in parts):
        raise not_a_list(here)
    if len(parts) == 1:
        return parts[0]
    arrays = [call.call_value(np.concatenate, (list(leaf),), {}) for leaf in zip(*(p[1] for p in parts))]
    python = [_wider(kinds) for kinds in zip(*(part[2] for part in parts))]
    return tree, arrays, python


def one_of_all(here: Session, value: list) -> Rows:
    """The items of a gathered list, those apart from its rows too, as rows."""
    return Rows(*columns(here, value))


def _wider(kinds: tuple) -> type | None:
    """The Python number that all become; None where NumPy's are among them."""
    order = (bool, int, float, complex)
    return None if None in kinds else order[max(map(order.index, kinds))]


def make_plain(here: Session, value: list) -> None:
    """Expand a gathered list in place, before a method that changes it."""
    made = expanded(here, value, copy=False)
    here.journal.note(StructureLocation(value))
    value[:] = made
