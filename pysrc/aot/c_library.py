"""C libraries: the kernels of a module's exported functions, a header, and what calls them, without Python.

In: a module and its exported functions. Out: files in a folder: `orbits.h`, `orbits.c`, `kernels/*.c` with the Cython
text that each came from, `liborbits.a`, `liborbits.so`, an example `main.c`, and the Makefile that builds all of it.
Example:

    metaphrase compile orbits.py --to c --out build
    cc main.c -I build/orbits build/orbits/liborbits.a -lmvec -lm -lpthread
"""

from __future__ import annotations

import itertools
import platform
import re
import shutil
import subprocess
import types
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .._version import VERSION
from ..api.compile import Compiled
from ..api.plans.modules import refused
from ..api.text import documentation
from ..config import config
from ..runtime.abi import BLAS_ROUTINES, HEADER_DIRECTORY, HEADERS
from ..runtime.compiler import find_compiler, flags
from ..runtime.cython_build import BuildError, translate
from ..runtime.cython_translate import function_name
from ..runtime.module import LEVELS
from .c_example import example
from .c_functions import CFunction
from .exported import Made, Progress, Signature, signatures

SUFFIXES = {"x86-64-v3": "_v3"}  # of kernels; others have none
OWN_HEADERS = ("metaphrase.h", "library.h", "library_threads.h", "pool.h")
SET_THREADS = "set_num_threads"  # behind the library's name: its one function that is nobody's
_TOKEN = re.compile(r"\w+|-(?=\d)")


def write(
    module: types.ModuleType,
    functions: dict[str, Any],
    name: str,
    folder: Path,
    levels: Sequence[str],
    progress: Progress,
) -> Made:
    """The library in a folder."""
    (folder / "kernels").mkdir()
    made, written, blas = Made(), [], set[str]()
    rows = [signature for public, function in functions.items() for signature in signatures(public, function)]
    steps = len(rows) * (1 + len(levels))
    names = _names(name, rows)
    for signature, own in zip(rows, names):
        if own == f"{name}_{SET_THREADS}":
            raise refused(own, signature.jitted.span, "a C library has a function of that name")
    for number, signature in enumerate(rows):
        progress(f"{signature.public}{signature.title}", number, steps)
        kernel = _kernel_name(name, signature, names)
        one = _function(signature, functions[signature.public], names[number], kernel)
        for part in one.parts:
            text = _kernel(part, signature.public)
            blas.update(used for used in BLAS_ROUTINES if re.search(rf"\b(MP|mp)_{used}\b", text))
            (folder / "kernels" / f"{part.kernel}.c").write_text(text)
            (folder / "kernels" / f"{part.kernel}.pyx").write_text(part.cython)
        written.append(one)
        made.rows.setdefault(signature.public, []).append((signature.title, one.entry))
    for header in (*OWN_HEADERS, *HEADERS):
        shutil.copyfile(Path(HEADER_DIRECTORY, header), folder / header)
    suffixes = [SUFFIXES.get(level, "") for level in levels]
    (folder / f"{name}.h").write_text(_header(module, name, written))
    (folder / f"{name}.c").write_text(_source(name, written, suffixes, sorted(blas)))
    (folder / "main.c").write_text(example(name, written))
    (folder / "Makefile").write_text(_makefile(name, written, levels, bool(blas)))
    _build(folder, name, written, levels, bool(blas), lambda what, k: progress(what, len(rows) + k, steps))
    return made


def _names(library: str, rows: Sequence[Signature]) -> list[str]:
    """What C calls each signature: several of one function are told apart by the parts of their types that differ, and
    by a number where these give no name of their own."""
    names = ["_".join(filter(None, [library, one.public, _told_apart(one, rows)])) for one in rows]
    counts = Counter(one.public for one in rows)
    taken = {name for name, one in zip(names, rows) if counts[one.public] == 1}
    for k, one in enumerate(rows):
        if counts[one.public] > 1:
            names[k] = next(name for name in _numbered(names[k]) if name not in taken)
            taken.add(names[k])
    return names


def _told_apart(one: Signature, rows: Sequence[Signature]) -> str:
    """The parts of a signature that others of its function do not have, as words."""
    words = [_words(other.title) for other in rows if other.public == one.public]
    own = _words(one.title)
    if len(words) == 1:
        return ""
    if len({*map(len, words)}) == 1:
        differ = [len({*at}) > 1 for at in zip(*words)]
        words = [[w for w, d in zip(row, differ) if d] for row in words]
        own = [w for w, d in zip(own, differ) if d]
    short = ["_".join(dict.fromkeys(row)) for row in words]
    return "_".join(dict.fromkeys(own if len({*short}) == len(short) else _words(one.title)))


