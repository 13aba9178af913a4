"""`metaphrase build`: compile functions ahead of time, so that their first calls find them in the cache.

In: functions and types of their arguments; or files and folders, for all that they export. Out: the paths of the
compiled libraries in the cache, beside which lies what calls with such arguments do. Examples:

    metaphrase build orbit.py:period --args "float, float"      # a call period(0.3, 1.0) translates nothing
    metaphrase build src                                        # what mp.export marks in the files below src
"""

from __future__ import annotations

import argparse
from typing import Any

from ..api import public as api
from ..api.transforms import jitted_of
from .target import add_target, told_of_each


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("build", help="compile functions now", description=(__doc__ or "").partition("\n")[0])
    add_target(parser, several=True)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    return told_of_each(options, _built, _show)


def _built(function: Any, args: tuple, kwargs: dict) -> dict[str, Any]:
    jitted = jitted_of(function) or jitted_of(api.jit(function))
    assert jitted is not None
    library = jitted.prepare(*args, **kwargs)
    return {"name": library.name, "cached": library.cached, "path": str(library.path)}


def _show(row: dict[str, Any]) -> None:
    print(f"{row['name']}: {'found in the cache' if row['cached'] else 'compiled'}, {row['path']}")
