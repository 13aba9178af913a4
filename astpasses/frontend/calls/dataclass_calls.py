"""Dataclasses made in staged code: their fields are set as Python does, `__post_init__` is staged. Containers
of users' classes, made of their leaves.

In: a dataclass with the `__init__` that Python generated, and arguments. Out: an instance.

    Particle(x, v)  is  the fields set, then  call_value(Particle.__post_init__, (made,))
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable
from typing import Any

from metaphrase._tree_registry import make_by

from ..staging.session import Session, session
from ..staging.signals import StagerSignal
from ..staging.under_way import current_session
from .call import call_value, handles, has_staged


def is_generated(cls: type) -> bool:
    """Whether a class is a dataclass whose `__init__` nobody wrote, and whose instances have a `__dict__`."""
    code = getattr(cls.__init__, "__code__", None)  # type: ignore[misc]
    return (
        dataclasses.is_dataclass(cls)
        and code is not None
        and code.co_filename == "<string>"
        and cls.__new__ is object.__new__
        and type(cls) is type
        and getattr(cls, "__dictoffset__", 0) != 0
    )


def construct_dataclass(here: Session, cls: type, args: tuple, keywords: dict) -> Any:
    """`cls(*args, **keywords)`."""
    made = here.constructed(object.__new__(cls))
    asked: list[tuple] = []
    after = getattr(cls, "__post_init__", None)
    if after is not None:  # the instance's own stands before the class's, and only says what it was given
        made.__dict__["__post_init__"] = lambda *variables: asked.append(variables)
    cls.__init__(made, *args, **keywords)  # type: ignore[misc]
    given = {id(a) for a in (*args, *keywords.values())}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        value = made.__dict__.get(field.name)
        if field.default_factory is not dataclasses.MISSING and id(value) not in given:
            here.born(value)
    if after is not None:
        del made.__dict__["__post_init__"]
        call_value(types.MethodType(cls.__post_init__, made), asked[0], {})  # type: ignore[attr-defined]
    return made


def _make(function: Callable, args: tuple, keywords: dict) -> Any:
    """A container of a user's class, made of its leaves: staged where its class computes with them."""
    if current_session() is None or not has_staged((args, keywords)):
        return function(*args, **keywords)
    try:
        return function(*args, **keywords)
    except (StagerSignal, Exception):  # it asked for the values of what is staged
        return call_value(function, args, keywords)


make_by(_make)


@handles(dataclasses.replace)
def replace(obj: Any, /, **changes: Any) -> Any:
    """`dataclasses.replace`: a new instance of the class, made of the fields."""
    cls = type(obj)
    if not is_generated(cls):
        return dataclasses.replace(obj, **changes)
    for field in cls.__dataclass_fields__.values():
        kind = field._field_type  # type: ignore[attr-defined]
        if kind is dataclasses._FIELD_CLASSVAR:  # type: ignore[attr-defined]
            continue
        if not field.init:
            if field.name in changes:
                raise TypeError(
                    f"field {field.name} is declared with init=False, it cannot be specified with replace()"
                )
            continue
        if field.name not in changes:
            only_given = kind is dataclasses._FIELD_INITVAR  # type: ignore[attr-defined]
            if only_given and field.default is dataclasses.MISSING:
                raise TypeError(f"InitVar {field.name!r} must be specified with replace()")
            if not only_given:
                changes[field.name] = call_value(getattr, (obj, field.name), {})
    return construct_dataclass(session(), cls, (), changes)
