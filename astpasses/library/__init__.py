"""Functions of NumPy, SciPy and Python written in plain NumPy and Python: the front end stages them where a user's
program calls the originals, as it stages the user's own functions. They know nothing of it.

`PROGRAMS` says which function each stands for where nothing else decides:

    @stands_for(np.union1d)
    def union1d(ar1, ar2): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[Any, Callable] = {}


def stands_for(function: Any) -> Callable:
    """Say which function this one is."""
    return lambda program: PROGRAMS.setdefault(function, program)


__all__ = ["PROGRAMS", "stands_for"]
