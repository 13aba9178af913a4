"""Derivative rules of the user's own: `custom_jvp`, `custom_vjp` and `custom_gradient`, with JAX's names and meaning.

In: a function, and what gives its derivative. Out: a function that is called like it. Outside of transformations a
call runs the function; a program of which no derivative is taken has the function written out, and no trace of a rule.

    @custom_jvp
    def log1pexp(x):
        return np.log1p(np.exp(x))

    @log1pexp.defjvp
    def log1pexp_jvp(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + np.exp(x))) * x_dot
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from ..interpreter import signature_of
from ..late import module
from ..source import DTypeError, SourceError, Span
from ..tree_util import PyTreeDef, tree_map
from .arguments import Spec, take_apart
from .identity import reduced
from .orders import derivatives_to_come
from .program import Program, caller_span, name_of, under_way
from .transforms import Transformed, call_inside, program_of

custom_programs = module("metaphrase.api.custom_programs")
staging = module("metaphrase.api.staging")
P = ParamSpec("P")
R = TypeVar("R")
Rule = Callable[..., Any]


class Custom(Transformed, Generic[P, R]):
    """A function with a derivative rule of its own."""

    rules: tuple[Rule, ...] = ()
    symbolic_zeros = False
    definer = ""
    alone: tuple[str, ...] = ()  # parameters that are given by name, and to rules by position behind the others
    through = False  # whether forward mode takes the derivative of the function itself
    occasion = "its derivative is taken"  # when a rule is needed

    def __init__(
        self, fun: Callable[P, R], nondiff_argnums: int | Sequence[int], nondiff_argnames: str | Sequence[str]
    ):
        super().__init__(fun)
        self.__name__ = name_of(fun)
        self.nondiff_argnums = _positions(fun, nondiff_argnums, nondiff_argnames, self.kind, self.span)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return call_inside(self, args, kwargs) if under_way() else self.fun(*args, **kwargs)

    @property
    def py_func(self) -> Callable[P, R] | None:
        """The function, where staged code calls it as if it stood there: where nobody asks for its rules."""
        return None if self.is_asked() else self.fun

    @property
    def by_position(self) -> Callable[..., R]:
        """The function as rules are called."""
        return self.fun

    def is_asked(self) -> bool:
        """Whether anything that has to do with the rules is done to what is being staged."""
        return bool(derivatives_to_come())

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        return self._ruled(structure, specs) if self.is_asked() else program_of(self.fun, structure, specs)

    def _ruled(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        """The program that has the rules beside the function."""
        self._require_rules()
        return custom_programs.custom_program(self, structure, specs)

    def _require_rules(self) -> None:
        if not self.rules:
            raise SourceError(
                f"{self.__name__} has no {self.kind.removeprefix('custom_')} rule yet, and {self.occasion}",
                self.span,
                code="no-rule",
                remedy=f"give it one by {self.__name__}.{self.definer}",
            )

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> Any:
        if not self.is_asked():
            return None
        call = take_apart(args, kwargs, in_order=self.in_order)
        return staging.give_back(self._ruled(call.structure, call.specs))

    def _again(self) -> tuple:
        return self.fun, self.nondiff_argnums, self.symbolic_zeros, *self.rules

    def __reduce__(self) -> str | tuple:
        return reduced(self, remade, type(self), *self._again())


class CustomJvp(Custom[P, R]):
    """What `custom_jvp` makes."""

    kind = "custom_jvp"
    definer = "defjvp"

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False) -> Rule:
        """`jvp(*nondiff arguments, primals, tangents) -> (primal_out, tangent_out)`, the tangents and `tangent_out` of
        the structures, shapes and dtypes of what they are tangents of. What is no float has tangents of bool, zeros.
        With `symbolic_zeros` the tangents of what no derivative reaches are `SymbolicZero`s, and the rule may return
        such. Also a decorator. (Griewank & Walther, Evaluating Derivatives, ch. 3.)"""
        self.rules, self.symbolic_zeros = (jvp,), bool(symbolic_zeros)
        return jvp

    def defjvps(self, *jvps: Rule | None) -> None:
        """For each argument `jvp(tangent, primal_out, *primals) -> its part of tangent_out`, or None: zero. The parts
        are added up. Raises DTypeError where there are nondiff arguments."""
        if self.nondiff_argnums:
            raise DTypeError(
                f"defjvps of {self.__name__}, which has nondiff_argnums",
                caller_span(),
                code="custom-arguments",
                remedy="give one rule by defjvp",
            )
        self.rules = (_summed(self, jvps),)


class CustomVjp(Custom[P, R]):
    """What `custom_vjp` makes."""

    kind = "custom_vjp"
    definer = "defvjp"

    def defvjp(self, fwd: Rule, bwd: Rule, symbolic_zeros: bool = False, optimize_remat: bool = False) -> None:
        """`fwd(*arguments) -> (out, residuals)`, and `bwd(*nondiff arguments, residuals, cotangent of out)` gives a
        tuple with the cotangent of each other argument, or None: zero. `optimize_remat` changes nothing. With
        `symbolic_zeros` `fwd` is given a `CustomVJPPrimal` for each leaf of the arguments (but nondiff ones), and `bwd`
        `SymbolicZero`s where the cotangent of a result is zero. (Griewank & Walther, Evaluating Derivatives, ch. 3.)"""
        self.rules, self.symbolic_zeros = (fwd, bwd), bool(symbolic_zeros)


def _summed(custom: CustomJvp, parts: Sequence[Rule | None]) -> Rule:
    """The rule that `defjvps` makes of one rule an argument."""

    def jvp(primals: tuple, tangents: tuple) -> tuple:
        out = call_inside(custom, primals, {})
        total = None
        for part, tangent in zip(parts, tangents):
            if part is not None:
                dot = call_inside(part, (tangent, out, *primals), {})
                total = dot if total is None else tree_map(lambda a, b: call_inside(np.add, (a, b), {}), total, dot)
        if total is None:
            total = tree_map(lambda leaf: call_inside(np.zeros_like, (leaf,), {}), out)
        return out, total

    return named_after(jvp, next((part for part in parts if part is not None), custom.fun))


def named_after(rule: Rule, fun: Any) -> Rule:
    """A function of ours that messages name and place as one of the user's."""
    return functools.update_wrapper(rule, fun, assigned=("__name__", "__qualname__", "__doc__"), updated=())


