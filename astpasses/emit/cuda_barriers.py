"""Where the threads of a block wait for one another.

In: the statements of a kernel that a block does together, in their order. Out: whether `__syncthreads` has to stand
before one of them: it reads what another thread may have stored since they last waited, or stores where one may have
read.

    s[j] = exp(x[j])          # each thread has its own j
    __syncthreads();
    t = s[0] + s[1];
"""

from __future__ import annotations

from metaphrase.astpasses.schedule.nest import Buf, Stmt, loaded, walk


def _arrays(stmt: Stmt, whole: bool) -> tuple[set[Buf], set[Buf]]:
    """The arrays that threads share and that a statement reads, and those that it stores into; `whole`: with the
    statements inside it."""
    inside = list(walk((stmt,))) if whole else [stmt]
    reads = {load.buf for s in inside for load in loaded(s)}
    accesses = [a for s in inside for a in s.accesses]
    reads |= {a.buf for a in accesses if not a.write}
    writes = {a.buf for a in accesses if a.write}
    return _shared(reads), _shared(writes)


def _shared(bufs: set[Buf]) -> set[Buf]:
    return {buf for buf in bufs if buf.dims and buf.space not in ("frame", "const")}


class Barriers:
    """What the threads of a block have read and stored since they last waited."""

    def __init__(self) -> None:
        self.reads: set[Buf] = set()
        self.writes: set[Buf] = set()
        self.entered: list[Barriers] = []

    def passed(self) -> None:
        """All have waited."""
        self.reads, self.writes = set(), set()

    def before(self, stmt: Stmt) -> bool:
        """Whether they wait before a statement that all do; of a branch or loop, before its condition."""
        return self._before(*_arrays(stmt, False))

    def before_divided(self, stmt: Stmt) -> bool:
        """Whether they wait before a loop that they divide."""
        return self._before(*_arrays(stmt, True))

    def _before(self, reads: set[Buf], writes: set[Buf]) -> bool:
        waits = self._meets(reads, writes)
        self.reads |= reads
        self.writes |= writes
        return waits

    def _meets(self, reads: set[Buf], writes: set[Buf]) -> bool:
        """Whether they wait before arrays are read, and others stored into."""
        waits = bool(reads & self.writes or writes & (self.reads | self.writes))
        if waits:
            self.passed()
        return waits

    def enter(self, stmt: Stmt) -> bool:
        """A loop that all do begins: whether they wait before it, rather than in each round."""
        waits = self._meets(*_arrays(stmt, True))
        self.entered.append(self.copy())
        return waits

    def behind_round(self, stmt: Stmt) -> bool:
        """Whether they wait at the end of a round of it, which may be the last one, or not even the first."""
        waits = self._meets(*_arrays(stmt, True))
        joined = self.joined(self.entered.pop())
        self.reads, self.writes = joined.reads, joined.writes
        return waits

    def copy(self) -> Barriers:
        made = Barriers()
        made.reads, made.writes, made.entered = set(self.reads), set(self.writes), list(self.entered)
        return made

    def joined(self, other: Barriers) -> Barriers:
        """Behind a branch, where either side may have run."""
        made = self.copy()
        made.reads |= other.reads
        made.writes |= other.writes
        return made


__all__ = ["Barriers"]
