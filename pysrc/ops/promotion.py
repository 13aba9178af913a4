"""What core leaves to its callers: NumPy's promotion and broadcasting, made explicit by `convert` and
`broadcast`.

In: operands as the library gets them: core atoms, NumPy arrays and scalars (strong), Python numbers (weak),
lists. Out: core atoms of one dtype and one shape.

    a, b = promote(x, 2)            # x: f32[n]; b is f32(2.0)
    a, b = broadcast_arrays(a, b)   # both f32[n]
    y = ufunc(np.add, x, 2)         # the same and the sum
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.build import at_least, current, known_facts, literal
from ..core.dims import Dim, DimLike, fresh_symbol
from ..core.facts import Facts
from ..core.foreign import Foreign
from ..core.ir import Atom, ConstantArray, Literal, Var
from ..core.primitive import REGISTRY, Primitive
from ..core.types import dtype_name, i64, is_inexact
from ..source import DTypeError, ShapeError, UnsupportedError
from .arrays import as_dim, constant, dim_value
from .compare import eq, ge
from .complex_order import ORDERED, by_order
from .effects import check
from .families import broadcast_to as broadcast_exactly
from .indexing import slice as slice_region
from .shape import convert
from .weak_integers import COMPARISONS, check_exponents, check_range, compare, is_narrow

Operand = Any


class Weak:
    """A staged Python number, which takes the dtype of what it meets. `python`: int, float, complex.

    `dim`: the size that an integer is known to equal, if any.
    """

    __slots__ = ("atom", "python", "dim")

    def __init__(self, atom: Atom, python: type, dim: DimLike | None = None):
        self.atom, self.python, self.dim = atom, python, dim

    def _asked(self, *others: Any) -> Any:
        """Where a rule decides by the number itself."""
        raise NeedsValue(self.atom, "the value of a number")

    __index__ = __int__ = __float__ = __bool__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _asked
    __eq__ = __ne__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _asked
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _asked
    __pow__ = __rpow__ = _asked
    __hash__ = object.__hash__


def is_weak(value: Any) -> bool:
    """True for Python's own numbers, which take the dtype of what they meet. A bool is strong."""
    return type(value) in (int, float, complex, Weak)


def weak_type(value: Any) -> type:
    """int, float or complex, of a weak operand."""
    return value.python if isinstance(value, Weak) else type(value)


def lift(value: Operand, dtype: Any = None) -> Atom:
    """A core atom: as it is, or a Literal, or an array constant, or nested lists stacked."""
    if isinstance(value, Weak):
        value = value.atom
    if not isinstance(value, (Var, Literal)):
        if isinstance(value, Dim):
            value = dim_value(dim=value)
        elif isinstance(value, (list, tuple)):
            value = _stacked(value)
        else:
            array = np.asarray(value, dtype=dtype if is_weak(value) else None)
            if array.dtype == object:
                raise DTypeError(f"a {type(value).__name__} is not a number or an array of numbers")
            dtype_name(array.dtype)
            value = Literal(array[()]) if array.ndim == 0 else constant(value=ConstantArray(array))
    return value if dtype is None else to_dtype(value, dtype)


def _stacked(values: Sequence[Any]) -> Atom:
    if not any(isinstance(v, (Var, Literal, Dim, Weak, list, tuple)) for v in values) or not values:
        return lift(np.asarray(values))
    from .library_shapes import stack

    return stack([_stacked(v) if isinstance(v, (list, tuple)) else v for v in values])


def dtype_of_name(dtype: Any) -> np.dtype:
    """NumPy's dtype; an error for what is none."""
    try:
        return np.dtype(dtype)
    except TypeError as error:
        remedy = "name a dtype, such as np.float64"
        if isinstance(dtype, int):
            remedy = "give a shape as one tuple: np.zeros((2, 3))"
        raise DTypeError(str(error), code="dtype", remedy=remedy) from None


def to_dtype(x: Operand, dtype: Any) -> Atom:
    """x as an atom of `dtype`."""
    dtype = dtype_of_name(dtype)
    dtype_name(dtype)
    if is_weak(x) and not isinstance(x, Weak):
        return literal(x, dtype)
    if isinstance(x, Weak) and x.python is int and is_narrow(dtype) and x.atom.type.dtype == i64:
        check_range(x.atom, dtype)
    x = lift(x)
    if x.type.dtype == dtype:
        return x
    if isinstance(x, Literal):
        return Literal(np.asarray(x.value).astype(dtype)[()])
    return convert(x, dtype=dtype)


