"""The text of a plan (writing.py) -> what it needs of this process, if everything that it relies on is as it was.

In: the text, the user's function, and the values of a call's leaves. Out: a `Plan`, which makes an `Entry` of the
address of its library. Raises `Stale`, and says of what: a function that has other code, a constant that has
another value, a module that is not there. Example:

    plan = read_plan(text, function, call.leaves)
    entry = plan.entry(library)
"""

from __future__ import annotations

import builtins
import importlib
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from ..._tree_registry import REGISTRY, Keys
from ...astpasses.frontend import AttributeSource, CellSource, ClassState, GlobalSource, ItemSource, ObjectSource, Room
from ...core.dims import DimLike, Sym, dim_max, dim_min
from ...core.types import SHORT
from ...exceptions import Site
from ...runtime import entry as abi
from ...source import Span, is_library
from ..captures import Contents, Items, Presence, SameObject, Structure, Value
from ..entry import callbacks_of, flattener, raiser, site_table, static_leaf
from .fingerprints import NotPortable, fingerprint, function_state, own_functions

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (float, int, bool, complex, tuple, list)}
_ABSENT = (KeyError, AttributeError, ValueError, IndexError, TypeError, NameError)


class Stale(Exception):
    """The plan is for something that is not so in this process."""


@dataclass(frozen=True)
class Plan:
    """`title`: the types of the call. `dims`: of its dynamic leaves. `least`: the least sizes that it serves.
    `library`: the key of its native code. `rest`: what an `Entry` has beside its address."""

    title: str
    dims: tuple
    least: dict[str, int]
    library: str
    rest: dict[str, Any]
    sites: tuple[Site, ...]
    rooms: list[Room] = field(default_factory=list)

    def entry(self, library: Any) -> abi.Entry:
        table = site_table(self.sites)
        return abi.Entry(
            address=library.address,
            raise_site=raiser(table, self.rooms),
            callbacks=callbacks_of(self.sites),
            keep=(library, table),
            **self.rest,
        )


def read_plan(text: str, function: Any, values: Sequence[Any]) -> Plan:
    """See the head of this file."""
    reader = _Reader(function, values)
    try:
        return eval(text, {"__builtins__": {}}, _Sizes(reader.names()))
    except (Stale, NotPortable):
        raise
    except Exception as error:  # whatever a user's attribute raises
        raise Stale(f"{type(error).__name__}: {error}") from error


class _Sizes(dict):
    """Names that are nothing else are sizes."""

    def __missing__(self, name: str) -> DimLike:
        if name[:1].isupper():
            raise KeyError(name)
        return Sym(name)


