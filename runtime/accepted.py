"""Types of arguments as text, and whether the arguments of a call are of these types.

In: texts such as `f64[n, 3], {'w': f64}, 'mean'`, and a call. Out: the arguments, their numbers in the types that a
text says; or an error that names the argument: a TypeError for another type, as in the source a ValueError for a size
that does not fit and for an array that may not be stored into, and a KeyError for a key that is missing. Example:

    _weigh = Signatures("weigh", ("x", "w"), {"f64[n], f64[n]": weigh_f64, "f32[n], f32[n]": weigh_f32})
    _weigh(x, 2.0)      # weigh was generated for ... and is called with (f64[3], float): w is float, not f64[n]

    _half = Signatures("half", ("n",), {"int": half}, {"int": "(float, ...)"})     # of its results the first is a float

A name in brackets is a size: any, but the same wherever it stands; where it never stands alone, as in `f64[2*n]`, it
follows from what it stands in. `float`, `int` and `complex` are Python's numbers,
`Size(n)` is the size itself, `Out(f64[n])` an array that is stored into, `Where(n >= 1)` what sizes must be.
Packages have a copy of this file, which needs NumPy alone.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

_BITS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}
DTYPES = {f"{kind}{bits}": f"{_BITS[kind]}{bits}" for kind in "iu" for bits in (8, 16, 32, 64)}
DTYPES |= {"f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128"}
DTYPES |= {"bool": "bool", "bf16": "bfloat16"}
NAMES = {full: name for name, full in DTYPES.items()}
PYTHONS: dict[str, Any] = {"float": float, "int": int, "complex": complex, "bool": bool}


class Mismatch(TypeError):
    """An argument is of another type. `path`: where in the argument; `wanted`: the type; `error`: what is raised."""

    def __init__(self, has: str, wanted: str, path: str = "", error: type[Exception] = TypeError):
        super().__init__(has, wanted, path)
        self.has, self.wanted, self.path, self.error = has, wanted, path, error

    def within(self, path: str) -> Mismatch:
        return Mismatch(self.has, self.wanted, path + self.path, self.error)


class _Sizes(dict):
    """The sizes that a call gives the names, and what is looked at when all are known."""

    def __init__(self) -> None:
        super().__init__()
        self.later: list[tuple[Any, int, Mismatch]] = []
        self.arrays: list[np.ndarray] = []
        self.written: list[int] = []  # of them, those that are stored into


Taker = Callable[[Any, _Sizes], Any]


class Accepted:
    """The arguments that a text stands for. `shown`: what messages call them, unless it is the text."""

    def __init__(self, text: str, shown: str | None = None):
        nodes = ast.parse(f"({text},)" if text else "()", mode="eval").body.elts  # type: ignore[attr-defined]
        self.where = [c for node in nodes if _is_call(node, "Where") for c in node.args]
        self.takers = [_taker(node) for node in nodes if not _is_call(node, "Where")]
        self._nodes, self._shown = nodes, shown

    def shown(self) -> str:
        """For messages, which do not say what is stored into."""
        if self._shown is None:
            self._shown = ", ".join(ast.unparse(_AsExported().visit(node)) for node in self._nodes)
        return self._shown

    def fitted(self, call: Sequence[Any], names: Sequence[str]) -> tuple[list[Any], list[np.ndarray]]:
        """The arguments in these types, and the arrays among them. Raises Mismatch, whose path begins with a name."""
        sizes, made = _Sizes(), []
        for taker, value, name in zip(self.takers, call, names, strict=True):
            made.append(_inside(taker, value, sizes, name))
        _solve(sizes)
        for code, size, problem in sizes.later:
            if _evaluated(code, sizes) != size:
                raise problem
        for condition in self.where:
            if not _evaluated(_code(condition), sizes):
                known = ", ".join(f"{name} = {size}" for name, size in sizes.items())
                raise Mismatch(known or "another", ast.unparse(condition), "its size", ValueError)
        for k in sizes.written:
            for j, array in enumerate(sizes.arrays):
                if j != k and np.shares_memory(sizes.arrays[k], array):
                    raise Mismatch(
                        "shared with another argument", "its own", "the memory of an array that is stored into"
                    )
        return made, sizes.arrays


def refusal(
    name: str, made: str, parameters: Sequence[str], accepted: Sequence[Accepted], call: Sequence[Any]
) -> Exception:
    """What is raised for a call that fits none. `made`: "compiled", "generated"."""
    problems = []
    for one in accepted:
        try:
            one.fitted(call, parameters)
        except Mismatch as problem:
            problems.append(problem)
    text = f"{name} was {made} for {' and '.join(dict.fromkeys(f'({one.shown()})' for one in accepted))}"
    text += f", and is called with ({', '.join(map(described, call))})"
    if not problems:
        return TypeError(text)
    last = max(problems, key=lambda p: next((k for k, q in enumerate(parameters) if p.path.startswith(q)), -1))
    wanted = dict.fromkeys(p.wanted for p in problems if p.path == last.path)
    return last.error(f"{text}: {last.path} is {last.has}, not {' or '.join(wanted)}")


class Signatures:
    """What a public function of a package runs: the source whose types fit the call.

    `results`: where Python's numbers are in what a source gives, by its types (`with_numbers`). `packed`: for functions
    with `*args` or `**kwargs`, which are called with both as two arguments. `keywords`: the names of what the source
    takes by keyword, at the end.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[str],
        sources: Mapping[str, Callable[..., Any]],
        results: Mapping[str, str] | None = None,
        packed: bool = False,
        keywords: Sequence[str] = (),
    ):
        self.name, self.parameters, self.packed, self.keywords = name, parameters, packed, keywords
        texts = results or {}
        self.rows = [(Accepted(text), source, with_numbers(texts.get(text, "..."))) for text, source in sources.items()]

    def __call__(self, *call: Any) -> Any:
        for accepted, source, result in self.rows:
            try:
                given, arrays = accepted.fitted(call, self.parameters)
            except Mismatch:
                continue
            return result(owned(self._run(source, given), arrays))
        raise refusal(self.name, "generated", self.parameters, [row[0] for row in self.rows], call)

    def _run(self, source: Callable[..., Any], given: list[Any]) -> Any:
        with np.errstate(all="ignore"):
            if self.packed:
                args, kwargs = given
                return source(*args, **kwargs)
            count = len(given) - len(self.keywords)
            return source(*given[:count], **dict(zip(self.keywords, given[count:])))


