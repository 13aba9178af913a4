"""Output for a person: coloured where rich is installed and the output is a terminal, plain otherwise.

In: text, or what `--json` prints. Out: text on stdout or stderr. Example: `code(source, "python")`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..source import SourceError


def _rich_console():
    if not sys.stdout.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console()


def code(text: str, language: str = "python") -> None:
    """Print program text."""
    console = _rich_console()
    if console is None:
        print(text.rstrip("\n"))
        return
    from rich.syntax import Syntax

    console.print(Syntax(text.rstrip("\n"), language, background_color="default", word_wrap=False))


def table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns."""
    if not rows:
        return
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def answer(options: argparse.Namespace, data: Any, show: Callable[[], None]) -> None:
    """What a command found: as JSON where `--json` asks for that, and for people elsewhere."""
    if options.json:
        print(json.dumps(data, indent=2, default=str))
    else:
        show()


def placed(problem: Exception) -> Exception:
    """An error whose place is in the user's program: the call of this command is none."""
    span = getattr(problem, "span", None)
    if isinstance(problem, SourceError) and span and os.path.abspath(span.file) in _COMMAND:
        problem.span = None
    return problem


_COMMAND = {os.path.abspath(sys.argv[0]), os.path.join(os.path.dirname(os.path.abspath(__file__)), "main.py")}


def problem_data(problem: Exception) -> dict[str, Any]:
    """An error as JSON says it."""
    span = getattr(problem, "span", None)
    place = {"file": span.file, "line": span.line, "column": span.column + 1} if span else {}
    more = {"code": problem.code, "remedy": problem.remedy} if isinstance(problem, SourceError) else {}
    return {"message": getattr(problem, "message", str(problem)), **place, **more}


def error(text: str) -> None:
    print(text, file=sys.stderr)
