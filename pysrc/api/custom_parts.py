"""A function with derivative rules, and each of the rules, staged apart; `custom_programs.py` puts them together.

In: a `Custom` and the specs of a call. Out: the arguments by position (`Taken`), and of the function and each rule its
program and what it returns (`Part`). Example: `f(y=2.0, x=1.0)` of `def f(x, y, n=3)` takes the leaves 0 and 1 of the
call, by name, as its arguments x and y, and a default value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core.build import Builder, literal
from ..core.dims import DimLike, symbols
from ..core.ir import Atom
from ..core.types import Array, has_tangent
from ..interpreter import signature_of
from ..late import dataclass
from ..source import DTypeError, SourceError
from ..tree_util import PyTreeDef, tree_flatten, tree_structure, treedef_tuple
from .arguments import Form, Spec, spec_of
from .captures import read_capture
from .derivatives import refuse_optional, refuse_writes
from .linear import treedef_text
from .orders import taking_derivatives
from .program import Captured, Fixed, Program, Same, Slot, definition_span, name_of
from .transforms import call_inside, parameter_names, program_of

if TYPE_CHECKING:
    from .custom import Custom

_NO_KEYWORDS = tree_structure({})
_LONGEST = 1 << 20  # of the integers that may be lengths
_NUMBERS = (int, float, complex, np.generic)
_PYTHON = {"i": int, "u": int, "f": float, "c": complex}


class _Leaf:
    """Stands for a leaf of the call while Python's rules for arguments are applied."""

    def __init__(self, number: int):
        self.number = number


@dataclass(frozen=True)
class Taken:
    """The arguments by position, defaults filled in. `numbers`: for each leaf that of the call, None for a default."""

    structures: tuple[PyTreeDef, ...]
    specs: tuple[Spec, ...]
    numbers: tuple[int | None, ...]
    nondiff: tuple[int, ...]

    def leaves(self, positions: Sequence[int]) -> list[int]:
        """The numbers of the leaves of these arguments."""
        starts = np.cumsum([0, *(s.num_leaves for s in self.structures)])
        return [k for p in positions for k in range(starts[p], starts[p + 1])]

    @property
    def primal(self) -> list[int]:
        """The positions of the arguments that have rules."""
        return [p for p in range(len(self.structures)) if p not in self.nondiff]


def taken_by(custom: Custom, structure: PyTreeDef, specs: Sequence[Spec]) -> Taken:
    args, kwargs = structure.skeleton([_Leaf(k) for k in range(structure.num_leaves)])
    try:
        signature = signature_of(custom.fun)
    except (TypeError, ValueError):
        signature = None
    if signature is not None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{custom.__name__}() {error}; its parameters are {signature}") from None
        given = {*bound.kwargs} - {*custom.alone}
        bound.apply_defaults()
        args = (*bound.args, *(bound.kwargs[name] for name in custom.alone))
        kwargs = {name: value for name, value in bound.kwargs.items() if name in given}
    if kwargs:
        raise SourceError(
            f"{custom.__name__} takes {', '.join(kwargs)} by name alone, and rules take arguments by position",
            definition_span(custom.fun),
            code="custom-arguments",
            remedy="let the function take them by position",
        )
    structures, found, numbers = [], [], []
    for arg in args:
        leaves, tree = tree_flatten(arg)
        structures.append(tree)
        for leaf in leaves:
            numbers.append(leaf.number if isinstance(leaf, _Leaf) else None)
            found.append(replace(specs[leaf.number], shared=None) if isinstance(leaf, _Leaf) else spec_of(leaf))
    return taken_in_order(custom, structures, found, numbers)


def taken_in_order(
    custom: Custom, structures: Sequence[PyTreeDef], specs: Sequence[Spec], numbers: Sequence[int | None]
) -> Taken:
    count = len(structures)
    nondiff = tuple(n % count for n in custom.nondiff_argnums if n < count)
    return Taken(tuple(structures), tuple(specs), tuple(numbers), nondiff)