def _words(title: str) -> list[str]:
    return ["minus" if word == "-" else word for word in _TOKEN.findall(title)]


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{k}" for k in itertools.count(2))


def _kernel_name(library: str, signature: Signature, names: Sequence[str]) -> str:
    """What the kernel of a signature is called, and what begins so: no function of `names`."""
    name = f"{library}_{signature.public}_{signature.number}"
    while any(f"{other}_".startswith(f"{name}_") for other in names):
        name += "_"
    return name


def _function(signature: Signature, public: Any, name: str, kernel: str) -> CFunction:
    """What C calls a signature by. Sizes that most calls have are served by a function of its own, where that pays."""

    def of(compiled: Compiled, name: str, kernel: str, hidden: bool = False) -> CFunction:
        return CFunction(
            name=name,
            kernel=kernel,
            title=f"{signature.public}{signature.title}",
            doc=documentation(public) or "",
            entry=signature.plan(compiled, [])[0],
            sites=compiled.sites,
            span=signature.jitted.span,
            names=None if public.parameters is None else tuple(public.parameters),
            cython=compiled.library.text,
            hidden=hidden,
        )

    *usual, every = signature.native()
    whole = of(every, name, kernel)
    for compiled in usual:
        one = of(compiled, f"{kernel}_of_usual_sizes", f"{kernel}_usual", hidden=True)
        whole.usual = one if one.called == whole.called else None
    return whole


def _kernel(one: CFunction, function: str) -> str:
    """The C of a kernel, whose name says for which level of the processor it is compiled."""
    answer = translate(one.cython, function)
    if answer.get("form") != "kernel":
        raise BuildError(one.name, answer.get("error") or answer.get("note", ""), None)
    head = f"/* The kernel of {one.name}, which is {one.title}: `{one.kernel}.pyx`, translated by Cython. */"
    named = "#define MP_JOINED_(name, level) name##level\n#define MP_JOINED(name, level) MP_JOINED_(name, level)"
    text = answer["c"]
    text = text[: text.rindex('__attribute__((visibility("default")))')]
    joined = f'__attribute__((visibility("hidden")))\nint MP_JOINED({one.kernel}, MP_LEVEL)('
    text = text.replace(f"static int {function_name(function)}(", joined)
    return f"{head}\n#ifndef MP_LEVEL\n#define MP_LEVEL\n#endif\n{named}\n{text}"


# ---- texts -------------------------------------------------------------------------------------------------------


def _header(module: types.ModuleType, name: str, written: Sequence[CFunction]) -> str:
    guard = f"{name.upper()}_H"
    doc = (module.__doc__ or "").strip().replace("*/", "* /")
    source = Path(module.__file__ or name).name
    rows = [
        f"/* {doc}\n" if doc else "/* ",
        f"   Compiled by metaphrase {VERSION} from {source}; metaphrase.h says what",
    ]
    rows[0:2] = ["\n".join(rows)] if doc else [rows[0] + rows[1].strip()]
    rows[0] += (
        "\n   functions give. Arrays lie in C's order, and those that are stored into share no memory with others. */"
    )
    rows += [f"#ifndef {guard}", f"#define {guard}", "", '#include "metaphrase.h"', ""]
    rows += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    rows += [
        "/* How many threads share long loops from now on, the caller included: 1 at first; 0: one a processor.",
        "   It gives the number before. Results do not depend on it. */",
        f"int {name}_{SET_THREADS}(int count);",
        "",
    ]
    for one in written:
        rows += [one.comment, f"{one.prototype};", ""]
    rows += ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(rows)


def _source(name: str, written: Sequence[CFunction], suffixes: Sequence[str], blas: Sequence[str]) -> str:
    rows = [f"/* The functions of {name}.h: each calls its kernel, and says what went wrong. */"]
    rows += ['#include "library.h"', "", f'#include "{name}.h"', ""]
    rows += [f"int {name}_{SET_THREADS}(int count) {{ return mp_set_threads(count); }}", ""]
    parts = [part for one in written for part in one.parts]
    for part in parts:
        for suffix in suffixes:
            rows.append(f"int {part.kernel}{suffix}(mp_ctx *c, void **buffers, const int64_t *sizes);")
    rows.append("")
    if blas:
        rows += [f"void {routine}_(void);" for routine in blas]
        filled = ", ".join(f"[MP_{routine}] = (void *){routine}_" for routine in blas)
        rows += [f"static void *mp_blas[MP_BLAS_COUNT] = {{{filled}}};", ""]
    for part in parts:
        rows += [part.definition(suffixes, "mp_blas" if blas else None), ""]
    return "\n".join(rows)


