"""Which memory a call's arguments are, for programs that write into them.

In: a Program and a call. Out: whether the program serves the call; specs that say which arguments are one
piece of memory; or an error, before anything runs: for memory that overlaps in part, for arrays that are
read-only, for a layout that the program can't write through. Example, for `def f(x, y): y[0] = 1; ...`:

    shared(program, call of f(a, a))           # specs under which x and y are staged as one array
    shared(program, call of f(a[1:], a[:-1]))  # UnsupportedError [overlap]
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .. import tree_util
from ..astpasses.frontend import Shared, found_at, in_order
from ..core.array_classes import is_on_device
from ..late import dataclass
from ..source import SourceError, UnsupportedError
from .arguments import Call, Spec
from .captures import read_capture
from .program import Fixed, Program, caller_span, leaf_labels

_WORK = 10_000
_OF_CONTAINERS = ("attribute", "item", "structure")


class ReadOnlyError(SourceError, ValueError):
    """A function would write to an array that may not be written to."""


@dataclass
class Held:
    """An array that a program is given: its parameter, its leaf (None for a capture), what is done with
    it."""

    name: Callable[[], str]
    array: np.ndarray
    parameter: int
    leaf: int | None
    written: bool = False
    contiguous: bool = False
    ordered: bool = False

    @property
    def label(self) -> str:
        """What messages call it."""
        return self.name()


def held(program: Program, call: Call, names: Sequence[str] = ()) -> list[Held]:
    """The arrays that a call hands to a program."""
    out = []
    for k, capture in enumerate(program.captures):
        value = laid_out(read_capture(capture))
        if value is not None:
            out.append(Held(functools.partial("the captured array {}".format, capture), value, k, None))

    def name(position: int) -> str:
        return leaf_labels(program.structure, names)[position]

    for position, (leaf, given) in enumerate(zip(program.leaves, call.leaves)):
        if not isinstance(leaf, Fixed) and (value := laid_out(given)) is not None:
            out.append(Held(functools.partial(name, position), value, leaf, position))
    for write in program.writes:
        if write.kind in ("argument", "capture"):
            for one in out:
                same = one.leaf == write.target if write.kind == "argument" else one.leaf is None
                if same and (write.kind == "argument" or one.parameter == write.target):
                    one.written, one.contiguous = True, write.contiguous
    for one in out:
        one.ordered = one.leaf in program.ordered
    written = {one.parameter for one in out if one.written}
    for one in out:
        one.written = one.parameter in written
    return out


def laid_out(value: Any) -> np.ndarray | None:
    """The array, if a value is one: of one on a device, the same places as NumPy counts them, never to be looked at."""
    return np.asarray(_Places(value)) if is_on_device(value) else value if isinstance(value, np.ndarray) else None


class _Places:
    """Where the elements of a device's array are."""

    def __init__(self, array: Any):
        self.__array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str if array.dtype.kind != "V" else f"|V{array.dtype.itemsize}",
            "strides": array.strides,
            "data": (array.data.ptr or 1, False),
        }


def fits(program: Program, call: Call) -> bool:
    """Whether memory is shared as the program was made for, no more and no less. One that is made for an array that
    is given twice may write nothing (`a[:] = b`), and serves no other call."""
    if not program.writes and not pairs(program):
        return True
    arrays = held(program, call)
    for one in arrays:
        for other in arrays:
            if one is other or not (one.written or one.parameter == other.parameter):
                continue
            if (one.parameter == other.parameter) != overlap(one.array, other.array):
                return False
            if one.parameter == other.parameter and not identical(one.array, other.array):
                return False
    return True


