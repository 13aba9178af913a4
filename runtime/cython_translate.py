"""Cython text -> C text, the one place that imports Cython; runs as a worker process or in this process.

In: the text of a module whose functions are all `cdef ... noexcept nogil`. Out: its C, either whole (an
extension module) or cut to the functions alone, which needs no Python.h and compiles four times as fast.
Example:

    c_text = cut(translate("cdef int entry(mp_ctx* c, ...) noexcept nogil: ..."), "softmax")

Functions are named for what they are part of, so that profilers and debuggers tell: `mp_py_softmax` is called, and
calls `mp_py_softmax_entry`, `mp_py_softmax_part_0`. The name `softmax` is part of the library's key, as the text is.

By hand: `python cython_translate.py KERNEL.pyx KERNEL.c NAME`, as the Makefiles of packages do, which have a copy.

As a process (`python -S -P cython_translate.py`) it reads one JSON request a line and answers with one JSON
line, until its input ends. Only there are Cython's internals patched for a quick start, and only in versions
that were tried. What it can't cut it leaves to a process without patches: `... cython_translate.py plainly`.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import re
import sys
import tempfile
import types
from typing import Any

NAME = "kernel"  # one module name for all: the C depends on the text alone
SYMBOL = "metaphrase_program"  # the exported pointer to the function
QUICK_START_VERSIONS = ("3.3.1",)

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "emit_code_comments": False,
    "binding": False,
}

# What Cython's boilerplate would have declared and the functions use.
PRELUDE = """\
typedef __PTRDIFF_TYPE__ Py_ssize_t;
#ifndef NULL
#define NULL ((void *)0)
#endif
#define CYTHON_UNUSED __attribute__((unused))
#define CYTHON_INLINE inline
#define CYTHON_FALLTHROUGH __attribute__((fallthrough))
#define CYTHON_RESTRICT __restrict__
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
"""
# Accumulators named before a loop, what Cython puts between (the loop's bound), and the loop.
SIMD_LOOP = re.compile(
    r"((?:[ \t]*mp_simd_\w+\(\w+\);\s*\n)+)"
    r"((?:[ \t]*__pyx_t_\w+ = [^\n;]*;\s*\n)*)([ \t]*)for \("
)
SIMD_MARK = re.compile(r"mp_simd_(\w+)\((\w+)\);")
SIMD_SPELLED = {"sum": "+", "prod": "*", "any": "|", "all": "&"}
# A nest in a function of its own stays there: a long function costs the compiler more than it costs a call.
# So does an entry before which `work` asks for signals: in it that would change how loops are compiled.
OUTLINED = re.compile(r"^static (\w[^\n;(]*\bmp_py_\w*_nest_\d+\([^\n]*/\*proto\*/)$", re.MULTILINE)
SECTION = re.compile(r"/\* #### Code section: (\w+) ### \*/")


class TranslateError(Exception):
    """Cython refused the text; the message is Cython's."""


class CutError(Exception):
    """The functions can't be cut out of this C: a marker is missing, or they use Cython's utility code."""


def quick_start() -> bool:
    """Spare Cython's cold start most of its time: here names are ASCII, no exception occurs, nothing fetches
    a page, and of the C that Cython puts around the functions nothing is kept. True when done; then only
    `cut` may be given what is translated."""
    import Cython

    if Cython.__version__ not in QUICK_START_VERSIONS:
        return False
    # Cython's HTML report imports xml.sax.saxutils, and that an HTTP client.
    sys.modules.setdefault("urllib.request", types.ModuleType("urllib.request"))
    import Cython.Compiler.Code as code
    import Cython.Compiler.Lexicon as lexicon
    import Cython.Compiler.PyrexTypes as pyrex_types

    lexicon.unicode_start_ch_any = lexicon.unicode_continuation_ch_any = ""
    lexicon.unicode_start_ch_range, lexicon.unicode_continuation_ch_range = "AZ__az", "09"
    pyrex_types.KNOWN_EXCEPTION_NAMES = frozenset(["BaseException", "Exception", "StopIteration", "MemoryError"])
    read: Any = code.read_utilities_hook

    def titles_only(path: str) -> list[str]:
        """Of a file of C snippets the titles and tags, and what a tag asks to be there: a `$`."""
        lines = read(path)
        return [x for x in lines if x.startswith("//") or "$" in x] if path.endswith(".c") else lines

    code.read_utilities_hook = titles_only
    return True


