"""Which functions of a module are compiled ahead of time, and for which types.

In: a function, and text of types. Out: the jitted function, which remembers them. Where metaphrase is installed the
module runs as ever; `metaphrase compile` makes a package of what it exports. Example:

    @mp.export("f64[n, 3], f64")
    def energy(positions, charge): ...

    forces = mp.export("f64[n, 3], f64")(mp.grad(energy))
"""

from __future__ import annotations

import inspect
from typing import Any

from ..source import SourceError
from .program import caller_span
from .public import jit
from .transforms import jitted_of
from .typed import Wrapper
from .types import parse_call, parse_call_of


def export(*signatures: str) -> Wrapper:
    """Mark a function for `metaphrase compile`, for one or several lists of arguments.

    A signature is text as in `mp.source`: `f64[n, 3]` for an array (`n` is any size, 0 and 1 included), `f64` for a
    number, containers of both, Python literals for what is static. Arguments may have names, as in `f64, k=f64`. Raises
    ValueError where it does not read, and SourceError where the function takes other arguments.
    """
    span = caller_span()
    if not all(isinstance(text, str) for text in signatures):
        raise SourceError(
            "export takes text of types, before it takes a function",
            span,
            code="export",
            remedy='say what the arguments are: @mp.export("f64[n], f64")',
        )
    for text in signatures:
        parse_call(text)
    if not signatures:
        raise SourceError(
            "export says no types", span, code="export", remedy='say what the arguments are: @mp.export("f64[n], f64")'
        )

    def marked(fun: Any) -> Any:
        made = fun if jitted_of(fun) is not None else jit(fun)
        jitted = jitted_of(made)
        assert jitted is not None
        for text in signatures:
            _refuse_other_counts(jitted.signature, text, jitted.__name__, span)
        made.exports = (*getattr(made, "exports", ()), *signatures)
        return made

    return marked


def _refuse_other_counts(signature: inspect.Signature | None, text: str, name: str, span: Any) -> None:
    if signature is None:
        return
    try:
        args, kwargs = parse_call_of(signature, text)
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise SourceError(
            f"{name} can't be exported for ({text}): {error}",
            span,
            code="export",
            remedy=f"name one type for each parameter of {signature}",
        ) from None


__all__ = ["export"]
