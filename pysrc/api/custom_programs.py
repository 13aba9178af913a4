"""The program of a call of a function with derivative rules: the function and its rules, each staged once.

In: a `Custom` and the specs of its arguments. Out: a Program with one `custom_jvp` or `custom_vjp` in it. What the
rules give is compared with what the function gives; an error names the rule's place. Example, of `log1pexp`:

    def log1pexp(x: f64) -> f64:
        y: f64 = custom_jvp(x, function=log1pexp, rule=log1pexp_jvp, consts=0)
        return y
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..astpasses.frontend import AttributeSource, Guard, ObjectSource, numbers_change
from ..core.build import Builder, literal
from ..core.ir import Atom, Function, Var
from ..core.types import Array, has_tangent
from ..interpreter import signature_of
from ..locks import cached_property
from ..ops.arrays import zeros
from ..ops.custom_rules import custom_jvp, custom_vjp
from ..ops.shape import convert
from ..source import DTypeError, ShapeError, UnsupportedError
from ..tree_util import PyTreeDef, keystr, tree_flatten_with_path, tree_structure, treedef_tuple
from .arguments import Form, Spec, spec_of
from .captures import capture_key
from .custom_parts import Part, Taken, dual, sizes_told, spec_of_result, staged_part, taken_by, text_of
from .orders import derivatives_to_come, without_rule
from .program import Fixed, Program, Slot, definition_span, user_span
from .symbolic import Variants, is_zero, with_primals, with_zeros, without_zeros
from .transforms import program_of

if TYPE_CHECKING:
    from .custom import Custom


# ---- the function and its rules in one program ------------------------------------------------------------


class Call:
    """One call, being put together. `operands`: captures, then what is not differentiated, then the others."""

    def __init__(self, custom: Custom, taken: Taken, parts: Sequence[Part], places: Sequence[Sequence[int]]):
        """`places`: for each part the leaf of the call that each of its leaves is, -1 for none."""
        self.custom, self.taken, self.parts = custom, taken, parts
        self.function = parts[0]
        self.fixed: dict[int, Fixed] = {}
        self.types: dict[int, Array] = {}
        for part, leaves in zip(parts, places):
            for place, leaf in zip(part.program.leaves, leaves):
                if leaf >= 0 and isinstance(place, Fixed):
                    self.fixed[leaf] = place
                elif leaf >= 0:
                    self.types[leaf] = part.program.function.params[place].type  # type: ignore[index]
        dynamic = [k for k in range(len(taken.specs)) if k not in self.fixed]
        primal = taken.leaves(taken.primal)
        self.consts = [k for k in dynamic if k not in primal]
        self.args = [k for k in dynamic if k in primal]
        self.wrt = [k for k in self.args if has_tangent(self.types[k])]
        self.captured = [p.type for part in parts for p in part.program.function.params[: len(part.program.captures)]]
        self.outputs = self.function.program.slots
        self.results = [s for s in self.outputs if self.function.type(s) is not None]
        self.result_types: list[Array] = [self.function.type(s) for s in self.results]  # type: ignore[misc]

    @property
    def first(self) -> int:
        """How many operands are not differentiated."""
        return len(self.captured) + len(self.consts)

    def traced(self, part: Part, more: Sequence[tuple[str, Array]], make: Callable[..., Sequence[Any]]) -> Function:
        """A Function of all operands and `more`: `make(builder, captures of the part, leaves of the call, more)`."""
        with Builder(part.name) as builder:
            captures = [builder.parameter(f"captured_{k}", t) for k, t in enumerate(self.captured)]
            leaves = {k: builder.parameter(self.label(k), self.types[k]) for k in (*self.consts, *self.args)}
            rest = [builder.parameter(n, t) for n, t in more]
            return builder.function(make(builder, self.own(part, captures), self.all_leaves(leaves), rest))

    def own(self, part: Part, captures: Sequence[Atom]) -> Sequence[Atom]:
        """The captures of one part among those of all."""
        before = sum(len(p.program.captures) for p in self.parts[: self.parts.index(part)])
        return captures[before : before + len(part.program.captures)]

    def all_leaves(self, atoms: dict[int, Any]) -> list[Any]:
        """For each leaf its atom, or the constant that it was staged for."""
        return [atoms[k] if k in atoms else _literal_of(self.fixed[k], s) for k, s in enumerate(self.taken.specs)]

    def label(self, leaf: int) -> str:
        place = self.function.program.leaves[leaf]
        return "x" if isinstance(place, Fixed) else self.function.program.function.params[place].name

    @cached_property
    def plain(self) -> Function:
        """The function itself."""
        return self.traced(
            self.function,
            (),
            lambda builder, captures, leaves, _: self.kept(self.function.run(builder, captures, leaves)),
        )

    def kept(self, outputs: Sequence[Any]) -> list[Any]:
        """Of the leaves of an output those that are numbers."""
        return [o for o, s in zip(outputs, self.outputs) if self.function.type(s) is not None]

    def program(self, structure: PyTreeDef, bind: Callable[[list[Atom]], Sequence[Any]]) -> Program:
        """The program of the call: `bind(operands)` gives the results."""
        function = self.function.program
        captures = [capture for part in self.parts for capture in part.program.captures]
        order = {n: k for k, n in enumerate(self.taken.numbers) if n is not None and k not in self.fixed}
        with Builder(function.function.name) as builder:
            builder.span = user_span()
            variables: list[Any] = [builder.parameter(f"captured_{k}", t) for k, t in enumerate(self.captured)]
            leaves: list[Any] = []
            atoms = {}
            for number in range(structure.num_leaves):
                k = order.get(number)
                if k is None:
                    where = self.taken.numbers.index(number)
                    leaves.append(self.fixed[where])
                    continue
                leaves.append(len(builder.params))
                atoms[k] = builder.parameter(self.label(k), self.types[k])
            for k in (*self.consts, *self.args):
                variables.append(atoms[k] if k in atoms else literal(self.taken.specs[k].value))
            outs = bind(variables)
            for out, result in zip(outs, self.plain.results):
                out.name = _base(result)
            made = builder.function(outs)
        numbers = iter(range(len(self.results)))
        slots = [s if self.function.type(s) is None else Slot(next(numbers)) for s in self.outputs]
        guards = [guard for part in self.parts for guard in part.program.guards]
        if not self.custom.through:  # a function that has such a rule has another code when it gets another one
            source = AttributeSource(ObjectSource(self.custom, self.custom.__name__), "rules")
            guards.append(Guard(source, "object", self.custom.rules))
        return Program(
            made,
            tuple(captures),
            structure,
            tuple(leaves),
            function.out,
            tuple(slots),
            tuple(self.function.form(s) for s in self.results),
            tuple({guard.key(): guard for guard in guards}.values()),
            name=self.custom.__name__,
            place=definition_span(self.custom.fun),
        )

    # ---- what rules give ----------------------------------------------------------------------------------

    def check_structure(self, part: Part, out: PyTreeDef, what: str) -> None:
        want = self.function.program.out
        if out != want:
            name = self.custom.__name__
            part.refuse(
                f"the {what} that the rule {part.name} returns is {text_of(out)}, and {name} returns {text_of(want)}"
            )

    def fitted(self, part: Part, value: Any, slot: Any, type_: Array, what: str) -> Any:
        """A result of a rule that has the type that it must have."""
        have = part.type(slot)
        weak = have is not None and not have.dims and part.form(slot) == "python"
        if have is None or have.dims != type_.dims or have.dtype != type_.dtype and not weak:
            shown = repr(slot.value) if have is None else str(have)
            kind = ShapeError if have is not None and have.dims != type_.dims else DTypeError
            part.refuse(f"{what} that the rule {part.name} returns is {shown} and must be {type_}", kind=kind)
        return value if have.dtype == type_.dtype else _converted(value, type_)

    def outputs_fitted(
        self, part: Part, values: Sequence[Any], slots: Sequence[Any], tangents: bool, zero: Sequence[bool] = ()
    ) -> list[Any]:
        """What a rule gives for the leaves of the output; of `tangents` those of floats, zeros where it says `zero`."""
        found = []
        names = labels(self.function.program.out, "the result")
        for k, (value, slot, own) in enumerate(zip(values, slots, self.outputs)):
            type_ = self.function.type(own)
            if type_ is None or tangents and not has_tangent(type_):
                continue
            what = f"the {'tangent' if tangents else 'primal'} of {names[k]}"
            if zero and zero[k]:
                found.append(zeros(type_))
                continue
            found.append(self.fitted(part, value, slot, type_, what))
        return found


def _converted(value: Any, type_: Array) -> Any:
    return literal(value.value, type_.dtype) if hasattr(value, "value") else convert(value, dtype=type_.dtype)


def _literal_of(fixed: Fixed, spec: Spec) -> Any:
    return literal(fixed.value, spec.dtype) if spec.dynamic else fixed


def labels(tree: PyTreeDef, head: str) -> list[str]:
    pairs = tree_flatten_with_path(tree.skeleton(range(tree.num_leaves)))[0]
    return [head + keystr(path) for path, _ in pairs]


def custom_program(custom: Custom, structure: PyTreeDef, specs: Sequence[Spec], taken: Taken | None = None) -> Program:
    """The program of a call of `custom` with arguments of these specs. `taken`: which arguments they are."""
    taken = taken or taken_by(custom, structure, specs)
    count = derivatives_to_come()
    with without_rule(custom.fun):
        plain = count if custom.through else 0
        function = staged_part(custom.by_position, taken.structures, taken.specs, plain, custom.kind)
        if function.program.raises:
            return program_of(custom.fun, structure, specs)
    make = _with_jvp if custom.kind == "custom_jvp" else _with_vjp
    return make(custom, taken, function, structure, count - 1)


def _with_jvp(custom: Custom, taken: Taken, function: Part, structure: PyTreeDef, count: int) -> Program:
    site, ruled = _jvp_rule(custom, taken, function, count, None)
    more: dict[str, Any] = {}
    if custom.symbolic_zeros:

        def variant(marks: tuple[bool, ...]) -> tuple[Function, Sequence[Any]]:
            with numbers_change(frozenset()):  # captured numbers are constants, for there are no further operands
                own, rule = _jvp_rule(custom, taken, function, count, marks)
            return _of_operands(site, own, rule), own.parts[1].program.guards

        more = {"variants": Variants(variant)}
    return site.program(
        structure, lambda operands: custom_jvp(*operands, function=site.plain, rule=ruled, consts=site.first, **more)
    )


def _jvp_rule(
    custom: Custom, taken: Taken, function: Part, count: int, marks: tuple[bool, ...] | None
) -> tuple[Call, Function]:
    """The rule; `marks`: which of the tangents are there, where it is told (None: all of floats)."""
    primal, nondiff = taken.leaves(taken.primal), taken.leaves(taken.nondiff)
    tree = treedef_tuple([taken.structures[p] for p in taken.primal])
    dot_tree = with_zeros(tree, _zeros(taken, primal, marks)) if custom.symbolic_zeros else tree
    trees = [*(taken.structures[p] for p in taken.nondiff), tree, dot_tree]
    rule_specs = [*(taken.specs[k] for k in (*nondiff, *primal)), *(dual(taken.specs[k]) for k in primal)]
    rule = staged_part(custom.rules[0], trees, rule_specs, count, custom.kind, transposed=True)
    places = [range(len(taken.specs)), [*nondiff, *primal, *[-1] * len(primal)]]
    site = Call(custom, taken, [function, rule], places)
    (out, slots), (dots, dot_slots) = rule.pair("the rule", "the pair (primal_out, tangent_out)")
    site.check_structure(rule, out, "primal_out")
    dots, zero = without_zeros(dots)
    site.check_structure(rule, dots, "tangent_out")

    def make(builder: Builder, captures: Sequence[Atom], leaves: list[Any], given: list[Any]) -> list[Any]:
        dot_of = dict(zip(site.wrt, given))
        tangents = [dot_of[k] if k in dot_of else _none(taken.specs[k]) for k in primal]
        values = rule.run(builder, captures, [*(leaves[k] for k in (*nondiff, *primal)), *tangents])
        return [
            *site.outputs_fitted(rule, values[: len(slots)], slots, False),
            *site.outputs_fitted(rule, values[len(slots) :], dot_slots, True, zero),
        ]

    return site, site.traced(rule, [(f"{site.label(k)}_dot", site.types[k].plain) for k in site.wrt], make)


def _zeros(taken: Taken, leaves: Sequence[int], marks: tuple[bool, ...] | None) -> list[bool]:
    """Which of the leaves have tangents that are zero; `marks` has those of floats."""
    smooth = [taken.specs[k].dynamic and has_tangent(taken.specs[k].type) for k in leaves]
    given = iter(marks if marks is not None else [True] * sum(smooth))
    return [not (s and next(given)) for s in smooth]


def _none(spec: Spec) -> Any:
    """What stands for the tangent or cotangent of what has none."""
    found = dual(spec)
    return zeros(found.type) if found.dynamic else Fixed(False)


def _of_operands(site: Call, own: Call, made: Function) -> Function:
    """A rule that was staged later, as a function of the operands of the call."""
    captures = [capture for part in site.parts for capture in part.program.captures]
    place = {capture_key(capture): k for k, capture in enumerate(captures)}
    given: list[int] = []
    for part in own.parts:
        for capture in part.program.captures:
            if capture_key(capture) not in place:
                part.refuse(
                    f"the rule {part.name} reads {capture} only where a tangent is a SymbolicZero",
                    "read it in any case, or make it an argument",
                    UnsupportedError,
                )
            given.append(place[capture_key(capture)])
    count = len(own.captured)
    with Builder(made.name) as builder:
        held = [builder.parameter(f"captured_{k}", t) for k, t in enumerate(site.captured)]
        rest = [builder.parameter(p.name, p.type) for p in made.params[count:]]
        return builder.function(list(builder.replay(made, [*(held[k] for k in given), *rest])))


def _with_vjp(custom: Custom, taken: Taken, function: Part, structure: PyTreeDef, count: int) -> Program:
    forward = _forward_rule(custom, taken, function, count, None)
    site, ahead, back = _vjp_rules(custom, taken, function, forward, count, None)
    more: dict[str, Any] = {"through": True} if custom.through else {}
    if custom.symbolic_zeros:

        def variant(marks: tuple[bool, ...]) -> tuple[Any, Sequence[Any]]:
            with numbers_change(frozenset()):
                part = _forward_rule(custom, taken, function, count, marks)
                own, made, _ = _vjp_rules(custom, taken, function, part, count, None)

            def behind(bars: tuple[bool, ...]) -> tuple[Any, Sequence[Any]]:
                with numbers_change(frozenset()):
                    own, _, made = _vjp_rules(custom, taken, function, part, count, bars)
                return made, own.parts[2].program.guards

            return (_of_operands(site, own, made), Variants(behind)), part.program.guards

        more["variants"] = Variants(variant)
    return site.program(
        structure,
        lambda operands: custom_vjp(
            *operands, function=site.plain, forward=ahead, backward=back, consts=site.first, **more
        ),
    )


def _forward_rule(custom: Custom, taken: Taken, function: Part, count: int, marks: tuple[bool, ...] | None) -> Part:
    trees = list(taken.structures)
    if custom.symbolic_zeros:
        primal = taken.leaves(taken.primal)
        zero = dict(zip(primal, _zeros(taken, primal, marks)))
        for p in taken.primal:
            trees[p] = with_primals(trees[p], [not zero[k] for k in taken.leaves([p])])
    return staged_part(custom.rules[0], trees, taken.specs, count, custom.kind)


def _vjp_rules(
    custom: Custom, taken: Taken, function: Part, forward: Part, count: int, marks: tuple[bool, ...] | None
) -> tuple[Call, Function, Function]:
    """The rules; `marks`: which cotangents of results are there, where it is told (None: all of floats)."""
    (out, slots), (kept, kept_slots) = forward.pair("the forward rule", "the pair (out, residuals)")
    nondiff = taken.leaves(taken.nondiff)
    own = function.program.slots
    kept_specs = [spec_of_result(forward, s) for s in kept_slots]
    out_specs = [spec_of_result(function, s) for s in own]
    bar_specs = [dual(spec) for spec in out_specs]
    if not kept.is_leaf():  # in a container, numbers of Python are no constants
        numbers = [not s.dynamic and type(s.value) in (int, float, complex) for s in kept_specs]
        kept_specs = [spec_of(s.value) if number else s for s, number in zip(kept_specs, numbers)]
    kept_specs, lengths = sizes_told(forward, kept_slots, kept_specs)
    bar_tree = function.program.out
    if custom.symbolic_zeros:
        smooth = [(t := function.type(s)) is not None and has_tangent(t) for s in own]
        there = iter(marks if marks is not None else [True] * sum(smooth))
        bar_tree = with_zeros(bar_tree, [not (m and next(there)) for m in smooth])
    trees = [*(taken.structures[p] for p in taken.nondiff), kept, bar_tree]
    back_specs = [*(taken.specs[k] for k in nondiff), *kept_specs, *bar_specs]
    if lengths:
        trees.append(tree_structure([0] * len(lengths)))
        back_specs += [Spec(Form.ARRAY, t.dtype, t.dims) for t in lengths]
    backward = staged_part(custom.rules[1], trees, back_specs, count, custom.kind)
    every = range(len(taken.specs))
    places = [every, every, [*nondiff, *[-1] * (len(back_specs) - len(nondiff))]]
    site = Call(custom, taken, [function, forward, backward], places)
    site.check_structure(forward, out, "out")

    def ahead(builder: Builder, captures: Sequence[Atom], leaves: list[Any], _: Any) -> list[Any]:
        values = forward.run(builder, captures, leaves)
        residuals = [v for v, s in zip(values[len(slots) :], kept_specs) if s.dynamic]
        consts = [leaves[k] for k in site.consts]
        start = len(site.captured) - len(backward.program.captures)
        held = builder.params[start : len(site.captured)]
        return [*site.outputs_fitted(forward, values[: len(slots)], slots, False), *residuals, *consts, *held]

    ahead_of = site.traced(forward, (), ahead)
    first = len(site.results)
    saved = [r.type.plain for r in ahead_of.results[first : first + sum(s.dynamic for s in kept_specs)]]
    names = map(_base, ahead_of.results[first:])
    with Builder(backward.name) as builder:
        residuals = iter([builder.parameter(n, t) for t, n in zip(saved, names)])
        leaves = site.all_leaves(
            {k: builder.parameter(site.label(k), site.types[k]) for k in site.consts} | _rest(site)
        )
        held = backward.program.function.params[: len(backward.program.captures)]
        captures = [builder.parameter(p.name, p.type) for p in held]
        bars = [
            builder.parameter(f"{_base(r)}_bar", t) if has_tangent(t) else zeros(t.with_dtype(np.dtype(bool)))
            for r, t in zip(site.plain.results, site.result_types)
        ]
        given = [
            *(leaves[k] for k in nondiff),
            *(next(residuals) if s.dynamic else Fixed(s.value) for s in kept_specs),
            *_spread(bars, site),
            *map(zeros, lengths),
        ]
        values = backward.run(builder, captures, given)
        back_of = builder.function(_cotangents(site, backward, values))
    return site, ahead_of, back_of


def _base(result: Atom) -> str:
    return result.name if isinstance(result, Var) else "result"


def _rest(site: Call) -> dict[int, Any]:
    """The leaves that a backward rule is not given."""
    return dict.fromkeys(site.args, None)


def _spread(bars: Sequence[Any], site: Call) -> list[Any]:
    """The cotangents at the leaves of the output."""
    found = iter(bars)
    return [next(found) if site.function.type(s) is not None else Fixed(False) for s in site.outputs]


def _cotangents(site: Call, backward: Part, values: Sequence[Any]) -> list[Any]:
    """What the backward rule gives for each argument that has a tangent; None stands for zeros."""
    taken, program = site.taken, backward.program
    trees = [taken.structures[p] for p in taken.primal]
    data, children = program.out.node_data(), program.out.children()
    if data is None or data[0] not in (tuple, list) or len(children) != len(trees):
        names = ", ".join(_names(site, taken.primal))
        backward.refuse(
            f"the backward rule {backward.name} must return a tuple with one cotangent for each of the arguments "
            f"({names}), and returns {text_of(program.out)}"
        )
    places: list[int | None] = []  # for each leaf of the arguments the leaf of what the rule gives, None for zero
    start = 0
    for tree, child, name in zip(trees, children, _names(site, taken.primal)):
        found = _matched(tree, child, start)
        if found is None:
            backward.refuse(
                f"the cotangent of {name} that the rule {backward.name} returns is {text_of(child)}, and {name} is "
                f"{text_of(tree)}",
                "return a cotangent for each part of the argument, or None for zeros",
            )
        places += found
        start += child.num_leaves
    heads = [label for tree, name in zip(trees, _names(site, taken.primal)) for label in labels(tree, name)]
    results = []
    for leaf, place, label in zip(taken.leaves(taken.primal), places, heads):
        if leaf not in site.wrt:
            continue
        type_ = site.types[leaf].plain
        if place is None:
            results.append(zeros(type_))
        else:
            what = f"the cotangent of {label}"
            results.append(site.fitted(backward, values[place], program.slots[place], type_, what))
    return results


def _names(site: Call, positions: Sequence[int]) -> list[str]:
    try:
        known = list(signature_of(site.custom.fun).parameters)
    except (TypeError, ValueError):
        known = []
    return [known[p] if p < len(known) else f"argument {p}" for p in positions]


def _matched(tree: PyTreeDef, given: PyTreeDef, start: int) -> list[int | None] | None:
    """For each leaf of `tree` the leaf of `given` that stands there, None under a None; None if they don't fit."""
    if given.kind is not None and given.kind.type is type(None) or is_zero(given):
        return [None] * tree.num_leaves
    if tree.is_leaf() or given.is_leaf():
        return [start] if tree.is_leaf() and given.is_leaf() else None
    mine, theirs = tree.children(), given.children()
    if tree.node_data() != given.node_data() or len(mine) != len(theirs):
        return None
    found: list[int | None] = []
    for a, b in zip(mine, theirs):
        inner = _matched(a, b, start)
        if inner is None:
            return None
        found += inner
        start += b.num_leaves
    return found


__all__ = ["Call", "custom_program", "labels"]
