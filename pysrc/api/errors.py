"""Errors as values: `checked(f)`, whose calls return what a call of `f` would have raised.

In: a function. Out: one that returns `(error, what the function returns)`, and raises nothing. The error is a pytree of
integers: a result like any other, of a jitted function, of lanes, of a step of a scan. Example:

    error, y = checked(f)(x, 7)
    error.get()       # 'IndexError: index 7 is out of bounds for axis 0 with size 3'
    error.throw()     # raises it, at the line in f

The program is made by `transforms/checked.py`; `metaphrase.experimental.checkify` has JAX's names.
"""

from __future__ import annotations

import enum
import functools
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from ..astpasses.frontend import Output, least_size
from ..astpasses.transforms.checked import Failure, errors_as_results
from ..astpasses.transforms.float_checks import with_float_checks
from ..core.build import Builder, current, literal
from ..core.facts import Facts
from ..core.ir import Atom, Function, Let
from ..core.types import NAMES, SHORT, f64, i64, is_inexact, type_symbols
from ..exceptions import ListFull, exception_class, raised
from ..ops.compare import ne
from ..ops.complex_numbers import complex_
from ..ops.effects import check
from ..ops.families import broadcast_to
from ..ops.shape import bitcast, convert
from ..runtime.errors import decode, placed
from ..source import DTypeError, Span, UnsupportedError
from ..tree_util import GetAttrKey, PyTreeDef, register_pytree_with_keys, tree_structure, treedef_tuple
from .arguments import Spec, take_apart
from .placement import on_host
from .program import Fixed, Program, Slot, caller_span, under_way
from .staging import give_back
from .transforms import Transformed, call_inside, program_of

P = ParamSpec("P")
R = TypeVar("R")


class Errors(enum.Flag):
    """Which errors become values; sets are joined by `|`."""

    USER = enum.auto()
    INDEX = enum.auto()
    NAN = enum.auto()
    DIV = enum.auto()

    def __repr__(self) -> str:
        return " | ".join(f"{flag.name}".lower() + "_checks" for flag in self)


# Of a run that can't go on: these are raised whatever is asked.
_RAISED = (ListFull, MemoryError)


def _sets_of(exception: str) -> Errors:
    """The sets that an exception is in."""
    cls = exception_class(exception)
    if issubclass(cls, _RAISED):
        return Errors(0)
    if issubclass(cls, LookupError):
        return Errors.INDEX
    more: dict[type, Errors] = {FloatingPointError: Errors.NAN, ZeroDivisionError: Errors.DIV}
    return Errors.USER | more.get(cls, Errors(0))


# ---- the error -------------------------------------------------------------------------------------------------------

# What an error knows of a site: exception, message, holds, of each value its dtype, the number if it is known, and
# where it begins among the error's numbers if not; and the place.
Row = tuple[str, str, tuple, tuple[tuple[str, Any, int], ...], tuple | None]


def _row(failure: Failure) -> Row:
    span = failure.span
    place = (
        None
        if span is None
        else (span.file, span.line, span.column, span.end_line, span.end_column, span.role, span.function)
    )
    values = tuple((NAMES[dtype], known, first) for dtype, known, first in failure.values)
    return failure.exception, failure.message, failure.holds, values, place


