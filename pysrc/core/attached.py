"""The rule that `derivative_of` gave a function of Python, which has it in its `__dict__`.

In: a function. Out: its rule, or None.
"""

from __future__ import annotations

from typing import Any

RULE = "__metaphrase_rule__"  # in the `__dict__` of a function that has a rule


def rule_of(function: Any) -> Any:
    """The rule that `derivative_of` gave a function; None where it gave none."""
    rule = function.__dict__.get(RULE)
    return rule if rule is not None and rule.fun is function else None  # `functools.wraps` copies a `__dict__`


__all__ = ["RULE", "rule_of"]
