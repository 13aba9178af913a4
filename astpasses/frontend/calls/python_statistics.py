"""The functions of the module `statistics` on staged numbers.

In: an array, a list, or whatever gives numbers. Out: a number of the type that Python gives: that of
the items, but float for `fmean`, standard deviations and where items are ints (where Python's may be an int).

    statistics.median([x, 1.0, y])
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.astpasses.library import samples as written

from ..flow.gathering import columns, gathered, is_gathered
from ..flow.generators import Lazy
from ..operators.kinds import WEAK, weak_type
from ..staging.session import Session, session
from ..values.staged_values import StagedArray
from .call import call_value, handles, has_staged
from .creation import array_from

DOUBLE = np.dtype("float64")


def _numbers(here: Session, data: Any) -> tuple[StagedArray, Any]:
    """The items as an array, and the type that Python gives their mean."""
    if not isinstance(data, (StagedArray, np.ndarray)):
        data = call_value(list, (data,), {})
    if is_gathered(data):
        found, python = gathered(here, data), columns(here, data)[2][0]
    elif isinstance(data, list):
        found = array_from(data)
        weak = {weak_type(v) for v in data}
        python = (float if float in weak else int) if weak <= {int, float, bool} else None
    else:
        found, python = here.lift(data) if isinstance(data, np.ndarray) else data, None
    if found.ndim != 1 or found.dtype.kind not in "iufb":
        raise TypeError(f"can't convert an item of type {found.dtype} to numerator/denominator")
    return found, python or found.dtype.type


def _typed(here: Session, value: Any, kind: Any) -> Any:
    """A number as Python's float, or as NumPy's scalar."""
    if kind in (int, float, bool):
        return here.wrap(here.atom(value, WEAK[float]), float)
    return call_value(kind, (value,), {})


def _said(function: Callable, *args: Any) -> str:
    """The words of Python's error."""
    try:
        function(*args)
    except statistics.StatisticsError as error:
        return str(error)
    raise AssertionError(function)


def _answers(function: Callable) -> Callable:
    def register(rule: Callable) -> Callable:
        @handles(function)
        def handler(*args: Any, **keywords: Any) -> Any:
            if has_staged((args, keywords)) or any(is_gathered(a) or isinstance(a, Lazy) for a in args):
                return rule(session(), *args, **keywords)
            return function(*args, **keywords)

        return rule

    return register


@_answers(statistics.mean)
def mean(here: Session, data: Any) -> Any:
    x, kind = _numbers(here, data)
    made = call_value(written.mean, (x.astype(DOUBLE), None, _said(statistics.mean, [])), {})
    return _typed(here, made, kind)


@_answers(statistics.fmean)
def fmean(here: Session, data: Any, weights: Any = None) -> Any:
    x, shares = _numbers(here, data)[0], None
    if weights is not None:
        shares = _numbers(here, weights)[0].astype(DOUBLE)
    made = call_value(written.mean, (x.astype(DOUBLE), shares, _said(statistics.fmean, [])), {})
    return _typed(here, made, float)


def _spread(function: Callable, freedom: int) -> None:
    root = function in (statistics.stdev, statistics.pstdev)

    def rule(here: Session, data: Any, *center: Any, **named: Any) -> Any:
        around = (*center, *named.values(), None)[0]
        x, kind = _numbers(here, data)
        short = _said(function, [1.0] * freedom)
        made = call_value(written.spread, (x.astype(DOUBLE), freedom, around, short), {})
        return _typed(here, call_value(np.sqrt, (made,), {}), float) if root else _typed(here, made, kind)

    _answers(function)(rule)


for _function, _freedom in (
    (statistics.variance, 1), (statistics.stdev, 1), (statistics.pvariance, 0), (statistics.pstdev, 0),
):  # fmt: skip
    _spread(_function, _freedom)


def _median(function: Callable, low: bool, high: bool) -> None:
    def rule(here: Session, data: Any) -> Any:
        x, kind = _numbers(here, data)
        made = call_value(written.median, (x, low, high, _said(function, [])), {})
        if kind is int and not (low and high):
            return here.wrap(here.atom(made, WEAK[int]), int)
        return _typed(here, made, kind) if kind in (int, float) else made

    _answers(function)(rule)


_median(statistics.median, True, True)
_median(statistics.median_low, True, False)
_median(statistics.median_high, False, True)


def _pair(function: Callable, program: Callable, *more: Any) -> None:
    short = (_said(function, [1.0], [1.0, 2.0]), _said(function, [1.0], [1.0]))

    def rule(here: Session, x: Any, y: Any, /) -> Any:
        a, b = (_numbers(here, data)[0].astype(DOUBLE) for data in (x, y))
        return _typed(here, call_value(program, (a, b, short, *more), {}), float)

    _answers(function)(rule)


_pair(statistics.covariance, written.covariance)
_pair(statistics.correlation, written.correlation, _said(statistics.correlation, [1.0, 1.0], [1.0, 2.0]))


@_answers(statistics.geometric_mean)
def geometric_mean(here: Session, data: Any) -> Any:
    x = _numbers(here, data)[0].astype(DOUBLE)
    made = call_value(written.geometric_mean, (x, _said(statistics.geometric_mean, [])), {})
    return _typed(here, made, float)


_REMEDIES = {
    "quantiles": "use np.quantile", "linear_regression": "use np.polyfit",
    "harmonic_mean": "write 1 / fmean(1 / x)",
    "mode": "use np.unique with return_counts", "multimode": "use np.unique with return_counts",
    "median_grouped": "use np.quantile",
}  # fmt: skip


def _refused(function: Callable, remedy: str) -> None:
    def rule(here: Session, *args: Any, **keywords: Any) -> Any:
        raise here.unsupported(f"statistics.{function.__name__} of staged values has no translation", remedy)

    _answers(function)(rule)


for _name, _remedy in _REMEDIES.items():
    _refused(getattr(statistics, _name), _remedy)
