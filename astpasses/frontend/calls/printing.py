"""`print`, `str`, `repr`, `format` on staged values.

In: the arguments of the call. Out: a `print_` Let in program order, or a `Text`.

    print("x is", x, end="")        print_(x, template="x is {}", end="")
"""

from __future__ import annotations

import builtins
import string
import sys
from typing import Any

from metaphrase.astpasses.library.lists import print_items
from metaphrase.ops.effects import print_

from ..flow.gathering import length
from ..staging.session import Session, session
from .call import call_value, handles
from .text import Listing, Text, escaped, field_of, joined, shown, string_of


@handles(print)
def print__(*args: Any, sep: Any = None, end: Any = None, file: Any = None, flush: Any = False) -> None:
    here = session()
    options: dict[str, Any] = {}
    if file is sys.stderr and file is not sys.stdout:
        options["stream"] = "stderr"
    elif file is not None and file is not sys.stdout:
        raise here.dtype_error(
            "print into a file is not supported while staged", remedy="print to sys.stdout or sys.stderr"
        )
    parts: list = []
    for k, arg in enumerate(args):
        parts += [" " if sep is None else sep] * (k > 0) + [string_of(arg)]
    text = joined(parts)
    pieces: list = cut(text) if isinstance(text, Text) else [escaped(text), ()]
    while len(pieces) > 2:
        template, values, listing, *pieces = pieces
        here.emit(print_, *map(here.atom, values), template=template + "[", end="", **options)
        print_list(here, listing, options)
        pieces[0] = "]" + pieces[0]
    if end not in (None, "\n"):
        options["end"] = end
    if flush:
        options["flush"] = True
    template, values = pieces
    here.emit(print_, *map(here.atom, values), template=template, **options)


def cut(text: Text) -> list:
    """A text at the lists in it: a template and its values, the list, a template and its values, ..."""
    pieces: list = ["", ()]
    given = iter(text.shown)
    for literal, field, spec, conversion in string.Formatter().parse(text.template):
        pieces[-2] += escaped(literal)
        if field is None:
            continue
        value = next(given)
        if isinstance(value, Listing):
            pieces += [value, "", ()]
            continue
        pieces[-2] += field_of(conversion, spec)
        pieces[-1] = (*pieces[-1], value)
    return pieces


def print_list(here: Session, listing: Listing, options: dict) -> None:
    """The items of a list whose length the run may decide, with commas between them."""
    behind: Any = False
    file = getattr(sys, options.get("stream", "stdout"))
    for part in listing.parts:
        rows = here.born([part])
        call_value(print_items, (rows, behind, file), {})
        behind = behind | (length(here, rows) > 0)


def write(stream: Any, name: str, text: Any = "") -> Any:
    """`sys.stdout.write(text)` and `sys.stdout.flush()`."""
    print__(text, end="", file=stream, flush=name == "flush")
    return len(text) if isinstance(text, str) and name == "write" else None


@handles(str)
def str_(value: Any = "", *rest: Any) -> Any:
    if rest or isinstance(value, str):
        return str(value, *rest)
    return string_of(value)


@handles(repr)
def repr_(value: Any) -> Any:
    return shown(value, "r")


@handles(builtins.format)
def format_(value: Any, spec: Any = "") -> Any:
    return shown(value, "", spec)


def joined_by(separator: str, parts: Any) -> Any:
    """`separator.join(parts)`."""
    made: list = []
    for part in parts:
        if not isinstance(part, (str, Text)):
            raise TypeError(f"sequence item {len(made)}: expected str instance, {type(part).__name__} found")
        made += [separator] * bool(made) + [part]
    return joined(made)
