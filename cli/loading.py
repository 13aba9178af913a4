"""FILE.py, or the dotted name of a module -> the module, imported.

In: a text of the command line. Out: the module, under the name that its file has: `orbits.py` is `orbits`, and
`pkg/orbits.py` is `pkg.orbits` where `pkg` is a package. Names are looked for in the folder one is in first. Example:

    with imports_apart():
        module = load_module("examples/kepler.py")          # module.__name__ == "kepler"

Raises TargetError for what is no module, and BrokenProgram, which shows the user's line, for one that fails.
`users_errors` makes one of what a function raises while it is translated.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path

from ..api.tracebacks import is_users_error, shorten
from ..api.types import ArgumentsError
from ..source import SourceError, Span, excerpt


class TargetError(ValueError):
    """The module or function that the command line names can't be had."""


class BrokenProgram(Exception):
    """An exception of the user's program: of a module that is imported, of a function that is translated; at `span`,
    if that is known."""

    def __init__(self, message: str, span: Span | None):
        super().__init__(f"{span}: {message}\n{excerpt(span)}".rstrip() if span else message)
        self.message, self.span = message, span


@contextlib.contextmanager
def imports_apart() -> Iterator[None]:
    """What is loaded meanwhile is forgotten at the end."""
    path, before = [*sys.path], {*sys.modules}
    try:
        yield
    finally:
        sys.path[:] = path
        for name in _loaded:
            top = name.partition(".")[0]
            for known in [known for known in {*sys.modules} - before if known.partition(".")[0] == top]:
                del sys.modules[known]
        _loaded.clear()


_loaded: set[str] = set()


def load_module(place: str) -> types.ModuleType:
    """See the head of this file."""
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise TargetError(f"there is no file {place}")
        return _imported(place, *_name_of(Path(place).resolve()))
    hint = f"; did you mean {place}.py?" if Path(f"{place}.py").is_file() else ""
    if not all(part.isidentifier() for part in place.split(".")):
        raise TargetError(f"{place!r} is neither FILE.py nor the name of a module{hint}")
    if not sys.flags.safe_path and sys.path[:1] not in ([""], [os.getcwd()]):  # as `python -m` does
        sys.path.insert(0, os.getcwd())
    try:
        is_there = importlib.util.find_spec(place) is not None
    except ModuleNotFoundError:
        is_there = False
    except (Exception, SystemExit) as problem:  # of a package that it is in
        raise _broken(place, problem) from None
    if not is_there:
        raise TargetError(f"the module {place} can't be imported: there is none of this name{hint}")
    return _imported(place, place, None)


def _name_of(path: Path) -> tuple[str, Path]:
    """The dotted name of a file, and the folder that it is imported from."""
    names, folder = [path.stem], path.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return ".".join(names), folder


def _imported(place: str, name: str, folder: Path | None) -> types.ModuleType:
    arguments, sys.argv = sys.argv, [place]  # ours are not the module's
    if folder is not None:
        sys.path.insert(0, str(folder))
    _loaded.add(name)
    try:
        if folder is None or "." in name:
            return importlib.import_module(name)
        return _of_file(name, Path(place))
    except SourceError:
        raise
    except (Exception, SystemExit) as problem:
        raise _broken(place, problem) from None
    finally:
        sys.argv = arguments


def _of_file(name: str, path: Path) -> types.ModuleType:
    """The module of a file, whose name may be one that another module has."""
    name = re.sub(r"\W", "_", name)
    while name in sys.modules or name in sys.stdlib_module_names:
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _loaded.add(name)
    spec.loader.exec_module(module)
    return module


def _broken(place: str, problem: BaseException) -> BrokenProgram:
    """One error, at the last line of the user's that it passed."""
    said = traceback.format_exception_only(problem)[-1].strip()
    if isinstance(problem, SystemExit):
        said = "it ends the process (SystemExit)"
    if isinstance(problem, ArgumentsError):
        said = str(problem)  # which is about the types that a module exports: it needs no class
    return BrokenProgram(f"{place} can't be imported: {said}", _span(problem))


@contextlib.contextmanager
def users_errors() -> Iterator[None]:
    """What the user's function raises as a BrokenProgram. Our own faults keep their tracebacks."""
    try:
        yield
    except (SourceError, ArgumentsError, TargetError, BrokenProgram, BrokenPipeError):
        raise
    except Exception as problem:
        if not is_users_error(problem):
            raise
        shorten(problem)
        span = _span(problem)
        if span is None:
            raise
        raise BrokenProgram(traceback.format_exception_only(problem)[-1].strip(), span) from problem


def _span(problem: BaseException) -> Span | None:
    if isinstance(problem, SyntaxError) and problem.filename and problem.lineno:
        return Span(problem.filename, problem.lineno, max((problem.offset or 1) - 1, 0))
    libraries = (str(Path(__file__).parent), "<frozen", sys.base_prefix + "/lib", sys.prefix + "/lib")
    ours = str(Path(importlib.import_module(__package__.partition(".")[0]).__file__ or "").parent)
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if frame.lineno and not frame.filename.startswith((*libraries, ours)):
            one_line = frame.end_lineno in (None, frame.lineno)
            return Span(frame.filename, frame.lineno, frame.colno or 0, None, frame.end_colno if one_line else None)
    return None


__all__ = ["BrokenProgram", "TargetError", "imports_apart", "load_module", "users_errors"]
