"""What the restarts of a staging have settled.

In: what an attempt found out. Out: the same for the next: which arguments are pinned to their values, which
loops are unrolled, and why. Example: `if x > 0` in a loop over a list pins nothing, `np.zeros(n)` pins `n`.
"""

from __future__ import annotations

from typing import Any

from metaphrase.late import dataclass, field
from metaphrase.source import Span

from .signals import TrialOver


@dataclass
class Decisions:
    """What restarts have settled: arguments pinned to their values, with the reasons, and verdicts on
    loops by place and call path."""

    pinned: dict[int, tuple[str, Span | None, str]] = field(default_factory=dict)
    unrolled: dict[tuple, TrialOver] = field(default_factory=dict)
    solutions: dict[tuple, Any] = field(default_factory=dict)
    unforeseen: dict[tuple, set] = field(default_factory=dict)  # what loops do not do although their text says it
    stacked: set[tuple] = field(default_factory=set)  # where an item of a list is read out of all of them
    rolled: dict[tuple, tuple] = field(default_factory=dict)  # and which loops around are, too
    roomed: set[tuple] = field(default_factory=set)  # where arrays of several sizes are joined
    orders: str = ""  # how arrays that loops carry lie in memory: "taken" for granted, or "unknown"
    plain_lists: bool = False  # lists of few items that loops make have their items apart
    rolls_few: bool = False  # a loop of few iterations that reads such a list is rolled
    changing: set[Any] = field(default_factory=set)  # sources whose numbers the function itself changes
    constant: set[Any] = field(default_factory=set)  # sources whose numbers staging needs as they are

    def of_loops(self) -> tuple[set, set]:
        """The loops of which something is settled."""
        return set(self.solutions), set(self.unrolled)

    def forget_loops(self, known: tuple[set, set]) -> None:
        """Forget what a staging has settled of other loops that turned out to be one of another program."""
        for settled, before in zip((self.solutions, self.unrolled), known):
            for site in settled.keys() - before:
                del settled[site]

    def must_roll(self, site: tuple, rolling: list[tuple]) -> None:
        """Decide that a loop is rolled, as long as those around are that trials roll now."""
        around = self.rolled.get(site, rolling)
        self.rolled[site] = tuple(outer for outer in around if outer in rolling and outer != site)

    def rolls(self, site: tuple, rolling: list[tuple]) -> bool:
        """Whether that was decided."""
        return site in self.rolled and all(outer in rolling for outer in self.rolled[site])