def _level_flags(level: str) -> list[str]:
    return [f"-march={level}", f"-DMP_LEVEL={SUFFIXES.get(level, '')}"] if level in LEVELS else []


def _options() -> list[str]:
    """What kernels are written for, of the compiler's options: as when they are compiled to be called at once."""
    chosen = flags(config.contract, config.fastmath)
    return [flag for flag in chosen if flag not in ("-march=native", "-shared", "-w")]


def _libraries(blas: bool) -> list[str]:
    """What a program is linked with. glibc's functions of vectors are in libmvec (runtime/maths.h)."""
    has_vectors = platform.machine() in ("x86_64", "AMD64") and platform.libc_ver()[0] == "glibc"
    vectors = ["-lmvec"] if has_vectors else []
    return [*(["-llapack", "-lblas"] if blas else []), *vectors, "-lm", "-lpthread"]


def _shared() -> list[str]:
    """How the shared library is linked. Its threads would have no code any more if it was unloaded."""
    return ["-shared", "-Wl,-z,nodelete"] if platform.system() == "Linux" else ["-shared"]


def _makefile(name: str, written: Sequence[CFunction], levels: Sequence[str], blas: bool) -> str:
    kernels = " ".join(part.kernel for one in written for part in one.parts)
    objects = " ".join(f"$(KERNELS:%=objects/%.{level}.o)" for level in levels)
    rows = [
        f"# Builds lib{name}.a and lib{name}.so, and the example. Written by metaphrase {VERSION}.",
        "CC ?= cc",
        f"OPTIONS = {' '.join(_options())}",
        f"LDLIBS ?= {' '.join(_libraries(blas))}",
        f"KERNELS = {kernels}",
        f"OBJECTS = {objects} objects/{name}.o",
        "",
        f"all: lib{name}.a lib{name}.so example",
        "",
        f"lib{name}.a: $(OBJECTS)",
        "\trm -f $@",
        "\t$(AR) rcs $@ $^",
        "",
        f"lib{name}.so: $(OBJECTS)",
        f"\t$(CC) {' '.join(_shared())} -o $@ $^ $(LDLIBS)",
        "",
        f"example: main.c lib{name}.a",
        f"\t$(CC) -O2 -o $@ main.c lib{name}.a $(LDLIBS)",
        "",
        f"objects/{name}.o: {name}.c {name}.h {' '.join(OWN_HEADERS)} abi.h",
        "\t@mkdir -p objects",
        "\t$(CC) -O2 -fPIC -Wall -Wextra -c -o $@ $<",
    ]
    for level in levels:
        rows += ["", f"objects/%.{level}.o: kernels/%.c {' '.join(HEADERS)}", "\t@mkdir -p objects"]
        rows += [f"\t$(CC) $(OPTIONS) {' '.join(_level_flags(level))} -w -I. -c -o $@ $<"]
    rows += ["", "clean:", f"\trm -rf objects example lib{name}.a lib{name}.so", "", ".PHONY: all clean", ""]
    return "\n".join(rows)


# ---- building ----------------------------------------------------------------------------------------------------


def _build(
    folder: Path, name: str, written: Sequence[CFunction], levels: Sequence[str], blas: bool, progress: Any
) -> None:
    """Both libraries, as the Makefile makes them. Where there is no BLAS to link with, its names stay open."""
    compiler, objects = find_compiler().command, folder / "objects"
    objects.mkdir()

    def run(*command: str) -> None:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(name, done.stderr, None)

    made = []
    for number, one in enumerate(written):
        for k, level in enumerate(levels):
            progress(f"{one.name} for {level}", number * len(levels) + k)
            for part in one.parts:
                made.append(f"objects/{part.kernel}.{level}.o")
                options = [*_options(), *_level_flags(level), "-w", "-I.", "-c", "-o", made[-1]]
                run(*compiler, *options, f"kernels/{part.kernel}.c")
    made.append(f"objects/{name}.o")
    run(*compiler, "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror", "-c", "-o", made[-1], f"{name}.c")
    run("ar", "rcs", f"lib{name}.a", *made)
    link = [*compiler, *_shared(), "-o", f"lib{name}.so", *made]
    try:
        run(*link, *_libraries(blas))
    except BuildError:
        if not blas:
            raise
        run(*link, *_libraries(False))
    shutil.rmtree(objects)


__all__ = ["write"]
