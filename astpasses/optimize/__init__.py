"""Program to program, the same answers with less work: `optimize` runs the ordered list of passes to a
fixpoint.

In: a core Function. Out: a core Function.
"""

from .optimize import PASSES, optimize

__all__ = ["optimize", "PASSES"]
