"""Exceptions that a program raises when it runs: a check keeps the class and all that the exception holds.

In: an exception that user code raised while it was staged, with staged numbers in it. Out: a `check` Let that
raises one like it. Example:

    raise Diverged(f"at {k}", x[k])   ->   check(False, k, v, exception="m:Diverged", message="",
                                                 holds=((("text", "at {}"), ("number", "np.float64")), ()))

One text is the message alone. Numbers are put in when the program runs; arrays are too large for that.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from metaphrase.core.ir import Atom
from metaphrase.exceptions import MOST, Holds, Part, exception_name
from metaphrase.late import dataclass
from metaphrase.ops.effects import check
from metaphrase.source import Span, UnsupportedError

from ..calls.text import Text, message_parts, shown
from ..staging.session import Region, Session
from ..staging.signals import BranchRaised
from ..values.staged_values import Number, Staged, StagedArray
from .gathering import is_gathered

_REMEDY = "put the numbers that matter into the exception"


@dataclass
class Kept:
    """An exception as a check has it: `values` are the staged numbers that it shows or holds."""

    name: str
    message: str
    holds: Holds | tuple
    values: list
    span: Span | None  # where it is raised

    def require(self, here: Session, ok: Atom) -> None:
        """A check that raises it unless `ok`."""
        attributes: dict[str, Any] = {"exception": self.name, "message": self.message}
        if self.holds:
            attributes["holds"] = self.holds
        values = map(here.atom, self.values)
        here.region.builder.bind(check, (ok, *values), attributes, span=self.span)


def kept(here: Session, exception: BaseException, span: Span | None) -> Kept:
    """What a program keeps of an exception."""
    from ..staging.settling import settled

    kind, args, attributes = type(exception), exception.args, vars(exception)
    name = exception_name(kind)
    said = [settled(a) for a in args]
    plain = not attributes and not users_make(kind) and len(said) <= 1
    if plain and all(type(a) is Text or type(a) is str and a for a in said):
        text, values = message_parts(said[0] if said else None)
        made = Kept(name, text, (), list(values), span)
    else:
        made = Kept(name, "", (), [], span)
        parts = tuple(_part(here, made, a, False) for a in said)
        named = tuple((n, _part(here, made, settled(v), True)) for n, v in sorted(attributes.items()))
        made.holds = (parts, named)
    if sum(1 + (here.atom(v).type.dtype.kind == "c") for v in made.values) > MOST:
        raise _refused(made, f"{kind.__name__} holds more than {MOST} numbers: a program keeps no more")
    return made


def _part(here: Session, made: Kept, value: Any, attribute: bool) -> Part:
    """How a part of an exception is made of numbers of the run."""
    if value is None or type(value) in (str, bool, int):
        return "value", value
    if isinstance(value, Text):
        template, values = message_parts(value)
        made.values += values
        return "text", template
    if isinstance(value, (Number, float, complex, np.number, np.bool_)):
        made.values.append(value)
        return "number", _type_name(value)
    if type(value) in (tuple, list) and not is_gathered(value):
        return type(value).__name__, tuple(_part(here, made, v, attribute) for v in value)
    if not attribute:  # as it is shown, an array by its type
        text = shown(value, "s")
        return _part(here, made, text if isinstance(text, Text) else str(text), False)
    thing = "an array" if isinstance(value, (StagedArray, np.ndarray)) else f"a {type(value).__name__}"
    raise _refused(made, f"{made.name.rpartition(':')[2]} holds {thing}, which a program can't keep for it")


def _type_name(value: Any) -> str:
    """The type that a number has in Python."""
    python = value.python if isinstance(value, Number) else type(value)
    if python in (bool, int, float, complex):
        return python.__name__
    return f"np.{value.dtype.name}"


def _refused(made: Kept, message: str) -> UnsupportedError:
    return UnsupportedError(message, made.span, code="raise", remedy=_REMEDY)


def users_make(kind: Any) -> bool:
    """Whether the user wrote what makes the exception: it may take anything."""
    return any(isinstance(method, types.FunctionType) for method in (kind.__init__, kind.__new__))


def raises_later(here: Session, exception: BaseException) -> bool:
    """Whether an exception on the only path must wait until the program runs: something before it prints or
    may fail, or it holds staged values."""
    return has_effects(here.region) or _holds_staged([*exception.args, *vars(exception).values()])


def _holds_staged(values: list | tuple) -> bool:
    return any(_holds_staged(v) if isinstance(v, (list, tuple)) else isinstance(v, (Text, Staged)) for v in values)


def has_effects(region: Region) -> bool:
    """Whether something in a region prints or may fail, by itself or in a region inside."""
    return any(let.primitive.effect or any(True for _ in let.regions()) for let in region.builder.lets)


def emit_raise(here: Session, ok: Atom, raised: BranchRaised) -> None:
    """A check that raises what user code raised, unless `ok`."""
    kept(here, raised.exception, raised.span).require(here, ok)
