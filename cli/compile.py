"""`metaphrase compile`: a module's exported functions as a package that needs NumPy alone, or as a library of C.

In: modules whose functions are marked by `mp.export`, or folders of such. Out: a package or library of each in a
folder, and a wheel if asked. Example: `metaphrase compile orbits.py --out build --wheel`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..aot import FORMS, compile_module, exported
from ..aot.exported import calls_export
from ..api.types import ArgumentsError
from ..source import SourceError
from .console import answer
from .loading import BrokenProgram, TargetError, load_module, users_errors
from .progress import Progress
from .target import files_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "compile",
        help="make packages of native functions, or libraries of C",
        description=(__doc__ or "").partition("\n")[0],
    )
    parser.add_argument(
        "modules",
        nargs="+",
        metavar="FILE.py",
        help="modules; package.module works as well, and a folder stands for all of its modules that export",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where the packages go")
    parser.add_argument("--name", help="the package's name; the module's if absent")
    parser.add_argument(
        "--cpu", metavar="LEVELS", help="levels of the processor, such as x86-64-v3,x86-64 (the default)"
    )
    parser.add_argument(
        "--to",
        choices=FORMS,
        default="native",
        help="native code (the default), NumPy source that people can read, or a library of C",
    )
    parser.add_argument("--wheel", action="store_true", help="make a wheel of each, too")
    parser.add_argument("--version", default="0.1", help="the wheel's version")
    parser.add_argument("--quiet", action="store_true", help="print errors alone")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    modules = [module for place in options.modules for module in _modules(place)]
    if options.name and len(modules) > 1:
        raise TargetError("--name is the name of one package, and there are several modules")
    if options.wheel and options.to == "c":
        raise TargetError("a library of C is no Python package: leave --wheel out")
    levels = options.cpu.split(",") if options.cpu else None
    made: list[dict[str, Any]] = []
    for name, place in _names(modules, options).items():
        module = load_module(place)
        try:
            with Progress(options.quiet) as progress, users_errors():
                package = compile_module(module, options.out, name, levels, options.to, progress)
            wheel = package.wheel(options.version) if options.wheel else None
        except (ArgumentsError, BrokenProgram, SourceError):
            raise
        except (OSError, ValueError, RuntimeError) as problem:
            raise TargetError(str(problem)) from problem
        kind = "library" if options.to == "c" else "package"
        row = {"name": package.name, "kind": kind, "folder": str(package.folder), "functions": package.functions}
        made.append({**row, "needs_scipy": package.needs_scipy, "wheel": None if wheel is None else str(wheel)})
        if not options.quiet and not options.json:
            _show(made[-1])
    if options.json:
        answer(options, {"packages": made}, lambda: None)
    return 0


def _modules(place: str) -> list[str]:
    """The modules that a place stands for."""
    if not Path(place).is_dir():
        return [place]
    files = [str(path) for path in files_of(Path(place)) if calls_export(path)]
    found = [file for file in files if exported(load_module(file))]
    if not found:
        raise TargetError(f"{place} exports no function; mark one by mp.export")
    return found


def _names(modules: list[str], options: argparse.Namespace) -> dict[str, str]:
    """The module of each package."""
    names: dict[str, str] = {}
    for place in modules:
        name = options.name or Path(place.removesuffix(".py")).name.rpartition(".")[2]
        if name in names and Path(names[name]).resolve() != Path(place).resolve():
            both = f"{names[name]} and {place}"
            raise TargetError(f"{both} would both be {options.out / name}: compile them into folders of their own")
        names[name] = place
    return names


def _show(package: dict[str, Any]) -> None:
    for public, signatures in package["functions"].items():
        print(f"{package['name']}.{public}: {' and '.join(signatures)}")
    print(f"{package['kind'] + ':':8} {package['folder']}")
    if package["wheel"]:
        print(f"wheel:   {package['wheel']}")
