"""`collections.deque` as the list that it is used like: what a loop does to it is seen, as with any list.

In: calls of `deque`, and of methods that only deques have. Out: a list that the session knows for a deque,
and for how many items.

    queue = deque([source])           queue is [source]
    v = queue.popleft()               v = queue.pop(0)
"""

from __future__ import annotations

import collections
import operator
from typing import Any

from ..flow.branches import STATELESS, nothing, run_branch
from ..flow.gathering import is_gathered, refuse_read
from ..flow.generators import run_items
from ..staging.journal import StructureLocation
from ..staging.literals import load_item
from ..staging.operations import StagedStager
from ..staging.session import Session, session
from .builtin_calls import isinstance_, list_, type_
from .call import call_method, call_value, handles


@handles(collections.deque)
def deque_(iterable: Any = (), maxlen: Any = None) -> Any:
    here = session()
    made = list_(iterable)
    if maxlen is not None:
        maxlen = operator.index(maxlen)
        if maxlen < 0:
            raise ValueError("maxlen must be non-negative")
        if is_gathered(made) or len(made) > maxlen:
            made = here.born(list_(load_item(here, made, slice(-maxlen, None)) if maxlen else ()))
        here.bounds[id(made)] = maxlen
    here.deques[id(made)] = made
    return made


@handles(isinstance)
def isinstance_of_deque(value: Any, kinds: Any) -> bool:
    known = id(value) in session().deques
    return isinstance(collections.deque(), kinds) if known else isinstance_(value, kinds)


@handles(type)
def type_of_deque(value: Any, *rest: Any) -> Any:
    return collections.deque if id(value) in session().deques and not rest else type_(value, *rest)


def bounded_method(here: Session, target: list, name: str, args: tuple) -> bool:
    """`append` and its like of a deque with `maxlen`: what is too many goes at the other end. Whether it was
    one of these."""
    if name in ("extend", "extendleft"):
        one = "append" if name == "extend" else "appendleft"
        run_items(args[0], lambda v: call_method(target, one, (v,), {}), STATELESS, None)
        return True
    if name not in ("append", "appendleft"):
        return False
    most, (value,) = here.bounds[id(target)], args
    dropped = "popleft" if name == "append" else "pop"
    refuse_read(here, target)
    if not is_gathered(target) and len(target) == most:  # as long before as after: its items move
        stager = StagedStager(None)  # type: ignore[arg-type]
        moved = [*target[1:], value] if name == "append" else [value, *target[:-1]]
        for k, item in enumerate(moved[:most]):
            stager.store_item(item, target, k)
        return True
    here.bounds.pop(id(target))
    try:
        call_method(target, name, args, {})
        over = call_value(len, (target,), {}) > most
        run_branch(over, lambda: call_method(target, dropped, (), {}), nothing, tuple, nothing, ())
    finally:
        here.bounds[id(target)] = most
    return True


def list_method(here: Session, target: list, name: str, args: tuple) -> tuple[str, tuple]:
    """The method of a list that does what a deque's does, and what it is given."""
    if name == "popleft":
        return "pop", (0,)
    if name == "appendleft":
        return "insert", (0, *args)
    same = ("append", "extend", "clear", "reverse", "index", "count", "insert", "remove")
    if name in same or name == "pop" and not args:
        return name, args
    if name in ("rotate", "extendleft") and not is_gathered(target):
        made = collections.deque(target)
        getattr(made, name)(*args)
        here.journal.note(StructureLocation(target))
        target[:] = made
        return "copy", ()
    raise here.unsupported(
        f"{name} of a deque has no translation yet", "use append, appendleft, pop, popleft, extend, or a list"
    )
