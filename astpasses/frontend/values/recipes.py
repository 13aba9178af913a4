"""Python objects in a result that are made of values of the run: the program gives these, the caller makes
the object.

In: the parts of the object. Out: another one of its class at each call; in a staging around, one that holds
staged values.

    the kind Made, metadata Recipe("range"), children (int, int, int)        ->   range(0, 7, 2)
    the kind Made, metadata Recipe("view", ("items", dict)), child: a dict   ->   dict_items([("a", 1.0)])
"""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from typing import Any

from metaphrase._tree_registry import Kind, number_keys
from metaphrase.exceptions import builtin_base, exception_of
from metaphrase.late import dataclass
from metaphrase.tree_util import PyTreeDef

from .staged_values import Staged


@dataclass(frozen=True)
class Recipe:
    """How an object is made of its parts. `of`: what it needs besides."""

    kind: str
    of: Any = None

    def make(self, parts: Sequence[Any]) -> Any:
        return _MAKERS[self.kind](self.of, *parts)

    def text(self, parts: list[str]) -> str:
        """The same as Python text, without classes that only the user has."""
        if self.kind == "view":
            return f"{parts[0]}.{self.of}()"
        if self.kind == "namespace":
            return f"SimpleNamespace({', '.join(f'{n}={p}' for n, p in zip(self.of, parts))})"
        if self.kind == "exception":
            return f"{self.of[0].__name__}({', '.join(parts[: self.of[1]])})"
        if self.kind in ("range", "slice"):
            return f"{self.kind}({', '.join(parts)})"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _range(of: None, *bounds: Any) -> Any:
    if any(isinstance(bound, Staged) for bound in bounds):
        from ..calls.call import call_value

        return call_value(range, bounds, {})
    return range(*bounds)


def _partial(names: tuple, function: Any, *given: Any) -> Any:
    count = len(given) - len(names)
    return functools.partial(function, *given[:count], **dict(zip(names, given[count:])))


def _instance(of: tuple, *parts: Any) -> Any:
    """An instance of a class derived from `list`, `tuple` or `dict`."""
    cls, keys, count, names = of
    base = builtin_base(cls)
    made = base.__new__(cls, parts[:count]) if base is tuple else base.__new__(cls)
    if base is list:
        list.extend(made, parts[:count])
    elif base is dict:
        dict.update(made, zip(keys, parts[:count]))
    for name, value in zip(names, parts[count:]):
        object.__setattr__(made, name, value)
    return made


_MAKERS: dict[str, Any] = {
    "range": _range,
    "slice": lambda of, *bounds: slice(*bounds),
    "namespace": lambda names, *values: types.SimpleNamespace(**dict(zip(names, values))),
    "view": lambda name, table: getattr(table, name)(),
    "partial": _partial,
    "method": lambda function, owner: types.MethodType(function, owner),
    "exception": lambda of, *parts: exception_of(*of, *parts),
    "instance": _instance,
}


class Made:
    """Names the kind; there are no such objects: taking one apart is never asked."""


MADE = Kind(Made, lambda value: ((), None), lambda recipe, parts: recipe.make(parts), number_keys)


def made_of(recipe: Recipe, parts: Sequence[PyTreeDef]) -> PyTreeDef:
    """The structure of an object that is made of parts of these structures."""
    return PyTreeDef(MADE, recipe, tuple(parts))


def has_ranges(tree: PyTreeDef) -> bool:
    """Whether some part of a result is a range, which holds no arrays."""
    return tree.kind is MADE and tree.metadata.kind == "range" or any(map(has_ranges, tree.children()))
