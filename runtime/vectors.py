"""What the C compiler says of the loops of a program: which it vectorised, and why it did not the others.

In: emitted Cython text. Out: `VectorReport`: for each function of the text what gcc's own report says of its loops, in
their order. Example:

    report = vector_report(emitted.text)
    report.loops["entry"][0].vectors       # 32: bytes of the vectors; 0: none, and `reasons` are gcc's words

The text is translated and compiled as `build` does it, with the same flags; nothing is linked or kept. Loops in C are
those of the text, one for one; where they are not, nothing is said. What another compiler says is not read.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from ..late import dataclass, field
from . import cache as disk
from . import scratch
from .abi import HEADER_DIRECTORY
from .compiler import CompilerMissing, Toolchain, find_compiler, flags
from .cython_build import translate
from .miscompilations import remedies

__all__ = ["LoopReport", "VectorReport", "vector_report"]

ASK = ("-c", "-fopt-info-loop-vec-optimized-missed")
FUNCTION = re.compile(r"^static [^\n;]*?\bmp_py_function_(\w+)\([^;{]*\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
LOOP = re.compile(r"^( *)(?:for \(|while \()")
SAID = re.compile(r"^[^\n]*?\.c:(\d+):\d+: (optimized|missed): +(.*)$", re.MULTILINE)
TEXT_FUNCTION = re.compile(r"^cdef [^\n]*?(\w+)\(.*noexcept nogil:\n((?:(?: .*)?\n)*)", re.MULTILINE)
TEXT_LOOP = re.compile(r"^ +(?:for \w+ in range\(|while ).*:$", re.MULTILINE)


@dataclass
class LoopReport:
    """`vectors`: the bytes of the longest that gcc makes of the loop's iterations. `packed`: of those it makes of
    statements in it that are alike. `is_unrolled`: it has written out all iterations. `is_call`: it made a call of
    memset or memcpy of the loop. `reasons`: why there are no vectors, in gcc's words."""

    vectors: int = 0
    packed: int = 0
    is_unrolled: bool = False
    is_call: bool = False
    reasons: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class VectorReport:
    """`loops`: by the functions of the text. `compiler`: its name and version. `why`: what there is no report for."""

    loops: dict[str, list[LoopReport]]
    compiler: str = ""
    why: str = ""


def vector_report(text: str, *, contract: bool = True, fastmath: bool = False) -> VectorReport:
    """See the head of this file. Never raises for what is missing."""
    try:
        toolchain = find_compiler()
    except CompilerMissing as error:
        return VectorReport({}, why=str(error))
    version = _version(toolchain)
    if "gcc" not in version.lower() and "Free Software Foundation" not in version:
        return VectorReport({}, version.partition("\n")[0], "only what gcc says is read, and the C compiler is another")
    directory = Path(disk.cache_directory()) if disk.enabled() else None
    options = (*flags(contract, fastmath), *remedies(toolchain, text, directory), *ASK)
    answer = translate(text, "function")
    name = version.partition("\n")[0]
    if "error" in answer or answer["form"] != "kernel":
        return VectorReport({}, name, answer.get("note") or answer.get("error", ""))
    with scratch.directory() as place:
        source = place / "kernel.c"
        source.write_text(answer["c"])
        command = [*toolchain.command, *options, f"-I{HEADER_DIRECTORY}", str(source), "-o", str(place / "kernel.o")]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if done.returncode:
        return VectorReport({}, name, done.stderr.strip() or f"the compiler ended with {done.returncode}")
    return VectorReport(_by_function(text, answer["c"], done.stderr), name)


def _version(toolchain: Toolchain) -> str:
    done = subprocess.run([*toolchain.command, "--version"], capture_output=True, text=True, errors="replace")
    return done.stdout


def _by_function(text: str, c_text: str, said: str) -> dict[str, list[LoopReport]]:
    """The report sorted by functions of the text; those are left out whose loops are not one for one."""
    owner: dict[int, LoopReport] = {}  # of a line of C: the innermost loop that it belongs to
    found: dict[str, list[LoopReport]] = {}
    for function in FUNCTION.finditer(c_text):
        first = c_text.count("\n", 0, function.start(2)) + 1
        found[function[1]] = _loops(function[2].split("\n"), first, owner)
    _sort(said, owner)
    wanted = {match[1]: len(TEXT_LOOP.findall(match[2])) for match in TEXT_FUNCTION.finditer(text)}
    return {name: loops for name, loops in found.items() if wanted.get(name) == len(loops)}


def _loops(rows: list[str], first: int, owner: dict[int, LoopReport]) -> list[LoopReport]:
    """Those of one C function, whose first row is the line `first`; a pragma belongs to the loop behind it."""
    made: list[LoopReport] = []
    around: list[tuple[int, LoopReport]] = []  # indentation, loop
    for k, row in enumerate(rows):
        opened = LOOP.match(row)
        if opened:
            made.append(LoopReport())
            around.append((len(opened[1]), made[-1]))
            if rows[k - 1].lstrip().startswith("_Pragma("):
                owner[first + k - 1] = made[-1]
        if around:
            owner[first + k] = around[-1][1]
            if row == " " * around[-1][0] + "}":
                around.pop()
    return made


def _sort(said: str, owner: dict[int, LoopReport]) -> None:
    """Each thing that was said to its loop. A reason stands behind "couldn't vectorize loop", at a place of its own."""
    refused: LoopReport | None = None
    for number, kind, words in SAID.findall(said):
        loop = owner.get(int(number))
        if kind == "missed" and words.startswith("couldn't vectorize loop"):
            refused = loop
        elif kind == "missed" and words.startswith("not vectorized:"):
            of = refused or loop
            reason = words.removeprefix("not vectorized:").strip().rstrip(".")
            if of is not None and reason not in of.reasons:
                of.reasons.append(reason)
            refused = None
        elif kind == "optimized" and loop is not None:
            _done(loop, words)


def _done(loop: LoopReport, words: str) -> None:
    if found := re.match(r"loop vectorized using (\d+) byte vectors", words):
        loop.vectors = max(loop.vectors, int(found[1]))
    elif found := re.match(r"basic block part vectorized using (\d+) byte vectors", words):
        loop.packed = max(loop.packed, int(found[1]))
    elif re.match(r"loop with \d+ iterations? completely unrolled", words):
        loop.is_unrolled = True
    elif words.startswith("Loop") and "split to 0 loops" in words:
        loop.is_call = True
