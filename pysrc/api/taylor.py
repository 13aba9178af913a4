"""jet: derivatives of a function of any order along a curve, from Program to Program.

In: a function, a point, and the derivatives of a curve through it. Out: the function's value, and the derivatives of
the function along the curve. Example, of sin along x + t:

    jet(np.sin, (x,), ((1.0, 0.0, 0.0),))        # sin(x), [cos(x), -sin(x), -cos(x)]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

import numpy as np

from ..astpasses.transforms.jet import jet as jet_program
from ..core.build import Builder
from ..core.custom import through_rules
from ..core.types import has_tangent
from ..ops.arithmetic import div, mul
from ..ops.arrays import zeros
from ..ops.families import like
from ..ops.shape import convert
from ..pipeline import cleaned
from ..source import DTypeError, ShapeError, Span
from ..tree_util import PyTreeDef, tree_structure, treedef_tuple
from .arguments import Form, Spec
from .derivatives import output_atoms, private_copies, refuse_pinned
from .identity import shared
from .program import Fixed, Program, Slot, caller_span, leaf_labels, marks
from .tracebacks import user_frames
from .transformations import differentiable_program
from .transforms import Transformed, parameter_names


class Jet(Transformed):
    """jet, as a function of (primals, series)."""

    kind = "jet"
    compiles = True

    def __init__(self, fun: Callable[..., Any], factorial_scaled: bool):
        super().__init__(fun)
        self.__dict__.pop("__wrapped__", None)  # or its signature would be that of `fun`
        self.factorial_scaled = factorial_scaled

    def _again(self) -> tuple:
        return self.fun, self.factorial_scaled

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        span = self._place()
        primals, series = structure.children()[0].children()
        order = _order(primals, series, span)
        count = primals.num_leaves
        own = treedef_tuple([primals, structure.children()[1]])
        program = differentiable_program(self.fun, own, specs[:count], times=order)
        program = output_atoms(private_copies(program, self.kind))
        labels = leaf_labels(own, parameter_names(self.fun))
        rows = _rows(primals, order, range(count, count + series.num_leaves))
        wrt: dict[int, list[int]] = {}  # parameter: the leaves of its derivatives
        for leaf, spec, row, label in zip(program.leaves, specs, rows, labels):
            refuse_pinned(leaf, self.kind, label, span)
            if not isinstance(leaf, Fixed) and has_tangent(program.function.params[leaf].type):
                for k, place in enumerate(row, 1):
                    _check(specs[place], spec, k, label, span)
                wrt[leaf] = row
        return self._assembled(program, structure, specs, wrt, order)

    def _assembled(
        self, program: Program, structure: PyTreeDef, specs: Sequence[Spec], wrt: dict[int, list[int]], order: int
    ) -> Program:
        function = cleaned(through_rules(program.function))
        has = [has_tangent(r.type) for r in function.results]
        inner, _ = jet_program(function, marks(len(function.params), list(wrt)), order, has)
        leaves: list[int | Fixed] = list(program.leaves)
        with Builder(f"jet_{function.name}") as builder:
            params: list[Any] = [builder.parameter(p.name, p.type) for p in function.params]
            given: dict[int, Any] = {}
            for place, spec in enumerate(specs[len(leaves) :], len(leaves)):
                if not spec.dynamic:
                    leaves.append(Fixed(spec.value))
                    continue
                leaves.append(len(builder.params))
                given[place] = builder.parameter("x_dot", spec.type)
            for param, row in wrt.items():
                for k, place in enumerate(row, 1):
                    given[place].name = f"{function.params[param].name}_{k}"
            moving = [(given[row[k]], k + 1, param) for k in range(order) for param, row in sorted(wrt.items())]
            outs = list(builder.replay(inner, [*params, *(self._scaled(v, k, params[p]) for v, k, p in moving)]))
            results, higher = outs[: len(has)], iter(outs[len(has) :])
            rows: list[list[Any]] = [[] for _ in has]
            for k in range(1, order + 1):
                for result, smooth, own in zip(results, has, rows):
                    found = next(higher) if smooth else zeros(result.type.plain.with_dtype(np.dtype(bool)))
                    own.append(found if self.factorial_scaled or not smooth else div(found, like(found, factorial(k))))
            made = builder.function([*results, *(value for row in rows for value in row)])
        slots: list[Any] = list(program.slots)
        for slot in program.slots:
            first = len(has) + slot.index * order if isinstance(slot, Slot) else None
            slots += [slot if first is None else Slot(first + k) for k in range(order)]
        return Program(
            made,
            program.captures,
            structure,
            tuple(leaves),
            treedef_tuple([program.out, program.out.compose(tree_structure([0] * order))]),
            tuple(slots),
            ("scalar",) * len(made.results),
            program.guards,
            (),
            self.__name__,
        )

    def _scaled(self, value: Any, k: int, primal: Any) -> Any:
        value = value if value.type.dtype == primal.type.dtype else convert(value, dtype=primal.type.dtype)
        return value if self.factorial_scaled or k == 1 else mul(value, like(value, factorial(k)))


def _order(primals: PyTreeDef, series: PyTreeDef, span: Span | None) -> int:
    """How many derivatives are given of each primal."""
    rows = series.children() if series.node_data() else []
    kinds = [row.node_data()[0] for row in rows if row.node_data() is not None]  # type: ignore[index]
    orders = {len(row.children()) for row in rows}
    fits = len(rows) == len(primals.children()) == len(kinds) and set(kinds) <= {tuple, list} and len(orders) == 1
    alike = fits and all(set(r.children()) == {p} for r, p in zip(rows, primals.children()))
    if not alike:
        raise ShapeError(
            f"jet: the primals are {primals} and their derivatives {series}",
            span,
            code="jvp-structure",
            remedy="give a tuple of equally many derivatives for each primal, each in the containers of the primal",
        )
    return orders.pop()


def _rows(primals: PyTreeDef, order: int, places: Sequence[int]) -> list[list[int]]:
    """For each leaf of the primals the places of its derivatives, which are given primal by primal."""
    found, start = [], 0
    for primal in primals.children():
        size = primal.num_leaves
        found += [[places[start + k * size + j] for k in range(order)] for j in range(size)]
        start += size * order
    return found


def _check(spec: Spec, primal: Spec, k: int, label: str, span: Span | None) -> None:
    same = spec.dtype == primal.dtype or spec.form is Form.NUMBER and spec.python in (int, float)
    if not spec.dynamic or spec.dims != primal.dims or not same:
        raise ShapeError(
            f"jet: derivative {k} of {label} is {spec.text()}, and {label} is {primal.text()}",
            span,
            code="jvp-tangent",
            remedy="give derivatives of the shape and dtype of the primal",
        )


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], *, factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """(fun(*primals), its derivatives along a curve): Taylor mode.

    `series` has for each primal the derivatives of the curve by t at t = 0, from the first to the K-th; the second
    result has a list of the K derivatives of fun(curve(t)) in the place of each leaf of the output. With
    `factorial_scaled=False` both are coefficients of t ** k. The work grows as a power of K (Griewank & Walther,
    Evaluating Derivatives, ch. 13), where nested derivatives double it K times. Raises ShapeError where `series` does
    not fit, and what `jvp` raises. (`jax.experimental.jet.jet`; primals and outputs may be pytrees.)
    """
    with user_frames():
        for name, value in (("primals", primals), ("series", series)):
            if not isinstance(value, (tuple, list)):
                raise DTypeError(
                    f"jet: the {name} are a {type(value).__name__}, not a tuple with one entry an argument",
                    caller_span(),
                    code="jvp-structure",
                    remedy="write jet(f, (x,), ((x_1, x_2),))",
                )
        return shared(Jet, fun, bool(factorial_scaled))(tuple(primals), tuple(map(tuple, series)))


__all__ = ["Jet", "jet"]
