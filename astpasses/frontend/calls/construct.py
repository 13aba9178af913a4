"""Instances of classes: an `__init__` that users wrote is staged, others run as they are.

In: a class and the arguments of its call. Out: an instance, which the call has made.

    construct(here, Particle, (x, v), {})       # Particle.__init__ is staged like any function
"""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

import numpy as np

from ..flow.generators import READ_AS_LISTS
from ..flow.raised import users_make
from ..staging.session import Session
from ..staging.stand_ins import by_python
from ..staging.users_code import guard_class
from ..values.objects import is_one_of
from .call import as_known, call_function, has_staged, hosted_value, is_native
from .creation import cast_scalar
from .dataclass_calls import construct_dataclass, is_generated
from .outside import module_of, refuse_given, refuse_unsteady


def keeps(cls: type) -> bool:
    """Whether a class keeps what it is given and calls none of it while it makes an instance, so that the
    functions among it stay themselves."""
    if is_one_of(cls, (functools.partial, types.SimpleNamespace)):
        return True
    if issubclass(cls, BaseException) and not users_make(cls):
        return True
    function = cls.__init__ if dataclasses.is_dataclass(cls) else cls.__new__  # type: ignore[misc]
    code = getattr(function, "__code__", None)
    return code is not None and code.co_filename == "<string>" and not hasattr(cls, "__post_init__")


def has_staged_init(cls: type) -> bool:
    """Whether `__init__` is written by the user, and all that makes an instance."""
    init = cls.__init__  # type: ignore[misc]
    return (
        isinstance(init, types.FunctionType)
        and not is_native(init.__module__ or "")
        and type(cls) is type
        and init.__code__.co_filename != "<string>"
        and (
            cls.__new__ is object.__new__
            or issubclass(cls, BaseException)
            and type(cls.__new__) is not types.FunctionType
        )
    )


def construct(here: Session, cls: type, args: tuple, keywords: dict) -> Any:
    """An instance: `__init__` written by the user is staged like any function."""
    guard_class(here, cls)
    init = cls.__init__  # type: ignore[misc]
    if issubclass(cls, np.generic):
        return cast_scalar(cls, *args, **keywords)
    written = isinstance(init, types.FunctionType) and not is_native(init.__module__ or "") and type(cls) is type
    if has_staged_init(cls):
        made = here.constructed(cls.__new__(cls, *args) if issubclass(cls, BaseException) else object.__new__(cls))
        call_function(here, init, (made, *args), keywords)
        return made
    if not is_one_of(cls, READ_AS_LISTS):
        args, keywords = as_known(here, args, keywords)
        if not written:
            refuse_unsteady(here, module_of(cls), cls.__name__, None)
            refuse_given(here, args, keywords, cls.__name__)
    if is_generated(cls):
        return construct_dataclass(here, cls, args, keywords)
    if keeps(cls):
        return here.born(cls(*args, **keywords))
    if cls.__module__ != "builtins" and has_staged((args, keywords)):
        return here.born(by_python(here, cls.__name__, cls, tuple(map(hosted_value, args)), keywords))
    return here.born(cls(*map(hosted_value, args), **keywords))
