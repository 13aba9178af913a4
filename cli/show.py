"""`metaphrase show`: any stage of a function, as text.

In: a function and types of its arguments. Out: the text on stdout. Example:
`metaphrase show orbit.py:period --args "f64, f64" --grad --stage core`.
"""

from __future__ import annotations

import argparse

from ..pipeline import STAGES
from .console import answer, code
from .target import add_target, target_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "show", help="print a stage of a function", description=(__doc__ or "").partition("\n")[0]
    )
    add_target(parser)
    parser.add_argument(
        "--stage", default="numpy", choices=[stage.name for stage in STAGES], help="which one (default: numpy)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..api import public as api

    function, arguments = target_of(options)
    text = api.source(function, *arguments, stage=options.stage)
    answer(options, {"target": options.target, "stage": options.stage, "text": text}, lambda: code(text))
    return 0