def owned(value: Any, arrays: Sequence[np.ndarray]) -> Any:
    """A result in which no array is a view of an argument; an argument itself may be there."""
    if isinstance(value, np.ndarray):
        is_view = value.base is not None and not any(value is array for array in arrays)
        return value.copy() if is_view and any(np.may_share_memory(value, array) for array in arrays) else value
    if type(value) in (tuple, list):
        return type(value)(owned(item, arrays) for item in value)
    if type(value) is dict:
        return {key: owned(item, arrays) for key, item in value.items()}
    return value


def with_numbers(text: str) -> Callable[[Any], Any]:
    """What makes a result's numbers Python's where a text names their types, and arrays where it says `array`; `...`
    stays as it is.

    >>> with_numbers("(int, ...)")((np.int64(2), np.float64(1.5)))
    (2, np.float64(1.5))
    """
    return _giver(ast.parse(text, mode="eval").body)


def _giver(node: ast.expr) -> Callable[[Any], Any]:
    match node:
        case ast.Name(id=name):
            return np.asarray if name == "array" else PYTHONS[name]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            givers = [*map(_giver, parts)]
            return lambda value: type(value)(give(item) for give, item in zip(givers, value, strict=True))
        case ast.Dict(values=values):
            givers = [*map(_giver, values)]
            return lambda value: {key: give(item) for give, (key, item) in zip(givers, value.items(), strict=True)}
    return lambda value: value


# ---- types -------------------------------------------------------------------------------------------------------


def _is_call(node: ast.expr, name: str) -> Any:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


