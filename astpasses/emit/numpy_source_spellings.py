"""How each primitive is spelled in NumPy: one table, from its name or the kind of its `native` to a rule.

In: the emitter and a Let. Out: an `Expr` for its value. A primitive without an entry is elementwise, and one
of its `spellings` is a ufunc of NumPy's or a function of scipy.special. `check_spelled()` says which
primitives nobody spells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from metaphrase.core.foreign import Foreign
from metaphrase.core.ir import Function, Let, Literal, Var
from metaphrase.core.primitive import REGISTRY, Primitive
from metaphrase.core.types import Array

from .numpy_source_blocks import Emitter
from .numpy_source_expressions import (
    ATOM,
    TERNARY,
    Expr,
    call,
    dtype_text,
    infix,
    literal,
    loosened,
    operations_of,
    prefix,
    reads_of,
    strong,
    suffix,
    without_losses,
)

Rule = Callable[[Emitter, Let], Expr]
SPELLINGS: dict[str, Rule] = {}
STATEMENTS: dict[str, Callable[[Emitter, Let], None]] = {}

INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floor_div": "//",
    "mod": "%",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "shift_left": "<<",
    "shift_right": ">>",
}


@functools.cache
def scipy_name(primitive: Primitive) -> str | None:
    """The function of scipy.special that a primitive is, where NumPy has none."""
    of_scipy = [s for s in primitive.spellings if isinstance(s, Foreign) and s.module == "scipy.special"]
    return of_scipy[0].__name__ if of_scipy else None


def foreign_functions(function: Function) -> set[str]:
    """The names of the functions of scipy.special that a program needs."""
    names = {name for let in function.lets if (name := scipy_name(let.primitive)) is not None}
    return names.union(*(foreign_functions(region) for let in function.lets for region in let.regions()))


def spelled(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        SPELLINGS.update((n, rule) for n in names)
        return rule

    return register


def spell(emitter: Emitter, let: Let) -> Expr:
    """The expression of a Let without effects and regions."""
    primitive = let.primitive
    if (rule := SPELLINGS.get(primitive.name) or SPELLINGS.get(type(primitive.native).__name__)) is not None:
        return rule(emitter, let)
    return _ufunc(emitter, let) if scipy_name(primitive) is None else _foreign(emitter, let)


def ufunc_name(name: str) -> str | None:
    """The NumPy function an elementwise primitive is, from its declaration."""
    for candidate in (REGISTRY[name].numpy, *REGISTRY[name].spellings):
        own = getattr(candidate, "__name__", "?")
        if candidate is getattr(np, own, None):
            return f"np.{own}"
    return None


def check_spelled() -> list[str]:
    """Primitives that can't be written in NumPy."""
    known = {*SPELLINGS, *STATEMENTS, "loop", "cond", "call"}
    return [
        name
        for name, primitive in REGISTRY.items()
        if not primitive.transient
        and not {name, type(primitive.native).__name__} & known
        and ufunc_name(name) is None
        and scipy_name(primitive) is None
    ]


def operands(emitter: Emitter, let: Let) -> list[Expr]:
    """The operands of an elementwise operation, without the broadcasts and conversions that NumPy does
    itself."""
    exprs = [emitter.expr(a) for a in let.args]
    return loosened(exprs, let.out.type.dims, let.args[0].type.dtype)


def typed(exprs: Sequence[Expr], dtype: np.dtype) -> list[Expr]:
    """Operands of a function call, of which at least one has to carry the dtype."""
    exprs = list(exprs)
    if all(e.weak is not None for e in exprs) and dtype not in (np.float64,):
        exprs[0] = strong(exprs[0])
    return exprs


def _mark_python(emitter: Emitter, let: Let, exprs: list[Expr], out: Expr) -> Expr:
    """Follow scalar arguments that may be Python numbers as far as Python computes as NumPy does."""
    if let.out.type.dims or not all(e.maybe_python or e.weak is not None for e in exprs):
        return out
    by_number = let.primitive.name == "div" and isinstance(let.args[1], Literal) and let.args[1].value != 0
    scalar = let.primitive.scalar
    fails = not (scalar and scalar.safe) and not by_number  # of plain numbers, as a division by zero does
    if fails or let.args[0].type.dtype.kind in "iu":
        emitter.numpy_scalars(*exprs)
        return out
    return replace(out, maybe_python=any(e.maybe_python for e in exprs))


