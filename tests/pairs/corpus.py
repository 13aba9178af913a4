"""What a case of the corpus is: a function as a user would write it, sample arguments, and the rule that it is about.

In: functions decorated by `case`. Out: `CASES`, by name. Example:

    @case("checkpoint", np.array([0.3, 0.8]), 0.5)
    def wave(x, speed):
        return mp.checkpoint(np.sin)(x * speed)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Case(NamedTuple):
    function: Callable[..., Any]
    args: tuple
    rule: str
    forward: bool  # whether it has a derivative in forward mode; a rule for reverse mode alone gives none
    tolerance: float  # how exact a solver's derivatives are
    frozen: Callable[..., Any] | None  # what has its derivatives at the sample, where `stop_gradient` says others than
    # those of its values
    stores: bool  # whether it stores into its arguments, which is refused in lanes
    jax: bool  # whether JAX can run the same text
    sparse: bool  # whether it can be told which elements a derivative in reverse mode depends on


CASES: dict[str, Case] = {}


def case(
    rule: str,
    *args: Any,
    forward: bool = True,
    tolerance: float = 1e-6,
    frozen: Callable[..., Any] | None = None,
    stores: bool = False,
    jax: bool = True,
    sparse: bool = True,
) -> Callable:
    def register(function: Callable) -> Callable:
        assert function.__name__ not in CASES
        CASES[function.__name__] = Case(function, args, rule, forward, tolerance, frozen, stores, jax, sparse)
        return function

    return register
