"""The C compiler: found once, named exactly, and run with the flags the generated code is written for.

In: a C file. Out: a shared library beside it, or CompileError with the compiler's own words. Example:

    toolchain = find_compiler()                          # raises CompilerMissing
    compile_shared(toolchain, source, library, contract=True)

The compiler is $METAPHRASE_CC, else $CC, else the first of gcc, cc, clang on PATH.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import platform
from typing import TYPE_CHECKING

from ..digests import sha256
from ..late import dataclass, module
from .abi import HEADER_DIRECTORY

if TYPE_CHECKING:
    import shlex
    import signal
    import subprocess
    import sysconfig
    from pathlib import Path
else:
    shlex, signal, subprocess, sysconfig = map(module, ("shlex", "signal", "subprocess", "sysconfig"))

# Not -ffast-math: NaN, Inf and -0.0 keep their meaning, and yet every loop it would vectorise is vectorised,
# provided that errno and floating-point traps are given up (they are: NumPy's meaning has neither).
BASE_FLAGS: tuple[str, ...] = (
    "-O3",
    "-march=native",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fopenmp-simd",
    "-fwrapv",
    "-fPIC",
    "-shared",
    "-w",
)
# gcc writes out loops of up to 16 rounds while they make no more than so many instructions: at its own limit,
# 200, a program of many short loops takes twice as long to compile and is no faster.
BASE_FLAGS += ("--param", "max-completely-peeled-insns=150")
# Vectors of 32 bytes also where there are longer ones: most loops are short, and their rests get cheaper.
if platform.machine() in ("x86_64", "AMD64"):
    BASE_FLAGS += ("-mprefer-vector-width=256",)
_LONG = 2000  # lines of a function
_HARDLY_ANY = 2**17  # bytes of room: the C of a program is longer
FAST_FLAGS = ("-ffast-math",)
# Without start files and the default libraries linking takes half the time; what a kernel may call is named
# here. `-z defs` makes a name that nothing provides an error here and not at the first call.
LINK_FLAGS = ("-nostdlib", "-Wl,-z,defs", "-Wl,--as-needed", "-lmvec", "-lm", "-lc", "-lgcc")
# No start files here either: those of -ffast-math set a mode of the whole process, numbers near 0 become 0.
LINK_FLAGS_PLAIN = ("-nostartfiles", "-lm")


class CompilerMissing(RuntimeError):
    """Nothing can be compiled here: no C compiler, no room for its files, no place that libraries load from.
    The NumPy stage can still run."""


class CompileError(RuntimeError):
    """The compiler refused the file; `message` holds what it printed."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message


@dataclass(frozen=True)
class Toolchain:
    """A command and what identifies it: another version of the same compiler has another `identity`."""

    command: tuple[str, ...]
    identity: str


def find_compiler() -> Toolchain:
    """The compiler that the environment names, or the first one on PATH."""
    return _find_compiler(os.environ.get("METAPHRASE_CC") or os.environ.get("CC"), os.environ.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _find_compiler(named: str | None, path: str) -> Toolchain:
    for command in [_command(named)] if named else [("gcc",), ("cc",), ("clang",)]:
        found = _on_path(command[0], path) if command else None
        if found:
            real = os.path.realpath(found)
            status = os.stat(real)
            # Path, size and time of change, not `gcc --version`: a warm start then runs no process at all.
            identity = f"{real}:{status.st_size}:{status.st_mtime_ns}:{' '.join(command[1:])}"
            return Toolchain((found, *command[1:]), identity)
    wanted = f"'{named}'" if named else "gcc, cc or clang"
    raise CompilerMissing(f"no C compiler found ({wanted} is not on PATH); install gcc or set METAPHRASE_CC")


def _command(named: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(named))
    except ValueError as error:
        raise CompilerMissing(f"the C compiler {named!r} is not a command: {error}") from None


def _on_path(name: str, path: str) -> str | None:
    """Where a program is (`shutil.which`, whose module brings those of archives along)."""
    places = [name] if os.path.dirname(name) else [os.path.join(folder, name) for folder in path.split(os.pathsep)]
    return next((place for place in places if os.path.isfile(place) and os.access(place, os.X_OK)), None)


@functools.lru_cache(maxsize=1)
def machine_identity() -> str:
    """CPU and C library: -march=native code made on one machine must not be loaded on another."""
    processor = platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(8192).split("\n\n")[0].splitlines()
        telling = ("flags", "Features", "model name")
        processor += "".join(sorted(line for line in first if line.startswith(telling)))
    except OSError:
        processor += platform.processor()
    try:
        library = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        library = "".join(platform.libc_ver())
    return sha256(f"{processor}|{library}".encode()).hexdigest()


def flags(contract: bool = True, fastmath: bool = False, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The compile flags. Without `contract` (fused multiply-add) + - * / and sqrt are NumPy's to the bit."""
    contraction = ("-ffp-contract=fast",) if contract else ("-ffp-contract=off",)
    return (*BASE_FLAGS, *contraction, *(FAST_FLAGS if fastmath else ()), *extra)


def for_long_functions(text: str) -> tuple[str, ...]:
    """Flags for a Cython text with a function so long that gcc would take most of its time to find what is computed
    twice: it has done that before, and does it again where it compares all places in memory with one another."""
    longest = max(function.count("\n") for function in text.split("\ncdef "))
    return ("-fno-gcse", "-fno-gcse-after-reload") if longest > _LONG else ()


def compile_shared(
    toolchain: Toolchain, source: Path, library: Path, options: tuple[str, ...], *, python: bool = False
) -> None:
    """Compile one C file to a shared library; `python=True` for a file that includes Python.h."""
    include = [f"-I{HEADER_DIRECTORY}"]
    if python:
        include.append(f"-I{sysconfig.get_paths()['include']}")
    errors = ""
    # libmvec and -nostdlib are glibc's and gcc's; elsewhere the plain form must do.
    for link in (LINK_FLAGS_PLAIN,) if python else (LINK_FLAGS, LINK_FLAGS_PLAIN):
        command = [*toolchain.command, *options, *include, str(source), "-o", str(library), *link]
        try:
            status, errors = _run(command, source.parent)
        except OSError as error:
            raise CompilerMissing(f"the C compiler {toolchain.command[0]} does not run: {error}") from error
        if status == 0:
            return
        if is_full(errors, source.parent):
            raise OSError(errno.ENOSPC, "no room for the compiler's files")
        errors = errors or f"exit status {status}"
        if "lmvec" not in errors and "lgcc" not in errors:
            break
    raise CompileError(errors)


def is_full(message: str, place: Path) -> bool:
    """Whether a tool that failed has met a full disk: its message says so, or there is hardly any room left."""
    if any(text in message for text in ("No space left on device", "Disk quota exceeded")):
        return True
    try:
        room = os.statvfs(place)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _HARDLY_ANY


def _run(command: list[str], directory: Path) -> tuple[int, str]:
    """(exit status, what it printed) of a command that keeps its own files in `directory`. Ctrl-C ends it,
    and the processes that it has started, at once."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        process_group=0,
        bufsize=0,
        env={**os.environ, "TMPDIR": str(directory), "LC_ALL": "C"},
    )
    assert process.stdout is not None
    printed = b""
    try:
        while piece := process.stdout.read(1 << 16):
            printed += piece
        process.wait()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    finally:
        process.stdout.close()
    return process.returncode, printed.decode(errors="replace")
