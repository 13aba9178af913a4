"""Types of compiled functions for editors and type checkers: the text of a `.pyi` file.

In: functions and the entries of their calls. Out: text. Example:

    def period(e: float | np.float64, M: float | np.float64) -> np.float64: ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..runtime import dispatch
from ..runtime import entry as abi
from .jit import Jit

_HEAD = """from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
"""


def stub(functions: Mapping[str, tuple[Jit, Sequence[abi.Entry]]]) -> str:
    """One function each, or one overload for each of several entries that type checkers can tell apart."""
    rows = [_HEAD]
    for name, (jitted, entries) in functions.items():
        shown: dict[str, str] = {}
        for entry in entries:
            shown.setdefault(_parameters(jitted, entry), _output(entry.output, entry))
        for parameters, output in shown.items():
            if len(shown) > 1:
                rows.append("@overload")
            rows.append(f"def {name}({parameters}) -> {output}: ...")
    return "\n".join(rows) + "\n"


def _parameters(jitted: Jit, entry: abi.Entry) -> str:
    layout = jitted.dispatcher
    if layout.parameters is None:
        return "*args: Any, **kwargs: Any"
    trees = {r.source.index: r.tree for r in entry.roots if isinstance(r.source, abi.Position)}
    parts: list[str] = []
    may_be_left_out = False  # one before
    for k, (name, default) in enumerate(zip(layout.parameters, layout.defaults)):
        if k == layout.positional_only > 0:
            parts.append("/")
        if k == len(layout.parameters) - layout.keyword_only:
            parts.append("*")
        tree = trees.get(k)
        another = isinstance(tree, abi.StaticLeaf) and not _is(default, tree.value)
        shown = default is not dispatch.REQUIRED and (may_be_left_out or not another)
        may_be_left_out |= shown
        parts.append(f"{name}: {'Any' if tree is None else _argument(tree)}{' = ...' if shown else ''}")
    if len(layout.parameters) == layout.positional_only > 0:
        parts.append("/")
    return ", ".join(parts)


def _is(default: Any, value: Any) -> bool:
    """Whether a static value is what the call without it has."""
    return default is value or type(default) is type(value) and default == value


def _array(dtype: Any) -> str:
    return f"NDArray[np.{np.dtype(dtype).name}]"


def _argument(tree: Any) -> str:
    if isinstance(tree, abi.ArrayLeaf):
        return _array(tree.dtype)
    if isinstance(tree, abi.ScalarLeaf):
        python = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex"}.get(tree.dtype.kind)
        return f"{python} | np.{tree.dtype.name}" if python else f"np.{tree.dtype.name}"
    if isinstance(tree, abi.NumberLeaf):
        return tree.kind.__name__
    if isinstance(tree, abi.SizeLeaf):
        return "int"
    if isinstance(tree, abi.StaticLeaf):
        return _static(tree.value)
    return _container(tree, _argument)


def _static(value: Any) -> str:
    if value is None:
        return "None"
    return f"Literal[{value!r}]" if isinstance(value, (bool, int, str, bytes)) else "Any"


def _container(tree: Any, child: Any) -> str:
    inner = [child(c) for c in getattr(tree, "children", ())]
    if isinstance(tree, abi.Sequence) and tree.kind is tuple:
        return f"tuple[{', '.join(inner) or '()'}]"
    union = " | ".join(dict.fromkeys(inner)) or "Any"
    if isinstance(tree, abi.Sequence):
        return f"list[{union}]"
    if isinstance(tree, abi.Dictionary):
        keys = " | ".join(sorted({type(key).__name__ for key in tree.keys})) or "str"
        return f"dict[{keys}, {union}]"
    return "Any"


def _output(output: Any, entry: abi.Entry) -> str:
    if isinstance(output, abi.Result):
        result = entry.results[output.index]
        dtype = np.dtype(result.dtype)
        if isinstance(result, abi.RunTime) or result.dims or result.form == "array":
            return _array(dtype)
        return type(dtype.type(0).item()).__name__ if result.form == "python" else f"np.{dtype.name}"
    if isinstance(output, abi.Argument):
        return _argument(output.tree)
    if isinstance(output, abi.Constant):
        return "None" if output.value is None else type(output.value).__name__
    return _container(output, lambda c: _output(c, entry))


__all__ = ["stub"]
