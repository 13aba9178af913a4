"""`metaphrase check`: run every stage of a function and say whether it passes, without running the function.

In: functions and types of their arguments. Out: one line a stage, or the error that points at the user's
line. Example: `metaphrase check orbit.py:period --args "f64, f64" --grad`.
"""

from __future__ import annotations

import argparse

from ..pipeline import STAGES
from .console import table
from .target import add_target, target_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "check", help="run every stage and report", description=(__doc__ or "").partition("\n")[0]
    )
    add_target(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..api import public as api

    function, arguments = target_of(options)
    rows = []
    for stage in STAGES:
        text = api.source(function, *arguments, stage=stage.name)
        rows.append([stage.name, "ok", f"{len(text.splitlines())} lines", stage.form])
    table(rows)
    return 0
