"""Whether a case means the same to Python and to every stage.

In: a `Case`. Out: nothing, `Refused` (with the refusal's code), or `Disagreement`. Python's own result is
compared with the normal form, the control stage on NumPy, the evaluated core program, the NumPy source and
native code: to the bit where the case is exact, else as near as the case is well conditioned. Example:

    check(case)

An `Examination` has two halves, so that the native code of many cases can be compiled in between. With `gpu` it is of
the kernels alone, in the place of native code: see gpu.py.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import logging
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from together import Together, translate

import metaphrase as mp
from metaphrase import tree_util
from metaphrase.astpasses.frontend.rewrite.convert import converted
from metaphrase.astpasses.frontend.rewrite.normal import normal
from metaphrase.astpasses.frontend.rewrite.plain import stager
from metaphrase.astpasses.frontend.staging.stage import stage
from metaphrase.astpasses.frontend.staging.staged import Staged, in_order
from metaphrase.astpasses.frontend.values.sources import room_of
from metaphrase.astpasses.schedule import target
from metaphrase.core.check import check as check_core
from metaphrase.core.evaluate import evaluate
from metaphrase.core.read import read
from metaphrase.core.show import same, show
from metaphrase.exceptions import ListFull
from metaphrase.source import SourceError

from . import derivatives, lanes, outcomes, transformed
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


def load(text: str) -> types.ModuleType:
    """The module of a case, with its source where `inspect` finds it."""
    file = f"<random program {next(numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    module = types.ModuleType(f"random_program_{next(numbers)}")
    exec(compile(text, file, "exec"), module.__dict__)
    return module


def check(case: Case, only: str = "", gpu: bool = False) -> None:
    """Every stage on every set of arguments; then what the case's plan adds. `only`: no other stage."""
    examination = Examination(case, only, gpu=gpu)
    try:
        examination.before()
        examination.after()
    finally:
        examination.close()


