"""Builtins and `math` on staged values, by Python's rules.

In: the arguments of `len`, `range`, `isinstance`, `sum`, `max`, `int`, `math.sqrt`, ... Out: what Python
would give.
"""

from __future__ import annotations

import builtins
import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.astpasses.library.lists import reduced
from metaphrase.core.dims import dim_min
from metaphrase.ops.complex_numbers import complex_ as of_parts

from ..flow.branches import static_truth, truth_atom
from ..flow.gathering import all_known, is_gathered, item_of, items_of_array, of_the_run, snapshot
from ..flow.gathering import length as gathered_length
from ..flow.generators import Lazy, all_of, any_of, first, mapped
from ..flow.iteration import ranged, staged_range
from ..flow.iterators import Ranged, iterator, next_of
from ..flow.lazy import choose, lazily
from ..operators.kinds import WEAK
from ..operators.protocols import call_written, operate, steps, store_attribute, written
from ..operators.python_numbers import LONE_ELEMENTS, to_integer
from ..staging.captured import guard_presence, guard_structure
from ..staging.journal import MISSING, AttributeLocation
from ..staging.literals import elements, load_attribute, load_item
from ..staging.python_names import python_class, python_name
from ..staging.session import session
from ..staging.users_code import guard_class
from ..values.staged_values import Maybe, Number, Staged, StagedArray
from .call import answers, call_value, handles
from .gathered_calls import in_order, is_one_column, summed
from .gathered_calls import total as gathered_total
from .outside import refuse_unsteady, unsteady
from .sorting import ordered
from .text import Text


def python_scalar(value: Any) -> Any:
    """An array of no axes as the number that `float(x)` would see."""
    here = session()
    if isinstance(value, StagedArray):
        if any(d != 1 for d in value.type.dims) or value.ndim and not LONE_ELEMENTS:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        return here.wrap(here.atom(value.reshape(()) if value.ndim else value))
    if isinstance(value, (list, tuple, dict, set, str, Text)):
        raise TypeError(f"must be real number, not {python_name(value)}")
    return value


def real_scalar(value: Any, refusal: str = "must be real number, not complex") -> Any:
    """The same, where Python takes no complex number."""
    found = python_scalar(value)
    if isinstance(found, Number) and found.python is complex:
        raise TypeError(refusal)
    return found


# --- numbers ---


@handles(float)
def float_(x: Any = 0.0) -> Any:
    if not isinstance(x, Staged):
        return float(x.concrete() if isinstance(x, Text) else x)
    here = session()
    number = real_scalar(x, "float() argument must be a string or a real number, not 'complex'")
    return here.wrap(here.atom(number, WEAK[float]), float)


@handles(int)
def int_(x: Any = 0, *base: Any) -> Any:
    if not isinstance(x, Staged) or base:
        return int(x.concrete() if isinstance(x, Text) else x, *base)
    here = session()
    x = real_scalar(x, "int() argument must be a string, a bytes-like object or a real number, not 'complex'")
    atom = here.atom(x, WEAK[float] if x.dtype.kind == "c" else None)
    return here.wrap(to_integer(here, atom), int, x.dim if isinstance(x, Number) else None)


@answers(complex)
def complex_(real: Any = 0, imag: Any = 0) -> Any:
    here, parts = session(), [python_scalar(v) for v in (real, imag)]
    if any(np.issubdtype(getattr(v, "dtype", type(v)), np.complexfloating) for v in parts):
        return here.wrap(here.atom(parts[0] + parts[1] * 1j, WEAK[complex]), complex)
    return here.wrap(here.emit(of_parts, *(here.atom(v, WEAK[float]) for v in parts)), complex)


@handles(bool)
def bool_(x: Any = False) -> Any:
    known = static_truth(x)
    if known is not None:
        return known
    here = session()
    return here.wrap(truth_atom(here, x), bool)


@handles(abs, operator.abs)
def abs_(x: Any) -> Any:
    method = written(x, "__abs__")
    return abs(x) if method is None else call_written(method, x)


@handles(round)
def round_(x: Any, digits: Any = None) -> Any:
    return round(x) if digits is None else round(x, digits)


@handles(divmod)
def divmod_(x: Any, y: Any) -> Any:
    return operate("//", x, y), operate("%", x, y)


# --- containers ---


@handles(len)
def len_(x: Any) -> Any:
    if isinstance(x, StagedArray):
        if x.ndim == 0:
            raise TypeError("len() of unsized object")
        return session().size(x.type.dims[0])
    if isinstance(x, Ranged):
        return session().size(x.length)
    if type(x) is list and is_gathered(x):
        return gathered_length(session(), x)
    method = written(x, "__len__")
    if method is not None:
        return call_written(method, x)
    guard_structure(session(), x)
    return len(x)


