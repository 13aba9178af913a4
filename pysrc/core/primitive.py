"""The page of a primitive: one declaration, every rule beside the others, blanks refused.

In: rules. Out: a `Primitive`, registered by name, callable on Vars (binds a Let) and on arrays (evaluates).

    sin = Primitive("sin", spellings=(np.sin, math.sin), type=same, numpy=np.sin,
                    jvp=(lambda x_dot, y, x: mul(x_dot, cos(x)),), transpose=NotLinear,
                    dims=POINTWISE, native=Point("sin"))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ir import Atom, Literal, Var
from .native import Gather, Native, Point, Put
from .scalars import CALLED, Scalar, facts
from .types import Array

REGISTRY: dict[str, Primitive] = {}
_MISSING: Any = object()


class Zero:
    """`jvp` entry: the derivative is zero wherever it exists (floor, comparison)."""


class NotLinear:
    """`transpose`: never linear in any operand."""


class ByTransform:
    """The rules belong to a region and are written in the transformations themselves (loop, cond, call)."""


class Unsupported:
    """A rule that can't be had; `why` goes into the error."""

    def __init__(self, why: str):
        self.why = why


class Joint:
    """jvp of all operands at once: rule(args, dots, **attributes) -> (outs, out_dots)."""

    def __init__(self, rule: Callable[..., tuple]):
        self.rule = rule


class Together:
    """jvp: linear in the first `count` operands together (all of them if None): the tangent is the same
    operation of their tangents."""

    def __init__(self, count: int | None = 1):
        self.count = count


class Accumulate:
    """transpose of all linear operands at once: rule(out_bars, accs, args, **attributes) -> accs.

    `out_bars`: one Var or None (symbolic zero) a result. `accs`: {position: Var | None}, the linear operands'
    cotangents so far. Linear operands stand in `args` as `Linear(type)`. Returns the new `accs`.
    """

    def __init__(self, rule: Callable[..., dict]):
        self.rule = rule


class Linear:
    """Stands for a linear operand in the arguments of a transpose rule: its type is known, its value is
    not."""

    def __init__(self, type: Array):
        self.type = type


class Primitive:
    """See docs/design.md section 3. A blank rule is an error here, at the declaration."""

    domain: tuple[tuple[float, float], ...] | None = None  # ranges in which tests take operands
    native: Any  # a `Native`; a rule of the scheduler is for one kind, and reads that kind's fields

    def __init__(
        self,
        name: str,
        *,
        spellings: tuple = (),
        type: Callable = _MISSING,
        numpy: Callable = _MISSING,
        jvp: Any = _MISSING,
        transpose: Any = _MISSING,
        dims: Any = _MISSING,
        batch: Any = None,
        native: Native = _MISSING,
        effect: str | None = None,
        multiple: bool = False,
        region: bool = False,
        transient: bool = False,
        cost: int | None = None,
        places: bool = False,
        nonnegative: Callable | None = None,
        doc: str = "",
    ):
        rules = dict(type=type, numpy=numpy, jvp=jvp, transpose=transpose, dims=dims, native=native)
        blank = [rule for rule, value in rules.items() if value is _MISSING]
        if blank:
            raise TypeError(f"primitive {name!r} lacks {', '.join(blank)}")
        if name in REGISTRY:
            raise TypeError(f"primitive {name!r} is declared twice")
        if effect not in (None, "ordered", "failing"):
            raise TypeError(f"primitive {name!r}: no effect is called {effect!r}")
        self.name, self.spellings, self.effect, self.multiple, self.region = (name, spellings, effect, multiple, region)
        self.type, self.numpy, self.jvp, self.transpose = type, numpy, jvp, transpose
        self.dims, self.batch, self.native, self.__doc__ = dims, batch, native, doc
        self.transient = transient  # gone when all derivatives are taken: what runs has none
        self.places = places  # its results are places in what they are made of
        self.nonnegative = nonnegative  # `any` or `all`: of the operands, so that no result is negative if they are not
        scalar = self.scalar
        self.cost = cost if cost is not None else scalar.cost if scalar is not None else CALLED
        REGISTRY[name] = self

    @property
    def scalar(self) -> Scalar | None:
        """What is known of the scalar operation that this one lifts over arrays, if it is one."""
        operation = self.native.expression if isinstance(self.native, Point) else None
        return facts(operation) if isinstance(operation, str) else None

    @property
    def stores(self) -> bool:
        """Whether the result is the first operand with something stored into it."""
        return isinstance(self.native, Put)

    @property
    def takes(self) -> bool:
        """Whether the result is a part of the first operand."""
        return isinstance(self.native, Gather)

    def __call__(self, *args: Any, **attributes: Any) -> Any:
        from .build import current

        builder = current()
        if builder is not None and (not args or any(isinstance(a, (Var, Literal)) for a in args)):
            outs = builder.bind(self, tuple(map(as_atom, args)), attributes)
            return outs if self.multiple else outs[0] if outs else None
        for arg in args:
            if hasattr(type(arg), "__metaphrase_bind__"):  # staged, in code that runs as it is
                return arg.__metaphrase_bind__(self, args, attributes)
        if self.region:
            from .evaluate import run_region

            return run_region(self, args, attributes)
        return self.numpy(*(a.value if isinstance(a, Literal) else a for a in args), **attributes)

    def __repr__(self) -> str:
        return self.name


def as_atom(value: Any) -> Atom:
    """A Var or Literal as it is; a Python or NumPy scalar as a Literal (int i64, float f64, complex c128)."""
    if isinstance(value, (Var, Literal)):
        return value
    literal = Literal(value)
    if literal.value.ndim if hasattr(literal.value, "ndim") else 0:
        raise TypeError("arrays enter a program as parameters or through `constant`")
    return literal
