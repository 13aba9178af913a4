"""What a user wrote beside the code: the docstring of the function, and comments at lines that survive.

In: rows of a function's body that know their places, and the user's file. Out: rows with the comments that
stand above, or behind, the lines that they come from.

    y = np.exp(x)  # no overflow     ->     exp_x = np.exp(x)  # no overflow
"""

from __future__ import annotations

import io
import linecache
import re
import tokenize

from metaphrase.source import Span, rows_at

ABOVE = 6  # lines of comment
PRAGMA = re.compile(r"# *(type:|noqa|pylint|pyright|mypy|fmt:|isort|pragma|%%|!)")


def with_comments(lines: list[str], file: str) -> list[str]:
    """The rows with the user's comments at what the user computed; rows of derivatives say what they are
    of."""
    comments = _comments(file) if file else {}
    made: list[str] = []
    seen: set[int] = set()
    survive = {s.line for row in lines if (s := _primal(row, file)) is not None}
    for row in lines:
        span = _primal(row, file)
        if comments and span is not None and span.line not in seen:
            seen.add(span.line)
            indent = row[: len(row) - len(row.lstrip())]
            made += rows_at([indent + text for text in _above(comments, span, survive)], span)
            text, alone = comments.get(span.line, ("", True))
            if not alone and "#" not in row and row[-1] not in "([{," and len(row) + len(text) <= 106:
                made += rows_at([f"{row}  {text}"], span, *getattr(row, "also", ()))
                continue
        made.append(row)
    return made


def _primal(row: str, file: str) -> Span | None:
    """The place of a row, if it is of what the user computed there."""
    span: Span | None = getattr(row, "span", None)
    return span if span is not None and span.file == file and span.role == "primal" else None


def _above(comments: dict[int, tuple[str, bool]], span: Span, survive: set[int]) -> list[str]:
    """The lines of comment above a line, also above lines that became one with it."""
    found: list[str] = []
    for line in range(span.line - 1, max(0, span.line - 1 - ABOVE), -1):
        text, alone = comments.get(line, ("", False))
        if alone:
            found.insert(0, text)
        elif (
            line in survive
            or not (code := linecache.getline(span.file, line).strip())
            or (code.startswith(("def ", "@", "for ", "while ", "if ", "else:")) or '"' * 3 in code)
        ):
            break
    return found


def _comments(file: str) -> dict[int, tuple[str, bool]]:
    """For each line with a comment its text, and whether nothing else stands there."""
    text = "".join(linecache.getlines(file))
    found: dict[int, tuple[str, bool]] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and not PRAGMA.match(token.string):
                found[token.start[0]] = token.string, not token.line[: token.start[1]].strip()
    except (tokenize.TokenError, SyntaxError):  # a notebook's cell with commands of its own
        return {}
    return found


def docstring(text: str) -> list[str]:
    """The rows of a docstring."""
    quotes = '"' * 3
    rows = text.replace("\\", "\\\\").replace(quotes, "'" * 3).strip().split("\n")
    if len(rows) == 1:
        return [f"    {quotes}{rows[0]}{' ' * rows[0].endswith(chr(34))}{quotes}"]
    return [f"    {quotes}{rows[0]}", *(f"    {row}".rstrip() for row in rows[1:]), f"    {quotes}"]


__all__ = ["docstring", "with_comments"]