@handles(vars)
def vars_(x: Any) -> Any:
    return load_attribute(session(), x, "__dict__")


@handles(range)
def range_(*bounds: Any) -> Any:
    return staged_range(session(), *bounds)


@handles(enumerate)
def enumerate_(iterable: Any, start: Any = 0) -> Any:
    here = session()
    source = ranged(here, iterable)
    if source is None:
        return enumerate(elements(here, iterable), start)
    return iterator(here, combined(source, lambda k, item: (start + k if start != 0 else k, item)))


def combined(source: Ranged, make: Callable) -> Ranged:
    view = combined(source.by_view, make) if source.by_view is not None else None
    return Ranged(source.length, lambda k, rows: make(k, source.item(k, rows)), source.rows, view)


@handles(zip)
def zip_(*iterables: Any, strict: bool = False) -> Any:
    here = session()
    sources: list[Any] = [ranged(here, i) for i in iterables]
    if (
        not sources
        or any(s is None for s in sources)
        or not any(isinstance(i, Staged | Ranged) or type(i) is list and is_gathered(i) for i in iterables)
    ):
        given = [s if isinstance(i, Ranged) else elements(here, i) for i, s in zip(iterables, sources)]
        return zip(*given, strict=strict)
    length = functools.reduce(dim_min, [s.length for s in sources])
    if any(s.length != length for s in sources):
        sources = [Ranged(length, _by_index(s.viewed())) for s in sources]
    return iterator(here, _zipped(length, sources))


def _by_index(source: Ranged) -> Callable[[Any, list], Any]:
    """Item k of what has more items than are taken."""
    return lambda k, rows: source.item(k, [r[k] for r in source.rows])


def _zipped(length: Any, sources: list[Ranged]) -> Ranged:
    counts = [len(s.rows) for s in sources]

    def item(k: Any, rows: list) -> tuple:
        out, at = [], 0
        for source, count in zip(sources, counts):
            out.append(source.item(k, rows[at : at + count]))
            at += count
        return tuple(out)

    seen = any(s.by_view is not None for s in sources)
    view = _zipped(length, [s.viewed() for s in sources]) if seen else None
    return Ranged(length, item, [r for s in sources for r in s.rows], view)


@handles(reversed)
def reversed_(iterable: Any) -> Any:
    here = session()
    if isinstance(iterable, StagedArray):
        return iterable[::-1]
    if isinstance(iterable, Ranged):
        last = here.size(iterable.length) - 1
        source = iterable.viewed()
        return Ranged(iterable.length, lambda k, rows: source.item(last - k, rows))
    if isinstance(iterable, range):
        return iterable[::-1]
    if is_gathered(iterable) and not all_known(iterable):
        return mapped(here, item_of(here, iterable, slice(None, None, -1)), lambda item: item)
    method = written(iterable, "__reversed__")
    return reversed(elements(here, iterable)) if method is None else call_written(method, iterable)


@handles(list)
def list_(iterable: Any = ()) -> Any:
    here = session()
    if isinstance(iterable, StagedArray) and (items := items_of_array(here, iterable)) is not None:
        return items
    if isinstance(iterable, Ranged) and of_the_run(here, iterable.length):
        return all_of(here, mapped(here, iterable, lambda item: item))
    gathered = is_gathered(iterable)
    return snapshot(here, iterable) if gathered else here.born(list(elements(here, iterable)))


@handles(tuple)
def tuple_(iterable: Any = ()) -> Any:
    return tuple(elements(session(), iterable))


@handles(dict)
def dict_(*args: Any, **keywords: Any) -> Any:
    here = session()
    if args and isinstance(args[0], dict):
        return here.born({**{k: load_item(here, args[0], k) for k in args[0]}, **keywords})
    return here.born(dict(*args, **keywords))


@handles(set)
def set_(iterable: Any = ()) -> Any:
    return session().born(set(elements(session(), iterable)))


@handles(iter)
def iter_(iterable: Any, *rest: Any) -> Any:
    return session().born(iter(elements(session(), iterable), *rest))


@handles(next)
def next_(iterator: Any, *default: Any) -> Any:
    if written(iterator, "__next__"):
        return next(steps(iterator), *default)
    if isinstance(iterator, Lazy):
        return first(session(), iterator, default)
    if isinstance(iterator, Ranged) and iterator.once:
        return next_of(session(), iterator, default)
    elements(session(), iterator)
    return next(iterator, *default)


