"""`metaphrase build`: compile a function ahead of time, so that the first call finds it in the cache.

In: a function and types of its arguments. Out: the path of the compiled library in the cache. Example:
`metaphrase build orbit.py:period --args "f64, f64"`.
"""

from __future__ import annotations

import argparse

from .console import answer
from .target import add_target, target_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("build", help="compile a function now", description=(__doc__ or "").partition("\n")[0])
    add_target(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..api import public as api

    function, arguments = target_of(options)
    compiled = api.jit(function).lower(*arguments).compile()
    library = compiled.library
    found = "found in the cache" if library.cached else "compiled"
    data = {"target": options.target, "name": library.name, "cached": library.cached, "path": str(library.path)}
    answer(options, data, lambda: print(f"{library.name}: {found}, {library.path}"))
    return 0
