"""Captured containers that are used as a whole: each of their items is made known first.

In: a list, tuple, dict, set or object that was there before the call, where something takes it apart that the
stager does not run itself: NumPy, a function of the standard library, an operator, a join, a result. Out: the
same with every item as the stager gives it out, an array as a hidden argument, a number guarded. Example:

    np.stack(LAYERS)               # LAYERS = [array, array] is a global: two hidden arguments
    tree.map(np.sin, PARAMETERS)   # a dict of arrays: one for each
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any

from metaphrase import tree_util
from metaphrase.late import module
from metaphrase.source import is_library

from ..values.definitions import bound_function
from ..values.objects import is_mutable
from ..values.sources import SEQUENCES, AttributeSource, ObjectSource, Source, structure
from ..values.staged_values import Maybe, Poison, Staged, StagedArray
from .journal import AttributeLocation
from .session import Session

literals: Any = module("metaphrase.astpasses.frontend.staging.literals")
_SIZED = (list, tuple, dict, set, *SEQUENCES)
_MANY = 64  # so many numbers of a list are guarded as one
_CONSTANTS = (int, float, complex, str, bytes, bool, type(None))
_PLAIN = (int, float, complex, str, bytes, bool, type(None), Staged, Maybe, Poison)


def known(here: Session, value: Any) -> Any:
    """A value whose captured parts are all made known; itself where there are none."""
    if isinstance(value, _PLAIN) or value is None:
        return value
    if type(value) in (list, dict) and id(value) not in here.roots:
        if here.roots:
            for key, child in enumerate(value) if type(value) is list else list(value.items()):
                made = known(here, child)
                if made is not child:
                    value[key] = made
        return value
    if isinstance(value, tuple) and id(value) not in here.roots:
        children = [known(here, child) for child in value]
        if all(made is child for made, child in zip(children, value)):
            return value
        return type(value)(*children) if hasattr(value, "_fields") else type(value)(children)
    if id(value) not in here.roots:
        return value
    kind = tree_util.kind_of(value)
    if kind is None:
        return value
    if is_copy(here, value):
        return value
    places = here.journal.places
    written = any(isinstance(key, tuple) and key[:2] == ("item", id(value)) for key in places)
    many = type(value) in (list, tuple) and len(value) > _MANY and not written
    if many and all(isinstance(v, _CONSTANTS) for v in value):
        here.rely_on(here.roots[id(value)][0], "items", tuple(value))
        return value
    children, metadata = kind.flatten(value)
    made = kind.unflatten(metadata, [known(here, c) for c in known_children(here, value, kind, children)])
    if not isinstance(value, tuple):
        here.roots[id(made)] = here.roots[id(value)]
        here.boxes["known", id(made)] = (made, made)
    return made


def is_copy(here: Session, value: Any) -> bool:
    """Whether a container was made here of a captured one; a store into it would be lost."""
    return ("known", id(value)) in here.boxes


def known_children(here: Session, value: Any, kind: tree_util.Kind, children: Any) -> list:
    """The children of a captured container, each made known."""
    found = here.roots.get(id(value))
    if found is None or is_copy(here, value):
        return list(children)
    guard_structure(here, value)
    keys = kind.keys(value, kind.flatten(value)[1])
    if any(isinstance(key, tree_util.FlattenedIndexKey) for key in keys):
        make_attributes_known(here, value)
        return list(kind.flatten(value)[0])
    return [
        literals.load_attribute(here, value, key.name)
        if isinstance(key, tree_util.GetAttrKey)
        else literals.load_item(here, value, key.key if isinstance(key, tree_util.DictKey) else key.idx)
        for key in keys
    ]


def guard_structure(here: Session, value: Any) -> None:
    """The program holds for containers of these keys, or this many items."""
    found = here.roots.get(id(value))
    if found is not None and isinstance(value, _SIZED):
        here.rely_on(found[0], "structure", structure(value))


def guard_same(here: Session, source: Source, other: Source, same: bool = True) -> None:
    """The program holds while two places hold one object, or two."""
    here.rely_on(source, "same", (other, same))


def captured_at(here: Session, value: Any) -> Source | None:
    """Where an array or container stands that was there before the call, and is none of its arguments."""
    if isinstance(value, StagedArray):
        return value.box.origin if not value.chain and isinstance(value.box.origin, Source) else None
    return here.roots.get(id(value), (None,))[0]


def guard_identity(here: Session, left: Any, right: Any) -> None:
    """The program holds while what two captured things are, one object or two, stays so; and a captured container a
    container, which is no other object."""
    first, second = captured_at(here, left), captured_at(here, right)
    if first is None or second is None:
        guard_structure(here, left if second is None else right)
    elif first.key() != second.key():
        guard_same(here, first, second, left is right)


def is_own_method(here: Session, function: types.FunctionType) -> bool:
    """Whether a function is a method of a class that the call made: so are the variables that it shares."""
    if not function.__closure__ or "<locals>" not in function.__qualname__:
        return False
    fresh = [thing for region in here.regions for thing in region.fresh.values()]
    values = [value for thing in fresh if isinstance(thing, type) for value in vars(thing).values()]
    return any(function is method for value in values for method in _methods(value))


def _methods(value: Any) -> tuple:
    """The functions of an entry of a class."""
    if isinstance(value, property):
        return value.fget, value.fset, value.fdel
    if isinstance(value, (classmethod, staticmethod)):
        return (value.__func__,)
    return (value.func,) if isinstance(value, functools.cached_property) else (value,)


def own_attributes(target: Any) -> Mapping:
    """What stands in an object itself, unless its class has other words for that."""
    found = getattr(target, "__dict__", {})
    return found if isinstance(found, Mapping) else {}


def guard_method(here: Session, target: Any, name: str, found: Any) -> None:
    """The program holds while an object has no attribute of its own in place of its class's method."""
    function = bound_function(found)
    if not isinstance(function, types.FunctionType) or not hasattr(target, "__dict__"):
        return
    if name in own_attributes(target) or not is_mutable(target):
        return
    source = literals.source_of(here, target)
    if source is not None and not here.is_written(AttributeLocation(target, name).key()):
        here.rely_on(AttributeSource(source, name), "method", function)


def guard_presence(here: Session, target: Any, name: str, present: bool) -> None:
    """The program holds for objects that have this attribute, or don't; for one that the call made, its class."""
    if isinstance(target, Staged):
        return
    source = literals.source_of(here, target)
    if source is None and not isinstance(target, types.ModuleType):
        target = target if isinstance(target, type) else type(target)
        present = hasattr(target, name)
    if source is None and not is_library(getattr(target, "__module__", target.__name__)):
        source = ObjectSource(target, target.__name__)
    if source is not None and not here.is_written(AttributeLocation(target, name).key()):
        here.rely_on(AttributeSource(source, name), "presence", present)


def make_attributes_known(here: Session, owner: Any) -> None:
    """Until the end of the staging an object that is looked into by others holds staged values."""
    source = literals.source_of(here, owner)
    if source is None:
        return
    if hasattr(owner, "__dict__"):
        here.rely_on(AttributeSource(source, "__dict__"), "structure", structure(owner.__dict__))
    for name, value in list(getattr(owner, "__dict__", {}).items()):
        location = AttributeLocation(owner, name)
        if isinstance(value, Staged) or here.is_written(location.key()):
            continue
        made = known(here, literals.lift(here, value, AttributeSource(source, name)))
        if made is not value:
            here.replaced.append((location, value))
            location.write(made)
