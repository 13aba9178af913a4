"""How hard the C compiler tries in tests: most programs are compiled at -O0, in less than half the time.

In: what `jit` gives to the compiler, and the libraries of tests/grouped.py. Out: the same, with a level of its own.
A quick run (`make test`) has a seventeenth of the programs compiled as users have it, at -O3, another one each day;
`make test-all` has all. Tests that are about the compiler's code say so:

    pytestmark = pytest.mark.optimized      # native code of these tests is what users get
"""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from turns import DAY, QUICK

from metaphrase import pipeline
from metaphrase.runtime.cython_build import Library, build

USUAL: tuple[str, ...] = ()  # as users have it
GROUPED = ("-O1",)  # of many programs in one library
QUICKEST = ("-O0",)
PARTS = 17  # a prime: a text of a test that comes every n days has its day, too
_about_code = False  # what runs is a test of the compiler's code


def level(text: str, full: tuple[str, ...] = USUAL, day: int = DAY) -> tuple[str, ...]:
    """The flags for a text: the full ones when it is its turn."""
    turn = (zlib.crc32(text.encode()) // 64 + day) % PARTS == 0
    return full if turn or _about_code or not QUICK else QUICKEST


def quick_build(text: str, *, extra_flags: tuple[str, ...] = (), **options: Any) -> Library:
    """In place of the pipeline's `build`."""
    return build(text, extra_flags=(*extra_flags, *level(text)), **options)


def install() -> None:
    pipeline.build = quick_build


def before(item: pytest.Item) -> None:
    """To be called before each test."""
    global _about_code
    _about_code = item.get_closest_marker("optimized") is not None
