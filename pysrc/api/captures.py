"""What a program reads without being given it: captured arrays, and the values that its guards watch.

In: the front end's sources and guards, as a Program holds them. Out: what stands there now, whether it fits,
and how the dispatcher reads it. Example, for `def f(x): return W @ x`:

    read_capture(program.captures[0])      # the array that the global W holds now
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..astpasses.frontend import (
    AttributeSource,
    CellSource,
    GlobalSource,
    ItemSource,
    NumberSource,
    ObjectSource,
    Source,
    is_number,
    room_of,
    same_object,
    structure,
)
from ..core.array_classes import is_on_device
from ..core.types import Array
from ..exceptions import Room
from ..late import dataclass
from ..runtime import entry as abi
from .program import Program
from .statics import static_key

if TYPE_CHECKING:
    from ..core.ir import Function


def read_capture(capture: Any) -> Any:
    """What a capture is now."""
    return capture.read() if isinstance(capture, Source) else capture


def capture_key(capture: Any) -> Any:
    """Equal where the same thing is captured: a place of the user's, or a value of a staging under way."""
    return capture.key() if isinstance(capture, Source) else id(capture)


def rooms_of(program: Program) -> list[Room]:
    """How much room the lists of a program have: where there are any, its runs may have to be begun again."""
    return [room for capture in program.captures if (room := room_of(capture)) is not None]


def captures_fit(program: Program, on_device: bool = False) -> bool:
    """Whether the captured arrays still have the types that the program was made for. `on_device`: it runs on a GPU."""
    for capture, param in zip(program.captures, program.function.params):
        try:
            value = read_capture(capture)
        except (KeyError, AttributeError, ValueError, IndexError, TypeError):
            return False
        if isinstance(capture, NumberSource):
            if not capture.fits(value):
                return False
        elif getattr(value, "dtype", None) != param.type.dtype or value.shape != param.type.dims:
            return False
        elif is_on_device(value) and not on_device:
            return False
        elif isinstance(value, np.ndarray) and type(value) is not np.ndarray:
            return False
    return True


def guards_hold(guards: Sequence[Any], sizes: Any = None) -> bool:
    return all(guard.holds() for guard in guards)


def captured_values(guards: Sequence[Any]) -> Hashable:
    """What stands now where the guards watch a value; None where one can't be read."""
    try:
        return tuple([static_key(guard.source.read()) for guard in guards if guard.kind == "value"])
    except (KeyError, AttributeError, ValueError, IndexError, TypeError):
        return None


def changed_numbers(guards: Sequence[Any]) -> set[Any]:
    """Keys of the sources that held a number, and hold another one now."""
    found = set()
    for guard in guards:
        if guard.kind == "value" and is_number(guard.expected) and not guard.holds():
            with contextlib.suppress(KeyError, AttributeError, ValueError, IndexError, TypeError):
                if is_number(guard.source.read()):
                    found.add(guard.source.key())
    return found


def broken_guard(guards: Sequence[Any], sizes: Any = None) -> str:
    """Which captured value is not what it was."""
    for guard in guards:
        if not guard.holds():
            if guard.kind == "same":
                other, same = guard.expected
                return f"{guard.source} and {other} are{' not' if same else ''} one object now"
            if guard.kind == "presence":
                return f"{guard.source} is {'not there' if guard.expected else 'there'} now"
            if guard.kind in ("function", "class"):
                what = "code or default values" if guard.kind == "function" else "methods"
                return f"{guard.source} has other {what} now"
            if guard.kind == "value":
                try:
                    return f"{guard.source} changed from {guard.expected!r} to {guard.source.read()!r}"
                except (KeyError, AttributeError, ValueError, IndexError, TypeError):
                    return f"{guard.source} is gone"
            return f"{guard.source} is another {'object' if guard.kind == 'object' else 'structure'} than before"
    return "a captured array or number has another type"


def entry_source(source: Any) -> Any:
    """Where the dispatcher reads a captured value."""
    if isinstance(source, NumberSource):
        source = source.place
    steps: list[tuple[str, Any]] = []
    while isinstance(source, (ItemSource, AttributeSource)):
        if isinstance(source, ItemSource):
            steps.append(("item", source.index))
        else:
            steps.append(("attribute", source.name))
        source = source.parent
    if isinstance(source, GlobalSource):
        root: Any = (
            abi.Item(source.globals, source.name) if source.name in source.globals else abi.Getter(Value(source))
        )
    elif isinstance(source, CellSource):
        root = abi.Cell(source.cell)
    elif isinstance(source, ObjectSource):
        root = abi.Held(source.value)
    elif isinstance(source, Source):
        root = abi.Getter(Value(source))
    else:
        root = abi.Held(source)
    return abi.Path(root, tuple(reversed(steps))) if steps else root


