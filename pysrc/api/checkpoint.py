"""What derivatives keep: `checkpoint` and its policies, and `loop_checkpoint`.

In: a function. Out: a function that gives the same, whose derivatives in reverse mode keep less of what it computes
and compute it again on the way back. Where no derivative is taken it is the function.

    @functools.partial(checkpoint, policy=checkpoint_policies.dots_saveable)
    def layer(x, w):
        return np.tanh(x @ w)

(Griewank & Walther, Evaluating Derivatives, ch. 12.)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, ParamSpec, TypeVar, overload

from ..core.build import Builder
from ..core.ir import Function, function_symbols
from ..core.loops import with_attribute
from ..core.policies import RULES, Policy
from ..core.types import type_symbols
from ..late import log
from ..ops.recompute import checkpoint as checkpoint_primitive
from ..source import DTypeError, SourceError, UnsupportedError
from ..tree_util import PyTreeDef
from .arguments import Spec, take_apart
from .orders import derivatives_to_come
from .program import Program, caller_span, name_of, under_way
from .staging import give_back
from .transforms import Transformed, call_inside, program_of

P = ParamSpec("P")
R = TypeVar("R")


class CheckpointPolicy:
    """Says what the derivative of a checkpointed function keeps: one of `checkpoint_policies`."""

    __slots__ = ("rule",)

    def __init__(self, rule: Policy):
        self.rule = rule

    def __repr__(self) -> str:
        name, *more = self.rule
        names = f"({', '.join(map(repr, more))})" if more else ""
        return f"checkpoint_policies.{name}{names}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CheckpointPolicy) and self.rule == other.rule

    def __hash__(self) -> int:
        return hash(self.rule)

    def __call__(self, *names: str) -> CheckpointPolicy:
        """The policy for these names; of a policy without names an error."""
        if not self.rule[0].startswith("save_"):
            raise TypeError(f"{self!r} takes no names; pass it as it is: checkpoint(f, policy={self!r})")
        return CheckpointPolicy((self.rule[0], *names))


class CheckpointPolicies:
    """JAX's policies by their names. All but those that offload to another device's memory."""

    def __getattr__(self, name: str) -> Any:
        name = {"checkpoint_dots": "dots_saveable"}.get(name, name)
        name = {"checkpoint_dots_with_no_batch_dims": "dots_with_no_batch_dims_saveable"}.get(name, name)
        if name == "save_from_both_policies":
            return _either
        if name in RULES:
            return CheckpointPolicy((name,))
        if "offload" in name:
            _refuse_offload(name)
        raise AttributeError(f"there is no policy {name!r}; there are {', '.join(sorted(RULES))}")

    def __dir__(self) -> list[str]:
        return sorted(RULES)


def _either(*policies: CheckpointPolicy) -> CheckpointPolicy:
    return CheckpointPolicy(("save_from_both_policies", *(p.rule for p in policies)))


def _refuse_offload(name: str) -> NoReturn:
    raise UnsupportedError(
        f"the policy {name}: what is kept stays in the memory of the device that runs the program",
        caller_span(),
        code="offload",
        remedy="use a policy that keeps less, or loop_checkpoint for a long loop",
    )


checkpoint_policies = CheckpointPolicies()


class Kept(Transformed):
    """A function whose derivatives keep less than they would."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call_inside(self, args, kwargs) if under_way() else self.fun(*args, **kwargs)

    @property
    def py_func(self) -> Callable[..., Any] | None:
        """The function, where staged code calls it as if it stood there: where no derivative is taken."""
        return None if derivatives_to_come() else self.fun

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        program = program_of(self.fun, structure, specs)
        if not derivatives_to_come() or program.raises:
            return program
        return program.with_function(self._kept(program.function), origin=None)

    def _kept(self, function: Function) -> Function:
        """The core program that says what derivatives keep."""
        raise TypeError(f"{type(self).__name__} does not say what is kept")

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> Any:
        if not derivatives_to_come():
            return None
        call = take_apart(args, kwargs, in_order=self.in_order)
        return give_back(self._program(call.structure, call.specs))


