"""Values that were there before the call: captured arrays become hidden arguments, Python values are guarded.

In: what a global, a closure cell, an attribute or an item holds. Out: what user code sees of it while it is
staged.
"""

from __future__ import annotations

import collections
import enum
import functools
import os
import sys
import types
from typing import Any

import numpy as np

from metaphrase.core.array_classes import is_on_device, plain_array
from metaphrase.core.ir import Literal, Var
from metaphrase.core.types import Array, CoreTypeError, dtype_name
from metaphrase.late import module
from metaphrase.source import UnsupportedError, is_library

from ..calls.text import Text
from ..flow.gathering import all_known, expanded, is_gathered, item_of, one_of_all, refuse_read
from ..flow.stacks import NeedStack, older_loop
from ..operators.indexing import get_item
from ..rewrite.convert import Outer
from ..rewrite.plain import Undefined
from ..values.definitions import found_in
from ..values.sources import AttributeSource, CellSource, ElementsSource, GlobalSource, ItemSource, ObjectSource, Source
from ..values.staged_values import Box, Number, Staged, StagedArray, Unsettled
from .captured import guard_method, guard_presence, guard_same, guard_structure, make_attributes_known, own_attributes
from .demand import need_concrete
from .journal import AttributeLocation, ItemLocation, StructureLocation
from .numbers import changing_number
from .session import Session
from .settling import settled
from .signals import TrialOver
from .staged import in_order
from .users_code import guard_class

call: Any = module("metaphrase.astpasses.frontend.calls.call")
_IMMUTABLE = (bool, int, float, complex, str, bytes, type(None), np.generic, np.dtype)
_DATA = (*_IMMUTABLE, np.ndarray, list, dict, set, tuple)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)


def lift_outer(here: Session, outer: Outer, value: Any, name: str) -> Any:
    """A name that a function takes from outside."""
    if isinstance(value, (Staged, Undefined, Unsettled)):
        return settled(value)
    cell = outer.cells.get(name)
    source: Source = GlobalSource(outer.globals, name) if cell is None else CellSource(cell, name)
    return lift(here, value, source)


def lift(here: Session, value: Any, source: Source) -> Any:
    """What a source holds, made known to the session."""
    if isinstance(value, np.ndarray) or is_on_device(value):
        return capture_array(here, value, source)
    if isinstance(value, _IMMUTABLE):
        number = changing_number(here, value, source)
        if number is not None:
            return number
        here.rely_on(source, "value", value)
    elif isinstance(value, (types.FunctionType, type, types.ModuleType, types.BuiltinFunctionType)):
        if not isinstance(value, types.ModuleType):
            here.rely_on(source, "object", value)
    elif not isinstance(value, Staged) and not here.is_fresh(value, 0):
        first = here.roots.setdefault(id(value), (source, value))[0]
        if first.key() != source.key():
            guard_same(here, source, first)
        if isinstance(value, (set, frozenset)):
            here.rely_on(source, "contents", frozenset(value))
        if not isinstance(value, (list, dict, set, tuple)):
            here.rely_on(source, "object", value)
        guard_class(here, type(value))
    return value


def capture_array(here: Session, value: np.ndarray, source: Source) -> StagedArray:
    """A hidden argument: the array that `source` holds at each call."""
    found = here.boxes.get(("captured", id(value)))
    if found is not None:
        made, _, first = found
        if first.key() != source.key():
            guard_same(here, source, first)
        return made
    try:
        dtype_name(value.dtype)
    except CoreTypeError as error:
        raise here.dtype_error(f"'{source}': {error}", error.remedy) from None
    if type(value) is not np.ndarray and isinstance(value, np.ndarray):
        plain_array(value, here.span(), str(source))
        source = ElementsSource(source)
    name = str(source).split("[")[0].split(".")[-1]
    param = Var(name, Array(value.dtype, value.shape))
    made = StagedArray(Box(here, param, origin=source), writeable=getattr(value.flags, "writeable", True))
    made.box.region = here.regions[0]
    if not in_order(value):
        here.layouts.otherwise.add(param)
    here.captures[("captured", source.key())] = (source, param)
    here.boxes[("captured", id(value))] = (made, value, source)
    return made


