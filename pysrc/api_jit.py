"""jit: a dispatcher in front of compiled programs, with all that a jitted function offers.

In: a user's function (or a transformed one). Out: a `Dispatcher` whose calls run native code. The first call,
and every call that no compiled program serves, comes to `Jit.miss`: stage, schedule, emit, build, add an
entry, run. Example:

    f = jit(lambda x: x * 2)
    f(np.arange(3.0))        # translated, compiled
    f(np.arange(5.0))        # translated again: args[0] changed from f64[3] to f64[n]; serves all lengths
    from now on
"""
from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import api_staging as staging
from .api_arguments import Call, Spec, take_apart
from .api_entry import callbacks_of, leaf_of, output_of, result_of, site_table, tree_of, work_of
from .api_execute import Specialisation, finish, numpy_specialisation
from .api_program import Fixed, Program, Same, Slot, caller_span, name_of
from .api_tracebacks import user_frames
from .api_transforms import Transformed, program_of
from .config import config
from .core.types import type_symbols
from .pipeline import Record, current_record, finished, native
from .runtime import dispatch
from .runtime import entry as abi
from .runtime.compiler import CompilerMissing
from .runtime.cython_build import Library, warm
from .source import SourceError, Span
from .tree_util import PyTreeDef

log = logging.getLogger("metaphrase")
_warned_of_no_compiler = False
config.listen("disable_jit", dispatch.disable)


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
        self, fun: Callable[..., Any], static_argnums: Sequence[int], static_argnames: Sequence[str]
    ):
        super().__init__(fun)
        self.__name__ = name_of(fun)
        self._memo.name = self.__name__
        self.signature = _signature(fun)
        self.static = _static(self.signature, static_argnums, static_argnames, self.span)
        self.signatures: list[Signature] = []
        self.dispatcher = self._dispatcher()

    # ---- the dispatcher -----------------------------------------------------------------------------------

    def _dispatcher(self) -> Any:
        parameters, defaults, keyword_only = _layout(self.signature)
        made = dispatch.Dispatcher(self.fun, parameters, miss=self.miss, bind=self.bind, defaults=defaults,
                                   keyword_only=keyword_only)
        fun = self.fun
        for name in functools.WRAPPER_ASSIGNMENTS:
            with contextlib.suppress(AttributeError):
                setattr(made, name, getattr(fun, name))
        made.__wrapped__ = made.py_func = fun
        made.jitted, made.stage = self, self.__metaphrase_stage__
        made.lower, made.source, made.signatures = self.lower, self.source, self.signatures
        made.cache_info, made.clear_cache = self.cache_info, self.clear_cache
        return made

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        """The tuple that the dispatcher and `miss` work with: one item a parameter, or (args, kwargs)."""
        if self.signature is None:
            return args, kwargs
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}() {error}") from None
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

    def miss(self, bound: tuple) -> Any:
        """A call that no compiled program serves."""
        args, kwargs = self._user_call(bound)
        if staging.under_way():
            return staging.call_inside(self.dispatcher, args, kwargs)
        call = take_apart(args, kwargs, self.static)
        with user_frames():
            return self._memo.find(call).run(call)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.dispatcher(*args, **kwargs)

    # ---- compiling ----------------------------------------------------------------------------------------

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        return program_of(self.fun, structure, specs)

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> Any:
        call = take_apart(args, kwargs, self.static)
        return staging.give_back(self._program(call.structure, call.specs))

    def _specialise(self, call: Call, specs: list[Spec]) -> Specialisation:
        global _warned_of_no_compiler
        if config.native:
            with contextlib.suppress(OSError):
                warm()
        program = self._program(call.structure, specs)
        dims = tuple(s.dims for s in specs if s.dynamic)
        made: Specialisation | None = None
        if config.native:
            try:
                made = self._native(program, call, specs, dims)
            except CompilerMissing as problem:
                if not _warned_of_no_compiler:
                    _warned_of_no_compiler = True
                    log.warning("%s; the generated NumPy source runs instead", problem)
        if made is None:
            made = numpy_specialisation(program, dims)
        text = ", ".join(s.text() if not isinstance(leaf, Fixed) else repr(leaf.value)
                         for s, leaf in zip(specs, program.leaves))
        self.signatures.append(Signature(f"({text})", current_record()))
        return made

    def _native(self, program: Program, call: Call, specs: Sequence[Spec], dims: tuple) -> Specialisation:
        compiled = compile_program(program, specs, self.__name__)
        inner = dispatch.Dispatcher(None, tuple(f"p{k}" for k in range(len(compiled.flat_leaves))))
        flat_entry = inner.add(compiled.entry_for_leaves())

        def run(call: Call) -> Any:
            return compiled.finish(call, inner.run(flat_entry, tuple(call.dynamic_leaves())))

        extra = {"library": compiled.library, "compiled": compiled}
        outer = compiled.entry_for_call(self, call.structure, specs)
        if outer is not None:
            self.dispatcher.add(outer)
        return Specialisation(dims, program, run, extra)

    # ---- what a jitted function offers ---------------------------------------------------------------------

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Translate for arguments like these (arrays, or ShapeDtypeStructs)."""
        call = take_apart(args, kwargs, self.static)
        return Lowered(self, call, self._program(call.structure, call.specs))

    def source(self, stage: str = "numpy", *args: Any, **kwargs: Any) -> str:
        """The text of a stage: for the arguments given, or for those of the most recent program."""
        from .api_text import source_text
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
            return source_text(self, stage, program=last.program)
        return source_text(self, stage, args, kwargs)

    def cache_info(self) -> CacheInfo:
        count = sum(len(rows) for rows in self._memo.table.values())
        served = self.dispatcher.hits + self._memo.hits
        return CacheInfo(served, self._memo.misses, count)

    def clear_cache(self) -> None:
        """Forget every program of this function; the files on disk stay."""
        self._memo.clear()
        self.dispatcher.clear()
        self.signatures.clear()


@dataclass
class Compiled:
    """A native program and the pieces of its entries."""

    program: Program
    function: Any
    library: Library
    sites: tuple
    symbols: tuple[str, ...]
    specs: Sequence[Spec]
    name: str
    uses_blas: bool

    def __post_init__(self) -> None:
        params = self.function.params
        self.leaf_entries = [
            abi.StaticLeaf(leaf.value) if isinstance(leaf, Fixed) else leaf_of(spec, params[leaf].type)
            for leaf, spec in zip(self.program.leaves, self.specs)
        ]
        self.flat_leaves = [e for e, spec in zip(self.leaf_entries, self.specs) if spec.dynamic]

    def _common(self) -> dict[str, Any]:
        known = frozenset(self.symbols)
        forms = self.program.forms
        results = tuple(
            result_of(r.type.plain, known, form) for r, form in zip(self.function.results, forms, strict=True)
        )
        table = site_table(self.sites)
        return dict(
            address=self.library.address,
            symbols=self.symbols,
            results=results,
            raise_site=table.raise_site,
            callbacks=callbacks_of(self.sites),
            uses_blas=self.uses_blas,
            name=self.name,
            work=work_of(self.function, known),
            keep=(self.library, table, self.program),
        )

    def entry_for_leaves(self) -> abi.Entry:
        """Serves the dynamic leaves of a call as positional arguments, and gives all results."""
        captures = staging.capture_roots(self.program, self.function)
        roots = [abi.Root(abi.Position(k), leaf) for k, leaf in enumerate(self.flat_leaves)]
        roots += [abi.Root(source, leaf) for source, leaf in captures]
        parameters = [leaf for _, leaf in captures]
        parameters += [
            e for e, leaf in zip(self.leaf_entries, self.program.leaves) if not isinstance(leaf, Fixed)
        ]
        count = len(self.function.results)
        output = abi.Sequence(tuple, tuple(abi.Result(k) for k in range(count)))
        return abi.Entry(roots=tuple(roots), parameters=tuple(parameters), output=output, **self._common())

    def entry_for_call(self, jit: Jit, structure: PyTreeDef, specs: Sequence[Spec]) -> abi.Entry | None:
        """Serves the user's calls directly; None for a program that writes to containers it is given."""
        if any(write.kind not in ("argument", "capture") for write in self.program.writes):
            return None
        args, kwargs = structure.children()
        leaves = iter(self.leaf_entries)
        names = (kwargs.node_data() or (dict, ()))[1]
        if jit.dispatcher.parameters is None:         # the dispatcher's tuple is (args, kwargs)
            whole = [self._argument(k, child, leaves, jit) for k, child in enumerate(args.children())]
            keywords = [
                self._argument(name, child, leaves, jit) for name, child in zip(names, kwargs.children())
            ]
            roots = [abi.Root(abi.Position(0), abi.Sequence(tuple, tuple(whole))),
                     abi.Root(abi.Position(1), abi.Dictionary(tuple(names), tuple(keywords)))]
        else:
            roots = [abi.Root(abi.Position(k), self._argument(k, child, leaves, jit))
                     for k, child in enumerate(args.children())]
            roots += [abi.Root(abi.Position(jit.dispatcher.parameters.index(name)),
                               self._argument(name, child, leaves, jit))
                      for name, child in zip(names, kwargs.children())]
        captures = staging.capture_roots(self.program, self.function)
        roots += [abi.Root(source, leaf) for source, leaf in captures]
        guards, comparisons = staging.entry_guards(self.program.guards)
        parameters = [leaf for _, leaf in captures]
        parameters += [
            e for e, leaf in zip(self.leaf_entries, self.program.leaves) if not isinstance(leaf, Fixed)
        ]
        output = output_of(self.program.out, iter([self._slot(s, parameters) for s in self.program.slots]))
        writes = tuple(
            abi.Write(w.index, self.leaf_entries[w.target] if w.kind == "argument" else parameters[w.target])
            for w in self.program.writes
        )
        return abi.Entry(
            roots=tuple(roots),
            parameters=tuple(parameters),
            output=output,
            guards=guards,
            writes=writes,
            comparisons=comparisons,
            **self._common(),
        )

    def _argument(self, which: int | str, structure: PyTreeDef, leaves: Iterator[Any], jit: Jit) -> Any:
        return next(leaves) if which in jit.static else tree_of(structure, leaves)

    def _slot(self, slot: Any, captures: Sequence[Any]) -> Any:
        if isinstance(slot, Slot):
            return abi.Result(slot.index)
        if isinstance(slot, Same):
            return abi.Argument(self.leaf_entries[slot.leaf])
        if isinstance(slot, staging.Captured):
            return abi.Argument(captures[slot.index])
        return abi.Constant(slot.value)

    def finish(self, call: Call, results: Sequence[Any]) -> Any:
        return finish(self.program, call, results)


