"""vmap, from Program to Program: axes given as pytree prefixes, checked, moved to the front and back.

In: the structure and specs of the batched arguments, `in_axes`, `out_axes`. Out: the specs of one example,
and then the batched Program. Example:

    example = example_specs(structure, specs, (None, 0), ...)     # f64[n, 3] -> f64[3] for the second
    argument batched_program(program_of(f, structure, example.specs), example, out_axes=0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..astpasses.frontend import has_lists, has_ranges
from ..core.dims import DimLike
from ..core.types import Array
from ..late import dataclass
from ..pipeline import cleaned
from ..source import ShapeError, SourceError, Span
from ..tree_util import PyTreeDef, broadcast_prefix, tree_leaves
from . import programs as programs
from .arguments import Form, Spec
from .derivatives import output_atoms, refuse_writes
from .program import Fixed, Program, Slot, leaf_labels


@dataclass(frozen=True)
class Example:
    """`axes`: for each leaf the batch axis, None where there is none. `size`: of the batch."""

    specs: list[Spec]
    axes: list[int | None]
    size: DimLike


def _is_none(x: Any) -> bool:
    return x is None


def _axes_error(message: str, span: Span | None, remedy: str, code: str = "vmap-axes") -> SourceError:
    return ShapeError(f"vmap: {message}", span, code=code, remedy=remedy)


def _spread(axes: Any, structure: PyTreeDef, what: str, over: str, span: Span | None) -> list[Any]:
    """One axis a leaf, from a prefix of the structure."""
    tree = structure.skeleton([0] * structure.num_leaves)
    for axis in tree_leaves(axes):
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise _axes_error(f"{what} holds {axis!r}, which is not an axis", span, "use ints, and None for no axis")
    try:
        found = broadcast_prefix(axes, tree, is_leaf=_is_none)
        places = tree_leaves(tree, is_leaf=_is_none)  # a None in the tree has no leaf, and no axis
        return [axis for axis, place in zip(found, places, strict=True) if place is not None]
    except ValueError as error:
        detail = str(error).splitlines()[0].replace("the structures differ at", "they differ at")
        raise _axes_error(
            f"{what}={axes!r} does not fit the structure of {over}: {detail}",
            span,
            f"give an int, None, or a tree of them shaped like {over} (or its upper part)",
        ) from None


def leaf_axes(structure: PyTreeDef, in_axes: Any, span: Span | None) -> list[int | None]:
    """The axis of each leaf of (args, kwargs); keyword arguments are batched along axis 0."""
    args, kwargs = structure.children()
    count = len(args.children())
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple) and len(in_axes) != count:
        raise _axes_error(
            f"in_axes={in_axes!r} has {len(in_axes)} entr{'y' if len(in_axes) == 1 else 'ies'}, and the "
            f"function was called with {count} positional argument{'' if count == 1 else 's'}",
            span,
            "give one entry an argument, or one int for all",
        )
    return _spread(in_axes, args, "in_axes", "the arguments", span) + [0] * kwargs.num_leaves


def example_specs(
    structure: PyTreeDef,
    specs: Sequence[Spec],
    in_axes: Any,
    axis_size: int | None,
    span: Span | None,
    names: Sequence[str] = (),
) -> Example:
    """What one lane sees."""
    labels = leaf_labels(structure, names)
    axes = leaf_axes(structure, in_axes, span)
    inner: list[Spec] = []
    size: DimLike | None = axis_size
    first = "axis_size"
    found: list[int | None] = []
    for spec, axis, label in zip(specs, axes, labels, strict=True):
        if axis is None:
            inner.append(spec)
            found.append(None)
            continue
        if not spec.dynamic:
            raise _axes_error(
                f"{label} is {spec.value!r}, which has no axis to batch over",
                span,
                f"say None for it in in_axes, as in in_axes={_example_axes(structure)}",
            )
        rank = len(spec.dims)
        if not -rank <= axis < rank:
            none = "say None for it in in_axes, or pass an array of the lanes' numbers: np.array(numbers)"
            raise _axes_error(
                f"in_axes asks for axis {axis} of {label}, which is {spec.text()}",
                span,
                f"use an axis below {rank}" if rank else none,
            )
        axis = axis % rank
        if size is not None and spec.dims[axis] != size:
            raise _axes_error(
                f"{label} has {spec.dims[axis]} elements along axis {axis}, and {first} has {size}",
                span,
                "batch over axes of one size",
                code="vmap-size",
            )
        if size is None:
            size, first = spec.dims[axis], label
        dims = (*spec.dims[:axis], *spec.dims[axis + 1 :])
        inner.append(Spec(Form.ARRAY if dims else Form.SCALAR, spec.dtype, dims))
        found.append(axis)
    if size is None:
        raise _axes_error("no argument has a batch axis", span, "give at least one axis, or axis_size")
    return Example(inner, found, size)


def _example_axes(structure: PyTreeDef) -> str:
    count = len(structure.children()[0].children())
    return "(" + ", ".join(["0", *["None"] * (count - 1)]) + ("," if count == 1 else "") + ")"


def batched_program(
    program: Program,
    example: Example,
    specs: Sequence[Spec],
    out_axes: Any,
    span: Span | None,
    names: Sequence[str] = (),
    axis_name: str | None = None,
) -> Program:
    """The program of the whole batch. `specs`: of the batched leaves; `axis_name`: the label of the batch axis."""
    refuse_writes(program, "vmap", names)
    program = output_atoms(program)
    if has_lists(program.out):
        raise ShapeError(
            "vmap: the function returns a list whose length is only known when it runs",
            span,
            code="gathered",
            remedy="return what is the same size in every lane: its sum, its last item, an array of one size",
        )
    if has_ranges(program.out):
        raise ShapeError(
            "vmap: the function returns a range, which would be another one in every lane",
            span,
            code="result",
            remedy="return its bounds",
        )
    function = cleaned(program.function)
    results_axes = _spread(out_axes, program.out, "out_axes", "the output", span)
    wanted: list[int | None] = [None] * len(function.results)
    for slot, axis in zip(program.slots, results_axes, strict=True):
        if isinstance(slot, Slot):
            rank = function.results[slot.index].type.ndim + 1
            if axis is not None and not -rank <= axis < rank:
                raise _axes_error(
                    f"out_axes asks for axis {axis} of an output of rank {rank}", span, f"use an axis below {rank}"
                )
            wanted[slot.index] = None if axis is None else axis % rank
    axes: list[int | None] = [None] * len(function.params)
    types: list[Array] = list(function.param_types)
    for index, axis, spec in zip(program.leaves, example.axes, specs, strict=True):
        if not isinstance(index, Fixed) and axis is not None:
            axes[index], types[index] = axis, spec.type
        elif isinstance(index, Fixed) and axis is not None:
            raise AssertionError(f"a batched argument is an array, but {index} is a constant of the program")
    try:
        made = programs.batched(function, example.size, axes, wanted, types, axis_name)
    except ValueError as error:
        if len(error.args) != 1 or not isinstance(error.args[0], int):
            raise
        position = error.args[0]
        raise _axes_error(
            f"out_axes is None for an output that differs by lane ({function.results[position].type})",
            program.result_span(position) or span,
            "give it an axis, or return a value that does not depend on the batch",
        ) from None
    return program.with_function(made, forms=tuple("array" if r.type.dims else "scalar" for r in made.results))
