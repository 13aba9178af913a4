"""The corpus as native code under gcc's sanitizers of addresses and undefined behaviour (`make sanitize`).

In: nothing, or names of themes; a folder for reports. Out: how many programs ran; exit status 1 if one was
reported by a sanitizer, or its result was wrong. Example:

    PYTHONPATH=tests:tests/native python -P -m sanitize --workers 2 --folder build/sanitize kernels views

Every program runs as it is, as its forward and as its reverse derivative. Arrays of NumPy have the
sanitizer's own red zones, since its `malloc` serves the process; arrays in the context's arena have those of
`MP_RED_ZONES` (runtime/abi.h), each on its own. What a program reads or writes beside its arrays is reported
with the line of its C text, and so are shifts and divisions that C does not define. Faults that are planted
are looked for first.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

FLAGS = (
    "-O1",
    "-g1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fsanitize-recover=all",
    "-DMP_RED_ZONES",
)
LIBRARIES = ("-lasan", "-lubsan")


def environment(folder: Path) -> dict[str, str]:
    """What a process needs that is to be watched: gcc's sanitizers, which are to report and go on."""
    found = [
        subprocess.run(["gcc", f"-print-file-name=lib{name}.so"], capture_output=True, text=True).stdout
        for name in ("asan", "ubsan")
    ]
    if not all(os.path.isabs(path) for path in found):
        sys.exit("gcc has no sanitizers here: install libasan and libubsan, which belong to it")
    options = "halt_on_error=0:detect_leaks=0:suppress_equal_pcs=0"
    loaded = " ".join(path.strip() for path in found)
    return dict(
        os.environ,
        METAPHRASE_CC="gcc",
        METAPHRASE_TESTS_DAY="0",
        LD_PRELOAD=loaded,
        ASAN_OPTIONS=f"{options}:log_path={folder}/report",
        UBSAN_OPTIONS="print_stacktrace=1",
    )


class Watch:
    """Runs programs one by one and keeps what was reported of each: by the sanitizer of addresses in its own
    file, by the other one where Python's warnings go too."""

    def __init__(self, folder: Path):
        self.folder, self.count = folder, 0
        self.seen: dict[Path, int] = {}
        self.reports: dict[str, str] = {}
        errors = folder / f"report.{os.getpid()}.errors"
        errors.touch()
        os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
        self.reported()  # what another watch has seen

    def reported(self) -> str:
        """What is new."""
        new = ""
        for path in self.folder.glob(f"report.{os.getpid()}*"):
            text = path.read_text(errors="replace")
            fresh, self.seen[path] = text[self.seen.get(path, 0) :], len(text)
            if "runtime error:" in fresh or "AddressSanitizer" in fresh:
                new += fresh
        return new

    def run(self, key: str, test: Callable[[], Any]) -> None:
        self.count += 1
        problem = ""
        try:
            test()
        except Exception as error:
            problem = f"{type(error).__name__}: {error}\n"
        if text := problem + self.reported():
            self.reports[key] = text
            if not key.startswith("planted"):
                print(f"== {key}\n{text[:3000]}", flush=True)


PLANTED = """
cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:
    cdef int64_t k = sizes[0], capacity = 0
    cdef double* out = <double*>buffers[0]
    cdef double* a = <double*>mp_scratch(c, 80)
    cdef double* b = <double*>mp_scratch(c, 80)
    cdef double* stack = <double*>mp_grow(c, NULL, &capacity, 80)
    if sizes[1] == 0:
        out[0] = a[k]
    elif sizes[1] == 1:
        out[0] = b[k]
    elif sizes[1] == 2:
        out[0] = stack[k]
    elif sizes[1] == 3:
        out[0] = out[k]
    else:
        out[0] = 1 << (30 + k)
    return 0
"""
# Reads, because a sanitizer that goes on lets a write beside an array happen.
INSIDE = [(9, 0), (9, 1), (9, 2), (9, 3), (0, 4)]  # (place, where): the last of ten, a shift by few
OUTSIDE = [(10, 0), (-1, 0), (10, 1), (-1, 1), (10, 2), (-1, 2), (10, 3), (-1, 3), (10, 4)]