def compile_program(program: Program, specs: Sequence[Spec], name: str) -> Compiled:
    """Native code for a Program."""
    function = finished(program.function)
    library, emitted = native(function, name)
    symbols: list[str] = []
    for param in function.params:
        for dim in param.type.dims:
            symbols += [s for s in sorted(_symbols_of(dim)) if s not in symbols]
        if param.type.value is not None:
            symbols += [s for s in sorted(type_symbols(param.type)) if s not in symbols]
    symbols = list(getattr(emitted, "sizes", None) or symbols)
    return Compiled(program, function, library, emitted.sites, tuple(symbols), list(specs), name,
                    "abi_blas.h" in emitted.text)


def _symbols_of(dim: Any) -> frozenset[str]:
    from .core.dims import symbols
    return frozenset() if isinstance(dim, int) else symbols(dim)


class Lowered:
    """A function translated for certain types; `compile()` makes native code."""

    def __init__(self, jit: Jit, call: Call, program: Program):
        self.jit, self.call, self.program = jit, call, program

    def as_text(self, stage: str = "core") -> str:
        from .api_text import source_text
        return source_text(self.jit, stage, program=self.program)

    @property
    def out_info(self) -> Any:
        """The output, with ShapeDtypeStructs for arrays."""
        return staging.out_structs(self.program)

    def compile(self) -> CompiledFunction:
        return CompiledFunction(self, compile_program(self.program, self.call.specs, self.jit.__name__))


