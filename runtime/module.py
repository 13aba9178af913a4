"""A compiled module as it is imported: functions that run native code, beside NumPy alone.

In: a package that `metaphrase compile` wrote: plans (plans.py), kernels for several levels of the processor, constants.
Out: its functions. They take what they were exported for, and refuse anything else by a TypeError. Example:

    module = Module(__name__, __path__[0])
    period = module.function("period", ("e", "M"), doc="The period of an orbit.")

This file, what it imports, and the extension `dispatch` are copied into each such package.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import inspect
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.types import NAMES, SHORT
from ..locks import lock
from . import dispatch, threads  # noqa: F401 - threads says how many there are
from . import entry as abi
from .abi import SYMBOL
from .accepted import Accepted, number, refusal
from .plans import Plan, Reader

# What the processor must have for a level, as Linux names it; the best comes first.
LEVELS = {"x86-64-v3": frozenset("avx avx2 bmi1 bmi2 f16c fma abm movbe".split()), "x86-64": frozenset[str]()}


def levels_here() -> list[str]:
    """The levels that this machine can run, best first."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return [platform.machine()]
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    have = frozenset(next((line for line in lines if line.startswith("flags")), "").split())
    return [level for level, needs in LEVELS.items() if needs <= have]


class Module:
    """The functions of one package."""

    def __init__(self, name: str, folder: str | Path):
        self.name, self.folder = name, Path(folder)
        self.levels = levels_here()
        self.lock = lock()
        self._constants: dict[int, np.ndarray] | None = None

    def function(
        self,
        name: str,
        parameters: Sequence[str] | None,
        defaults: Mapping[str, Any] | None = None,
        keyword_only: int = 0,
        positional_only: int = 0,
        doc: str | None = None,
    ) -> dispatch.Dispatcher:
        """The function of a name. `parameters`: None for one with `*args` or `**kwargs`."""
        function = _Function(self, name, parameters, defaults or {}, keyword_only, positional_only)
        made = function.dispatcher
        made.__name__ = made.__qualname__ = name
        made.__doc__, made.__module__ = doc, self.name
        made.reduce = lambda: name  # pickled by its name, as functions are
        made.stage = function.refuse_staging
        if parameters is not None:
            made.__signature__ = function.signature
        return made

    def plans(self, name: str) -> list[Plan]:
        """What the calls of a function do."""
        paths = sorted((self.folder / "plans").glob(f"{name}.*.py"), key=lambda path: int(path.suffixes[0][1:]))
        return [plan for path in paths for plan in self._read(path.read_text())]

    def _read(self, text: str) -> list[Plan]:
        """A plan, and the same of calls with Python's numbers in the place of NumPy's: the code takes both."""
        plans = [_ModuleReader(self, False).read(text)]
        if "ScalarLeaf(" in text and "Argument(" not in text:
            plans.append(_ModuleReader(self, True).read(text))
        return plans

    def library(self, name: str) -> ctypes.CDLL:
        """The native code of a plan, for this processor."""
        for level in self.levels:
            path = self.folder / "kernels" / f"{name}.{level}.so"
            if path.exists():
                return ctypes.CDLL(str(path))
        raise ImportError(f"{self.folder.name} was not compiled for this processor ({', '.join(self.levels)})")

    def constant(self, number: int, dtype: str = "") -> np.ndarray:
        """An array that a function read when it was compiled. `dtype`: one that NumPy's files do not know."""
        if self._constants is None:
            with np.load(self.folder / "constants.npz") as held:
                self._constants = {int(name): held[name] for name in held.files}
        return self._constants[number].view(SHORT[dtype]) if dtype else self._constants[number]


def _named(module: str, name: str) -> Any:
    """A class of NumPy's or Python's, in which results stand."""
    return getattr(importlib.import_module(module), name)


