"""pure_callback, io_callback and debug.callback: Python functions that a translated function calls while it runs.

In: a function of NumPy arrays, in any pytrees. Out: what it gives, or None. Outside of translated functions it is
called at once. Example:

    @jit
    def area(n):
        zeros = pure_callback(scipy_zeros, ShapeDtypeStruct((3,), float), n)
        return (zeros**2).sum()
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.build import Builder
from ..core.types import Array
from ..effects import callback_name, called_back
from ..ops import callbacks as operations
from ..source import DTypeError, SourceError, UnsupportedError
from ..tree_util import PyTreeDef, tree_flatten
from .arguments import Form, Spec, take_apart
from .program import Fixed, Program, Slot, caller_span, under_way, user_span
from .staging import give_back
from .transforms import call_inside
from .types import ShapeDtypeStruct


class Callback:
    """What a user calls: the same function in translated code and outside of it."""

    def __init__(self, function: Callable[..., Any], operation: Any):
        functools.update_wrapper(self, function)
        self.function, self.operation = function, operation

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call_inside(self, args, kwargs) if under_way() else self.function(*args, **kwargs)

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> Any:
        """The program that is the call, with the function as a part of it."""
        leaves, structure = tree_flatten((args, kwargs))
        found = zip(leaves, take_apart(args, kwargs).specs)
        specs = [Spec(Form.STATIC, value=x) if isinstance(x, ShapeDtypeStruct) else s for x, s in found]
        positions = [k for k, spec in enumerate(specs) if spec.dynamic]
        given_args, given_kwargs = structure.skeleton([_Leaf(k) if s.dynamic else s.value for k, s in enumerate(specs)])
        called = self.function(*given_args, **given_kwargs, into=_Called)
        with Builder(self.operation.name) as builder:
            params = {k: builder.parameter(f"x{k}", specs[k].type) for k in positions}
            numbers = [leaf.number for leaf in called.leaves if isinstance(leaf, _Leaf)]
            types = tuple(_promised(leaf, specs, self) for leaf in called.results)
            more = {"vmap_method": called.vmap_method} if self.operation is operations.pure_callback else {}
            outs = builder.bind(
                self.operation,
                tuple(params[k] for k in numbers),
                {"name": callback_name(called.flat), "types": types, **more},
                span=user_span(),
            )
            function = builder.function(outs)
        order = {k: n for n, k in enumerate(positions)}
        program = Program(
            function,
            (),
            structure,
            tuple(order[k] if k in order else Fixed(s.value) for k, s in enumerate(specs)),
            called.out,
            tuple(Slot(k) for k in range(len(types))),
            tuple("array" if t.dims else "scalar" for t in types),
            name=self.operation.name,
        )
        return give_back(program)

    def __repr__(self) -> str:
        return f"<{self.operation.name}>"

    def __reduce__(self) -> str:
        return self.operation.name


class _Leaf:
    """Stands for a value of the run; has the attributes that a type is read from."""

    def __init__(self, number: int):
        self.number = number


class _Called:
    """A call taken apart: `leaves` of its arguments, `results` that are promised, `flat(*values of the run)`."""

    def __init__(self, function: Callable, results: Any, args: tuple, kwargs: dict, vmap_method: str | None = None):
        self.leaves, structure = tree_flatten((args, kwargs))
        self.results, self.out = tree_flatten(results)
        self.vmap_method = vmap_method
        known = [None if isinstance(leaf, _Leaf) else (leaf,) for leaf in self.leaves]
        out = self.out

        @functools.wraps(function)
        def flat(*values: Any) -> list[Any]:
            rest = iter(values)
            args, kwargs = structure.unflatten([next(rest) if leaf is None else leaf[0] for leaf in known])
            return _fitting(function(*args, **kwargs), out)

        flat.__qualname__ = getattr(function, "__qualname__", type(function).__name__)
        self.flat = flat


def _fitting(returned: Any, out: PyTreeDef) -> list[Any]:
    """The leaves of what a callback returned; nothing is looked at where nothing was promised."""
    if not out.num_leaves:
        return []
    leaves, structure = tree_flatten(returned)
    if structure != out:
        raise TypeError(f"a callback returned {structure} where {out} was promised")
    return leaves


def _promised(leaf: Any, specs: list[Spec], what: Callback) -> Array:
    """The type of a result, from something that has a shape and a dtype."""
    if isinstance(leaf, _Leaf):
        return specs[leaf.number].type.plain
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        raise DTypeError(
            f"{what.operation.name} is promised {leaf!r}, which has no shape and dtype",
            user_span(),
            code="callback",
            remedy="give jax-like types: ShapeDtypeStruct((3,), float), or an array like the result",
        )
    return Array(np.dtype(leaf.dtype), tuple(leaf.shape))


def _at_once(function: Callable, results: Any, args: tuple, kwargs: dict, vmap_method: str | None = None) -> Any:
    """A call outside of translated functions."""
    called = _Called(function, results, args, kwargs)
    name = callback_name(called.flat)
    values = called_back(name, [(np.dtype(t.dtype), tuple(t.shape)) for t in called.results])
    return called.out.unflatten(values)


def _pure(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    into: Callable = _at_once,
    **kwargs: Any,
) -> Any:
    """`callback(*args, **kwargs)`, a function without effects, called while the program runs: any number of times, or
    never where nobody reads what it gives. `result_shape_dtypes` is a pytree like the result, of arrays or
    ShapeDtypeStructs; the arguments come as NumPy arrays. Under vmap `vmap_method` says how: "sequential" calls it for
    each lane; "expand_dims" once, with a leading axis of lanes, or of length 1, in all arguments; "broadcast_all" once,
    with lanes in all arguments. Raises UnsupportedError for a derivative, and for vmap without a method; what the
    callback raises; ValueError where it returns another shape, TypeError for another structure or dtype. (JAX's
    `pure_callback`.)"""
    _refuse_sharding(sharding)
    if vmap_method not in (None, *operations.METHODS):
        raise SourceError(
            f"pure_callback: vmap_method is {vmap_method!r}",
            user_span(),
            code="callback",
            remedy=f"say one of {', '.join(map(repr, operations.METHODS))}",
        )
    return into(callback, result_shape_dtypes, args, kwargs, vmap_method)


def _io(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    into: Callable = _at_once,
    **kwargs: Any,
) -> Any:
    """`callback(*args, **kwargs)` once each time the program comes there, in program order, whether `ordered` or not;
    under vmap once for each lane, in their order. For the rest see `pure_callback`. (JAX's `io_callback`.)"""
    _refuse_sharding(sharding)
    return into(callback, result_shape_dtypes, args, kwargs)


def _debug(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    into: Callable = _at_once,
    **kwargs: Any,
) -> None:
    """`callback(*args, **kwargs)` as by `io_callback`; what it returns is dropped, and derivatives pass it by. (JAX's
    `debug.callback`.)"""
    return into(callback, None, args, kwargs)


def _refuse_sharding(sharding: Any) -> None:
    if sharding is not None:
        raise UnsupportedError(
            "a callback with a sharding: a program runs on one device",
            user_span() or caller_span(),
            code="callback",
            remedy="leave sharding out",
        )


def _public(name: str, module: str, function: Callable[..., Any], operation: Any) -> Callback:
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    return Callback(function, operation)


pure_callback = _public("pure_callback", "metaphrase", _pure, operations.pure_callback)
io_callback = _public("io_callback", "metaphrase", _io, operations.io_callback)
debug_callback = _public("callback", "metaphrase.debug", _debug, operations.debug_callback)

__all__ = ["debug_callback", "io_callback", "pure_callback"]
