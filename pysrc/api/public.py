"""The transformations as users call them, with JAX's names, argument order and meaning.

In: functions of NumPy arrays. Out: functions. They nest in any order, run at once when called outside of
`jit` (as generated NumPy source) and become part of the program when called in staged code. Example:

    grad(lambda x: x ** 3)(2.0)            # 12.0
    jit(vmap(grad(loss), (None, 0)))(params, examples)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from ..config import config, disable_jit
from ..late import module
from ..pipeline import STAGES
from ..runtime.devices import Device, device_named
from ..source import DTypeError
from ..tree_util import tree_map
from .arguments import take_apart, takes_any_keywords
from .identity import shared
from .jit import Jit
from .program import caller_span
from .tracebacks import user_frames
from .transforms import program_of
from .typed import Jitted, Number, Wrapper
from .types import ShapeDtypeStruct, given_arguments

transformations = module("metaphrase.api.transformations")

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=Any)  # the first argument; so bound, a lambda may use its parameter in any way
N = TypeVar("N", bound=Number)
Aux = TypeVar("Aux")
Argnums = int | Sequence[int]


@overload
def jit(
    fun: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: Any = None,
    inline: bool = False,
) -> Jitted[P, R]: ...
@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: Any = None,
    inline: bool = False,
) -> Wrapper: ...


def jit(
    fun: Any = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False,
    device: Any = None,
    backend: Any = None,
    inline: bool = False,
) -> Any:
    """Translate `fun` to native code, once for the types (and at most twice for the sizes) that it is called
    with.

    Python bools, strings and other values that are no numbers are static by themselves: another value,
    another program. `static_argnums` and `static_argnames` make any argument static. `device` (or `backend`) says where
    calls run: "cpu", "gpu", "gpu:1", or one of `devices()`. Without it they run where their arrays lie: on the GPU for
    CuPy's. On a GPU results may be made in the memory of arguments that `donate_argnums` and `donate_argnames` name;
    they must not be read afterwards. The other options are JAX's and change nothing here. Also a decorator, with or
    without options.
    """
    options: dict[str, Any] = dict(static_argnums=static_argnums, static_argnames=static_argnames)
    wanted = _wanted_device(device=device, backend=backend)
    options |= dict(donate_argnums=donate_argnums, donate_argnames=donate_argnames, device=wanted)
    if fun is None:
        return functools.partial(jit, **options)
    donated = _several(donate_argnums), _several(donate_argnames)
    with user_frames():
        return Jit(fun, _several(static_argnums), _several(static_argnames), wanted, donated).dispatcher


def _several(chosen: Any) -> tuple:
    """One, several or none of the arguments that an option names."""
    return () if chosen is None else (chosen,) if isinstance(chosen, (int, str)) else tuple(chosen)


def _wanted_device(**options: Any) -> Device | None:
    """The device that the options name, which says where and on which kind."""
    named = [device_named(value, name) for name, value in options.items() if value is not None]
    return named[0] if named else None


@overload
def grad(
    fun: Callable[Concatenate[A, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(
    fun: Callable[Concatenate[A, P], R],
    argnums: int,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], Any]: ...
@overload
def grad(
    fun: Callable[Concatenate[A, P], R],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[Any, ...]]: ...
@overload
def grad(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: int,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[Any, Aux]]: ...
@overload
def grad(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Sequence[int],
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[tuple[Any, ...], Aux]]: ...


def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The gradient of a scalar function with respect to the arguments at `argnums`, in their structure.

    With `has_aux` the function returns (scalar, aux) and the gradient function (gradient, aux); with `allow_int` the
    gradient with respect to integers is zeros of bool.
    """
    with user_frames():
        return shared(transformations.Grad, fun, argnums, has_aux, holomorphic, allow_int, False)


