"""NumPy source over the user's own arguments: containers taken apart and put together around the flat
program.

In: a finished Function, how its parameters lie in the arguments and its results in the output. Out: the text
of a module whose last function has the user's signature and which imports NumPy only. Example, `loss({"w":
...}, x)`:

    def loss(params, x):
        w = params['w']
        return np.sum(w * x)
"""

from __future__ import annotations

import array
import ast
import collections
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..astpasses.emit.numpy_source import Signature
from ..astpasses.emit.numpy_source_names import usable
from ..astpasses.emit.numpy_source_spellings import array_text
from ..astpasses.frontend import (
    Chosen,
    Copied,
    Listed,
    Made,
    OneValue,
    Optional,
    TextValue,
    Viewed,
    chosen_text,
    list_text,
    viewed_text,
)
from ..core.ir import Function
from ..late import dataclass
from ..pipeline import numpy_text
from ..source import UnsupportedError
from ..tree_util import FlattenedIndexKey, KeyPath, PyTreeDef, SequenceKey, keystr, tree_flatten_with_path
from .program import Fixed, Slot


@dataclass(frozen=True)
class Argument:
    """A parameter of the user's function. `leaves`: for each leaf the index of the program's parameter, or a
    `Fixed` value."""

    name: str
    structure: PyTreeDef
    leaves: tuple[Any, ...]


@dataclass(frozen=True)
class Store:
    """A line that writes to what the caller gave. `text` has `{}` where the new value stands, whose
    structure is `tree` with `slots` at its leaves; `root` is the name it begins with."""

    text: str
    root: str
    tree: PyTreeDef
    slots: tuple[Any, ...]


class Text(str):
    """What reads a captured value, where that is no constant of the module: `self.t`."""


def python_source(
    function: Function,
    name: str,
    arguments: Sequence[Argument],
    captures: Sequence[Any],
    out: PyTreeDef,
    slots: Sequence[Slot | Fixed | KeyPath],
    stores: Sequence[Store] = (),
    file: str = "",
    doc: str = "",
    classes: Callable[[type], str | None] = lambda cls: None,
) -> str:
    """`captures`: the values of the program's first parameters now. `slots`: what stands at the leaves of
    `out`; a path stands for the argument itself. `file`, `doc`: of the user's function.
    `classes`: the import of a class, where outputs are to have it and not a plain one in its place."""
    if not stores and _is_flat(arguments, captures, out, slots, len(function.results)):
        return numpy_text(function, name, file=file, doc=doc)
    module = _Module({a.name for a in arguments}, classes)
    constants = [
        str(v) if isinstance(v, Text) else module.constant(p.name, v) for p, v in zip(function.params, captures)
    ]
    inputs: dict[int, str] = {}
    for argument in arguments:
        for path, leaf in zip(_paths(argument), argument.leaves):
            if not isinstance(leaf, Fixed):
                inputs[leaf] = argument.name + path
    given = constants + [inputs[k] for k in range(len(captures), len(function.params))]

    def text_of(slot: Any, results: Sequence[str]) -> str:
        return (
            results[slot.index]
            if isinstance(slot, Slot)
            else _fixed(slot)
            if isinstance(slot, Fixed)
            else path_text(slot)
        )

    def output(results: Sequence[str]) -> str:
        return module.tree(out, iter([text_of(s, results) for s in slots]))

    def lines(results: Sequence[str]) -> list[str]:
        return [
            store.text.format(module.tree(store.tree, iter([text_of(s, results) for s in store.slots])))
            for store in stores
        ]

    unknown = [f"result_{k}" for k in range(len(function.results))]
    output(unknown), lines(unknown)  # to learn what the module has to define
    placed = [*slots, *(s for store in stores for s in store.slots)]
    read = [s for s in placed if not isinstance(s, (Slot, Fixed))]
    results = [s.index for s in placed if isinstance(s, Slot)]
    returned = [*(str(s[0]) for s in read), *(store.root for store in stores)]
    signature = Signature(
        parameters=_header(arguments),
        inputs=tuple(given),
        output=output,
        imports=tuple(module.imports),
        rows=tuple(module.rows),
        keep=tuple(returned),
        stores=lines if stores else None,
        repeated=len(set(results)) < len(results),
    )
    return numpy_text(function, name, signature, file, doc)


def _is_flat(
    arguments: Sequence[Argument], captures: Sequence[Any], out: PyTreeDef, slots: Sequence[Any], results: int
) -> bool:
    """Whether the flat program has the user's signature as it is."""
    plain = not captures and all(a.structure.is_leaf() and a.leaves == (k,) for k, a in enumerate(arguments))
    in_order = [s.index if isinstance(s, Slot) else None for s in slots] == list(range(results))
    shape = out.is_leaf() or (
        out.node_data() == (tuple, None) and len(slots) > 1 and all(c.is_leaf() for c in out.children())
    )
    return plain and in_order and shape


def _header(arguments: Sequence[Argument]) -> tuple[str, ...]:
    """Parameters; those that staging fixed have their value as the default, where defaults may stand."""
    texts: list[str] = []
    defaults_allowed = True
    for argument in reversed(arguments):
        fixed = argument.structure.is_leaf() and isinstance(argument.leaves[0], Fixed)
        text = _fixed(argument.leaves[0]) if fixed and defaults_allowed else None
        defaults_allowed = text is not None
        texts.append(argument.name if text is None else f"{argument.name}={text}")
    return tuple(reversed(texts))


