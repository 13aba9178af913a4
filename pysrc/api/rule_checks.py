"""A rule that a person wrote against the derivative that metaphrase makes: at sample points, once.

In: an `OwnRule`, and the specs of the call that it is translated for. Out: nothing, or an error that names the
argument, the place in it, and both numbers. Example:

    the rule energy_backward gives 3.0 for the cotangent of x[1] at x=[1.0, 3.0], and the derivative of energy is 6.0

The result that the forward rule gives is compared, too. Where the derivative is not finite the rule may say what it
likes: that is what some rules are written for. Sizes that are not known are 3, 4, ...; elements are drawn from 0.1 to
0.9, where the functions of NumPy are smooth. What can't be computed at drawn points is logged, at points of the user's
it is raised.
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dims import substitute, symbols
from ..core.evaluate import evaluate
from ..core.types import has_tangent, is_inexact
from ..digests import sha256
from ..late import dataclass, log
from ..source import SourceError, is_library
from ..tree_util import PyTreeDef, tree_structure, treedef_tuple
from .arguments import Form, Spec, take_apart
from .captures import read_capture
from .custom_parts import taken_by, taken_in_order
from .custom_programs import custom_program, labels
from .derivatives import leaves_of
from .linear import linear_program
from .orders import taking_derivatives, without_rule
from .program import Fixed, Program, Slot, definition_span, leaf_labels, name_of
from .transforms import parameter_names, program_of
from .types import ShapeDtypeStruct

if TYPE_CHECKING:
    from .own_rules import OwnRule


def check_rule(rule: OwnRule, structure: PyTreeDef, specs: Sequence[Spec]) -> None:
    """See the head of this file."""
    name, given = rule.fun.__qualname__, rule.samples is not None
    changed = rule.source is not None and rule.source != source_digest(rule.fun)
    if rule.checks:
        calls = [take_apart(sample, {}) for sample in rule.samples or ()]
        points = [Point(c.structure, c.specs, c.leaves) for c in calls]
        if not given:
            taken = taken_by(rule, structure, specs)
            points = [Point(treedef_tuple([treedef_tuple(taken.structures), tree_structure({})]), taken.specs)]
        try:
            told = [_compared(rule, point.drawn(), given) for point in points]
        except Exception as why:  # whatever the user's function raises at numbers that it is not meant for
            if given:
                raise
            log.warning("the rule of %s could not be checked at drawn arguments (give samples): %s", name, why)
            return
        if found := next(filter(None, told), ""):
            raise _error(rule, found, changed)
        if all(text is None for text in told):
            log.warning("the rule of %s could not be checked (give samples): its derivative is nowhere finite", name)
            return
    if changed:
        more = "; at the sample points it is right" if rule.checks else ""
        log.warning("%s has changed since its derivative %s was written%s", name, name_of(rule.backward), more)


def _error(rule: OwnRule, found: str, changed: bool) -> SourceError:
    name = rule.fun.__name__
    since = f"; {name} has changed since the rule was written" if changed else ""
    return SourceError(
        f"the rule {name_of(rule.backward)} {found}{since}",
        definition_span(rule.backward),
        code="wrong-rule",
        remedy=f"write it anew by metaphrase.derivative({name}, ...)"
        if changed
        else "correct it; if the two are as near as they should be, say rtol=, or check=False",
    )


# ---- where they are compared -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """Arguments of a call: `leaves` are values, or stand-ins for types; without them all is drawn."""

    structure: PyTreeDef
    specs: Sequence[Spec]
    leaves: Sequence[Any] | None = None

    def drawn(self, seed: int = 0, digits: int = 16) -> Point:
        """With a value at each leaf, of so many digits."""
        rng = np.random.default_rng(seed)
        names = sorted({n for spec in self.specs for d in spec.dims for n in symbols(d)})
        sizes = {name: 3 + k for k, name in enumerate(names)}
        specs = [replace(s, dims=tuple(substitute(d, sizes) for d in s.dims), shared=None) for s in self.specs]
        leaves = self.leaves if self.leaves is not None else [_known(spec) for spec in specs]
        values = [_value(leaf, spec, rng, digits) for leaf, spec in zip(leaves, specs)]
        given = zip(specs, values)
        return Point(
            self.structure, [replace(s, value=v if s.form is Form.NUMBER else s.value) for s, v in given], values
        )


def _known(spec: Spec) -> Any:
    """A leaf of the call that is translated, where it is a number of Python or no number."""
    return spec.value if not spec.dynamic or type(spec.value) in (int, float, complex) else ShapeDtypeStruct((), bool)


def _value(leaf: Any, spec: Spec, rng: np.random.Generator, digits: int) -> Any:
    if not spec.dynamic or not isinstance(leaf, ShapeDtypeStruct):
        return leaf
    dtype, shape = spec.dtype, tuple(map(operator.index, spec.dims))  # type: ignore[arg-type]
    assert dtype is not None
    made: Any
    if is_inexact(dtype):
        made = rng.uniform(0.1, 0.9, shape)
        made = made + 1j * rng.uniform(0.1, 0.9, shape) if dtype.kind == "c" else made
    else:
        made = rng.integers(0, 2, shape) if dtype.kind == "b" else rng.integers(1, 4, shape)
    array = np.round(np.asarray(made), digits).astype(dtype)
    return array if spec.form is Form.ARRAY else array[()].item() if spec.form is Form.NUMBER else array[()]


# ---- the two derivatives ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derivative:
    """What a program gives at a point, and the cotangents of its arguments; None where there is none."""

    values: list[Any]
    bars: Sequence[Any]  # that it was asked for, one for each leaf of the result
    cotangents: list[Any]


def derivative_at(
    program: Program, leaves: Sequence[Any], argnums: Sequence[int], bars: Sequence[Any] | None = None
) -> Derivative:
    """`bars`: the cotangents of the leaves of the result; without them it is 1 of a number, and drawn of others."""
    made = linear_program(program, None, what="vjp", has_aux=False, argnums=argnums)
    given: dict[int, Any] = dict(enumerate(map(read_capture, made.captures)))
    given |= {place: leaf for place, leaf in zip(made.leaves, leaves) if not isinstance(place, Fixed)}
    params = made.function.params
    found = evaluate(made.function, *(np.asarray(given[k], params[k].type.dtype) for k in range(len(params))))
    out, linear = made.out.children()
    rule = linear.node_data()[1]  # type: ignore[index]
    values = [found[s.index] if isinstance(s, Slot) else None for s in made.slots[: out.num_leaves]]
    if bars is None:
        rng = np.random.default_rng(1)
        bars = [None if t is None else _bar(v, t.dtype, len(values), rng) for v, t in zip(values, rule.inputs)]
    residuals = [found[s.index] for s in made.slots[out.num_leaves :]]  # type: ignore[union-attr]
    cotangents = evaluate(rule.function, *residuals, *(b for b, t in zip(bars, rule.inputs) if t is not None))
    return Derivative(values, bars, [cotangents[k] if isinstance(k, int) else None for k in rule.outputs])


def _bar(value: Any, dtype: np.dtype, leaves: int, rng: np.random.Generator) -> Any:
    shape = np.shape(value)
    if leaves == 1 and not shape:
        return np.ones((), dtype)
    made = rng.standard_normal(shape)
    return (made + 1j * rng.standard_normal(shape) if dtype.kind == "c" else made).astype(dtype)


def differentiable(program: Program) -> list[int]:
    """The arguments that have derivatives: no objects of classes that are not registered, no texts."""
    count = len(program.structure.children()[0].children())
    return [p for p in range(count) if any(map(_is_smooth(program), leaves_of(program, p)))]


def _is_smooth(program: Program) -> Callable[[int], bool]:
    """Whether a leaf is a float, which may be pinned."""

    def is_smooth(leaf: int) -> bool:
        place = program.leaves[leaf]
        if isinstance(place, Fixed):
            return place.reason is not None and isinstance(place.value, (float, complex))
        return has_tangent(program.function.params[place].type)

    return is_smooth


def acts(program: Program) -> bool:
    """Whether a program prints, or calls Python code back."""
    return any("ordered" in let.effects for let in program.function.lets)


def _compared(rule: OwnRule, point: Point, given: bool) -> str | None:
    """Where the rule and the derivative of the function differ; "" where they don't, None if none is finite."""
    assert point.leaves is not None
    with taking_derivatives(1):
        with without_rule(rule.fun):
            plain = program_of(rule.by_position, point.structure, point.specs)
        trees = point.structure.children()[0].children()
        taken = taken_in_order(rule, trees, point.specs, range(len(point.specs)))
        ruled = custom_program(rule, point.structure, point.specs, taken)
    if not given and acts(plain):
        raise RuntimeError("it prints, or calls Python code, which would be done once more")
    numbers = [n for n in differentiable(plain) if rule.argnums is None or n in rule.argnums]
    want = derivative_at(plain, point.leaves, numbers)
    have = derivative_at(ruled, point.leaves, numbers, want.bars)
    precision = max([_precision(v) for v in (*want.values, *want.cotangents) if v is not None], default=0.0)
    rtol = precision**0.5 if rule.rtol is None else rule.rtol
    name, parameters = rule.fun.__name__, parameter_names(rule.by_position)
    at = _told(point, parameters)
    if wrong := _wrong(labels(plain.out, "the result"), have.values, want.values, rtol):
        label, a, b = wrong
        return f"gives {a} for {label}{at}, and {name} gives {b}"
    names = leaf_labels(plain.structure, parameters)
    names = [names[k] for n in numbers for k in leaves_of(plain, n)]
    if wrong := _wrong(names, have.cotangents, want.cotangents, rtol):
        label, a, b = wrong
        drawn = "" if len(want.values) == 1 and not np.shape(want.values[0]) else ", for cotangents that are drawn"
        return f"gives {a} for the cotangent of {label}{at}, and the derivative of {name} is {b}{drawn}"
    found = [b for b in want.cotangents if b is not None]
    return "" if not found or any(np.isfinite(b).any() or not b.size for b in map(np.asarray, found)) else None


