"""A function with a transformation around it, callable and stageable; and the program of any function.

In: a user's function or another transformed one. Out: a callable that, outside of staging, runs NumPy source,
and in staged code becomes part of the program that is being staged. There are no tracers: each layer stages
the function inside it for the types it gets, and works on the program. Example:

    vmap(grad(f))(xs)     # Vmap: types of one x -> Grad: types of one x -> f is staged -> gradient -> batch
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..config import config
from ..core.attached import rule_of
from ..interpreter import signature_of
from ..late import module
from ..runtime import dispatch
from ..runtime.devices import Device
from ..source import DTypeError, Span
from ..tree_util import PyTreeDef
from . import memory as memory
from .arguments import Call, Spec, take_apart, takes_any_keywords
from .captures import read_capture
from .execute import Memo, Specialisation, numpy_specialisation
from .identity import reduced
from .placement import place_with_captures
from .program import Program, caller_span, name_of, under_way, user_span
from .tracebacks import user_frames

on_gpu = module("metaphrase.api.on_gpu")
staging = module("metaphrase.api.staging")
symbolic = module("metaphrase.api.symbolic")


def jitted_of(fun: Any) -> Any:
    """The Jit behind a dispatcher, which is what a jitted function is; None for anything else, such as a method that is
    bound to an object."""
    return getattr(fun, "jitted", None) if isinstance(fun, dispatch.Dispatcher) else None


def program_of(fun: Callable[..., Any], structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
    """Stage a function, or ask a transformed one for its program."""
    fun = jitted_of(fun) or fun
    if isinstance(fun, types.FunctionType) and (rule := rule_of(fun)) is not None and rule.is_asked():
        return rule.program(structure, specs)
    if isinstance(fun, Transformed):
        return fun.program(structure, specs)
    return staging.stage(fun, structure, specs)


def parameter_names(fun: Callable[..., Any]) -> list[str]:
    """Names of the positional parameters, for messages."""
    try:
        parameters = signature_of(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def call_inside(function: Any, args: tuple, kwargs: dict) -> Any:
    """A transformed function called in staged code by code that was not converted."""
    from ..astpasses.frontend import call_value

    return call_value(function, args, kwargs)


def is_around_jit(fun: Any) -> bool:
    """Whether a transformed function has a jitted one inside."""
    while isinstance(fun, Transformed):
        fun = fun.fun
    return jitted_of(getattr(fun, "__func__", fun)) is not None


class Transformed:
    """A function with a transformation around it."""

    kind = "transformed"
    in_order = False  # whether the order of keyword arguments is seen
    wanted: Device | None = None  # where calls run, if the user said so
    donated: tuple[int | str, ...] = ()  # arguments whose memory results may be made in
    compiles = False  # whether a call around a jitted function runs native code
    about = ""  # what its documentation says it is, in front of the function's; empty: the function, as it is called
    takes_batches = False  # whether its arguments are others than the function's

    def __init__(self, fun: Callable[..., Any], span: Span | None = None):
        if not callable(fun):
            raise DTypeError(
                f"{self.kind} of {fun!r}, which is not a function",
                span or caller_span(),
                code="not-a-function",
                remedy=f"pass a function, as in {self.kind}(f)",
            )
        functools.update_wrapper(self, fun, updated=())
        self.fun, self.span = fun, span or caller_span()
        self.in_order = takes_any_keywords(fun)
        self.__name__ = f"{self.kind}_{name_of(fun)}"
        if self.about:
            self._describe(fun)
        self._memo = Memo(self.__name__, self._specialise, parameter_names(fun))
        self._compiled: Callable[..., Any] | None = None
        self.wanted = getattr(jitted_of(fun) or fun, "wanted", None)  # grad(jit(f, device="gpu")) runs there

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if under_way():
            return call_inside(self, args, kwargs)
        if self.compiles and not config.disable_jit and is_around_jit(self):  # grad(jit(f)) is jit(grad(f))
            if self._compiled is None:
                from .jit import Jit

                self._compiled = Jit(self, (), (), self.wanted).dispatcher
            with user_frames():
                return self._compiled(*args, **kwargs)
        with user_frames():
            call = take_apart(args, kwargs, in_order=self.in_order, wanted=self.wanted)
            return self._memo.run(call)

    def _describe(self, fun: Callable[..., Any]) -> None:
        """What `help` and `inspect` show: what this is, and no types that are the function's alone."""
        own = getattr(fun, "__doc__", None)
        said = inspect.cleandoc(own) if isinstance(own, str) else ""
        self.__doc__ = f"{self.about.format(name_of(fun))}\n\n{said}".rstrip()
        types_of = {} if self.takes_batches else dict(getattr(fun, "__annotations__", None) or {})
        self.__annotations__ = {name: type_ for name, type_ in types_of.items() if name != "return"}

    @property
    def __signature__(self) -> inspect.Signature:
        if not self.about:
            raise AttributeError("it is that of the function")
        signature = inspect.signature(self.fun)
        known = self.__annotations__
        parameters = [p.replace(annotation=known.get(p.name, p.empty)) for p in signature.parameters.values()]
        return signature.replace(parameters=parameters, return_annotation=signature.empty)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _specialise(self, call: Call, specs: list[Spec], least: dict[str, int]) -> Specialisation:
        program, specs = self._program_for(call, specs)
        dims = tuple(s.dims for s in specs if s.dynamic)
        return self._on_gpu(program, call, dims, least) or numpy_specialisation(program, dims, least)

    def _on_gpu(self, program: Program, call: Call, dims: tuple, least: dict[str, int]) -> Specialisation | None:
        """The program for a GPU, if that is where the call runs."""
        place = place_with_captures(call.device, list(map(read_capture, program.captures)), self.wanted, program.title)
        if place is None:
            return None
        return on_gpu.gpu_specialisation(program, dims, least, place, parameter_names(self.fun), self.donated)

    def _program_for(self, call: Call, specs: list[Spec]) -> tuple[Program, list[Spec]]:
        """The program for a call, arguments that are one piece of memory staged as one array."""
        names = parameter_names(self.fun)
        program = self.program(call.structure, specs)
        memory.check(program, call, names)
        same = memory.shared(program, call, specs, names)
        return (program, specs) if same is None else (self.program(call.structure, same), same)

    def program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        """The program of the transformed function for arguments of these specs."""
        with symbolic.late_guards() as guards:
            made = self._program(structure, specs)
        return made.with_function(made.function, guards=(*made.guards, *guards)) if guards else made

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        """The same, without the guards of what is staged while derivatives are taken."""
        raise TypeError(f"{type(self).__name__} does not say what its program is")

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> Any:
        """The hook by which staged code calls a transformed function."""
        call = take_apart(args, kwargs, in_order=self.in_order)
        return staging.give_back(self.program(call.structure, call.specs))

    def _place(self) -> Span | None:
        """Where the call is that is being made, for messages."""
        return user_span() or self.span

    def __copy__(self) -> Transformed:
        return self  # as functions are

    def __deepcopy__(self, memo: dict) -> Transformed:
        return self

    def _again(self) -> tuple:
        """The arguments that make another one of the same."""
        raise TypeError(f"{type(self).__name__} can't be pickled")

    def __reduce__(self) -> str | tuple:
        return reduced(self, type(self), *self._again())

    def __repr__(self) -> str:
        return f"<{self.kind} of {getattr(self.fun, '__name__', self.fun)!s}>"


__all__ = ["Transformed", "call_inside", "is_around_jit", "parameter_names", "program_of"]