def cast(x: Operand, dtype: Any) -> Atom:
    """x as an atom of `dtype`, Python's integers cast as arrays are: -1 is 65535 as a uint16."""
    if isinstance(x, Weak):
        return to_dtype(x.atom, dtype)
    return literal(np.asarray(x).astype(dtype)[()], dtype) if is_weak(x) else to_dtype(x, dtype)


def mask_of(where: Operand, dims: Sequence[DimLike]) -> Atom:
    """The mask that `where=` is, in the shape `dims`."""
    require_bools(where)
    return broadcast_to(to_dtype(where, bool), dims)


def require_bools(where: Any) -> None:
    """NumPy casts no array to the bools of `where=`, only numbers and lists."""
    kind = getattr(where, "type", where)
    if getattr(kind, "ndim", 0) and kind.dtype != bool:
        words = f"Cannot cast array data from {kind.dtype!r} to dtype('bool') according to the rule 'safe'"
        raise DTypeError(words, code="dtype", remedy="compare it, as where=mask != 0")


def dtype_of(value: Operand) -> Any:
    """The dtype of a strong operand; the Python type of a weak one, as `ufunc.resolve_dtypes` takes it."""
    if is_weak(value):
        return weak_type(value)
    if isinstance(value, (Var, Literal)):
        return value.type.dtype
    if isinstance(value, Dim):
        return i64
    return np.asarray(value).dtype if not isinstance(value, (list, tuple)) else lift(value).type.dtype


def result_type(*values: Operand) -> np.dtype:
    """NumPy's common dtype of operands (NEP 50)."""
    return np.result_type(*(weak_type(v)(0) if is_weak(v) else dtype_of(v) for v in values))


def promote(*values: Operand) -> tuple[Atom, ...]:
    """All operands in their common dtype."""
    dtype = result_type(*values)
    return tuple(to_dtype(v, dtype) for v in values)


def inexact_dtype(dtype: Any) -> np.dtype:
    """The dtype in which NumPy takes means and roots of `dtype`: integers and bools become f64."""
    dtype = np.dtype(dtype)
    return dtype if is_inexact(dtype) else np.dtype(np.float64)


def surely_differ(a: DimLike, b: DimLike) -> bool:
    """True if two sizes can't be equal, whatever their symbols stand for."""
    difference = a - b
    return isinstance(difference, int) and difference != 0


def sized(
    x: Atom,
    axis: int,
    size: DimLike,
    message: str = "sizes {} and {} differ",
    shown: DimLike | None = None,
    exception: str = "ValueError",
) -> Atom:
    """x, whose dim `axis` is `size`: by proof, else by a check at run time, whose message may show another size.
    Callers refuse what differs."""
    have = x.type.dims[axis]
    if have == size:
        return x
    if not Facts().equal(have, size):
        a, b, other = (scalar_dim(d, i64) for d in (have, size, size if shown is None else shown))
        check(eq(a, b), *(a, other)[: message.count("{}")], exception=exception, message=message)
    rank = x.type.ndim
    return slice_region(
        x,
        *(literal(0, i64),) * rank,
        step=(1,) * rank,
        shape=tuple(size if k == axis else d for k, d in enumerate(x.type.dims)),
    )


def broadcast_to(x: Atom, dims: Sequence[DimLike]) -> Atom:
    """x in the shape `dims`, which broadcast_dims found; sizes that are only said to agree are checked."""
    offset = len(dims) - x.type.ndim
    for k, have in enumerate(x.type.dims):
        if have != 1 and have != dims[offset + k]:
            size = dims[offset + k]
            one = known_facts().less(have, size)  # what surely has fewer elements has one
            message = "operands could not be broadcast together: sizes {} and {}"
            x = sized(x, k, 1 if one else size, message, size)
    return broadcast_exactly(x, dims)