@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], R],
    argnums: Literal[0] = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], R],
    argnums: int,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[R, Any]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], R],
    argnums: Sequence[int],
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[R, tuple[Any, ...]]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[tuple[R, Aux], A]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: int,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[tuple[R, Aux], Any]]: ...
@overload
def value_and_grad(
    fun: Callable[Concatenate[A, P], tuple[R, Aux]],
    argnums: Sequence[int],
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[Concatenate[A, P], tuple[tuple[R, Aux], tuple[Any, ...]]]: ...


def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """(value, gradient); with `has_aux` ((value, aux), gradient)."""
    with user_frames():
        return shared(transformations.Grad, fun, argnums, has_aux, holomorphic, allow_int, True)


@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[R, R, Aux]: ...


def jvp(fun: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple:
    """(fun(*primals), its derivative in the direction of `tangents`); with `has_aux` also aux."""
    with user_frames():
        for name, value in (("primals", primals), ("tangents", tangents)):
            if not isinstance(value, (tuple, list)):
                raise DTypeError(
                    f"jvp: the {name} are a {type(value).__name__}, not a tuple with one entry an argument",
                    caller_span(),
                    code="jvp-structure",
                    remedy="write jvp(f, (x,), (x_dot,))",
                )
        return shared(transformations.Jvp, fun, has_aux)(tuple(primals), tuple(tangents))


@overload
def vjp(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[R], tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[[R], tuple[Any, ...]], Aux]: ...


def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple:
    """(fun(*primals), pullback); pullback(cotangent of the output) is a tuple of cotangents of the
    primals."""
    with user_frames():
        return shared(transformations.Linear, fun, has_aux, "vjp")(*primals)


@overload
def linearize(fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], Aux]: ...


def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple:
    """(fun(*primals), pushforward); pushforward(*tangents) is the derivative at the primals, without
    computing the function again."""
    with user_frames():
        return shared(transformations.Linear, fun, has_aux, "linearize")(*primals)


@overload
def vmap(
    fun: Callable[P, N],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., np.ndarray]: ...
@overload
def vmap(
    fun: Callable[P, R],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., R]: ...


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: Any = None,
    axis_size: int | None = None,
    spmd_axis_name: Any = None,
) -> Callable[..., Any]:
    """`fun` over a batch: `in_axes` and `out_axes` say which axes are the batch, as ints, None, or trees of
    them. `axis_name` names it for `lax.psum` and its like; `spmd_axis_name` changes nothing on one device.

    Where lanes part ways (an `if` or a `while` on batched values) each lane runs its own branches and trip
    counts.
    """
    with user_frames():
        return shared(transformations.Vmap, fun, in_axes, out_axes, axis_size, axis_name)


@overload
def eval_shape(fun: Callable[..., np.ndarray | Number], *args: Any, **kwargs: Any) -> ShapeDtypeStruct: ...
@overload
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any: ...


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The output of `fun` with a ShapeDtypeStruct for each array, without computing it. Arguments may be
    structs, text of types such as "f64[n, 3]", or anything that has a shape and a dtype."""
    from .staging import out_structs

    args, kwargs = tree_map(like_struct, given_arguments(args, kwargs))
    call = take_apart(args, kwargs, in_order=takes_any_keywords(fun))
    with user_frames():
        return out_structs(program_of(fun, call.structure, call.specs))


def like_struct(leaf: Any) -> Any:
    if isinstance(leaf, (np.ndarray, np.generic, ShapeDtypeStruct)) or not hasattr(leaf, "dtype"):
        return leaf
    of_ours = type(leaf).__module__.partition(".")[0] == __name__.partition(".")[0]
    return leaf if of_ours or not hasattr(leaf, "shape") else ShapeDtypeStruct(leaf.shape, leaf.dtype)


def source(fun: Callable[..., Any], *args: Any, stage: str = "numpy", **kwargs: Any) -> str:
    """The text of a stage of `fun` for arguments like these; for `numpy`, a module that needs NumPy only and
    whose last function is `fun`. Arguments may be text of types, as in `source(fun, "f64[n, 3], f64")`. The
    stages are listed in `stages()`."""
    from .text import source_text

    with user_frames():
        return source_text(fun, stage, args, kwargs)


def stages() -> tuple[str, ...]:
    """The names of the stages, in order."""
    return tuple(stage.name for stage in STAGES)


__all__ = [
    "jit",
    "grad",
    "value_and_grad",
    "jvp",
    "vjp",
    "linearize",
    "vmap",
    "eval_shape",
    "ShapeDtypeStruct",
    "source",
    "stages",
    "config",
    "disable_jit",
]
