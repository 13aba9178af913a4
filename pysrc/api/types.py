"""Types that stand for arrays: `ShapeDtypeStruct`, and the short text `f64[n, 3]` that the command line
takes.

In: shapes and dtypes, or text. Out: values that `eval_shape`, `lower`, `source` and the tools accept for
arrays.

>>> parse_arguments("f64[n, 3], {'w': f32}, True")
(ShapeDtypeStruct(shape=(n, 3), dtype=float64), {'w': ShapeDtypeStruct(shape=(), dtype=float32)}, True)
"""

from __future__ import annotations

import ast
import inspect
import operator
import re
from typing import Any

import numpy as np

from ..core.dims import Dim, DimLike, Sym
from ..core.types import SHORT, Array


class ShapeDtypeStruct:
    """The shape and dtype of an array, without the array. A dim may be a name, which stands for any size."""

    __slots__ = ("shape", "dtype", "weak_type")

    def __init__(self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False):
        self.shape = tuple(map(_as_dim, shape))
        self.dtype = np.dtype(dtype)
        self.weak_type = weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> DimLike:
        total: DimLike = 1
        for dim in self.shape:
            total = total * dim
        return total

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a value of rank 0")
        return self.shape[0]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return NotImplemented
        return (self.shape, self.dtype, self.weak_type) == (other.shape, other.dtype, other.weak_type)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        inner = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"ShapeDtypeStruct(shape=({inner}), dtype={self.dtype}{weak})"

    @property
    def core_type(self) -> Array:
        return Array(self.dtype, self.shape)


def _as_dim(dim: Any) -> Any:
    """A size given by the user: an int, a name, or an expression of names."""
    if isinstance(dim, Dim):
        return dim
    if isinstance(dim, str):
        text = f"({dim})"
        try:
            return _dim(ast.parse(text, mode="eval").body, dim)
        except SyntaxError:
            raise ArgumentsError("a dim is a size, a name, or a sum or product of them", dim) from None
    try:
        size = operator.index(dim)
    except TypeError:
        raise TypeError(f"a dim of a shape is an int or a name, not {dim!r}") from None
    if size < 0:
        raise ValueError(f"negative dimensions are not allowed: {size}")
    return size


def struct_of(type_: Array) -> ShapeDtypeStruct:
    """The struct of a core type."""
    return ShapeDtypeStruct(type_.dims, type_.dtype)


class ArgumentsError(ValueError):
    """Text that does not describe arguments; the message points into it."""

    def __init__(self, message: str, text: str, column: int = 0):
        super().__init__(f"{message}\n  {text}\n  {' ' * column}^")


def parse_arguments(text: str) -> tuple[Any, ...]:
    """Positional arguments from text: `f64[n, 3]` for an array, `f64` for a NumPy scalar, `float` for a number of
    Python's, Python literals and containers."""
    if not text.strip():
        return ()
    try:
        tree = ast.parse(f"({text},)", mode="eval").body
    except SyntaxError as error:
        raise ArgumentsError("the arguments do not read as Python", text, max((error.offset or 2) - 2, 0)) from None
    assert isinstance(tree, ast.Tuple)
    return tuple(_value(node, text) for node in tree.elts)


def parse_call(text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) from text that may name arguments, as a call does.

    >>> parse_call("f64, k=f32")
    ((ShapeDtypeStruct(shape=(), dtype=float64),), {'k': ShapeDtypeStruct(shape=(), dtype=float32)})
    """
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except SyntaxError:
        return parse_arguments(text), {}  # which says what is wrong
    if not isinstance(call, ast.Call) or not call.keywords or any(keyword.arg is None for keyword in call.keywords):
        return parse_arguments(text), {}
    for node in ast.walk(call):
        if isinstance(node, ast.expr):
            node.col_offset -= 1  # `_value` takes one character to stand before the text
    args = tuple(_value(node, text) for node in call.args)
    return args, {str(keyword.arg): _value(keyword.value, text) for keyword in call.keywords}


def parse_call_of(signature: inspect.Signature | None, text: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """As `parse_call`; arguments without names behind those of the positional parameters are those of the parameters
    that are keyword-only, in the signature's order."""
    args, kwargs = parse_call(text)
    parameters = list(signature.parameters.values()) if signature is not None else []
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return args, kwargs
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    names = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in kwargs]
    if len(args) > count + len(names):
        return args, kwargs
    return args[:count], dict(zip(names, args[count:])) | kwargs


