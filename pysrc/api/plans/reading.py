"""The text of a plan (writing.py) -> what it needs of this process, if everything that it relies on is as it was.

In: the text, the user's function, and the values of a call's leaves. Out: a `Plan`. Raises `Stale`, and says of what:
a function that has other code, a constant that has another value, a module that is not there. Example:

    plan = read_plan(text, function, call.leaves, given)
    entry = plan.entry(library.address, library)
"""

from __future__ import annotations

import builtins
import importlib
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..._tree_registry import REGISTRY, Keys
from ...astpasses.frontend import AttributeSource, CellSource, ClassState, GlobalSource, ItemSource, ObjectSource
from ...runtime import entry as abi
from ...runtime.plans import Plan, Reader, Stale
from ...source import is_library
from ..captures import Contents, Items, Presence, SameObject, Structure, Value
from ..entry import flattener, static_leaf
from .cells import file_of_cell
from .fingerprints import NotPortable, bound_objects, fingerprint, function_state, identities, outline, own_functions
from .sources import still_so


def read_plan(text: str, function: Any, values: Sequence[Any], given: Sequence[Any]) -> Plan:
    """See the head of this file. `given`: those of the values that are objects."""
    try:
        return _Reader(function, values, given).read(text)
    except (Stale, NotPortable):
        raise
    except Exception as error:  # whatever a user's attribute raises
        raise Stale(f"{type(error).__name__}: {error}") from error


class _Reader(Reader):
    """What the words of a plan mean in this process."""

    def __init__(self, function: Any, values: Sequence[Any], given: Sequence[Any]):
        super().__init__()
        self.own, self.bound = own_functions(function), bound_objects(function)
        self.values = values
        self.objects = identities([*self.bound, *given])  # and those that guards watch, in their order

    def words(self) -> dict[str, Any]:
        readers = (Contents, Items, Presence, SameObject, Structure, Value, GlobalSource, CellSource, ObjectSource)
        methods: tuple[Callable[..., Any], ...] = (self.Own, self.Self, self.Here, self.Given, self.Module, self.Named)
        methods += (self.Sources, self.FileOf, self.CellOf, self.Globals, self.Cell, self.Keys, self.Member)
        methods += (self.Names, self.Guard, self.At)
        words = {kind.__name__: kind for kind in (*readers, ItemSource, AttributeSource)}
        return super().words() | words | {method.__name__: method for method in methods}

    def trees(self) -> dict[str, Callable[..., Any]]:
        return super().trees() | {"StaticLeaf": static_leaf, "Record": abi.Record, "Node": self._node}

    def _node(self, kind: type, auxiliary: Any, children: tuple) -> abi.Node:
        known = REGISTRY.get(kind)
        if known is None:
            raise Stale(f"{kind.__name__} is not registered as a pytree")
        return abi.Node(kind, flattener(known.flatten), known.unflatten, auxiliary, children)

    # ---- where objects are ---------------------------------------------------------------------------------------

    def Plan(self, *args: Any, sources: dict | None = None, objects: tuple = (), **keywords: Any) -> Plan:
        if objects != tuple(map(self.objects.index, self.objects)):
            raise Stale("which places hold one object is not as it was")
        return super().Plan(*args, **keywords)

    def Sources(self, digests: dict[str, str]) -> dict[str, str]:
        if not still_so(digests):
            raise Stale("the text of a module is not what it was")
        return digests

    def Own(self) -> types.FunctionType:
        return self.own[0]

    def Self(self) -> Any:
        return self.bound[0]

    def Here(self) -> str:
        return self.own[0].__code__.co_filename

    def FileOf(self, module: str) -> str:
        return str(self.Module(module).__file__)

    def CellOf(self, digest: str) -> str:
        path = file_of_cell(digest)
        if path is None:
            raise Stale("a cell that it comes from has not run")
        return path

    def Given(self, k: int) -> Any:
        return self.values[k]

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
        return read_source(source)

    def Globals(self, module: str | None = None) -> dict:
        return self.own[0].__globals__ if module is None else vars(self.Module(module))

    def Cell(self, function: types.FunctionType, k: int) -> abi.Cell:
        return abi.Cell((function.__closure__ or ())[k])

    # ---- values --------------------------------------------------------------------------------------------------

    def Keys(self, keys: tuple, order: tuple) -> Keys:
        made = Keys(keys)
        made.order = order
        return made

    def Member(self, kind: Any, name: str) -> Any:
        return kind[name]

    # ---- guards --------------------------------------------------------------------------------------------------

    def Names(self, names: dict, expected: dict[str, str]) -> abi.Guard:
        now = {sys.intern(n): names[n] if n in names else getattr(builtins, n) for n in expected}
        for name, value in now.items():
            _same(name, expected[name], fingerprint(value))
            self.objects.append(id(value))
        return abi.Guard(abi.Held(names), now, "names")

    def Guard(self, source: Any, expected: Any, mode: str) -> abi.Guard:
        now = read_source(source)
        if mode == "function":
            _same(now.__qualname__, expected, function_state(now))
            if now.__globals__ is not vars(sys.modules[now.__module__]):
                raise Stale(f"the names of {now.__qualname__} are no module's")
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
        if isinstance(source, abi.Getter) and isinstance(source.function, Structure):
            expected, outlined = expected
            _same("a container", outlined, outline(source.function.source.read()))
        _same("a value", expected, fingerprint(now))
        if mode == "is":
            self.objects.append(id(now))
        return abi.Guard(source, now, mode)


def _same(what: str, expected: str, now: str) -> None | NoReturn:
    if now != expected:
        raise Stale(f"{what} is {now}, not {expected}")
    return None


def read_source(source: Any) -> Any:
    """What stands at a source now, as the dispatcher reads it."""
    if isinstance(source, abi.Path):
        value = read_source(source.source)
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


__all__ = ["Plan", "Stale", "read_plan", "read_source"]