def _wrong(names: Sequence[str], have: Sequence[Any], want: Sequence[Any], rtol: float) -> tuple[str, Any, Any] | None:
    """The element that is farthest off in the first array that is too far off: its name, and both numbers."""
    for name, a, b in zip(names, have, want):
        if b is not None and (place := _place(np.asarray(a), np.asarray(b), rtol)) is not None:
            return name + (str(list(place)) if place else ""), np.asarray(a)[place], np.asarray(b)[place]
    return None


def _place(have: np.ndarray, want: np.ndarray, rtol: float) -> tuple[int, ...] | None:
    """Where two arrays are farthest apart, if that is too far."""
    finite = np.isfinite(want)
    if not finite.any():
        return None
    with np.errstate(all="ignore"):
        off = np.where(finite, np.nan_to_num(np.abs(have - want), nan=np.inf), 0)
    if np.max(off) <= rtol * np.max(np.abs(want[finite])):
        return None
    return tuple(map(int, np.unravel_index(np.argmax(off), off.shape)))


def _told(point: Point, names: Sequence[str]) -> str:
    """The arguments, where they are few."""
    assert point.leaves is not None
    if sum(np.size(leaf) for leaf in point.leaves) > 8:
        return " at a sample"
    told = zip(leaf_labels(point.structure, names), point.leaves)
    return f" at {', '.join(f'{name}={np.asarray(leaf).tolist()!r}' for name, leaf in told)}"