def _paths(argument: Argument) -> list[str]:
    """The Python text that reads each leaf."""
    markers = argument.structure.unflatten(range(argument.structure.num_leaves))
    paths = [""] * argument.structure.num_leaves
    for path, k in tree_flatten_with_path(markers)[0]:
        if any(isinstance(key, FlattenedIndexKey) for key in path) and not isinstance(argument.leaves[k], Fixed):
            raise UnsupportedError(
                f"the source can't say how to read {argument.name}{keystr(path)} without metaphrase",
                remedy="register the class by register_pytree_with_keys or register_dataclass",
                code="source-keys",
            )
        paths[k] = keystr(path)
    return paths


def path_text(path: KeyPath) -> str:
    first, *rest = path
    return f"{first}{keystr(tuple(rest))}"


def _fixed(fixed: Fixed) -> str:
    """A Python value as text; None stands for one that has no text (a function, a class)."""
    value = fixed.value
    if isinstance(value, (np.generic, np.ndarray)):
        return array_text(np.asarray(value))
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    try:
        return repr(value) if ast.literal_eval(repr(value)) == value else "None"
    except (ValueError, SyntaxError, TypeError):
        return "None"


class _Module:
    """What stands above the functions: imports, constants, named tuples."""

    def __init__(self, taken: set[str], classes: Callable[[type], str | None]) -> None:
        self.classes = classes
        self.imports: list[str] = []
        self.rows: list[str] = []
        self.names = taken  # those of parameters, to begin with
        self.tuples: dict[type, str] = {}

    def need(self, line: str) -> None:
        if line not in self.imports:
            self.imports.append(line)

    def constant(self, wanted: str, value: Any) -> str:
        """A captured value as a module constant."""
        name = self.fresh(wanted)
        text = array_text(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else repr(value)
        self.rows.append(f"{name} = {text}")
        return name

    def fresh(self, wanted: str) -> str:
        name, count = usable(wanted), 0
        while name in self.names:
            count += 1
            name = f"{wanted}_{count}"
        self.names.add(name)
        return name

    def tree(self, structure: PyTreeDef, leaves: Iterator[str]) -> str:
        """An output put together; classes that a reader without metaphrase lacks become plain ones."""
        data = structure.node_data()
        if data is None:
            return next(leaves)
        cls, metadata = data
        parts = [self.tree(child, leaves) for child in structure.children()]
        if cls is type(None):
            return "None"
        if cls is Chosen:
            return chosen_text(parts)
        if cls is Viewed:
            return viewed_text(metadata, parts)
        if cls is Listed:
            return list_text(metadata, parts, lambda names: self.tree(metadata[0], iter(names)))
        if cls is OneValue:
            return f"{metadata!r}[{parts[0]}]"
        if cls is TextValue:
            several = len(metadata) > 1
            template = f"{metadata!r}[{parts[0]}]" if several else repr(metadata[0])
            return f"{template}.format({', '.join(parts[several:])})"
        if cls is Copied:
            return self.copied(*metadata)
        if cls is Made:
            if metadata.kind == "namespace":
                self.need("from types import SimpleNamespace")
            return metadata.text(parts)
        if cls is Optional:
            return f"({parts[1]} if {parts[0]} else {_fixed(Fixed(metadata[0])) if metadata else None})"
        if cls is tuple:
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if cls is list:
            return f"[{', '.join(parts)}]"
        if cls in (dict, collections.defaultdict):
            keys = metadata if cls is dict else metadata[1]
            held = dict(zip(keys, parts))
            return "{" + ", ".join(f"{key!r}: {held[key]}" for key in getattr(keys, "order", keys)) + "}"
        if cls is collections.OrderedDict:
            self.need("from collections import OrderedDict")
            return f"OrderedDict([{', '.join(f'({key!r}, {part})' for key, part in zip(metadata, parts))}])"
        if (line := self.classes(cls)) is not None:
            self.need(line)
            keys = [str(key).removeprefix(".") for key in _keys(structure)]
            return f"{cls.__name__}({', '.join(f'{key}={part}' for key, part in zip(keys, parts))})"
        if issubclass(cls, tuple):
            self.need("from collections import namedtuple")
            if cls not in self.tuples:
                self.tuples[cls] = name = self.fresh(cls.__name__)
                fields = list(cls._fields)  # type: ignore[attr-defined]
                self.rows.append(f"{name} = namedtuple({cls.__name__!r}, {fields!r})")
            return f"{self.tuples[cls]}({', '.join(parts)})"
        return self.namespace(structure, parts)

    def copied(self, kind: type, holds: Any) -> str:
        """A set, bytearray or `array.array` that each call makes anew."""
        if kind is array.array:
            self.need("from array import array as typed_array")
            return f"typed_array({holds[0]!r}, {list(holds[1])!r})"
        return repr(kind(holds))

    def namespace(self, structure: PyTreeDef, parts: list[str]) -> str:
        keys = _keys(structure)
        if any(isinstance(key, (FlattenedIndexKey, SequenceKey)) for key in keys):
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        self.need("from types import SimpleNamespace")
        fields = [f"{str(key).removeprefix('.')}={part}" for key, part in zip(keys, parts)]
        return f"SimpleNamespace({', '.join(fields)})"


def _keys(structure: PyTreeDef) -> Sequence[Any]:
    """The keys of a node's children."""
    node = structure.unflatten([0] * structure.num_leaves)
    return structure.kind.keys(node, structure.metadata)  # type: ignore[union-attr]
