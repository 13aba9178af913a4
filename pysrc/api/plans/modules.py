"""Plans that rely on nothing: of packages and of files, where what a function reads of its module is a constant.

In: an entry. Out: its text, and the arrays that it holds. Example:

    constants = []
    text = ModuleWriter(entry, constants).text(sites, title="(f64[n])", dims=((n,),), library="f.0")
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...astpasses.frontend import Listed
from ...core.types import is_bfloat16
from ...runtime import dispatch
from ...runtime import entry as abi
from ...source import SourceError, is_library
from ..entry import output_of
from .fingerprints import NotPortable
from .reading import read_source
from .writing import Writer

_OURS = __name__.partition(".")[0]


class ModuleWriter(Writer):
    """A plan whose captured values are constants, and that relies on nothing."""

    def __init__(self, entry: abi.Entry, constants: list[np.ndarray]):
        super().__init__(replace(entry, guards=()), lambda: None, (), ())
        self.constants = constants

    def container(self, tree: Any, child: Any) -> str:
        if isinstance(tree, abi.Node) and tree.type is Listed:
            structure, kinds = tree.auxiliary
            item = self.output(output_of(structure, map(abi.Result, itertools.count())))
            columns = "".join(f"{child(column)}, " for column in tree.children)
            return f"Listed({item}, {tuple(kind is not None for kind in kinds)!r}, ({columns}))"
        if isinstance(tree, abi.Node) and tree.type.__module__.startswith(_OURS):  # a text, say
            raise NotPortable("what makes a text or an object of a run's results (return arrays)")
        if isinstance(tree, abi.Node) or isinstance(tree, abi.Record) and not is_library(tree.type.__module__):
            raise NotPortable(f"the class {tree.type.__name__}")
        return super().container(tree, child)

    def file(self, path: str) -> str:
        return repr(Path(path).name)  # where it stood when this was made is nobody's concern

    def source(self, source: Any) -> str:
        if isinstance(source, abi.Position) or isinstance(getattr(source, "source", None), abi.Held):
            return super().source(source)
        value = read_source(source)
        if not isinstance(value, np.ndarray):
            return f"Held({self.literal(value)})"
        self.constants.append(value)
        more = ", 'bf16'" if is_bfloat16(value.dtype) else ""  # which files of NumPy's hold as bytes
        return f"Held(Array({len(self.constants) - 1}{more}))"


def written_defaults(name: str, function: Any) -> dict[str, Any]:
    """The default values of a function, as far as they can be written down."""
    given = zip(function.parameters or (), function.defaults or ())
    defaults = {parameter: value for parameter, value in given if value is not dispatch.REQUIRED}
    for parameter, value in defaults.items():
        try:
            written = ast.literal_eval(repr(value)) == value
        except (ValueError, SyntaxError):
            written = False
        if written is not True:
            raise refused(name, function.jitted.span, f"the default value of {parameter} is no literal")
    return defaults


def refused(public: str, span: Any, why: str) -> SourceError:
    return SourceError(
        f"{public} can't be compiled into a package: {why}",
        span,
        code="export",
        remedy="take and give arrays, numbers, and tuples, lists and dicts of them",
    )


__all__ = ["ModuleWriter", "refused", "written_defaults"]