class Checkpoint(Kept):
    """What `checkpoint` makes."""

    kind = "checkpoint"

    def __init__(self, fun: Callable[..., Any], policy: CheckpointPolicy, prevent_cse: bool):
        super().__init__(fun)
        self.__name__ = name_of(fun)
        self.policy, self.prevent_cse = policy, prevent_cse

    def _again(self) -> tuple:
        return self.fun, self.policy, self.prevent_cse

    def _kept(self, function: Function) -> Function:
        known = function_symbols(function)
        if not all(type_symbols(r.type) <= known for r in function.results):
            log.info("%s keeps all it computes: its results have sizes that its run decides", self.__name__)
            return function
        with Builder(function.name) as builder:
            params = [builder.parameter(p.name, p.type) for p in function.params]
            return builder.function(
                checkpoint_primitive(
                    *params, function=function, policy=self.policy.rule, again=False, prevent_cse=self.prevent_cse
                )
            )


class LoopCheckpoint(Kept):
    """What `loop_checkpoint` makes."""

    kind = "loop_checkpoint"

    def __init__(self, fun: Callable[..., Any], slots: int):
        super().__init__(fun)
        self.__name__ = name_of(fun)
        self.slots = slots

    def _again(self) -> tuple:
        return self.fun, self.slots

    def _kept(self, function: Function) -> Function:
        return with_attribute(function, "slots", self.slots)


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = ...,
    policy: CheckpointPolicy | None = ...,
    static_argnums: int | Sequence[int] = ...,
    concrete: bool = ...,
) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool = ...,
    policy: CheckpointPolicy | None = ...,
    static_argnums: int | Sequence[int] = ...,
    concrete: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checkpoint(
    fun: Callable[P, R] | None = None,
    *,
    prevent_cse: bool = True,
    policy: CheckpointPolicy | None = None,
    static_argnums: int | Sequence[int] = (),
    concrete: bool = False,
) -> Any:
    """`fun`, of which derivatives in reverse mode keep the arguments and what `policy` says (one of
    `checkpoint_policies`; by default nothing more), and compute all else again. `prevent_cse=False` lets the compiler
    find that this was computed before, which is of use only where it could not anyway (the body of a loop).
    `static_argnums` and `concrete` are accepted: Python values are known while a function is translated. Also a
    decorator, with and without arguments. Raises DTypeError for what is no function or no policy. (JAX's `checkpoint`;
    Griewank & Walther, Evaluating Derivatives, ch. 12.)"""
    if fun is None:
        return functools.partial(checkpoint, prevent_cse=prevent_cse, policy=policy)
    chosen = CheckpointPolicy(("nothing_saveable",)) if policy is None else policy
    if not isinstance(chosen, CheckpointPolicy) or chosen.rule == ("save_from_both_policies",):
        raise DTypeError(
            f"checkpoint: policy={policy!r} is none of metaphrase.checkpoint_policies",
            caller_span(),
            code="checkpoint-policy",
            remedy="use one of these: " + ", ".join(f"{name}" for name in sorted(RULES)),
        )
    return Checkpoint(fun, chosen, prevent_cse)


@overload
def loop_checkpoint(fun: Callable[P, R], *, slots: int) -> Callable[P, R]: ...
@overload
def loop_checkpoint(fun: None = None, *, slots: int) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def loop_checkpoint(fun: Callable[P, R] | None = None, *, slots: int) -> Any:
    """`fun`, of whose loops the derivatives in reverse mode keep few states, and run the steps between them again on
    the way back: memory does not grow with the number of iterations. The run keeps `slots` states besides the first,
    evenly spaced; of a `while`, whose length is not known, every second one is dropped when all slots are full. The way
    back runs what is between two of them again, in chunks of at most `slots` iterations, of which it keeps what the
    plain gradient keeps of all. So up to about slots**2 iterations run twice; beyond that as many states again are kept
    between two, by the binomial schedule, which runs the fewest iterations again. Each `for` and `while` in `fun`, and
    those inside them, has as many slots; in a loop around such loops a chunk is one iteration. Also a decorator. Raises
    SourceError for slots below 1. (Griewank & Walther, Algorithm 799: revolve, ACM TOMS 26, 2000; Stumm & Walther, New
    algorithms for optimal online checkpointing, SIAM J. Sci. Comput. 32, 2010.)"""
    if not isinstance(slots, int) or isinstance(slots, bool) or slots < 1:
        raise SourceError(
            f"loop_checkpoint: slots is the number of states to keep, at least 1, not {slots!r}",
            caller_span(),
            code="loop-slots",
            remedy="give a number of states that fit into memory",
        )
    if fun is None:
        return functools.partial(loop_checkpoint, slots=slots)
    return LoopCheckpoint(fun, slots)


remat = checkpoint

__all__ = [
    "CheckpointPolicy",
    "Checkpoint",
    "LoopCheckpoint",
    "checkpoint",
    "checkpoint_policies",
    "loop_checkpoint",
    "remat",
]
