"""Functions of libraries that are imported only when somebody uses them, and tables of what answers them.

In: a module's name and a function's. Out: `Foreign`, which imports the module when it is called and stands in
for the function until then; `Spellings`, a table by callables whose `Foreign` keys come to hold once their
module is imported. Until a program imports SciPy none of its functions can be called, so none is looked for. `Filed`
is a table whose values stand in files of ours, each of which is imported when one of them is asked for.

>>> erf = Foreign("scipy.special", "erf")
>>> table = Spellings({erf: "error function"})
>>> from scipy.special import erf as named
>>> table[named]
'error function'
"""

from __future__ import annotations

import importlib
import sys
from typing import Any


def ufunc_name(function: Any) -> str:
    """What users call a ufunc, which does not say itself whose it is."""
    name = function.__name__
    owners = [m for m in ("numpy", "scipy.special") if getattr(sys.modules.get(m), name, None) is function]
    return ".".join([*owners[:1], name])


class Foreign:
    """A function of a module that may not be imported yet."""

    __slots__ = ("module", "__name__")

    def __init__(self, module: str, name: str):
        self.module, self.__name__ = module, name

    def function(self) -> Any:
        """The function; its module is imported for it."""
        return named(self.__name__, importlib.import_module(self.module))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.function()(*args, **keywords)

    def __eq__(self, other: object) -> bool:
        return self is other or other is not None and other is self.imported()

    def __hash__(self) -> int:
        return hash((self.module, self.__name__))

    def __repr__(self) -> str:
        return f"{self.module}.{self.__name__}"

    def imported(self) -> Any:
        """The function, where its module is imported; None before."""
        return named(self.__name__, sys.modules.get(self.module))


class Spellings(dict):
    """A dict by callables in which a `Foreign` key stands for the function that it names."""

    def __init__(self, items: Any = ()):
        super().__init__(items)
        self._waiting: dict[str, set[Foreign]] = {}  # by modules
        for key in self:
            if isinstance(key, Foreign):
                self._waiting.setdefault(key.module, set()).add(key)

    def _settle(self) -> bool:
        """Name the functions whose module is imported by now; whether there were any."""
        waiting = [key for module, keys in self._waiting.items() if module in sys.modules for key in keys]
        found = {key: function for key in waiting if (function := key.imported()) is not None}
        for key, function in found.items():
            self._waiting[key.module].discard(key)
            self[function] = dict.__getitem__(self, key)
        return bool(found)

    def __missing__(self, key: Any) -> Any:
        if self._settle() and dict.__contains__(self, key):
            return dict.__getitem__(self, key)
        raise KeyError(key)

    def __contains__(self, key: Any) -> bool:
        return dict.__contains__(self, key) or self._settle() and dict.__contains__(self, key)

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default


class Filed(dict):
    """A dict by callables. A module that fills some in, and that nobody has needed, stands at each by its name."""

    def get(self, key: Any, default: Any = None) -> Any:
        if type(module := super().get(key)) is str:
            del self[key]
            importlib.import_module(module)
        return super().get(key, default)


def named(path: str, home: Any) -> Any:
    """`home.linalg.norm` for "linalg.norm"; None where this version of the module lacks it."""
    for name in path.split("."):
        home = getattr(home, name, None)
    return home


# Functions of SciPy that are programs with loops of their own: the library that has each, under the same name. And
# Python's own ways to stop in a debugger.
PROGRAMS: Spellings = Spellings(
    {
        Foreign(module, name): Foreign(f"metaphrase.{library}", name)
        for module, library, names in (
            ("scipy.optimize", "_scipy_roots", "bisect brentq brenth ridder newton root_scalar"),
            ("scipy.optimize", "_scipy_minimize", "minimize"),
            ("scipy.sparse.linalg", "_scipy_iterative", "cg gmres bicgstab LinearOperator aslinearoperator"),
            (
                *("scipy.stats", "_scipy_stats"),
                "norm.pdf norm.logpdf norm.cdf norm.logcdf norm.sf norm.logsf norm.ppf norm.isf",
            ),
            ("builtins", "api.breakpoints", "breakpoint"),
            ("pdb", "api.breakpoints", "set_trace"),
        )
        for name in names.split()
    }
)

__all__ = ["PROGRAMS", "Filed", "Foreign", "Spellings", "named"]
