"""`derivative_of`: a function that a person wrote becomes the derivative of another one in reverse mode.

In: a function, and what gives its cotangents. Out: the latter as it was; metaphrase calls it wherever it differentiates
code that calls the function, which stays an ordinary function of Python. Example:

    @derivative_of(energy)
    def energy_backward(x, k, energy_bar):
        return 2 * k * x * energy_bar, np.sum(x * x) * energy_bar

The rule is a `custom_vjp` that stands in the function's `__dict__` (`core/attached.py`), where calls in staged code
look for it. A function that is given a rule, or another one, gets a copy of its code: so all that relied on the old
state (guards of programs, transformed functions) is made anew, and calls need no guard of their own.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn, TypeVar

from ..core.attached import RULE, rule_of
from ..interpreter import signature_of
from ..late import log
from ..source import DTypeError, SourceError, Span, is_library
from ..tree_util import PyTreeDef
from .arguments import Spec
from .captures import captured_values, read_capture
from .custom import CustomVjp, Rule, named_after
from .derivatives import check_argnums
from .identity import reduced
from .orders import goes_without_rule
from .program import Program, caller_span, name_of, under_way
from .rule_checks import check_rule
from .transforms import Transformed, call_inside
from .types import parse_arguments

B = TypeVar("B", bound=Callable[..., Any] | None)


class OwnRule(CustomVjp):
    """The rule of a function that does not know of it."""

    kind = "derivative_of"
    through = True

    def __init__(
        self,
        fun: types.FunctionType,
        backward: Rule,
        forward: Rule | None = None,
        argnums: Sequence[int] | None = None,
        samples: Any = None,
        check: bool = True,
        rtol: float | None = None,
        source: str | None = None,
    ):
        super().__init__(fun, _others(fun, argnums), ())
        self.forward, self.backward, self.argnums = forward, backward, argnums
        self.samples, self.checks, self.rtol, self.source = samples, check, rtol, source
        self.alone = alone(fun)
        self.checked: set[Hashable] = set()  # what captured values were when the rule was compared
        self.rules = _forward(fun, forward), _backward(backward, forward)

    @property
    def by_position(self) -> Callable[..., Any]:
        return by_position(self.fun)

    def is_asked(self) -> bool:
        return super().is_asked() and not goes_without_rule(self.fun)

    def _ruled(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        made = super()._ruled(structure, specs)
        key: tuple = captured_values(made.guards), tuple(map(_number, made.captures))
        if self.samples is None:  # texts and bools say which way the function goes
            key += tuple(spec.value for spec in specs if type(spec.value) in (str, bool))
        if key not in self.checked:
            self.checked.add(key)
            try:
                check_rule(self, structure, specs)
            except BaseException:
                self.checked.discard(key)
                raise
        return made

    def _again(self) -> tuple:
        return self.fun, self.backward, self.forward, self.argnums, self.samples, self.checks, self.rtol, self.source

    def __reduce__(self) -> str | tuple:
        return reduced(self, OwnRule, *self._again())


def _number(capture: Any) -> Any:
    """A captured number; arrays are read afresh by function and rule alike."""
    value = read_capture(capture)
    return value if isinstance(value, (int, float, complex)) else None


def alone(fun: Any) -> tuple[str, ...]:
    """The parameters that have to be given by name."""
    return tuple(p.name for p in signature_of(fun).parameters.values() if p.kind is p.KEYWORD_ONLY)


def by_position(fun: Any) -> Callable[..., Any]:
    """The function with all its arguments by position, in the order of its parameters."""
    names = alone(fun)
    if not names:
        return fun

    def called(*args: Any) -> Any:
        first = len(args) - len(names)
        return call_inside(fun, args[:first], dict(zip(names, args[first:])))

    made = named_after(called, fun)
    parameters = [p for p in signature_of(fun).parameters.values()]
    by = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [p.replace(kind=by, default=p.empty) if p.name in names else p for p in parameters]
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        parameters = [p.replace(default=p.empty) for p in parameters]
        made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made


def _others(fun: Any, argnums: Sequence[int] | None) -> tuple[int, ...]:
    """The positions of the arguments that the rule says nothing of."""
    count = len(signature_of(fun).parameters)
    return () if argnums is None else tuple(sorted({*range(count)} - {n % count for n in argnums}))


def _forward(fun: Any, forward: Rule | None) -> Rule:
    """The forward rule; without one of the user's the arguments are the residuals."""
    if forward is not None:
        return forward

    def with_arguments(*args: Any) -> tuple:
        return call_inside(by_position(fun), args, {}), args

    return named_after(with_arguments, fun)


def _backward(backward: Rule, forward: Rule | None) -> Rule:
    """The backward rule as `custom_vjp` calls it: with what it says nothing of, the residuals and the cotangent."""

    def of_residuals(*given: Any) -> Any:
        *_, residuals, bar = given
        return call_inside(backward, (residuals, bar) if forward is not None else (*residuals, bar), {})

    return named_after(of_residuals, backward)


