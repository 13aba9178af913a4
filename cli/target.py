"""`FILE.py:name` -> the function, with the transformations asked for around it.

In: the options `target`, `--args`, `--grad`, `--vmap`. Out: a callable and its arguments. Example:

    metaphrase show orbit.py:period --args "f64[n], f64" --grad --vmap 0,None
    # vmap(grad(period), in_axes=(0, None)): the transformations apply in the order in which they are written

Several targets, of which FILE.py and folders stand for what they export, are `jobs_of(options)`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..aot import exported
from ..aot.exported import calls_export
from ..api.text import user_function
from ..api.types import parse_call_of
from ..source import SourceError
from .console import answer, error, placed, problem_data
from .loading import BrokenProgram, TargetError, load_module, users_errors


class _Transformation(argparse.Action):
    """Appends (name, value) to `transformations`, so that the order of --grad and --vmap is kept."""

    def __call__(self, parser: Any, options: Any, values: Any, option: Any = None) -> None:
        options.transformations = [*(options.transformations or []), (option.lstrip("-"), values)]


def add_target(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """The options that name a function and its arguments; or `several`, or what files and folders export."""
    which = "the function; package.module:function works as well"
    if several:
        which += "; FILE.py, or a folder, for all that it exports"
        parser.add_argument("targets", nargs="+", metavar="FILE.py:FUNCTION", help=which)
    else:
        parser.add_argument("target", metavar="FILE.py:FUNCTION", help=which)
    parser.add_argument(
        "--args",
        default="",
        metavar="TYPES",
        dest="args",
        help="types of the arguments, such as \"f64[n, 3], {'w': f32}, True\"",
    )
    parser.set_defaults(transformations=None)
    parser.add_argument(
        "--grad",
        nargs=0,
        action=_Transformation,
        help="differentiate (the first argument); `--grad --vmap 0` batches the derivative, "
        "`--vmap 0 --grad` differentiates the batch",
    )
    parser.add_argument(
        "--vmap", action=_Transformation, metavar="AXES", help="batch over these axes, such as 0 or 0,None"
    )


def load(target: str) -> Callable[..., Any]:
    """The function that FILE.py:name or module:name means; name may have dots."""
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise TargetError(f"{target!r} is not of the form FILE.py:FUNCTION")
    module = load_module(place)
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            functions = sorted(
                k
                for k, v in vars(module).items()
                if callable(v) and not k.startswith("_") and getattr(v, "__module__", None) == module.__name__
            )
            raise TargetError(f"{place} defines no {name}; it defines {', '.join(functions) or 'no functions'}")
        value = getattr(value, part)
    if not callable(value):
        raise TargetError(f"{target} is a {type(value).__name__}, not a function")
    return value


def axes(text: str) -> Any:
    """`0` -> 0, `0,None` -> (0, None)."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise TargetError(f"--vmap takes axes such as 0 or 0,None, not {text!r}") from None


def target_of(options: argparse.Namespace) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function, transformed as asked, and stand-ins for its arguments."""
    from ..api import public as api

    function = load(options.target)
    args, kwargs = parse_call_of(_signature(function), options.args)
    if not options.args and getattr(options, "time", None) is not None:
        args = values_of(function, options.time)
    _fits(options.target, function, args, kwargs)
    for kind, value in options.transformations or []:
        function = api.grad(function) if kind == "grad" else api.vmap(function, in_axes=axes(value))
    return function, args, kwargs


def values_of(function: Any, text: str) -> tuple[Any, ...]:
    """Arguments that are written as in a call, among the names of the function's module, and `np`."""
    names = {"np": np, **user_function(function).__globals__}
    try:
        values = eval(f"({text},)", names)
    except Exception as problem:
        raise TargetError(f"--time {text!r}: {type(problem).__name__}: {problem}") from None
    return values


Job = tuple[str, Callable[[], tuple[Any, tuple, dict]]]


def jobs_of(options: argparse.Namespace) -> Iterator[Job]:
    """(what it is called, what gives the function and its arguments) of all that `targets` stand for."""
    for target in options.targets:
        yield from _jobs(target, options)


def told_of_each(
    options: argparse.Namespace,
    tell: Callable[[Any, tuple, dict], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
) -> int:
    """Say what `tell` finds of each function; the exit status. The error of one of several stands in its place."""
    jobs, rows = list(jobs_of(options)), []
    for target, given in jobs:
        try:
            with users_errors():
                rows.append({"target": target, **tell(*given())})
        except (BrokenProgram, SourceError) as problem:
            if len(jobs) == 1:
                raise
            rows.append({"target": target, "error": problem_data(placed(problem)), "message": str(problem)})

    def each() -> None:
        for row in rows:
            error(row["message"]) if "error" in row else show(row)

    answer(options, rows[0] if is_one(options) and len(rows) == 1 else {"functions": rows}, each)
    return 1 if any("error" in row for row in rows) else 0


def is_one(options: argparse.Namespace) -> bool:
    """Whether the command line names one function."""
    return len(options.targets) == 1 and ":" in options.targets[0]


def _jobs(target: str, options: argparse.Namespace) -> Iterator[Job]:
    if ":" in target:
        yield from _of_one(target, options)
        return
    if options.args or options.transformations:
        raise TargetError(f"{target} is all that it exports; --args, --grad and --vmap are for FILE.py:FUNCTION")
    files = files_of(Path(target)) if Path(target).is_dir() else [target]
    count = 0
    for file in files:
        for job in _exported(str(file), is_sure=str(file) == target):
            count += 1
            yield job
    if not count:
        raise TargetError(f"{target} exports no function; mark one by mp.export, or name FILE.py:FUNCTION")


def _of_one(target: str, options: argparse.Namespace) -> Iterator[Job]:
    """One function, for the types that it exports where the command line says none."""

    def job(args: str) -> Callable[[], tuple[Any, tuple, dict]]:
        return lambda: target_of(argparse.Namespace(**{**vars(options), "target": target, "args": args}))

    exports: tuple[str, ...] = ()
    if not options.args and getattr(options, "time", None) is None:
        try:
            exports = getattr(load(target), "exports", ())
        except (BrokenProgram, SourceError) as problem:
            yield target, _raising(problem)
            return
    if len(exports) < 2:
        yield target, job(options.args or "".join(exports))
    for text in exports[1:] and exports:
        yield f"{target}({text})", job(text)


def files_of(folder: Path) -> list[Path]:
    """The Python files below a folder, but for what is hidden."""
    found = sorted(folder.rglob("*.py"))
    return [path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts)]


def _exported(file: str, is_sure: bool) -> Iterator[Job]:
    """The signatures of a file. Of a folder's files only those are imported that export something."""
    try:
        functions = exported(load_module(file)) if is_sure or calls_export(Path(file)) else {}
    except (BrokenProgram, SourceError) as problem:
        yield file, _raising(problem)
        return
    for name, function in functions.items():
        for text in function.exports:
            yield f"{file}:{name}({text})", lambda f=function, t=text: (f, *parse_call_of(_signature(f), t))  # type: ignore[misc]


def _raising(problem: Exception) -> Callable[[], Any]:
    def give() -> Any:
        raise problem

    return give


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except ValueError:
        return None


def _fits(target: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    signature = _signature(function)
    if signature is None:
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as problem:
        raise TargetError(
            f'{target}: {problem}; --args gives the type of each argument of {signature}, as in "f64[n], f64"'
        ) from None