def _listed(item: Any, python: tuple[bool, ...], columns: tuple) -> abi.Node:
    """A list whose length only the run knows, of columns with a row for each item. `item`: of results, which are a row
    of each column, of `python` those that are Python's numbers."""

    def made(_: Any, arrays: tuple) -> list:
        rows = [
            array.tolist() if number and array.ndim == 1 else [np.copy(row) if np.ndim(row) else row for row in array]
            for array, number in zip(arrays, python)
        ]
        return [_built(item, row) for row in zip(*rows)]

    return abi.Node(list, lambda value: ((), None), made, None, columns)


def _built(tree: Any, row: Sequence[Any]) -> Any:
    """An output of these results."""
    if isinstance(tree, (abi.Result, abi.Constant)):
        return row[tree.index] if isinstance(tree, abi.Result) else tree.value
    parts = [_built(child, row) for child in tree.children]
    if isinstance(tree, abi.Dictionary):
        return dict(zip(tree.keys, parts))
    return tree.kind(parts) if isinstance(tree, abi.Sequence) else tree.type(*parts)


class _ModuleReader(Reader):
    def __init__(self, module: Module, pythons: bool):
        super().__init__()
        self.module, self.pythons = module, pythons

    def words(self) -> dict[str, Any]:
        return super().words() | {"Array": self.module.constant, "Named": _named}

    def trees(self) -> dict[str, Callable[..., Any]]:
        return super().trees() | {"ScalarLeaf": self._scalar, "Record": abi.Record, "Listed": _listed}

    def _scalar(self, name: str) -> abi.Leaf:
        kind = {"f64": float, "i64": int, "bool": bool, "c128": complex}.get(name) if self.pythons else None
        return abi.ScalarLeaf(self.Dtype(name)) if kind is None else abi.NumberLeaf(kind)


class _Function:
    """One function: its entries are made by the first call."""

    def __init__(
        self,
        module: Module,
        name: str,
        parameters: Sequence[str] | None,
        defaults: Mapping[str, Any],
        keyword_only: int,
        positional_only: int,
    ):
        self.module, self.name, self.parameters = module, name, parameters
        self.plans: list[Plan] = []
        self.ready = False
        kinds: list[Any] = [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(parameters or ())
        kinds[:positional_only] = [inspect.Parameter.POSITIONAL_ONLY] * positional_only
        kinds[len(kinds) - keyword_only :] = [inspect.Parameter.KEYWORD_ONLY] * keyword_only
        self.signature = inspect.Signature(
            [
                inspect.Parameter(name, kind, default=defaults.get(name, inspect.Parameter.empty))
                for name, kind in zip(parameters or (), kinds)
            ]
        )
        self.dispatcher: Any = dispatch.Dispatcher(
            None,
            None if parameters is None else tuple(parameters),
            miss=self.miss,
            bind=self.bind,
            defaults=None if parameters is None else [defaults.get(p, dispatch.REQUIRED) for p in parameters],
            keyword_only=keyword_only,
            positional_only=positional_only,
        )

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        """The tuple of the call, or Python's TypeError."""
        if self.parameters is None:
            return args, kwargs
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}() {error}; its parameters are {self.signature}") from None
        bound.apply_defaults()
        return tuple(bound.arguments[p] for p in self.parameters)

    def miss(self, bound: tuple) -> Any:
        """The first call; or one whose numbers are of other types than those that the function was exported for."""
        with self.module.lock:
            if not self.ready:
                self.plans = self.module.plans(self.name)
                for plan in reversed(self.plans):  # the first that was exported is tried first
                    library = self.module.library(plan.library)
                    address = ctypes.c_void_p.in_dll(library, SYMBOL).value
                    self.dispatcher.add(plan.entry(address or 0, library))
                self.ready = True
        for entry in self.dispatcher.entries:
            for call in (bound, _converted(entry.entry, bound)):
                if call is not None and self.dispatcher.matches(entry, call):
                    return self.dispatcher.run(entry, call)
        raise refusal(self.name, "compiled", self._names(), [*map(self._accepted, self.plans)], bound)

    def _names(self) -> Sequence[str]:
        return ("args", "kwargs") if self.parameters is None else self.parameters

    def _accepted(self, plan: Plan) -> Accepted:
        """The types that a plan is for; messages show what was exported."""
        return Accepted(signature_text(plan.entry(0), len(self._names())), shown=plan.title[1:-1])

    def refuse_staging(self, args: tuple, kwargs: dict) -> Any:
        raise TypeError(f"{self.name} of {self.module.name} is compiled: it has no source to translate")


