"""What is built of derivatives: linear_transpose, hvp, fwd_and_bwd, closure_convert.

In: functions, as the transformations take them. Out: functions, or for `hvp` what the function returns. All but `hvp`
are JAX's. Example:

    hvp(loss, (w, x), (w_dot, x_dot))      # the Hessian with respect to w, and the mixed derivatives, times a vector
    transposed = linear_transpose(np.cumsum, x)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..astpasses.transforms.linearity import check_linear
from ..core.ir import Function, Var
from ..core.types import has_tangent
from ..pipeline import cleaned
from ..source import DTypeError, ShapeError
from ..tree_util import PyTreeDef, tree_map, treedef_tuple
from .arguments import Spec, take_apart, takes_any_keywords
from .captures import capture_key, read_capture
from .derivatives import differentiated, output_atoms, private_copies
from .identity import shared
from .linear import Rule
from .program import Fixed, Program, Slot, marks
from .programs import transposed_linear
from .public import grad, jit, jvp, like_struct
from .tracebacks import user_frames
from .transformations import Linear, differentiable_program
from .transforms import Transformed, parameter_names, program_of
from .types import given_arguments


def hvp(
    fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], argnums: int | Sequence[int] = 0
) -> Any:
    """The derivative of the gradient of `fun` in the direction of `tangents`, in the structure of the arguments at
    `argnums`: of a function of one argument its Hessian times a vector. No matrix is made.

    Forward over reverse mode (Pearlmutter, Fast Exact Multiplication by the Hessian, 1994). Raises what `grad` and
    `jvp` raise.
    """
    return jvp(grad(fun, argnums), primals, tangents)[1]


# ---- transposes -----------------------------------------------------------------------------------------


class Transposed(Transformed):
    """The transpose of a linear function for arguments of these specs."""

    kind = "linear_transpose"
    compiles = True

    def __init__(self, fun: Callable[..., Any], primals: PyTreeDef, specs: tuple[Spec, ...]):
        super().__init__(fun)
        self.__dict__.pop("__wrapped__", None)  # or its signature would be that of `fun`
        self.primals, self.specs = primals, specs

    def _again(self) -> tuple:
        return self.fun, self.primals, self.specs

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        span = self._place()
        program = output_atoms(private_copies(differentiable_program(self.fun, self.primals, self.specs), self.kind))
        arguments = self.primals.children()[0]
        positions = range(len(arguments.children()))
        wrt = differentiated(program, positions, self.kind, span, names=parameter_names(self.fun))
        function = cleaned(program.function)
        for slot in program.slots:
            type_ = function.results[slot.index].type if isinstance(slot, Slot) else None
            if type_ is None or not has_tangent(type_):
                raise DTypeError(
                    f"{self.kind} of {program.title}, which returns {slot.value if type_ is None else type_}",
                    span,
                    code="grad-dtype",
                    remedy="return floats",
                )
        linear = marks(len(function.params), wrt)
        check_linear(function, linear, f"{self.kind} of {program.title}")
        rule = Rule(
            f"transposed_{program.name}",
            transposed_linear(function, linear, [slot.index for slot in program.slots], cleaned),
            len(program.captures),
            treedef_tuple([program.out]),
            tuple(function.results[slot.index].type.plain for slot in program.slots),
            arguments,
            tuple(sorted(wrt).index(k) for k in wrt),
        )
        made = rule.program(structure, specs, program.captures, span)
        return made.with_function(made.function, guards=program.guards, name=self.__name__)


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Callable[..., tuple[Any, ...]]:
    """The transpose of a linear function: it takes a value like what `fun` returns, and gives a tuple with one like
    each of `primals`.

    Of `primals` shapes and dtypes count alone: arrays, ShapeDtypeStructs, or text of types. `fun` is not run. Raises
    UnsupportedError for the first operation that is not linear, or that adds what does not depend on the arguments; and
    DTypeError for arguments and results that are no floats. `reduce_axes` is JAX's and changes nothing. (Griewank &
    Walther, Evaluating Derivatives, ch. 3: the adjoint of a linear program.)
    """
    with user_frames():
        args, _ = tree_map(like_struct, given_arguments(primals, {}))
        call = take_apart(args, {})
        specs = tuple(replace(spec, value=None, shared=None) if spec.dynamic else spec for spec in call.specs)
        return shared(Transposed, fun, call.structure, specs)


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Two functions: `fwd(*args)` gives what `fun` gives and residuals (with `has_aux` also aux), and
    `bwd(residuals, cotangent)` the cotangents of the arguments at `argnums`, alone where that is a number.

    As `vjp`, but both are compiled once, with `jitted`, wherever they are called. Raises what `vjp` raises.
    """
    with user_frames():
        single = isinstance(argnums, int)
        forward = shared(Linear, fun, has_aux, "vjp", (argnums,) if single else tuple(argnums))  # type: ignore[arg-type]

        def backward(residuals: Any, cotangent: Any) -> Any:
            found = residuals(cotangent)
            return found[0] if single else found

        return (jit(forward), jit(backward)) if jitted else (forward, backward)