def translate(text: str) -> str:
    """The C of the whole extension module."""
    from Cython.Compiler import Options
    from Cython.Compiler.Main import compile as compile_file

    with tempfile.TemporaryDirectory(prefix="metaphrase-") as directory:
        source = os.path.join(directory, NAME + ".pyx")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        options = Options.CompilationOptions(
            defaults=Options.default_options, language_level=3, compiler_directives=dict(DIRECTIVES), include_path=[]
        )
        printed = io.StringIO()
        collecting = gc.isenabled()
        gc.disable()  # a translation makes few cycles and lasts milliseconds
        try:
            with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(printed):
                result = compile_file(source, options)
        except Exception as error:  # Cython's own CompileError, or a crash of Cython
            raise TranslateError(printed.getvalue() or f"{type(error).__name__}: {error}") from error
        finally:
            if collecting:
                gc.enable()
        if result.num_errors:
            raise TranslateError(printed.getvalue().replace(directory + os.sep, ""))
        with open(os.path.join(directory, NAME + ".c"), encoding="utf-8") as file:
            return vectorized(file.read())


def vectorized(c_text: str) -> str:
    """Marks before a loop become its pragma: Cython can't put one there."""

    def pragma(found: re.Match) -> str:
        if "mp_simd_rolled(" in found[1]:
            return f'{found[2]}{found[3]}_Pragma("GCC unroll 1")\n{found[3]}for ('
        clauses = ""
        for how, name in SIMD_MARK.findall(found[1]):
            if how.startswith("lanes"):
                clauses += f" simdlen({how.removeprefix('lanes')})"
            elif how != "apart":
                clauses += f" reduction({SIMD_SPELLED.get(how, how)}:{name})"
        return f'{found[2]}{found[3]}_Pragma("omp simd{clauses}")\n{found[3]}for ('

    return SIMD_LOOP.sub(pragma, c_text)


def _sections(c_text: str) -> dict[str, str]:
    parts = SECTION.split(c_text)
    return dict(zip(parts[1::2], parts[2::2]))


def mangled(function: str) -> str:
    """The C name that Cython gives to a cdef function of the module."""
    return f"__pyx_f_{len(NAME)}{NAME}_{function}"


