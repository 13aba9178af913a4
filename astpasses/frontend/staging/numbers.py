"""Captured numbers that change from call to call: hidden arguments of the program, as captured arrays are.

In: a number and where it was found. Out: a staged number that the program reads afresh at each call; None
where the number is taken as it is, and guarded. A number is known to change when a guard of an earlier
program failed (`under_way.changing_numbers`), or when the function itself writes to its attribute:

    def step(self, x):
        self.t += self.dt          # self.t is a parameter of the program and a result; self.dt a constant

Where staging needs the value (an axis, the length of a loop that can't be rolled), it is a constant again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metaphrase.core.ir import Var
from metaphrase.core.types import Array

from ..operators.kinds import WEAK
from ..rewrite.plain import Undefined
from ..values.sources import AttributeSource, ItemSource, NumberSource, Source, is_number
from ..values.staged_values import Number, Staged, Unsettled
from .captured import is_copy
from .journal import AttributeLocation, ItemLocation, Location
from .session import Session
from .signals import Restart
from .under_way import changing_numbers, sessions


def changing_number(here: Session, value: Any, source: Source) -> Number | None:
    """The number at `source` as a hidden argument, if it is known to change."""
    key = source.key()
    if not is_number(value) or any(key in known.decisions.constant for known in sessions()):
        return None
    if key not in here.decisions.changing and key not in changing_numbers():
        return None
    python = None if isinstance(value, np.generic) else type(value)
    return hidden_number(here, NumberSource(source, python, WEAK[python] if python else value.dtype))


def hidden_number(here: Session, source: NumberSource) -> Number:
    """A parameter that is read from `source` at each call."""
    key = source.key()
    if key not in here.captures:
        name = str(source).split("[")[0].split(".")[-1]
        param = Var(name if name.isidentifier() else "number", Array(source.dtype))
        here.captures[key] = (source, param)
        here.origins[param] = ("captured", source.place.key())
    return Number(here, here.captures[key][1], source.python)


def before_write(here: Session, location: Location) -> None:
    """Called before a place is written to. A number that was read as a constant is none: staging begins
    again. What a branch or loop may leave as it was is read from where it stands, and not frozen."""
    if not isinstance(location, (AttributeLocation, ItemLocation)) or here.is_written(location.key()):
        return
    from .literals import lift, source_of

    if id(location.owner) not in here.roots and id(location.owner) not in here.given:
        return
    owner = None if is_copy(here, location.owner) else source_of(here, location.owner)
    old = location.read()
    if owner is None or isinstance(old, (Undefined, Staged, Unsettled)):
        return
    source: Source = (
        AttributeSource(owner, location.name)
        if isinstance(location, AttributeLocation)
        else ItemSource(owner, location.index)
    )
    key, decisions = source.key(), here.decisions
    changes = is_number(old) and key not in decisions.constant
    if changes and key in here.guards and key not in decisions.changing:
        decisions.changing.add(key)
        raise Restart()
    if not here.in_region():
        return
    if changes:
        decisions.changing.add(key)
    known = lift(here, old, source)
    if known is not old:
        here.replaced.append((location, location.stored()))
        location.write(known)
