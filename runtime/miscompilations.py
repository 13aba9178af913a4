"""Faults of C compilers that give wrong numbers, and the flags that keep the compiler from them.

In: a compiler and the text that it is to compile. Out: more flags, where the text has what the fault concerns
and this very compiler shows it: a small C function is compiled and run, once for each compiler, and what came
of it is kept beside the compiled programs. Example:

    remedies(find_compiler(), text, cache_directory())     # ("-fno-tree-slp-vectorize",) of gcc 12

Two faults of gcc 12 are kept from in the emitted text itself: `stays_rolled` (emit/cython_simd.py) and
`_zero_minus_integer` (emit/spell.py). tests/runtime/test_miscompilations.py says which compilers have which.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ..late import log
from . import cache as disk
from . import scratch
from .compiler import CompileError, CompilerMissing, Toolchain, compile_shared, flags, machine_identity
from .load import load

__all__ = ["FAULTS", "Fault", "precautions", "remedies", "shows"]
SYMBOL = "metaphrase_probe"


class Fault(NamedTuple):
    """`c` defines `int metaphrase_probe(void)`, which gives 1 where the compiler has made wrong code of it.
    `concerned`: patterns that are all found in a text that the fault may be met in."""

    name: str
    c: str
    flags: tuple[str, ...]
    concerned: tuple[str, ...]


# gcc 12 takes four conversions together to one of vectors, and then forgets it with the one that undoes it.
NARROWED = Fault(
    "a double that was rounded to float keeps the digits it lost",
    """\
static double given[4] = {.05, .1, .15, 1/6.}, got[4];
__attribute__((noinline)) static void narrow(const double* __restrict__ y, double* __restrict__ out) {
    double t[4];
    for (int i = 0; i < 4; i++) t[i] = y[i]*2.0;
    for (int i = 0; i < 4; i++) out[i] = (double)(float)t[3 - i];
}
__attribute__((visibility("default"))) int metaphrase_probe(void) {
    int wrong = 0;
    narrow(given, got);
    for (int i = 0; i < 4; i++) {
        volatile float rounded = (float)(given[3 - i]*2.0);
        wrong |= got[i] != (double)rounded;
    }
    return wrong;
}
""",
    ("-fno-tree-slp-vectorize",),
    (r"\b(f32|c64|float)", r"\b(f64|c128|double)"),
)

# gcc 12 makes several loops of one, of arrays of which it does not know that they lie apart, and has them in an order
# in which a loop reads what another one should have stored before. What may be several loops, the tree has as several.
DIVIDED = Fault(
    "a loop reads what the iterations before left, and finds what was there before them",
    """\
static double x[160], y[160];
__attribute__((noinline)) static void step(double* a, double* b) {
    for (long j = 0; j < 18; j++) {
        double s = a[j + 5], t;
        a[j + 55] = b[j + 3] - a[j + 53];
        b[j + 57] = s;
        t = a[j + 53];
        a[j + 103] = b[j + 51] - a[j + 101];
        b[j + 105] = t;
    }
}
__attribute__((visibility("default"))) int metaphrase_probe(void) {
    volatile double s, t, *a = x, *b = y;
    static double got_x[160], got_y[160];
    double *volatile first = got_x, *volatile second = got_y;
    for (int i = 0; i < 160; i++) { got_x[i] = x[i] = i % 17; got_y[i] = y[i] = i % 23; }
    step(first, second);
    for (int j = 0; j < 18; j++) {
        s = a[j + 5];
        a[j + 55] = b[j + 3] - a[j + 53];
        b[j + 57] = s;
        t = a[j + 53];
        a[j + 103] = b[j + 51] - a[j + 101];
        b[j + 105] = t;
    }
    for (int i = 0; i < 160; i++)
        if (got_x[i] != x[i] || got_y[i] != y[i]) return 1;
    return 0;
}
""",
    ("-fno-tree-loop-distribution",),
    (r"\bfor ",),
)

FAULTS = (NARROWED, DIVIDED)
_known: dict[str, bool] = {}


def remedies(toolchain: Toolchain, text: str, directory: Path | None) -> tuple[str, ...]:
    """The flags that this compiler needs to make right code of this text. `directory`: where findings are
    kept; None: nowhere."""
    return tuple(flag for fault in _concerning(text) if shows(fault, toolchain, directory) for flag in fault.flags)


def precautions(text: str) -> tuple[str, ...]:
    """The flags with which no compiler makes wrong code of this text."""
    return tuple(flag for fault in _concerning(text) for flag in fault.flags)


def _concerning(text: str) -> list[Fault]:
    return [fault for fault in FAULTS if all(re.search(pattern, text) for pattern in fault.concerned)]


def shows(fault: Fault, toolchain: Toolchain, directory: Path | None, more: tuple[str, ...] = ()) -> bool:
    """Whether this compiler, with the flags of compiled programs and `more`, has the fault."""
    options = (*flags(), *more)
    key = disk.key_of(fault.c, " ".join(options), toolchain.identity, machine_identity())
    if key not in _known:
        finding = _kept(directory, key)
        if finding is None:
            try:
                finding = _probed(fault, toolchain, options)
            except (OSError, AttributeError, CompileError, CompilerMissing) as error:
                log.debug("whether %s is not known of %s: %s", fault.name, toolchain.identity, error)
                return True  # the remedy costs a little speed, the fault wrong numbers
            _keep(directory, key, finding)
        _known[key] = finding
    return _known[key]


def _probed(fault: Fault, toolchain: Toolchain, options: tuple[str, ...]) -> bool:
    with scratch.directory() as place:
        source, library = place / "probe.c", place / "probe.so"
        source.write_text(fault.c)
        compile_shared(toolchain, source, library, options)
        return bool(getattr(load(library), SYMBOL)())


def _kept(directory: Path | None, key: str) -> bool | None:
    if directory is None:
        return None
    try:
        return {b"wrong": True, b"right": False}.get(disk.read_own(directory / f".probe-{key[:32]}"))
    except (OSError, ValueError):
        return None


def _keep(directory: Path | None, key: str, finding: bool) -> None:
    if directory is None:
        return
    try:
        disk.write_own(directory / f".probe-{key[:32]}", "wrong" if finding else "right")
    except OSError as error:
        log.debug("what a probe found is not kept: %s", error)
