"""Output for a person: coloured where rich is installed and the output is a terminal, plain otherwise.

In: text. Out: text on stdout or stderr. Example: `code(source, "python")`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


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


def error(text: str) -> None:
    print(text, file=sys.stderr)
