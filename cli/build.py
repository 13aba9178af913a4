"""`metaphrase build`: compile functions ahead of time, so that their first calls find them in the cache.

In: functions and types of their arguments; or files and folders, for all that they export. Out: the paths of the
compiled libraries in the cache, beside which lies what calls with such arguments do. Examples:

    metaphrase build orbit.py:period --args "float, float"      # a call period(0.3, 1.0) translates nothing
    metaphrase build src                                        # what mp.export marks in the files below src
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ..api import public as api
from ..api.jit import jitted_of
from ..source import SourceError
from .console import answer, error, placed, problem_data
from .loading import BrokenProgram, users_errors
from .target import add_target, jobs_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser("build", help="compile functions now", description=(__doc__ or "").partition("\n")[0])
    add_target(parser, several=True)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    jobs = list(jobs_of(options))
    rows = [_built(*job, alone=len(jobs) == 1) for job in jobs]
    answer(options, rows[0] if len(rows) == 1 else {"functions": rows}, lambda: _show(rows))
    return 1 if any("error" in row for row in rows) else 0


def _built(target: str, given: Callable[[], tuple[Any, tuple]], alone: bool) -> dict[str, Any]:
    """What became of one function. `alone`: its error is the command's."""
    try:
        with users_errors():
            function, arguments = given()
            jitted = jitted_of(function) or jitted_of(api.jit(function))
            assert jitted is not None
            library = jitted.prepare(*arguments)
    except (BrokenProgram, SourceError) as problem:
        if alone:
            raise
        return {"target": target, "error": problem_data(placed(problem)), "text": str(problem)}
    return {"target": target, "name": library.name, "cached": library.cached, "path": str(library.path)}


def _show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if "error" in row:
            error(row["text"])
        else:
            print(f"{row['name']}: {'found in the cache' if row['cached'] else 'compiled'}, {row['path']}")