def check_sanitizers(folder: Path) -> None:
    """They see faults that are planted, in each kind of memory, and no others."""
    from metaphrase.runtime import abi, cython_build, dispatch

    declared = "    void* mp_grow(mp_ctx* c, void* stack, int64_t* capacity, int64_t needed)\n"
    watch = Watch(folder)

    def plant(place: int, where: int) -> None:
        # A text of its own: a line that was reported is not reported again.
        text = f"# {place} {where}\n{abi.DECLARATIONS}{declared}{PLANTED}"
        library = cython_build.build(text, name="planted", extra_flags=FLAGS)
        dispatch.run_entry(library.address, [], [("f8", (10,))], [place, where])

    for place, where in INSIDE + OUTSIDE:
        watch.run(f"planted {place} {where}", functools.partial(plant, place, where))
    seen = [f"planted {place} {where}" for place, where in OUTSIDE]
    assert list(watch.reports) == seen, f"reported of {list(watch.reports)}, not of {seen}"


def run_values(watch: Watch, names: Sequence[str]) -> None:
    """These programs as they are."""
    from grouped import build
    from stages import CASES, core, loops
    from test_values import bound
    from ways import assert_same, evaluated, python

    functions = {name: core(name) for name in names}
    compiled = build(functions, {name: loops(name) for name in names}, flags=FLAGS)

    def test(name: str) -> None:
        assert_same(python(*CASES[name]), evaluated(name, compiled[name].run), bound(name), "sanitized")

    for name in names:
        watch.run(name, functools.partial(test, name))


def run_derivatives(watch: Watch, names: Sequence[str]) -> None:
    """The derivatives of these programs."""
    from derivatives import derive, derived_loops, programs
    from grouped import build
    from test_derivatives import bound, evaluated, listed
    from ways import assert_same, caught

    pairs = {(name, mode): pair for name in names for mode, pair in programs(derive(name)).items()}
    nests = {(name, mode): nest for name in names for mode, nest in derived_loops(name).items()}
    compiled = build({key: function for key, (function, _) in pairs.items()}, nests, flags=FLAGS)

    def test(key: tuple[str, str]) -> None:
        function, args = pairs[key]
        got = caught(listed(lambda *a: compiled[key].run(a), function), args)
        assert_same(evaluated(function, args), got, bound(function), "sanitized")

    for key in pairs:
        watch.run(" ".join(key), functools.partial(test, key))


def run_share(folder: Path, chunks: Mapping[str, Sequence[str]]) -> int:
    """Compile and run these parts of the corpus; how many programs were reported."""
    from metaphrase.astpasses.emit.cython_function import FunctionWriter
    from metaphrase.runtime import compiler

    compiler.LINK_FLAGS = (*compiler.LINK_FLAGS, *LIBRARIES)
    check_sanitizers(folder)
    FunctionWriter.one_piece = False
    watch = Watch(folder)
    for chunk, names in chunks.items():
        start = time.monotonic()
        run_values(watch, names)
        run_derivatives(watch, names)
        print(f"{chunk}: {len(names)} programs, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{watch.count} programs ran, {len(watch.reports)} were reported", flush=True)
    return len(watch.reports)


def main() -> int:
    parser = argparse.ArgumentParser(prog="sanitize")
    parser.add_argument("themes", nargs="*")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/sanitize"))
    parser.add_argument("--share", type=int)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.share is None:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("report.*"):
            old.unlink()
        command = [sys.executable, "-P", "-m", "sanitize", *sys.argv[1:], "--share"]
        watched = environment(folder)
        workers = [subprocess.Popen([*command, str(k)], env=watched) for k in range(options.workers)]
        ends = [worker.wait() for worker in workers]
        for worker, end in zip(workers, ends):
            if end not in (0, 1):  # the sanitizer ended it, or the tool itself failed
                print(f"a worker ended with {end}; its last words are in {folder}/report.{worker.pid}*")
        return max(map(abs, ends))

    from stages import CHUNKS

    chosen = [c for c in CHUNKS if not options.themes or c.split(".")[0] in options.themes]
    share = {chunk: CHUNKS[chunk] for chunk in chosen[options.share :: options.workers]}
    try:
        return int(run_share(folder, share) > 0)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return 2


if __name__ == "__main__":
    sys.exit(main())
