"""Where a program asks for signals: before work that takes a while.

In: a function that is being written, and how much work is before it (schedule/work.py). Out: lines that ask.

    if mp_poll(c, 3*n*m):
        return MP_INTERRUPTED
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from metaphrase.astpasses.schedule.nest import CallFn, Combine, For, LibraryCall, While, walk
from metaphrase.astpasses.schedule.work import binds, reads
from metaphrase.core.dims import DimLike, symbols

if TYPE_CHECKING:
    from .cython_function import FunctionWriter

MOST = 2**60  # what a constant amount of work stops at
SHORT = 100_000  # less work than this is not charged where it is done once
ROUND = 100_000  # and this where it is done in each round of a loop
LEAF = 1000  # a round of so little work asks nothing, if the loop is in another one


def charge(writer: FunctionWriter, depth: int, work: DimLike) -> None:
    """Write the question for signals that stands before so much work."""
    if isinstance(work, int):
        if work > (ROUND if writer.loops else SHORT):
            writer.poll(depth, str(min(work, MOST)))
    elif not writer.loops:
        writer.poll(depth, writer.amount(work))
    elif writer.is_entry or writer.fn.fails:
        variable = writer.variable("i64", "mp_work")
        writer.line(depth, f"{variable} = {writer.amount(work)}")
        writer.line(depth, f"if {variable} > {ROUND}:")  # a test costs less than to count what is done
        writer.poll(depth + 1, variable)


def ask_each_round(writer: FunctionWriter, depth: int, loop: For) -> None:
    """Write the question in a round of a loop around others. Its work is charged before, but where a thread of a pool,
    which no signal reaches, is to ask in time. A nest without a call gcc jams and peels, which is worth more; so are
    the vectors of a loop around short ones, for which the loop around it asks."""
    if loop.kind != "seq" or not any(
        isinstance(s, (For, While, LibraryCall, Combine, CallFn)) for s in walk(loop.body)
    ):
        return
    round_ = writer.work.iteration(loop) if writer.loops else None
    if isinstance(round_, int) and round_ <= LEAF and all(isinstance(s, For) or not s.blocks for s in walk(loop.body)):
        return
    amount = "1"
    if writer.fn.is_part:
        work = writer.work.iteration(loop)
        known = symbols(work) <= set(writer.fn.sizes)
        amount = writer.amount(work) if known else str(writer.program.target.unknown)
    writer.poll(depth, amount)


def asked_first(writer: FunctionWriter) -> str:
    """The function that asks before the entry is called, or nothing for a program that is short: a question
    inside would change how the C compiler makes the loops behind it."""
    work = writer.work.before(writer.fn.body)
    if isinstance(work, int) and work <= SHORT:
        return ""
    needed, made = set(symbols(work)), []
    for stmt in reversed(writer.work.early):
        if needed & binds(stmt):
            made.append(stmt)
            needed |= reads(stmt)
    if made:
        writer.block(1, tuple(reversed(made)))
    writer.use("mp_poll")
    amount = str(min(work, MOST)) if isinstance(work, int) else writer.amount(work)
    writer.line(1, f"return mp_poll(c, {amount})")
    return writer.text(fails=True).replace("int entry(", "int work(", 1)


__all__ = ["ask_each_round", "asked_first", "charge"]
