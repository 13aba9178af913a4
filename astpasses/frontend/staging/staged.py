"""What staging gives: a closed Function, and how its parameters and results relate to the user's values.

Staged.function   params = captures, then dynamic leaves of the arguments; results = result leaves, then
written leaves Staged.captures   one a capture: a `Source` to read the array from at each call; in a nested
staging the staged value
                  of the outer one
Staged.dynamic    numbers of the leaves of (args, kwargs) that are parameters, in order
Staged.static     (leaf number, value) of the others: part of the signature
Staged.outputs    one an output leaf: how to get it back
Staged.same       (leaf, earlier leaf) that were given as one piece of memory: they share a parameter
Staged.ordered    leaves that lie in memory row after row, or a store through a reshape means something else
Staged.raises     whether every path raises: there is no result
Staged.writes     what the program stores into objects that existed before the call
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.types import Array
from metaphrase.late import dataclass, field
from metaphrase.source import Span

from ..values.sources import Guard, Source

if TYPE_CHECKING:
    from metaphrase.core.ir import Function


@dataclass(frozen=True)
class Output:
    """One leaf of the result.

    `kind`: "result" (`index` counts among the Function's results; `python` is the type of a Python number,
    `array` says that rank 0 is an array all the same), "static" (`value` itself), "argument" (the object
    given as leaf number `index`), "capture" (the object that capture number `index` reads).
    """

    kind: str
    index: int = -1
    value: Any = None
    python: type | None = None
    array: bool = False


@dataclass(frozen=True)
class Write:
    """A store to replay after the call.

    `kind`: "argument" (array leaf `target`), "capture" (array of capture `target`): its content becomes
    result `index`; `contiguous` says that a reshape took it for contiguous. "attribute": attribute `key` of
    the object at the path, or that the source `target` reads. "item": `target` is the path of keys to a
    container in (args, kwargs) and `key` the item; "structure": the whole container at that path. Their new
    value is `tree` unflattened with `outputs`.
    """

    kind: str
    target: Any
    index: int = -1
    key: Any = None
    tree: Any = None
    outputs: tuple[Output, ...] = ()
    contiguous: bool = False


def in_order(array: np.ndarray) -> bool:
    """Whether an array lies in memory row after row, perhaps with gaps: so does what NumPy makes of it."""
    steps = [abs(stride) for stride, size in zip(array.strides, array.shape) if size != 1]
    return not array.size or steps == sorted(steps, reverse=True)


class Shared:
    """Stands for an array argument of `type` at every leaf that is the same memory."""

    def __init__(self, type: Array):
        self.type = type


@dataclass(frozen=True)
class Staged:
    function: Function
    captures: tuple[Any, ...]
    in_tree: tree_util.PyTreeDef
    out_tree: tree_util.PyTreeDef
    guards: tuple[Guard, ...]
    writes: tuple[Write, ...]
    outputs: tuple[Output, ...]
    dynamic: tuple[int, ...]
    static: tuple[tuple[int, Any], ...]
    weak: tuple[type | None, ...] = field(default=())
    pinned: tuple[int, ...] = field(default=())
    reasons: Mapping[int, tuple[str, Span | None, str]] = field(default_factory=dict)  # why, where, remedy
    same: tuple[tuple[int, int], ...] = field(default=())
    ordered: tuple[int, ...] = field(default=())
    raises: bool = False

    def capture_values(self) -> list[Any]:
        """The captured arrays as they are now."""
        return [c.read() for c in self.captures]

    def arguments(self, args: Sequence[Any], kwargs: dict[str, Any] | None = None) -> list[Any]:
        """What `evaluate(self.function, ...)` takes for a call with these arguments."""
        leaves, tree = tree_util.tree_flatten((tuple(args), dict(kwargs or {})))
        if tree != self.in_tree:
            raise TypeError(f"arguments have the structure {tree}, staging saw {self.in_tree}")
        return self.capture_values() + [leaves[k] for k in self.dynamic]

    def result(self, values: Sequence[Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """The user's result from the Function's results; writes are replayed into the arguments first."""
        leaves = tree_util.tree_leaves((tuple(args), dict(kwargs or {})))
        # Results share memory neither with arguments nor with each other, whatever the program returns.
        values = [np.array(v) if isinstance(v, np.ndarray) else v for v in values]
        held = self.capture_values() if self.writes else []  # before a store puts something else there
        for write in self.writes:
            self._replay(write, values, leaves, held, (tuple(args), dict(kwargs or {})))
        return self._tree(self.out_tree, self.outputs, values, leaves, held or self.capture_values())

    def _tree(
        self, tree: Any, outputs: Sequence[Output], values: Sequence[Any], leaves: Sequence[Any], held: Sequence[Any]
    ) -> Any:
        made = []
        for output in outputs:
            if output.kind == "result":
                value = np.asarray(values[output.index]) if output.array else values[output.index]
                made.append(value if output.python is None else output.python(value))
            elif output.kind == "static":
                made.append(output.value)
            elif output.kind == "argument":
                made.append(leaves[output.index])
            else:
                made.append(held[output.index])
        return tree_util.tree_unflatten(tree, made)

    def _replay(
        self, write: Write, values: Sequence[Any], leaves: Sequence[Any], held: Sequence[Any], arguments: Any
    ) -> None:
        if write.kind == "argument":
            leaves[write.target][...] = values[write.index]
            return
        if write.kind == "capture":
            held[write.target][...] = values[write.index]
            return
        target = write.target
        container = target.read() if isinstance(target, Source) else found_at(arguments, target)
        new = self._tree(write.tree, write.outputs, values, leaves, held)
        if write.kind == "attribute":
            object.__setattr__(container, write.key, new)  # past what the user's class does on stores
        elif write.kind == "item":
            container[write.key] = new
        elif isinstance(container, list):
            container[:] = new
        else:
            container.clear()
            container.update(new)


def found_at(tree: Any, path: Sequence[Any]) -> Any:
    """What is found in nested containers by keys."""
    for key in path:
        if hasattr(key, "name"):
            tree = getattr(tree, key.name)
        elif isinstance(key, tree_util.FlattenedIndexKey):
            tree = list(tree_util.kind_of(tree).flatten(tree)[0])[key.key]  # type: ignore[union-attr]
        else:
            tree = tree[key.key if hasattr(key, "key") else key.idx]
    return tree
