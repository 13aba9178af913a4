"""The plans of earlier processes: looked up before anything is translated, kept when something was.

In: a jitted function and a call that none of its programs serves. Out: a `Specialisation` made of a plan on disk, if
there is one that holds; None otherwise. Example:

    row = recall(jit, call)                      # reads, checks guards, loads a library: no pass is imported
    keep(jit, call, compiled, entry, ...)        # for the next process; what can't be told to it is not kept

A plan is found by a key of all that is known before it is read: the function's code and default values, the
transformations around it, the types of the call, the settings, the versions of Python, NumPy, SciPy and ourselves,
the compiler and the machine. What else the program relies on stands in the plan, and is compared when it is read.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import astpasses, runtime
from ..._version import VERSION
from ...config import config
from ...late import log, module
from ...runtime import cython_build, dispatch
from ...runtime.cache import Cache, key_of
from ...runtime.compiler import find_compiler, flags, machine_identity
from ..arguments import Call, Form, Spec
from ..execute import Specialisation
from ..statics import distinctions
from .fingerprints import NotPortable, callable_fingerprint, fingerprint, is_value, own_functions, structure_fingerprint
from .reading import Stale, read_plan
from .sources import modules_of

if TYPE_CHECKING:
    from ...runtime.entry import Entry
    from ..compile import Compiled
    from ..jit import Jit

writing = module("metaphrase.api.plans.writing")

MOST = 16  # plans under one key: of sizes that differ, and of values that programs were translated for


def _cache() -> Cache | None:
    """Where plans are, unless the user has switched them off or wants to see the stages."""
    return cython_build.open_cache() if config.plans and not config.print_stages else None


def _key(jit: Jit, call: Call) -> str:
    """Of what is known of a call before a plan is read."""
    return key_of(
        "plan",
        *makers(),
        find_compiler().identity,
        machine_identity(),
        repr((flags(config.contract, config.fastmath), config.snapshot(), np.geterr())),
        callable_fingerprint(jit.dispatcher),
        structure_fingerprint(call.structure),
        repr([_spec(spec) for spec in call.specs]),
        repr(distinctions(call.structure)),
    )


def _spec(spec: Spec) -> tuple:
    if spec.form is Form.STATIC:
        return "static", fingerprint(spec.value)
    return spec.form.value, str(spec.dtype), len(spec.dims), spec.python and spec.python.__name__


@functools.cache
def makers() -> tuple[str, ...]:
    """What makes a plan: Python, NumPy, SciPy and ourselves."""
    scipy = importlib.util.find_spec("scipy")
    package = functools.reduce(lambda place, _: os.path.dirname(place), range(3), os.path.abspath(__file__))
    return (
        sys.version,
        str(sys.flags.optimize),
        np.__version__,
        "" if scipy is None or scipy.origin is None else _stamp(os.stat(scipy.origin)),
        VERSION,
        "\n".join(_installation(package)),
    )


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size}:{status.st_mtime_ns}"


def _installation(package: str) -> Iterator[str]:
    """What tells an installation from another one of the same version: the list of files that an installer wrote
    beside the package or, in a checkout, every file by its size and time of change."""
    record = os.path.join(os.path.dirname(package), f"metaphrase-{VERSION}.dist-info", "RECORD")
    try:
        status = os.stat(record)
    except OSError:
        yield from _files_of(package)
    else:
        yield f"{record} {status.st_ino} {_stamp(status)}"


def _files_of(package: str) -> Iterator[str]:
    folders = [package, *(room.__path__[0] for room in (astpasses, runtime))]
    seen = set()
    while folders:
        folder = folders.pop()
        if folder in seen:
            continue
        seen.add(folder)
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith((".py", ".so", ".h")):
                    yield f"{entry.name} {_stamp(entry.stat())}"
                elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)


def recall(jit: Jit, call: Call) -> Specialisation | None:
    """The program of a plan on disk that serves a call."""
    cache = _cache()
    if cache is None:
        return None
    start = time.perf_counter()
    try:
        key = _key(jit, call)
    except Exception as why:  # whatever the user's objects raise, the program is translated
        log.debug("%s: no plan can be found on disk: %s", jit.__name__, why)
        return None
    for path, text in cache.texts(key):
        row = _recalled(jit, call, text)
        if row is not None:
            cache.used(path)
            log.info("%s: found on disk (%.1f ms)", jit.__name__, 1e3 * (time.perf_counter() - start))
            return row
    return None


def _recalled(jit: Jit, call: Call, text: str) -> Specialisation | None:
    try:
        plan = read_plan(text, jit.fun, call.leaves, _given(call))
        outline = plan.entry(address=1, uses_blas=False, uses_fourier=False)  # never run: does the call match it?
        if not jit.dispatcher.matches(dispatch.CompiledEntry(outline), jit.bind(call.args, call.kwargs)):
            raise Stale("it is for other sizes or numbers")
        library = cython_build.find(plan.library, jit.__name__)
        if library is None:
            raise Stale("its library is gone")
    except Exception as why:  # whatever the user's objects raise, the program is translated
        log.debug("%s: a plan on disk does not hold: %s", jit.__name__, why)
        return None
    return jit.recalled(call, plan, dispatch.CompiledEntry(plan.entry(library.address, library)), library)


def _given(call: Call) -> list[Any]:
    """The objects among the arguments. Which other places hold one of them is compared, as far as the program looks."""
    return [spec.value for spec in call.specs if spec.form is Form.STATIC and not is_value(spec.value)]


def _users(jit: Jit, entry: Entry) -> Iterator[Any]:
    """The functions and classes that a program ran through."""
    yield from own_functions(jit.fun)
    for guard in entry.guards:
        if guard.mode in ("function", "class"):
            yield guard.source.value  # type: ignore[union-attr]


def keep(jit: Jit, call: Call, compiled: Compiled, entry: Entry, dims: Sequence, least: dict, title: str) -> None:
    """Keep the plan of a program that was made for a call."""
    cache = _cache()
    library = compiled.library
    if cache is None or library.path.parent.parent != cache.directory:
        return
    try:
        if entry.same:
            raise NotPortable("which arguments are one array")
        statics = [spec.form is Form.STATIC for spec in compiled.specs]
        text = writing.plan_text(
            entry,
            jit.fun,
            [leaf if static else None for leaf, static in zip(compiled.leaf_entries, statics)],
            call.leaves,
            _given(call),
            compiled.sites,
            sources=modules_of(_users(jit, entry)),
            title=title,
            dims=dims,
            least=least,
            library=library.path.parent.name,
        )
        cache.keep_text(_key(jit, call), text, MOST)
    except NotPortable as why:
        log.debug("%s: its plan is not kept on disk, which would have to name %s", jit.__name__, why)
    except Exception as why:  # whatever the user's objects raise, the program runs
        log.debug("%s: its plan is not kept on disk: %s", jit.__name__, why)


__all__ = ["keep", "recall"]
