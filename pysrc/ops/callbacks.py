"""Calls of Python functions while a program runs: for what they do, or for what they give.

In: values, and the name of the function (`effects.callback_name`). Out: arrays of the `types` that were promised.
`debug_callback` and `io_callback` have effects: they run once, in program order. `pure_callback` has none: it may run
any number of times, or never. Example:

    y: f64[3] = pure_callback(x, name="lookup", types=(Array(f64, (3,)),), vmap_method="sequential")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.build import current
from ..core.dims import DimLike
from ..core.native import EffectCall
from ..core.primitive import NotLinear, Primitive, Unsupported
from ..core.relation import Dims
from ..core.types import Array
from ..effects import called_back
from ..source import UnsupportedError
from .families import expand_batch
from .shape import reshape

_NO_RULE = Unsupported(
    "it calls Python code; give the function that calls it a rule by custom_jvp or custom_vjp, or call stop_gradient"
)
_LANE_BY_LANE = Unsupported("lanes part before its rule is asked")
METHODS = ("sequential", "expand_dims", "broadcast_all")


def _type(*values: Array, name: str, types: tuple[Array, ...], vmap_method: str | None = None) -> tuple:
    return types


def _numpy(*values: Any, name: str, types: tuple[Array, ...], vmap_method: str | None = None) -> tuple:
    return called_back(name, [(t.dtype, t.dims) for t in types], *values)  # type: ignore[misc]


def _declared(name: str, doc: str, **rules: Any) -> Primitive:
    rules |= {"transpose": NotLinear, "native": EffectCall("callback"), "multiple": True}
    return Primitive(name, type=_type, numpy=_numpy, doc=doc, **rules)


debug_callback = _declared(
    "debug_callback", "Call a function, for what it does.", jvp=None, dims=_LANE_BY_LANE, effect="ordered"
)
io_callback = _declared(
    "io_callback", "Call a function, for what it does and gives.", jvp=_NO_RULE, dims=_LANE_BY_LANE, effect="ordered"
)


def _batch(
    size: DimLike,
    args: Sequence[Any],
    batched: Sequence[bool],
    *,
    name: str,
    types: tuple[Array, ...],
    vmap_method: str | None,
) -> tuple:
    """One call for all lanes. That of each lane ("sequential") stands in a lane loop before this is asked."""
    if vmap_method is None:
        raise UnsupportedError(
            "vmap of a pure_callback that says nothing of lanes",
            builder.span if (builder := current()) is not None else None,
            code="callback",
            remedy=f"say vmap_method=: {', '.join(map(repr, METHODS))}",
        )
    given = [
        expand_batch(size, arg, marked)
        if marked or vmap_method == "broadcast_all"
        else reshape(arg, shape=(1, *arg.type.dims))
        for arg, marked in zip(args, batched)
    ]
    lanes = tuple(t.with_dims((size, *t.dims)) for t in types)
    return pure_callback(*given, name=name, types=lanes, vmap_method=vmap_method), (True,) * len(types)


pure_callback = _declared(
    "pure_callback",
    "What a function without effects gives.",
    jvp=_NO_RULE,
    dims=Dims(lambda *values, types, **_: ([[None] * v.ndim for v in values], [[None] * t.ndim for t in types])),
    batch=_batch,
)

__all__ = ["METHODS", "debug_callback", "io_callback", "pure_callback"]