# ---- what is staged --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """The function or a rule, staged for leaves of these specs."""

    fun: Any
    program: Program
    specs: tuple[Spec, ...]

    @property
    def name(self) -> str:
        return name_of(self.fun)

    def type(self, slot: Any) -> Array | None:
        """The type of a leaf of the output; None for what is no number."""
        program = self.program
        if isinstance(slot, Slot):
            return program.function.results[slot.index].type.plain
        index = (
            slot.index if isinstance(slot, Captured) else program.leaves[slot.leaf] if isinstance(slot, Same) else slot
        )
        if isinstance(index, int):
            return program.function.params[index].type.plain
        return literal(index.value).type if isinstance(index.value, _NUMBERS) else None

    def form(self, slot: Any) -> str:
        """What rank 0 looks like to the user."""
        if isinstance(slot, Slot):
            return self.program.forms[slot.index]
        if isinstance(slot, Same):
            form = self.specs[slot.leaf].form
            return "array" if form is Form.ARRAY else "python" if form is Form.NUMBER else "scalar"
        value = read_capture(self.program.captures[slot.index]) if isinstance(slot, Captured) else slot.value
        return "array" if isinstance(value, np.ndarray) else "scalar" if isinstance(value, np.generic) else "python"

    def run(self, builder: Builder, captures: Sequence[Atom], leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the output: atoms, or what is fixed."""
        program = self.program
        args: list[Any] = [*captures, *[None] * (len(program.function.params) - len(captures))]
        for place, leaf in zip(program.leaves, leaves, strict=True):
            if not isinstance(place, Fixed):
                args[place] = leaf
        outs = builder.replay(program.function, args)
        found: list[Any] = []
        for slot in program.slots:
            if isinstance(slot, Slot):
                found.append(outs[slot.index])
            elif isinstance(slot, Captured):
                found.append(captures[slot.index])
            else:
                fixed = program.leaves[slot.leaf] if isinstance(slot, Same) else slot
                found.append(_constant(fixed) if isinstance(fixed, Fixed) else leaves[slot.leaf])
        return found

    def pair(self, what: str, wanted: str) -> tuple[tuple[PyTreeDef, tuple], tuple[PyTreeDef, tuple]]:
        """The structures and slots of the two things that a rule returns."""
        data, children = self.program.out.node_data(), self.program.out.children()
        if data is None or data[0] not in (tuple, list) or len(children) != 2:
            self.refuse(f"{what} {self.name} must return {wanted}, and returns {text_of(self.program.out)}")
        first, second = children
        return (first, self.program.slots[: first.num_leaves]), (second, self.program.slots[first.num_leaves :])

    def refuse(self, message: str, remedy: str = "", kind: Callable[..., SourceError] = DTypeError) -> NoReturn:
        place = definition_span(self.fun)
        raise kind(message, place, code="custom-rule", remedy=remedy or f"correct what {self.name} returns")


def text_of(structure: PyTreeDef) -> str:
    """A structure in a message: what is one leaf has none."""
    return "one value" if structure.is_leaf() else treedef_text(structure)


def _constant(fixed: Fixed) -> Any:
    return literal(fixed.value) if isinstance(fixed.value, _NUMBERS) else fixed


def staged_part(
    fun: Any, structures: Sequence[PyTreeDef], specs: Sequence[Spec], count: int, what: str, transposed: bool = False
) -> Part:
    """`count`, `transposed`: see `taking_derivatives`."""
    sized = any(isinstance(s.value, SizeOf) for s in specs)
    with taking_derivatives(count, transposed):
        program = program_of(
            with_sizes(fun) if sized else fun, treedef_tuple([treedef_tuple(structures), _NO_KEYWORDS]), specs
        )
    refuse_writes(program, what, parameter_names(fun))
    refuse_optional(program, program.out)
    return Part(fun, program, tuple(specs))


@dataclass(frozen=True)
class SizeOf:
    """Stands for a size that a rule is given: the length of the array of that number among the rule's last argument,
    which has no other use. So the rule knows which size it is."""

    number: int


def with_sizes(rule: Any) -> Any:
    """The rule, given the sizes that `SizeOf` stands for."""

    def sized(*args: Any) -> Any:
        *args, arrays = args  # type: ignore[assignment]
        leaves, tree = tree_flatten(args)
        found = [arrays[leaf.number].shape[0] if isinstance(leaf, SizeOf) else leaf for leaf in leaves]
        return call_inside(rule, tuple(tree.unflatten(found)), {})

    return functools.update_wrapper(sized, rule, assigned=("__name__", "__qualname__", "__doc__"), updated=())


def sizes_told(part: Part, slots: Sequence[Any], specs: Sequence[Spec]) -> tuple[list[Spec], list[Array]]:
    """The specs of the results in these `slots`, where what is a size says so; and the arrays of these lengths."""
    known = {s for spec in (*part.specs, *specs) for d in spec.dims for s in symbols(d)}
    found, arrays = list(specs), list[Array]()
    for k, slot in enumerate(slots):
        value = _length(part, slot)
        if value is not None and symbols(value) <= known:
            found[k] = Spec(Form.STATIC, value=SizeOf(len(arrays)))
            arrays.append(Array(np.dtype(bool), (value,)))
    return found, arrays


def _length(part: Part, slot: Any) -> DimLike | None:
    """What a result may be the length of: a size, or a number that is known, which in a container would be none."""
    if isinstance(slot, Slot):
        return part.program.function.results[slot.index].type.value
    number = slot.value if isinstance(slot, Fixed) else None
    is_integer = isinstance(number, (int, np.integer)) and type(number) is not bool
    return int(number) if is_integer and 0 <= number <= _LONGEST else None  # type: ignore[arg-type,operator]


def spec_of_result(part: Part, slot: Any) -> Spec:
    """What a rule is given that is a result of another one."""
    type_ = part.type(slot)
    if type_ is None or isinstance(slot, Fixed):
        return Spec(Form.STATIC, value=slot.value)
    form = part.form(slot)
    if form == "python" and type_.dtype.kind in _PYTHON:
        return Spec(Form.NUMBER, type_.dtype, python=_PYTHON[type_.dtype.kind])
    return Spec(Form.ARRAY if form == "array" or type_.dims else Form.SCALAR, type_.dtype, type_.dims)


def dual(spec: Spec) -> Spec:
    """The spec of a tangent or cotangent; bools where there is none."""
    if not spec.dynamic:
        return Spec(Form.STATIC, value=False)
    if has_tangent(spec.type):
        return replace(spec, value=None)
    return Spec(Form.ARRAY if spec.dims or spec.form is Form.ARRAY else Form.SCALAR, np.dtype(bool), spec.dims)


__all__ = [
    "Part",
    "Taken",
    "dual",
    "sizes_told",
    "text_of",
    "spec_of_result",
    "staged_part",
    "taken_by",
    "taken_in_order",
]
