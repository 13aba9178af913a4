"""Functions with rules of the user's own: `custom_jvp`, `custom_vjp`, and `custom_transpose`, the tangents of the
second; and `custom_vmap`, whose rule says what its lanes are together.

In: operands, the first `consts` of which are captured or not to be differentiated. Out: the results of `function`.
The rules are closed Functions of the same operands; only derivatives run them. `variants(marks)`, where there is one,
gives the rules for the tangents that are there, of the same types. Forward mode refuses `custom_vjp`, or takes the
derivative of its function where `through` says so. A program that is finished has
`call`s in their place (`core/custom.py`).

    y = custom_jvp(x, function=log1pexp, rule=log1pexp_jvp, consts=0)       # rule(x, x_dot) -> y, y_dot
    y = custom_vjp(x, function=f, forward=f_fwd, backward=f_bwd, consts=0)  # f_fwd(x) -> y, residuals
                                                                            # f_bwd(residuals, y_bar) -> x_bar
    y_dot = custom_transpose(residuals, x_dot, backward=f_bwd, wanted=(True,), of="f")
    y = custom_vmap(x, function=f, rule=rule)     # rule(size, [True]) -> the Function of all lanes, and [True]
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.build import match_dims
from ..core.dims import DimLike
from ..core.ir import Function
from ..core.native import Region
from ..core.primitive import ByTransform, Primitive
from ..core.types import Array, has_tangent, substitute_type
from .families import require


def takes(what: str, function: Function, types: tuple[Array, ...]) -> None:
    taken = function.param_types
    fit = len(taken) == len(types) and all(a.plain == b.plain for a, b in zip(taken, types))
    require(fit, lambda: f"{what}: {function.name} takes {taken}, gets {types}")


def gives(what: str, function: Function, types: tuple[Array, ...]) -> None:
    given = function.result_types
    fit = len(given) == len(types) and all(a.plain == b.plain for a, b in zip(given, types))
    require(fit, lambda: f"{what}: {function.name} gives {given}, must give {types}")


def _with_tangent(types: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(t.plain for t in types if has_tangent(t))


def _jvp_type(*types: Array, function: Function, rule: Function, consts: int, variants: Any = None) -> tuple:
    takes("custom_jvp", function, types)
    takes("custom_jvp", rule, (*types, *_with_tangent(types[consts:])))
    results = function.result_types
    gives("custom_jvp", rule, (*results, *_with_tangent(results)))
    return tuple(t.plain for t in results)


# What these have in common: the transformations know them, and no finished program has one.
OF_TRANSFORMS: dict[str, Any] = {
    **dict.fromkeys(("jvp", "transpose", "dims"), ByTransform),
    **dict.fromkeys(("multiple", "region", "transient"), True),
}

custom_jvp = Primitive(
    "custom_jvp",
    type=_jvp_type,
    numpy=lambda run, *args, function, rule, consts, variants=None: tuple(run(function, *args)),
    **OF_TRANSFORMS,
    native=Region("call"),
    doc="function(*operands); rule(*operands, *tangents) -> (*results, *their tangents) is its derivative.",
)


def _vjp_type(
    *types: Array,
    function: Function,
    forward: Function,
    backward: Function,
    consts: int,
    variants: Any = None,
    through: bool = False,
) -> tuple:
    takes("custom_vjp", function, types)
    takes("custom_vjp", forward, types)
    results = function.result_types
    residuals = forward.result_types[len(results) :]
    gives("custom_vjp", forward, (*results, *residuals))
    sizes: dict[str, DimLike] = {}  # those that the forward rule binds have names of their own in the backward rule
    for param, residual in zip(backward.param_types, residuals):
        match_dims(param, residual, sizes)
    taken = tuple(substitute_type(t, sizes).plain for t in backward.param_types)
    require(
        taken == (*(t.plain for t in residuals), *_with_tangent(results)),
        lambda: f"custom_vjp: {backward.name} takes {taken}, gets {residuals} and cotangents of {results}",
    )
    gives("custom_vjp", backward, _with_tangent(types[consts:]))
    return tuple(t.plain for t in results)


custom_vjp = Primitive(
    "custom_vjp",
    type=_vjp_type,
    numpy=lambda run, *args, function, forward, backward, consts, variants=None, through=False: tuple(
        run(function, *args)
    ),
    **OF_TRANSFORMS,
    native=Region("call"),
    doc="function(*operands); forward(*operands) -> (*results, *residuals), backward(*residuals, *cotangents of "
    "results) -> cotangents of operands is its derivative.",
)


def _transpose_type(
    *types: Array, backward: Function, wanted: tuple[bool, ...], of: str, variants: Any = None
) -> tuple:
    residuals = len(types) - sum(wanted)
    dots = tuple(t for t, w in zip(backward.result_types, wanted, strict=True) if w)
    require(
        tuple(p.plain for p in backward.param_types[:residuals]) == tuple(t.plain for t in types[:residuals]),
        lambda: f"custom_transpose: {backward.name} takes {backward.param_types}, gets {types}",
    )
    require(
        tuple(t.plain for t in dots) == tuple(t.plain for t in types[residuals:]),
        lambda: f"custom_transpose: {backward.name} gives {dots}, the tangents are {types[residuals:]}",
    )
    return tuple(t.plain for t in backward.param_types[residuals:])


def _transpose_numpy(
    run: Any, *args: Any, backward: Function, wanted: tuple[bool, ...], of: str, variants: Any = None
) -> tuple:
    """The map whose transpose is `backward`: one element of a result after the other."""
    residuals = len(args) - sum(wanted)
    dots = args[residuals:]
    types = backward.param_types[residuals:]
    shapes = [run.shape(t) for t in types]
    outs = [np.zeros(shape, t.dtype) for shape, t in zip(shapes, types)]
    for out in outs:
        for place in np.ndindex(out.shape):
            bars = [np.zeros(shape, t.dtype) for shape, t in zip(shapes, types)]
            bars[[o is out for o in outs].index(True)][place] = 1
            found = run(backward, *args[:residuals], *(b if b.ndim else b[()] for b in bars))
            out[place] = sum(np.sum(f * d) for f, d in zip([f for f, w in zip(found, wanted) if w], dots))
    return tuple(o if o.ndim else o[()] for o in outs)


custom_transpose = Primitive(
    "custom_transpose",
    type=_transpose_type,
    numpy=_transpose_numpy,
    **OF_TRANSFORMS,
    native=Region("transpose"),
    doc="The linear map of the tangents whose transpose is backward(*residuals, ...); no program that runs has it.",
)


def _vmap_type(*types: Array, function: Function, rule: Any) -> tuple:
    takes("custom_vmap", function, types)
    return tuple(t.plain for t in function.result_types)


custom_vmap = Primitive(
    "custom_vmap",
    type=_vmap_type,
    numpy=lambda run, *args, function, rule: tuple(run(function, *args)),
    **OF_TRANSFORMS,
    native=Region("call"),
    doc="function(*operands); of lanes of them what `rule(size, which operands are batched)` gives: a Function of the "
    "batched operands, and which of its results are batched.",
)

__all__ = ["OF_TRANSFORMS", "custom_jvp", "custom_transpose", "custom_vjp", "custom_vmap", "gives", "takes"]