def _ufunc(emitter: Emitter, let: Let) -> Expr:
    function = ufunc_name(let.primitive.name)
    assert function is not None and not let.attributes, f"{let.primitive.name} has no NumPy spelling"
    return call(function, typed(operands(emitter, let), let.args[0].type.dtype), let.out.type)


@spelled(*INFIX)
def _infix(emitter: Emitter, let: Let) -> Expr:
    a, b = operands(emitter, let)
    name, type_ = let.primitive.name, let.args[0].type
    operator = INFIX[name]
    if name == "add" and type_.dtype.kind in "iu" and isinstance(let.args[0], Literal):
        a, b = b, a  # i + 1, not 1 + i
    if name == "div" and (mean := _mean(emitter, let)) is not None:
        return mean
    number = next((x for x in let.args if isinstance(x, Literal)), None) if name == "add" else None
    if (
        number is not None
        and type_.dtype.kind == "i"
        and number.value < 0
        and number.value != np.iinfo(type_.dtype).min
    ):
        operator, b = "-", emitter.expr(Literal(-number.value))  # i - 1, not i + -1
    if name in ("add", "sub") and b.parts is not None and b.parts[0] == "neg":
        operator, b = {"+": "-", "-": "+"}[operator], b.parts[1]
    if name in ("and_", "or_") and type_.dtype == bool and not type_.dims:
        operator = {"&": "and", "|": "or"}[operator]
    if type_.dtype.kind == "u" and not type_.dims and name in ("add", "sub", "mul"):
        emitter.wrap_around = True
    return _mark_python(emitter, let, [a, b], infix(operator, a, b, let.out.type))


@spelled("spaced")
def _spaced(emitter: Emitter, let: Let) -> Expr:
    place, step, start = operands(emitter, let)
    product = infix("*", place, step, let.out.type)
    return _mark_python(emitter, let, [place, step, start], infix("+", product, start, let.out.type))


def _mean(emitter: Emitter, let: Let) -> Expr | None:
    """`np.mean` for a sum divided by the number of what it sums, which is what np.mean computes."""
    total, count = emitter.expr(let.args[0]), let.args[1]
    if total.parts is None or total.parts[0] != "sum" or let.out.type.dtype not in (np.float32, np.float64):
        return None
    wanted = total.parts[1]
    while isinstance(count, Var):
        maker = emitter.block.makers.get(count)
        if maker is None or maker.primitive.name not in ("broadcast", "convert", "dim_value"):
            return None
        if maker.primitive.name == "dim_value":
            return replace(total.parts[2]) if maker.attributes["dim"] == wanted else None
        count = maker.args[0]
    return replace(total.parts[2]) if isinstance(wanted, int) and count.value == wanted else None


@spelled("neg")
def _neg(emitter: Emitter, let: Let) -> Expr:
    (a,) = operands(emitter, let)
    weak = a.weak if a.type.dtype.kind == "i" and a.type.dtype.itemsize == 8 else None
    made = prefix("-", a if weak is not None else strong(a), let.out.type, weak)
    return replace(_mark_python(emitter, let, [a], made), parts=("neg", a))


@spelled("not_")
def _not(emitter: Emitter, let: Let) -> Expr:
    (a,) = operands(emitter, let)
    if a.type.dtype == bool and not a.type.dims:
        return prefix("not ", a, let.out.type, weak=1)
    return prefix("~", strong(a), let.out.type)


