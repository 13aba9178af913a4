"""Zeros that derivative rules can tell from other tangents: `SymbolicZero`, and `CustomVJPPrimal`.

In: rules that were given with `symbolic_zeros=True`. Out: for each set of arguments that a derivative reaches a rule of
its own, staged when it is asked for, and what its program relies on. Both classes are pytrees of one leaf. Example:

    def product_jvp(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        if type(y_dot) is SymbolicZero:       # known while translating
            return x * y, x_dot * y
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..tree_util import PyTreeDef, register_pytree_node, tree_flatten, tree_structure


class SymbolicZero:
    """A tangent or cotangent that is zero: nothing that is differentiated reaches it. It has the shape and dtype of its
    primal. A rule may return one."""

    __slots__ = ("zeros",)

    def __init__(self, zeros: Any):
        self.zeros = zeros

    @property
    def shape(self) -> tuple[int, ...]:
        return self.zeros.shape

    @property
    def dtype(self) -> Any:
        return self.zeros.dtype

    @property
    def ndim(self) -> int:
        return self.zeros.ndim

    @property
    def size(self) -> int:
        return self.zeros.size


class CustomVJPPrimal:
    """An argument of a forward rule: its `value`, and whether it is `perturbed`, that is, its cotangent is read."""

    __slots__ = ("value", "perturbed")

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed


register_pytree_node(SymbolicZero, lambda zero: ((zero.zeros,), None), lambda _, zeros: SymbolicZero(*zeros))
register_pytree_node(
    CustomVJPPrimal,
    lambda primal: ((primal.value,), primal.perturbed),
    lambda perturbed, children: CustomVJPPrimal(children[0], perturbed),
)


def with_zeros(tree: PyTreeDef, zero: Sequence[bool]) -> PyTreeDef:
    """The structure with a SymbolicZero at the leaves that are zero."""
    return tree_structure(tree.skeleton([SymbolicZero(0) if z else 0 for z in zero]))


def with_primals(tree: PyTreeDef, perturbed: Sequence[bool]) -> PyTreeDef:
    """The structure with a CustomVJPPrimal at each leaf."""
    return tree_structure(tree.skeleton([CustomVJPPrimal(0, p) for p in perturbed]))


def without_zeros(tree: PyTreeDef) -> tuple[PyTreeDef, list[bool]]:
    """The structure with a leaf for each SymbolicZero, and which leaves these are."""
    whole = tree.unflatten(range(tree.num_leaves)) if _has_zeros(tree) else None
    if whole is None:
        return tree, [False] * tree.num_leaves
    leaves, plain = tree_flatten(whole, lambda x: isinstance(x, SymbolicZero))
    return plain, [isinstance(leaf, SymbolicZero) for leaf in leaves]


def is_zero(tree: PyTreeDef) -> bool:
    return tree.kind is not None and tree.kind.type is SymbolicZero


def _has_zeros(tree: PyTreeDef) -> bool:
    return is_zero(tree) or any(map(_has_zeros, tree.children()))


# ---- rules for what a derivative reaches --------------------------------------------------------------------


class Variants:
    """What `make(marks)` gives for the tangents that are there, each made once, and the guards of its program."""

    def __init__(self, make: Callable[[tuple[bool, ...]], tuple[Any, Sequence[Any]]]):
        self.make = make
        self.made: dict[tuple[bool, ...], tuple[Any, Sequence[Any]]] = {}

    def __call__(self, marks: tuple[bool, ...]) -> Any:
        if marks not in self.made:
            self.made[marks] = self.make(marks)
        found, guards = self.made[marks]
        late = _guards.get()
        if late is not None:
            late.extend(guards)
        return found

    def __repr__(self) -> str:
        return "None"  # in the text of a program: read back, rules are given zeros as arrays


_guards: ContextVar[list[Any] | None] = ContextVar("metaphrase_guards", default=None)


@contextmanager
def late_guards() -> Iterator[list[Any]]:
    """What the rules rely on that are staged while derivatives are taken."""
    found: list[Any] = []
    before = _guards.set(found)
    try:
        yield found
    finally:
        _guards.reset(before)


__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "Variants",
    "is_zero",
    "late_guards",
    "with_primals",
    "with_zeros",
    "without_zeros",
]
