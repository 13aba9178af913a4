"""`metaphrase show`: any stage of functions, as text.

In: functions and types of their arguments; or files and folders, for what they export. Out: text on stdout. Example:
`metaphrase show orbit.py:period --args "f64, f64" --grad --stage core`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ..api import public as api
from ..pipeline import STAGES
from ..source import SourceError
from .console import answer, code, error, placed, problem_data
from .loading import BrokenProgram, users_errors
from .target import add_target, jobs_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "show", help="print a stage of a function", description=(__doc__ or "").partition("\n")[0]
    )
    add_target(parser, several=True)
    parser.add_argument(
        "--stage", default="numpy", choices=[stage.name for stage in STAGES], help="which one (default: numpy)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    jobs = list(jobs_of(options))
    rows = [_shown(*job, stage=options.stage, alone=len(jobs) == 1) for job in jobs]
    answer(options, rows[0] if len(rows) == 1 else {"functions": rows}, lambda: _show(rows))
    return 1 if any("error" in row for row in rows) else 0


def _shown(target: str, given: Callable[[], tuple[Any, tuple]], stage: str, alone: bool) -> dict[str, Any]:
    """The text of one function. `alone`: its error is the command's."""
    row = {"target": target, "stage": stage}
    try:
        with users_errors():
            function, arguments = given()
            return {**row, "text": api.source(function, *arguments, stage=stage)}
    except (BrokenProgram, SourceError) as problem:
        if alone:
            raise
        return {**row, "error": problem_data(placed(problem)), "message": str(problem)}


def _show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if "error" in row:
            error(row["message"])
        else:
            code(row["text"] if len(rows) == 1 else f"# {row['target']}\n{row['text']}\n")