class Error:
    """What a call of a checked function would have raised, or that it would not have. A pytree of integers, with an
    axis for each `vmap`.

    `failed`: whether there is an error, one bool for each lane. `error[i]`: that of a lane. `len`, iteration: of lanes.
    """

    __slots__ = ("code", "numbers", "sites")

    def __init__(self, code: Any, numbers: tuple, sites: tuple[Row, ...]):
        self.code, self.numbers, self.sites = code, numbers, sites

    @property
    def failed(self) -> Any:
        """Whether there is an error: a bool, or an array of them."""
        return self.code != 0

    def get(self) -> str | None:
        """The error as the last line of Python's traceback has it, None if there is none. Of lanes those that failed,
        a line each, with their numbers."""
        here = self._on_host()
        if not np.ndim(here.code):
            error = here.exception()
            return None if error is None else _said(error)
        lines = [f"in lane {_numbered(lane)}: {_said(error)}" for lane, error in here._lanes()]
        return "\n".join(lines) or None

    def exception(self) -> BaseException | None:
        """The exception that a call would have raised, with its traceback, None if there is none. Of lanes the first,
        its message with the lane's number, as a call of the lanes has it."""
        here = self._on_host()
        if not np.ndim(here.code):
            return here._made(int(here.code), [int(n) for n in here.numbers])
        return next((here._at(lane).exception() for lane, _ in here._lanes()), None)

    def throw(self) -> None:
        """Raise the exception that a call would have raised, if there is one. In a translated function it becomes an
        error of that function."""
        if under_way():
            call_inside(check_error, (self,), {})
            return
        error = self.exception()
        if error is not None:
            raise error

    def _on_host(self) -> Error:
        code, *numbers = on_host([self.code, *self.numbers])
        return Error(code, tuple(numbers), self.sites)

    def _lanes(self) -> Iterator[tuple[tuple[int, ...], BaseException]]:
        for place in np.argwhere(np.asarray(self.code) != 0):
            lane = tuple(map(int, place))
            error = self[lane].exception()
            assert error is not None
            yield lane, error

    def _at(self, lane: tuple[int, ...]) -> Error:
        """The error of a lane, whose message says the lane."""
        one = self[lane]
        sites = tuple(_in_lanes(row, lane) for row in self.sites)
        return Error(one.code, one.numbers, sites)

    def _made(self, code: int, numbers: list[int]) -> BaseException | None:
        if not code:
            return None
        exception, message, holds, values, place = self.sites[code - 1]
        shown = []
        for name, known, first in values:
            dtype = SHORT[name]
            taken = tuple(numbers[first : first + 1 + (dtype.kind == "c")])
            shown.append(decode(taken, (dtype,))[0] if known is None else known)
        return placed(raised(exception, message, holds, shown), () if place is None else (Span(*place),))

    def __getitem__(self, index: Any) -> Error:
        return Error(self.code[index], tuple(n[index] for n in self.numbers), self.sites)

    def __len__(self) -> int:
        return len(self.code)

    def __repr__(self) -> str:
        try:
            return f"Error({self.get() or 'none'})"
        except Exception:  # of staged values, or of types
            return f"Error({self.code!r})"


def _said(error: BaseException) -> str:
    """An exception as the last line of Python's traceback has it."""
    return "".join(traceback.format_exception_only(error)).rstrip("\n")


def _numbered(lane: tuple[int, ...]) -> str:
    return str(lane[0] if len(lane) == 1 else lane)


def _in_lanes(row: Row, lane: tuple[int, ...]) -> Row:
    exception, message, holds, values, place = row
    if holds or exception == "LinAlgError":
        return row
    told = "".join(f", in lane {number} of vmap" for number in reversed(lane))
    return exception, message + told if message else told[2:], holds, values, place


register_pytree_with_keys(
    Error,
    lambda e: (((GetAttrKey("code"), e.code), (GetAttrKey("numbers"), e.numbers)), e.sites),
    lambda sites, children: Error(children[0], children[1], sites),
    lambda e: ((e.code, e.numbers), e.sites),
)


# ---- checked functions -----------------------------------------------------------------------------------------------


class Checked(Transformed):
    """What `checked` makes."""

    compiles = True
    kind = "checked"
    about = "The error of a call of {}, if there is one, beside its result."

    def __init__(self, fun: Callable[..., Any], errors: Errors):
        super().__init__(fun)
        self.errors = errors

    def _again(self) -> tuple:
        return self.fun, self.errors

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        program = program_of(self.fun, structure, specs)
        function = program.function
        if self.errors & (Errors.NAN | Errors.DIV):
            function = with_float_checks(function, Errors.NAN in self.errors, Errors.DIV in self.errors)
        function, failures = errors_as_results(function, self._is_wanted, _known_sizes(function))
        count = len(program.function.results)
        width = len(function.results) - count - 1
        error = Error(0, (0,) * width, tuple(map(_row, failures)))
        out = treedef_tuple([tree_structure(error), program.out])
        origin = program.origin
        if program.writes and failures:
            self._refuse_stores(program)
        if program.writes:
            told = tuple(Output("result", count + k) for k in range(1 + width))
            origin = replace(origin, out_tree=out, outputs=(*told, *origin.outputs))
        return program.with_function(
            function,
            out=out,
            origin=origin,
            slots=(*(Slot(count + k) for k in range(1 + width)), *program.slots),
            forms=(*program.forms, *["scalar"] * (1 + width)),
            name=self.__name__,
            raises=False,
        )

    def _refuse_stores(self, program: Program) -> None:
        """What is stored into attributes and containers is stored when a run has ended: after an error, too."""
        for write in program.writes:
            if write.kind not in ("argument", "capture"):
                raise UnsupportedError(
                    f"checked: {program.title} stores into an attribute or a container, and may fail",
                    self._place(),
                    code="checked",
                    remedy="return the new value beside the result, and store it where there is no error",
                )

    def _is_wanted(self, let: Let) -> bool:
        return bool(_sets_of(let.attributes["exception"]) & self.errors)


