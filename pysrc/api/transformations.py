"""The transformations: `Grad`, `Jacobian`, `Vmap`, `Jvp`, `Linear` around a function, and `Apply` of a linear one.

In: what the public functions (`grad`, `vmap`, ...) are given. Out: a `Transformed` of `transforms.py`, whose program
is made of the program of the function inside. Example:

    vmap(grad(f))(xs)     # Vmap: types of one x -> Grad: types of one x -> f is staged -> gradient -> batch
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.axes import named_axis
from ..core.types import has_tangent
from ..late import module
from ..source import DTypeError, ShapeError, Span
from ..tree_util import PyTreeDef, treedef_tuple
from .arguments import Form, Spec, take_apart
from .execute import Memo
from .nonfinite import looked_at
from .orders import derivatives_to_come, for_lanes, taking_derivatives
from .program import Fixed, Program, Slot, caller_span, leaf_labels, under_way
from .transforms import Transformed, call_inside, parameter_names, program_of

if TYPE_CHECKING:
    from .linear import LinearFunction

batch = module("metaphrase.api.batch")
derivatives = module("metaphrase.api.derivatives")
jacobians = module("metaphrase.api.jacobians")
linear = module("metaphrase.api.linear")


def differentiable_program(
    fun: Callable[..., Any], structure: PyTreeDef, specs: Sequence[Spec], times: int = 1
) -> Program:
    """`program_of`, to be differentiated so many times more than what is under way is anyway."""
    with taking_derivatives(derivatives_to_come() + times):
        return program_of(fun, structure, specs)


def _arguments_text(argnums: Any) -> str:
    if isinstance(argnums, (tuple, list)):
        return f"arguments {', '.join(map(str, argnums))}"
    return f"argument {argnums}"


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
        made = derivatives.gradient_program(
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
        made_of, span = derivatives, self._place()
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
            derivatives.refuse_pinned(leaf, "jvp", label, span)
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


__all__ = ["Apply", "Grad", "Jacobian", "Jvp", "Linear", "Vmap", "apply_linear", "differentiable_program"]