class _AsExported(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.expr:
        return node.args[0] if _is_call(node, "Out") else node


def _taker(node: ast.expr) -> Taker:
    """What takes a value of a type, and gives it in that type; it raises Mismatch for another."""
    match node:
        case ast.Name(id="Any"):
            return lambda value, sizes: value
        case ast.Name(id=name):
            dtype = _dtype(name)
            make = PYTHONS[name] if name in PYTHONS and name not in DTYPES else dtype.type
            return lambda value, sizes: number(value, dtype, make)
        case ast.Subscript(value=ast.Name(id=name), slice=dims):
            parts = dims.elts if isinstance(dims, ast.Tuple) else [dims]
            return _array(ast.unparse(node), _dtype(name), [*map(_dim, parts)])
        case ast.Call(func=ast.Name(id="Out"), args=[inner]):
            return _stored(_taker(inner))
        case ast.Call(func=ast.Name(id="Size"), args=[dim]):
            return _size(_dim(dim), ast.unparse(dim))
        case ast.Tuple(elts=parts):
            return _sequence(ast.unparse(node), tuple, [*map(_taker, parts)])
        case ast.List(elts=parts):
            return _sequence(ast.unparse(node), list, [*map(_taker, parts)])
        case ast.Dict(keys=keys, values=values):
            names = [ast.literal_eval(key) for key in keys if key is not None]
            return _dictionary(ast.unparse(node), dict(zip(names, map(_taker, values))))
    return _same(ast.literal_eval(node))


def _dtype(name: str) -> np.dtype:
    """The dtype of a short name, or of a Python number. NumPy knows bfloat16 where ml_dtypes is imported."""
    if name == "bf16":
        try:
            importlib.import_module("ml_dtypes")
        except ImportError as error:
            raise ImportError(f"bf16 is a type of ml_dtypes, which can't be imported: {error}") from None
    return np.dtype(DTYPES.get(name, name))


def _code(node: ast.expr) -> Any:
    return compile(ast.Expression(node), "<size>", "eval")


def _evaluated(code: Any, sizes: dict) -> Any:
    return eval(code, {"__builtins__": {"max": max, "min": min}}, sizes)


def _dim(node: ast.expr) -> Any:
    """A number, a name, or the code of an expression."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return name
    return _code(node)


def _solve(sizes: _Sizes) -> None:
    """The names that no size is alone: each from the first size that is a multiple of it, and a rest."""
    while True:
        for code, size, problem in sizes.later:
            unknown = {*code.co_names} - {*sizes, "max", "min"}
            if len(unknown) == 1:
                (name,) = unknown
                rest, step = (_evaluated(code, sizes | {name: at}) for at in (0, 1))
                sizes[name] = (size - rest) // (step - rest)
                if sizes[name] < 0:
                    raise problem
                break
        else:
            return


def _fits(dim: Any, size: int, sizes: _Sizes, problem: Callable[[], Mismatch]) -> bool:
    if isinstance(dim, int):
        return dim == size
    if isinstance(dim, str):
        return sizes.setdefault(dim, size) == size
    sizes.later.append((dim, size, problem()))
    return True


def _array(text: str, dtype: np.dtype, dims: Sequence[Any]) -> Taker:
    def take(value: Any, sizes: _Sizes) -> Any:
        is_one = type(value) is np.ndarray and value.dtype == dtype and value.ndim == len(dims)
        if not is_one:
            raise Mismatch(described(value), text)
        if not all(
            _fits(dim, size, sizes, lambda: Mismatch(described(value), text, error=ValueError))
            for dim, size in zip(dims, value.shape)
        ):
            names = dict.fromkeys(dim for dim in dims if isinstance(dim, str) and dim in sizes)
            known = ", ".join(f"{name} = {sizes[name]}" for name in names)
            raise Mismatch(described(value), f"{text} with {known}" if known else text, error=ValueError)
        sizes.arrays.append(value)
        return value

    return take


def _stored(inner: Taker) -> Taker:
    def take(value: Any, sizes: _Sizes) -> Any:
        sizes.written.append(len(sizes.arrays))
        taken = inner(value, sizes)
        if not taken.flags.writeable:
            raise Mismatch("read-only", "an array that may be stored into", error=ValueError)
        return taken

    return take


def _size(dim: Any, text: str) -> Taker:
    def take(value: Any, sizes: _Sizes) -> Any:
        if type(value) is not int:
            raise Mismatch(described(value), f"the size {text}")
        if not _fits(dim, value, sizes, lambda: Mismatch(repr(value), text, error=ValueError)):
            raise Mismatch(repr(value), f"the size {text}", error=ValueError)
        return value

    return take


def _sequence(text: str, kind: type, takers: Sequence[Taker]) -> Taker:
    def take(value: Any, sizes: _Sizes) -> Any:
        if not isinstance(value, (tuple, list)) or type(value) is not kind or len(value) != len(takers):
            raise Mismatch(described(value), text)
        return kind(_inside(taker, item, sizes, f"[{k}]") for k, (taker, item) in enumerate(zip(takers, value)))

    return take


def _dictionary(text: str, takers: Mapping[Any, Taker]) -> Taker:
    def take(value: Any, sizes: _Sizes) -> Any:
        if type(value) is not dict or value.keys() != takers.keys():
            is_missing = isinstance(value, dict) and not takers.keys() <= value.keys()
            raise Mismatch(described(value), text, error=KeyError if is_missing else TypeError)
        return {key: _inside(taker, value[key], sizes, f"[{key!r}]") for key, taker in takers.items()}

    return take


def _inside(taker: Taker, value: Any, sizes: _Sizes, path: str) -> Any:
    before = len(sizes.later)
    try:
        made = taker(value, sizes)
    except Mismatch as problem:
        raise problem.within(path) from None
    sizes.later[before:] = [(code, size, problem.within(path)) for code, size, problem in sizes.later[before:]]
    return made


def _same(wanted: Any) -> Taker:
    def take(value: Any, sizes: _Sizes) -> Any:
        if type(value) is not type(wanted) or value != wanted:
            raise Mismatch(described(value), repr(wanted))
        return value

    return take


def number(value: Any, dtype: np.dtype, make: Callable[[Any], Any]) -> Any:
    """A number of the type that `make` makes. Mismatch where it would be another number; True and False are none.

    >>> number(2, np.dtype("float64"), np.float64)
    np.float64(2.0)
    """
    is_truth = isinstance(value, bool) or getattr(value, "dtype", None) == np.bool_
    if is_truth and dtype != np.bool_:
        pass  # an index, a sign or a product means another thing by it
    elif isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        if np.can_cast(value.dtype, dtype, "safe"):
            return make(value.item() if make in (int, float, bool, complex) else value)
    elif isinstance(value, (bool, int, float, complex)) and np.result_type(value, dtype) == dtype:
        try:
            with np.errstate(over="raise"):
                made = make(dtype.type(value))
        except (OverflowError, FloatingPointError):
            made = None
        if made is not None and (not isinstance(value, int) or int(made.real) == value):
            return made
    is_python = isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
    wanted = make.__name__ if make in (int, float, bool, complex) else NAMES.get(dtype.name, dtype.name)
    raise Mismatch(repr(value) if is_python else described(value), wanted)


def described(value: Any) -> str:
    """What a value is, as signatures say it.

    >>> described({"w": np.ones((2, 3))}), described(1.5)
    ("{'w': f64[2, 3]}", 'float')
    """
    if isinstance(value, (np.ndarray, np.generic)):
        dims = ", ".join(map(str, value.shape))
        text = f"{NAMES.get(str(value.dtype), value.dtype)}{f'[{dims}]' if dims else ''}"
        if isinstance(value, np.generic):
            return text
        kind = "" if type(value) is np.ndarray else f"{type(value).__name__} "
        return kind + text + ("" if value.flags.writeable else " read-only")
    if type(value) is dict:
        return f"{{{', '.join(f'{key!r}: {described(item)}' for key, item in value.items())}}}"
    if type(value) in (tuple, list):
        inner = ", ".join(map(described, value))
        return f"[{inner}]" if type(value) is list else f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value) if isinstance(value, (str, bool, type(None))) else type(value).__name__


__all__ = ["Accepted", "Mismatch", "Signatures", "described", "number", "owned", "refusal", "with_numbers"]
