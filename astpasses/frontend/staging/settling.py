"""Values that may be missing, as they are used: checked, narrowed, or refused.

In: what a name, an attribute or an item holds. Out: the value, behind a check that it is there where only the
run knows; or only its truth.

    settled(Maybe(flag, x, None))    # check(flag, TypeError); x
"""

from __future__ import annotations

from typing import Any

from metaphrase.ops.effects import check
from metaphrase.source import UnsupportedError

from ..flow.branches import truth_atom
from ..flow.lazy import truth_of_maybe
from ..rewrite.plain import Undefined
from ..values.optional import Either
from ..values.staged_values import Maybe, Poison, Staged, Truth, Unsized
from .knowledge import is_there, narrowed
from .outer import adopted
from .session import session
from .signals import BranchRaised, NeedConcrete, Restart


def settled(value: Any) -> Any:
    """A value that is used: maybe-unbound ones are checked, poison is the error; what an outer function made
    is a hidden argument of this one."""
    if isinstance(value, Staged):
        here = session()
        return value if value.session is here else adopted(here, value)
    if isinstance(value, (Undefined, Maybe, Poison)):
        return _settle(value)
    return value


def found(value: Any) -> Any:
    """A value that was read from a place: None may be what the place holds, and is no fault yet."""
    return value if isinstance(value, Maybe) and value.missing is None else settled(value)


def tested(value: Any) -> Any:
    """A value of which only the truth is asked."""
    if isinstance(value, Maybe) and value.missing is None:
        return truth_of_maybe(value)
    return value if isinstance(value, Truth) else settled(value)


def _settle(value: Any) -> Any:
    here = session()
    if isinstance(value, Either) and (known := narrowed(here, value)) is not value:
        return settled(known)
    if isinstance(value, Unsized):
        here.decisions.roomed.add(value.site)
        raise Restart()
    if isinstance(value, Poison):
        error = UnsupportedError(
            value.reason, here.span(), code="join", remedy=value.remedy, notes=(("the paths meet here", value.span),)
        )
        if value.roots:
            why = f"the test that says what {value.reason.partition(' is ')[0]} is"
            raise NeedConcrete(set(value.roots), why, value.span, value.remedy, refusal=error)
        raise error
    if isinstance(value, Undefined):
        value.was_read = True
        if here.in_region():
            raise BranchRaised(value.error(), here.span())
        raise value.error()
    if is_there(here, value):
        return settled(value.value)
    missing = value.missing
    ok = truth_atom(here, value.flag)
    if missing is None:
        here.emit(check, ok, exception="TypeError", message="a value that is None here is used as a number")
    else:
        here.emit(check, ok, exception=type(error := missing.error()).__name__, message=str(error))
    return settled(value.value)