@handles(sum)
def sum_(iterable: Any, start: Any = 0) -> Any:
    if isinstance(iterable, StagedArray):
        return summed(iterable, start)
    if is_gathered(iterable):
        return gathered_total(session(), iterable, start)
    return functools.reduce(functools.partial(operate, "+"), iter(elements(session(), iterable)), start)


@handles(builtins.map)
def map_(function: Callable, *iterables: Any) -> Any:
    if len(iterables) == 1:
        return mapped(session(), iterables[0], lambda item: call_value(function, (item,), {}))
    return mapped(session(), zip_(*iterables), lambda items: call_value(function, items, {}))


@handles(filter)
def filter_(function: Callable | None, iterable: Any) -> Any:
    test = (lambda item: item) if function is None else lambda item: call_value(function, (item,), {})
    return mapped(session(), iterable, lambda item: item, test)


@handles(functools.reduce)
def reduce_(function: Callable, iterable: Any, *initial: Any) -> Any:
    if is_gathered(iterable) and not all_known(iterable):
        return call_value(reduced, (function, iterable, *initial), {})
    return functools.reduce(lambda a, b: call_value(function, (a, b), {}), elements(session(), iterable), *initial)


@handles(sorted)
def sorted_(iterable: Any, *, key: Any = None, reverse: bool = False) -> Any:
    here = session()
    if isinstance(iterable, StagedArray) and key is None:
        out = call_value(np.sort, (iterable,), {})
        return list_(out[::-1] if reverse else out)
    if is_gathered(iterable) and (key is None and is_one_column(here, iterable) or not all_known(iterable)):
        return in_order(here, iterable, key, reverse)
    return here.born(ordered(here, list(elements(here, iterable)), key, reverse))


def _lazily_all(word: str, reduced: Any) -> Callable:
    """`all` and `any`: elements are looked at until one decides."""

    def handler(iterable: Any) -> Any:
        if isinstance(iterable, StagedArray) and iterable.ndim == 1:
            return bool_(call_value(reduced, (iterable,), {}))
        if isinstance(iterable, Lazy) and iterable.steps is None:
            return any_of(session(), iterable, word == "or", lambda item: item)
        out: Any = word == "and"

        for item in elements(session(), iterable):
            out = lazily(word, out, lambda item=item: bool_(item))
        return out

    return handler


handles(all)(_lazily_all("and", np.all))
handles(any)(_lazily_all("or", np.any))


# --- types and attributes ---


@handles(isinstance)
def isinstance_(value: Any, kinds: Any) -> bool:
    options = (kinds,) if isinstance(kinds, type) else getattr(kinds, "__args__", kinds)
    for kind in options:
        if isinstance(kind, type):
            guard_class(session(), kind)
    if isinstance(value, Text):
        return isinstance("", kinds)
    if not isinstance(value, Staged):
        return isinstance(value, kinds)
    seen = python_class(value)
    return any(
        isinstance_(value, k)
        if isinstance(k, tuple)
        else isinstance(k, type) and issubclass(seen, k) or isinstance(value, k)
        for k in options
    )


@handles(type)
def type_(value: Any, *rest: Any) -> Any:
    if isinstance(value, Text):
        return str
    if rest or not isinstance(value, Staged):
        return type(value, *rest)
    return python_class(value)


@handles(getattr)
def getattr_(target: Any, name: str, *default: Any) -> Any:
    if default and isinstance(target, (Number, StagedArray)) and not hasattr_(target, name):
        return default[0]
    try:
        value = load_attribute(session(), target, name)
    except AttributeError:
        if default:
            return default[0]
        raise
    if default and isinstance(value, Maybe) and value.missing is not None:  # only some paths have set it
        return choose(value.flag, lambda: value.value, lambda: default[0])
    return value


@handles(setattr)
def setattr_(target: Any, name: str, value: Any) -> None:
    store_attribute(session(), value, target, name)


@handles(object.__setattr__)
def own_setattr(target: Any, name: str, value: Any) -> None:
    """A store past what the class does on stores."""
    session().journal.note(AttributeLocation(target, name))
    object.__setattr__(target, name, value)


@handles(hasattr)
def hasattr_(target: Any, name: str) -> bool:
    if isinstance(target, (Number, StagedArray)):  # what stands here in Python
        return hasattr(python_class(target), name)
    value = getattr(target, name, MISSING)
    guard_presence(session(), target, name, value is not MISSING)
    return value.flag if isinstance(value, Maybe) and value.missing is not None else value is not MISSING


@handles(callable)
def callable_(value: Any) -> bool:
    return callable(value)


@handles(id)
def id_(value: Any) -> int:
    if isinstance(value, Staged):
        raise unsteady(session(), "the address of an array", "compare with `is`")
    refuse_unsteady(session(), "builtins", "id", value)
    return id(value)
