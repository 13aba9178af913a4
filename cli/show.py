"""`metaphrase show`: any stage of functions, as text.

In: functions and types of their arguments; or files and folders, for what they export. Out: text on stdout. Example:
`metaphrase show orbit.py:period --args "f64, f64" --grad --stage core`.
"""

from __future__ import annotations

import argparse
from typing import Any

from ..api import public as api
from ..pipeline import STAGES
from .console import code
from .target import add_target, told_of_each


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "show", help="print a stage of functions", description=(__doc__ or "").partition("\n")[0]
    )
    add_target(parser, several=True)
    parser.add_argument(
        "--stage", default="numpy", choices=[stage.name for stage in STAGES], help="which one (default: numpy)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    def stage(function: Any, args: tuple, kwargs: dict) -> dict[str, Any]:
        return {"stage": options.stage, "text": api.source(function, *args, stage=options.stage, **kwargs)}

    def show(row: dict[str, Any]) -> None:
        code(row["text"] if options.targets == [row["target"]] else f"# {row['target']}\n{row['text']}\n")

    return told_of_each(options, stage, show)
