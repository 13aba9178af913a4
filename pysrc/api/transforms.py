"""The transformed functions: `Grad`, `Vmap`, `Jacobian`, `Jvp`, `Linear` around a function, callable and
stageable.

In: a user's function or another transformed one. Out: a callable that, outside of staging, runs NumPy source,
and in staged code becomes part of the program that is being staged. There are no tracers: each layer stages
the function inside it for the types it gets, and works on the program. Example:

    vmap(grad(f))(xs)     # Vmap: types of one x -> Grad: types of one x -> f is staged -> gradient -> batch
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from ..config import config
from ..core.attached import rule_of
from ..core.axes import named_axis
from ..core.types import has_tangent
from ..interpreter import signature_of
from ..late import module
from ..runtime.devices import Device
from ..source import DTypeError, ShapeError, SourceError, Span
from ..tree_util import PyTreeDef, treedef_tuple
from . import memory as memory
from .arguments import Call, Form, Spec, take_apart, takes_any_keywords
from .captures import read_capture
from .execute import Memo, Specialisation, numpy_specialisation
from .identity import reduced
from .nonfinite import looked_at
from .orders import derivatives_to_come, for_lanes, taking_derivatives
from .placement import place_with_captures
from .program import Fixed, Program, Slot, caller_span, leaf_labels, name_of, under_way, user_span
from .symbolic import late_guards
from .tracebacks import user_frames

if TYPE_CHECKING:
    from .linear import LinearFunction

batch = module("metaphrase.api.batch")
derivatives = module("metaphrase.api.derivatives")
jacobians = module("metaphrase.api.jacobians")
linear = module("metaphrase.api.linear")
on_gpu = module("metaphrase.api.on_gpu")
staging = module("metaphrase.api.staging")


def program_of(fun: Callable[..., Any], structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
    """Stage a function, or ask a transformed one for its program."""
    fun = getattr(fun, "jitted", fun)  # a jitted function is a dispatcher with its Jit behind it
    if isinstance(fun, types.FunctionType) and (rule := rule_of(fun)) is not None and rule.is_asked():
        return rule.program(structure, specs)
    if isinstance(fun, Transformed):
        return fun.program(structure, specs)
    return staging.stage(fun, structure, specs)


def differentiable_program(
    fun: Callable[..., Any], structure: PyTreeDef, specs: Sequence[Spec], times: int = 1
) -> Program:
    """`program_of`, to be differentiated so many times more than what is under way is anyway."""
    with taking_derivatives(derivatives_to_come() + times):
        return program_of(fun, structure, specs)


def parameter_names(fun: Callable[..., Any]) -> list[str]:
    """Names of the positional parameters, for messages."""
    try:
        parameters = signature_of(fun).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _derivatives() -> Any:
    """What takes derivatives of programs, imported when the first is taken."""
    return derivatives


def call_inside(function: Any, args: tuple, kwargs: dict) -> Any:
    """A transformed function called in staged code by code that was not converted."""
    from ..astpasses.frontend import call_value

    return call_value(function, args, kwargs)


def is_around_jit(fun: Any) -> bool:
    """Whether a transformed function has a jitted one inside."""
    while isinstance(fun, Transformed):
        fun = fun.fun
    return hasattr(fun, "jitted")


def _arguments_text(argnums: Any) -> str:
    if isinstance(argnums, (tuple, list)):
        return f"arguments {', '.join(map(str, argnums))}"
    return f"argument {argnums}"


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
        self.wanted = getattr(getattr(fun, "jitted", fun), "wanted", None)  # grad(jit(f, device="gpu")) runs there

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
        with late_guards() as guards:
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


class Grad(Transformed):
    """grad and value_and_grad."""

    compiles = True

    def __init__(
        self, fun: Callable[..., Any], argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool, value: bool
    ):
        self.kind = "value_and_grad" if value else "grad"
        gives = "The value and the gradient" if value else "The gradient"
        self.about = f"{gives} of {{}} with respect to {_arguments_text(argnums)}."
        super().__init__(fun)
        self.argnums, self.has_aux, self.holomorphic, self.value = argnums, has_aux, holomorphic, value
        self.allow_int = allow_int

    def _again(self) -> tuple:
        return self.fun, self.argnums, self.has_aux, self.holomorphic, self.allow_int, self.value

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        program = differentiable_program(self.fun, structure, specs)
        made = _derivatives().gradient_program(
            program,
            self.argnums,
            self._place(),
            what=self.kind,
            has_aux=self.has_aux,
            value=self.value,
            holomorphic=self.holomorphic,
            allow_int=self.allow_int,
            names=parameter_names(self.fun),
        )
        return made.with_function(made.function, name=self.__name__)


class Jacobian(Transformed):
    """jacfwd and jacrev."""

    compiles = True

    def __init__(
        self, fun: Callable[..., Any], argnums: Any, has_aux: bool, holomorphic: bool, allow_int: bool, kind: str
    ):
        self.kind = kind
        mode = "forward" if kind == "jacfwd" else "reverse"
        self.about = f"The Jacobian of {{}} with respect to {_arguments_text(argnums)}, by {mode} mode."
        super().__init__(fun)
        self.argnums, self.has_aux, self.holomorphic, self.allow_int = argnums, has_aux, holomorphic, allow_int

    def _again(self) -> tuple:
        return self.fun, self.argnums, self.has_aux, self.holomorphic, self.allow_int, self.kind

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        program = differentiable_program(self.fun, structure, specs)
        made = jacobians.jacobian_program(
            program,
            self.argnums,
            self._place(),
            what=self.kind,
            has_aux=self.has_aux,
            holomorphic=self.holomorphic,
            allow_int=self.allow_int,
            names=parameter_names(self.fun),
        )
        return made.with_function(made.function, name=self.__name__)


class Vmap(Transformed):
    """vmap."""

    compiles = True
    kind = "vmap"
    about = "{} for each of a batch: arguments and results have an axis more, where `in_axes` and `out_axes` say so."
    takes_batches = True

    def __init__(
        self, fun: Callable[..., Any], in_axes: Any, out_axes: Any, axis_size: int | None, axis_name: Hashable = None
    ):
        super().__init__(fun)
        self.in_axes, self.out_axes, self.axis_size, self.axis_name = in_axes, out_axes, axis_size, axis_name
        if not isinstance(axis_name, Hashable):
            raise DTypeError(
                f"vmap: axis_name={axis_name!r}, which has no hash", self.span, code="vmap-axes", remedy="give a text"
            )

    def _again(self) -> tuple:
        return self.fun, self.in_axes, self.out_axes, self.axis_size, self.axis_name

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        names, span = parameter_names(self.fun), self._place()
        example = batch.example_specs(structure, specs, self.in_axes, self.axis_size, span, names)
        with for_lanes(example.size) as lanes, named_axis(self.axis_name, example.size) as axis:
            program = program_of(self.fun, structure, example.specs)
            made = batch.batched_program(program, example, specs, self.out_axes, span, names, axis)
        return made.with_function(made.function, name=self.__name__, guards=(*made.guards, *lanes.guards))


class Jvp(Transformed):
    """jvp, as a function of (primals, tangents)."""

    compiles = True
    kind = "jvp"

    def __init__(self, fun: Callable[..., Any], has_aux: bool):
        super().__init__(fun)
        self.has_aux = has_aux
        self.__dict__.pop("__wrapped__", None)  # or its signature would be that of `fun`

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        made_of, span = _derivatives(), self._place()
        primals, tangents = structure.children()[0].children()
        if primals != tangents:
            raise ShapeError(
                f"jvp: the primals are {primals} and the tangents {tangents}",
                span,
                code="jvp-structure",
                remedy="give one tangent for each primal, in the same containers",
            )
        count = primals.num_leaves
        no_kwargs = structure.children()[1]
        program = differentiable_program(self.fun, treedef_tuple([primals, no_kwargs]), specs[:count])
        program = made_of.output_atoms(made_of.private_copies(program, "jvp"))
        out, aux = made_of.split_aux(program, self.has_aux, "jvp", span)
        wrt = self._checked(program, specs[:count], specs[count:], treedef_tuple([primals, no_kwargs]), span)
        made, tangent_leaves = made_of.forward_program(program, wrt, specs[count:])
        has = [k for k, r in enumerate(program.function.results) if has_tangent(r.type)]
        results = len(program.function.results)
        dots = []
        zeros_at = results + len(has)  # `forward_program` appends zeros for the others
        for slot in program.slots[: out.num_leaves]:
            if not isinstance(slot, Slot):
                dots.append(slot)
            elif slot.index in has:
                dots.append(Slot(results + has.index(slot.index)))
            else:
                dots.append(Slot(zeros_at + slot.index - sum(k < slot.index for k in has)))
        parts, slots = [out, out], [*program.slots[: out.num_leaves], *dots]
        if aux is not None:
            parts.append(aux)
            slots += program.slots[out.num_leaves :]
        return Program(
            made,
            program.captures,
            structure,
            (*program.leaves, *tangent_leaves),
            treedef_tuple(parts),
            tuple(slots),
            ("scalar",) * len(made.results),
            program.guards,
            (),
            self.__name__,
        )

    def _checked(
        self,
        program: Program,
        primals: Sequence[Spec],
        tangents: Sequence[Spec],
        structure: PyTreeDef,
        span: Span | None,
    ) -> list[int]:
        """The parameters that have tangents; each tangent has the shape and dtype of its primal."""
        wrt = []
        labels = leaf_labels(structure, parameter_names(self.fun))
        for leaf, primal, tangent, label in zip(program.leaves, primals, tangents, labels, strict=True):
            _derivatives().refuse_pinned(leaf, "jvp", label, span)
            if isinstance(leaf, Fixed) or not has_tangent(program.function.params[leaf].type):
                continue
            same_dtype = tangent.dtype == primal.dtype or tangent.form is Form.NUMBER and tangent.python in (int, float)
            if not tangent.dynamic or tangent.dims != primal.dims or not same_dtype:
                raise ShapeError(
                    f"jvp: the tangent of {label} is {tangent.text()}, and {label} is {primal.text()}",
                    span,
                    code="jvp-tangent",
                    remedy="give a tangent of the shape and dtype of its primal",
                )
            wrt.append(leaf)
        return wrt


class Linear(Transformed):
    """vjp and linearize, as a function of the primals."""

    def __init__(self, fun: Callable[..., Any], has_aux: bool, kind: str, argnums: tuple[int, ...] | None = None):
        self.kind = kind
        super().__init__(fun)
        self.has_aux, self.argnums = has_aux, argnums

    def _again(self) -> tuple:
        return self.fun, self.has_aux, self.kind, self.argnums

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        # what it gives may be differentiated, too
        program = differentiable_program(self.fun, structure, specs, times=2)
        made = linear.linear_program(program, self._place(), what=self.kind, has_aux=self.has_aux, argnums=self.argnums)
        return made.with_function(made.function, name=self.__name__)


class Apply(Transformed):
    """A LinearFunction applied to its arguments."""

    kind = "linear"

    def __init__(self, linear: LinearFunction):
        self.linear, self.fun, self.span = linear, linear, caller_span()
        self.__name__ = linear.rule.name
        self._memo = Memo(self.__name__, self._specialise)

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        return self.linear.rule.program(structure, specs, self.linear.residuals, self._place())


def apply_linear(linear: LinearFunction, *args: Any) -> Any:
    """Run a LinearFunction: in staged code as a part of it, else by NumPy source kept with its rule."""
    applied = Apply(linear)
    if under_way():
        return call_inside(applied, args, {})
    call = take_apart(args, {})
    rows, key = linear.rule.applied, (call.key, call.dims)
    if linear.rule.is_open:  # one program for all sizes
        linear.rule.require_sizes(linear.residuals, call.specs, applied._place())
        key = (call.key, ())
    row = rows.get(key)
    if row is None:
        row = rows[key] = applied._specialise(call, call.specs, {})
    return looked_at(lambda: row.program, lambda call: row.run(call, linear.residuals), call, captured=linear.residuals)


__all__ = [
    "Transformed",
    "Grad",
    "Jacobian",
    "Vmap",
    "Jvp",
    "Linear",
    "Apply",
    "program_of",
    "parameter_names",
    "Slot",
    "SourceError",
]
