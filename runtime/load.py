"""A file -> the library that it is, loaded.

In: a path. Out: a handle. Example: `load(path).metaphrase_program`. Raises OSError when it is no library,
CompilerMissing where none may be loaded.

A file system may be mounted so that nothing on it runs (noexec). What stands in the file is then loaded from
memory, as any just-in-time compiler's code is.
"""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING

from .cache import read_own
from .compiler import CompilerMissing

if TYPE_CHECKING:
    from pathlib import Path


def load(path: str | Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(os.fspath(path))
    except OSError:
        if not os.statvfs(path).f_flag & os.ST_NOEXEC:
            raise
    # The descriptor stays open: the loader knows a library by its name, and the number would come again.
    try:
        descriptor = os.memfd_create(os.path.basename(path))
        with open(descriptor, "wb", closefd=False) as file:
            file.write(read_own(path))
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    except OSError as error:
        raise CompilerMissing(
            f"no library may be loaded here, neither from {os.path.dirname(path)} nor from memory: {error}"
        ) from error


__all__ = ["load"]
