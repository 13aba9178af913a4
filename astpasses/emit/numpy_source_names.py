"""Names in emitted NumPy source: the user's where there are any, told apart by a number.

In: what a Var would like to be called. Out: identifiers that clash with nothing.

>>> names = Names()
>>> names.fresh("E"), names.fresh("E"), names.fresh("lambda"), names.fresh("params['w']")
('E', 'E_1', 'lambda_', 'params_w')
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection

from metaphrase.core.ir import Let, Var
from metaphrase.core.primitive import REGISTRY

from .numpy_source_helpers import HELPERS

USED_BUILTINS = frozenset(
    """range len zip reversed enumerate print abs max min complex bool int float str list tuple
    dict set frozenset bytearray slice True False None getattr isinstance""".split()
)
IMPORTED = frozenset(
    """np bfloat16 sys warnings functools typed_array OrderedDict namedtuple
    SimpleNamespace""".split()
)
RESERVED = (
    USED_BUILTINS
    | IMPORTED
    | {*HELPERS}
    | frozenset(keyword.kwlist)
    | frozenset(n for n in dir(builtins) if n.endswith(("Error", "Exception", "Warning")))
)
# What a value is called when the user has not named it: by the operation that made it.
NOUNS = {
    "add": "total",
    "sub": "difference",
    "mul": "product",
    "div": "ratio",
    "neg": "negative",
    "abs": "size",
    "reduce_sum": "total",
    "reduce_max": "largest",
    "reduce_min": "smallest",
    "dot_general": "product",
    "broadcast": "spread",
    "reshape": "reshaped",
    "permute": "transposed",
    "slice": "part",
    "gather": "picked",
    "slice_update": "updated",
    "scatter": "updated",
    "scatter_add": "updated",
    "slice_add": "updated",
    "select": "chosen",
    "convert": "converted",
    "max": "larger",
    "min": "smaller",
    "pow": "power",
    "concatenate": "joined",
    "pad": "padded",
    "iota": "counter",
    "eye": "unit",
    "rfft": "frequencies",
    "constant": "table",
    "loop": "state",
    "cond": "chosen",
    "not_": "unless",
    "and_": "both",
    "or_": "either",
    "sign": "sign",
    "dim_value": "size",
    "argmax": "best",
    "argmin": "best",
    "cumsum": "running_total",
    "floor_div": "quotient",
    "mod": "remainder",
    "integer_pow": "power",
    "reduce_prod": "product",
    "reduce_any": "found",
    "reduce_all": "everywhere",
    "sort": "ordered",
    "argsort": "order",
    "ranked": "ranked",
    "searchsorted": "place",
    "contains": "among",
    "nonzero": "places",
    "call": "result",
}
DERIVED = re.compile(r"_(bar|dot)(_\d+)?$")


class Names:
    """The identifiers taken so far in one function."""

    def __init__(self, taken: frozenset[str] | set[str] = frozenset()):
        self.taken = set(taken)
        self.shorter: dict[str, str] = {}  # leaves of containers by the name of their key alone

    def leaf(self, wish: str, text: str) -> str:
        """A name for what `text` reads: `w` for `params['w']`, and `w_bar` for its `params_w_bar`."""
        key = re.search(r"(?:\[['\"]|\.)(\w+)(?:['\"]\])?$", text)
        short = identifier(key[1]) if key is not None and key[1].isidentifier() else wish
        name = self.fresh(short)
        if name != wish:
            self.shorter[wish] = name
        return name

    def fresh(self, base: str) -> str:
        base = identifier(base)
        for long, short in self.shorter.items():
            if base == long or base.startswith(f"{long}_"):
                base = short + base[len(long) :]
                break
        if base in RESERVED:
            base += "_"
        name, count = base, 0
        while name in self.taken or name in RESERVED:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name)
        return name

    def release(self, names: set[str]) -> None:
        self.taken -= names


def usable(name: str, taken: Collection[str] = ()) -> str:
    """A name of the user's for what the module can't do without: its function, parameters and constants. One
    that the text needs itself has an underscore behind it."""
    while name in RESERVED or name in taken:
        name += "_"
    return name


def identifier(text: str) -> str:
    """`text` with what Python does not allow in a name taken out."""
    text = re.sub(r"\W+", "_", text).strip("_") if not text.isidentifier() else text
    return text if text.isidentifier() else f"v_{text}" if text else "v"


def named_by_user(var: Var, let: Let | None) -> bool:
    """Whether the name says something: given by the user's source, not by the operation or by a
    transformation."""
    if let is None:
        return True
    plain = re.sub(r"_\d+$", "", var.name)
    return plain not in REGISTRY and plain != let.primitive.name and not DERIVED.search(var.name)


def wanted_name(var: Var, let: Let | None, text: str = "") -> str:
    """A name for `var`, made by `let`, whose expression is `text`."""
    plain = re.sub(r"_\d+$", "", var.name)
    derived = DERIVED.search(var.name)
    if derived and var.name[: derived.start()] in REGISTRY:  # the cotangent of a value without a name
        operation = var.name[: derived.start()]
        return f"{noun(operation, var)}_{derived[1]}"
    if plain not in REGISTRY:
        return var.name
    if let is None or let.primitive.name == "call":
        return noun(plain, var)
    operation = let.primitive.name
    simple = re.fullmatch(r"(?:np\.)?(\w+)\((\w+)\)", text)
    if simple and operation not in NOUNS:
        return f"{simple[1]}_{simple[2]}"
    return noun(operation, var)


def noun(operation: str, var: Var) -> str:
    """What an operation makes."""
    scalar = REGISTRY[operation].scalar
    if scalar is not None and scalar.predicate or operation in ("and_", "or_", "not_"):
        return "mask" if var.type.dims else "test"
    if not var.type.dims and var.type.dtype.kind in "iu" and operation in ("add", "sub", "mul"):
        return "index"
    if operation in ("reshape", "gather") and not var.type.dims:
        return "value"
    if operation == "reshape":
        return "part"
    return NOUNS.get(operation, re.sub(r"_$", "", operation))


__all__ = ["Names", "identifier", "named_by_user", "usable", "wanted_name", "RESERVED"]
