"""`print`, `str`, `repr`, `format` on staged values.

In: the arguments of the call. Out: a `print_` Let in program order, or a `Text`.

    print("x is", x, end="")        print_(x, template="x is {}", end="")
"""

from __future__ import annotations

import builtins
import sys
from typing import Any

from metaphrase.ops.effects import print_

from ..staging.session import session
from .call import handles
from .text import Text, escaped, joined, shown, string_of


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
    if end not in (None, "\n"):
        options["end"] = end
    if flush:
        options["flush"] = True
    parts: list = []
    for k, arg in enumerate(args):
        parts += [" " if sep is None else sep] * (k > 0) + [string_of(arg)]
    text = joined(parts)
    template, values = (text.template, text.values) if isinstance(text, Text) else (escaped(text), ())
    here.emit(print_, *(here.atom(v) for v in values), template=template, **options)


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


__all__ = ["print__", "joined_by"]