# ---- closures -------------------------------------------------------------------------------------------


class Converted(Transformed):
    """A function of its arguments and then of `count` values that it captured, which stand at `sources`."""

    kind = "closure_convert"
    compiles = True

    def __init__(self, fun: Callable[..., Any], sources: tuple[Any, ...]):
        super().__init__(fun)
        self.__dict__.pop("__wrapped__", None)
        self.sources = sources

    def _again(self) -> tuple:
        return self.fun, self.sources

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        args, kwargs = structure.children()
        count = len(self.sources)
        own = treedef_tuple(args.children()[: len(args.children()) - count])
        consts = own.num_leaves
        program = program_of(self.fun, treedef_tuple([own, kwargs]), [*specs[:consts], *specs[consts + count :]])
        params = program.function.params
        captures = len(program.captures)
        keys = {capture_key(capture): k for k, capture in enumerate(program.captures)}
        hoisted = [keys.get(capture_key(source)) for source in self.sources]  # None: not read for these arguments
        given = []
        for source, place, spec in zip(self.sources, hoisted, specs[consts : consts + count]):
            wanted = params[place].type if place is not None else spec.type if spec.dynamic else None
            if not spec.dynamic or spec.type != wanted:
                raise ShapeError(
                    f"{self.kind}: the value of {source} is {spec.text()} and must be {wanted}",
                    self._place(),
                    code="linear-type",
                    remedy="pass a value of the shape and dtype of what the function captured",
                )
            given.append(params[place] if place is not None else Var("unused", spec.type))
        kept = [k for k in range(captures) if k not in hoisted]
        leaves = [leaf if isinstance(leaf, Fixed) else params[leaf] for leaf in program.leaves]
        leaves[consts:consts] = given
        dynamic = [leaf for leaf in leaves if isinstance(leaf, Var)]
        order = [*(params[k] for k in kept), *dict.fromkeys(dynamic)]
        place_of = {param: k for k, param in enumerate(order)}
        return program.with_function(
            Function(program.function.name, tuple(order), program.function.lets, program.function.results),
            captures=tuple(program.captures[k] for k in kept),
            structure=structure,
            leaves=tuple(place_of[leaf] if isinstance(leaf, Var) else leaf for leaf in leaves),
            name=self.__name__,
        )


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A function of the arguments of `fun` and then of the arrays of floats that `fun` captures; and these arrays.

    So a function that takes another one can tell a derivative rule what that one depends on, as
    `converted(*args, *consts)`. Which arrays are captured is found out for `example_args`, arrays or ShapeDtypeStructs;
    captured Python numbers, integers and bools stay in the function. Raises what staging `fun` raises.
    """
    with user_frames():
        call = take_apart(tree_map(like_struct, example_args), {}, in_order=takes_any_keywords(fun))
        program = program_of(fun, call.structure, call.specs)
        sources = tuple(
            capture for capture, param in zip(program.captures, program.function.params) if has_tangent(param.type)
        )
        return Converted(fun, sources), [read_capture(source) for source in sources]


__all__ = ["closure_convert", "fwd_and_bwd", "hvp", "linear_transpose"]
