"""`metaphrase.ad_checkpoint`: the names of `jax.ad_checkpoint`.

In: functions, and values in them. Out: functions that keep less for their derivatives, and the values by the names
that policies know them by.

>>> checkpoint_name(2.5, "hidden")
2.5
"""

from __future__ import annotations

from typing import Any

from . import tree
from .api.checkpoint import checkpoint, checkpoint_policies, remat
from .api.kept import print_saved_residuals
from .ops.recompute import checkpoint_name as _checkpoint_name


def checkpoint_name(x: Any, name: str) -> Any:
    """x, whose arrays are called `name` by the policies `save_only_these_names` and its like."""
    leaves, structure = tree.flatten(x)
    return structure.unflatten([_checkpoint_name(leaf, name=name) for leaf in leaves])


__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies", "print_saved_residuals", "remat"]
