"""The command `metaphrase`: show, check, explain, build, compile, cache, doctor, completion.

In: command-line arguments. Out: an exit status: 0, 1 when the user's program has an error, 2 when the command
line has, or a place can't be written. Example:
`metaphrase show orbit.py:period --args "f64, f64" --grad --stage numpy`.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import sys
from collections.abc import Sequence

from .. import __version__
from ..api.types import ArgumentsError
from ..source import SourceError
from . import build as build_command
from . import cache, check, completion, doctor, explain, show
from . import compile as compile_command
from .console import error, placed, problem_data
from .loading import BrokenProgram, TargetError, imports_apart, users_errors

COMMANDS = (show, check, explain, build_command, compile_command, cache, doctor)


def parser() -> argparse.ArgumentParser:
    """Every command adds its own part."""
    top = argparse.ArgumentParser(
        prog="metaphrase",
        description="Read, check and build what metaphrase makes of a NumPy program.",
        epilog="Exit status: 0; 1 where the user's program has an error, or something does not work; 2 where the "
        "command line has one, or a place can't be written.",
    )
    top.add_argument("--version", action="version", version=f"metaphrase {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add(commands)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print what was found as JSON")
    completion.add(commands)
    return top


_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)  # what writing to a stream can raise


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        status = _run(options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as problem:
        if problem.filename is not None or problem.errno not in _OF_OUTPUT:
            raise
        with contextlib.suppress(OSError):  # what is left to print would fail once more when the process ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        error(f"the output can't be written: {problem.strerror}")
        return 2


def _run(options: argparse.Namespace) -> int:
    try:
        with imports_apart(), users_errors():
            return options.run(options)
    except (SourceError, ArgumentsError, TargetError, BrokenProgram) as problem:
        error(str(placed(problem)))
        if getattr(options, "json", False):
            print(json.dumps({"error": problem_data(problem)}, indent=2))
        return 2 if isinstance(problem, (ArgumentsError, TargetError)) else 1


if __name__ == "__main__":
    sys.exit(main())
