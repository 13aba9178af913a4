"""Whether a case means the same to Python and to every stage.

In: a `Case`. Out: nothing, `Refused` (with the refusal's code), or `Disagreement`. Python's own result is
compared with the normal form, the control stage on NumPy, the evaluated core program, the NumPy source and
native code: to the bit where the case is exact, else as near as the case is well conditioned. Example:

    check(case)
"""

from __future__ import annotations

import contextlib
import itertools
import linecache
import logging
import types
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import metaphrase as mp
from metaphrase.astpasses.frontend.rewrite.convert import converted
from metaphrase.astpasses.frontend.rewrite.normal import normal
from metaphrase.astpasses.frontend.rewrite.plain import stager
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.schedule import outline
from metaphrase.core.check import check as check_core
from metaphrase.core.evaluate import evaluate
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.source import SourceError

from . import derivatives, lanes, transformed
from .outcomes import Outcome, difference, outcome
from .programs import Case

numbers = itertools.count()
NEAR = 1e-9


class Refused(Exception):
    """The front end refuses the program; `code` says why."""

    def __init__(self, error: SourceError):
        super().__init__(str(error))
        self.code = error.code


class Disagreement(AssertionError):
    """A stage gives something else than Python; `stage` says which."""

    def __init__(self, stage: str, detail: str):
        super().__init__(f"{stage}: {detail}")
        self.stage = stage


class Arguments(tuple):
    """The first set of arguments; `fixed`: (leaf, value) of those that its program keeps as constants."""

    fixed: list[tuple[int, Any]]


def load(text: str) -> types.ModuleType:
    """The module of a case, with its source where `inspect` finds it."""
    file = f"<random program {next(numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    module = types.ModuleType(f"random_program_{next(numbers)}")
    exec(compile(text, file, "exec"), module.__dict__)
    return module


def check(case: Case, only: str = "") -> None:
    """Every stage on every set of arguments; then what the case's plan adds. `only`: no other stage."""
    with mp.config(contract=False), in_pieces(zlib.crc32(case.text.encode()) % 2 == 1):
        try:
            if case.plan == "transformed":
                with refusals([Outcome(None, ())]):
                    further("transformed", transformed.check, load, case.text)
                return
            module = load(case.text)
            function, sets = module.program, [Arguments(module.ARGUMENTS[0]), *module.ARGUMENTS[1:]]
            sets[0].fixed = [(k, a) for k, a in enumerate(sets[0]) if isinstance(a, bool)]
            wanted = [outcome(function, args) for args in sets]
            tolerance = 0.0 if case.exact else NEAR
            steady = [case.exact or derivatives.steady(function, args, NEAR / 10) for args in sets]
            with refusals(wanted), joins() as joined:
                for name, prepare, bits in stages(function, sets):
                    if only and name != only:
                        continue
                    run = prepare()
                    for args, want, well in zip(sets, wanted, steady):
                        if not bits and not well:
                            continue
                        if (got := run(args)) is not None and not (joined and divides(want, got)):
                            report(name, difference(want, got, 0.0 if bits else tolerance), args)
                if case.plan == "vmap" and only in ("", "vmap"):
                    further("vmap", lanes.check, module, tolerance if all(steady) else None)
                elif case.plan == "grad" and only in ("", "grad"):
                    further("grad", derivatives.check, module)
        finally:
            for file in [f for f in linecache.cache if f.startswith("<random program")]:
                del linecache.cache[file]


@contextlib.contextmanager
def in_pieces(every: bool) -> Iterator[None]:
    """Native code whose nests are functions, as those of a program of many loops; else as it would be."""
    whole, tiny = outline.WHOLE, outline.TINY
    if every:
        outline.WHOLE, outline.TINY = -1, 0
    try:
        yield
    finally:
        outline.WHOLE, outline.TINY = whole, tiny


@contextlib.contextmanager
def refusals(wanted: list[Outcome]) -> Iterator[None]:
    """A refusal is one unless Python itself raises such an exception for the first arguments: what it raises
    may be known while translating."""
    try:
        yield
    except Disagreement:
        raise
    except Exception as error:
        if wanted[0].error and wanted[0].error in {c.__name__ for c in type(error).__mro__}:
            return
        if not isinstance(error, SourceError):
            raise
        raise Refused(error) from error