def check(program: Program, call: Call, names: Sequence[str] = ()) -> None:
    """Refuse arrays that can't be written to or lie in memory otherwise than a store needs, and containers
    given twice, before anything runs."""
    if not program.writes and not program.ordered:
        return
    _check_containers(program, call)
    for one in held(program, call, names):
        if one.written and not one.array.flags.writeable:
            raise ReadOnlyError(
                f"assignment destination is read-only: {program.title} writes to {one.label}",
                caller_span(),
                code="read-only",
                remedy="pass a copy, or an array whose flags.writeable is True, in the machine's byte order",
            )
        if one.written and one.contiguous and not one.array.flags.c_contiguous:
            raise UnsupportedError(
                f"{program.title} writes to {one.label} and reshapes it, and {one.label} is not "
                "C-contiguous: "
                "NumPy's reshape may give a copy of it",
                caller_span(),
                code="layout",
                remedy="pass np.ascontiguousarray(...) of it",
            )
        if one.ordered and not in_order(one.array):
            raise UnsupportedError(
                f"{one.label} does not lie in memory row after row (it may be transposed): {program.title} "
                f"stores through a reshape of what it makes of {one.label}, and NumPy's may give a copy",
                caller_span(),
                code="layout",
                remedy="pass np.ascontiguousarray(...) of it",
            )


def _check_containers(program: Program, call: Call) -> None:
    """A list, dict or object of the arguments that is written to stands at one place of them."""
    paths = [w.target for w in program.writes if w.kind in _OF_CONTAINERS and isinstance(w.target, tuple)]
    if not paths:
        return
    written = {id(found_at((call.args, call.kwargs), path)) for path in paths}
    seen: set[int] = set()
    todo: list[Any] = [call.args, call.kwargs]
    while todo:
        value = todo.pop()
        kind = tree_util.kind_of(value)
        if kind is None or value is None:
            continue
        if id(value) in written and id(value) in seen:
            raise UnsupportedError(
                f"{program.title} writes to a {type(value).__name__} that it is given twice",
                caller_span(),
                code="overlap",
                remedy="pass a copy at one of the places",
            )
        seen.add(id(value))
        todo += kind.flatten(value)[0]


def shared(program: Program, call: Call, specs: Sequence[Spec], names: Sequence[str] = ()) -> list[Spec] | None:
    """Specs that tell which leaves are one array; None where no written array is shared."""
    if not program.writes:
        return None
    arrays = held(program, call, names)
    groups: dict[int, int] = {}
    for one in arrays:
        for other in arrays:
            if one is other or not one.written or not overlap(one.array, other.array):
                continue
            if not identical(one.array, other.array) or one.leaf is None or other.leaf is None:
                raise UnsupportedError(
                    f"{program.title} writes to {one.label}, which shares memory with {other.label}",
                    caller_span(),
                    code="overlap",
                    remedy="pass a copy of one of them",
                )
            first = min(one.leaf, other.leaf)
            groups[one.leaf] = min(groups.get(one.leaf, first), first)
            groups[other.leaf] = min(groups.get(other.leaf, first), first)
    if not groups:
        return None
    stands: dict[int, Shared] = {}
    made = list(specs)
    for leaf, first in groups.items():
        stand = stands.setdefault(first, Shared(specs[first].type))
        made[leaf] = replace(specs[leaf], dims=specs[first].dims, shared=stand)
    return made


def overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays share an element; where that is too hard to tell, whether they may."""
    if not np.may_share_memory(a, b):
        return False
    try:
        return np.shares_memory(a, b, max_work=_WORK)  # type: ignore[arg-type]
    except Exception:  # NumPy gives up with an exception of its own (TooHardError)
        return True


def identical(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are the same elements in the same order."""
    return (
        a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
        and a.dtype == b.dtype
        and a.shape == b.shape
        and a.strides == b.strides
    )


def pairs(program: Program) -> list[tuple[int, int]]:
    """(leaf, first leaf with the same parameter): what the program takes for one array."""
    first: dict[Any, int] = {}
    out = []
    for position, leaf in enumerate(program.leaves):
        if not isinstance(leaf, Fixed) and first.setdefault(leaf, position) != position:
            out.append((position, first[leaf]))
    return out


def leaf_positions(program: Program) -> list[int]:
    """For each parameter behind the captures the first leaf that is given to it."""
    seen: dict[int, int] = {}
    for position, leaf in enumerate(program.leaves):
        if not isinstance(leaf, Fixed):
            seen.setdefault(leaf, position)
    return [seen[k] for k in sorted(seen)]


__all__ = ["ReadOnlyError", "check", "fits", "laid_out", "overlap", "shared", "pairs", "leaf_positions"]