def broadcast_dims(*shapes: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """NumPy's common shape. Of sizes that may agree a known one is taken; `broadcast_to` checks."""
    rank = max(map(len, shapes), default=0)
    out: list[DimLike] = []
    for k in range(rank):
        size: DimLike = 1
        for shape in shapes:
            at = k - rank + len(shape)
            if at < 0 or shape[at] == 1:
                continue
            if size == 1:
                size = shape[at]
            elif not surely_differ(size, shape[at]):
                size = shape[at] if isinstance(shape[at], int) else size
            else:
                shown = " and ".join(f"({', '.join(map(str, s))}{',' if len(s) == 1 else ''})" for s in shapes)
                raise ShapeError(
                    f"arrays of shapes {shown} do not broadcast together: {size} against {shape[at]}",
                    remedy="give both arrays the same size along that axis, or size 1",
                    code="broadcast",
                )
        out.append(size)
    return tuple(out)


def broadcast_arrays(*xs: Operand) -> list[Atom]:
    """All operands in their common shape."""
    atoms = [lift(x) for x in xs]
    dims = broadcast_dims(*(a.type.dims for a in atoms))
    return [broadcast_to(a, dims) for a in atoms]


@functools.cache
def _primitive_of(function: np.ufunc) -> Primitive:
    for primitive in REGISTRY.values():
        if function in primitive.spellings:
            return primitive
    raise UnsupportedError(f"numpy.{function.__name__} is not supported", code="numpy-function")


@functools.cache
def _resolve(function: np.ufunc, dtypes: tuple, dtype: Any) -> tuple[np.dtype, ...]:
    wanted = (*(None,) * function.nin, *(dtype,) * function.nout)
    return function.resolve_dtypes((*dtypes, *(None,) * function.nout), signature=wanted)


def resolve(function: np.ufunc, *values: Operand, dtype: Any = None) -> tuple[np.dtype, ...]:
    """The dtypes in which NumPy computes `function`, operands first, result last; `dtype`: of the result."""
    try:
        return _resolve(function, tuple(map(dtype_of, values)), None if dtype is None else np.dtype(dtype))
    except (TypeError, ValueError) as error:
        names = ", ".join(d.__name__ if isinstance(d, type) else dtype_name(d) for d in map(dtype_of, values))
        raise DTypeError(
            f"numpy.{function.__name__} takes no operands of dtype {names}",
            remedy="convert the operands with .astype first",
            code="dtype",
        ) from error


def ufunc(function: np.ufunc, *values: Operand, dtype: Any = None) -> Atom:
    """`function(*values)` with NumPy's promotion and broadcasting."""
    primitive = _primitive_of(function)
    if function in COMPARISONS and (found := _compared(function, values)) is not None:
        return found
    if all(map(is_weak, values)):
        values = (lift(values[0]), *values[1:])
    dtypes = resolve(function, *values, dtype=dtype)
    atoms = [to_dtype(v, d) for v, d in zip(values, dtypes)]
    if atoms[0].type.dtype.kind == "c" and function in ORDERED:
        return by_order(function, *broadcast_arrays(*atoms))
    if function is np.power and atoms[0].type.dtype.kind in "iu":
        check_exponents(atoms[1])
    return primitive(*broadcast_arrays(*atoms) if len(atoms) > 1 else atoms)


def _compared(function: np.ufunc, values: Sequence[Operand]) -> Atom | None:
    """Integers of a narrow dtype against a Python int, signed ones against u64: None for all else."""
    kinds = [np.dtype(int) if is_weak(v) else dtype_of(v) for v in values]
    if np.dtype("uint64") in kinds and any(k.kind == "i" for k in kinds) and not any(map(is_weak, values)):
        a, b = broadcast_arrays(*values)
        first = a.type.dtype == np.uint64
        strong, signed = (a, b) if first else (b, a)
        return compare(function, strong, to_dtype(signed, i64), not first)
    for k, weak in enumerate(values):
        other = values[1 - k]
        if not is_weak(weak) or weak_type(weak) is not int or is_weak(other):
            continue
        strong = lift(other)
        wide = strong.type.dtype == i64 and isinstance(weak, int) and not -(2**63) <= weak < 2**63
        if wide or is_narrow(strong.type.dtype):
            return compare(function, strong, weak.atom if isinstance(weak, Weak) else weak, k == 0)
    return None


def as_ufunc(spelling: np.ufunc | Foreign) -> Callable[..., Atom]:
    """What a user's call of a ufunc becomes. `out` is the front end's; `where` needs a value elsewhere."""

    def call(*values: Operand, dtype: Any = None, where: Any = True, casting: str = "same_kind") -> Atom:
        function: np.ufunc = spelling.function() if isinstance(spelling, Foreign) else spelling
        if where is not True:
            raise UnsupportedError(
                f"numpy.{function.__name__} with where= leaves elements undefined",
                remedy="use numpy.where(condition, value, other)",
                code="ufunc-where",
            )
        if len(values) != function.nin:
            raise TypeError(f"{function.__name__}() takes {function.nin} arguments, {len(values)} were given")
        return ufunc(function, *values, dtype=dtype)

    call.__name__ = call.__qualname__ = spelling.__name__
    return call


# --- dims and axes -----------------------------------------------------------------------------------------


def known_size(value: Any) -> DimLike | None:
    """The size that a value is, if it is one: an int, a Dim, what a staged size says."""
    if isinstance(value, (Dim, int)) and not isinstance(value, bool):
        return value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, Weak):
        if value.dim is not None:
            return value.dim
        value = value.atom
    if isinstance(value, Literal) and value.type.dtype.kind in "iu":
        return int(value.value)
    return value.type.value if isinstance(value, Var) and not value.type.dims else None


