"""Arrays in a stored value of which the run tells which one they are, and arrays that are views of others.

In: flags of the run and the arrays that it chooses among; or a base and the steps from it to a view. Out: in
what the caller gets, the very array, or a view of the very array.

    if better: self.best = self.current     ->   the kind Chosen, (flag, current, best)
    self.row = self.grid[i]                 ->   the kind Viewed, metadata (Step("pick", ...),), (grid, i)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase._tree_registry import Kind, number_keys
from metaphrase.late import dataclass
from metaphrase.tree_util import PyTreeDef

from . import views


@dataclass(frozen=True)
class Step:
    """A step to a view that NumPy takes when the run has ended; it needs `count` numbers of the run. `rank`
    is that of the array that it is taken from."""

    kind: str
    rank: int
    static: tuple
    count: int

    def apply(self, array: Any, numbers: list) -> Any:
        """The view of a NumPy array."""
        if self.kind == "rectangle":
            half = len(numbers) // 2
            return array[tuple(map(_slice, numbers[:half], numbers[half:], self.static))]
        if self.kind == "pick":
            index: list[Any] = [slice(None)] * self.rank
            for axis, number in zip(self.static, numbers):
                index[axis] = number
            return array[(*index, ...)]
        if self.kind == "reshape":
            return array.reshape(tuple(numbers))
        if self.kind == "permute":
            return array.transpose(self.static)
        if self.kind == "broadcast":
            new = tuple(k for k in range(len(numbers)) if k not in self.static)
            return np.broadcast_to(np.expand_dims(array, new), tuple(numbers))
        if self.kind == "part":
            return getattr(array, self.static[0])
        if self.kind == "bits":
            return array.view(self.static[0])
        return array.diagonal(*self.static)

    def text(self, array: str, numbers: list[str]) -> str:
        """The same as Python text."""
        if self.kind == "rectangle":
            half = len(numbers) // 2
            bounds = map(_slice_text, numbers[:half], numbers[half:], self.static)
            return f"{array}[{', '.join(bounds)}]"
        if self.kind == "pick":
            index = dict(zip(self.static, numbers))
            places = [index.get(k, ":") for k in range(max(index) + 1)]
            return f"{array}[{', '.join([*places, *(['...'] if len(index) == self.rank else [])])}]"
        if self.kind == "reshape":
            return f"{array}.reshape({', '.join(numbers)})"
        if self.kind == "permute":
            turned = self.static == tuple(reversed(range(len(self.static))))
            return f"{array}.T" if turned else f"{array}.transpose({', '.join(map(str, self.static))})"
        if self.kind == "broadcast":
            kept = [":" if k in self.static else "None" for k in range(len(numbers))]
            return f"np.broadcast_to({array}[{', '.join(kept)}], ({', '.join(numbers)},))"
        if self.kind == "part":
            return f"{array}.{self.static[0]}"
        if self.kind == "bits":
            return f"{array}.view({self.static[0]!r})"
        return f"{array}.diagonal({', '.join(map(str, self.static))})"


def _slice(start: int, length: int, step: int) -> slice:
    stop = start + length * step
    return slice(0, 0) if not length else slice(start, stop if stop >= 0 else None, step)


def _slice_text(start: str, length: str, step: int) -> str:
    if start.isdigit() and length.isdigit():
        picked = _slice(int(start), int(length), step)
        stop = "" if picked.stop is None else picked.stop
        return f"{picked.start}:{stop}" + (f":{step}" if step != 1 else "")
    stop = f"{start} + {length}" if step == 1 else f"{start} + {step} * {length}"
    return f"{start}:{stop}" + (f":{step}" if step != 1 else "")


def step_of(step: Any, rank: int) -> tuple[Step, tuple]:
    """A step to a view as NumPy takes it, and the numbers for it: atoms and dims."""
    if isinstance(step, views.Rectangle):
        return Step("rectangle", rank, step.step, 2 * rank), (*step.starts, *step.shape)
    if isinstance(step, views.Pick):
        return Step("pick", rank, step.axes, len(step.axes)), step.indices
    if isinstance(step, views.Reshape):
        return Step("reshape", rank, (), len(step.shape)), step.shape
    if isinstance(step, views.Permute):
        return Step("permute", rank, step.axes, 0), ()
    if isinstance(step, views.Broadcast):
        return Step("broadcast", rank, step.axes, len(step.shape)), step.shape
    if isinstance(step, views.Part):
        return Step("part", rank, (step.name,), 0), ()
    if isinstance(step, views.Bits):
        return Step("bits", rank, (step.dtype.name,), 0), ()
    assert isinstance(step, views.Diagonal)
    return Step("diagonal", rank, (step.offset, *step.axes), 0), ()


class Chosen:
    """Names the kind: children are flags, an array for each, and the array where no flag holds."""


class Viewed:
    """Names the kind: children are the base and the numbers that its steps need."""


def _choose(metadata: None, children: Any) -> Any:
    count = len(children) // 2
    for flag, option in zip(children[:count], children[count:]):
        if flag:
            return option
    return children[-1]


def _view(metadata: tuple[Step, ...], children: Any) -> Any:
    array, *numbers = children
    for step in metadata:
        array = step.apply(array, numbers[: step.count])
        numbers = numbers[step.count :]
    return array


CHOSEN = Kind(Chosen, lambda value: ((), None), _choose, number_keys)
VIEWED = Kind(Viewed, lambda value: ((), None), _view, number_keys)
_LEAF = PyTreeDef(None)


def chosen(parts: list[PyTreeDef]) -> PyTreeDef:
    """The structure of one of several arrays: a flag for each but the last, then the structures of all."""
    return PyTreeDef(CHOSEN, None, (*(_LEAF,) * (len(parts) - 1), *parts))


def viewed(steps: tuple[Step, ...], base: PyTreeDef, numbers: int) -> PyTreeDef:
    """The structure of a view: that of its base, and its numbers."""
    return PyTreeDef(VIEWED, steps, (base, *(_LEAF,) * numbers))


def chosen_text(parts: list[str]) -> str:
    """The choice as Python text."""
    count = len(parts) // 2
    arms = "".join(f"{option} if {flag} else " for flag, option in zip(parts[:count], parts[count:]))
    return f"({arms}{parts[-1]})"


def viewed_text(metadata: tuple[Step, ...], parts: list[str]) -> str:
    """The view as Python text."""
    array, *numbers = parts
    for step in metadata:
        array = step.text(array, numbers[: step.count])
        numbers = numbers[step.count :]
    return array
