"""Names for annotations, as in `jax.typing`.

In: nothing. Out: `Array`, `ArrayLike`, `DTypeLike`. Example: `def f(x: ArrayLike) -> Array: ...`.
"""

from numpy import ndarray as Array
from numpy.typing import ArrayLike, DTypeLike

__all__ = ["Array", "ArrayLike", "DTypeLike"]