@spelled("pow")
def _pow(emitter: Emitter, let: Let) -> Expr:
    a, b = operands(emitter, let)
    kind = let.out.type.dtype.kind
    if kind == "i" and not (isinstance(let.args[1], Literal) and let.args[1].value >= 0):
        emitter.helpers.add("integer_power")
        exact = [strong(emitter.expr(x)) for x in let.args]  # the helper computes in their dtype
        emitter.numpy_scalars(*exact)
        return call("integer_power", exact, let.out.type)
    if let.out.type.dims and not b.type.dims:  # array ** scalar takes short cuts that np.power does not
        return call("np.power", [a, b], let.out.type)
    emitter.wrap_around |= kind == "u"
    return _mark_python(emitter, let, [a, b], infix("**", a, b, let.out.type))


@spelled("threefry")
def _threefry(emitter: Emitter, let: Let) -> Expr:
    emitter.helpers.add("threefry")
    exprs = [strong(emitter.expr(a)) for a in let.args]
    emitter.numpy_scalars(*exprs)
    return call("threefry", exprs, let.out.type)


@spelled("integer_pow")
def _integer_pow(emitter: Emitter, let: Let) -> Expr:
    """Squares are cheap: powers up to 8 are products of them, as the primitive says."""
    exponent, type_ = let.attributes["exponent"], let.out.type
    exact = 2 <= exponent <= 8
    x = emitter.named(let.args[0]) if exact and (exponent > 2 or not type_.dims) else emitter.expr(let.args[0])
    if not exact:
        emitter.numpy_scalars(x)
        power = literal(np.asarray(exponent, type_.dtype)[()])
        return call("np.power", [strong(x), power], type_)
    emitter.wrap_around |= type_.dtype.kind == "u" and not type_.dims
    square = infix("**", x, literal(np.int64(2)), type_) if type_.dims else infix("*", x, x, type_)
    if exponent <= 3:  # products of Python's numbers are such numbers
        made = square if exponent == 2 else infix("*", square, x, type_)
        return replace(made, maybe_python=x.maybe_python)
    fourth = call("np.square", [square], type_)
    rest = {4: (), 5: (x,), 6: (square,), 7: (square, x), 8: ()}[exponent]
    made = call("np.square", [fourth], type_) if exponent == 8 else fourth
    for factor in rest:
        made = infix("*", made, factor, type_)
    return made


@spelled("abs")
def _abs(emitter: Emitter, let: Let) -> Expr:
    (a,) = operands(emitter, let)
    return _mark_python(
        emitter,
        let,
        [a],
        call("np.abs" if a.type.dims or a.type.dtype.kind == "c" else "abs", [strong(a)], let.out.type),
    )


@spelled("logistic")
def _logistic(emitter: Emitter, let: Let) -> Expr:
    (x,) = operands(emitter, let)
    sum_of_two = call("np.logaddexp", [literal(np.float64(0)), prefix("-", strong(x), x.type)], let.out.type)
    return call("np.exp", [prefix("-", sum_of_two, let.out.type)], let.out.type)


@spelled("barrier", "checkpoint_name", "only_where", "sampled", "stop_gradient")
def _same(emitter: Emitter, let: Let) -> Expr:
    return emitter.expr(let.args[0])


@spelled("select")
def _select(emitter: Emitter, let: Let) -> Expr:
    c, a, b = (emitter.expr(x) for x in let.args)
    type_ = let.out.type
    if not type_.dims:
        if a.weak is not None and b.weak is not None and type_.dtype.kind not in "b":
            a, b = strong(a), strong(b)
        elif a.weak is not None or b.weak is not None:
            a, b = strong(a), strong(b)
        text = f"{a.at(TERNARY + 1)} if {c.at(TERNARY + 1)} else {b.at(TERNARY)}"
        weak = 1 if a.weak is not None and b.weak is not None and type_.dtype == bool else None
        made = Expr(text, TERNARY, type_.plain, weak, reads_of([a, b, c]), operations_of([a, b, c]) + 1)
        return replace(made, maybe_python=a.maybe_python or b.maybe_python)
    forms = [c, a, b]
    for k in (1, 2):  # the condition brings the shape, one branch the dtype
        for trial in _looser(forms[k]):
            candidate = forms[:k] + [trial] + forms[k + 1 :]
            if loosened_fits(candidate, type_):
                forms = candidate
                break
    if c.loose is not None and loosened_fits([c.loose, *forms[1:]], type_):
        forms[0] = c.loose
    values = forms[1:]
    if all(v.weak is not None for v in values) and type_.dtype not in (np.float64, np.bool_):
        values[0] = strong(values[0])
    return call("np.where", [forms[0], *values], type_)


