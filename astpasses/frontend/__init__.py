"""Python source becomes a staged core program: what other rooms may use of the front end.

In: a Python function and its arguments. Out: a `Staged` program, the sources of what it reads that was not given,
and the kinds of pytrees that its results are put together with. A module is imported when a name of it is used:

    from metaphrase.astpasses.frontend import stage
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calls.call import call_value
    from .calls.methods import FUNCTIONS, METHODS, PROPERTIES, REFUSED
    from .calls.tables import TABLE
    from .operators.arithmetic import SPELLED
    from .rewrite.convert import control_stage
    from .rewrite.normal import normal
    from .staging.faults import is_ours, is_users
    from .staging.stage import stage
    from .staging.staged import Output, Shared, Staged, Write, found_at, in_order
    from .staging.under_way import current_session, least_size, numbers_change, sizes_at_least
    from .values.chosen import Chosen, Viewed, chosen_text, viewed_text
    from .values.definitions import ClassState, written_bases
    from .values.listed import Listed, has_lists, list_text
    from .values.optional import Copied, OneValue, Optional, TextValue, has_text, is_chosen, may_be_none, may_be_number
    from .values.recipes import Made, has_ranges
    from .values.sources import (
        AttributeSource,
        CellSource,
        GlobalSource,
        Guard,
        ItemSource,
        NumberSource,
        ObjectSource,
        Source,
        is_number,
        room_of,
        same_object,
        structure,
    )
    from .values.staged_values import Number, StagedArray

NAMES = {
    "calls.call": "call_value",
    "calls.methods": "FUNCTIONS METHODS PROPERTIES REFUSED",
    "calls.tables": "TABLE",
    "operators.arithmetic": "SPELLED",
    "rewrite.convert": "control_stage",
    "rewrite.normal": "normal",
    "staging.faults": "is_ours is_users",
    "staging.stage": "stage",
    "staging.staged": "Output Shared Staged Write found_at in_order",
    "staging.under_way": "current_session least_size numbers_change sizes_at_least",
    "values.chosen": "Chosen Viewed chosen_text viewed_text",
    "values.definitions": "ClassState written_bases",
    "values.listed": "Listed has_lists list_text",
    "values.optional": "Copied OneValue Optional TextValue has_text is_chosen may_be_none may_be_number",
    "values.recipes": "Made has_ranges",
    "values.sources": "AttributeSource CellSource GlobalSource Guard ItemSource NumberSource ObjectSource Source "
    "is_number room_of same_object structure",
    "values.staged_values": "Number StagedArray",
}
_MODULES = {name: module for module, names in NAMES.items() for name in names.split()}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"the front end offers no {name}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