class _Reader:
    """What the words of a plan mean in this process."""

    def __init__(self, function: Any, values: Sequence[Any]):
        self.own = own_functions(function)
        self.values = values
        self.nodes: list[Any] = []
        self.rooms: dict[str, Room] = {}

    def names(self) -> dict[str, Any]:
        words: dict[str, Any] = {
            name: getattr(abi, name) for name in ("Root", "Position", "Held", "Item", "Path", "Getter", "Compare")
        }
        words |= {name: getattr(abi, name) for name in ("Result", "Argument", "Constant", "Write", "Store")}
        readers = (Contents, Items, Presence, SameObject, Structure, Value, GlobalSource, CellSource, ObjectSource)
        words |= {kind.__name__: kind for kind in (*readers, ItemSource, AttributeSource)}
        words |= {name: self._numbered(make) for name, make in self._trees().items()}
        words |= {"Float": float, "Complex": complex, "Slice": slice, "Range": range}
        words |= {
            "Set": set,
            "FrozenSet": frozenset,
            "Ellipsis": ...,
            "NotImplemented": NotImplemented,
            "max": dim_max,
            "min": dim_min,
        }
        methods: tuple[Callable[..., Any], ...] = (
            self.Plan,
            self.node,
            self.Own,
            self.Here,
            self.Given,
            self.Room,
            self.Module,
            self.Named,
            self.At,
        )
        methods += (self.Globals, self.Cell, self.Keys, self.Dtype, self.Scalar, self.Member, self.Fresh, self.RunTime)
        methods += (self.Names, self.Guard, self.Site)
        return words | {method.__name__: method for method in methods} | {"Span": Span}

    def Plan(self, title: str, dims: tuple, least: dict, library: str, sites: tuple = (), **rest: Any) -> Plan:
        return Plan(title, dims, least, library, rest, sites, list(self.rooms.values()))

    # ---- where objects are ---------------------------------------------------------------------------------------

    def Own(self) -> types.FunctionType:
        return self.own[0]

    def Here(self) -> str:
        return self.own[0].__code__.co_filename

    def Given(self, k: int) -> Any:
        return self.values[k]

    def Room(self, name: str) -> Room:
        return self.rooms.setdefault(name, Room(name))

    def Module(self, name: str) -> types.ModuleType:
        module = sys.modules.get(name)
        if module is None:
            if not is_library(name):
                raise Stale(f"the module {name} is not imported")
            module = importlib.import_module(name)
        return module

    def Named(self, module: str, name: str, *steps: str) -> Any:
        value: Any = self.Module(module)
        for part in (*name.split("."), *steps):
            value = getattr(value, part)
        return value

    def At(self, source: Any) -> Any:
        return _read(source)

    def Globals(self, module: str | None = None) -> dict:
        return self.own[0].__globals__ if module is None else vars(self.Module(module))

    def Cell(self, function: types.FunctionType, k: int) -> abi.Cell:
        return abi.Cell((function.__closure__ or ())[k])

    # ---- values --------------------------------------------------------------------------------------------------

    def Keys(self, keys: tuple, order: tuple) -> Keys:
        made = Keys(keys)
        made.order = order
        return made

    def Dtype(self, name: str) -> np.dtype:
        return SHORT.get(name) or np.dtype(name)

    def Scalar(self, name: str, held: bytes) -> Any:
        return np.frombuffer(held, SHORT[name])[0]

    def Member(self, kind: Any, name: str) -> Any:
        return kind[name]

    # ---- trees and results ---------------------------------------------------------------------------------------

    def node(self, number: int) -> Any:
        return self.nodes[number]

    def _numbered(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def numbered(*args: Any, **keywords: Any) -> Any:
            made = make(*args, **keywords)
            self.nodes.append(made)
            return made

        return numbered

    def _trees(self) -> dict[str, Callable[..., Any]]:
        return {
            "ArrayLeaf": lambda name, dims, ordered=False: abi.ArrayLeaf(self.Dtype(name), dims, ordered),
            "ScalarLeaf": lambda name: abi.ScalarLeaf(self.Dtype(name)),
            "NumberLeaf": lambda name: abi.NumberLeaf(_KINDS[name]),
            "SizeLeaf": abi.SizeLeaf,
            "AnyLeaf": abi.AnyLeaf,
            "StaticLeaf": static_leaf,
            "Sequence": lambda name, children: abi.Sequence(_KINDS[name], children),
            "Dictionary": abi.Dictionary,
            "Record": abi.Record,
            "Node": self._node,
        }

    def _node(self, kind: type, auxiliary: Any, children: tuple) -> abi.Node:
        known = REGISTRY.get(kind)
        if known is None:
            raise Stale(f"{kind.__name__} is not registered as a pytree")
        return abi.Node(kind, flattener(known.flatten), known.unflatten, auxiliary, children)

    def Fresh(self, name: str, dims: tuple, form: str) -> abi.Fresh:
        return abi.Fresh(self.Dtype(name), dims, form)

    def RunTime(self, name: str, rank: int) -> abi.RunTime:
        return abi.RunTime(self.Dtype(name), rank)

    # ---- guards --------------------------------------------------------------------------------------------------

    def Names(self, names: dict, expected: dict[str, str]) -> abi.Guard:
        now = {sys.intern(n): names[n] if n in names else getattr(builtins, n) for n in expected}
        for name, value in now.items():
            _same(name, expected[name], fingerprint(value))
        return abi.Guard(abi.Held(names), now, "names")

    def Guard(self, source: Any, expected: Any, mode: str) -> abi.Guard:
        now = _read(source)
        if mode == "function":
            _same(now.__qualname__, expected, function_state(now))
            keywords = now.__kwdefaults__
            return abi.Guard(source, (now.__code__, now.__defaults__, keywords and dict(keywords)), mode)
        if mode == "class":
            _same(now.__qualname__, expected, fingerprint(now))
            return abi.Guard(source, ClassState(now).holds, mode)
        if mode == "method":
            name, wanted = expected
            method = getattr(now, name)
            method = getattr(method, "__func__", method)
            _same(name, wanted, fingerprint(method))
            return abi.Guard(source, (sys.intern(name), method), mode)
        _same("a value", expected, fingerprint(now))
        return abi.Guard(source, now, mode)

    def Site(
        self, kind: str, exception: str, message: str, span: Any, dtypes: tuple, ranks: tuple, holds: tuple
    ) -> Site:
        return Site(kind, exception, message, span, tuple(map(self.Dtype, dtypes)), ranks, holds)


def _same(what: str, expected: str, now: str) -> None | NoReturn:
    if now != expected:
        raise Stale(f"{what} is {now}, not {expected}")
    return None


def _read(source: Any) -> Any:
    """What stands at a source now, as the dispatcher reads it."""
    if isinstance(source, abi.Path):
        value = _read(source.source)
        for kind, key in source.steps:
            value = getattr(value, key) if kind == "attribute" else value[key]
        return value
    if isinstance(source, abi.Held):
        return source.value
    if isinstance(source, abi.Cell):
        return source.cell.cell_contents
    if isinstance(source, abi.Item):
        names = source.mapping
        return names[source.key] if source.key in names else getattr(builtins, source.key)
    return source.function()


__all__ = ["Plan", "Stale", "read_plan"]
