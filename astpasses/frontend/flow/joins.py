"""How values of two paths become one: shared by branches and loops.

In: Python and staged values. Out: the type of a joined number, whether two Python values are the same, and
a short description of a value for messages.
"""

from __future__ import annotations

import abc
import enum
import functools
import itertools
import types
from typing import TYPE_CHECKING, Any

import numpy as np

from metaphrase import tree_util
from metaphrase.core.dims import Sym, fresh_symbol
from metaphrase.core.ir import Atom, Literal
from metaphrase.core.types import Array
from metaphrase.exceptions import exception_of
from metaphrase.late import log
from metaphrase.ops.weak_integers import is_narrow

from ..operators.kinds import WEAK, is_number, is_of_two_types, weak_type
from ..rewrite.plain import Undefined
from ..staging.captured import known_children
from ..staging.session import current_session
from ..values.staged_values import Maybe, Number, OneOf, Poison, StagedArray, Unsettled
from .specs import Carried

if TYPE_CHECKING:
    from ..staging.session import Session

_RANK = [bool, int, float, complex]
_OF_THE_RUN = "items of which only the run knows how many there are"
_WORDS = {"Text": "a text with values of the run", "Rows": _OF_THE_RUN, "Stack": _OF_THE_RUN}
_HEAP = 1 << 9  # the flag of classes written in Python


def joined_number(values: list[Any]) -> tuple[np.dtype, type | None]:
    """The dtype that holds all these numbers, and their kind: the Python type if all are Python numbers; None if all
    are NumPy's, or floats of NumPy's that hold the others; else the NumPy type of those that are NumPy's."""
    weak: list[Any] = [weak_type(v) for v in values]
    if all(w is not None for w in weak):
        kind = _RANK[max(map(_RANK.index, weak))]
        return WEAK[kind], kind
    narrow = np.result_type(*map(_beside_others, values, weak))
    held = [v.dtype if w is None else WEAK[w] for v, w in zip(values, weak) if w is None or not _fits(v, narrow)]
    # Of uint64 and int64 NumPy makes floats: a Python int beside an uint64 is checked instead.
    wide = narrow if narrow == np.uint64 else np.result_type(narrow, *held)
    if any(weak):
        log.debug("a Python number and a NumPy number in one variable are one np.%s", wide.name)
    python = {*weak} != {None} or any(map(is_of_two_types, values))
    counts = python and is_narrow(narrow) and narrow != np.uint64  # where it is Python's it does not wrap
    return wide, narrow.type if wide != narrow or counts else None


def _beside_others(value: Any, weak: type | None) -> Any:
    """What NumPy's promotion sees of a number beside NumPy's."""
    if weak is None:
        return getattr(value, "narrow", None) or value.dtype
    return np.dtype(bool) if weak is bool else weak(0)


def _fits(value: Any, dtype: np.dtype) -> bool:
    """Whether a Python number surely is one of this dtype, whatever it is when the program runs."""
    known, seen = [constants(value)], set()
    for numbers in known:
        if numbers is None:
            return False
        for number in numbers:
            if isinstance(number, Carried):
                if number not in seen:
                    number.asked = True
                    seen.add(number)
                    known.append(number.among)
            elif not _is_one(number, dtype):
                return False
    return True


def _is_one(number: Any, dtype: np.dtype) -> bool:
    try:
        with np.errstate(all="ignore"):
            cast = (complex if dtype.kind == "c" else type(number))(dtype.type(number))
    except (OverflowError, ValueError):
        return False
    return cast == number or number != number


def constants(value: Any) -> tuple | None:
    """The Python numbers that a Python number is one of; a variable of a loop stands for those that
    it may be. None where only the run knows it."""
    if not isinstance(value, Number):
        return (value,)
    atom = value._atom
    return (atom.value.item(),) if isinstance(atom, Literal) else value.among


