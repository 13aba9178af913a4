"""`collections.deque` as the list that it is used like: what a loop does to it is seen, as with any list.

In: calls of `deque` without `maxlen`, and of methods that only deques have. Out: a list that the session
knows for a deque.

    queue = deque([source])           queue is [source]
    v = queue.popleft()               v = queue.pop(0)
"""

from __future__ import annotations

import collections
from typing import Any

from metaphrase.source import UnsupportedError

from ..flow.gathering import is_gathered
from ..staging.journal import StructureLocation
from ..staging.literals import elements
from ..staging.session import Session, session
from .builtin_calls import isinstance_, list_, type_
from .call import handles


@handles(collections.deque)
def deque_(iterable: Any = (), maxlen: Any = None) -> Any:
    here = session()
    if maxlen is not None:
        return here.born(collections.deque(list(elements(here, iterable)), maxlen))
    made = list_(iterable)
    here.deques[id(made)] = made
    return made


@handles(isinstance)
def isinstance_of_deque(value: Any, kinds: Any) -> bool:
    known = id(value) in session().deques
    return isinstance(collections.deque(), kinds) if known else isinstance_(value, kinds)


@handles(type)
def type_of_deque(value: Any, *rest: Any) -> Any:
    return collections.deque if id(value) in session().deques and not rest else type_(value, *rest)


def list_method(here: Session, target: list, name: str, args: tuple) -> tuple[str, tuple]:
    """The method of a list that does what a deque's does, and what it is given."""
    if name == "popleft":
        return "pop", (0,)
    if name == "appendleft":
        return "insert", (0, *args)
    if name in ("append", "extend", "clear", "reverse", "index", "count", "insert", "remove"):
        return name, args
    if name == "pop" and not args:
        return name, args
    if name in ("rotate", "extendleft") and not is_gathered(target):
        made = collections.deque(target)
        getattr(made, name)(*args)
        here.journal.note(StructureLocation(target))
        target[:] = made
        return "copy", ()
    raise UnsupportedError(
        f"{name} of a deque has no translation yet",
        here.span(),
        code="no-translation",
        remedy="use append, appendleft, pop, popleft, extend, or a list",
    )


__all__ = ["deque_", "list_method"]
