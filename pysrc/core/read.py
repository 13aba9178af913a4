"""Reading printed programs back: `read(show(f))` is the same Function.

In: text made by `show` (or written by hand in that form). Out: a Function, its types computed again by the
type rules.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from .build import Builder
from .dims import Sym, dim_max, dim_min
from .ir import Atom, ConstantArray, Function, Literal, Roles, Var
from .primitive import REGISTRY
from .types import SHORT, Array, Size


class ReadError(ValueError):
    """Text that is not a program of the core language."""


class _TypeName:
    """`f64[n, 3]` when subscripted, `f32(2.0)` when called."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def __getitem__(self, dims: Any) -> Array:
        return Array(self.dtype, dims if isinstance(dims, tuple) else (dims,))

    def __call__(self, *value: Any) -> Literal:
        return Literal(np.asarray(complex(*value) if len(value) > 1 else value[0], dtype=self.dtype)[()])


class _SizeName:
    def __getitem__(self, dim: Any) -> Array:
        return Size(dim)


def _array(dtype: _TypeName, shape: tuple, data: list | None = None, bits: str | None = None) -> Any:
    if bits is not None:
        value = np.frombuffer(bytes.fromhex(bits), dtype.dtype).reshape(shape)
        return Literal(value[()]) if shape == () else ConstantArray(value)
    return ConstantArray(np.array(data, dtype=dtype.dtype).reshape(shape))


_GLOBALS: dict[str, Any] = {
    **{name: _TypeName(dtype) for name, dtype in SHORT.items()},
    "size": _SizeName(),
    "Roles": Roles,
    "array": _array,
    "nan": float("nan"),
    "inf": float("inf"),
    "max": dim_max,
    "min": dim_min,
    "complex": complex,
    "__builtins__": {},
}


class _Names(dict):
    """Unknown names are size symbols."""

    def __missing__(self, key: str) -> Any:
        return Sym(key)


def read(text: str) -> Function:
    """The one function in `text`. Raises ReadError with the line at fault."""
    try:
        module = ast.parse(text)
    except SyntaxError as error:
        raise ReadError(f"line {error.lineno}: {error.msg}") from error
    if len(module.body) != 1 or not isinstance(module.body[0], ast.FunctionDef):
        raise ReadError("expected one function")
    return _function(module.body[0], {})


def _eval(node: ast.AST, functions: dict[str, Function]) -> Any:
    code = compile(ast.Expression(node), "<core>", "eval")  # type: ignore[arg-type]
    known = {name: _GLOBALS[name] for name in _GLOBALS}
    value = eval(code, {"__builtins__": {}}, _Names({**known, **functions}))
    if isinstance(value, tuple):  # of types, never of dtypes
        return tuple(Array(v.dtype) if isinstance(v, _TypeName) else v for v in value)
    return value.dtype if isinstance(value, _TypeName) else value


def _type(node: ast.AST) -> Array:
    value = _eval(node, {})
    return Array(value) if isinstance(value, np.dtype) else value


def _function(node: ast.FunctionDef, outer: dict[str, Function]) -> Function:
    builder = Builder(node.name)
    env: dict[str, Atom] = {}
    functions = dict(outer)
    for arg in node.args.args:
        if arg.annotation is None:
            raise ReadError(f"line {node.lineno}: parameter {arg.arg} has no type")
        env[arg.arg] = builder.parameter(arg.arg, _type(arg.annotation))
    results: list[Atom] = []
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            functions[statement.name] = _function(statement, functions)
        elif isinstance(statement, ast.Return):
            value = statement.value
            parts = value.elts if isinstance(value, ast.Tuple) else [value]
            if not (isinstance(value, ast.Constant) and value.value is None):
                results = [_atom(p, env) for p in parts if p is not None]
        else:
            _let(statement, builder, env, functions)
    return builder.function(results)


def _atom(node: ast.AST, env: dict[str, Atom]) -> Atom:
    if isinstance(node, ast.Name) and node.id in env:
        return env[node.id]
    if isinstance(node, ast.Name) and node.id not in ("nan", "inf"):
        raise ReadError(f"line {node.lineno}: {node.id} is not defined")
    value = _eval(node, {})
    return value if isinstance(value, Literal) else Literal(value)


def _let(statement: ast.stmt, builder: Builder, env: dict[str, Atom], functions: dict[str, Function]) -> None:
    targets: list[ast.expr]
    if isinstance(statement, ast.AnnAssign):
        targets, call = [statement.target], statement.value
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
        targets, call = list(target.elts) if isinstance(target, ast.Tuple) else [target], statement.value
    elif isinstance(statement, ast.Expr):
        targets, call = [], statement.value
    else:
        raise ReadError(f"line {statement.lineno}: {type(statement).__name__} is not part of the core language")
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in REGISTRY):
        raise ReadError(f"line {statement.lineno}: expected a call of a primitive")
    args = tuple(_atom(a, env) for a in call.args)
    attributes = {k.arg: _eval(k.value, functions) for k in call.keywords}
    names = [t.id for t in targets]  # type: ignore[attr-defined]
    outs = builder.bind(REGISTRY[call.func.id], args, attributes, names)  # type: ignore[arg-type]
    if len(outs) != len(names):
        raise ReadError(f"line {statement.lineno}: {call.func.id} has {len(outs)} results")
    env.update(zip(names, outs))


__all__ = ["read", "ReadError", "Var"]