def _looser(expr: Expr) -> list[Expr]:
    found = []
    loose = expr.loose
    while loose is not None:
        found.append(loose)
        loose = loose.loose
    return found


def loosened_fits(forms: list[Expr], type_: Array) -> bool:
    """Whether np.where of (condition, a, b) has this type."""
    from .numpy_source_expressions import promotes, shapes_fit

    values = forms[1:]
    plain = [v for v in values if v.weak is None]
    if plain and not promotes(values, type_.dtype):
        return False
    if not plain and any(v.type.dtype != type_.dtype for v in values):
        return False
    return shapes_fit([e.type.dims for e in forms], type_.dims)


@spelled("convert")
def _convert(emitter: Emitter, let: Let) -> Expr:
    x, dtype = emitter.expr(let.args[0]), np.dtype(let.attributes["dtype"])
    source, type_ = x.type.dtype, let.out.type
    if source == dtype:
        return x
    target = dtype_text(dtype)
    if isinstance(let.args[0], Literal):
        return literal(np.asarray(let.args[0].value).astype(dtype)[()])
    if not type_.dims and (dtype in (np.float64, np.complex128) and source.kind != "c" or source.kind == "b"):
        made = call(target, [x], type_)
    elif source.kind == "c" and dtype.kind not in "cb":
        real = np.dtype("float32" if source == np.complex64 else "float64")
        emitter.numpy_scalars(x)
        x = strong(x)
        made = suffix(x, ".real", type_.with_dtype(real), x.storages)
        made = made if real == dtype else suffix(made, f".astype({target})", type_)
    else:
        emitter.numpy_scalars(x)
        made = suffix(strong(x), f".astype({target})", type_)
    rounds = dtype.kind == "c" or dtype.kind == "f" and source.kind != "c"  # as promotion does, too
    return replace(made, loose=without_losses(x, source)) if rounds or np.can_cast(source, dtype) else made


@spelled("bitcast")
def _bitcast(emitter: Emitter, let: Let) -> Expr:
    x = emitter.expr(let.args[0])
    emitter.numpy_scalars(x)
    x = typed([x], let.args[0].type.dtype)[0]
    return suffix(strong(x), f".view({dtype_text(let.out.type.dtype)})", let.out.type, x.storages)


@spelled("real", "imag")
def _part(emitter: Emitter, let: Let) -> Expr:
    x = emitter.expr(let.args[0])
    emitter.numpy_scalars(x)
    return suffix(strong(x), f".{let.primitive.name}", let.out.type, x.storages)


@spelled("complex_")
def _complex(emitter: Emitter, let: Let) -> Expr:
    """NumPy has no function for it: re + 1j * im is wrong for infinities, a view of the pairs is not."""
    re, im = (strong(emitter.expr(a)) for a in let.args)
    type_ = let.out.type
    if not type_.dims:
        return call(dtype_text(type_.dtype), [call("complex", [re, im], type_)], type_)
    emitter.helpers.add("complex_of")
    return call("complex_of", [re, im], type_)


def _foreign(emitter: Emitter, let: Let) -> Expr:
    function = emitter.foreign[scipy_name(let.primitive) or ""]
    given = typed(operands(emitter, let), let.args[0].type.dtype)
    if let.primitive.name == "polygamma":
        (x,) = given
        made = call(function, [literal(np.int64(let.attributes["order"])), strong(x)], let.out.type)
        made = made if let.out.type.dims else suffix(made, "[()]", let.out.type)
        return made if x.type.dtype == np.float64 else suffix(made, f".astype({dtype_text(x.type.dtype)})", made.type)
    return call(function, [strong(x) for x in given], let.out.type)


# --- arrays from nothing ---------------------------------------------------------------------------------


