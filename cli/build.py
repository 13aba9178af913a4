"""`metaphrase build`: compile a function ahead of time, so that the first call finds it in the cache.

In: a function and types of its arguments. Out: the compiled library's path; with `--output` a copy of the
library and of its text. Example: `metaphrase build orbit.py:period --args "f64, f64"`.
"""
from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from .target import add_target, target_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("build", help="compile a function now", description=__doc__.splitlines()[0])
    add_target(parser)
    parser.add_argument("--output", metavar="DIRECTORY", help="put the library and its text here as well")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..api import public as api
    function, arguments = target_of(options)
    compiled = api.jit(function).lower(*arguments).compile()  # type: ignore[attr-defined]
    library = compiled.library
    print(f"{library.name}: {'found in the cache' if library.cached else 'compiled'}, {library.path}")
    if options.output:
        directory = Path(options.output)
        directory.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.path, directory / f"{library.name}.so")
        (directory / f"{library.name}.pyx").write_text(library.text)
        print(f"wrote {directory / library.name}.so and .pyx")
    return 0
