"""The functions of SciPy that are programs, on staged values; imported when a program calls one.

In: the arguments of the call, as SciPy takes them. Out: what the program of `library.scipy_linalg` of the same name
gives. A parameter that the program lacks must be left as it is, unless it says only how to compute. What
solves equations is in libraries of ours that are named in `core/foreign.py`.

    scipy.linalg.inv(a, overwrite_a=True)          inv(a)
    scipy.linalg.eigh(a, b)                        refused: b
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from metaphrase.astpasses.library import scipy_linalg
from metaphrase.core.foreign import Foreign

from ..staging.demand import need_concrete
from ..staging.session import session
from ..values.staged_values import Number
from .call import TABLE, call_value, handles, has_staged

NAMES = """solve solve_triangular inv det lstsq pinv cholesky cho_factor cho_solve svd svdvals eigh eigvalsh
    eigvals norm block_diag toeplitz hankel circulant expm""".split()
_HOW = ("overwrite_a", "overwrite_b", "overwrite_c", "lapack_driver", "driver")
_OTHER_RESULTS = ("gelsy",)  # a driver that gives no singular values


@handles(scipy_linalg.refuse)
def refuse_what(what: str) -> None:
    raise session().unsupported(
        f"{what} has no translation", "leave it out, write it in steps, or map it over a stack with metaphrase.vmap"
    )


def _handler(function: Any, program: types.FunctionType) -> Callable:
    theirs = inspect.signature(function)
    ours = inspect.signature(program).parameters

    def handler(*args: Any, **keywords: Any) -> Any:
        if not has_staged((args, keywords)):
            return function(*args, **keywords)
        try:
            given = theirs.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        for name in [n for n in given.arguments if n not in ours]:
            value, default = given.arguments.pop(name), theirs.parameters[name].default
            what = f"scipy.linalg.{function.__name__} with {name}="
            if isinstance(value, Number) and value.python is type(default):  # SciPy's own function, jitted
                value = need_concrete(value, what, type(default))
            if value is default or type(value) is type(default) is int and value == default:
                continue
            if has_staged(value) or name not in _HOW or value in _OTHER_RESULTS:
                refuse_what(what)
        return call_value(program, given.args, given.kwargs)

    return handler


for _name in NAMES:
    if (_function := Foreign("scipy.linalg", _name).imported()) is not None:
        TABLE[_function] = _handler(_function, getattr(scipy_linalg, _name))
