"""Modules compiled ahead of time: packages of native functions that need NumPy and nothing of ours.

In: a module whose functions are marked by `mp.export`. Out: a package with the same names: plans of the calls, kernels
for two levels of the processor with their Cython text, types for editors, and what runs them. Example:

    metaphrase compile orbits.py --out build --wheel        # build/dist/orbits-0.1-cp311-cp311-linux_x86_64.whl

    package = compile_module(orbits, Path("build"))         # the same in Python, without the wheel
    package.folder                                          # build/orbits

What a function reads of its module (arrays, numbers, other functions) is as it was when it was compiled.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import core, runtime
from ._version import VERSION
from .api.arguments import Call, take_apart
from .api.compile import Compiled, compile_program
from .api.jit import Jit, jitted_of
from .api.plans.fingerprints import NotPortable
from .api.plans.modules import ModuleWriter, refused, written_defaults
from .api.stubs import stub
from .api.types import parse_arguments
from .astpasses.frontend import sizes_at_least
from .config import config
from .core.dims import symbols_of
from .runtime import cython_build, dispatch
from .runtime import entry as abi
from .runtime.module import LEVELS
from .source import SourceError


@dataclass
class Package:
    """A compiled module. `functions`: the types that each is compiled for."""

    name: str
    folder: Path
    functions: dict[str, list[str]]
    needs_scipy: bool

    def wheel(self, version: str) -> Path:
        """A wheel of the package, for this Python and platform, in `dist` beside it. Raises RuntimeError."""
        dist = self.folder.parent.resolve() / "dist"
        dist.mkdir(exist_ok=True)
        needs = ["numpy>=2.0", *(["scipy>=1.13"] if self.needs_scipy else [])]
        with tempfile.TemporaryDirectory(prefix="metaphrase-wheel-") as place:
            project = Path(place)
            shutil.copytree(self.folder, project / self.name)
            (project / "setup.py").write_text(_SETUP)
            (project / "pyproject.toml").write_text(_PROJECT.format(name=self.name, version=version, needs=needs))
            options = ["--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check"]
            command = [sys.executable, "-m", "pip", "wheel", place, *options, "--wheel-dir", str(project / "dist")]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"pip could not make a wheel of {self.name}:\n{done.stdout}{done.stderr}")
            (wheel,) = (project / "dist").glob("*.whl")
            return Path(shutil.copy(wheel, dist))


_OURS = "_metaphrase"  # in a package: what runs its calls
_SETUP = '''"""The package holds native code: its wheel is for this Python and platform."""

from setuptools import Distribution, setup


class Native(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(distclass=Native)
'''
_PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{name}"
version = "{version}"
dependencies = {needs}

[tool.setuptools]
packages = ["{name}"]

[tool.setuptools.package-data]
"{name}" = ["**/*"]
"""


def exported(module: types.ModuleType) -> dict[str, Any]:
    """The functions of a module that `mp.export` has marked, by the names that they have there."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, dispatch.Dispatcher) and getattr(value, "exports", None)
    }


def compile_module(
    module: types.ModuleType, out: Path, name: str | None = None, levels: Sequence[str] | None = None
) -> Package:
    """The package of a module's exported functions, in the folder `out`.

    `levels`: of the processor, as gcc names them; by default both of x86-64-v3 and x86-64, between which the package
    chooses when it is imported. Raises SourceError for what can't be translated, or can't be said without metaphrase:
    results of the user's classes, functions that store into objects.
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
    place = out / name
    if place.exists() and any(place.iterdir()) and not (place / _OURS).is_dir():
        raise FileExistsError(f"{place} is there, and is no package that was compiled; write to another folder (--out)")
    with tempfile.TemporaryDirectory(prefix="metaphrase-package-") as pending:
        package = _written(module, functions, Path(pending) / name, place, levels)
        if place.exists():
            shutil.rmtree(place)
        shutil.copytree(Path(pending) / name, place)
    return package


def _written(
    module: types.ModuleType, functions: dict[str, Any], folder: Path, place: Path, levels: Sequence[str] | None
) -> Package:
    """The package, written to `folder`; it is moved to its `place` when all of it is there."""
    for inner in ("plans", "kernels"):
        (folder / inner).mkdir(parents=True)
    constants: list[np.ndarray] = []
    made = {
        public: _compile(public, function, folder, constants, _levels(levels)) for public, function in functions.items()
    }
    if constants:
        np.savez(folder / "constants.npz", **{str(k): array for k, array in enumerate(constants)})  # type: ignore[arg-type]
    _copy_runtime(folder / _OURS)
    (folder / "__init__.py").write_text(_init_text(module, functions))
    (folder / "__init__.pyi").write_text(
        stub({public: (functions[public].jitted, [entry for _, entry in rows]) for public, rows in made.items()})
    )
    (folder / "py.typed").touch()
    titles = {public: [title for title, _ in rows] for public, rows in made.items()}
    return Package(folder.name, place, titles, any(entry.uses_blas for rows in made.values() for _, entry in rows))


