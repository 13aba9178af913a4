"""Between the front end's `Staged` and the API's `Program`: both ways, and what each needs of the other at
run time.

In: a user's function and specs of its arguments. Out: a Program. In staged code: a transformed function's
Program as the `Staged` that the front end calls. Example: `stage(period, structure of ((e, M), {}), [f64,
f64])`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..astpasses.frontend import Output, Staged, Write
from ..astpasses.frontend import stage as stage_function
from ..config import config
from ..core.axes import named_axes
from ..core.dims import DimLike
from ..core.types import NAMES, Array
from ..late import module
from ..ops.collectives import named_in
from ..pipeline import cleaned, run
from ..source import Span
from ..tree_util import PyTreeDef, tree_flatten, tree_leaves
from .arguments import Form, Spec
from .memory import pairs
from .program import Captured, Fixed, Program, Same, Slot, definition_span, name_of
from .types import ShapeDtypeStruct, struct_of

if TYPE_CHECKING:
    from ..astpasses.transforms import double_where, in_step
else:
    double_where = module("metaphrase.astpasses.transforms.double_where")
    in_step = module("metaphrase.astpasses.transforms.in_step")

# ---- Staged to Program and back -------------------------------------------------------------------------


def stand_in(spec: Spec) -> Any:
    """What the front end takes for a leaf: its value where that may be needed, else its type."""
    if spec.shared is not None:
        return spec.shared
    if spec.form is Form.STATIC or spec.form is Form.NUMBER and spec.value is not None:
        return spec.value
    assert spec.dtype is not None
    if spec.form is Form.NUMBER:
        return ShapeDtypeStruct((), spec.dtype, weak_type=True)
    if spec.form is Form.ARRAY and not spec.dims:
        return np.zeros((), spec.dtype)
    return spec.type


def stage(fun: Any, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
    """The program of a user's function."""
    args, kwargs = structure.skeleton([_Whole(stand_in(s)) if s.form is Form.STATIC else stand_in(s) for s in specs])
    static = [k for k, a in enumerate(args) if type(a) is _Whole]
    static += [name for name, a in kwargs.items() if type(a) is _Whole]
    args, kwargs = _opened(args), _opened(kwargs)
    staged = run("core", stage_function, fun, args, kwargs, static=static)
    if config.double_where:
        staged = replace(staged, function=double_where.double_where(staged.function))
    if (axes := named_axes()) and named_in(staged.function):
        staged = replace(staged, function=in_step.in_step(cleaned(staged.function), axes))
    return program_of_staged(staged, structure, specs, name_of(fun), definition_span(fun))


class _Whole:
    """Marks a static leaf, so that a whole static argument that is a container stays one leaf."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


def _opened(tree: Any) -> Any:
    leaves, structure = tree_flatten(tree)
    return structure.skeleton([leaf.value if type(leaf) is _Whole else leaf for leaf in leaves])


def program_of_staged(
    staged: Staged, structure: PyTreeDef, specs: Sequence[Spec], name: str, defined: Span | None
) -> Program:
    """The front end numbers leaves of what it was given; static containers count there as several leaves."""
    count = len(staged.captures)
    place = {leaf: count + k for k, leaf in enumerate(staged.dynamic)}
    fixed = dict(staged.static)
    place.update({leaf: place[first] for leaf, first in staged.same})
    leaves: list[int | Fixed] = []
    number: dict[int, int] = {}
    k = 0
    for position, spec in enumerate(specs):
        width = _width(spec)
        number.update({k + j: position for j in range(width)})
        if spec.form is Form.STATIC:
            leaves.append(Fixed(spec.value))
        elif k in place:
            leaves.append(place[k])
        else:
            leaves.append(Fixed(fixed[k], staged.reasons.get(k)))
        k += width
    writes = [_numbered(write, number) for write in staged.writes]
    slots = [slot_of(output, number) for output in staged.outputs]
    forms = ["scalar"] * len(staged.function.results)
    stored = [o for write in staged.writes for o in write.outputs]
    for output, result in (
        (o, staged.function.results[o.index]) for o in (*staged.outputs, *stored) if o.kind == "result"
    ):
        if output.python is not None:
            forms[output.index] = "python"
        elif result.type.dims or output.array:
            forms[output.index] = "array"
    ordered = tuple(number[k] for k in staged.ordered)
    return Program(
        staged.function,
        staged.captures,
        structure,
        tuple(leaves),
        staged.out_tree,
        tuple(slots),
        tuple(forms),
        staged.guards,
        tuple(writes),
        name,
        staged,
        defined,
        ordered,
        staged.raises,
    )


def _numbered(write: Write, number: dict[int, int]) -> Write:
    """A store whose leaves are numbered as the Program numbers them."""
    if write.kind == "argument":
        return replace(write, target=number[write.target])
    outputs = [replace(o, index=number[o.index]) if o.kind == "argument" else o for o in write.outputs]
    return replace(write, outputs=tuple(outputs))


def _width(spec: Spec) -> int:
    if spec.form is not Form.STATIC:
        return 1
    return len(tree_leaves(spec.value))


def slot_of(output: Output, number: dict[int, int] | None = None) -> Any:
    """A leaf of the front end's output as one of the Program's."""
    if output.kind == "result":
        return Slot(output.index)
    if output.kind == "argument":
        return Same(output.index if number is None else number[output.index])
    if output.kind == "capture":
        return Captured(output.index)
    return Fixed(output.value)


def give_back(program: Program) -> Staged:
    """A Program as the front end calls it."""
    outputs = []
    count = len(program.captures)
    for slot in program.slots:
        if isinstance(slot, Slot):
            form = program.forms[slot.index]
            python = _python_type(program.function.results[slot.index].type) if form == "python" else None
            outputs.append(Output("result", slot.index, python=python, array=form == "array"))
        elif isinstance(slot, Same):
            outputs.append(Output("argument", slot.leaf))
        elif isinstance(slot, Captured):
            outputs.append(Output("capture", slot.index))
        else:
            outputs.append(Output("static", value=slot.value))
    repeated = {position for position, _ in pairs(program)}
    dynamic = tuple(k for k, leaf in enumerate(program.leaves) if not isinstance(leaf, Fixed) and k not in repeated)
    assert [program.leaves[k] for k in dynamic] == list(range(count, count + len(dynamic)))
    static = tuple((k, leaf.value) for k, leaf in enumerate(program.leaves) if isinstance(leaf, Fixed))
    return Staged(
        program.function,
        program.captures,
        program.structure,
        program.out,
        program.guards,
        program.writes,
        tuple(outputs),
        dynamic,
        static,
        (None,) * len(dynamic),
        ordered=program.ordered,
    )


def _python_type(type_: Array) -> type:
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[type_.dtype.kind]


def out_structs(program: Program) -> Any:
    """The output with a ShapeDtypeStruct for each array."""
    leaves = []
    for slot in program.slots:
        if isinstance(slot, Slot):
            leaves.append(struct_of(program.function.results[slot.index].type.plain))
        elif isinstance(slot, Same):
            index = program.leaves[slot.leaf]
            leaves.append(struct_of(program.function.params[index].type.plain))  # type: ignore[index]
        elif isinstance(slot, Captured):
            leaves.append(struct_of(program.function.params[slot.index].type.plain))
        else:
            leaves.append(slot.value)
    return program.out.unflatten(leaves)


__all__ = ["stage", "give_back", "out_structs", "NAMES", "DimLike"]