class Examination:
    """A case. `before` is what needs no native code, `translate` makes the programs that `after` runs.
    `builds`: where their native code is compiled, if not each by itself. `gpu`: that code is kernels, and the stages
    before it are not looked at."""

    def __init__(self, case: Case, only: str = "", builds: Together | None = None, gpu: bool = False):
        self.case, self.only, self.builds, self.gpu = case, only, builds, gpu
        self.files: list[str] = []
        self.joined: list[str] = []
        self.wanted = [Outcome(None, ())]
        self.over = False  # a refusal, where Python raises such an exception
        self.plan: Any = None  # what the plan adds
        self.tolerance = 0.0 if case.exact else NEAR

    def first(self) -> None:
        """What comes before native code is compiled."""
        self.before()
        self.translate()

    def before(self) -> None:
        with self.settings():
            if self.case.plan == "transformed":
                self.plan = transformed.Closing(self.load, self.case.text, always=self.gpu)
                further("transformed", self.plan.python)
                return
            module = self.load(self.case.text)
            self.function, self.sets = module.program, module.ARGUMENTS
            self.jitted = mp.jit(self.function)
            self.wanted[:] = [outcome(self.function, args) for args in self.sets]
            self.steady = [self.case.exact or derivatives.steady(self.function, args, NEAR / 10) for args in self.sets]
            if not self.gpu:
                self.stages()
            if self.case.plan == "vmap" and self.only in ("", "vmap"):
                self.plan = lanes.Lanes(module, self.tolerance if all(self.steady) else None)
            elif self.case.plan == "grad" and self.only in ("", "grad"):
                self.plan = derivatives.Derivatives(module)
            if self.plan is not None:
                further(self.case.plan, self.plan.python)

    def stages(self) -> None:
        self.stage("normal form", self.normalised, True)
        self.stage("control stage", self.controlled, True)
        self.stage("evaluated core", self.evaluated, False)
        self.stage("NumPy source", self.numpy_source, False)

    def translate(self) -> None:
        """What is raised here `after` raises again, in its place."""
        if self.over:
            return
        calls = [] if self.case.plan == "transformed" else [(self.jitted, args) for args in self.sets]
        with contextlib.suppress(Exception), self.settings():
            for jitted, args in [*calls, *(self.plan.calls() if self.plan is not None else ())]:
                self.translated(jitted, args)

    def after(self) -> None:
        with self.settings():
            if self.over:
                return
            if self.case.plan != "transformed":
                name = "GPU" if self.gpu else "native"
                self.stage(name, lambda: lambda args: outcome(self.jitted, args), False)
            if self.plan is not None:
                further(self.case.plan, self.plan.native)

    def close(self) -> None:
        for file in self.files:
            linecache.cache.pop(file, None)

    @contextlib.contextmanager
    def settings(self) -> Iterator[None]:
        every = in_pieces(zlib.crc32(self.case.text.encode()) % 2 == 1)
        with mp.config(contract=False), every, joins(self.joined):
            try:
                with refusals(self.wanted), self.device():
                    yield
            except Explained:
                self.over = True

    def device(self) -> contextlib.AbstractContextManager:
        if not self.gpu:
            return contextlib.nullcontext()
        from .gpu import Device

        return Device()

    def load(self, text: str) -> types.ModuleType:
        module = load(text)
        self.files.append(module.program.__code__.co_filename)
        return module

    def translated(self, jitted: Callable, args: tuple) -> None:
        """Make the program of a call."""
        assert self.builds is not None
        with self.builds.of(self.case), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            translate(jitted, tuple(map(outcomes.copied, args)))

    # ---- the stages

    def stage(self, name: str, prepare: Callable[[], Callable], bits: bool) -> None:
        """Compare. `prepare()(args)`: None where it doesn't apply; `bits`: whether Python's are promised."""
        if self.only and name != self.only:
            return
        run = prepare()
        for args, want, well in zip(self.sets, self.wanted, self.steady):
            if not bits and not well:
                continue
            if (got := run(args)) is not None and not (self.joined and divides(want, got)):
                report(name, difference(want, got, 0.0 if bits else self.tolerance), args)

    def normalised(self) -> Callable[[tuple], Outcome]:
        scope = dict(self.function.__globals__)
        exec(compile(normal(self.function).text(), "<normal form>", "exec"), scope)
        return lambda args: outcome(scope[self.function.__name__], args)

    def controlled(self) -> Callable[[tuple], Outcome]:
        made = converted(self.function, stager)
        return lambda args: outcome(made, args)

    @functools.cached_property
    def staged(self) -> Staged:
        """The function staged for the first arguments."""
        return stage(self.function, copied(self.sets[0]))

    def evaluated(self) -> Callable[[tuple], Outcome | None]:
        staged = self.staged
        check_core(staged.function)
        if not same(read(show(staged.function)), staged.function):
            raise Disagreement("evaluated core", f"the program does not read back:\n{staged.function}")

        def run(args: tuple) -> Outcome | None:
            if not self.served(args) or not self.lies_well(args):
                return None
            while True:
                try:
                    return outcome(lambda *a: staged.result(evaluate(staged.function, *staged.arguments(a)), a), args)
                except ListFull:  # as whoever runs a program does
                    for room in filter(None, map(room_of, staged.captures)):
                        room.grow()

        return run

    def numpy_source(self) -> Callable[[tuple], Outcome | None]:
        """The text that `mp.source` gives, run by itself; for arguments of other types the un-jitted path."""
        scope: dict[str, Any] = {"__name__": "saved"}
        if self.builds is None:
            text = mp.source(self.function, *copied(self.sets[0]))
        else:
            self.translated(self.jitted, self.sets[0])
            text = self.jitted.source()
        exec(compile(text, "<NumPy source>", "exec"), scope)
        saved, unjitted = scope[self.function.__name__], mp.jit(self.function)

        def run(args: tuple) -> Outcome | None:
            if self.served(args):
                return outcome(saved, args) if self.lies_well(args) else None
            with mp.config(native=False):
                return outcome(unjitted, args)

        return run

    def served(self, args: tuple) -> bool:
        """Whether the program staged for the first arguments serves these: types, sizes, fixed values."""
        alike = [kind(a) for a in args] == [kind(a) for a in self.sets[0]]
        return alike and all(args[k] == value for k, value in self.staged.static)

    def lies_well(self, args: tuple) -> bool:
        """Whether arguments lie in memory as the program needs it; calls refuse others."""
        leaves, staged = tree_util.tree_leaves((args, {})), self.staged
        written = [leaves[w.target] for w in staged.writes if w.kind == "argument" and w.contiguous]
        return all(a.flags.c_contiguous for a in written) and all(in_order(leaves[k]) for k in staged.ordered)


@contextlib.contextmanager
def in_pieces(every: bool) -> Iterator[None]:
    """Native code whose nests are functions, as those of a program of many loops; else as it would be."""
    before = target.CPU
    if every:
        target.CPU = replace(before, whole=-1, call=0)
    try:
        yield
    finally:
        target.CPU = before


class Explained(Exception):
    """A refusal where Python itself raises such an exception: what it raises may be known while translating."""


@contextlib.contextmanager
def refusals(wanted: list[Outcome]) -> Iterator[None]:
    """Raises `Refused` or `Explained` for a refusal. `wanted`: Python's outcomes."""
    try:
        yield
    except Disagreement:
        raise
    except Exception as error:
        if isinstance(error, ValueError) and outcomes.UNSTRETCHED.search(str(error)):  # a derivative's
            raise Explained from error
        if wanted[0].error and wanted[0].error in {c.__name__ for c in type(error).__mro__}:
            raise Explained from error
        if not isinstance(error, SourceError):
            raise
        raise Refused(error) from error


@contextlib.contextmanager
def joins(found: list[str]) -> Iterator[None]:
    """Adds what the log says of Python's and NumPy's numbers that meet in one variable
    (docs/limitations.md)."""
    log = logging.getLogger("metaphrase")
    level, spreads, handler = log.level, log.propagate, logging.Handler()
    handler.emit = lambda record: found.append(record.msg) if "np.%s" in record.msg else None
    log.propagate = False
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    try:
        yield
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


def kind(value: Any) -> tuple:
    return type(value), np.asarray(value).dtype, np.shape(value)


def copied(args: tuple) -> tuple:
    return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in args)
