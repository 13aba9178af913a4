"""Where a derivative meets a function with rules of the user's own: the rules, in its place.

In: a Let that is `custom_jvp`, `custom_vjp` or `custom_transpose`. Out: for jvp its results and their tangents, for
batch the same Let of batched functions, for transpose cotangents.

    y = custom_jvp(x, function=f, rule=f_jvp)        ->   y, y_dot = call(x, x_dot, function=f_jvp)

    y = custom_vjp(x, function=f, forward=f_fwd, backward=f_bwd)
        jvp    ->   y, c = call(x, function=f_fwd)
                    y_dot = custom_transpose(c, x_dot, backward=f_bwd, wanted=(True,), of="f")
        split, and the transpose of the linear side      ->   x_bar = call(c, y_bar, function=f_bwd)

Tangents that are zero reach a jvp rule as zeros, as cotangents reach a backward rule, and a rule that was given with
`symbolic_zeros` as the variant of it that is for those that are there. What a rule gives that is zero wherever it is
called has no tangent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metaphrase.core.build import Builder, current, match_dims, substitute_function
from metaphrase.core.calls import derived
from metaphrase.core.custom import refuse_forward
from metaphrase.core.dims import DimLike
from metaphrase.core.ir import Atom, Function, Let, Literal, Var, function_symbols
from metaphrase.core.types import has_tangent, type_symbols
from metaphrase.ops.arrays import zeros
from metaphrase.ops.custom_rules import custom_jvp, custom_transpose, custom_vjp
from metaphrase.ops.families import expand_batch
from metaphrase.ops.reduce import reduce_sum
from metaphrase.ops.regions import call
from metaphrase.source import UnsupportedError

from .common import select_marked, spread

Batch = Callable[..., tuple[Function, list[bool]]]


# ---- jvp ------------------------------------------------------------------------------------------------


def _tangents_of(atoms: Sequence[Atom]) -> list[bool]:
    return [has_tangent(a.type) for a in atoms]


def _refuse_consts(let: Let, arg_dots: Sequence[Atom | None]) -> None:
    """What a function reads without taking it, or takes as `nondiff_argnums`, its rule knows no tangents of."""
    for arg, dot in zip(let.args[: let.attributes["consts"]], arg_dots):
        if dot is not None:
            name = let.attributes["function"].name
            what = f"`{arg.name}`" if isinstance(arg, Var) else "a number"
            raise UnsupportedError(
                f"the derivative reaches {what}, which {name} reads from outside of it or takes as nondiff_argnums; "
                f"the rule of {name} says nothing of it",
                let.span,
                code="custom-capture",
                remedy="make it an argument that the rule differentiates (or gives None or zeros for)",
            )


def _jvp_of_jvp(let: Let, arg_dots: list[Atom | None]) -> tuple:
    _refuse_consts(let, arg_dots)
    consts, rule = let.attributes["consts"], let.attributes["rule"]
    count, targets = len(let.outs), let.args[consts:]
    given = [(a, d) for a, d in zip(targets, arg_dots[consts:]) if has_tangent(a.type)]
    variants = let.attributes.get("variants")
    if variants is not None:
        rule = _fitting(variants(tuple(d is not None for _, d in given)), let.args)
    dots = [zeros(a.type.plain) if d is None else d for a, d in given]
    results = applied(rule, (*let.args, *dots))
    zero = derived(rule, ("zero", count), lambda: [_is_zero(rule, r) for r in rule.results[count:]])
    out_dots = (None if z else d for d, z in zip(results[count:], zero))
    return results[:count], [next(out_dots) if m else None for m in _tangents_of(let.outs)]


def _is_zero(function: Function, result: Atom) -> bool:
    """Whether a result is zero, whatever the function is given."""
    if isinstance(result, Literal):
        return not result.value
    for let in function.lets:
        if result in let.outs and let.primitive.name == "broadcast":
            return _is_zero(function, let.args[0])
    return False


def _jvp_of_vjp(let: Let, arg_dots: list[Atom | None]) -> tuple:
    _refuse_consts(let, arg_dots)
    consts, forward, backward = (let.attributes[k] for k in ("consts", "forward", "backward"))
    count = len(let.outs)
    wanted = [d is not None for a, d in zip(let.args[consts:], arg_dots[consts:]) if has_tangent(a.type)]
    variants, more = let.attributes.get("variants"), {}
    if variants is not None:
        forward, behind = variants(tuple(wanted))
        forward, backward = _fitting(forward, let.args), behind((True,) * sum(_tangents_of(let.outs)))
        more = {"variants": behind}
    results = applied(forward, let.args)
    residuals = results[count:]
    dots = custom_transpose(
        *residuals,
        *(d for d in arg_dots[consts:] if d is not None),
        backward=_fitting(backward, residuals),
        wanted=tuple(wanted),
        of=let.attributes["function"].name,
        **more,
    )
    return results[:count], spread(dots, _tangents_of(let.outs))


def _fitting(function: Function, args: Sequence[Atom]) -> Function:
    """The function with the sizes of its first arguments."""
    sizes: dict[str, DimLike] = {}
    for param, arg in zip(function.params, args):
        match_dims(param.type, arg.type, sizes)
    return substitute_function(function, sizes)


def applied(function: Function, args: Sequence[Atom]) -> tuple[Atom, ...]:
    """A call, or the function written out where results have sizes that its run decides."""
    known = function_symbols(function).union(*(type_symbols(a.type) for a in args))
    if all(type_symbols(r.type) <= known for r in function.results):
        return call(*args, function=function)
    builder = current()
    assert builder is not None
    return builder.replay(function, args)


def _jvp_of_transpose(let: Let, arg_dots: list[Atom | None]) -> tuple:
    refuse_forward(let.attributes["of"], let.span)


# ---- transpose ------------------------------------------------------------------------------------------


def transposed(let: Let, out_bars: Sequence[Atom | None]) -> list[Atom]:
    """The cotangents of the tangents that a `custom_transpose` takes."""
    wanted, backward = let.attributes["wanted"], let.attributes["backward"]
    residuals = let.args[: len(let.args) - sum(wanted)]
    variants = let.attributes.get("variants")
    if variants is not None:
        backward = _fitting(variants(tuple(bar is not None for bar in out_bars)), residuals)
    bars = [zeros(out.type.plain) if bar is None else bar for out, bar in zip(let.outs, out_bars)]
    return select_marked(applied(backward, (*residuals, *bars)), wanted)


# ---- batch ----------------------------------------------------------------------------------------------


def _batch_jvp(batch: Batch, size: DimLike, let: Let, args: tuple, marks: list[bool]) -> tuple:
    """The results of the function and of the rule are batched alike, each tangent as what it is the tangent of."""
    function, rule, consts = (let.attributes[k] for k in ("function", "rule", "consts"))
    variants: Any = let.attributes.get("variants")
    has, count = _tangents_of(let.outs), len(let.outs)
    dots = select_marked(marks[consts:], _tangents_of(let.args[consts:]))
    out = [False] * count
    while True:
        plain, found = batch(function, size, marks, out)
        ruled, more = batch(rule, size, [*marks, *dots], [*out, *select_marked(out, has)])
        again = spread(more[count:], has)
        new = [bool(a or b or c) for a, b, c in zip(found, more, again)]
        if new == out:
            break
        out = new

    def in_lanes(marks_of_dots: tuple[bool, ...]) -> Function:
        other = _fitting(variants(marks_of_dots), let.args)
        made, found = batch(other, size, [*marks, *dots], [*out, *select_marked(out, has)])
        return named_as(other, made) if found == [*out, *select_marked(out, has)] else named_as(rule, ruled)

    told = {} if variants is None else {"variants": _InLanes(in_lanes)}
    return custom_jvp(*args, function=named_as(function, plain), rule=named_as(rule, ruled), consts=consts, **told), out


class _InLanes:
    """The variants of a rule in a batch."""

    def __init__(self, make: Callable[[tuple[bool, ...]], Any]):
        self.make = make

    def __call__(self, marks: tuple[bool, ...]) -> Any:
        return self.make(marks)

    def __repr__(self) -> str:
        return "None"  # as those that it is made of


def _batch_vjp(batch: Batch, size: DimLike, let: Let, args: tuple, marks: list[bool]) -> tuple:
    function, forward, backward, consts = (let.attributes[k] for k in ("function", "forward", "backward", "consts"))
    variants: Any = let.attributes.get("variants")
    has, count = _tangents_of(let.outs), len(let.outs)
    out = [True] * count  # each lane has a cotangent of its own, of what is one for all lanes, too
    plain, _ = batch(function, size, marks, out)
    targets = select_marked(marks[consts:], _tangents_of(let.args[consts:]))

    def rules(forward: Function, backward: Function) -> tuple[Function, Function]:
        ahead, found = batch(forward, size, marks, [*out, *(False for _ in forward.results[count:])])
        back = _batched_backward(batch, size, backward, [*found[count:], *select_marked(out, has)], targets)
        return named_as(forward, ahead), back

    def in_lanes(wanted: tuple[bool, ...]) -> tuple[Function, _InLanes]:
        other, behind = variants(wanted)
        other = _fitting(other, let.args)
        every = (True,) * sum(has)
        return rules(other, behind(every))[0], _InLanes(lambda bars: rules(other, behind(bars))[1])

    told: dict[str, Any] = {} if variants is None else {"variants": _InLanes(in_lanes)}
    told |= {"through": True} if let.attributes.get("through") else {}
    ahead, back = rules(forward, backward)
    return custom_vjp(
        *args, function=named_as(function, plain), forward=ahead, backward=back, consts=consts, **told
    ), out


def _batch_transpose(batch: Batch, size: DimLike, let: Let, args: tuple, marks: list[bool]) -> tuple:
    backward, wanted, of = (let.attributes[k] for k in ("backward", "wanted", "of"))
    kept = len(args) - sum(wanted)
    dots = [expand_batch(size, a, m) for a, m in zip(args[kept:], marks[kept:])]
    count = len(let.outs)
    back = _batched_backward(batch, size, backward, [*marks[:kept], *[True] * count], list(wanted))
    return custom_transpose(*args[:kept], *dots, backward=back, wanted=wanted, of=of), [True] * count


def _batch_vmap(batch: Batch, size: DimLike, let: Let, args: tuple, marks: list[bool]) -> tuple:
    """What the rule makes of all lanes."""
    lanes, out = let.attributes["rule"](size, marks)
    return applied(lanes, args), out


def _batched_backward(
    batch: Batch, size: DimLike, backward: Function, marks: list[bool], targets: list[bool]
) -> Function:
    """The backward function of all lanes; cotangents of what is one for all lanes are added up."""
    inner, found = batch(backward, size, marks, targets)
    if found == targets:
        return named_as(backward, inner)
    with Builder(backward.name) as builder:
        builder.params, builder.lets = list(inner.params), list(inner.lets)
        results = zip(inner.results, found, targets)
        return builder.function([reduce_sum(r, axes=(0,)) if f and not t else r for r, f, t in results])


def named_as(function: Function, made: Function) -> Function:
    return Function(function.name, made.params, made.lets, made.results)


JVP: dict[str, Callable[..., tuple]] = {
    "custom_jvp": _jvp_of_jvp,
    "custom_vjp": _jvp_of_vjp,
    "custom_transpose": _jvp_of_transpose,
}
BATCH: dict[str, Callable[..., tuple]] = {
    "custom_jvp": _batch_jvp,
    "custom_vjp": _batch_vjp,
    "custom_transpose": _batch_transpose,
    "custom_vmap": _batch_vmap,
}

__all__ = ["BATCH", "JVP", "Batch", "applied", "named_as", "transposed"]