@spelled("constant")
def _constant(emitter: Emitter, let: Let) -> Expr:
    """A small table stays in its expression; a large one becomes a constant of the module."""
    value = let.attributes["value"].value
    text = emitter.constants.text(value, let.out.name) if value.size > 8 or value.ndim > 1 else array_text(value)
    fresh = 1 if text.startswith("np.") else 0
    from .numpy_source_expressions import Storage

    return Expr(text, ATOM, let.out.type, operations=fresh, storages=() if fresh else (Storage(False),))


def array_text(value: np.ndarray) -> str:
    """An array as a call of np.array, exact."""
    dtype = value.dtype
    plain = dtype in (np.float64, np.int64, np.bool_, np.complex128)
    if value.size == 0:
        shape = value.shape[0] if value.ndim == 1 else value.shape
        return f"np.zeros({shape})" if dtype == np.float64 else f"np.zeros({shape}, dtype={dtype_text(dtype)})"
    odd = dtype.kind == "f" and bool(
        (
            np.isnan(value) & (value.view(f"u{dtype.itemsize}") != np.array(np.nan, dtype).view(f"u{dtype.itemsize}"))
        ).any()
    )
    if odd:
        inner = nested(value.view(f"u{dtype.itemsize}"))
        return f"np.array({inner}, dtype=np.uint{dtype.itemsize * 8}).view({dtype_text(dtype)})"
    inner = nested(value)
    return f"np.array({inner})" if plain else f"np.array({inner}, dtype={dtype_text(dtype)})"


def nested(value: np.ndarray) -> str:
    if value.ndim == 0:
        return literal(value[()]).text
    return f"[{', '.join(nested(v) for v in value)}]"


@spelled("iota")
def _iota(emitter: Emitter, let: Let) -> Expr:
    dtype, length = np.dtype(let.attributes["dtype"]), emitter.dim_expr(let.attributes["length"])
    text = f"np.arange({length.text}{'' if dtype == np.int64 else f', dtype={dtype_text(dtype)}'})"
    return Expr(text, ATOM, let.out.type, reads=length.reads, operations=1)


@spelled("eye")
def _eye(emitter: Emitter, let: Let) -> Expr:
    sizes, dtype = [emitter.dim(let.attributes[k]) for k in ("rows", "columns")], let.out.type.dtype
    diagonal = let.attributes["diagonal"]
    more = [", ".join(sizes[: 1 + (sizes[0] != sizes[1])])]
    more += [f"k={diagonal}"] * (diagonal != 0) + [f"dtype={dtype_text(dtype)}"] * (dtype != np.float64)
    return Expr(f"np.eye({', '.join(more)})", ATOM, let.out.type.plain, operations=1)


@spelled("undefined")
def _undefined(emitter: Emitter, let: Let) -> Expr:
    """Any value will do; it is never read."""
    type_ = let.out.type
    if not type_.dims:
        return replace(literal(np.zeros((), type_.dtype)[()]), parts=("undefined",))
    more = "" if type_.dtype == np.float64 else f", dtype={dtype_text(type_.dtype)}"
    return Expr(f"np.zeros({emitter.shape(type_.dims)}{more})", ATOM, type_.plain, operations=1, parts=("undefined",))


@spelled("dim_value")
def _dim_value(emitter: Emitter, let: Let) -> Expr:
    return emitter.dim_expr(let.attributes["dim"])


def known_dim(emitter: Emitter, atom: Any, depth: int = 4) -> Any:
    """The dim an i64 operand is known to be, or None."""
    if isinstance(atom, Literal):
        return int(atom.value)
    if atom.type.value is not None:
        return atom.type.value
    block = emitter.block
    if atom in block.dims or depth == 0:
        return block.dims.get(atom)
    let = block.makers.get(atom)
    if let is None or let.primitive.name not in ("add", "sub"):
        return None
    a, b = (known_dim(emitter, x, depth - 1) for x in let.args)
    return None if a is None or b is None else a + b if let.primitive.name == "add" else a - b


__all__ = [
    "foreign_functions",
    "spell",
    "spelled",
    "SPELLINGS",
    "STATEMENTS",
    "check_spelled",
    "operands",
    "typed",
    "known_dim",
    "array_text",
]
