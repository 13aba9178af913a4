"""Functions with a rule of the user's own for lanes: `custom_vmap`, with JAX's name and meaning.

In: a function, and a rule that is given the arguments of all lanes at once. Out: a function that is called like it;
where `vmap` maps over a call, the rule is in its place. The rule is staged when the lanes are put together, for the
arguments that turn out to be batched. What it reads from around it has to be known before: then it is staged as if all
were.

    @custom_vmap
    def solved(a, b):
        return np.linalg.solve(a, b)

    @solved.def_vmap
    def solved_vmap(axis_size, in_batched, a, b):       # one matrix, many right sides
        return np.linalg.solve(a, b.T).T, True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np

from ..astpasses.frontend import Source
from ..core.build import Builder
from ..core.dims import DimLike
from ..core.ir import Atom, Function
from ..core.types import Array
from ..ops.arrays import zeros
from ..ops.custom_rules import custom_vmap as custom_vmap_primitive
from ..source import SourceError, UnsupportedError
from ..tree_util import PyTreeDef, broadcast_prefix, tree_structure
from .arguments import Form, Spec
from .custom import Custom, Rule
from .custom_parts import Part, SizeOf, Taken, staged_part, taken_by
from .custom_programs import Call, labels
from .orders import Lanes, around_lanes, derivatives_to_come, lanes_to_come
from .program import Fixed, Program, Same, definition_span
from .transforms import program_of

P = ParamSpec("P")
R = TypeVar("R")


class CustomVmap(Custom[P, R]):
    """What `custom_vmap` makes."""

    kind = "custom_vmap"
    definer = "def_vmap"
    occasion = "it is mapped over an axis"

    def def_vmap(self, vmap_rule: Rule) -> Rule:
        """`vmap_rule(axis_size, in_batched, *args) -> (out, out_batched)`: the list `in_batched` says of each leaf of
        the arguments whether it is batched, along axis 0; `out_batched` says it of each leaf of `out`, or of all that
        is below it. Raises DTypeError where the rule returns anything else than the function does. Also a
        decorator."""
        self.rules = (vmap_rule,)
        return vmap_rule

    def is_asked(self) -> bool:
        return lanes_to_come() is not None

    def _ruled(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        lanes = lanes_to_come()
        assert lanes is not None
        self._require_rules()
        taken = taken_by(self, structure, specs)
        function = staged_part(self.fun, taken.structures, taken.specs, derivatives_to_come(), self.kind)
        if function.program.raises:
            return program_of(self.fun, structure, specs)
        rule = _LanesRule(self, taken, lanes)
        parts = [function, *rule.trial(function)]
        rule.site = Call(self, taken, parts, [range(len(taken.specs)), ()])
        return rule.site.program(
            structure, lambda operands: custom_vmap_primitive(*operands, function=rule.site.plain, rule=rule)
        )


class _LanesRule:
    """The rule of one call: `rule(size, which operands are batched)` as the primitive `custom_vmap` has it."""

    site: Call

    def __init__(self, custom: CustomVmap, taken: Taken, lanes: Lanes):
        self.custom, self.taken, self.lanes = custom, taken, lanes

    def __repr__(self) -> str:
        return repr(self.custom.rules[0].__name__)

    def trial(self, function: Part) -> list[Part]:
        """The rule staged for arguments that are all batched, if it can be: for what it reads from around it."""
        leaves = [k for k, place in enumerate(function.program.leaves) if not isinstance(place, Fixed)]
        try:
            return [self._staged(self.lanes.size, leaves)]
        except SourceError:  # it may be written for others
            return []

    def _staged(self, size: DimLike, batched: Sequence[int]) -> Part:
        """The rule for arguments of which these leaves are batched."""
        taken = self.taken
        flags = iter([k in batched for k in range(len(taken.specs))])
        told = [tree.unflatten([next(flags) for _ in range(tree.num_leaves)]) for tree in taken.structures]
        specs = [Spec(Form.STATIC, value=size if isinstance(size, int) else SizeOf(0))]
        specs += [Spec(Form.STATIC, value=k in batched) for k in range(len(taken.specs))]
        specs += [_of_lanes(s, size) if k in batched else s for k, s in enumerate(taken.specs)]
        trees = [tree_structure(0), tree_structure(told), *taken.structures]
        if not isinstance(size, int):
            trees.append(tree_structure([0]))
            specs.append(Spec(Form.ARRAY, np.dtype(bool), (size,)))
        with around_lanes(self.lanes):
            return staged_part(self.custom.rules[0], trees, specs, derivatives_to_come(), self.custom.kind)

    def __call__(self, size: DimLike, marks: Sequence[bool]) -> tuple[Function, list[bool]]:
        site = self.site
        captured, own = marks[: site.first], marks[site.first :]
        if any(captured):
            self._refuse("reads a value from outside of it that differs from lane to lane")
        batched = [leaf for leaf, mark in zip(site.args, own) if mark]
        part = self._staged(size, batched)
        now = lanes_to_come()
        if now is not None:
            now.guards.extend(part.program.guards)
        (out, slots), (told, told_slots) = part.pair("the rule", "the pair (out, out_batched)")
        site.check_structure(part, out, "out")
        flags = _flags(part, out, told, told_slots)
        with Builder(part.name) as builder:
            operands = [builder.parameter(f"captured_{k}", t) for k, t in enumerate(site.captured)]
            atoms = {}
            for leaf, mark in zip(site.args, own):
                type_ = site.types[leaf]
                type_ = Array(type_.dtype, (size, *type_.dims)) if mark else type_
                atoms[leaf] = builder.parameter(site.label(leaf), type_)
            given: list[Any] = [Fixed(s.value) for s in part.specs[: 1 + len(self.taken.specs)]]
            given += site.all_leaves(atoms)
            if len(part.specs) > len(given):
                given.append(zeros(part.specs[-1].type))
            values = part.run(builder, self._captures(part, operands), given)
            results, out_marks = [], []
            rows = zip(values, slots, site.outputs, flags, labels(out, "the result"))
            for value, slot, mine, flag, label in rows:
                have = site.function.type(mine)
                if have is not None:
                    want = have.with_dims((size, *have.dims)) if flag else have
                    results.append(site.fitted(part, value, slot, want, label))
                    out_marks.append(flag)
            return builder.function(results), out_marks

    def _captures(self, part: Part, operands: Sequence[Atom]) -> list[Atom]:
        """The operands that are what the rule reads from around it."""
        known = [capture for one in self.site.parts for capture in one.program.captures]
        found = []
        for capture in part.program.captures:
            places = [k for k, other in enumerate(known) if _is_same(capture, other)]
            if not places:
                self._refuse("has a rule that reads an array from outside of it for some arguments only")
            found.append(operands[places[0]])
        return found

    def _refuse(self, what: str) -> NoReturn:
        name, place = self.custom.__name__, definition_span(self.custom.fun)
        raise UnsupportedError(f"{name} {what}", place, code="custom-capture", remedy=f"make it an argument of {name}")


def _of_lanes(spec: Spec, size: DimLike) -> Spec:
    return Spec(Form.ARRAY, spec.dtype, (size, *spec.dims))


def _is_same(capture: Any, other: Any) -> bool:
    if isinstance(capture, Source) and isinstance(other, Source):
        return capture.read() is other.read()
    return capture is other


def _flags(part: Part, out: PyTreeDef, told: PyTreeDef, slots: Sequence[Any]) -> list[bool]:
    """Of each leaf of `out` whether it is batched."""
    found = [part.program.leaves[s.leaf] if isinstance(s, Same) else s for s in slots]
    values = [s.value if isinstance(s, Fixed) else None for s in found]
    try:
        flags = broadcast_prefix(told.unflatten(values), out.unflatten([0] * out.num_leaves))
    except ValueError:
        flags = [None]
    if not all(isinstance(flag, (bool, np.bool_)) for flag in flags):
        part.refuse(f"out_batched that the rule {part.name} returns does not say of each leaf of out True or False")
    return [bool(flag) for flag in flags]


def custom_vmap(fun: Callable[P, R]) -> CustomVmap[P, R]:
    """`fun`, of which `vmap` makes what the rule says that `def_vmap` gives. Where nothing is mapped, and under
    derivatives, it is the function: where the derivative is taken inside of vmap, the values are the rule's and the
    tangents those of the function; outside of vmap the rule is differentiated. Raises DTypeError for what is no
    function. Also a decorator."""
    return CustomVmap(fun, (), ())


__all__ = ["CustomVmap", "custom_vmap"]
