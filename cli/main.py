"""The command `metaphrase`: show, check, explain, build, compile, cache, doctor.

In: command-line arguments. Out: an exit status: 0, 1 when the user's program has an error, 2 when the command
line has. Example: `metaphrase show orbit.py:period --args "f64, f64" --grad --stage numpy`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from .. import __version__
from ..api.types import ArgumentsError
from ..source import SourceError
from . import build as build_command
from . import cache, check, doctor, explain, show
from . import compile as compile_command
from .console import error
from .loading import BrokenModule, TargetError, imports_apart

COMMANDS = (show, check, explain, build_command, compile_command, cache, doctor)


def parser() -> argparse.ArgumentParser:
    """Every command adds its own part."""
    top = argparse.ArgumentParser(
        prog="metaphrase", description="Read, check and build what metaphrase makes of a NumPy program."
    )
    top.add_argument("--version", action="version", version=f"metaphrase {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        with imports_apart():
            return options.run(options)
    except (SourceError, ArgumentsError, TargetError) as problem:
        if isinstance(problem, SourceError) and problem.span and _command(problem.span.file):
            problem.span = None
        error(str(problem))
        return 2 if isinstance(problem, (ArgumentsError, TargetError)) else 1
    except BrokenModule as problem:
        error(str(problem))
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 0


def _command(file: str) -> bool:
    """Whether a place is the call of this command, which is no place in the user's program."""
    return os.path.abspath(file) in (os.path.abspath(sys.argv[0]), os.path.abspath(__file__))


if __name__ == "__main__":
    sys.exit(main())
