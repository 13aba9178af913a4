"""Loops whose rounds the host starts before it knows whether they are wanted.

In: the host's statements of a function, and its kernels. Out: the kernels, where the one that works out whether a loop
goes on says that those behind its round do nothing, if it does not. The host then asks for several rounds at a time:

    while c.read(answer_at):            def round_0(x, y):
        c.each("step_1", n, x, y)           c.each("step_1", n, x, y)
        c.one("step_2", y, answer_at)  ->   c.one("step_2", y, answer_at)
        x, y = y, x                         return y, x
                                        x, y = c.rounds(round_0, answer_at, (x, y))
"""

from __future__ import annotations

from dataclasses import replace

from .nest import Buf, CallFn, Fn, Grow, Load, Stmt, Swap, While, walk


def started_ahead(body: tuple[Stmt, ...], kernels: list[Fn]) -> list[Fn]:
    """The kernels, with what ends such loops."""
    ending: dict[str, tuple[str, int]] = {}
    by_name = {fn.name: fn for fn in kernels}
    for loop in walk(body):
        if isinstance(loop, While) and (cell := _answer(loop)) is not None:
            ending |= _ending(loop.body, cell, by_name)
    return [_ends(fn, *ending[fn.name]) if fn.name in ending else fn for fn in kernels]


def _ends(fn: Fn, answer: str, behind: int) -> Fn:
    assert fn.kernel is not None
    return replace(fn, fails=True, kernel=replace(fn.kernel, ends=(answer, behind)))


def _answer(loop: While) -> Buf | None:
    """The array of one element that says whether a loop goes on."""
    if not isinstance(loop.condition, Load) or loop.before or loop.limit is not None:
        return None
    return loop.condition.buf


def _ending(body: tuple[Stmt, ...], answer: Buf, kernels: dict[str, Fn]) -> dict[str, tuple[str, int]]:
    """The kernel of a round that gives the answer, with the launches that are behind it; nothing where the host does
    more than to launch."""
    calls = [s for s in body if isinstance(s, CallFn)]
    if len(calls) + sum(isinstance(s, Swap) for s in body) < len(body):
        return {}
    if any(s.fn not in kernels or any(isinstance(t, Grow) for t in walk(kernels[s.fn].body)) for s in calls):
        return {}
    asks = [k for k, s in enumerate(calls) if answer in s.writes]
    if len(asks) != 1 or kernels[calls[asks[0]].fn].kernel.count is not None:  # type: ignore[union-attr]
        return {}
    return {calls[asks[0]].fn: (answer.name, len(calls) - 1 - asks[0])}


__all__ = ["started_ahead"]
