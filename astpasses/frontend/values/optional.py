"""A result that is None (or a number) on some paths: a flag and a value of the program, for the caller one or
the other.

In: the leaf of the flag, and the structure of the value. Out: None or the value; in a staging around, a value
that is there on some paths.

    the kind Optional, children (bool, structure of the value)   ->   the value, or None
    the same with metadata (0,)                                  ->   the value, or 0
    the kind OneValue, metadata ("up", "down"), child: an int   ->   "up" or "down"
    the kind Copied, metadata (set, {1, 2}), no children        ->   {1, 2}, another one at each call
    the kind TextValue, metadata ("{} steps",), child: an int   ->   "7 steps"
"""

from __future__ import annotations

import array
from typing import Any

import numpy as np

from metaphrase._tree_registry import Kind, number_keys
from metaphrase.tree_util import PyTreeDef

from .staged_values import Maybe, Number, OneOf, Poison, Staged


class Either(Poison):
    """An array `value` where `flag` is true, else this Python or NumPy number."""

    __slots__ = ("flag", "value", "number")

    def __init__(self, flag: Any, value: Any, number: Any, reason: str, span: Any):
        super().__init__(reason, span)
        self.flag, self.value, self.number = flag, value, number


class Optional:
    """Names the kind; there are no such objects: taking one apart is never asked."""


def _one_of(metadata: Any, children: Any) -> Any:
    flag, value = children
    if isinstance(flag, Number):
        if metadata is None:
            return Maybe(flag, value, None)
        reason = f"a result is an array on some paths and {metadata[0]!r} on others"
        return Either(flag, value, metadata[0], reason, None)
    told = isinstance(flag, (bool, np.bool_)) or isinstance(flag, np.ndarray) and flag.ndim == 0
    otherwise = None if metadata is None else metadata[0]
    return otherwise if told and not flag else value


OPTIONAL = Kind(Optional, lambda value: ((), None), _one_of, number_keys)


def optional(tree: PyTreeDef, *number: Any) -> PyTreeDef:
    """The structure of what may be None (or this number), where it isn't."""
    return PyTreeDef(OPTIONAL, number or None, (PyTreeDef(None), tree))


def may_be_number(tree: PyTreeDef) -> bool:
    """Whether some part of a result is a number on some paths and an array on others."""
    return tree.kind is OPTIONAL and tree.metadata is not None or any(map(may_be_number, tree.children()))


def may_be_none(tree: PyTreeDef) -> bool:
    """Whether some part of a result is None (or a number) on some paths, one of several Python values, or a string."""
    return tree.kind in (OPTIONAL, ONE_VALUE, TEXT) or any(map(may_be_none, tree.children()))


def is_chosen(tree: PyTreeDef) -> bool:
    """Whether some part of a result is one of several Python values, or a string that the run fills in."""
    return tree.kind in (ONE_VALUE, TEXT) or any(map(is_chosen, tree.children()))


class OneValue:
    """Names the kind of one of several Python values; there are no such objects."""


def _value(values: tuple, children: Any) -> Any:
    (tag,) = children
    return OneOf(values, tag) if isinstance(tag, Number) else values[int(tag)]


ONE_VALUE = Kind(OneValue, lambda value: ((), None), _value, number_keys)


class TextValue:
    """Names the kind of a string with values of the run in it; there are no such objects."""


def _text(templates: tuple, children: Any) -> Any:
    """The string; of several templates the first child says which."""
    tag, values = (0, tuple(children)) if len(templates) == 1 else (children[0], tuple(children[1:]))
    if isinstance(tag, Number) or any(isinstance(value, Staged) for value in values):
        from ..calls.text import Text

        return Text(OneOf(templates, tag) if isinstance(tag, Number) else templates[int(tag)], values)
    return templates[int(tag)].format(*values)


TEXT = Kind(TextValue, lambda value: ((), None), _text, number_keys)


class Copied:
    """Names the kind of a container that each call makes anew; there are no such objects."""


def _made(metadata: tuple, children: Any) -> Any:
    kind, holds = metadata
    return array.array(*holds) if kind is array.array else kind(holds)


COPIED = Kind(Copied, lambda value: ((), None), _made, number_keys)


def made_anew(value: Any) -> PyTreeDef:
    """The structure of a set, bytearray or `array.array` that the program made."""
    kind = type(value)
    if kind is array.array:
        return PyTreeDef(COPIED, (kind, (value.typecode, tuple(value))), ())
    return PyTreeDef(COPIED, (kind, frozenset(value) if kind is set else bytes(value)), ())


def text_of_values(templates: tuple, count: int) -> PyTreeDef:
    """The structure of a string that the run fills in: `count` values, and which template, of several."""
    return PyTreeDef(TEXT, templates, (PyTreeDef(None),) * (count + (len(templates) > 1)))


def has_text(tree: PyTreeDef) -> bool:
    """Whether some part of a result is a string that the run fills in."""
    return tree.kind is TEXT or any(map(has_text, tree.children()))


def one_value(values: tuple) -> PyTreeDef:
    """The structure of one of these values, of which the run gives the number."""
    return PyTreeDef(ONE_VALUE, values, (PyTreeDef(None),))
