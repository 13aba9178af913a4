"""`warnings.warn` on staged paths: the program warns when it runs, and Python's filters decide what is shown.

In: the arguments of the call. Out: a `warn_` Let in program order, at the line that Python would name.

    if x[0] > limit:
        warnings.warn(f"{x[0]} is large")       # warn_(x0, template="{} is large", category="UserWarning")

Inside a `warnings.catch_warnings()` of the translated function, which is entered and left while translating,
warnings are told while translating, too, or are refused.
"""

from __future__ import annotations

import warnings
from typing import Any

from metaphrase.exceptions import exception_name
from metaphrase.ops.effects import warn_
from metaphrase.source import Span

from ..staging.session import Session, session
from .call import call_value, handles
from .text import Text, escaped

_CATCHING: list[Session] = []


class Caught(warnings.catch_warnings):
    """A `catch_warnings` of translated code."""

    def __enter__(self) -> Any:
        self.session = session()
        _CATCHING.append(self.session)
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        _CATCHING.remove(self.session)
        super().__exit__(*raised)


@handles(warnings.catch_warnings)
def catch_warnings(*args: Any, **keywords: Any) -> Any:
    return Caught(*args, **keywords)


@handles(warnings.warn)
def warn(message: Any, category: Any = None, stacklevel: int = 1, source: Any = None, **others: Any) -> None:
    here = session()
    if isinstance(message, Warning):
        category = type(message)
    elif category is None:
        category = UserWarning
    elif not isinstance(category, type) or not issubclass(category, Warning):
        named = category.__name__ if isinstance(category, type) else type(category).__name__
        raise TypeError(f"category must be a Warning subclass, not '{named}'")
    text = call_value(str, (message,), {})
    template = text.template if isinstance(text, Text) else escaped(text)
    if isinstance(message, Warning) and (vars(message) or len(message.args) != 1) or others:
        _while_translating(here, "a warning that holds more than its message", message, category, stacklevel)
    elif here in _CATCHING:
        if _action(template, category) != "ignore":
            _while_translating(here, "a warning in `catch_warnings`", message, category, stacklevel)
    else:
        values = text.values if isinstance(text, Text) else ()
        span, above = _place(here, stacklevel)
        atoms = tuple(map(here.atom, values))
        with here.stamped():
            here.region.builder.bind(
                warn_, atoms, {"template": template, "category": exception_name(category), "above": above}, span=span
            )


def _place(here: Session, stacklevel: int) -> tuple[Span | None, int]:
    """Where the warning is given, and how many calls above the function that is translated."""
    back = max(stacklevel, 1) - 1
    if back == 0:
        return here.span(), 0
    if back <= len(here.path) and (call := here.path[-back][1]) is not None:
        return call, 0
    return here.span(), max(back - len(here.path) + 1, 1)


def _action(text: str, category: type) -> str:
    """What the filters of now do with a warning, wherever it is given."""
    for action, words, kind, _, _ in warnings.filters:
        if (words is None or words.match(text)) and issubclass(category, kind):
            return action
    return warnings.defaultaction  # type: ignore[attr-defined]


def _while_translating(here: Session, what: str, message: Any, category: Any, stacklevel: int) -> None:
    if here.in_region():
        raise here.unsupported(
            f"{what} would be told once, while translating, whatever the branch", "warn outside of it with a text"
        )
    warnings.warn(message, category, stacklevel=stacklevel + 2)
