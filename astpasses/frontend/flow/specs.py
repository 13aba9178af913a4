"""How a rolled loop carries what is at a path: a variable, an item, an array's content; and paths into
containers.

In: what a pass found out. Out: its `Spec` by path, which only ever widens. The kinds:

    held     the same Python value or the very same array object after each iteration
    number   a scalar of a type; Python numbers are carried as soon as the loop is tried
    array    a name bound to another array each time: its content is carried
    content  the content of an array that the body writes to
    maybe    a value that is not bound before the loop, with the flag that says whether it is by now
    unset    the same for names of our own, which are never read before they are bound: no flag
    one_of   one of several Python values (`template`): its number is carried
    tree     a container that the body replaces by another of the same structure
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.core.ir import Atom, Var
from metaphrase.late import dataclass

from ..rewrite.plain import Undefined
from ..values.doubts import Doubt
from ..values.staged_values import Maybe, StagedArray

Path = tuple


class Carried:
    """Which Python numbers a loop's variable is one of, as `joins.constants` says it. `asked`: whether the body
    depends on that."""

    def __init__(self) -> None:
        self.among: tuple | None = ()
        self.asked = False

    def learn(self, among: tuple | None) -> bool:
        """Note what else it may be; whether what depends on that has to be staged again."""
        new = among is None or any(n is not self and n not in (self.among or ()) for n in among)
        if self.among is None or not new:
            return False
        self.among = None if among is None else (*self.among, *(n for n in among if n is not self))
        return self.asked


@dataclass
class Spec:
    """How one path is carried."""

    kind: str
    dtype: np.dtype = None  # type: ignore[assignment]  # numbers and arrays have one
    dims: tuple = ()
    python: type | None = None  # the kind of a number, see joins.joined_number
    low: bool = False
    doubt: Doubt | None = None  # of what was a float of Python's in the passes so far
    carried: Any = None  # of a number: the `Carried` that says which of Python's it may be
    template: Any = None
    missing: Any = ...  # what a `maybe` is where it is not there; ...: what it is before the loop
    sizes: tuple = ()  # of an array whose size changes: a number for each dim, None where it stays
    entry: tuple = ()  # and its dims before the loop
    changes: tuple = ()  # what it was and became when that was first seen
    apart: bool = False  # of an array: its elements may lie apart, as those of `x[::2]` do
    foreseen: bool = False  # by the text of the loop; no pass has shown it yet
    kept: bool = False  # of an array: a flag says whether it is still the one that it was before the loop


@dataclass
class Carry:
    """One carried core value: its parameter in the body, how to make its first value, and its last."""

    path: Path
    param: Var
    initial: Callable[[], Atom]
    entry: Any = None
    final: Atom | None = None


@dataclass
class ArraySlot:
    """An array carried by content: what it is before the loop, in the body, and at the end of the body."""

    path: Path
    entry: Any
    inside: StagedArray
    outside: Any = None  # a StagedArray, or None where the name holds something else


def is_missing(value: Any) -> bool:
    return value is None or isinstance(value, Undefined)


def maybe(present: Any, missing: Any) -> Spec:
    """A value that is `missing` on some paths; names of our own need no flag."""
    return Spec("unset" if is_unset(missing) else "maybe", template=present, missing=missing)


def is_unset(value: Any) -> bool:
    """Whether a name of our own has no value, which then nobody reads."""
    return isinstance(value, Undefined) and value.label is None


def is_or_none(value: Any) -> bool:
    """Whether it is a value on some paths and None on others."""
    return isinstance(value, Maybe) and value.missing is None
