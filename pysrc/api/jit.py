"""jit: a dispatcher in front of compiled programs, with all that a jitted function offers.

In: a user's function (or a transformed one). Out: a `Dispatcher` whose calls run native code. The first call,
and every call that no compiled program serves, comes to `Jit.miss`: stage, schedule, emit, build, add an
entry, run. Example:

    f = jit(lambda x: x * 2)
    f(np.arange(3.0))        # translated, compiled
    f(np.arange(5.0))        # translated again: args[0] changed from f64[3] to f64[n]; serves all lengths
    from now on

What compiles is imported by the first call that needs it; the translating process is started before that.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..config import config
from ..interpreter import signature_of, use_stack
from ..late import dataclass, log, module
from ..pipeline import Record, current_record
from ..runtime import dispatch, threads
from ..runtime.compiler import CompilerMissing
from ..runtime.cython_build import warm
from ..runtime.devices import Device
from ..source import SourceError, Span
from ..tree_util import PyTreeDef
from .arguments import Call, Spec, take_apart, takes_any_keywords
from .execute import Specialisation, numpy_specialisation
from .identity import reduced
from .plans import disk as plans
from .program import Fixed, Program, name_of, under_way
from .tracebacks import user_frames
from .transforms import Transformed, call_inside, parameter_names, program_of
from .types import given_arguments

if TYPE_CHECKING:
    from ..runtime.cython_build import Library
    from .compile import Lowered
    from .plans.reading import Plan

background = module("metaphrase.api.background")
compiling = module("metaphrase.api.compile")
staging = module("metaphrase.api.staging")
texts = module("metaphrase.api.text")

_warned_of_no_compiler = False
config.listen("disable_jit", dispatch.disable)
use_stack(dispatch)
config.listen("num_threads", lambda _: threads.use(threads.requested()))


@dataclass(frozen=True)
class CacheInfo:
    """How often calls were served by a compiled program, how often not, and how many programs there are."""

    hits: int
    misses: int
    currsize: int


class Signature:
    """One compiled program of a jitted function: the types that it serves."""

    def __init__(self, text: str, record: Record | None):
        self.text, self.record = text, record

    def __repr__(self) -> str:
        return self.text


class Jit(Transformed):
    """The compiler behind one jitted function."""

    kind = "jit"

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: Sequence[int],
        static_argnames: Sequence[str],
        wanted: Device | None = None,
        donated: tuple[Sequence[int], Sequence[str]] = ((), ()),
    ):
        super().__init__(fun)
        self.wanted = wanted or self.wanted
        self.__name__ = name_of(fun)
        self._memo.name, self._memo.recall = self.__name__, self._recall
        self.static_as_given, self.donated_as_given = (static_argnums, static_argnames), donated
        self.signature = _signature(fun)
        self.static = _static(self.signature, static_argnums, static_argnames, self.span)
        self.donated = _static(self.signature, *donated, self.span, "donate")
        self.signatures: list[Signature] = []
        self.building: list[Any] = []
        self.dispatcher = self._dispatcher()

    # ---- the dispatcher -----------------------------------------------------------------------------------

    def _dispatcher(self) -> Any:
        made: Any = dispatch.Dispatcher(self.fun, miss=self.miss, bind=self.bind)
        made.lay_out(*_layout(self.signature, self.fun))
        fun = self.fun
        for name in functools.WRAPPER_ASSIGNMENTS:
            with contextlib.suppress(AttributeError):
                setattr(made, name, getattr(fun, name))
        made.__wrapped__ = made.py_func = fun
        made.jitted, made.stage = self, self.__metaphrase_stage__
        made.reduce = lambda: reduced(made, remade, fun, self.static, self.wanted, self.donated)
        made.lower, made.source, made.signatures = self.lower, self.source, self.signatures
        made.cache_info, made.clear_cache, made.wait = self.cache_info, self.clear_cache, self.wait
        made.renew = self.renew
        if (written := _written(fun)) is not None:
            made.watch(written)
        return made

    def renew(self) -> None:
        """The function's code or default values were replaced, as an editor's reload does."""
        self.signature = _signature(self.fun)
        self.static = _static(self.signature, *self.static_as_given, self.span)
        self.donated = _static(self.signature, *self.donated_as_given, self.span, "donate")
        self.in_order = takes_any_keywords(self.fun)
        self._memo.names = parameter_names(self.fun)
        self.dispatcher.lay_out(*_layout(self.signature, self.fun))
        self.dispatcher.watch(_written(self.fun))

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        """The tuple that the dispatcher and `miss` work with: one item a parameter, or (args, kwargs)."""
        if self.signature is None:
            return args, kwargs
        with user_frames():
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as error:
                name = getattr(self.fun, "__name__", self.__name__)
                raise TypeError(f"{name}() {error}; its parameters are {self.signature}") from None
        if self.dispatcher.parameters is None:
            return bound.args, bound.kwargs
        bound.apply_defaults()
        return tuple(bound.arguments[p] for p in self.signature.parameters)

    def _user_call(self, bound: tuple) -> tuple[tuple, dict]:
        """(args, kwargs) as the user's function takes them, from the dispatcher's tuple."""
        if self.dispatcher.parameters is None:
            args, kwargs = bound
            return tuple(args), dict(kwargs)
        count = len(bound) - self.dispatcher.keyword_only
        return bound[:count], dict(zip(self.dispatcher.parameters[count:], bound[count:]))

    def _recall(self, call: Call) -> Specialisation | None:
        return plans.recall(self, call) if call.device is None else None

    def miss(self, bound: tuple) -> Any:
        """A call that no compiled program serves."""
        args, kwargs = self._user_call(bound)
        if under_way():
            return call_inside(self.dispatcher, args, kwargs)
        with user_frames():
            call = take_apart(args, kwargs, self.static, self.in_order, self.wanted)
            return self._memo.run(call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.dispatcher(*args, **kwargs)

    # ---- compiling ----------------------------------------------------------------------------------------

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        return program_of(self.fun, structure, specs)

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> Any:
        call = take_apart(args, kwargs, self.static, self.in_order)
        return staging.give_back(self._program(call.structure, call.specs))

    def _specialise(self, call: Call, specs: list[Spec], least: dict[str, int]) -> Specialisation:
        global _warned_of_no_compiler
        if config.native and config.tier == "wait" and call.device is None:
            with contextlib.suppress(OSError):
                warm()
        program, specs = self._program_for(call, specs)
        dims = tuple(s.dims for s in specs if s.dynamic)
        text = _types_text(specs, program)
        made = self._on_gpu(program, call, dims, least)
        if made is not None:
            entry = made.extra["gpu"].entry(self, call, specs, least)
            made.entry = None if entry is None else self.dispatcher.add(entry)
            self._sign(made, f"({text})")
            return made
        if config.native and config.tier == "background":
            first = numpy_specialisation(program, dims, least, at_first=True)
            self._sign(first, f"({text})")
            self.building = [one for one in self.building if not one.wait(0)]
            self.building.append(
                background.Background(self.__name__, lambda: self._take_over(first, call, specs, text))
            )
            return first
        if config.native:
            try:
                made = self._native(program, call, specs, dims, least)
            except CompilerMissing as problem:
                if not _warned_of_no_compiler:
                    _warned_of_no_compiler = True
                    log.warning("%s; the generated NumPy source runs instead", problem)
        if made is None:
            made = numpy_specialisation(program, dims, least)
        self._keep(made, call, text)
        self._sign(made, f"({text})")
        return made

    def _keep(self, made: Specialisation, call: Call, text: str) -> None:
        if made.entry is not None:
            plans.keep(self, call, made.extra["compiled"], made.entry.entry, made.dims, made.least, f"({text})")

    def _take_over(self, made: Specialisation, call: Call, specs: Sequence[Spec], text: str) -> None:
        """Native code for a program whose NumPy source has run so far."""
        native = self._native(made.program, call, specs, made.dims, made.least)
        made.run, made.extra, made.entry = native.run, native.extra, native.entry
        if made.forgotten:
            made.forget()
        else:
            self._keep(made, call, text)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until what is compiled in the background is there, or for so long; whether it is."""
        return all([one.wait(seconds) for one in self.building])

    def recalled(self, call: Call, plan: Plan, entry: Any, library: Any) -> Specialisation:
        """A program that was found on disk. What it was made from is made again when someone asks for it."""

        def serves(call: Call) -> bool:
            return self.dispatcher.matches(entry, self.bind(call.args, call.kwargs))

        def run(call: Call) -> Any:
            if serves(call):
                return self.dispatcher.run(entry, self.bind(call.args, call.kwargs))
            made.run = self._native(made.program, call, specs, plan.dims, plan.least).run
            return made.run(call)

        specs = call.with_dims(plan.dims)
        structure = call.structure  # and not the call: its arrays would live as long as the program
        made = Specialisation(
            plan.dims,
            lambda: self._program(structure, specs),
            run,
            {"library": library},
            plan.least,
            entry,
            serves=serves,
        )
        self.dispatcher.add(entry)
        self._sign(made, plan.title)
        return made

    def _sign(self, made: Specialisation, text: str) -> None:
        signature = Signature(text, current_record())
        self.signatures.append(signature)
        made.forget = lambda: self._forget(made, signature)

    def _forget(self, made: Specialisation, signature: Signature) -> None:
        made.forgotten = True
        if made.entry is not None:
            self.dispatcher.remove(made.entry)
        if signature in self.signatures:
            self.signatures.remove(signature)

    def _native(
        self, program: Program, call: Call, specs: Sequence[Spec], dims: tuple, least: dict[str, int]
    ) -> Specialisation:
        compiled = compiling.compile_program(program, specs, self.__name__, least)
        outer = compiled.entry_for_call(self, call.structure, specs)
        entry = None if outer is None else self.dispatcher.add(outer)
        extra = {"library": compiled.library, "compiled": compiled}
        return Specialisation(dims, program, compiling.FlatRunner(compiled), extra, least, entry)

    # ---- what a jitted function offers ---------------------------------------------------------------------

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Translate for arguments like these (arrays, ShapeDtypeStructs, or text of types)."""
        with user_frames():
            args, kwargs = given_arguments(args, kwargs)
            call = take_apart(args, kwargs, self.static, self.in_order)
            return compiling.Lowered(self, call, self._program(call.structure, call.specs))

    def prepare(self, *args: Any, **kwargs: Any) -> Library:
        """Compile for arguments like these, as `lower` takes them, and keep on disk what the calls do: the first call
        of a later process finds it. Gives the library. Raises CompilerMissing."""
        with user_frames():
            args, kwargs = given_arguments(args, kwargs)
            call = take_apart(args, kwargs, self.static, self.in_order)
            program, specs = self._program_for(call, call.specs)
            made = self._native(program, call, specs, tuple(s.dims for s in specs if s.dynamic), {})
            self._keep(made, call, _types_text(specs, program))
            return made.extra["library"]

    def source(self, stage: str = "numpy", *args: Any, **kwargs: Any) -> str:
        """The text of a stage: for the arguments given, or for those of the most recent program."""
        if not args and not kwargs:
            rows = [row for rows in self._memo.table.values() for row in rows]
            if not rows:
                raise SourceError(
                    f"{self.__name__} has not been called, so there is no program to show",
                    self.span,
                    code="no-program",
                    remedy="call it first, or give arguments: f.source(stage, *args)",
                )
            last = next(iter(reversed(self._memo.table.values())))[0]
            return texts.source_text(self, stage, program=last.program)
        return texts.source_text(self, stage, args, kwargs)

    def cache_info(self) -> CacheInfo:
        count = sum(len(rows) for rows in self._memo.table.values())
        served = self.dispatcher.hits + self._memo.hits
        return CacheInfo(served, self._memo.misses, count)

    def clear_cache(self) -> None:
        """Forget every program of this function; the files on disk stay."""
        self._memo.clear()
        self.dispatcher.clear()
        self.signatures.clear()


# ---- signatures -----------------------------------------------------------------------------------------


def _signature(fun: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return signature_of(fun)
    except (TypeError, ValueError):
        return None


def _written(fun: Callable[..., Any]) -> types.FunctionType | None:
    """The Python function whose parameters `fun` has."""
    fun = inspect.unwrap(fun)
    fun = getattr(fun, "__func__", fun)
    return fun if isinstance(fun, types.FunctionType) else None


def _counts_arguments(fun: Any) -> bool:
    """Whether a `vmap` inside looks at how many arguments were given: defaults are none."""
    while isinstance(fun, Transformed):
        if fun.kind == "vmap":
            return True
        fun = fun.fun
    return False


def _layout(
    signature: inspect.Signature | None, fun: Callable[..., Any]
) -> tuple[tuple[str, ...] | None, tuple | None, int, int]:
    """(names, defaults, how many are keyword-only, how many positional-only) for the dispatcher; None where it can't
    bind by name."""
    if signature is None:
        return None, None, 0, 0
    parameters = list(signature.parameters.values())
    if _counts_arguments(fun) and any(p.default is not p.empty for p in parameters):
        return None, None, 0, 0
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None, None, 0, 0
    if any(p.kind is p.POSITIONAL_ONLY for p in parameters) and _written(fun) is None:
        return None, None, 0, 0  # a ufunc's default values are no arguments
    defaults = tuple(dispatch.REQUIRED if p.default is p.empty else p.default for p in parameters)
    names, kinds = tuple(p.name for p in parameters), [p.kind for p in parameters]
    behind, before = kinds.count(inspect.Parameter.KEYWORD_ONLY), kinds.count(inspect.Parameter.POSITIONAL_ONLY)
    return names, defaults, behind, before


def _static(
    signature: inspect.Signature | None,
    numbers: Sequence[int],
    names: Sequence[str],
    span: Span | None,
    what: str = "static",
) -> tuple[int | str, ...]:
    """Static (or donated) arguments by position and by name, both ways where the signature allows."""
    found: list[int | str] = [*numbers, *names]
    if signature is None:
        return tuple(found)
    parameters = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    accepts_any = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for name in names:
        if name in parameters:
            found.append(parameters.index(name))
        elif not accepts_any:
            raise SourceError(
                f"{what}_argnames has {name!r}, and the parameters are {', '.join(parameters)}",
                span,
                code="static-names",
                remedy="name a parameter of the function",
            )
    for number in numbers:
        if not isinstance(number, int):
            raise SourceError(
                f"{what}_argnums has {number!r}, which is not a position",
                span,
                code="static-names",
                remedy=f"say {what}_argnames={number!r}" if isinstance(number, str) else "give ints",
            )
        if not -len(parameters) <= number < len(parameters) and not _has_varargs(signature):
            raise SourceError(
                f"{what}_argnums has {number}, and there are {len(parameters)} parameters",
                span,
                code="static-names",
                remedy="give positions of the function's parameters",
            )
        if parameters and -len(parameters) <= number < len(parameters):
            found += [number % len(parameters), parameters[number]]
    return tuple(dict.fromkeys(found))


def _types_text(specs: Sequence[Spec], program: Program) -> str:
    """The types that a program was made for, and the values that it took for granted; without addresses, which are
    others in the next process."""
    texts = (repr(leaf.value) if isinstance(leaf, Fixed) else spec.text() for spec, leaf in zip(specs, program.leaves))
    return re.sub(r" at 0x[0-9a-f]+", "", ", ".join(texts))


def _has_varargs(signature: inspect.Signature) -> bool:
    return any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())


def remade(
    fun: Callable[..., Any],
    static: Sequence[int | str],
    wanted: Device | None = None,
    donated: Sequence[int | str] = (),
) -> Any:
    """The jitted function, from what it was made of; `static` and `donated` as `_static` gives them."""

    def apart(chosen: Sequence[int | str]) -> tuple[list[int], list[str]]:
        return [k for k in chosen if isinstance(k, int)], [name for name in chosen if isinstance(name, str)]

    return Jit(fun, *apart(static), wanted, apart(donated)).dispatcher


__all__ = ["Jit", "CacheInfo"]
