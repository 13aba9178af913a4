"""Effects: checks that fail with the user's exception, printing, and warnings.

In: a bool array and the values its message shows. Out: nothing; effects keep program order.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from ..core.native import EffectCall
from ..core.primitive import NotLinear, Primitive, Unsupported
from ..core.relation import Dims
from ..core.types import Array
from ..exceptions import Holds, exception_class, made_exception, raised
from ..source import Span
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


def printed(value: Any) -> Any:
    """A value as `print` shows it: float64, int64, bool and complex128 scalars are Python's."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    plain = isinstance(value, np.generic) and value.dtype.name in ("float64", "int64", "bool", "complex128")
    return value.item() if plain else value


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


_OURS = ("metaphrase.", "metaphrase_numpy_source")
# Of programs whose place is in no module: what has been said there, as `__warningregistry__` of a module.
_said: dict[str, dict] = {}


def warn_user(category: type[BaseException], text: str, span: Span | None, above: int) -> None:
    """Warn at a place of the user's, or that many calls `above` the translated function; Python's own filters
    decide what is shown."""
    message: Any = made_exception(category, text)
    if span is None or above:
        level, frame = 1 + max(above, 1), sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
            level, frame = level + 1, frame.f_back
        warnings.warn(message, stacklevel=level)
        return
    module = next((m for m in list(sys.modules.values()) if getattr(m, "__file__", None) == span.file), None)
    there: Any = _said if module is None else vars(module)
    said = there.setdefault(span.file if module is None else "__warningregistry__", {})
    warnings.warn_explicit(message, None, span.file, span.line, getattr(module, "__name__", None), said)


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
