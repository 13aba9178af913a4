"""A pytree of arrays as one vector, and back, by JAX's name.

In: a pytree of numbers and arrays. Out: the vector of all elements, and a function that makes the pytree of such a
vector.

>>> flat, unravel = ravel_pytree({"a": np.ones(2), "b": 3.0})
>>> flat, unravel(flat * 2)
(array([1., 1., 3.]), {'a': array([2., 2.]), 'b': np.float64(6.0)})
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import tree


def joined(value: Any) -> Any:
    """The elements of all leaves, in their order."""
    leaves = [np.reshape(leaf, -1) for leaf in tree.leaves(value)]
    return np.concatenate(leaves) if leaves else np.zeros(0)


def ravel_pytree(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The vector of all elements, and what makes such a pytree of it. The vector has the dtype that all leaves have in
    common, what is made of it, or of rows of such vectors, has theirs."""
    leaves, structure = tree.flatten(value)
    arrays = [np.asarray(leaf) for leaf in leaves]

    def unravel(flat: Any) -> Any:
        parts, start = [], 0
        for array in arrays:
            part = np.reshape(flat[..., start : start + array.size], (*flat.shape[:-1], *array.shape)).astype(
                array.dtype
            )
            parts.append(part[()])
            start += array.size
        return structure.unflatten(parts)

    return joined(value), unravel


__all__ = ["joined", "ravel_pytree"]
