"""What a staging takes for granted, or knows, of how arrays lie in memory; values/orders.py asks and tells.

In: nothing. Out: sets of boxes and of core values. Example: after `g = x.T * 2.0`, `g` is like `x.T`, which
lies otherwise.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from metaphrase.core.ir import Atom
from metaphrase.late import dataclass, field

if TYPE_CHECKING:
    from ..values.staged_values import Box


@dataclass
class Layouts:
    """`contiguous`: ids of boxes that a reshape took for contiguous. `ordered`: arrays that have to lie row
    after row, or a store means something else. `otherwise`: arrays that don't. `like`: whose order that of a
    new array may be. `reshaped`: copies by a reshape, and of what."""

    contiguous: set[int] = field(default_factory=set)
    ordered: set[Atom] = field(default_factory=set)
    otherwise: set[Atom] = field(default_factory=set)
    like: dict[Atom, tuple[Atom, ...]] = field(default_factory=dict)
    reshaped: list[tuple[weakref.ref[Box], Box]] = field(default_factory=list)
