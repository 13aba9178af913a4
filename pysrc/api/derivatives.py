"""grad and jvp, from Program to Program, and what all derivatives ask of a Program.

In: a staged Program and which arguments to differentiate. Out: a Program over the arguments of the
transformed function. Refusals (not a scalar, not a float, a write to an argument) name the user's place.
Example:

    gradient_program(program_of(loss, args, kwargs), argnums=0, ...)      # (params, x) -> gradient like
    params
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..astpasses.frontend import has_text, is_chosen, may_be_none, may_be_number
from ..core.build import literal, replayed
from ..core.ir import Atom, Function, Var
from ..core.types import NAMES, Array, has_tangent, is_float
from ..ops.arrays import zeros
from ..ops.elementary import stop_gradient
from ..ops.shape import convert
from ..pipeline import cleaned
from ..source import DTypeError, ShapeError, SourceError, Span, UnsupportedError
from ..tree_util import PyTreeDef, tree_structure, treedef_tuple
from . import programs as programs
from .arguments import Dims, Spec
from .program import Captured, Fixed, Program, Same, Slot, leaf_labels, marks, with_results
from .registration import registration_of

Argnums = int | tuple[int, ...]
TUPLE = tree_structure((0, 0))


def refuse_writes(program: Program, transformation: str, names: Sequence[str] = ()) -> None:
    """A batch of a function that changes what it is given has no meaning here."""
    for write in program.writes:
        _refuse(program, write, transformation, names)


def private_copies(program: Program, transformation: str, names: Sequence[str] = ()) -> Program:
    """A derivative works on copies of the arguments: what the function stores into them is seen by the
    function alone. What it stores elsewhere is refused."""
    if not program.writes:
        return program
    written = {}
    for write in program.writes:
        if write.kind == "argument":
            written[write.target] = write.index
        elif write.kind == "capture" or not isinstance(write.target, tuple):
            _refuse(program, write, transformation, names)
    slots = tuple(Slot(written[s.leaf]) if isinstance(s, Same) and s.leaf in written else s for s in program.slots)
    used = sorted({s.index for s in slots if isinstance(s, Slot)})
    place = {old: new for new, old in enumerate(used)}
    forms = ["array" if k in written.values() else form for k, form in enumerate(program.forms)]
    return program.with_function(
        with_results(program.function, [program.function.results[k] for k in used]),
        slots=tuple(Slot(place[s.index]) if isinstance(s, Slot) else s for s in slots),
        forms=tuple(forms[k] for k in used),
        writes=(),
        origin=None,
    )


def _refuse(program: Program, write: Any, transformation: str, names: Sequence[str]) -> NoReturn:
    what = (
        leaf_labels(program.structure, names)[write.target]
        if write.kind == "argument"
        else f"the captured array {program.captures[write.target]}"
        if write.kind == "capture"
        else f"attribute {write.key!r} of an object"
        if write.kind == "attribute"
        else "a container it is given"
    )
    raise UnsupportedError(
        f"{transformation} of {program.title}, which writes to {what}",
        program.place,
        code="transformed-write",
        remedy="write to a copy (`x = x.copy()`) and return it",
    )


def check_argnums(argnums: Any, count: int, what: str, span: Span | None) -> tuple[tuple[int, ...], bool]:
    """The positions, and whether a single one was asked for."""
    single = not isinstance(argnums, (tuple, list))
    positions = []
    for number in (argnums,) if single else tuple(argnums):
        if not isinstance(number, int) or isinstance(number, bool):
            raise SourceError(
                f"{what}: argnums is an int or a tuple of ints, not {argnums!r}",
                span,
                code="argnums",
                remedy="give the positions of the arguments to differentiate",
            )
        if not -count <= number < count:
            raise SourceError(
                f"{what}: argnums is {number}, and the function was called with {count} positional "
                f"argument{'' if count == 1 else 's'}",
                span,
                code="argnums",
                remedy="pass the argument to differentiate by position, or change argnums",
            )
        positions.append(number % count)
    return tuple(positions), single


def refuse_pinned(leaf: int | Fixed, what: str, label: str, span: Span | None = None) -> None:
    """A number whose value steers the translation has no derivative: the steps depend on it. Nor has an
    object of a class that is not taken apart."""
    if isinstance(leaf, Fixed) and (call := registration_of(leaf.value)):
        raise DTypeError(
            f"{what} with respect to {label}, which is an object of {type(leaf.value).__name__}, a class "
            "that is not registered",
            span,
            code="grad-static",
            remedy=f"call metaphrase.tree_util.{call} once, after the class",
        )
    if isinstance(leaf, Fixed) and leaf.reason is not None and isinstance(leaf.value, (float, complex)):
        why, place, remedy = leaf.reason
        raise UnsupportedError(
            f"{what} with respect to {label}: the program needs {why} here, which depends on {label}",
            place,
            code="concrete",
            remedy=remedy or "what counts or indexes is better an argument of its own",
        )


def differentiated(
    program: Program,
    positions: Sequence[int],
    what: str,
    span: Span | None,
    *,
    holomorphic: bool = False,
    allow_int: bool = False,
    names: Sequence[str] = (),
) -> list[int]:
    """The parameters of the arguments at `positions`, all of them floating or complex, or with `allow_int` any.

    Reverse mode of a real function takes complex arguments too: the gradient at x + iy is df/dx - i df/dy.
    """
    labels = leaf_labels(program.structure, names)
    found: list[int] = []
    for k in [k for position in positions for k in leaves_of(program, position)]:
        leaf = program.leaves[k]
        if isinstance(leaf, Fixed):
            refuse_pinned(leaf, what, labels[k], span)
            raise DTypeError(
                f"{what} with respect to {labels[k]}, which is {leaf.value!r}, a constant of the program",
                span,
                code="grad-static",
                remedy="differentiate only arrays and floats; choose arguments by argnums",
            )
        type_ = program.function.params[leaf].type
        if allow_int and not has_tangent(type_):
            found.append(leaf)
            continue
        if holomorphic and type_.dtype.kind != "c":
            raise DTypeError(
                f"{what} with holomorphic=True with respect to {labels[k]}, which is {type_}",
                span,
                code="grad-dtype",
                remedy="pass a complex value, or leave out holomorphic",
            )
        if not holomorphic and type_.dtype.kind == "c" and what == "jacfwd":
            raise DTypeError(
                f"{what} with respect to {labels[k]}, which is complex ({type_})",
                span,
                code="grad-dtype",
                remedy="if the function is holomorphic, say holomorphic=True; else use jacrev, jvp or vjp",
            )
        if not has_tangent(type_):
            raise DTypeError(
                f"{what} with respect to {labels[k]}, which is not a float ({type_})",
                span,
                code="grad-dtype",
                remedy="pass a float (2.0, not 2), or convert by astype(float)",
            )
        found.append(leaf)
    return found


def leaves_of(program: Program, position: int) -> range:
    """The numbers of the leaves of a positional argument."""
    counts = [argument.num_leaves for argument in program.structure.children()[0].children()]
    return range(sum(counts[:position]), sum(counts[: position + 1]))


# ---- grad -----------------------------------------------------------------------------------------------


of_real = collections.defaultdict(str, c=" (its real part or its abs), or say holomorphic=True where it is")


def _loss_first(
    program: Program, has_aux: bool, what: str, span: Span | None, holomorphic: bool
) -> tuple[Program, Any, Sequence[Any]]:
    """The program with the loss as its first result; the structure and slots of aux."""
    out, slots = program.out, list(program.slots)
    if program.raises:  # the derivative raises the same
        out, slots = tree_structure((0, None) if has_aux else 0), [Fixed(0j if holomorphic else 0.0)]
    if has_aux:
        children = out.children() if out.node_data() and out.node_data()[0] is tuple else []  # type: ignore[index]
        if len(children) != 2:
            raise SourceError(
                f"{what} with has_aux=True of {program.title}, which does not return a pair",
                span,
                code="grad-aux",
                remedy="return (loss, aux), or leave out has_aux",
            )
        out, aux = children
        slots, aux_slots = slots[: out.num_leaves], slots[out.num_leaves :]
    else:
        aux, aux_slots = None, []
    refuse_optional(program, out, span)
    if not out.is_leaf():
        raise SourceError(
            f"{what} of {program.title}, which returns {_describe(out)}, not a scalar",
            _result_place(program, span),
            code="grad-scalar",
            remedy="return the loss alone, or the pair (loss, aux) with has_aux=True",
        )
    function = program.function
    slot: Any = slots[0]
    if isinstance(slot, Fixed) and not _is_number(slot.value):
        raise DTypeError(
            f"{what} of {program.title}, which returns {slot.value!r}",
            span,
            code="grad-dtype",
            remedy="return a number",
        )
    loss = result_atom(program, slot)
    type_ = loss.type
    place = program.result_span(slot.index) if isinstance(slot, Slot) else None
    if type_.dims:
        raise ShapeError(
            f"{what} of {program.title}, which returns an array {type_}, not a scalar",
            place or span,
            code="grad-scalar",
            remedy="reduce it (`.sum()` or `.mean()`), or use jacrev for the derivative of each element",
        )
    if holomorphic and type_.dtype.kind != "c" or not holomorphic and not is_float(type_.dtype):
        raise DTypeError(
            f"{what} of {program.title}, which returns {type_.plain}",
            place or span,
            code="grad-dtype",
            remedy="return a complex value" if holomorphic else "return a float" + of_real[type_.dtype.kind],
        )
    order = [loss, *function.results]
    moved = with_results(function, order)
    shifted = [Slot(s.index + 1) if isinstance(s, Slot) else s for s in aux_slots]
    return program.with_function(moved, slots=tuple(shifted)), aux, shifted


def result_atom(program: Program, slot: Any) -> Atom:
    """What stands at a leaf of the output: a result, an argument, what a capture reads, or a number."""
    function = program.function
    if isinstance(slot, Slot):
        return function.results[slot.index]
    if isinstance(slot, Fixed):
        return literal(slot.value)
    index = slot.index if isinstance(slot, Captured) else program.leaves[slot.leaf]
    return literal(index.value) if isinstance(index, Fixed) else function.params[index]


def _describe(structure: PyTreeDef) -> str:
    data = structure.node_data()
    if data is None:
        return "a value"
    if data[0] is type(None):
        return "None"
    return f"a {data[0].__name__} of {len(structure.children())}"


def _result_place(program: Program, otherwise: Span | None) -> Span | None:
    for slot in program.slots:
        if isinstance(slot, Slot) and (span := program.result_span(slot.index)):
            return span
    return otherwise


def gradient_program(
    program: Program,
    argnums: Any,
    span: Span | None,
    *,
    what: str,
    has_aux: bool,
    value: bool,
    holomorphic: bool,
    allow_int: bool,
    names: Sequence[str],
) -> Program:
    """grad (`value` False) or value_and_grad."""
    program = private_copies(program, what, names)
    count = len(program.structure.children()[0].children())
    positions, single = check_argnums(argnums, count, what, span)
    wrt = differentiated(program, positions, what, span, holomorphic=holomorphic, allow_int=allow_int, names=names)
    program, aux, aux_slots = _loss_first(program, has_aux, what, span, holomorphic)
    inner = program.function
    without = [k for k in dict.fromkeys(wrt) if not has_tangent(inner.params[k].type)]
    chosen = sorted(set(wrt) - set(without))
    made = programs.gradient(cleaned(inner), marks(len(inner.params), chosen), cleaned)
    made = with_zeros(made, [inner.params[k].type.dims for k in without])
    # gradients come in the order of the parameters, once each
    order = {param: len(inner.results) + k for k, param in enumerate([*chosen, *without])}
    gradients = [Slot(order[param]) for param in wrt]
    trees = [program.argument_structure(p) for p in positions]
    gradient_tree = trees[0] if single else treedef_tuple(trees)
    parts: list[tuple[PyTreeDef, list[Any]]] = []
    leaf = tree_structure(0)
    if value and has_aux:
        parts = [(treedef_tuple([leaf, aux]), [Slot(0), *aux_slots]), (gradient_tree, gradients)]
    elif value:
        parts = [(leaf, [Slot(0)]), (gradient_tree, gradients)]
    elif has_aux:
        parts = [(gradient_tree, gradients), (aux, list(aux_slots))]
    else:
        parts = [(gradient_tree, gradients)]
    return assembled(program, made, parts, single=len(parts) == 1)


def with_zeros(function: Function, shapes: Sequence[Dims]) -> Function:
    """With a further result for each of the shapes: the derivative of what has none, zeros of bool (JAX: float0)."""
    if not shapes:
        return function
    with programs.continued(function) as builder:
        return builder.function([*function.results, *(zeros(Array(np.dtype(bool), dims)) for dims in shapes)])


def assembled(program: Program, function: Function, parts: list[tuple[PyTreeDef, list[Any]]], single: bool) -> Program:
    """A Program that returns the parts (a tuple of them unless single); results nobody asks for are
    dropped."""
    out = parts[0][0] if single else treedef_tuple([tree for tree, _ in parts])
    slots = [slot for _, row in parts for slot in row]
    used = sorted({slot.index for slot in slots if isinstance(slot, Slot)})
    place = {old: new for new, old in enumerate(used)}
    results = [function.results[k] for k in used]
    slots = [Slot(place[s.index]) if isinstance(s, Slot) else s for s in slots]
    return program.with_function(
        with_results(function, results), out=out, slots=tuple(slots), forms=("scalar",) * len(results)
    )


# ---- jvp, vjp, linearize --------------------------------------------------------------------------------


def refuse_optional(program: Program, out: PyTreeDef, span: Span | None = None) -> None:
    """What is None on some paths has no derivative there, and no lane beside others."""
    if may_be_none(out):
        what = "one of several Python values, which one the run decides"
        missing = "a number" if may_be_number(out) else "None"
        what = what if is_chosen(out) else f"{missing} on some paths and a value on others"
        text = has_text(out)
        what = "a text with values of the run" if text else what
        raise SourceError(
            f"{program.title} returns {what}, under a derivative or vmap",
            _result_place(program, span),
            code="join",
            remedy=f"return {'its values' if text else 'a number on every path, and a flag beside it'}",
        )


def output_atoms(program: Program) -> Program:
    """Every leaf of the output as a result of its own, in order; leaves that are not numbers stay as they
    are."""
    refuse_optional(program, program.out)
    function = program.function
    results: list[Any] = []
    slots: list[Any] = []
    for slot in program.slots:
        if isinstance(slot, Fixed) and not isinstance(slot.value, (int, float, complex, np.number, np.bool_)):
            slots.append(slot)
            continue
        slots.append(Slot(len(results)))
        results.append(result_atom(program, slot))
    return program.with_function(with_results(function, results), slots=tuple(slots), forms=("scalar",) * len(results))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex)) or isinstance(value, np.generic) and value.dtype in NAMES


def split_aux(program: Program, has_aux: bool, what: str, span: Span | None) -> tuple[PyTreeDef, PyTreeDef | None]:
    """The structures of the output proper and of aux."""
    if not has_aux:
        return program.out, None
    children = program.out.children()
    if (
        program.out.node_data() is None
        or program.out.node_data()[0] is not tuple  # type: ignore[index]
        or len(children) != 2
    ):
        raise SourceError(
            f"{what} with has_aux=True of {program.title}, which does not return a pair",
            span,
            code="grad-aux",
            remedy="return (output, aux), or leave out has_aux",
        )
    return children[0], children[1]


def without_derivative(program: Program, results: Sequence[int]) -> Program:
    """The same values; the results named have no derivative (aux)."""
    function = program.function
    with programs.continued(function) as builder:
        outs = [
            stop_gradient(r) if k in results and isinstance(r, Var) and has_tangent(r.type) else r
            for k, r in enumerate(function.results)
        ]
        return program.with_function(builder.function(outs))


def forward_program(
    program: Program, wrt: Sequence[int], tangents: Sequence[Spec]
) -> tuple[Function, list[int | Fixed]]:
    """jvp with the tangents as further leaves; also the parameters of those leaves.

    Results: those of the program, a tangent for each that has a tangent space, then zeros of bool for the
    others (they stand where JAX has arrays of float0).
    """
    function = cleaned(program.function)
    made = programs.forward(function, marks(len(function.params), wrt))
    params = [(p.name, p.type) for p in function.params]
    count = len(params)
    leaves: list[int | Fixed] = []
    read: dict[int, int] = {}
    for leaf, spec in zip(program.leaves, tangents, strict=True):
        if not spec.dynamic:
            leaves.append(Fixed(spec.value))
            continue
        if not isinstance(leaf, Fixed):
            read[leaf] = len(params)
        leaves.append(len(params))
        name = "unused" if isinstance(leaf, Fixed) else f"{function.params[leaf].name}_dot"
        params.append((name, spec.type))

    def make(builder: Any, variables: list[Any]) -> Sequence[Any]:
        dots = []
        for param in wrt:
            dot, dtype = variables[read[param]], function.params[param].type.dtype
            dots.append(dot if dot.type.dtype == dtype else convert(dot, dtype=dtype))
        outs = builder.replay(made, [*variables[:count], *dots])
        plain = [o.type.plain for o, r in zip(outs, function.results) if not has_tangent(r.type)]
        return [*outs, *(zeros(t.with_dtype(np.dtype(bool))) for t in plain)]

    return replayed(f"jvp_{function.name}", params, make), leaves


__all__ = [
    "gradient_program",
    "assembled",
    "check_argnums",
    "leaves_of",
    "of_real",
    "with_zeros",
    "forward_program",
    "output_atoms",
    "split_aux",
    "private_copies",
    "refuse_writes",
    "without_derivative",
    "differentiated",
]
