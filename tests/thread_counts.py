"""The same test with several numbers of threads.

In: the numbers. Out: each of them, while threads share loops so; then there are as many as before. Example:

    for count in thread_counts(1, 2, 3):
        assert jitted(x).tobytes() == want.tobytes()
"""

from __future__ import annotations

from collections.abc import Iterator

from metaphrase.runtime import threads


def thread_counts(*counts: int) -> Iterator[int]:
    before = threads.count()
    try:
        for count in counts:
            threads.use(count)
            yield count
    finally:
        threads.use(before)


__all__ = ["thread_counts"]
