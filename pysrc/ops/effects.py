"""Effects: checks that fail with the user's exception, printing, and warnings.

In: a bool array and the values its message shows. Out: nothing; effects keep program order.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..core.native import EffectCall
from ..core.primitive import NotLinear, Primitive, Unsupported
from ..core.relation import Dims
from ..core.types import Array
from ..effects import printed, warn_user
from ..exceptions import Holds, exception_class, raised
from .families import require


def _check_type(ok: Array, *values: Array, exception: str, message: str, holds: Holds | tuple = ()) -> tuple:
    require(
        ok.dtype == bool and all(v.dims == ok.dims for v in values),
        lambda: f"check: condition {ok} and values {values} must have one shape",
    )
    return ()


def _check_numpy(ok: Any, *values: Any, exception: str, message: str, holds: Holds | tuple = ()) -> tuple:
    ok = np.asarray(ok)
    if not ok.all():
        first = int(np.argmin(ok.ravel()))
        shown = [printed(np.asarray(v).ravel()[first]) for v in values]
        raise raised(exception, message, holds, shown)
    return ()


check = Primitive(
    "check",
    type=_check_type,
    numpy=_check_numpy,
    jvp=None,
    transpose=NotLinear,
    dims=Dims(lambda ok, *values, **_: ((range(ok.ndim),) * (1 + len(values)), ())),
    native=EffectCall("check"),
    effect="failing",
    multiple=True,
    doc="Raise `exception` with `message`, formatted with the values of the first failure, unless ok. "
    "`holds`: of what its arguments and attributes are made, if it holds more.",
)


def _print_numpy(*values: Any, template: str, end: str = "\n", stream: str = "stdout", flush: bool = False) -> tuple:
    print(template.format(*map(printed, values)), end=end, file=getattr(sys, stream), flush=flush)
    return ()


print_ = Primitive(
    "print_",
    type=lambda *values, template, end="\n", stream="stdout", flush=False: (),
    numpy=_print_numpy,
    jvp=None,
    transpose=NotLinear,
    dims=Unsupported("lanes part before its rule is asked"),
    native=EffectCall("print"),
    effect="ordered",
    multiple=True,
    doc="Print `template`, formatted with the values, at run time.",
)


def _warn_numpy(*values: Any, template: str, category: str, above: int = 0) -> tuple:
    warn_user(exception_class(category), template.format(*map(printed, values)), None, above)
    return ()


warn_ = Primitive(
    "warn_",
    type=lambda *values, template, category, above=0: (),
    numpy=_warn_numpy,
    jvp=None,
    transpose=NotLinear,
    dims=Unsupported("lanes part before its rule is asked"),
    native=EffectCall("warn"),
    effect="ordered",
    multiple=True,
    doc="Give the warning `template`, formatted with the values, of the class `category` names, at run time.",
)