def derivative_of(
    fun: Callable[..., Any],
    *,
    forward: Callable[..., Any] | None = None,
    argnums: int | Sequence[int] | None = None,
    samples: Any = None,
    check: bool = True,
    rtol: float | None = None,
    source: str | None = None,
) -> Callable[[B], B]:
    """Make the decorated function the derivative of `fun` in reverse mode, wherever a call of `fun` is differentiated.

    It takes the arguments of `fun` and then the cotangent of its result, and gives a tuple with one cotangent for each
    argument, or of `argnums` (None: zero), of its structure, shapes and dtypes. With `forward(*arguments) -> (result,
    residuals)` it takes the residuals and the cotangent. `fun` stays as it is; a later rule takes the place of an
    earlier one, and None takes it away. Forward mode differentiates `fun` itself.

    When it is first translated, and again when numbers that `fun` captures have changed, the rule is compared with the
    derivative that metaphrase makes of `fun`: at `samples` (a tuple of arguments, a list of such, or text of types), or
    at arguments drawn for the call; up to `rtol` times the largest element. `check=False` leaves that out. `source` is
    what `derivative` wrote of the source of `fun`; that it has changed is logged.

    Raises DTypeError for what is no function of the user's, SourceError for what names no argument, and, when it is
    translated, where the rule differs. (Griewank & Walther, Evaluating Derivatives, ch. 3.)
    """
    span = caller_span()
    function = function_of(fun, span)
    if under_way():
        raise SourceError(
            f"derivative_of({function.__name__}) in a function that is being translated: the rule would be given once",
            span,
            code="own-rule",
            remedy="give the rule in a module, beside the function",
        )
    numbers = _numbers(function, argnums, span)
    points = sample_calls(samples, function, span)

    def given(backward: B) -> B:
        if backward is not None and not callable(backward):
            _refuse(f"derivative_of({function.__name__}) of {backward!r}, which is no function", span)
        before = rule_of(function)
        if backward is None:
            function.__dict__.pop(RULE, None)
        else:
            made = OwnRule(function, backward, forward, numbers, points, check, rtol, source)
            if before is not None and _home(before.backward) != _home(backward):
                log.warning(
                    "%s had the derivative %s, which %s replaces",
                    function.__qualname__,
                    ".".join(_home(before.backward)),
                    ".".join(_home(backward)),
                )
            function.__dict__[RULE] = made
        function.__code__ = function.__code__.replace()  # see the head of this file
        return backward

    return given


def _home(rule: Any) -> tuple[str, str]:
    return str(getattr(rule, "__module__", "")), name_of(rule)


def function_of(fun: Any, span: Span | None, what: str = "derivative_of") -> types.FunctionType:
    """The plain function that is called, whatever is jitted or bound of it."""
    fun = getattr(getattr(fun, "jitted", fun), "fun", fun) if hasattr(fun, "jitted") else fun
    fun = getattr(fun, "__func__", fun)
    if isinstance(fun, Transformed):
        why = "has derivative rules" if hasattr(fun, "rules") else "is a transformed function"
        _refuse(f"{what}({name_of(fun)}), which {why} already", span)
    if not isinstance(fun, types.FunctionType):
        _refuse(f"{what}({getattr(fun, '__name__', fun)}), which is no function written in Python", span)
    if is_library(fun.__module__ or ""):
        _refuse(f"{what}({fun.__module__}.{fun.__qualname__}), which is no function of yours", span)
    return fun


def _refuse(message: str, span: Span | None) -> NoReturn:
    raise DTypeError(message, span, code="own-rule", remedy="name a function that you wrote, by `def` or lambda")


def _numbers(fun: Any, argnums: int | Sequence[int] | None, span: Span | None) -> tuple[int, ...] | None:
    if argnums is None:
        return None
    return check_argnums(
        (argnums,) if isinstance(argnums, int) else tuple(argnums),
        len(signature_of(fun).parameters),
        "derivative_of",
        span,
    )[0]


def sample_calls(samples: Any, fun: Any, span: Span | None) -> list[tuple[Any, ...]] | None:
    """Arguments at which a rule is compared: arrays, numbers, and stand-ins for types."""
    if samples is None:
        return None
    several = samples if isinstance(samples, list) else [samples]
    found = [parse_arguments(one) if isinstance(one, str) else one for one in several]
    for one in found:
        try:
            if not isinstance(one, tuple):
                raise TypeError(f"{one!r} is no tuple of arguments")
            signature_of(by_position(fun)).bind(*one)
        except TypeError as error:
            raise SourceError(
                f"derivative_of: samples of {fun.__name__}: {error}",
                span,
                code="own-rule",
                remedy=f"give a tuple of arguments of {fun.__name__}{signature_of(fun)}, or a list of such",
            ) from None
    return found


__all__ = ["OwnRule", "alone", "by_position", "derivative_of", "function_of", "sample_calls"]
