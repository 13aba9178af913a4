"""Calls of functions that are programs of the library (`astpasses/library`): which program each is.

In: the arguments of the call. Out: its result, as if the user had written the program.

    np.union1d(x, y)   is   library.arrays.union1d(x, y)
"""

from __future__ import annotations

import bisect
import functools
from typing import Any

import numpy as np

from metaphrase.astpasses.library import PROGRAMS, arrays, heaps

from ..flow.gathering import is_gathered
from ..flow.stacks import become_stack, is_stack
from ..staging.journal import noticed
from ..staging.session import session
from ..values.staged_values import Number, StagedArray
from .call import answers, call_value, handles, has_staged
from .library_calls import call_library
from .numpy_shapes import as_array

for _function, _program in PROGRAMS.items():
    handles(_function)(lambda *args, program=_program, **keywords: call_value(program, args, keywords))
for _function, _side in ((bisect.bisect_left, "left"), (bisect.bisect, "right")):
    _program = functools.partial(arrays.place_among, _side)
    answers(_function)(lambda *args, program=_program, **keywords: call_value(program, args, keywords))


def of_heap(function: Any, program: Any, heap: Any, *args: Any) -> Any:
    """A heap that the run orders is held in buffers (`flow/stacks.py`)."""
    here = session()
    if type(heap) is not list or not (here.in_region() or is_gathered(heap) or has_staged((heap, args))):
        with noticed(here.journal, (heap,)):
            return function(heap, *args)
    if not is_stack(heap):
        become_stack(here, heap, None, "a heap puts its items in order")
    return call_value(program, (heap, *args), {})


for _function, _program in heaps.ORDERING.items():
    handles(_function)(functools.partial(of_heap, _function, _program))


@handles(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """Known places are the library's; others, and those in an array of unknown size, are a program."""
    x = as_array(arr)
    if _knows_sizes(x, axis) and not has_staged(obj):
        return call_library(np.delete, (arr, obj, axis), {})
    return call_value(arrays.delete_place if _is_one(obj) else arrays.delete_places, (x, obj, axis), {})


@handles(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Known places are the library's; others, and several in an array of unknown size, are a program."""
    x, single = as_array(arr), _is_one(obj)
    if (_knows_sizes(x, axis) or single) and not has_staged(obj):
        return call_library(np.insert, (arr, obj, values, axis), {})
    return call_value(arrays.insert_place if single else arrays.insert_places, (x, obj, values, axis), {})


def _is_one(place: Any) -> bool:
    return isinstance(place, (int, np.integer, Number)) or isinstance(place, StagedArray) and place.ndim == 0


def _knows_sizes(x: StagedArray, axis: Any) -> bool:
    """Whether the sizes are known in which places are counted."""
    return all(isinstance(d, int) for d in (x.type.dims if axis is None else x.type.dims[axis : axis + 1 or None]))


@handles(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """One count for all elements is the library's; a count for each is a size known when the program runs."""
    if isinstance(repeats, (list, tuple)):
        repeats = call_value(arrays.whole, (repeats,), {}) if has_staged(repeats) else arrays.whole(repeats)
    elif not isinstance(repeats, (StagedArray, np.ndarray)):
        repeats = call_value(int, (repeats,), {})
    elif not np.can_cast(repeats.dtype, np.int64):
        what = "array data" if repeats.ndim else "scalar"
        raise TypeError(f"Cannot cast {what} from {repeats.dtype!r} to dtype('int64') according to the rule 'safe'")
    if isinstance(repeats, StagedArray) and repeats.ndim == 1 and repeats.box.known is None:
        return call_value(arrays.repeat_counts, (a, repeats, axis), {})
    return call_library(np.repeat, (a, repeats, axis), {})