def custom_jvp(
    fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> CustomJvp[P, R]:
    """`fun`, whose derivative in both modes is what `defjvp` or `defjvps` says. The arguments of `nondiff_argnums` and
    `nondiff_argnames` (callables, options, arrays that no derivative reaches) come first to the rule. Raises DTypeError
    for what is no function, SourceError for what names no parameter. Also a decorator."""
    return CustomJvp(fun, nondiff_argnums, nondiff_argnames)


def custom_vjp(
    fun: Callable[P, R], nondiff_argnums: int | Sequence[int] = (), nondiff_argnames: str | Sequence[str] = ()
) -> CustomVjp[P, R]:
    """`fun`, whose derivative in reverse mode is what `defvjp` says; in forward mode it has none, which is refused.
    For `nondiff_argnums`, `nondiff_argnames` and what is raised see `custom_jvp`. Also a decorator."""
    return CustomVjp(fun, nondiff_argnums, nondiff_argnames)


def custom_gradient(fun: Callable[..., tuple[R, Any]]) -> CustomVjp[..., R]:
    """`fun(*args) -> (out, vjp)`, where `vjp(cotangent of out)` gives the cotangents of the arguments (a tuple, or that
    of the only one), as a function that gives `out`. The backward rule runs `fun` again, as far as `vjp` reads what it
    makes; what the program has made before is not made twice. (TensorFlow's `custom_gradient`.)"""

    def value(*args: Any, **kwargs: Any) -> Any:
        call = call_inside if under_way() else _called
        return call(fun, args, kwargs)[0]

    def forward(*args: Any) -> tuple:
        out, _ = call_inside(fun, args, {})
        return out, args

    def backward(args: tuple, bar: Any) -> tuple:
        _, vjp = call_inside(fun, args, {})
        found = call_inside(vjp, (bar,), {})
        return tuple(found) if isinstance(found, (tuple, list)) else (found,)

    made: CustomVjp = CustomVjp(named_after(value, fun), (), ())
    made.__module__ = fun.__module__
    made.defvjp(named_after(forward, fun), named_after(backward, fun))
    return made


def _called(function: Any, args: tuple, kwargs: dict) -> Any:
    return function(*args, **kwargs)


def remade(kind: type[Custom], fun: Any, numbers: tuple[int, ...], symbolic_zeros: bool, *rules: Rule) -> Custom:
    """The function with its rules, from what `_again` gives."""
    made = kind(fun, numbers, ())
    made.rules, made.symbolic_zeros = rules, symbolic_zeros
    return made


def _positions(
    fun: Any, numbers: int | Sequence[int], names: str | Sequence[str], what: str, span: Span | None
) -> tuple[int, ...]:
    """The positions of the arguments that are not differentiated, in their order."""
    numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    names = (names,) if isinstance(names, str) else tuple(names)
    try:
        parameters = list(signature_of(fun).parameters.values())
    except (TypeError, ValueError):
        return tuple(sorted({*numbers}))
    known = [p.name for p in parameters]
    count = len(parameters)
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for wrong in (*(n for n in numbers if not any_number and not -count <= n < count), *({*names} - {*known})):
        raise SourceError(
            f"{what}: {wrong!r} names no parameter of {name_of(fun)}, which has {', '.join(known) or 'none'}",
            span,
            code="custom-arguments",
            remedy="name parameters of the function, by position or by name",
        )
    found = [n if n >= 0 or any_number else n % count for n in numbers]
    return tuple(sorted({*found, *map(known.index, names)}))


__all__ = ["Custom", "CustomJvp", "CustomVjp", "custom_gradient", "custom_jvp", "custom_vjp"]