def _known_sizes(function: Function) -> Facts:
    """What is known of the sizes of arguments."""
    names = frozenset().union(*(type_symbols(t) for t in function.param_types))
    return Facts({name: (least_size(name) or 0, None) for name in names})


@overload
def checked(fun: Callable[P, R], *, errors: Errors = ...) -> Callable[P, tuple[Error, R]]: ...
@overload
def checked(fun: None = None, *, errors: Errors = ...) -> Callable[[Callable[P, R]], Callable[P, tuple[Error, R]]]: ...


def checked(fun: Callable[P, R] | None = None, *, errors: Errors = Errors.USER | Errors.INDEX) -> Any:
    """`fun`, whose calls return `(error, result)` and don't raise what they would have raised: the error is a value, an
    `Error`, under every transformation; under `vmap` each lane has its own. Also a decorator.

    `errors`: which ones, sets of `metaphrase.experimental.checkify` joined by `|`. The default is all that a call of
    `fun` would raise: `index_checks`, of indices and keys, and `user_checks`, everything else. `nan_checks` and
    `div_checks` are of what NumPy lets pass: an operation that gives a NaN, a division by 0. What is not among them is
    raised as ever; so are MemoryError and what is found while translating.

    Where an error is, the result is undefined: its arrays have their shapes, and any numbers. What was printed and
    stored until then is. Raises DTypeError for what is no function or no set of errors, UnsupportedError for a result
    whose size is not known where an error is. (JAX's `checkify.checkify`.)"""
    if fun is None:
        return functools.partial(checked, errors=errors)
    if not isinstance(errors, Errors) or not errors:
        raise DTypeError(
            f"checked: errors={errors!r} is no set of errors",
            caller_span(),
            code="checked",
            remedy="join sets of metaphrase.experimental.checkify, as in user_checks | nan_checks",
        )
    return Checked(fun, errors)


# ---- errors that are raised after all --------------------------------------------------------------------------------


class _CheckError:
    """`check_error`, in translated code and outside of it."""

    __name__ = __qualname__ = "check_error"
    __module__ = "metaphrase.experimental.checkify"
    __doc__ = """Raise the error, if it is one. In a translated function it is an error of that function, which
    `checked` makes a value again. (JAX's `checkify.check_error`.)"""

    def __call__(self, error: Error) -> None:
        if not isinstance(error, Error):
            raise DTypeError(
                f"check_error of a {type(error).__name__}",
                caller_span(),
                code="checked",
                remedy="give the error that a checked function returned",
            )
        error.throw()

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> Any:
        call = take_apart(args, kwargs)
        (error,) = args
        with Builder("check_error") as builder:
            atoms = [
                builder.parameter(f"x{k}", spec.type) if spec.dynamic else literal(spec.value, i64)
                for k, spec in enumerate(call.specs)
            ]
            _raise_again(atoms[0], atoms[1:], error.sites)
            function = builder.function(())
        order = iter(range(len(atoms)))
        leaves = tuple(next(order) if spec.dynamic else Fixed(spec.value) for spec in call.specs)
        nothing = tree_structure(None)
        return give_back(Program(function, (), call.structure, leaves, nothing, (), (), name="check_error"))

    def __reduce__(self) -> str:
        return "check_error"


def _raise_again(code: Atom, numbers: Sequence[Atom], sites: Sequence[Row]) -> None:
    """A check for each site."""
    builder = current()
    assert builder is not None
    dims = code.type.dims
    for site, (exception, message, holds, values, place) in enumerate(sites, 1):
        builder.span = None if place is None else Span(*place)
        shown = []
        for name, known, first in values:
            dtype = SHORT[name]
            number = broadcast_to(literal(known, dtype), dims) if known is not None else None
            shown.append(_decoded(dtype, numbers[first:]) if number is None else number)
        ok = ne(code, broadcast_to(literal(site, i64), dims))
        more = {"holds": holds} if holds else {}
        check(ok, *shown, exception=exception, message=message, **more)


def _decoded(dtype: np.dtype, numbers: Sequence[Atom]) -> Atom:
    """A number that an error holds as 64 bits, the first of these."""
    if dtype.kind == "c":
        return convert(complex_(*(bitcast(n, dtype=f64) for n in numbers[:2])), dtype=dtype)
    return convert(bitcast(numbers[0], dtype=f64) if is_inexact(dtype) else numbers[0], dtype=dtype)


check_error = _CheckError()

__all__ = ["Checked", "Error", "Errors", "check_error", "checked"]
