"""jacfwd and jacrev, from Program to Program.

In: a staged Program and which arguments to differentiate. Out: a Program that returns, for each leaf of the output and
each leaf of those arguments, the matrix of derivatives. Example:

    jacobian_program(program_of(f, args, kwargs), argnums=0, what="jacrev", ...)      # x -> df/dx
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.types import has_tangent
from ..pipeline import cleaned
from ..source import DTypeError, Span
from ..tree_util import treedef_tuple
from . import programs as programs
from .derivatives import (
    assembled,
    check_argnums,
    differentiated,
    of_real,
    output_atoms,
    private_copies,
    split_aux,
    with_zeros,
    without_derivative,
)
from .program import Program, Slot, marks


def jacobian_program(
    program: Program,
    argnums: Any,
    span: Span | None,
    *,
    what: str,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
    names: Sequence[str],
) -> Program:
    """jacfwd or jacrev: for each output leaf, for each input leaf, the derivative."""
    program = private_copies(program, what, names)
    count = len(program.structure.children()[0].children())
    positions, single = check_argnums(argnums, count, what, span)
    wrt = differentiated(program, positions, what, span, holomorphic=holomorphic, allow_int=allow_int, names=names)
    program = output_atoms(program)
    out, aux = split_aux(program, has_aux, what, span)
    outputs, aux_slots = program.slots[: out.num_leaves], program.slots[out.num_leaves :]
    program = without_derivative(program, [s.index for s in aux_slots if isinstance(s, Slot)])
    function = cleaned(program.function)
    without = [k for k in dict.fromkeys(wrt) if not has_tangent(function.params[k].type)]
    chosen = sorted(set(wrt) - set(without))
    for slot in outputs:
        type_ = function.results[slot.index].type if isinstance(slot, Slot) else None
        if type_ is None or not has_tangent(type_):
            raise DTypeError(
                f"{what} of {program.title}, which returns {slot.value if type_ is None else type_}",
                program.result_span(slot.index) if type_ is not None else span,
                code="grad-dtype",
                remedy="return floats, and other values as aux with has_aux=True",
            )
        if what == "jacrev" and type_.dtype.kind == "c" and not holomorphic:
            raise DTypeError(
                f"{what} of {program.title}, which returns {type_.plain}",
                program.result_span(slot.index) or span,
                code="grad-dtype",
                remedy="return floats" + of_real["c"] + ", or use jacfwd",
            )
    make = programs.jacobian_forward if what == "jacfwd" else programs.jacobian_reverse
    made = make(function, marks(len(function.params), chosen), cleaned)
    has = [k for k, r in enumerate(function.results) if has_tangent(r.type)]
    row = {result: k for k, result in enumerate(has)}

    blank = [(result, param) for result in has for param in without]  # derivatives with respect to integers
    shapes = [(*function.results[r].type.dims, *function.params[p].type.dims) for r, p in blank]
    first = len(made.results)
    made = with_zeros(made, shapes)

    def place(result: int, param: int) -> Slot:
        if param in without:
            return Slot(first + blank.index((result, param)))
        return Slot(len(function.results) + row[result] * len(chosen) + chosen.index(param))

    trees = [program.argument_structure(p) for p in positions]
    inner = trees[0] if single else treedef_tuple(trees)
    slots = [place(slot.index, param) for slot in outputs for param in wrt]
    parts = [(out.compose(inner), slots)]
    if aux is not None:
        parts.append((aux, list(aux_slots)))
    return assembled(program, made, parts, single=aux is None)


__all__ = ["jacobian_program"]
