"""Whose fault an exception is: that of the program being translated, or one of ours.

In: an exception with its traceback. Out: `is_users(error)`. What Python raises in the user's own lines is
theirs, and so is what it raises in the few functions that do for them what their line says (`self.x`,
`a + b`, a call), and what we raise on purpose. An AttributeError anywhere else in this package is a fault of
ours, and must show.
"""

from __future__ import annotations

import dis
import types

PACKAGE = __name__.partition(".")[0]
# Libraries of ours that tell the user of their faults.
LIBRARIES = {f"{PACKAGE}.{name}" for name in ("nn", "random", "lax", "_control", "_special", "tree_util")}
# Functions whose own lines do what the user's line says.
_FOR_THE_USER = frozenset(
    "load_attribute load_item call_method _container_method call_value _call_value call_other call_function"
    " _call_bound construct _enter getattr_ store_attribute own_setattr store_item delete_item call method"
    " attribute item operate inplace unary operation _compared contains unpack elements iterate mapping truth"
    " <lambda>".split()
)


def is_ours(frame: types.FrameType) -> bool:
    """Whether a frame runs code of this package."""
    return frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE


def is_users(error: BaseException) -> bool:
    """Whether an exception comes of what the user's program does."""
    trace = error.__traceback__
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    if not is_ours(trace.tb_frame) or trace.tb_frame.f_globals["__name__"] in LIBRARIES:
        return True
    if code.co_name in _FOR_THE_USER:
        return True
    return dis.opname[code.co_code[trace.tb_lasti]] == "RAISE_VARARGS"
