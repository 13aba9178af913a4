"""What an IPython session has run so far: of names that cells made it stands for the text of a file.

In: the name of a module. Out: the text of all cells up to the one that runs now, in their order, if it is IPython's
`__main__`; None if it is another one. Example:

    session_text("__main__")        # "k = 2.0\\0def helper(x): return k * x\\0f(x)"

A cell that is edited, left out, or run twice makes another text: a plan is for a session that has run the same
cells. What ran beside them is text too (startup files), or no plan is kept (`NotPortable`): after `%run` and the like,
of which the cell does not say what they ran, where IPython was told to run something first, and in other threads,
which do not know how far the cells have come. What `exec` and Python's own prompt define has no plan at all: nobody
knows what else has run there, and made the names that a program relies on.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import threading
from collections.abc import Iterator
from typing import Any

from ...digests import sha256
from ...late import module
from .fingerprints import NotPortable

pathlib = module("pathlib")

# Magics that run nothing but what stands in the cell.
HARMLESS = frozenset(
    """time timeit prun memit mprun lprun capture matplotlib config precision xmode colors doctest_mode pip conda uv cd
    pwd ls ll env set_env who whos who_ls pinfo pinfo2 psource pdoc pfile history hist load_ext reload_ext autoreload
    debug pdb tb html markdown latex svg javascript js""".split()
)
_MAGIC = re.compile(r"run_(?:line|cell)_magic\(\W*(\w*)")
_TOLD = ("exec_lines", "exec_files", "code_to_run", "file_to_run", "module_to_run")


def session_text(name: str) -> str | None:
    """See the head of this file."""
    shell = _shell()
    if shell is None or sys.modules.get(name) is not shell.user_module:
        return None
    if threading.current_thread() is not threading.main_thread():
        raise NotPortable("cells, in another thread")
    told = [what for what in _TOLD if getattr(shell.parent, what, None)]
    if told:
        raise NotPortable(f"what IPython was told to run ({told[0]})")
    cells = shell.history_manager.input_hist_parsed[1:]
    if shell.execution_count - len(cells) not in (0, 1) or not all(cells):  # IPython 8 counts a cell when it ends
        raise NotPortable("cells that IPython has forgotten")
    for magic in _MAGIC.findall("\n".join(cells)):
        if magic not in HARMLESS:
            raise NotPortable(f"what a magic of IPython ran (%{magic})")
    return "\0".join([*_startup(shell), *cells])


def _shell() -> Any:
    """IPython's, if this process is one of its sessions."""
    tool = sys.modules.get("IPython")
    return tool.get_ipython() if tool is not None and hasattr(tool, "get_ipython") else None


def _startup(shell: Any) -> Iterator[str]:
    """The texts of the files that run before the first cell."""
    paths = [os.environ.get("PYTHONSTARTUP", "")]
    if shell.profile_dir is not None:
        paths += sorted(map(str, pathlib.Path(shell.profile_dir.startup_dir).glob("*.*py")))
    for path in filter(os.path.isfile, paths):
        if path.endswith(".ipy"):
            raise NotPortable(f"what {path} ran")
        yield pathlib.Path(path).read_text(encoding="utf-8", errors="replace")


def digest_of_cell(path: str) -> str | None:
    """Of the text of a cell, by the name that Python has for its file; None for a file on disk, or none."""
    lines = linecache.cache.get(path, ())
    if len(lines) < 3 or os.path.isfile(path):
        return None
    return sha256("".join(lines[2]).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def file_of_cell(digest: str) -> str | None:
    """The name that this process has for the file of a cell."""
    return next((path for path in [*linecache.cache] if digest_of_cell(path) == digest), None)


__all__ = ["digest_of_cell", "file_of_cell", "session_text"]
