"""Whose a number is that a loop carries: not known in a pass over its body, which may be the first.

In: nothing. Out: `Doubt`, which numbers have (`Number.doubts`) that are made of such a one. Example: in
`for i in range(n): t = t + x[i]` from `t = 0.0`, `t` is Python's at first, and NumPy's in all iterations that matter.
"""

from __future__ import annotations


class Doubt:
    """Whether a loop's variable, a float or an int of Python's before the loop, is one of NumPy's in it: `strong`, once
    a pass has come to its end. `asked`: whether something depends on that. `within`: the same of the variables of loops
    around, from which this one is taken."""

    def __init__(self, within: frozenset[Doubt] = frozenset()) -> None:
        self.asked, self.strong, self.within = False, False, within

    def ask(self) -> None:
        self.asked = True
        for doubt in self.within:
            doubt.ask()


SURE: frozenset[Doubt] = frozenset()
