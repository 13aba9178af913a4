"""The source files that a program comes from: a plan is for these, to the letter.

In: functions and classes that a program ran through. Out: {module: digest of its file}, of their modules and of all
that these import, as far as users wrote them. What guards compare tells most changes; that a member of an enum has
another value, a class another registration, a base another attribute is told by the text alone. Example:

    digests = modules_of([step, Body])       # {"main": "5f0c...", "physics": "9a41..."}

The file of what IPython's cells define is the cells (cells.py).
    still_so(digests)                        # in another process, later

Raises `NotPortable` where a program has no file, or its file has changed since the process began.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import re
import sys
import time
import types
from collections.abc import Iterable, Iterator

from ...digests import sha256
from ...source import is_installed, is_library
from .cells import session_text
from .fingerprints import NotPortable

_BEGUN = time.time_ns()
MOST = 500  # modules


def modules_of(values: Iterable[types.FunctionType | type]) -> dict[str, str]:
    """See the head of this file."""
    digests: dict[str, str] = {}
    todo = sorted({value.__module__ for value in values if not is_library(value.__module__)})
    while todo:
        name = todo.pop()
        if name in digests:
            continue
        cells = session_text(name)
        if cells is not None:
            digests[name] = _digest_of(cells.encode("utf-8", "surrogatepass"))
            todo += _users_own(_imports(cells, name))
            continue
        path = _file(name)
        if path is None:
            raise NotPortable(f"the module {name}, which has no file")
        digests[name] = _digest(path, _stamp(path))
        if os.stat(path).st_mtime_ns > _BEGUN:
            raise NotPortable(f"the file of {name}, which has changed since the process began")
        if len(digests) > MOST:
            raise NotPortable(f"more than {MOST} modules")
        if not is_installed(path):
            todo += _users_own(_imported(name, path, _stamp(path)))
    return digests


def _users_own(names: Iterable[str]) -> list[str]:
    return [one for one in names if _file(one) and not is_library(one)]


def still_so(digests: dict[str, str]) -> bool:
    """Whether these modules are here, with the same text."""
    for name, digest in digests.items():
        cells, path = session_text(name), _file(name)
        if cells is not None:
            now = _digest_of(cells.encode("utf-8", "surrogatepass"))
        elif path is not None:
            now = _digest(path, _stamp(path))
        else:
            return False
        if now != digest:
            return False
    return True


def module_of_file(path: str) -> str | None:
    """The name of the module that a file is."""
    return next((name for name, module in [*sys.modules.items()] if getattr(module, "__file__", None) == path), None)


def _file(name: str) -> str | None:
    path = getattr(sys.modules.get(name), "__file__", None)
    return path if isinstance(path, str) and path.endswith(".py") and os.path.isfile(path) else None


def _stamp(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


@functools.lru_cache(maxsize=1024)
def _digest(path: str, stamp: tuple[int, int]) -> str:
    with open(path, "rb") as file:
        return _digest_of(file.read())


def _digest_of(text: bytes) -> str:
    return sha256(text).hexdigest()[:32]


@functools.lru_cache(maxsize=1024)
def _imported(name: str, path: str, stamp: tuple[int, int]) -> tuple[str, ...]:
    """The modules that a file imports anywhere, by their full names, and their packages."""
    package = name if path.endswith("__init__.py") else name.rpartition(".")[0]
    with open(path, encoding="utf-8", errors="replace") as file:
        return _imports(file.read(), package)


def _imports(text: str, package: str) -> tuple[str, ...]:
    text = text.replace("\\\n", " ")
    full = [one for found in re.finditer(_IMPORT, text, re.MULTILINE) for one in _names(found, package)]
    return tuple({".".join(one.split(".")[: k + 1]) for one in full for k in range(one.count(".") + 1)})


# What looks like one and is none does no harm. It is looked for as text: large projects would wait for a parser.
_IMPORT = r"(?:^|[:;])[ \t]*(?:import[ \t]+([^\n#;]+)|from[ \t]+([.\w]+)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]+))"


def _names(found: re.Match[str], package: str) -> Iterator[str]:
    modules, base, parts = found.groups()
    for part in (modules or parts).strip("() \t\n").split(","):
        name = re.sub(r"#[^\n]*", "", part).split(" as ")[0].strip()
        if base is None:
            yield name
            continue
        with contextlib.suppress(ImportError):  # a relative import that leaves its package
            home = importlib.util.resolve_name(base, package) if base.startswith(".") else base
            yield from (home, f"{home}.{name}")


__all__ = ["module_of_file", "modules_of", "still_so"]
