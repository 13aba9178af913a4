"""`metaphrase.debug`, as `jax.debug`: printing, callbacks and a debugger in translated functions, while they run.

In: values of the run. Out: text, calls, and pdb at the line. They keep program order, whether `ordered` or not; under
vmap each lane has its own, one lane after the other; derivatives pass them by.

>>> print("x is {x} and {}", 2, x=1.5)
x is 1.5 and 2
"""

from __future__ import annotations

import builtins
from typing import Any

from ._jax_names import missing
from .api.breakpoints import breakpoint
from .api.callbacks import debug_callback as callback


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print `fmt.format(*args, **kwargs)` when the program runs. (JAX's `debug.print`.)"""
    builtins.print(fmt.format(*args, **kwargs))


__all__ = ["breakpoint", "callback", "print"]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
