"""`closure_convert`: what a function reads of the function around it, as arguments of its own.

In: a function, and arguments like those that it will be called with. Out: a function that takes these and then the
values that it read, and a list of these values. So a rule of `custom_vjp` can give them cotangents.

    def inside(a):
        g, consts = closure_convert(lambda x: x * a, 1.0)      # consts is [a]
        return g(2.0, *consts)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..astpasses.frontend import Number, StagedArray
from ..core.ir import Function, Var
from ..core.types import has_tangent
from ..tree_util import PyTreeDef, tree_structure, treedef_tuple
from .arguments import Spec, take_apart
from .derivatives import refuse_writes
from .program import Captured, Fixed, Program, Same, under_way
from .transforms import Transformed, program_of


def _identity(value: Any) -> tuple:
    """What tells one staged value from another: of an array its memory and the part of it."""
    return (id(value.box), value.chain) if isinstance(value, StagedArray) else (id(value),)


class Converted(Transformed):
    """A function that takes the values `consts`, which it reads around it, behind its arguments."""

    kind = "closure_convert"

    def __init__(self, fun: Callable[..., Any], consts: Sequence[Any]):
        super().__init__(fun)
        self.__dict__.pop("__wrapped__", None)  # or its signature would be that of `fun`
        self.consts = tuple(consts)

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        arguments = structure.children()[0].children()
        own = treedef_tuple(arguments[: len(arguments) - len(self.consts)])
        program = program_of(self.fun, treedef_tuple([own, tree_structure({})]), specs[: own.num_leaves])
        refuse_writes(program, self.kind)
        count, params = len(program.captures), program.function.params
        read = {_identity(capture): k for k, capture in enumerate(program.captures)}
        moved = [read.get(_identity(const)) for const in self.consts]
        kept = [k for k in range(count) if k not in moved]
        given = [Var("const", spec.type) if k is None else params[k] for k, spec in zip(moved, specs[own.num_leaves :])]
        first = len(kept) - count
        leaves = [leaf if isinstance(leaf, Fixed) else leaf + first for leaf in program.leaves]
        leaves += range(len(params) + first, len(params) + first + len(given))
        slots = [
            s if not isinstance(s, Captured) else _slot(s.index, kept, moved, own.num_leaves) for s in program.slots
        ]
        function = program.function
        return program.with_function(
            Function(
                function.name, (*(params[k] for k in kept), *params[count:], *given), function.lets, function.results
            ),
            captures=tuple(program.captures[k] for k in kept),
            structure=structure,
            leaves=tuple(leaves),
            slots=tuple(slots),
            origin=None,
        )


def _slot(index: int, kept: list[int], moved: list[int | None], first: int) -> Any:
    """What a result that is a capture is now."""
    return Captured(kept.index(index)) if index in kept else Same(first + moved.index(index))


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Any]]:
    """`fun` as a function of its arguments and then of the floats that it reads from the function around it, and these
    floats, where that is being translated; else `fun`, which reads arrays that nothing is differentiated by, and [].

    Of `example_args` only structures, shapes and dtypes are looked at. (JAX's `closure_convert`.)
    """
    if not under_way():
        return fun, []
    call = take_apart(example_args, {})
    program = program_of(fun, call.structure, call.specs)
    staged = [(c, p) for c, p in zip(program.captures, program.function.params) if isinstance(c, (StagedArray, Number))]
    consts = [capture for capture, param in staged if has_tangent(param.type)]
    return Converted(fun, consts), consts


__all__ = ["closure_convert"]
