"""What a checkpointed function keeps for its derivative: policies, as data.

In: a policy, and an operation of the function. Out: whether its results are kept; all others are computed again on
the way back. A policy is a tuple, its name first, so that programs print it and compare by it.

>>> saves(("save_only_these_names", "hidden"), None, "hidden")
True
>>> saves(("nothing_saveable",), None, None)
False
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .ir import Let

Policy = tuple[Any, ...]
Rule = Callable[["Let | None", "str | None", Policy], bool]


def _is_product(let: Let | None) -> bool:
    return let is not None and let.primitive.name == "dot_general"


# Each is asked about an operation, the name that `checkpoint_name` gives its result (or None), and what follows the
# policy's name.
RULES: dict[str, Rule] = {
    "everything_saveable": lambda let, name, more: True,
    "nothing_saveable": lambda let, name, more: False,
    "dots_saveable": lambda let, name, more: _is_product(let),
    "dots_with_no_batch_dims_saveable": lambda let, name, more: (
        let is not None and _is_product(let) and not let.attributes["batch"][0]
    ),
    "save_any_names_but_these": lambda let, name, more: name is not None and name not in more,
    "save_anything_except_these_names": lambda let, name, more: name not in more,
    "save_only_these_names": lambda let, name, more: name in more,
    "save_from_both_policies": lambda let, name, more: any(saves(policy, let, name) for policy in more),
}


def saves(policy: Policy, let: Let | None, name: str | None) -> bool:
    """Whether what `let` computes, which has this name if it has one, is kept."""
    return RULES[policy[0]](let, name, policy[1:])


__all__ = ["Policy", "RULES", "saves"]
