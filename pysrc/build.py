"""Projects whose wheels hold compiled modules: what setuptools does for `[tool.metaphrase]`.

In: names of modules whose functions are marked by `mp.export`, in pyproject.toml or setup.py. Out: in the wheel,
compiled packages in the place of the modules. In the source tree, and installed by `pip install -e`, they stay as they
are, and run through metaphrase. Example:

    [tool.metaphrase]                                       # pyproject.toml
    modules = ["pkg.orbits"]                                # or "pkg", for all of its modules that export
    to = "native"                                           # or "numpy"
    cpu = ["x86-64-v3", "x86-64"]

    setup(ext_modules=metaphrase.build.extensions("pkg"))   # setup.py, the same
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.errors import ExecError, OptionError

from .aot import PACKAGES
from .aot.exported import calls_export
from .late import dataclass
from .runtime.abi3 import FIRST
from .runtime.module import LEVELS


@dataclass(frozen=True)
class Options:
    """One line of a project: a module or a package, and how it is compiled."""

    name: str
    to: str = "native"
    cpu: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not all(part.isidentifier() for part in self.name.split(".")):
            raise OptionError(f"metaphrase compiles modules such as pkg.orbits, and {self.name!r} is no name of one")
        if self.to not in PACKAGES:
            raise OptionError(f"metaphrase compiles to {' or '.join(PACKAGES)}, not to {self.to!r}")
        unknown = [level for level in self.cpu if level not in LEVELS]
        if unknown:
            raise OptionError(f"no level of the processor is called {unknown[0]!r}; there are {', '.join(LEVELS)}")


class Compiled(Extension):
    """An entry of `ext_modules` that metaphrase builds."""

    def __init__(self, options: Options):
        super().__init__(options.name, [])
        self.metaphrase_options = options


def extensions(*names: str, to: str = "native", cpu: Sequence[str] = ()) -> list[Extension]:
    """For `setup(ext_modules=...)`: modules that export functions, or packages, for all of their modules that do."""
    return [Compiled(Options(name, to, tuple(cpu))) for name in names]


def prepare(distribution: Any, table: Any, marked: Sequence[Any]) -> None:
    """Make a distribution's `build_py` compile what a table of pyproject.toml and extensions name."""
    wanted = [*_options_of(table), *(extension.metaphrase_options for extension in marked)]
    if marked:
        distribution.ext_modules = [e for e in distribution.ext_modules if e not in marked]
    base = distribution.get_command_class("build_py")

    class build_py(base):  # type: ignore[misc, valid-type]
        def run(self) -> None:
            super().run()
            if not self.editable_mode:
                for options in wanted:
                    _build(self, options)

    distribution.cmdclass["build_py"] = build_py
    if any(options.to == "native" for options in wanted):
        distribution.has_ext_modules = lambda: True  # the wheel is for this platform
        distribution.cmdclass["bdist_wheel"] = _for_many_pythons(distribution.get_command_class("bdist_wheel"))


def _for_many_pythons(base: Any) -> Any:
    """`bdist_wheel` whose wheel is for all versions of Python that a compiled package is for, unless it holds an
    extension for this one."""

    class bdist_wheel(base):
        py_limited_api: Any

        def get_tag(self) -> tuple[str, str, str]:
            if not any(Path(self.bdist_dir).rglob(f"*{EXTENSION_SUFFIXES[0]}")):
                self.py_limited_api = self.py_limited_api or FIRST
            return super().get_tag()

    return bdist_wheel


def _options_of(table: Any) -> Iterator[Options]:
    if table is None:
        return
    unknown = table.keys() - {"modules", "to", "cpu"} if isinstance(table, dict) else {"a value"}
    if unknown:
        raise OptionError(f"[tool.metaphrase] has modules, to and cpu, and not {', '.join(sorted(unknown))}")
    names, cpu = table.get("modules"), table.get("cpu", [])
    if not isinstance(names, list) or not names:
        raise OptionError('[tool.metaphrase] names modules: modules = ["pkg.orbits"]')
    levels = tuple(cpu.split(",") if isinstance(cpu, str) else cpu)
    yield from (Options(name, table.get("to", "native"), levels) for name in names)


def _build(command: Any, options: Options) -> None:
    """Compile what a line names, in the folder that the wheel is made of. `command`: build_py, which has run."""
    library = Path(command.build_lib)
    for module in _modules(library, options.name):
        place = library.joinpath(*module.split("."))
        more = ["--to", options.to, *(["--cpu", ",".join(options.cpu)] if options.cpu else [])]
        arguments = ["-P", "-m", "metaphrase", "compile", module, "--out", str(place.parent), "--name", place.name]
        path = os.pathsep.join(filter(None, [str(_root(command, module)), os.environ.get("PYTHONPATH")]))
        done = subprocess.run([sys.executable, *arguments, *more], env={**os.environ, "PYTHONPATH": path})
        if done.returncode:
            raise ExecError(f"metaphrase did not compile {module}; its message is above")
        place.with_suffix(".py").unlink()


def _modules(library: Path, name: str) -> list[str]:
    """The module of a name, or the modules of a package that export functions."""
    place = library.joinpath(*name.split("."))
    if place.with_suffix(".py").is_file():
        return [name]
    found = [path for path in sorted(place.rglob("*.py")) if path.name != "__init__.py" and calls_export(path)]
    if found:
        return [".".join(path.relative_to(library).with_suffix("").parts) for path in found]
    if (place / "__init__.py").is_file():
        raise OptionError(f'the modules of {name} export no function; mark one: @mp.export("f64[n], f64"), above def')
    raise OptionError(f"metaphrase is to compile {name}, and setuptools finds no such module (packages, py_modules)")


def _root(command: Any, module: str) -> Path:
    """Where the module is imported from: the source tree, which messages then name; or the copy, if that has other
    names for its folders."""
    package = module.rpartition(".")[0]
    folder, names = (
        Path(command.get_package_dir(package) or ".").resolve(),
        tuple(package.split(".")) if package else (),
    )
    if folder.parts[len(folder.parts) - len(names) :] == names:
        return folder.parents[len(names) - 1] if names else folder
    return Path(command.build_lib).resolve()


__all__ = ["Compiled", "Options", "extensions", "prepare"]
