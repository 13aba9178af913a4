"""What of NumPy is translated: the table of docs/numpy-support.md, made from the registry.

In: NumPy's public names and the tables that answer calls. Out: one row a name: supported, static only (a call
on values known while translating), or refused, with the reason.

    python -m metaphrase.numpy.support > docs/numpy-support.md
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..astpasses.frontend import FUNCTIONS, METHODS, PROPERTIES, REFUSED, SPELLED, TABLE
from ..core.primitive import Zero
from ..late import dataclass
from ..ops.library import LIBRARY, UPDATES

# Names whose calls need nothing of a staged value but its type, or values that are known: Python runs them.
STATIC = set(
    """
    can_cast dtype finfo iinfo issubdtype isdtype min_scalar_type promote_types broadcast_shapes
    typename mintypecode diag_indices mask_indices kaiser bartlett base_repr binary_repr
    format_float_positional format_float_scientific array2string array_repr array_str errstate geterr
    get_printoptions getbufsize geterrcall get_include info show_config show_runtime isfortran poly1d ufunc
    test
    """.split()
)
_FILES = "reads or writes files: do it outside"
_MEMORY = "looks at an array's memory: do it outside"
_DATES = "there is no dtype for dates"
_OBJECTS = "there is no dtype for it"
_STATE = "changes NumPy's settings: call it outside"
_VALUES = "the size or dtype of its result depends on values"
REASONS: dict[str, str] = {
    **dict.fromkeys(
        """
        load save savez savez_compressed savetxt loadtxt genfromtxt fromfile fromregex
        memmap
        """.split(),
        _FILES,
    ),
    **dict.fromkeys(
        """
        frombuffer fromstring from_dlpack shares_memory may_share_memory nditer
        nested_iters flatiter __array_namespace_info__ asarray_chkfinite require
        """.split(),
        _MEMORY,
    ),
    **dict.fromkeys(
        """
        busday_count busday_offset is_busday busdaycalendar datetime_as_string
        datetime_data isnat datetime64 timedelta64
        """.split(),
        _DATES,
    ),
    **dict.fromkeys(
        """
        asmatrix bmat matrix recarray record object_ void str_ bytes_ character flexible
        frompyfunc longdouble clongdouble float128 complex256
        """.split(),
        _OBJECTS,
    ),
    **dict.fromkeys(
        """
        seterr seterrcall setbufsize set_printoptions printoptions
        """.split(),
        _STATE,
    ),
    **dict.fromkeys(
        """
        roots polydiv unique_all unique_counts unique_inverse histogramdd
        """.split(),
        _VALUES,
    ),
    "packbits": "use shifts and masks",
    "unpackbits": "use shifts and masks",
    "i0": "use scipy.special outside",
    "row_stack": "use vstack",
}
# Results are integers or bools, or do not change where the operands change a little.
NO_DERIVATIVE = set(
    """
    argmax argmin argsort argpartition searchsorted digitize nonzero flatnonzero argwhere count_nonzero any
    all isclose allclose array_equal array_equiv
    isin isreal iscomplex isposinf isneginf isnan isinf isfinite
    logical_and logical_or logical_xor logical_not lexsort unravel_index ravel_multi_index tril_indices
    triu_indices diag_indices_from tril_indices_from triu_indices_from matrix_rank nanargmax nanargmin ix_
    indices shape ndim size isscalar iterable isrealobj iscomplexobj result_type common_type einsum_path
    gcd lcm sign floor ceil trunc fix rint round around spacing heaviside item tolist
    """.split()
)
# The size of the result is known when the program runs: under vmap it must not leave the function.
RUN_TIME_SIZE = set(
    """
    nonzero flatnonzero argwhere compress extract unique unique_values union1d intersect1d setdiff1d setxor1d
    trim_zeros bincount lstsq
    """.split()
)
NOTES = {
    "eig": "always complex",
    "eigvals": "always complex",
    "unique_values": "sorted",
    "unique": "without axis",
    "vectorize": "one loop over the elements, which are Python numbers; no signature",
    "apply_along_axis": "one loop over the rows",
    "sort": "complex numbers by real part, then imaginary part",
    "cholesky": "reads the lower triangle, and its derivative has that only",
    "eigh": "reads one triangle",
    "svd": "derivative with full_matrices=False",
    "qr": "modes reduced, complete, r; derivative of reduced",
    "quantile": "methods that interpolate, and lower, higher, nearest, midpoint",
    "pad": "constant, edge, wrap, reflect, symmetric, empty, maximum, minimum, mean, median",
    "insert": "known places",
    "poly": "of zeros",
    "polyfit": "without full and cov",
    "where": "with one argument: nonzero",
    "errstate": "accepted: floating-point faults are silent",
    "fromiter": "of what can be iterated while translating",
    "empty": "zeros",
    "empty_like": "zeros",
    "histogram2d": "counts",
    "average": "",
    "result_type": "a dtype",
}


@dataclass(frozen=True)
class Row:
    """One public name. `status`: "yes", "static", "no", or "" for a name that nothing is known of."""

    name: str
    status: str
    keywords: str = ""
    derivative: str = ""
    notes: str = ""


def _signature(function: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def _keywords(function: Any) -> str:
    """NumPy's optional parameters that the translation takes, in NumPy's order."""
    if isinstance(function, np.ufunc):
        return "dtype, out, where"
    theirs = _signature(function)
    optional = [n for n, p in theirs.items() if p.default is not p.empty or p.kind is p.KEYWORD_ONLY]
    try:
        rule = TABLE.get(function) or LIBRARY.get(function) or UPDATES.get(function)
    except TypeError:
        return ""
    ours = _signature(rule) if rule is not None else {}
    anything = any(p.kind is p.VAR_KEYWORD for p in ours.values())
    return ", ".join(
        n
        for n in optional
        if n in ours or anything and n not in ("like", "device") or n == "out" and function in LIBRARY
    )


def _is_answered(function: Any) -> bool:
    try:
        return (
            function in TABLE
            or function in LIBRARY
            or function in UPDATES
            or (isinstance(function, np.ufunc) and function in SPELLED)
        )
    except TypeError:
        return False


def _derivative(name: str, function: Any) -> str:
    primitive = SPELLED.get(function) if isinstance(function, np.ufunc) else None
    if primitive is not None:
        rules = primitive.jvp if isinstance(primitive.jvp, tuple) else ()
        return "zero" if rules and all(r is None or r is Zero for r in rules) else "yes"
    return "zero" if name in NO_DERIVATIVE or name.startswith("bitwise") else "yes"


def row_of(name: str, value: Any) -> Row | None:
    """The row of a public name; None for what is no function (constants, modules)."""
    if isinstance(value, type(np)) or not callable(value):
        return None
    if isinstance(value, type) and issubclass(value, (Warning, BaseException)):
        return None
    notes = NOTES.get(name, "")
    if name in REASONS:
        return Row(name, "no", notes=REASONS[name])
    if isinstance(value, type) and issubclass(value, np.generic):
        return Row(name, "yes", "", "yes" if issubclass(value, np.inexact) else "zero", "a dtype, and a conversion")
    if value in (np.vectorize, np.ndenumerate, np.ndarray, np.broadcast):
        return Row(name, "yes", derivative="yes", notes=notes or "the class")
    if name in STATIC:
        return Row(name, "static", notes=notes)
    if not _is_answered(value):
        return Row(name, "")
    size = "; a size known at run time" if name in RUN_TIME_SIZE else ""
    return Row(name, "yes", _keywords(value), _derivative(name, value), (notes + size).removeprefix("; "))


def rows(module: Any) -> Iterator[Row]:
    for name in sorted(getattr(module, "__all__", dir(module)), key=str.lower):
        if name.startswith("_") and name != "__array_namespace_info__":
            continue
        made = row_of(name, getattr(module, name))
        if made is not None:
            yield made


def attribute_rows() -> Iterator[Row]:
    """Methods and attributes of `numpy.ndarray`."""
    plain = {"shape", "dtype", "ndim"}
    static = {"flags": "contiguity and writeability", "base": "", "device": ""}
    reasons = {name: f"{why}; {remedy}" for name, (why, remedy) in REFUSED.items()}
    reasons |= dict.fromkeys(("strides", "data", "ctypes"), _MEMORY)
    for name in sorted(n for n in dir(np.ndarray) if not n.startswith("_")):
        if name in reasons:
            yield Row(name, "no", notes=reasons[name])
        elif name in plain or name in static:
            yield Row(name, "yes", derivative="zero", notes=static.get(name, ""))
        elif name in METHODS or name in FUNCTIONS or name in PROPERTIES:
            function = getattr(np, name, None)
            words = _keywords(function) if callable(function) and _is_answered(function) else ""
            yield Row(name, "yes", words, "zero" if name in NO_DERIVATIVE else "yes", NOTES.get(name, ""))
        else:
            yield Row(name, "")


HEAD = """\
# What of NumPy is translated

