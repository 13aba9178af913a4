"""`metaphrase check`: run every stage of functions and say whether each passes, without running the functions.

In: functions and types of their arguments; or files and folders, for all that they export. Out: one line a stage, or
one a signature where there are several, or the errors that point at the user's lines. Examples:

    metaphrase check orbit.py:period --args "f64, f64" --grad
    metaphrase check src                                    # what mp.export marks in the files below src
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ..api import public as api
from ..pipeline import STAGES
from ..source import SourceError
from .console import answer, error, placed, problem_data, table
from .loading import BrokenProgram, users_errors
from .target import add_target, jobs_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "check", help="run every stage and report", description=(__doc__ or "").partition("\n")[0]
    )
    add_target(parser, several=True)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    rows = [_checked(*job) for job in jobs_of(options)]
    failed = any(not row["ok"] for row in rows)
    answer(options, {"ok": not failed, "functions": rows}, lambda: _show(rows))
    return 1 if failed else 0


def _checked(target: str, given: Callable[[], tuple[Any, tuple, dict]]) -> dict[str, Any]:
    """The stages that a function passes, and the error that ends them."""
    stages: list[dict[str, Any]] = []
    row: dict[str, Any] = {"target": target, "ok": True, "stages": stages}
    try:
        with users_errors():
            function, args, kwargs = given()
            for stage in STAGES:
                text = api.source(function, *args, stage=stage.name, **kwargs)
                stages.append({"stage": stage.name, "lines": len(text.splitlines()), "form": stage.form})
    except (BrokenProgram, SourceError) as problem:
        row |= {"ok": False, "error": problem_data(placed(problem)), "text": str(problem)}
    return row


def _show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if not row["ok"]:
            error(row["text"])
    if len(rows) > 1:
        table([["ok" if row["ok"] else "FAILED", row["target"]] for row in rows])
    elif rows[0]["ok"]:
        table([[stage["stage"], "ok", f"{stage['lines']} lines", stage["form"]] for stage in rows[0]["stages"]])
