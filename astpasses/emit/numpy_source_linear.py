"""Linear algebra as NumPy source: calls of `np.linalg`, which raise by themselves where a matrix is singular.

In: the emitter and a Let of ops/linear_algebra.py. Out: one line that binds all its results.

    x, singular = solve(a, b)     ->     x = np.linalg.solve(a, b)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from metaphrase.core.calls import derived
from metaphrase.core.ir import Function, Let, Literal, Var
from metaphrase.core.types import Array

from .numpy_source_blocks import Emitter, named
from .numpy_source_expressions import ATOM, Expr, call, dtype_text, reads_of
from .numpy_source_spellings import STATEMENTS, spelled


def _turned(a: Expr) -> str:
    return f"{a.at(ATOM)}.T" if len(a.type.dims) == 2 else f"np.swapaxes({a.text}, -1, -2)"


def _solve(let: Let, a: Expr, b: Expr) -> str:
    return f"np.linalg.solve({_turned(a) if let.attributes['transposed'] else a.text}, {b.text})"


def _eig(let: Let, a: Expr) -> str:
    # NumPy's dtype depends on the values, the program's does not
    return f"(part.astype({dtype_text(let.outs[0].type.dtype)}) for part in np.linalg.eig({a.text}))"


TEXTS: dict[str, Callable[..., str]] = {
    "solve": _solve,
    "slogdet": lambda let, a: f"np.linalg.slogdet({a.text})",
    "cholesky": lambda let, a: f"np.linalg.cholesky({a.text})",
    "qr": lambda let, a: f"np.linalg.qr({a.text}" + (', "complete")' if let.attributes["full"] else ")"),
    "eigh": lambda let, a: f"np.linalg.eigh({a.text})",
    "svd": lambda let, a: f"np.linalg.svd({a.text}" + (")" if let.attributes["full"] else ", full_matrices=False)"),
    "eig": _eig,
}
FLAGS = frozenset(("solve", "cholesky", "eigh", "svd", "eig"))  # their last result says what NumPy raises for

# What results are called that the user gave no name.
ROLES = {
    "solve": ("solution",),
    "slogdet": ("sign", "log_det"),
    "cholesky": ("lower",),
    "qr": ("q", "r"),
    "eigh": ("eigenvalues", "eigenvectors"),
    "svd": ("u", "singular_values", "vh"),
    "eig": ("eigenvalues", "eigenvectors"),
}


def _target(emitter: Emitter, let: Let, out: Var, role: str) -> str:
    block = emitter.block
    if out.name != let.primitive.name or block.carried.get(out) is not None:
        return emitter.define(out, let)
    target = emitter.names.fresh(role)
    block.names.add(target)
    block.holder[target] = out
    return target


def _only_checked(function: Function, flag: Var) -> bool:
    """Whether all that is done with a flag is to raise LinAlgError where it is set, as NumPy does itself."""
    if flag in function.results:
        return False
    for let in function.lets:
        if flag in let.args:
            raises = let.primitive.name == "check" and let.attributes["exception"] == "LinAlgError"
            passed_on = let.primitive.name in ("not_", "or_", "and_", "reduce_any", "reduce_all")
            if not raises and not (passed_on and _only_checked(function, let.out)):
                return False
    return True


def _goes_on(function: Function) -> bool:
    """Whether a program goes on where NumPy refuses a matrix: then what is computed of the matrix later, as derivatives
    are, goes on as well, though nobody reads the flag."""

    def look() -> bool:
        flags = (let.outs[-1] for let in function.lets if let.primitive.name in FLAGS)
        inside = (region for let in function.lets for region in let.regions())
        return not all(_only_checked(function, flag) for flag in flags) or any(map(_goes_on, inside))

    return derived(function, "goes on", look)


def _tuple(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _tried(emitter: Emitter, let: Let, targets: list[str], text: str) -> None:
    """The results, NaN where NumPy refuses the matrix, and the flag that says so."""
    flag = let.outs[-1]
    failed = _target(emitter, let, flag, "failed")
    emitter.hold(flag, named(failed, flag, Expr(failed, ATOM, flag.type, None, frozenset(), 1)), failed)
    outs = [(out.type.dims[len(flag.type.dims) :], dtype_text(out.type.dtype)) for out in let.outs[:-1]]
    shapes = [_tuple([emitter.dim(d) for d in dims]) for dims, _ in outs]
    if flag.type.dims:
        emitter.helpers.add("on_each_matrix")
        names = [chr(ord("a") + k) for k in range(len(let.args))]
        parts = [
            Expr(n, ATOM, Array(a.type.dtype, a.type.dims[-2:]), None, frozenset(), 1) for n, a in zip(names, let.args)
        ]
        applied = TEXTS[let.primitive.name](let, *parts)
        function = applied.removesuffix(f"({', '.join(names)})")
        if function == applied:
            function = f"(lambda {', '.join(names)}: {applied})"
        results = _tuple([f"({shape}, {dtype})" for shape, (_, dtype) in zip(shapes, outs)])
        given = ", ".join(emitter.expr(a).text for a in let.args)
        emitter.line(f"{', '.join(targets)}, {failed} = on_each_matrix({function}, {results}, {given})", let)
        return
    emitter.line("try:", let)
    emitter.line(f"    {', '.join(targets)} = {text}", let)
    emitter.line(f"    {failed} = np.False_", let)
    emitter.line("except np.linalg.LinAlgError:", let)
    for target, shape, (_, dtype) in zip(targets, shapes, outs):
        emitter.line(f"    {target} = np.full({shape}, np.nan, {dtype})", let)
    emitter.line(f"    {failed} = np.True_", let)


def _statement(emitter: Emitter, let: Let) -> None:
    args = [emitter.expr(a) for a in let.args]
    text = TEXTS[let.primitive.name](let, *args)
    outs = let.outs[:-1] if let.primitive.name in FLAGS else let.outs
    targets = [_target(emitter, let, out, role) for out, role in zip(outs, ROLES[let.primitive.name])]
    has_flag, outermost = let.primitive.name in FLAGS, emitter.blocks[0].function
    wanted = has_flag and (_goes_on(outermost) or not _only_checked(emitter.block.function, let.outs[-1]))
    if wanted:
        _tried(emitter, let, targets, text)
    else:
        emitter.line(f"{', '.join(targets)} = {text}", let)
    for out, target in zip(outs, targets):
        made = Expr(text, ATOM, out.type.plain, None, reads_of(args), 1)
        emitter.hold(out, named(target, out, made), target)
    if wanted:
        return
    for flag in let.outs[len(outs) :]:
        if flag.type.dims:
            shape = ", ".join(emitter.dim(d) for d in flag.type.dims)
            text = f"np.zeros(({shape},), dtype=bool)"
            emitter.block.env[flag] = Expr(text, ATOM, flag.type, None, frozenset(), 1)
        else:
            emitter.block.env[flag] = emitter.expr(Literal(np.False_))


STATEMENTS.update({name: _statement for name in TEXTS})


@spelled("triangular_solve")
def _triangular_solve(emitter: Emitter, let: Let) -> Expr:
    a, b = (emitter.expr(x) for x in let.args)
    part = call("np.tril" if let.attributes["lower"] else "np.triu", [a], let.args[0].type)
    text = _turned(part) if let.attributes["transposed"] else part.text
    return Expr(f"np.linalg.solve({text}, {b.text})", ATOM, let.out.type.plain, None, reads_of([a, b]), 2)


@spelled("det")
def _det(emitter: Emitter, let: Let) -> Expr:
    return call("np.linalg.det", [emitter.expr(let.args[0])], let.out.type)


@spelled("cofactors", "inverse")
def _helper(emitter: Emitter, let: Let) -> Expr:
    function = {"cofactors": "cofactors_of", "inverse": "inverse_or_nan"}[let.primitive.name]
    emitter.helpers.add(function)
    return call(function, [emitter.expr(a) for a in let.args], let.out.type)


@spelled("fft")
def _fft(emitter: Emitter, let: Let) -> Expr:
    (x,) = (emitter.expr(a) for a in let.args)
    axis = let.attributes["axis"]
    options = "" if axis == len(x.type.dims) - 1 else f", axis={axis}"
    if let.attributes["inverse"]:
        return call(
            "np.fft.ifft", [x], let.out.type, f'{options.removeprefix(", ")}{", " * bool(options)}norm="forward"'
        )
    return call("np.fft.fft", [x], let.out.type, options.removeprefix(", "))


@spelled("rfft", "irfft")
def _rfft(emitter: Emitter, let: Let) -> Expr:
    (x,), axis = (emitter.expr(a) for a in let.args), let.attributes["axis"]
    options = [] if axis == len(x.type.dims) - 1 else [f"axis={axis}"]
    if let.primitive.name == "rfft":
        return call("np.fft.rfft", [x], let.out.type, ", ".join(options))
    options = [emitter.dim(let.attributes["size"]), *options, 'norm="forward"']
    return call("np.fft.irfft", [x], let.out.type, ", ".join(options))


__all__ = ["TEXTS", "FLAGS"]