@contextlib.contextmanager
def joins() -> Iterator[list[str]]:
    """What the log says of Python's and NumPy's numbers that meet in one variable (docs/limitations.md)."""
    log, found = logging.getLogger("metaphrase"), []
    level, spreads, handler = log.level, log.propagate, logging.Handler()
    handler.emit = lambda record: found.append(record.msg) if "np.%s" in record.msg else None
    log.propagate = False
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    try:
        yield found
    finally:
        log.propagate = spreads
        log.setLevel(level)
        log.removeHandler(handler)


def divides(want: Outcome, got: Outcome) -> bool:
    """Whether only Python's number could not be divided."""
    return want.error == "ZeroDivisionError" and not got.error


def report(name: str, found: str, args: tuple) -> None:
    if found:
        raise Disagreement(name, f"{found}\nfor {args!r}")


def further(name: str, run: Callable, *args: Any) -> None:
    try:
        run(*args)
    except AssertionError as error:
        raise Disagreement(name, str(error)) from error


def stages(function: Callable, sets: list[tuple]) -> Iterator[tuple[str, Callable[[], Callable], bool]]:
    """(name, prepare, whether Python's bits are promised); `prepare()(args)`: None where it doesn't apply."""
    yield "normal form", lambda: normalised(function), True
    yield "control stage", lambda: controlled(function), True
    yield "evaluated core", lambda: evaluated(function, sets), False
    yield "NumPy source", lambda: numpy_source(function, sets), False
    yield "native", lambda: native(function), False


def normalised(function: Callable) -> Callable[[tuple], Outcome]:
    scope = dict(function.__globals__)
    exec(compile(normal(function).text(), "<normal form>", "exec"), scope)
    made = scope[function.__name__]
    return lambda args: outcome(made, args)


def controlled(function: Callable) -> Callable[[tuple], Outcome]:
    made = converted(function, stager)
    return lambda args: outcome(made, args)


def evaluated(function: Callable, sets: list[tuple]) -> Callable[[tuple], Outcome | None]:
    staged = stage(function, copied(sets[0]))
    sets[0].fixed[:] = staged.static
    check_core(staged.function)
    if not same(read(show(staged.function)), staged.function):
        raise Disagreement("evaluated core", f"the program does not read back:\n{staged.function}")

    def run(args: tuple) -> Outcome | None:
        if not served(args, sets[0]):
            return None
        return outcome(lambda *a: staged.result(evaluate(staged.function, *staged.arguments(a)), a), args)

    return run


def native(function: Callable) -> Callable[[tuple], Outcome]:
    jitted = mp.jit(function)
    return lambda args: outcome(jitted, args)


def numpy_source(function: Callable, sets: list[tuple]) -> Callable[[tuple], Outcome | None]:
    """The text that `mp.source` gives, run by itself; for arguments of other types the un-jitted path."""
    scope: dict[str, Any] = {"__name__": "saved"}
    sets[0].fixed[:] = stage(function, copied(sets[0])).static
    text = mp.source(function, *copied(sets[0]))
    exec(compile(text, "<NumPy source>", "exec"), scope)
    saved = scope[function.__name__]
    unjitted: list[Callable] = []

    def run(args: tuple) -> Outcome | None:
        if served(args, sets[0]):
            return outcome(saved, args)
        with mp.config(native=False):
            unjitted[:] = unjitted or [mp.jit(function)]
            return outcome(unjitted[0], args)

    return run


def served(args: tuple, first: Arguments) -> bool:
    """Whether the program staged for the first arguments serves these: types, sizes, fixed values."""
    same = [kind(a) for a in args] == [kind(a) for a in first]
    return same and all(args[k] == value for k, value in first.fixed)


def kind(value: Any) -> tuple:
    return type(value), np.asarray(value).dtype, np.shape(value)


def copied(args: tuple) -> tuple:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
