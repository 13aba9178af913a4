"""A compiled module as it is imported: functions that run native code, beside NumPy alone.

In: a package that `metaphrase compile` wrote: plans (plans.py), kernels for several levels of the processor, constants.
Out: its functions. They take what they were exported for, and refuse anything else by a TypeError. Example:

    module = Module(__name__, __path__[0])
    period = module.function("period", ("e", "M"), doc="The period of an orbit.")

This file, what it imports, and the extension `dispatch` are copied into each such package.
"""

from __future__ import annotations

import ctypes
import inspect
import platform
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.types import NAMES
from . import dispatch, threads  # noqa: F401 - threads says how many there are
from . import entry as abi
from .plans import Plan, Reader

SYMBOL = "metaphrase_entry"
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
        self.lock = threading.Lock()
        self._constants: dict[int, np.ndarray] | None = None

    def function(
        self,
        name: str,
        parameters: Sequence[str] | None,
        defaults: Mapping[str, Any] | None = None,
        keyword_only: int = 0,
        doc: str | None = None,
    ) -> dispatch.Dispatcher:
        """The function of a name. `parameters`: None for one with `*args` or `**kwargs`."""
        function = _Function(self, name, parameters, defaults or {}, keyword_only)
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

    def constant(self, number: int) -> np.ndarray:
        """An array that a function read when it was compiled."""
        if self._constants is None:
            with np.load(self.folder / "constants.npz") as held:
                self._constants = {int(name): held[name] for name in held.files}
        return self._constants[number]


class _ModuleReader(Reader):
    def __init__(self, module: Module, pythons: bool):
        super().__init__()
        self.module, self.pythons = module, pythons

    def words(self) -> dict[str, Any]:
        return super().words() | {"Array": self.module.constant}

    def trees(self) -> dict[str, Callable[..., Any]]:
        return super().trees() | {"ScalarLeaf": self._scalar}

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
    ):
        self.module, self.name, self.parameters = module, name, parameters
        self.plans: list[Plan] = []
        self.ready = False
        kinds: list[Any] = [inspect.Parameter.POSITIONAL_OR_KEYWORD] * len(parameters or ())
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
                    address = ctypes.cast(getattr(library, SYMBOL), ctypes.c_void_p).value
                    self.dispatcher.add(plan.entry(address or 0, library))
                self.ready = True
        for entry in self.dispatcher.entries:
            for call in (bound, _converted(entry.entry, bound)):
                if call is not None and self.dispatcher.matches(entry, call):
                    return self.dispatcher.run(entry, call)
        titles = dict.fromkeys(plan.title for plan in self.plans)
        raise TypeError(
            f"{self.name} was compiled for {' and '.join(titles)}, and is called with "
            f"({', '.join(map(described, bound))})"
        )

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
        return _number(tree, value)
    items: Any = value
    if isinstance(tree, abi.Sequence) and type(value) is tree.kind and len(items) == len(tree.children):
        return tree.kind(_fitted(child, item) for child, item in zip(tree.children, items))
    if isinstance(tree, abi.Dictionary) and type(value) is dict and value.keys() == set(tree.keys):
        return {key: _fitted(child, value[key]) for key, child in zip(tree.keys, tree.children)}
    return value


def _number(leaf: abi.ScalarLeaf | abi.NumberLeaf, value: Any) -> Any:
    """A number of the type that a leaf takes. TypeError where it would be another number."""
    make: Callable[[Any], Any] = leaf.dtype.type if isinstance(leaf, abi.ScalarLeaf) else leaf.kind
    dtype = leaf.dtype if isinstance(leaf, abi.ScalarLeaf) else np.dtype(leaf.kind)
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        if np.can_cast(value.dtype, dtype, "safe"):
            return make(value.item() if make in (int, float, bool, complex) else value)
    elif isinstance(value, (bool, int, float, complex)) and np.result_type(value, dtype) == dtype:
        try:
            with np.errstate(over="raise"):
                made = make(value)
        except (OverflowError, FloatingPointError):
            made = None
        if made is not None and (not isinstance(value, int) or int(made.real) == value):
            return made
    raise TypeError(f"{value!r} is no {dtype}")


def described(value: Any) -> str:
    """What a value is, as signatures say it.

    >>> described({"w": np.ones((2, 3))}), described(1.5)
    ("{'w': f64[2, 3]}", 'float')
    """
    if isinstance(value, (np.ndarray, np.generic)):
        dims = ", ".join(map(str, value.shape))
        text = f"{NAMES.get(value.dtype, value.dtype)}{f'[{dims}]' if dims else ''}"
        if isinstance(value, np.generic):
            return text
        kind = "" if type(value) is np.ndarray else f"{type(value).__name__} "
        return kind + text + ("" if value.flags.writeable else " read-only")
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {described(item)}' for key, item in value.items())}}}"
    if type(value) in (tuple, list):
        inner = ", ".join(map(described, value))
        return f"[{inner}]" if type(value) is list else f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value) if isinstance(value, (str, bool, type(None))) else type(value).__name__


__all__ = ["LEVELS", "Module", "described", "levels_here"]
