"""Modules compiled ahead of time: packages that need NumPy and nothing of ours.

In: a module whose functions are marked by `mp.export`. Out: a package with the same names, types for editors, and what
runs the calls: native code for two levels of the processor with its Cython text, or NumPy source. Example:

    metaphrase compile orbits.py --out build --wheel        # build/dist/orbits-0.1-cp311-abi3-linux_x86_64.whl
    metaphrase compile orbits.py --to numpy --out build     # build/orbits, which a person can read
    metaphrase compile orbits.py --to c --out build         # build/orbits/orbits.h, liborbits.a and liborbits.so

    package = compile_module(orbits, Path("build"))         # the same in Python, without the wheel
    package.folder                                          # build/orbits

What a function reads of its module (arrays, numbers, other functions) is as it was when it was compiled.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..api.plans.modules import written_defaults
from ..api.stubs import stub
from ..late import dataclass
from ..runtime import dispatch
from ..source import SourceError
from . import c_library, native, numpy_source
from .exported import Made, Progress
from .own_exceptions import exceptions, exceptions_text
from .places import making
from .wheels import wheel

FORMS = ("native", "numpy", "c")
PACKAGES = ("native", "numpy")  # those that Python imports
OURS = "_metaphrase"  # in a package: what runs its calls, a folder or a file


@dataclass
class Package:
    """A compiled module. `functions`: the types that each is compiled for. `pure`: it holds Python alone."""

    name: str
    folder: Path
    functions: dict[str, list[str]]
    needs_scipy: bool
    pure: bool = False
    needs_ml_dtypes: bool = False  # for bfloat16

    def wheel(self, version: str) -> Path:
        """A wheel of the package in `dist` beside it, for this platform, or for all. Raises RuntimeError."""
        needs = ["numpy>=2.0", *(["scipy>=1.13"] if self.needs_scipy else [])]
        needs += ["ml_dtypes"] if self.needs_ml_dtypes else []
        return wheel(self.folder, version, needs, self.pure)


def exported(module: types.ModuleType) -> dict[str, Any]:
    """The functions of a module that `mp.export` has marked, by the names that they have there."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, dispatch.Dispatcher) and getattr(value, "exports", None)
    }


def compile_module(
    module: types.ModuleType,
    out: Path | str,
    name: str | None = None,
    levels: Sequence[str] | None = None,
    to: str = "native",
    progress: Progress = lambda what, done, count: None,
) -> Package:
    """The package of a module's exported functions, in the folder `out`.

    `levels`: of the processor, as gcc names them; by default both of x86-64-v3 and x86-64, between which the package
    chooses when it is imported. `to`: "native", "numpy" for a package of NumPy source, or "c" for a library of C with
    its header, which has nothing of Python. `progress` is told what is made next, how many are done, and how many there
    are. What is made is there whole or not at all. Raises SourceError for what can't be translated, or can't be said
    without metaphrase: results of the user's classes, functions that store into objects.
    """
    functions = exported(module)
    name = name or module.__name__.rpartition(".")[2]
    if not functions:
        raise SourceError(
            f"{module.__name__} exports no function",
            code="export",
            remedy='mark one: @mp.export("f64[n], f64"), above def',
        )
    for public, function in functions.items():
        written_defaults(public, function)
    if not name.isidentifier() or name in ("numpy", "scipy", *sys.stdlib_module_names):
        raise ValueError(f"a package can't be called {name!r}: take a name that is an identifier, and no library's")
    if to not in FORMS:
        raise ValueError(f"a module is compiled to {', '.join(FORMS[:-1])} or {FORMS[-1]}, not to {to!r}")
    if to == "numpy" and levels is not None:
        raise ValueError("NumPy source is for every processor: leave the levels (--cpu) out")
    place = Path(out) / name
    if place.exists() and any(place.iterdir()) and not _is_ours(place):
        raise FileExistsError(f"{place} is there, and is no package that was compiled; write to another folder (--out)")
    if to in PACKAGES and place.resolve() == Path(module.__file__ or "").resolve().with_suffix(""):
        shadowed = f"{place} would be imported in the place of {module.__file__}"
        raise ValueError(f"{shadowed}; write to another folder (--out)")
    chosen = native.levels_of(levels)
    with making(place) as folder:
        if to == "c":
            made = c_library.write(module, functions, name, folder, chosen, progress)
        elif to == "numpy":
            made = numpy_source.write(module, functions, folder, progress)
        else:
            made = native.write(module, functions, folder, chosen, progress)
        if to in PACKAGES:
            _write_types(folder, module, functions, made)
    titles = {public: made.titles(public) for public in functions}
    return Package(name, place, titles, made.needs_scipy, to == "numpy", made.needs_ml_dtypes)


def _is_ours(place: Path) -> bool:
    """Whether a folder holds a package or a library that was compiled before."""
    return (place / OURS).is_dir() or any((place / file).is_file() for file in (f"{OURS}.py", "metaphrase.h"))


def _write_types(folder: Path, module: types.ModuleType, functions: dict[str, Any], made: Made) -> None:
    rows = {public: (function.jitted, made.entries(public)) for public, function in functions.items()}
    own = "\n".join(exceptions_text(exceptions(module)))
    (folder / "__init__.pyi").write_text(stub(rows) + own)
    (folder / "py.typed").touch()


__all__ = ["Package", "compile_module", "exported"]
