"""How many derivatives will be taken of what is being staged.

In: the transformations that take them. Out: for a function with derivative rules of its own, whether these are staged
at all, and how deep: a rule may call the very function that it is the rule of.

    grad(grad(f))(x)      # f is staged with 2 to come, its rule with 1, that rule's own with 0: plain functions
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_to_come: ContextVar[int] = ContextVar("metaphrase_derivatives", default=0)
_transposed: ContextVar[bool] = ContextVar("metaphrase_transposed", default=False)


@contextmanager
def taking_derivatives(count: int, transposed: bool = False) -> Iterator[None]:
    """What is staged inside will have `count` derivatives taken of it. `transposed`: it is a rule for tangents, which
    reverse mode transposes."""
    before, rule = _to_come.set(count), _transposed.set(transposed)
    try:
        yield
    finally:
        _to_come.reset(before)
        _transposed.reset(rule)


def derivatives_to_come() -> int:
    """See `taking_derivatives`."""
    return _to_come.get()


def will_be_transposed() -> bool:
    """Whether what is being staged may be transposed: it is differentiated, or the rule of a derivative."""
    return derivatives_to_come() > 0 or _transposed.get()


__all__ = ["derivatives_to_come", "taking_derivatives", "will_be_transposed"]