def function_name(name: str) -> str:
    """What a debugger calls the program `name`. `mp_py_` is the start of no other name in C."""
    return "mp_py_" + (re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")[:64] or "function")


def named(c_text: str, name: str) -> str:
    """The C whose functions are named for the program."""
    return c_text.replace(mangled(""), function_name(name) + "_")


def cut(c_text: str, name: str) -> str:
    """Only the functions, with verbatim C, types and prototypes; `SYMBOL` is the one exported name."""
    sections = _sections(c_text)
    try:
        start = c_text.index("/* Early includes */") + len("/* Early includes */")
        early = c_text[start : c_text.index("#ifdef _OPENMP", start)]
        declarations = sections["module_declarations"].split(f'/* Module declarations from "{NAME}" */')[1]
        types, body = sections["type_declarations"], sections["module_code"]
    except (KeyError, ValueError, IndexError) as error:
        raise CutError(f"Cython's output has no {error}") from None
    kernel = "\n".join((PRELUDE, early, types, declarations, body, exported(body, name)))
    kernel = re.sub(r"\n\s*\n+", "\n", kernel)
    foreign = set(re.findall(r"\b(?:__Pyx_\w+|Py[A-Z]\w+)", kernel)) - {"Py_ssize_t"}
    if foreign:
        raise CutError(f"the functions use {', '.join(sorted(foreign))}")
    if mangled("entry") + "(" not in kernel:
        raise CutError("the module defines no function `entry`")
    asks = mangled("work(") in kernel
    kernel = named(kernel, name)
    apart = "static __attribute__((noinline)) "
    if asks:
        entry = f"int {function_name(name)}_entry("
        kernel = kernel.replace("static " + entry, apart + entry, 1)
    return OUTLINED.sub(apart + r"\1", kernel)


def exported(c_text: str, name: str) -> str:
    """The function that is called from outside, and the pointer to it: of two names for one address a profiler might
    show the other one. A function `work` of the module asks for signals first."""
    function, parameters = function_name(name), "(mp_ctx *c, void **buffers, const int64_t *sizes)"
    asks = f"{mangled('work')}(c, buffers, sizes) ? MP_INTERRUPTED : " if mangled("work(") in c_text else ""
    return (
        f"\nstatic int {function}{parameters} {{\n"
        f"    return {asks}{mangled('entry')}(c, buffers, sizes);\n}}\n"
        f'__attribute__((visibility("default")))\n'
        f"int (*const {SYMBOL}){parameters} = {function};\n"
    )


def request(text: str, whole: bool, name: str, patched: bool = False) -> dict[str, str]:
    """The answer: `c` with its `form` (kernel or extension), or `error`; `note`: why it was not cut.
    `patched`: this process can only cut."""
    if whole and patched:
        return _plainly(text, whole, name)
    try:
        c_text = translate(text)
    except TranslateError as error:
        return {"error": str(error)}
    if not whole:
        try:
            return {"c": cut(c_text, name), "form": "kernel"}
        except CutError as error:
            if patched:
                return _plainly(text, whole, name)
            return {"c": named(c_text + exported(c_text, name), name), "form": "extension", "note": str(error)}
    return {"c": named(c_text + exported(c_text, name), name), "form": "extension"}


def _plainly(text: str, whole: bool, name: str) -> dict[str, str]:
    """`request`, by a process whose Cython is as it was installed."""
    import subprocess

    asked = {"text": text, "whole": whole, "name": name}
    question = json.dumps({"path": sys.path}) + "\n" + json.dumps(asked) + "\n"
    done = subprocess.run(
        [sys.executable, "-S", "-P", __file__, "plainly"],
        input=question,
        text=True,
        encoding="utf-8",
        capture_output=True,
    )
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr or f"the translating process ended with {done.returncode}"}


WARM_TEXT = """
cdef extern from "abi.h" nogil:
    ctypedef long long int64_t
    ctypedef struct mp_ctx:
        int64_t fuel
cdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:
    cdef int64_t i
    for i in range(sizes[0]):
        if i > 3:
            (<double*>buffers[0])[i] = i * 2.0
    return 0
"""


def serve(plainly: bool) -> None:
    """Answer requests until the input ends, which it does when the process that started this one ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints must not break the protocol
    first = json.loads(sys.stdin.readline())
    sys.path[:], tempfile.tempdir = first["path"], first.get("scratch")
    patched = False
    if not plainly:
        patched = quick_start()
        translate(WARM_TEXT)
        gc.collect()
        gc.freeze()
    for line in sys.stdin:
        question = json.loads(line)
        answers.write(json.dumps(request(question["text"], question["whole"], question["name"], patched)) + "\n")
        answers.flush()


def convert(source: str, target: str, name: str) -> None:
    """Translate one file into another."""
    with open(source, encoding="utf-8") as file:
        answer = request(file.read(), False, name)
    if answer.get("form") != "kernel":
        sys.exit(answer.get("error") or f"{source}: {answer['note']}")
    with open(target, "w", encoding="utf-8") as file:
        file.write(answer["c"])


if __name__ == "__main__" and len(sys.argv) == 4:
    convert(*sys.argv[1:])
elif __name__ == "__main__":
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C belongs to the user's program
    serve(plainly=sys.argv[1:] == ["plainly"])
