"""What is computed again on the way back: `checkpoint`, and the names and barriers that go with it.

In: operands. Out: the results of `function`, or the operand itself. The derivative of a `checkpoint` keeps what its
`policy` says (core/policies.py) and the operands; all else is computed again where it is needed. A program that is
finished has a `call` in the place of each, whose operands are behind a `barrier` where it computes again: what is
equal to what was computed before is not the same then, until `optimize` has looked for repetitions.

    y = checkpoint(x, w, function=layer, policy=("nothing_saveable",), again=False, prevent_cse=True)
    h = checkpoint_name(h, name="hidden")
"""

from __future__ import annotations

from ..core.ir import Function
from ..core.native import Region
from ..core.policies import RULES, Policy
from ..core.primitive import ByTransform, Primitive
from ..core.types import Array
from .families import elementwise, require


def _checkpoint_type(*types: Array, function: Function, policy: Policy, again: bool, prevent_cse: bool) -> tuple:
    taken = function.param_types
    require(
        len(taken) == len(types) and all(a.plain == b.plain for a, b in zip(taken, types)),
        lambda: f"checkpoint: {function.name} takes {taken}, gets {types}",
    )
    require(policy[0] in RULES, lambda: f"checkpoint: no policy is called {policy[0]}")
    return tuple(t.plain for t in function.result_types)


checkpoint = Primitive(
    "checkpoint",
    type=_checkpoint_type,
    numpy=lambda run, *args, function, policy, again, prevent_cse: tuple(run(function, *args)),
    jvp=ByTransform,
    transpose=ByTransform,
    dims=ByTransform,
    native=Region("call"),
    multiple=True,
    region=True,
    transient=True,
    doc="function(*operands), of which derivatives keep what `policy` says; `again`: it computes what was left out.",
)

checkpoint_name = elementwise(
    "checkpoint_name",
    lambda x, name: x,
    type=lambda x, name: x.plain,
    jvp=(lambda x_dot, y, x, name: x_dot,),
    transpose=(lambda y_bar, x, name: y_bar,),
    native="identity",
    doc="x, which policies call `name`.",
)

barrier = elementwise(
    "barrier",
    lambda x: x,
    type=lambda x: x.plain,
    jvp=(lambda x_dot, y, x: x_dot,),
    transpose=(lambda y_bar, x: y_bar,),
    native="identity",
    doc="x, which is not taken for the same as x.",
)

__all__ = ["barrier", "checkpoint", "checkpoint_name"]