def joined_constants(*values: tuple | None) -> tuple | None:
    """Those of numbers of several paths."""
    return None if None in values else tuple(dict.fromkeys(itertools.chain(*values)))  # type: ignore[arg-type]


def makers(here: Session, before: Any, after: Any) -> tuple:
    """Notes with the lines that made a variable before a loop, and in it."""
    words = ("before the loop it is made here", "in the loop it becomes another here")
    found = []
    for what, value in zip(words, (before, after)):
        atom = value.box.atom if isinstance(value, StagedArray) else getattr(value, "_atom", value)
        lets = (let for region in here.regions for let in region.builder.lets if any(atom is out for out in let.outs))
        span = next((let.span for let in lets), None)
        if span is not None and span.line != getattr(here.span(), "line", None):
            found.append((what, span))
    return tuple(found)


def number_of(dtype: np.dtype, kind: type | None, among: tuple | None = None) -> Number:
    """A stand-in for a number of this type, for `joined_number`."""
    made = Number(None, types.SimpleNamespace(type=Array(np.dtype(dtype))), kind)  # type: ignore[arg-type]
    made.among = among
    return made


def nonnegative(here: Session, value: Any) -> bool:
    """Whether an int is known not to be negative."""
    dim = int(value) if isinstance(value, (int, np.integer)) else getattr(value, "dim", None)
    return dim is not None and here.facts.less_equal(0, dim)


def either(here: Session, atom: Atom, kind: type | None, values: tuple, among: tuple | None) -> Any:
    """A number that is one of several, as the run decides: an int is not negative where none of them is."""
    dim = None
    if kind is int and all(nonnegative(here, v) for v in values):
        name = fresh_symbol("one#")
        here.facts.learn(name, 0, None)
        dim = Sym(name)
    return here.wrap(atom, kind, dim, among)


def equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # metadata of any type; what can't be compared is not known to be equal
        return a is b


def have_one_form(a: Any, b: Any) -> bool:
    """Whether both come apart, and in the same way."""
    first, second = parts(a), parts(b)
    if first is None or second is None or first[0] is not second[0]:
        return False
    return len(first[1]) == len(second[1]) and equal(first[2], second[2])


def same_static(a: Any, b: Any) -> bool:
    """Whether two Python values mean the same: one object, or equal values of one immutable type."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, (Number, StagedArray, Unsettled, Undefined)):
        return False
    if isinstance(a, (bool, int, str, bytes, np.dtype, type(None), type(Ellipsis), range)):
        return a == b
    if isinstance(a, BaseException):
        return not vars(a) and not vars(b) and len(a.args) == len(b.args) and all(map(same_static, a.args, b.args))
    if isinstance(a, (float, complex)):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return False


def container(value: Any) -> tuple[tree_util.Kind, list, Any] | None:
    """A pytree node taken apart one level: its kind, children and metadata. None for leaves."""
    if value is None or is_number(value) or isinstance(value, (StagedArray, Unsettled, Undefined)):
        return None
    kind = tree_util.kind_of(value)
    return None if kind is None else _taken_apart(value, kind)


def _taken_apart(value: Any, kind: tree_util.Kind) -> tuple[tree_util.Kind, list, Any]:
    """What was there before the call comes apart as the stager gives it out."""
    here, (children, metadata) = current_session(), kind.flatten(value)
    known = list(children)
    return kind, known if here is None else known_children(here, value, kind, known), metadata


@functools.cache
def _object_kind(cls: type) -> tree_util.Kind:
    """Objects of a user's class come apart into their attributes."""

    def flatten(value: Any) -> tuple[list, tuple]:
        names = tree_util.sorted_keys(attributes_of(value))  # of two paths they agree, whatever their order
        return [getattr(value, n) for n in names], names

    def unflatten(names: tuple, children: Any) -> Any:
        made: Any = object.__new__(cls)
        for name, child in tree_util.dict_of(names, children).items():
            object.__setattr__(made, name, child)
        return made

    def keys(value: Any, names: tuple) -> list:
        return [tree_util.GetAttrKey(n) for n in names]

    return tree_util.Kind(cls, flatten, unflatten, keys)