def _levels(levels: Sequence[str] | None) -> list[str]:
    """The best first, as a package looks for them."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return [platform.machine()]
    unknown = [level for level in levels or () if level not in LEVELS]
    if unknown:
        raise ValueError(f"no level of the processor is called {unknown[0]!r}; there are {', '.join(LEVELS)}")
    return [level for level in LEVELS if levels is None or level in levels]


def _compile(
    public: str, function: Any, folder: Path, constants: list[np.ndarray], levels: Sequence[str]
) -> list[tuple[str, abi.Entry]]:
    """(types, entry) of each signature of one function, whose plans and kernels are written."""
    jitted = jitted_of(function)
    assert jitted is not None
    rows = []
    for k, text in enumerate(function.exports):
        call = _call(jitted, text)
        compiled = _program(jitted, call, public)
        entry = compiled.entry_for_call(jitted, call.structure, call.specs)
        title = f"({text})"
        if entry is None:
            raise refused(public, jitted.span, "it stores into a list, a dict or an object that it is given")
        stem = f"{public}.{k}"
        try:
            writer = ModuleWriter(entry, constants)
            plan = writer.text(compiled.sites, title=title, dims=call.dims, library=stem)
        except NotPortable as why:
            raise refused(public, jitted.span, f"a package would have to name {why}") from None
        (folder / "plans" / f"{stem}.py").write_text(plan)
        (folder / "kernels" / f"{stem}.pyx").write_text(compiled.library.text)
        for level in levels:
            library = cython_build.build(
                compiled.library.text,
                name=public,
                contract=config.contract,
                fastmath=config.fastmath,
                extra_flags=_flags(level),
            )
            shutil.copyfile(library.path, folder / "kernels" / f"{stem}.{level}.so")
        rows.append((title, entry))
    return rows


def _flags(level: str) -> tuple[str, ...]:
    return (f"-march={level}", "-mtune=generic") if level in LEVELS else ("-march=armv8-a",)


def _call(jitted: Jit, text: str) -> Call:
    """The call that a signature describes, with the default values of what it leaves out."""
    args, kwargs = jitted._user_call(jitted.bind(parse_arguments(text), {}))
    return take_apart(args, kwargs, jitted.static, jitted.in_order)


def _program(jitted: Jit, call: Call, public: str) -> Compiled:
    """Compiled for sizes from 0 on; where that can't be, from 1 or 2 on."""
    sizes = sorted(symbols_of(dim for dims in call.dims for dim in dims))
    for smallest in (0, 1, 2):
        least = dict.fromkeys(sizes, smallest)
        try:
            with sizes_at_least(least):
                return compile_program(jitted._program(call.structure, call.specs), call.specs, public, least)
        except SourceError:
            if smallest == 2 or not sizes:
                raise
    raise AssertionError("the last try raises")


# ---- the package's own text --------------------------------------------------------------------------------------


def _init_text(module: types.ModuleType, functions: dict[str, Any]) -> str:
    made_by = f"Compiled by metaphrase {VERSION} from {Path(module.__file__ or module.__name__).name}."
    doc = "\n\n".join(filter(None, ((module.__doc__ or "").strip(), made_by)))
    rows = [f'"""{_quoted(doc)}"""', "", "from ._metaphrase.runtime.module import Module as _Module", ""]
    rows.append("_module = _Module(__name__, __path__[0])")
    rows += [_function_text(name, function) for name, function in functions.items()]
    rows += ["", f"__all__ = {sorted(functions)!r}", ""]
    return "\n".join(rows)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _function_text(name: str, function: Any) -> str:
    parameters, defaults = function.parameters, written_defaults(name, function)
    parts = [repr(name), repr(parameters)]
    if defaults:
        parts.append(f"defaults={defaults!r}")
    if function.keyword_only:
        parts.append(f"keyword_only={function.keyword_only}")
    if function.__doc__:
        parts.append(f"doc={function.__doc__!r}")
    return f"{name} = _module.function({', '.join(parts)})"


def _copy_runtime(folder: Path) -> None:
    for path, place in _runtime_files():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / place)
    (folder / "__init__.py").write_text(_RUNTIME)


_RUNTIME = '''"""What runs the calls of this package, copied from metaphrase."""

import sys

from .runtime import dispatch

# The extension enters itself under the name that it was compiled for as well, which may be wanted for metaphrase's own.
if sys.modules.get("metaphrase.runtime.dispatch") is dispatch:
    del sys.modules["metaphrase.runtime.dispatch"]
'''


def _runtime_files() -> Iterator[tuple[Path, str]]:
    """(file, its place in the package)."""
    rooms = {"": __file__, "core": core.__file__, "runtime": runtime.__file__}
    names = {
        "": ("source.py", "exceptions.py", "effects.py"),
        "core": ("__init__.py", "dims.py", "types.py"),
        "runtime": (
            *("__init__.py", "abi.py", "abi.h", "abi_blas.h", "entry.py", "errors.py", "plans.py", "module.py"),
            "threads.py",
        ),
    }
    for room, files in names.items():
        folder = Path(str(rooms[room])).parent
        yield from ((folder / name, f"{room}/{name}" if room else name) for name in files)
    extension = Path(dispatch.__file__)
    yield extension, f"runtime/{extension.name}"


__all__ = ["Package", "compile_module", "exported"]
