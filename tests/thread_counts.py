"""The same test with several numbers of threads.

In: the numbers. Out: each of them, while threads share loops so; then there are as many as before. Example:

    for count in thread_counts(1, 2, 3):
        assert jitted(x).tobytes() == want.tobytes()
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import scipy.linalg.cython_blas

from metaphrase.runtime import threads


def thread_counts(*counts: int) -> Iterator[int]:
    before = threads.count()
    try:
        for count in counts:
            threads.use(count)
            yield count
    finally:
        threads.use(before)


def own_threads() -> int:
    """How many threads BLAS has; 0 where it can't be asked."""
    library = ctypes.CDLL(scipy.linalg.cython_blas.__file__)
    for name in ("scipy_openblas_get_num_threads", "openblas_get_num_threads"):
        if hasattr(library, name):
            return getattr(library, name)()
    return 0


__all__ = ["own_threads", "thread_counts"]
