"""`metaphrase doctor`: whether everything that compiling needs is there, tried out.

In: nothing. Out: one line a thing that was looked at; status 1 when something does not work. Example:
`metaphrase doctor`.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable

from .console import answer, table
from .support import ROWS, markdown


def add(commands: argparse._SubParsersAction) -> None:
    parser = commands.add_parser(
        "doctor", help="check the installation", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--support", action="store_true", help="print which Python can be translated")
    parser.set_defaults(run=run)


def _python() -> str:
    return f"{platform.python_version()} at {sys.executable}"


def _packages() -> str:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "cython", "gast", "ml_dtypes"))


def _compiler() -> str:
    from ..runtime.compiler import find_compiler

    toolchain = find_compiler()
    said = subprocess.run(
        [*toolchain.command, "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
    ).stdout.splitlines()
    return ": ".join([" ".join(toolchain.command), *said[:1]])


def _dispatcher() -> str:
    from ..runtime import dispatch

    return str(dispatch.__file__)


def _cache() -> str:
    from ..runtime import cache as disk

    if not disk.enabled():
        return "off (METAPHRASE_CACHE=0)"
    return str(disk.Cache(disk.cache_directory()).directory)


def _threads() -> str:
    from ..runtime import threads

    return f"{threads.requested()} of {threads.available()} processors"


def _native() -> str:
    import numpy as np

    from ..api.public import jit
    from ..config import config

    with config(native=True, disable_jit=False):
        compiled = jit(_halved).lower(np.arange(5.0)).compile()
        got = compiled(np.arange(5.0))
    if not np.array_equal(got, np.arange(5.0) / 2):
        raise RuntimeError(f"a compiled function gave a wrong result: {got}")
    seconds = sum(compiled.library.seconds.values())
    return "from the cache" if compiled.library.cached else f"compiled and ran, {seconds:.2f} s"


def _halved(x):
    return x / 2


LOOKED_AT: tuple[tuple[str, Callable[[], str]], ...] = (
    ("python", _python),
    ("packages", _packages),
    ("dispatcher", _dispatcher),
    ("C compiler", _compiler),
    ("cache", _cache),
    ("threads", _threads),
    ("native code", _native),
)


def run(options: argparse.Namespace) -> int:
    if options.support:
        answer(options, [row._asdict() for row in ROWS], lambda: print(markdown(), end=""))
        return 0
    rows, failed = [], False
    for name, look in LOOKED_AT:
        try:
            rows.append(["ok", name, look()])
        except Exception as problem:  # whatever is wrong is what the user wants to read
            failed = True
            rows.append(["FAILED", name, f"{type(problem).__name__}: {problem}"])
    checks = [{"name": name, "ok": state == "ok", "said": said} for state, name, said in rows]
    answer(options, {"ok": not failed, "checks": checks}, lambda: table(rows))
    return 1 if failed else 0