_SUBSCRIPTED = rf"(?<![\w'\"])({'|'.join(SHORT)}|(float|int|uint|complex)\d+)\["
_NUMPYS = {"bool", "i8", "u8", "f16"}  # names that NumPy knows too, of other types but for the first
_NAMED = rf"(?<![\w'\"])({'|'.join(name for name in SHORT if name not in _NUMPYS)})(?![\w'\"])"


def given_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call that is only to be described, with stand-ins for those that are text of types.

    Text with sizes in brackets always is, names of types only where all arguments are such text: a function
    may take "f64" as a value. A text may stand for several arguments.

    >>> given_arguments(("f64[n], f64", "relu"), {})
    ((ShapeDtypeStruct(shape=(n,), dtype=float64), ShapeDtypeStruct(shape=(), dtype=float64), 'relu'), {})
    """
    texts = [value for value in (*args, *kwargs.values()) if isinstance(value, str)]
    plain = len(texts) == len(args) + len(kwargs) and all(
        re.search(_NAMED, text) or re.search(_SUBSCRIPTED, text) for text in texts
    )

    def read(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str) and (plain or re.search(_SUBSCRIPTED, value)):
            given, by_name = parse_call(value)
            told.update(by_name)
            return given
        return (value,)

    told: dict[str, Any] = {}
    positional = tuple(stand_in for value in args for stand_in in read(value))
    named = {name: read(value) for name, value in kwargs.items()}
    for name, values in named.items():
        if len(values) != 1:
            raise ArgumentsError(f"{name} is one argument, not {len(values)}", kwargs[name])
    return positional, told | {name: value for name, (value,) in named.items()}


def _value(node: ast.expr, text: str) -> Any:
    column = node.col_offset - 1
    match node:
        case ast.Name(id=name) if name in SHORT:
            return ShapeDtypeStruct((), SHORT[name])
        case ast.Name(id="int" | "float" | "complex" as name):
            return ShapeDtypeStruct((), np.dtype(name), weak_type=True)
        case ast.Subscript(value=ast.Name(id=name), slice=dims) if name in SHORT:
            parts = dims.elts if isinstance(dims, ast.Tuple) else [dims]
            return ShapeDtypeStruct([_dim(part, text) for part in parts], SHORT[name])
        case ast.Tuple(elts=parts):
            return tuple(_value(part, text) for part in parts)
        case ast.List(elts=parts):
            return [_value(part, text) for part in parts]
        case ast.Dict(keys=keys, values=values):
            return {_literal(key, text): _value(value, text) for key, value in zip(keys, values)}
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            raise ArgumentsError(f"{name} is not a dtype; the dtypes are {', '.join(SHORT)}", text, column)
        case _:
            return _literal(node, text)


def _literal(node: ast.expr | None, text: str) -> Any:
    try:
        return ast.literal_eval(node)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        raise ArgumentsError(
            "expected a type like f64[n, 3], a container of types, or a Python literal",
            text,
            node.col_offset - 1 if node is not None else 0,
        ) from None


def _dim(node: ast.expr, text: str) -> DimLike:
    match node:
        case ast.Constant(value=int(size)) if not isinstance(size, bool) and size >= 0:
            return size
        case ast.Name(id=name):
            return Sym(name)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _dim(left, text) + _dim(right, text)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _dim(left, text) * _dim(right, text)
    raise ArgumentsError("a dim is a size, a name, or a sum or product of them", text, node.col_offset - 1)


__all__ = [
    "ArgumentsError",
    "Dim",
    "ShapeDtypeStruct",
    "given_arguments",
    "parse_arguments",
    "parse_call",
    "parse_call_of",
    "struct_of",
]
