"""The command `metaphrase`: show, check, explain, build, cache, doctor.

In: command-line arguments. Out: an exit status: 0, 1 when the user's program has an error, 2 when the command
line has. Example: `metaphrase show orbit.py:period --args "f64, f64" --grad --stage numpy`.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..api_types import ArgumentsError
from ..source import SourceError
from . import build as build_command
from . import cache, check, doctor, explain, show
from .console import error
from .target import TargetError

COMMANDS = (show, check, explain, build_command, cache, doctor)


def parser() -> argparse.ArgumentParser:
    """Every command adds its own part."""
    top = argparse.ArgumentParser(
        prog="metaphrase", description="Read, check and build what metaphrase makes of a NumPy program."
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return options.run(options)
    except (SourceError, ArgumentsError, TargetError) as problem:
        error(str(problem))
        return 2 if isinstance(problem, (ArgumentsError, TargetError)) else 1
    except BrokenPipeError:
        sys.stderr.close()
        return 0


if __name__ == "__main__":
    sys.exit(main())
