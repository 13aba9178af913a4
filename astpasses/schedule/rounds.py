"""Rounds of sweeps over arrays become one sweep over blocks of elements, each of which goes through all rounds.

In: the folded tree. Out: the same, where loops around sweeps, loops that run over the same elements, and sweeps
beside them, are one parallel loop over blocks, if what happens to an element has nothing to do with the others:

    for i in range(n): x[i] = a[i]              for b in range(-(-n // 1024)):
    t = 0.0                                         count = min(1024, n - 1024*b)
    for k in range(steps):                          for i in range(count): x[1024*b + i] = a[1024*b + i]
        for i in range(n):            ->            t_1 = t
            x[i] = x[i] + h*f(x[i], t)              for k in range(steps):
        t = t + h                                       for i in range(count): x[1024*b + i] = ...
                                                        t_1 = t_1 + h
                                                for k in range(steps): t = t + h        # where t is wanted

An array that the caches can't hold is then read and written once, not once a round. Threads share all rounds at once.
On a GPU a block is an element, which a thread takes through all rounds in variables: one kernel, where each round had
one.
What the way back of a derivative needs of the rounds is kept of a block, not of the whole: a temporary that only these
loops use is as long as a block. Each element sees the same operations in the same order. This is strip-mining and
interchange (Wolfe, "More iteration space tiling", 1989).
"""

from __future__ import annotations

from dataclasses import replace

from .lifetimes import Lifetimes, lifetimes_in
from .nest import Buf, Fn, For, Stmt, Swap, While, local, touched, walk
from .runs import Run, may_be_rounds
from .swaps import exchange
from .target import Target


def in_rounds(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    """The body of a function with such loops turned inside out."""
    if target.threads and any(isinstance(s, Swap) for loop in _parallel(fn.body) for s in walk((loop,))):
        fn = replace(fn, body=_with_exchanges(fn.body, fn, set(), in_element=True))
    if not any(map(may_be_rounds, walk(fn.body))):
        return fn.body
    if target.threads and any(isinstance(s, Swap) for s in walk(fn.body)):
        spares: set[Buf] = set()
        exchanging = _with_exchanges(fn.body, fn, spares)
        if spares and not _is_round_of(spares, body := in_rounds(replace(fn, body=exchanging), target)):
            return body
    return _turned(fn, target)


def _is_round_of(spares: set[Buf], block: tuple[Stmt, ...], in_round: bool = False) -> bool:
    """Whether a loop that is no element's exchanges elements through some of these variables."""
    for stmt in block:
        if isinstance(stmt, For) and stmt.kind == "par":
            if in_round and any(buf in spares for s in walk((stmt,)) for buf in touched(s)):
                return True
        elif any(_is_round_of(spares, b, in_round or isinstance(stmt, (For, While))) for b in stmt.blocks):
            return True
    return False


def _parallel(block: tuple[Stmt, ...]) -> list[Stmt]:
    return [s for s in walk(block) if isinstance(s, For) and s.kind == "par"]


def _with_exchanges(
    block: tuple[Stmt, ...], fn: Fn, spares: set[Buf], in_element: bool = False, inside: bool = False
) -> tuple[Stmt, ...]:
    """The statements with arrays that change places in a loop exchanging their elements, through the variables
    `spares`: where an element goes through all rounds by itself it has one of each array only. `in_element`: in a
    parallel loop alone, whose iterations have no arrays to exchange but their own."""
    rows: list[Stmt] = []
    for stmt in block:
        is_loop = isinstance(stmt, (For, While)) if not in_element else isinstance(stmt, For) and stmt.kind == "par"
        if isinstance(stmt, Swap) and inside:
            stmt = _exchange(stmt, fn, spares)
        elif stmt.blocks:
            blocks = (_with_exchanges(inner, fn, spares, in_element, inside or is_loop) for inner in stmt.blocks)
            stmt = stmt.with_blocks(tuple(blocks))
        rows.append(stmt)
    return tuple(rows)


def _exchange(stmt: Swap, fn: Fn, spares: set[Buf]) -> Stmt:
    if not stmt.a.dims or stmt.a.dims != stmt.b.dims or stmt.a.dynamic or stmt.b.dynamic:
        return stmt
    spare = local(fn.names.fresh("spare"), stmt.a.dtype)
    spares.add(spare)
    return exchange(stmt, spare, fn.names.fresh)


def _turned(fn: Fn, target: Target) -> tuple[Stmt, ...]:
    turned: list[Run] = []
    body = _in_block(fn.body, fn, target, lifetimes_in(fn), turned)
    if target.threads and turned:  # the elements of a row may go their own ways, too
        return in_rounds(replace(fn, body=body), target)
    return body


def _in_block(
    block: tuple[Stmt, ...], fn: Fn, target: Target, lifetimes: Lifetimes, turned: list[Run]
) -> tuple[Stmt, ...]:
    """The statements with such loops turned inside out; to `turned` come those that were."""

    def inside(stmt: Stmt) -> Stmt:
        if not any(map(may_be_rounds, walk((stmt,)))):
            return stmt
        return stmt.with_blocks(tuple(_in_block(inner, fn, target, lifetimes, turned) for inner in stmt.blocks))

    rows: list[Stmt] = []
    if not any(map(may_be_rounds, block)):
        return tuple(map(inside, block))
    run = Run(fn, target, lifetimes, in_rounds)
    for stmt in (*block, None):
        if stmt is not None and run.takes(stmt):
            continue
        made = run.written()
        turned += [run] if made else []
        rows += made or map(inside, run.statements)
        run = Run(fn, target, lifetimes, in_rounds)
        if stmt is not None and not run.takes(stmt):
            rows.append(inside(stmt))
    return tuple(rows)


__all__ = ["in_rounds"]