def lift_defaults(here: Session, function: types.FunctionType, made: types.FunctionType) -> types.FunctionType:
    """`made`, which runs in place of a user's function: its default values that can be changed outlive the
    call, as what is captured does."""

    def lifted(value: Any, name: str, key: Any) -> Any:
        if isinstance(value, (*_IMMUTABLE, Staged)) or callable(value):
            return value
        held = AttributeSource(ObjectSource(function, function.__name__), name)
        return lift(here, value, ItemSource(held, key))

    if function.__defaults__:
        made.__defaults__ = tuple(lifted(v, "__defaults__", k) for k, v in enumerate(function.__defaults__))
    if function.__kwdefaults__:
        made.__kwdefaults__ = {k: lifted(v, "__kwdefaults__", k) for k, v in function.__kwdefaults__.items()}
    return made


def source_of(here: Session, value: Any) -> Source | None:
    """Where an object that existed before the call was found; None for objects made while staging."""
    found = here.roots.get(id(value))
    if found is not None:
        return found[0]
    if here.is_fresh(value, 0) or isinstance(value, (Staged, types.ModuleType, type)):
        return None
    if isinstance(value, _FUNCTIONS) or type(value).__module__.split(".")[0] == "metaphrase":
        return None
    if id(value) in here.given or hasattr(value, "__dict__") and not callable(value):
        return ObjectSource(value, type(value).__name__.lower())
    return None


def _stands(target: Any, name: str, value: Any) -> bool:
    """Whether an attribute is data that stands in an object, its class or a module, and may change there."""
    if isinstance(target, types.ModuleType):
        if is_library(target.__name__):  # `sys.argv`; other tables are constants
            return target in (sys, os) and type(value) in (list, dict, set)
        return not isinstance(value, types.ModuleType)
    if name in own_attributes(target) and not isinstance(target, type):
        return True
    if isinstance(target, tuple) and name in getattr(target, "_fields", ()):
        return True
    kind = target if isinstance(target, type) else type(target)
    if isinstance(kind, enum.EnumMeta) or is_library(kind.__module__):
        return False
    found = found_in(kind, name)
    return isinstance(found, types.MemberDescriptorType) or found is value and isinstance(value, _DATA)


def load_attribute(here: Session, target: Any, name: str) -> Any:
    """`target.name`."""
    if isinstance(target, np.ndarray):
        target = here.lift(target)
    if isinstance(target, type):
        guard_class(here, target)
    elif not isinstance(target, (Staged, types.ModuleType)):
        from ..operators.protocols import attribute

        kind = getattr(target, "__self_class__") if type(target) is super else type(target)  # noqa: B009
        guard_class(here, kind)
        found, value = attribute(here, target, name)
        if found:
            return value
    if name == "__class__" and isinstance(target, Staged):
        return call.call_value(type, (target,), {})
    if name == "__dict__":
        make_attributes_known(here, target)
    if isinstance(target, Number):
        from ..calls.methods import users_attribute

        return users_attribute(target, name)
    try:
        value = getattr(target, name)
    except AttributeError:
        guard_presence(here, target, name, False)
        raise
    if isinstance(target, Staged) or isinstance(value, Staged):
        return value
    if isinstance(target, (types.ModuleType, type)):
        source: Source | None = ObjectSource(target, target.__name__)
    else:
        guard_method(here, target, name, value)
        source = source_of(here, target)
        if source is None and type(target) is not super and name not in own_attributes(target):
            target = type(target)
            source = ObjectSource(target, target.__name__)
    if source is None or not _stands(target, name, value) or here.is_written(AttributeLocation(target, name).key()):
        return here.lift(value) if isinstance(value, np.ndarray) else value
    return lift(here, value, AttributeSource(source, name))