Made by `python -m metaphrase.numpy.support` from the tables that answer calls; a test compares it with them.

What is supported runs in native code and as NumPy source, under `jit`, `vmap` and the derivatives in any
order; "derivative" says `zero` where the result is made of integers or bools, or is constant between jumps.
Keywords are NumPy's optional parameters that are taken; others are refused unless they have NumPy's
default. `out=` stores into the array that is given. *static* names are called while translating, on dtypes,
shapes and values that are known then. Operators, indexing, `np.newaxis`, `...`, `np.r_`, `np.c_`,
`np.mgrid`, `np.ogrid`, `np.s_`, constants, and `reduce`, `accumulate`, `outer`, `at` and `reduceat` of
ufuncs are translated too. `np.random` is refused: its state would be frozen; use `metaphrase.random` with
keys.
"""


def table() -> str:
    """The text of docs/numpy-support.md."""
    parts = [HEAD]
    groups = [
        ("numpy", rows(np)),
        ("numpy.linalg", rows(np.linalg)),
        ("numpy.fft", rows(np.fft)),
        ("numpy.ndarray", attribute_rows()),
    ]
    for title, found in groups:
        listed = list(found)
        counts = [sum(r.status == s for r in listed) for s in ("yes", "static", "no")]
        parts.append(
            f"\n## `{title}`\n\n{counts[0]} supported, {counts[1]} static, {counts[2]} refused.\n\n"
            "| name | | keywords | derivative | notes |\n|---|---|---|---|---|\n"
        )
        parts += [f"| `{r.name}` | {r.status} | {r.keywords} | {r.derivative} | {r.notes} |\n" for r in listed]
    return "".join(parts)


def unknown() -> list[str]:
    """Public names that are neither supported nor static nor refused with a reason."""
    groups = (rows(np), rows(np.linalg), rows(np.fft), attribute_rows())
    return [r.name for found in groups for r in found if not r.status]


if __name__ == "__main__":
    print(table(), end="")

__all__ = ["table", "unknown", "rows", "attribute_rows", "Row"]