def attributes_of(value: Any) -> tuple[str, ...]:
    """The names of what an object itself holds, in its order."""
    slots = (n for n in _slots(type(value)) if hasattr(value, n))
    return tuple(dict.fromkeys([*slots, *getattr(value, "__dict__", ())]))


def _slots(cls: type) -> list[str]:
    found = [getattr(base, "__slots__", ()) for base in cls.__mro__]
    return [n for names in found for n in ([names] if isinstance(names, str) else names) if n[:2] != "__"]


def parts(value: Any) -> tuple[tree_util.Kind, list, Any] | None:
    """Like `container`, and takes an object of a plain user's class apart into its attributes."""
    found = container(value)
    cls = type(value)
    if found is not None or value is None or is_number(value) or cls.__module__ == "numpy":
        return found
    if isinstance(value, (StagedArray, Unsettled, Undefined, type, types.FunctionType, enum.Enum)):
        return None
    if isinstance(value, BaseException):
        return _exception_parts(value)
    if cls.__new__ is not object.__new__ or type(cls) not in (type, abc.ABCMeta) or not cls.__flags__ & _HEAP:
        return None
    return _taken_apart(value, _object_kind(cls))  # type: ignore[arg-type]


def _exception_parts(value: BaseException) -> tuple[tree_util.Kind, list, Any] | None:
    """An exception that the call made, taken apart into its arguments and attributes."""
    here = current_session()
    if here is None or id(value) in here.roots or id(value) in here.given:
        return None
    names = tree_util.sorted_keys(vars(value))
    kind = _exception_kind(type(value))  # type: ignore[arg-type]
    return kind, [*value.args, *(vars(value)[n] for n in names)], names


@functools.cache
def _exception_kind(cls: type) -> tree_util.Kind:
    def unflatten(names: tuple, children: Any) -> Any:
        count = len(children) - len(names)
        named = tree_util.dict_of(names, children[count:])
        return exception_of(cls, count, list(named), *children[:count], *named.values())

    def keys(value: Any, names: tuple) -> list:
        arguments = [tree_util.SequenceKey(k) for k in range(len(value.args))]
        return [*arguments, *map(tree_util.GetAttrKey, names)]

    return tree_util.Kind(cls, lambda value: _exception_parts(value)[1:], unflatten, keys)  # type: ignore[index]


def instance_parts(value: Any) -> tuple[tree_util.Kind, list, Any] | None:
    """The same for an instance of any class written in Python, whatever makes its instances: in a result."""
    cls: Any = type(value)
    written = all(base.__flags__ & _HEAP for base in cls.__mro__[:-1])
    if isinstance(value, (type, enum.Enum)) or not written or cls is object:
        return None
    try:
        object.__new__(cls)
    except TypeError:  # a class in C
        return None
    return _taken_apart(value, _object_kind(cls))


def describe(value: Any) -> str:
    """A value in a few words, for messages."""
    if isinstance(value, Undefined):
        return "not bound"
    if value is None:
        return "None"
    if isinstance(value, Number):
        return f"a Python {value.python.__name__}" if value.python else f"a {value.dtype} scalar"
    if isinstance(value, StagedArray):
        return f"an array {value.type}"
    if isinstance(value, Maybe):
        return f"{describe(value.value)} on some paths"
    if isinstance(value, Poison):
        return "of no one type"
    if (words := _WORDS.get(type(value).__name__)) is not None:
        return words
    if isinstance(value, OneOf):
        return f"one of {', '.join(map(repr, value.values))}"
    if is_number(value) or isinstance(value, str):
        return f"{type(value).__name__} {value!r}"
    return f"a {type(value).__name__}"