def _precision(value: Any) -> float:
    dtype = np.asarray(value).dtype
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 2.0**-7 if is_inexact(dtype) else 0.0


# ---- the source that a rule was written for -----------------------------------------------------------------


def source_digest(function: Any) -> str:
    """Of the code of a function and of the user's functions that it names, comments and docstrings apart; empty where
    there is no source."""
    texts = [_tree_text(one.__code__) for one in _reached(function, {})]
    return "" if "" in texts else sha256("\n".join(texts).encode()).hexdigest()[:16]


def _reached(function: types.FunctionType, seen: dict[int, Any]) -> Iterator[types.FunctionType]:
    if id(function) in seen:
        return
    seen[id(function)] = function
    yield function
    for name in _names(function.__code__):
        value = function.__globals__.get(name)
        value = getattr(getattr(value, "jitted", value), "fun", value) if hasattr(value, "jitted") else value
        if isinstance(value, types.FunctionType) and not is_library(value.__module__ or ""):
            yield from _reached(value, seen)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


@functools.lru_cache(maxsize=256)
def _tree_text(code: types.CodeType) -> str:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError):  # a lambda within an expression, or no file
        return ""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            node.decorator_list = []
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


__all__ = ["Derivative", "Point", "acts", "check_rule", "derivative_at", "differentiable", "source_digest"]