def capture_roots(program: Program, function: Function) -> list[tuple[Any, abi.Leaf]]:
    """(source, leaf) for each capture."""
    return [(entry_source(c), capture_leaf(c, param.type)) for c, param in zip(program.captures, function.params)]


def capture_leaf(capture: Any, type_: Array) -> abi.Leaf:
    """What a captured value of a type is matched by."""
    python = capture.python if isinstance(capture, NumberSource) else None
    if python is not None:
        return abi.NumberLeaf(python)
    value = read_capture(capture)
    if isinstance(value, np.ndarray) or is_on_device(value):
        return abi.ArrayLeaf(type_.dtype, type_.dims)
    return abi.ScalarLeaf(type_.dtype)


def entry_guards(guards: Sequence[Any]) -> tuple[tuple[abi.Guard, ...], tuple[abi.Compare, ...]]:
    """Guards as the dispatcher checks them."""
    out = []
    names: dict[int, tuple[dict, dict[str, Any]]] = {}
    for guard in guards:
        if guard.kind == "object" and isinstance(guard.source, GlobalSource):
            around = guard.source.globals
            names.setdefault(id(around), (around, {}))[1][sys.intern(guard.source.name)] = guard.expected
        elif guard.kind == "object":
            out.append(abi.Guard(entry_source(guard.source), guard.expected, "is"))
        elif guard.kind == "same":
            out.append(abi.Guard(abi.Getter(SameObject(guard.source, guard.expected[0])), guard.expected[1], "equal"))
        elif guard.kind == "presence":
            out.append(abi.Guard(abi.Getter(Presence(guard.source)), guard.expected, "equal"))
        elif guard.kind == "method":
            method = sys.intern(guard.source.name), guard.expected
            out.append(abi.Guard(entry_source(guard.source.parent), method, "method"))
        elif guard.kind == "function":
            state = guard.expected
            out.append(
                abi.Guard(abi.Held(guard.source.value), (state.code, state.defaults, state.keywords), "function")
            )
        elif guard.kind == "class":
            out.append(abi.Guard(abi.Held(guard.source.value), guard.expected.holds, "class"))
        elif guard.kind == "items":
            out.append(abi.Guard(abi.Getter(Items(guard.source)), guard.expected, "equal"))
        elif guard.kind == "contents":
            out.append(abi.Guard(abi.Getter(Contents(guard.source)), guard.expected, "equal"))
        elif guard.kind == "structure":
            out.append(abi.Guard(abi.Getter(Structure(guard.source)), guard.expected, "equal"))
        else:
            out.append(abi.Guard(entry_source(guard.source), guard.expected, "equal"))
    out += [abi.Guard(abi.Held(around), expected, "names") for around, expected in names.values()]
    return tuple(out), ()


# What a guard compares where that is more than the value at a source; `abi.Getter` calls them.


@dataclass(frozen=True, eq=False)
class Value:
    source: Source

    def __call__(self) -> Any:
        return self.source.read()


@dataclass(frozen=True, eq=False)
class Contents(Value):
    def __call__(self) -> Any:
        return frozenset(self.source.read())


@dataclass(frozen=True, eq=False)
class Items(Value):
    def __call__(self) -> Any:
        return tuple(self.source.read())


@dataclass(frozen=True, eq=False)
class Structure(Value):
    def __call__(self) -> Any:
        return structure(self.source.read())


@dataclass(frozen=True, eq=False)
class Presence(Value):
    def __call__(self) -> Any:
        return self.source.is_there()


@dataclass(frozen=True, eq=False)
class SameObject(Value):
    other: Source

    def __call__(self) -> Any:
        return same_object(self.source, self.other)


__all__ = [
    "capture_key",
    "capture_leaf",
    "read_capture",
    "rooms_of",
    "captures_fit",
    "captured_values",
    "changed_numbers",
    "guards_hold",
    "broken_guard",
    "entry_source",
    "capture_roots",
    "entry_guards",
]
