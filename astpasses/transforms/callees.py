"""A function that is called, split by what is known of its arguments: once for all calls that know the same.

In: the function, which of its parameters are known, and `split`. Out: two functions that are called in its
place.

    y, y_dot = call(x, x_dot, function=f)     ->     y, c = call(x, function=known)
                                                     y_dot = call(c, x_dot, function=linear)

Of a `checkpoint`, what its policy does not keep is computed again by the linear part, from the operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metaphrase.core.build import fresh_copy
from metaphrase.core.ir import Function
from metaphrase.core.policies import Policy

from .marks import known_results
from .residuals import Inside


def split_callee(
    split: Callable[..., Any],
    function: Function,
    operands: Sequence[bool],
    segments: bool,
    policy: Policy = ("everything_saveable",),
) -> tuple:
    """The known and the linear part of a function that is called, which results are known, and the
    parameters that both take."""
    outs_known = known_results(function, operands)
    part = split(function, operands, segments=segments, results_known=outs_known, inside=Inside(policy=policy))
    passed = [r for r in part.residuals if r in function.params]
    saved = [r for r in part.residuals if r not in function.params]
    results = part.known.results[: sum(outs_known)]
    name = f"{function.name.removeprefix('jvp_')}_forward"
    known = Function(name, part.known.params, part.known.lets, (*results, *saved))
    unknown = [p for p, k in zip(function.params, operands) if not k]
    linear = fresh_copy(Function(part.linear.name, (*saved, *passed, *unknown), part.linear.lets, part.linear.results))
    return known, linear, outs_known, [function.params.index(r) for r in passed]