def dim_of(value: Any) -> DimLike:
    """A size: what `known_size` says, else a new one: a staged integer, which is not negative when it
    runs."""
    if (known := known_size(value)) is not None:
        return known
    value = value.atom if isinstance(value, Weak) else value
    if isinstance(value, Var) and value.type.dtype.kind in "iu" and not value.type.dims:
        builder = current()
        if builder is not None and (made := builder.size_of(value)) is not None:
            return made
        number = to_dtype(value, i64)
        if builder is not None and builder.in_attempt:
            check(ge(number, literal(0)), exception="ValueError", message="negative dimensions are not allowed")
        size = as_dim(number, size=fresh_symbol(value.name if value.name.isidentifier() else "size"))
        return size.type.value
    shown = f"a staged {value.type}" if isinstance(value, Var) else repr(value)
    what = f"a size must be an integer, not {shown}"
    raise DTypeError(what, code="dtype", remedy="write int(...) around it")


def count_of(value: Any) -> DimLike:
    """A size that is 0 where the number is negative."""
    if (known := known_size(value)) is not None:
        return at_least(known, 0)
    builder, number = current(), value.atom if isinstance(value, Weak) else value
    if builder is None or builder.size_of(number) is None and result_type(value).kind in "iu":
        value = ufunc(np.maximum, number, literal(0, number.type.dtype))
    return dim_of(value)


def shape_of(shape: Any) -> tuple[DimLike, ...]:
    """A shape given as one size or a sequence of sizes."""
    if isinstance(shape, (list, tuple)):
        return tuple(map(dim_of, shape))
    if isinstance(shape, np.ndarray) and shape.ndim == 1:
        return tuple(int(d) for d in shape)
    return (dim_of(shape),)


class NeedsValue(DTypeError):
    """A program can't be had without the value of `atom`, an integer; the front end may get it."""

    def __init__(self, atom: Atom, what: str, remedy: str = ""):
        super().__init__(f"{what} must be known, got {atom!r}", code="axis", remedy=remedy)
        self.atom, self.what = atom, what


def axis_of(axis: Any, rank: int) -> int:
    """One axis, counted from the front."""
    axis = axis.atom if isinstance(axis, Weak) else axis
    if isinstance(axis, Literal):
        axis = axis.value
    if isinstance(axis, Var) and axis.type.dims == () and axis.type.dtype.kind in "iu":
        raise NeedsValue(axis, "an axis")
    try:
        index = axis.__index__()
    except (AttributeError, TypeError):
        raise DTypeError(f"an axis must be a known integer, got {axis!r}", code="axis") from None
    if not -rank <= index < rank:
        raise ShapeError(f"axis {index} is out of bounds for an array of {rank} dimensions", code="axis")
    return index % rank


def axes_of(axis: Any, rank: int) -> tuple[int, ...]:
    """All axes that `axis` names: None for every one, an int, or a tuple."""
    if axis is None:
        return tuple(range(rank))
    if not isinstance(axis, (list, tuple)):
        return (axis_of(axis, rank),)
    axes = tuple(axis_of(a, rank) for a in axis)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"an axis occurs twice in {tuple(axis)}", code="axis")
    return tuple(sorted(axes))


def folded_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """The axes of a reduction, as `axes_of` has them; NumPy's reductions take 0 and -1 for none of a number's."""
    number = rank == 0 and axis is not None and not isinstance(axis, (list, tuple))
    return axes_of(axis, rank) if not number else axes_of(axis, 1)[1:]


def scalar_dim(dim: DimLike, dtype: Any) -> Atom:
    """A size as a number of `dtype`."""
    return literal(dim, dtype) if isinstance(dim, int) else to_dtype(dim_value(dim=dim), dtype)


__all__ = [
    "lift",
    "sized",
    "surely_differ",
    "promote",
    "result_type",
    "cast",
    "to_dtype",
    "mask_of",
    "require_bools",
    "broadcast_dims",
    "broadcast_arrays",
    "broadcast_to",
    "ufunc",
    "as_ufunc",
    "resolve",
    "dim_of",
    "count_of",
    "shape_of",
    "axis_of",
    "axes_of",
    "folded_axes",
    "scalar_dim",
    "inexact_dtype",
    "is_weak",
    "dtype_of",
    "Weak",
    "weak_type",
]
