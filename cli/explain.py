"""`metaphrase explain`: what a function became: types, captured values, loops, copies, the cost of each line, times.

In: functions and types of their arguments; or files and folders, for all that they export. Out: a report on stdout, or
a page if asked. Examples:

    metaphrase explain lu.py:lu --args "f64[n, n]"
    metaphrase explain lu.py:lu --args "f64[n, n]" --html lu.html
    metaphrase explain lu.py:lu --time "np.random.rand(300, 300)" --html lu.html
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from ..explanation import Explained, NotTimed, explained, page, report
from ..gpu_kernels import kernels
from ..source import SourceError
from .console import answer, error, placed, problem_data
from .loading import BrokenProgram, TargetError, users_errors
from .target import add_target, is_one, jobs_of, values_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "explain", help="say what a function became", description=(__doc__ or "").partition("\n")[0]
    )
    add_target(parser, several=True)
    parser.add_argument("--gpu", action="store_true", help="also the kernels that a GPU would run")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="write a page of the lines and what became of each, vectors included"
    )
    parser.add_argument(
        "--time",
        metavar="ARGUMENTS",
        help="also measure how long each part takes, with arguments that are written as in a call, among the names of "
        "the function's module",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.html is not None:
        _written(options.html, None)
    if options.time is not None and not is_one(options):
        raise TargetError("--time is for one function: FILE.py:FUNCTION")
    found = [(target, _explained(job, options)) for target, job in jobs_of(options)]
    if options.html is not None:
        _written(options.html, page([(target, one) if isinstance(one, Exception) else one for target, one in found]))
    rows = [{"target": target, **_row(one)} for target, one in found]
    where = {} if options.html is None else {"html": str(options.html)}
    told = rows[0] if is_one(options) and len(rows) == 1 else {"functions": rows}
    answer(options, {**told, **where}, lambda: _show(options, found))
    return 1 if any(isinstance(one, Exception) for _, one in found) else 0


def _explained(given: Any, options: argparse.Namespace) -> Explained | Exception:
    """What one of several functions became, or why it became nothing."""
    try:
        with users_errors():
            function, args, kwargs = given()
            one = explained(function, *args, **kwargs)
            if options.time is not None:
                one.time(values_of(function, options.time) if options.args else ())
            if options.gpu:
                one.told["GPU kernels"] = [str(kernel) for kernel in kernels(function, *args, **kwargs)]
            return one
    except NotTimed as problem:
        raise TargetError(str(problem)) from None
    except (BrokenProgram, SourceError) as problem:
        if is_one(options):
            raise
        return placed(problem)


def _row(one: Explained | Exception) -> dict[str, Any]:
    return one.told if isinstance(one, Explained) else {"error": problem_data(one)}


def _show(options: argparse.Namespace, found: list[tuple[str, Explained | Exception]]) -> None:
    for target, one in found:
        if not isinstance(one, Explained):
            error(str(one))
        elif options.html is None:
            print(report(one.told) if len(found) == 1 else f"# {target}\n{report(one.told)}\n")
    if options.html is not None:
        print(options.html)


def _written(path: Path, text: str | None) -> None:
    """Write the page; without a text, find out that this can be done."""
    try:
        if text is not None:
            path.write_text(text, encoding="utf-8")
        elif path.is_dir():
            raise TargetError(f"--html {path}: this is a folder; name a file in it")
        elif not path.parent.is_dir():
            raise TargetError(f"--html {path}: there is no folder {path.parent}")
        elif not os.access(path if path.exists() else path.parent, os.W_OK):
            raise TargetError(f"--html {path}: it may not be written to")
    except OSError as problem:
        raise TargetError(f"--html {path}: {problem.strerror or problem}") from problem