class CompiledFunction:
    """Native code for certain types; a call with others is an error."""

    def __init__(self, lowered: Lowered, compiled: Compiled):
        self.lowered, self.compiled = lowered, compiled
        self._dispatcher = dispatch.Dispatcher(None, tuple(f"p{k}" for k in range(len(compiled.flat_leaves))))
        self._entry = self._dispatcher.add(compiled.entry_for_leaves())

    @property
    def library(self) -> Library:
        return self.compiled.library

    def as_text(self) -> str:
        return self.library.text

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = take_apart(args, kwargs, self.lowered.jit.static)
        if call.structure == self.lowered.call.structure:
            with contextlib.suppress(LookupError):
                return self.compiled.finish(
                    call, self._dispatcher.run(self._entry, tuple(call.dynamic_leaves()))
                )
        want = ", ".join(s.text() for s in self.lowered.call.specs)
        have = ", ".join(s.text() for s in call.specs)
        raise SourceError(
            f"{self.lowered.jit.__name__} was compiled for ({want}) and called with ({have})",
            caller_span(),
            code="compiled-types",
            remedy="call the jitted function, or lower it for these",
        )


# ---- signatures
# ----------------------------------------------------------------------------------------------


def _signature(fun: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def _layout(signature: inspect.Signature | None) -> tuple[tuple[str, ...] | None, tuple | None, int]:
    """(names, defaults, how many are keyword-only) for the dispatcher; None where it can't bind by name."""
    if signature is None:
        return None, None, 0
    parameters = list(signature.parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY) for p in parameters):
        return None, None, 0
    defaults = tuple(dispatch.REQUIRED if p.default is p.empty else p.default for p in parameters)
    return tuple(p.name for p in parameters), defaults, sum(p.kind is p.KEYWORD_ONLY for p in parameters)


def _static(signature: inspect.Signature | None, numbers: Sequence[int], names: Sequence[str],
            span: Span | None) -> tuple[int | str, ...]:
    """Static arguments by position and by name, both ways where the signature allows."""
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
                f"static_argnames has {name!r}, and the parameters are {', '.join(parameters)}",
                span,
                code="static-names",
                remedy="name a parameter of the function",
            )
    for number in numbers:
        if not -len(parameters) <= number < len(parameters) and not _has_varargs(signature):
            raise SourceError(
                f"static_argnums has {number}, and there are {len(parameters)} parameters",
                span,
                code="static-names",
                remedy="give positions of the function's parameters",
            )
        if parameters and -len(parameters) <= number < len(parameters):
            found += [number % len(parameters), parameters[number]]
    return tuple(dict.fromkeys(found))


def _has_varargs(signature: inspect.Signature) -> bool:
    return any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())


def jitted_of(fun: Any) -> Jit | None:
    """The Jit behind a dispatcher, if it is one."""
    return getattr(fun, "jitted", None) if isinstance(fun, dispatch.Dispatcher) else None


__all__ = ["Jit", "Lowered", "CompiledFunction", "CacheInfo", "jitted_of"]
