"""vjp and linearize: the output together with a linear function, which is a pytree of its residuals.

In: a staged Program and the primals' structure. Out: a Program whose output holds a `LinearFunction`. Because
it is a pytree, it goes through jit, branches and loops like any array. Example:

    y, pullback = vjp(f, x)          # pullback: LinearFunction(residuals, rule)
    (x_bar,) = pullback(y_bar)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..astpasses.frontend import Listed, StagedArray, has_lists
from ..core.build import literal, match_dims, replayed
from ..core.custom import through_rules
from ..core.dims import Dim, in_users_words, symbols
from ..core.ir import Function
from ..core.types import Array, has_tangent, substitute_type, type_of
from ..late import dataclass, field
from ..locks import cached_property
from ..ops.arithmetic import add
from ..ops.arrays import dim_value, zeros
from ..ops.compare import eq
from ..ops.effects import check
from ..ops.indexing import slice as slice_region
from ..ops.shape import convert
from ..pipeline import cleaned
from ..source import DTypeError, ShapeError, Span
from ..tree_util import (
    PyTreeDef,
    keystr,
    register_pytree_node,
    tree_flatten,
    tree_flatten_with_path,
    tree_structure,
    treedef_tuple,
)
from . import programs as programs
from .arguments import Form, Spec
from .derivatives import (
    check_argnums,
    leaves_of,
    output_atoms,
    private_copies,
    refuse_pinned,
    split_aux,
    without_derivative,
)
from .program import Fixed, Program, Slot, leaf_labels, marks, under_way, with_results


@dataclass(frozen=True, eq=False)
class Rule:
    """What a LinearFunction does. `function(*residuals, *linear inputs) -> linear outputs`.

    `inputs`: for each leaf of an argument the type of its tangent, None where it has no tangent space (a
    value given there is not looked at). `outputs`: for each leaf of the result the index of a linear output,
    or the type of the zeros that stand there.
    """

    name: str
    function: Function
    residuals: int
    argument: PyTreeDef
    inputs: tuple[Array | None, ...]
    result: PyTreeDef
    outputs: tuple[int | Array, ...]
    applied: dict[tuple, Any] = field(init=False, repr=False, default_factory=dict)  # what ran it, by types

    def program(
        self, structure: PyTreeDef, specs: Sequence[Spec], captures: Sequence[Any], span: Span | None
    ) -> Program:
        """The rule applied to arguments of these specs."""
        if structure.children()[0].children() != self.argument.children() or structure.children()[1].num_leaves:
            raise ShapeError(
                f"{self.name} takes {treedef_text(self.argument)}, and got {treedef_text(structure.children()[0])}",
                span,
                code="linear-structure",
                remedy="pass values of the structure that the function returned (vjp) or took (linearize)",
            )
        labels = _labels(self.argument)
        inside = any(hasattr(residual, "type") for residual in captures)
        sizes: dict[str, Any] = {}
        params: list[tuple[str, Array]] = []
        for param, residual in zip(self.function.params[: self.residuals], captures, strict=True):
            staged = getattr(residual, "type", None)  # an array has none: its sizes are checked at each call
            if staged is not None:
                match_dims(param.type, staged, sizes)
            params.append((param.name, staged or param.type))
        leaves: list[int | Fixed] = []
        used: list[int] = []
        for want, spec, label in zip(self.inputs, specs, labels, strict=True):
            if not spec.dynamic:
                leaves.append(Fixed(spec.value))
                if want is not None:
                    raise DTypeError(
                        f"{self.name}: {label} is {spec.value!r} and must be {want}",
                        span,
                        code="linear-type",
                        remedy="pass a float or an array of floats",
                    )
                continue
            have = spec.type
            weak = spec.form is Form.NUMBER
            if want is not None:
                want = substitute_type(want, sizes)
                fits = len(have.dims) == len(want.dims) and all(
                    h == w or isinstance(w, Dim) for h, w in zip(have.dims, want.dims)
                )
                if not fits or have.dtype != want.dtype and not weak:
                    raise self.misfit(label, spec.text(), want, span)
                if not inside:  # one program for all sizes
                    have = Array(have.dtype, want.dims)
                used.append(len(params))
            leaves.append(len(params))
            params.append((f"v{len(params)}", have))
        slots: list[Slot] = []

        def make(builder: Any, variables: list[Any]) -> list[Any]:
            given = variables[: self.residuals]
            for k, (param, value) in enumerate(zip(self.function.params, given)):
                if param.type.value is not None and value.type.value is None:
                    given[k] = builder.size(value, param.name)
                match_dims(param.type, given[k].type, sizes)
            targets = [t for t in self.inputs if t is not None]
            for target, position in zip(targets, used):
                value = variables[position]
                match_dims(target, value.type, sizes)
                value = value if value.type.dtype == target.dtype else convert(value, dtype=target.dtype)
                given.append(of_shape(value, substitute_type(target, sizes).dims, self.name))
            outs = builder.replay(self.function, given)
            results: list[Any] = []
            for output in self.outputs:
                slots.append(Slot(len(results)))
                results.append(outs[output] if isinstance(output, int) else zeros(substitute_type(output, sizes)))
            return results

        function = replayed(self.name, params, make)
        return Program(
            function,
            tuple(captures),
            structure,
            tuple(leaves),
            self.result,
            tuple(slots),
            ("scalar",) * len(slots),
            name=self.name,
        )

    @cached_property
    def takes_lists(self) -> bool:
        """Whether an argument has a list whose length only a run knows."""
        return has_lists(self.argument)

    @cached_property
    def is_open(self) -> bool:
        """Whether an argument has a size that only a run knows."""
        return any(want is not None and _symbols(want) for want in self.inputs)

    def sizes_in(self, residuals: Sequence[Any]) -> dict[str, Any]:
        """The sizes that residuals tell, which have values."""
        sizes: dict[str, Any] = {}
        for param, residual in zip(self.function.params, residuals):
            match_dims(param.type, type_of(residual), sizes)
            if isinstance(param.type.value, Dim) and param.type.value.is_sym:
                sizes[param.type.value.name] = int(residual)
        return sizes

    def require_sizes(self, residuals: Sequence[Any], given: Sequence[Spec], span: Span | None) -> None:
        """Refuse arguments that have not the sizes that the run gave."""
        sizes = self.sizes_in(residuals)
        for want, spec, label in zip(self.inputs, given, _labels(self.argument)):
            if want is None or not spec.dynamic or len(want.dims) != len(spec.type.dims):
                continue  # refused where the program is made
            match_dims(want, spec.type, sizes)
            if (wanted := substitute_type(want, sizes)).dims != spec.type.dims:
                raise self.misfit(label, spec.text(), wanted, span)

    def misfit(self, label: str, have: str, want: Array, span: Span | None) -> ShapeError:
        return ShapeError(
            in_users_words(f"{self.name}: {label} is {have} and must be {want}"),
            span,
            code="linear-type",
            remedy="pass a value of the shape and dtype of the primal value",
        )


def with_lists(structure: PyTreeDef, types: Sequence[Array | None], value: Any) -> Any:
    """A value with a Listed in the place of each list where the structure, whose leaves are of `types`, has one."""
    data, parts = structure.node_data(), structure.children()
    if data is None or data[0] is Listed:
        return value if data is None else _listed(data[1], types, value)
    firsts = [0, *accumulate(part.num_leaves for part in parts)]
    inner = [(part, types[first:end]) for part, first, end in zip(parts, firsts, firsts[1:])]
    if type(value) is dict and len(value) == len(parts) and value.keys() >= {*data[1]}:
        return {key: with_lists(*part, value[key]) for key, part in zip(data[1], inner)}
    if type(value) in (tuple, list) and len(value) == len(parts):
        return type(value)(with_lists(*part, v) for part, v in zip(inner, value))
    return value


def _listed(metadata: tuple[PyTreeDef, tuple], types: Sequence[Array | None], value: Any) -> Any:
    """A list of items of one structure as a Listed; anything else as it is."""
    tree, python = metadata
    if isinstance(value, StagedArray):  # a list that is gathered where this is staged
        return Listed([value], tree, python)
    if type(value) is not list:
        return value
    if len(value) == 1 and hasattr(value[0], "arrays"):  # such a list, of items of several leaves
        return Listed(value[0].arrays, tree, python)
    items = [tree_flatten(item) for item in value]
    if any(found != tree for _, found in items):
        return value
    columns = [np.array([leaves[k] for leaves, _ in items]) for k in range(tree.num_leaves)]
    if not items:
        columns = [np.zeros([d if isinstance(d, int) else 0 for d in (0, *t.dims[1:])] if t else 0) for t in types]
    return Listed(columns, tree, python)


def of_shape(value: Any, dims: tuple, name: str) -> Any:
    """A value that has these sizes, which is checked where the run decides."""
    if value.type.dims == dims:
        return value
    for have, want in zip(value.type.dims, dims):
        if have != want:
            a, b = dim_value(dim=have), dim_value(dim=want)
            check(eq(a, b), a, b, exception="ValueError", message=f"{name}: a size is {{}} and must be {{}}")
    return slice_region(value, *[literal(0)] * len(dims), shape=dims, step=(1,) * len(dims))


def _symbols(type_: Array) -> set[str]:
    return {name for dim in type_.dims for name in symbols(dim)}


def treedef_text(structure: PyTreeDef) -> str:
    text = repr(structure).removeprefix("PyTreeDef(")[:-1]
    return re.sub(r"CustomNode\(Listed\[\(.*?\)\], \[(.*?)\]\)", r"[\1, ...]", text)


def _labels(argument: PyTreeDef) -> list[str]:
    pairs = tree_flatten_with_path(argument.skeleton(range(argument.num_leaves)))[0]
    return [f"argument {path[0].idx}{keystr(path[1:])}" if path else "the argument" for path, _ in pairs]


class LinearFunction:
    """A linear function over residuals that were computed at a point. A pytree: its leaves are the
    residuals."""

    __slots__ = ("residuals", "rule", "call")
    keeps_residuals = True

    def __init__(self, residuals: Sequence[Any], rule: Rule):
        self.residuals, self.rule = tuple(residuals), rule

    def __call__(self, *args: Any) -> Any:
        from .transformations import apply_linear

        if self.rule.takes_lists:
            sizes = {} if under_way() else self.rule.sizes_in(self.residuals)
            types = [t and substitute_type(t, sizes) for t in self.rule.inputs]
            args = with_lists(self.rule.argument, types, args)
        return apply_linear(self, *args)

    def __repr__(self) -> str:
        return f"<{self.rule.name}, {len(self.residuals)} residuals>"


register_pytree_node(LinearFunction, lambda f: (f.residuals, f.rule), lambda rule, r: LinearFunction(r, rule))


def _structure(residuals: int, rule: Rule) -> PyTreeDef:
    return tree_structure(LinearFunction([0] * residuals, rule))


def linear_program(
    program: Program, span: Span | None, *, what: str, has_aux: bool, argnums: Sequence[int] | None = None
) -> Program:
    """`what` is "vjp" (the output and its pullback) or "linearize" (the output and its pushforward), with respect to
    all positional arguments or those of `argnums`."""
    program = private_copies(program, what)
    program = output_atoms(program)
    out, aux = split_aux(program, has_aux, what, span)
    if aux is not None:
        aux_slots = program.slots[out.num_leaves :]
        program = without_derivative(program, [s.index for s in aux_slots if isinstance(s, Slot)])
    function = cleaned(program.function if what == "vjp" else through_rules(program.function))
    arguments = program.structure.children()[0]
    numbers = list(range(arguments.num_leaves))
    if argnums is not None:
        positions, _ = check_argnums(argnums, len(arguments.children()), what, span)
        arguments = treedef_tuple([arguments.children()[p] for p in positions])
        numbers = [k for p in positions for k in leaves_of(program, p)]
    leaves = [program.leaves[k] for k in numbers]
    labels = leaf_labels(program.structure)
    for k in numbers:
        refuse_pinned(program.leaves[k], what, labels[k], span)
    wrt = [k for k in leaves if not isinstance(k, Fixed) and has_tangent(function.params[k].type)]
    parts = programs.linear_parts(function, marks(len(function.params), wrt), cleaned)
    count = len(function.results)
    has = [k for k, r in enumerate(function.results) if has_tangent(r.type)]
    row = {result: k for k, result in enumerate(has)}
    column = {param: k for k, param in enumerate(wrt)}
    known, linear = programs.with_sizes(
        parts.known,
        count,
        parts.pullback if what == "vjp" else parts.pushforward,
        [r.type for r in (function.params if what == "vjp" else function.results)],
    )
    residuals = len(known.results) - count

    def leaf_type(leaf: int | Fixed) -> Array:
        return literal(0.0).type if isinstance(leaf, Fixed) else function.params[leaf].type.plain

    primal_types = tuple(
        function.params[k].type.plain if not isinstance(k, Fixed) and k in column else None for k in leaves
    )
    out_slots = program.slots[: out.num_leaves]
    out_types = tuple(
        function.results[s.index].type.plain if isinstance(s, Slot) and s.index in row else None for s in out_slots
    )
    if what == "vjp":
        # cotangents of aux do not exist; those of the output come in its order, and the pullback wants all
        # results'
        pullback = _for_outputs(linear, residuals, has, out_slots, function)
        rule = Rule(
            f"pullback_{program.name}",
            pullback,
            residuals,
            treedef_tuple([out]),
            out_types,
            arguments,
            tuple(column[k] if k in column else leaf_type(k) for k in leaves),
        )
    else:
        rule = Rule(
            f"pushforward_{program.name}",
            linear,
            residuals,
            arguments,
            primal_types,
            out,
            tuple(
                row[s.index]
                if isinstance(s, Slot) and s.index in row
                else (function.results[s.index].type.plain if isinstance(s, Slot) else literal(0.0).type)
                for s in out_slots
            ),
        )
    structures = [out, _structure(residuals, rule)] + ([aux] if aux is not None else [])
    slots = [*out_slots, *(Slot(count + k) for k in range(residuals)), *program.slots[out.num_leaves :]]
    return program.with_function(
        known, out=treedef_tuple(structures), slots=tuple(slots), forms=("scalar",) * len(known.results)
    )


def _for_outputs(
    pullback: Function, residuals: int, has: Sequence[int], out_slots: Sequence[Any], function: Function
) -> Function:
    """The pullback as a function of the cotangents of the output's leaves, in their order; others are
    zero."""
    wanted = [s.index for s in out_slots if isinstance(s, Slot) and s.index in has]
    params = [(p.name, p.type) for p in pullback.params[:residuals]]
    bars = [(pullback.params[residuals + list(has).index(k)].name, function.results[k].type.plain) for k in wanted]

    def make(builder: Any, variables: list[Any]) -> Any:
        given = variables[residuals:]
        sums: dict[int, Any] = {}
        for index, bar in zip(wanted, given):
            sums[index] = add(sums[index], bar) if index in sums else bar
        every = [sums[k] if k in sums else zeros(function.results[k].type.plain) for k in has]
        return builder.replay(pullback, [*variables[:residuals], *every])

    return replayed(pullback.name, [*params, *bars], make)


__all__ = ["LinearFunction", "Rule", "linear_program", "with_results"]
