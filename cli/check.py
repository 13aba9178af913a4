"""`metaphrase check`: run every stage of functions and say whether each passes, without running the functions.

In: functions and types of their arguments; or files and folders, for all that they export. Out: one line a stage, or
one a signature where there are several, or the errors that point at the user's lines. Examples:

    metaphrase check orbit.py:period --args "f64, f64" --grad
    metaphrase check src                                    # what mp.export marks in the files below src
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..aot import exported
from ..aot.exported import calls_export
from ..api import public as api
from ..api.types import parse_arguments
from ..pipeline import STAGES
from ..source import SourceError
from .console import answer, error, placed, problem_data, table
from .loading import BrokenModule, TargetError, load_module
from .target import add_target, target_of


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "check", help="run every stage and report", description=(__doc__ or "").partition("\n")[0]
    )
    add_target(parser, several=True)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    rows = [_checked(*job) for target in options.targets for job in _jobs(target, options)]
    failed = any(not row["ok"] for row in rows)
    answer(options, {"ok": not failed, "functions": rows}, lambda: _show(rows))
    return 1 if failed else 0


Job = tuple[str, Callable[[], tuple[Any, tuple]]]


def _jobs(target: str, options: argparse.Namespace) -> Iterator[Job]:
    """(what it is called, what gives the function and its arguments) of each check that a target stands for."""
    if ":" in target:
        yield target, lambda: target_of(argparse.Namespace(**{**vars(options), "target": target}))
        return
    if options.args or options.transformations:
        raise TargetError(f"{target} is all that it exports; --args, --grad and --vmap are for FILE.py:FUNCTION")
    files = _files(Path(target)) if Path(target).is_dir() else [target]
    count = 0
    for file in files:
        for job in _exported(str(file), is_sure=str(file) == target):
            count += 1
            yield job
    if not count:
        raise TargetError(f"{target} exports no function; mark one by mp.export, or name FILE.py:FUNCTION")


def _files(folder: Path) -> list[Path]:
    """The Python files below a folder, but for what is hidden."""
    found = sorted(folder.rglob("*.py"))
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _exported(file: str, is_sure: bool) -> Iterator[Job]:
    """The signatures of a file. Of a folder's files only those are imported that export something."""
    try:
        functions = exported(load_module(file)) if is_sure or calls_export(Path(file)) else {}
    except (BrokenModule, SourceError) as problem:
        yield file, _raising(problem)
        return
    for name, function in functions.items():
        for text in function.exports:
            yield f"{file}:{name}({text})", lambda f=function, t=text: (f, parse_arguments(t))  # type: ignore[misc]


def _raising(problem: Exception) -> Callable[[], Any]:
    def give() -> Any:
        raise problem

    return give


def _checked(target: str, given: Callable[[], tuple[Any, tuple]]) -> dict[str, Any]:
    """The stages that a function passes, and the error that ends them."""
    stages: list[dict[str, Any]] = []
    row: dict[str, Any] = {"target": target, "ok": True, "stages": stages}
    try:
        function, arguments = given()
        for stage in STAGES:
            text = api.source(function, *arguments, stage=stage.name)
            stages.append({"stage": stage.name, "lines": len(text.splitlines()), "form": stage.form})
    except (BrokenModule, SourceError) as problem:
        row |= {"ok": False, "error": problem_data(placed(problem)), "text": str(problem)}
    return row


def _show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if not row["ok"]:
            error(row["text"])
    if len(rows) > 1:
        table([["ok" if row["ok"] else "FAILED", row["target"]] for row in rows])
    elif rows[0]["ok"]:
        table([[stage["stage"], "ok", f"{stage['lines']} lines", stage["form"]] for stage in rows[0]["stages"]])