def load_item(here: Session, container: Any, index: Any) -> Any:
    """`container[index]`."""
    if type(container) is list:
        refuse_read(here, container)
        if is_gathered(container):
            return item_of(here, container, index)
    if isinstance(container, type):
        guard_class(here, container)
    if isinstance(container, np.ndarray):
        container = here.lift(container)
    if isinstance(container, Number):
        return get_item(here.array(here.atom(container)), index)
    if isinstance(index, Text):
        index = index.concrete()
    if isinstance(container, dict) and isinstance(index, Staged):
        index = need_concrete(index, "the key of a dict", int if index.dtype.kind in "iu" else float)
    written = getattr(type(container), "__getitem__", None)
    if isinstance(written, types.FunctionType) and not isinstance(container, Staged):
        return call.call_value(written, (container, index), {})
    if isinstance(container, (list, tuple)) and isinstance(index, Number):
        from ..flow.one_of_many import one_of_many

        done, found = one_of_many(here, container, index)
        if done:
            return found
    if isinstance(container, (list, tuple)) and isinstance(index, np.integer):
        index = int(index)
    if type(container) is list and isinstance(index, int) and index < 0:
        index += len(container) if index >= -len(container) else 0
    if isinstance(container, dict) and hasattr(type(container), "__missing__") and index not in container:
        guard_structure(here, container)
        if not isinstance(container, collections.Counter):
            here.journal.note(StructureLocation(container))
    try:
        value = container[index]
    except LookupError:
        if type(container) is list and older_loop(here, container):  # by now it may have grown
            raise NeedStack(container, None, "an item of a list is read in a loop", here.span()) from None
        guard_structure(here, container)
        raise
    if isinstance(container, StagedArray) or isinstance(value, Staged):
        return value
    found = here.roots.get(id(container))
    if isinstance(index, slice) and type(container) is list:  # a new list
        if found is None:
            return here.born(value)
        guard_structure(here, container)
        return here.born([load_item(here, container, k) for k in range(len(container))[index]])
    place = ItemLocation(container, index)
    if found is None or not isinstance(index, slice) and here.is_written(place.key()):
        return here.lift(value) if isinstance(value, np.ndarray) else value
    return lift(here, value, ItemSource(found[0], index))


def elements(here: Session, container: Any) -> Any:
    """What iterating a container gives, each element made known; its length is guarded."""
    from ..flow.generators import Lazy, all_of, is_loop

    if type(container) is list:
        refuse_read(here, container)
        if is_gathered(container):
            return _items_of(here, container)
    refuse_moved(here, container)
    if isinstance(container, Lazy):
        return elements(here, all_of(here, container)) if is_loop(here, container) else container
    from ..calls.outside import outside_items, refuse_outside

    items = outside_items(here, container, functools.partial(load_item, here))
    if items is not None:
        guard_structure(here, container)
        return items
    refuse_outside(here, container, "the iteration")
    if type(container).__module__ != "builtins" and not isinstance(container, Staged):
        from ..operators.protocols import iterated

        container = iterated(container)
        refuse_left(here, container)
    found = here.roots.get(id(container))
    if found is None or not isinstance(container, (list, tuple, dict, set)):
        return container
    guard_structure(here, container)
    if isinstance(container, (list, tuple)):
        return [load_item(here, container, k) for k in range(len(container))]
    return list(container)


def refuse_moved(here: Session, container: Any) -> None:
    """Where an iterator stands is known, or it moves where a trial can't take it back."""
    refuse_left(here, container)
    if here.in_region() and hasattr(type(container), "__next__") and not isinstance(container, Staged):
        if not here.is_fresh(container, len(here.regions) - 1):
            raise TrialOver(
                "an iterator moves on in a loop or branch on staged values, which can't be undone",
                here.span(),
                "make a list of its items before",
            )


def refuse_left(here: Session, iterator: Any) -> None:
    """An iterator over which a loop ran that was left on a staged test is of no use afterwards."""
    if id(iterator) in here.left:
        raise UnsupportedError(
            "an iterator is used after a loop over it that is left on a staged test: where it stands is only "
            "known when the program runs",
            here.span(),
            code="generator",
            remedy="make a list of its items, and keep a position in it",
            notes=(("the loop", here.left[id(iterator)][1]),),
        )


def _items_of(here: Session, value: list) -> Any:
    """The items of a gathered list: rows for a loop to run over, or each of them where they are few kinds."""
    if all_known(value):
        return expanded(here, value)
    from ..flow.iteration import ranged_rows

    return ranged_rows(here, value[0] if len(value) == 1 else one_of_all(here, value))


def known_value(here: Session, value: Any) -> Any:
    """The constant that a staged value is known to be, or None."""
    if isinstance(value, Number):
        atom = value._atom
        return atom.value if isinstance(atom, Literal) else None
    return value.box.known if isinstance(value, StagedArray) and not value.chain else None