def _converted(entry: abi.Entry, bound: tuple) -> tuple | None:
    """The call with its numbers in the types that an entry takes; None where one would lose something."""
    call = list(bound)
    try:
        for root in entry.roots:
            if isinstance(root.source, abi.Position):
                call[root.source.index] = _fitted(root.tree, call[root.source.index])
    except TypeError:
        return None
    return tuple(call)


def _fitted(tree: Any, value: Any) -> Any:
    """A part of the call with its numbers in the types that a tree takes."""
    if isinstance(tree, (abi.ScalarLeaf, abi.NumberLeaf)):
        dtype = tree.dtype if isinstance(tree, abi.ScalarLeaf) else np.dtype(tree.kind)
        return number(value, dtype, dtype.type if isinstance(tree, abi.ScalarLeaf) else tree.kind)
    items: Any = value
    if isinstance(tree, abi.Sequence) and type(value) is tree.kind and len(items) == len(tree.children):
        return tree.kind(_fitted(child, item) for child, item in zip(tree.children, items))
    if isinstance(tree, abi.Dictionary) and type(value) is dict and value.keys() == set(tree.keys):
        return {key: _fitted(child, value[key]) for key, child in zip(tree.keys, tree.children)}
    return value


def types_text(tree: Any, written: Collection[Any] = ()) -> str:
    """A tree as text of types (accepted.py). `written`: the leaves that are stored into.

    >>> types_text(abi.Sequence(tuple, (abi.NumberLeaf(int), abi.ArrayLeaf(np.dtype("f8"), ("n", 3)))))
    '(int, f64[n, 3])'
    """
    if isinstance(tree, abi.ArrayLeaf):
        name = NAMES[np.dtype(tree.dtype)]
        text = f"{name}[{', '.join(map(str, tree.dims))}]" if tree.dims else name
        return f"Out({text})" if any(tree is leaf for leaf in written) else text
    if isinstance(tree, abi.ScalarLeaf):
        return NAMES[np.dtype(tree.dtype)]
    if isinstance(tree, abi.NumberLeaf):
        return tree.kind.__name__
    if isinstance(tree, abi.SizeLeaf):
        return f"Size({tree.dim})"
    if isinstance(tree, abi.StaticLeaf):
        return _literal(tree.value)
    inner = [types_text(child, written) for child in getattr(tree, "children", ())]
    if isinstance(tree, abi.Dictionary):
        return f"{{{', '.join(f'{key!r}: {text}' for key, text in zip(tree.keys, inner))}}}"
    if not isinstance(tree, abi.Sequence):
        return "Any"
    if tree.kind is list:
        return f"[{', '.join(inner)}]"
    return f"({inner[0]},)" if len(inner) == 1 else f"({', '.join(inner)})"


def _literal(value: Any) -> str:
    try:
        return repr(value) if ast.literal_eval(repr(value)) == value else "Any"
    except (ValueError, SyntaxError):
        return "Any"


def signature_text(entry: abi.Entry, count: int) -> str:
    """What the `count` arguments of an entry's calls are, as text of types."""
    trees = {root.source.index: root.tree for root in entry.roots if isinstance(root.source, abi.Position)}
    written = [write.leaf for write in entry.writes]
    return ", ".join(types_text(trees[k], written) if k in trees else "Any" for k in range(count))


__all__ = ["LEVELS", "Module", "levels_here", "signature_text", "types_text"]
