"""List comprehensions on staged values.

In: the clauses of a comprehension. Out: the list; gathered where only the run knows its length.

    [x[j] - x[i] for i in range(n) for j in range(i) if x[j] > 0]
"""

from __future__ import annotations

from typing import Any

from ..flow.branches import STATELESS
from ..flow.generators import run_clause
from ..rewrite.plain import Nested, PlainStager
from .session import Session
from .signals import NeedConcrete, Restart

_GIVEN = ("argument", "captured", "loop")


def listed(stager: PlainStager, here: Session, clause: Nested, several: bool, tested: bool) -> Any:
    """A `for` is run as any loop is. Of several with tests Python runs the loops, so that the length stays
    known, but where a test or a length is only known when the program runs."""
    span, _ = here.place()
    site = ("comprehension", span, tuple(here.path))
    plain = several and (tested or here.decisions.plain_lists)
    if plain and not here.decisions.rolls(site, here.rolling):
        try:
            return here.born(list(clause.in_python(stager)))
        except NeedConcrete as need:
            if all(root[0] in _GIVEN for root in need.roots):
                raise
            here.decisions.must_roll(site, here.rolling)
            raise Restart() from None
    made = here.born([])
    around, here.filling = here.filling, here.filling if several else [*here.filling, made]
    try:
        run_clause(here, clause, lambda item: stager.method(made, "append", item), STATELESS)
    finally:
        here.filling = around
    return made
