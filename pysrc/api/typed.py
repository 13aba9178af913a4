"""What type checkers are told of a jitted function.

In: the parameters `P` and the result `R` of the user's function. Out: `Jitted[P, R]`, which is called in the
same way and offers what a jitted function offers; as a method it is bound like one. Example:

    @jit
    def area(radius: float) -> float: ...     # Jitted[[float], float]
    area.lower(2.0).compile()(3.0)            # float
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

import numpy as np

if TYPE_CHECKING:
    from .compile import Lowered
    from .jit import CacheInfo, Signature

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R", covariant=True)
R2 = TypeVar("R2")
Owner = TypeVar("Owner")
Number = bool | int | float | complex | np.generic


class Jitted(Protocol[P, R]):
    """A function that `jit` has made."""

    __name__: str
    __qualname__: str
    __module__: str
    signatures: list[Signature]

    @property
    def py_func(self) -> Callable[P, R]: ...

    @property
    def __wrapped__(self) -> Callable[P, R]: ...

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    @overload
    def __get__(self, instance: None, owner: type) -> Jitted[P, R]: ...

    @overload
    def __get__(self: Jitted[Concatenate[Owner, Q], R2], instance: Owner, owner: type) -> Callable[Q, R2]: ...

    def lower(self, *args: Any, **kwargs: Any) -> Lowered[R]: ...

    def source(self, stage: str = "numpy", *args: Any, **kwargs: Any) -> str: ...

    def cache_info(self) -> CacheInfo: ...

    def clear_cache(self) -> None: ...


class Wrapper(Protocol):
    """What `jit` is with options and without a function."""

    def __call__(self, fun: Callable[Q, R2], /) -> Jitted[Q, R2]: ...


__all__ = ["Jitted", "Number", "Wrapper"]
