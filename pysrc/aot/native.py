"""Packages of native code: kernels for two levels of the processor, plans of the calls, and what runs them.

In: a module and its exported functions. Out: files in a folder: `kernels/*.so` with their Cython text and the Makefile
that builds them from it, `plans/*.py`, `constants.npz`, `_metaphrase`, `__init__.py`. Example:

    made = write(module, exported(module), folder, levels_of(None), progress)
    made.titles("period")                                   # ["(f64, f64)"]
"""

from __future__ import annotations

import itertools
import platform
import shutil
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import core, runtime
from .._version import VERSION
from ..api.arguments import refuse_unknown_sizes
from ..api.compile import Compiled
from ..api.plans.modules import written_defaults
from ..api.text import documentation
from ..config import config
from ..runtime import cython_build, cython_translate
from ..runtime.abi import HEADERS
from ..runtime.abi3 import EXTENSION
from ..runtime.compiler import LINK_FLAGS, flags
from ..runtime.cython_translate import function_name
from ..runtime.miscompilations import precautions
from ..runtime.module import LEVELS
from .exported import Made, Progress, Signature, free_name, head, literal, names_text, signatures
from .own_exceptions import exceptions, exceptions_text

TRANSLATOR = "translate.py"


def write(
    module: types.ModuleType, functions: dict[str, Any], folder: Path, levels: Sequence[str], progress: Progress
) -> Made:
    """The package, without its types for editors."""
    for inner in ("plans", "kernels"):
        (folder / inner).mkdir()
    constants: list[np.ndarray] = []
    made = Made()
    rows = [signature for public, function in functions.items() for signature in signatures(public, function)]
    stems = {public: itertools.count() for public in functions}
    kernels: dict[str, Compiled] = {}
    for number, signature in enumerate(rows):

        def told(level: str, k: float, done: int = number, signature: Signature = signature) -> None:
            what = f"{signature.public}{signature.title} for {level}"
            progress(what, int((done + k) * len(levels)), len(rows) * len(levels))

        told(levels[0], 0)
        refuse_unknown_sizes(signature.public, signature.call.dims, signature.jitted.span)
        programs = signature.native()
        for k, compiled in enumerate(programs):
            stem = f"{signature.public}.{next(stems[signature.public])}"
            entry, plan = signature.plan(compiled, constants, stem)
            (folder / "plans" / f"{stem}.py").write_text(plan)
            (folder / "kernels" / f"{stem}.pyx").write_text(compiled.library.text)
            kernels[stem] = compiled
            for j, level in enumerate(levels):
                if k or j:  # the first was told before it was translated
                    told(level, (k + j / len(levels)) / len(programs))
                _build(compiled, folder / "kernels" / f"{stem}.{level}.so", level)
        made.rows.setdefault(signature.public, []).append((signature.title, entry))
        made.needs_scipy |= entry.uses_blas
        made.needs_ml_dtypes |= "'bf16'" in plan
    if constants:
        np.savez(folder / "constants.npz", **{str(k): array for k, array in enumerate(constants)})  # type: ignore[arg-type]
    _copy_runtime(folder / "_metaphrase")
    shutil.copyfile(cython_translate.__file__, folder / "kernels" / TRANSLATOR)
    (folder / "kernels" / "Makefile").write_text(_makefile(kernels, levels))
    (folder / "__init__.py").write_text(_init_text(module, functions))
    return made


def levels_of(levels: Sequence[str] | None) -> list[str]:
    """The best first, as a package looks for them."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return [platform.machine()]
    unknown = [level for level in levels or () if level not in LEVELS]
    if unknown:
        raise ValueError(f"no level of the processor is called {unknown[0]!r}; there are {', '.join(LEVELS)}")
    return [level for level in LEVELS if levels is None or level in levels]


def _build(compiled: Compiled, path: Path, level: str) -> None:
    library = cython_build.build(
        compiled.library.text,
        name=compiled.name,
        contract=config.contract,
        fastmath=config.fastmath,
        extra_flags=_flags(level),
    )
    shutil.copyfile(library.path, path)


def _flags(level: str) -> tuple[str, ...]:
    return (f"-march={level}", "-mtune=generic") if level in LEVELS else ("-march=armv8-a",)


def _makefile(kernels: dict[str, Compiled], levels: Sequence[str]) -> str:
    """Builds `kernels/*.so` from `kernels/*.pyx` with Cython and a C compiler, without metaphrase."""
    usual = flags(config.contract, config.fastmath)
    rows = [
        f"# Builds the kernels from their Cython text. Written by metaphrase {VERSION}.",
        "CC ?= cc",
        "PYTHON ?= python3  # one that has Cython",
        f"CFLAGS = {' '.join(flag for flag in usual if flag != '-march=native')}",
        f"LDFLAGS = {' '.join(LINK_FLAGS)}",
        f"KERNELS = {' '.join(kernels)}",
        "",
        f"all: {' '.join(f'$(KERNELS:%=%.{level}.so)' for level in levels)}",
        "",
    ]
    for stem, compiled in kernels.items():
        rows += [
            f"{stem}.c: {stem}.pyx",
            f"\t$(PYTHON) {TRANSLATOR} $< $@ {function_name(compiled.name).removeprefix('mp_py_')}",
            "",
        ]
    for level in levels:
        command = f"$(CC) $(CFLAGS) {' '.join(_flags(level))} -I../_metaphrase/runtime $< -o $@ $(LDFLAGS)"
        rows += [f"%.{level}.so: %.c", f"\t{command}", ""]
    for stem, compiled in kernels.items():
        own = precautions(compiled.library.text)
        rows += [f"{' '.join(f'{stem}.{level}.so' for level in levels)}: CFLAGS += {' '.join(own)}", ""] if own else []
    rows += ["clean:", "\trm -f *.so $(KERNELS:%=%.c)", "", ".PHONY: all clean", ""]
    return "\n".join(rows)


# ---- the package's own text --------------------------------------------------------------------------------------


def _init_text(module: types.ModuleType, functions: dict[str, Any]) -> str:
    own = exceptions(module)
    maker, made = (free_name(name, {*own, *functions}) for name in ("_Module", "_module"))
    rows = [head(module, "Compiled"), "", f"from ._metaphrase.runtime.module import Module as {maker}"]
    rows += [*exceptions_text(own), "", f"{made} = {maker}(__name__, __path__[0])"]
    rows += [_function_text(name, function, made) for name, function in functions.items()]
    rows += ["", names_text([*own, *functions]), ""]
    return "\n".join(rows)


def _function_text(name: str, function: Any, module: str) -> str:
    defaults = written_defaults(name, function)
    parameters = function.parameters and tuple(function.parameters)
    parts = [literal(name), repr(parameters).replace("'", '"')]
    if defaults:
        parts.append(f"defaults={defaults!r}")
    if function.keyword_only:
        parts.append(f"keyword_only={function.keyword_only}")
    if function.positional_only:
        parts.append(f"positional_only={function.positional_only}")
    if doc := documentation(function):
        parts.append(f"doc={literal(doc)}")
    return f"{name} = {module}.function({', '.join(parts)})"


def _copy_runtime(folder: Path) -> None:
    for path, place in _runtime_files():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / place)
    (folder / "__init__.py").write_text(_RUNTIME)


_RUNTIME = '''"""What runs the calls of this package, copied from metaphrase."""

import sys

from .runtime import dispatch

# The extension enters itself under the name that it was compiled for as well, which another package's has, too.
if sys.modules.get("metaphrase.runtime.abi3.dispatch") is dispatch:
    del sys.modules["metaphrase.runtime.abi3.dispatch"]
'''


def _runtime_files() -> Iterator[tuple[Path, str]]:
    """(file, its place in the package)."""
    rooms = {"": Path(__file__).parent, "core": core.__file__, "runtime": runtime.__file__}
    names = {
        "": ("source.py", "exceptions.py", "effects.py", "late.py", "locks.py"),
        "core": ("__init__.py", "dims.py", "types.py"),
        "runtime": (
            *"__init__.py abi.py accepted.py entry.py errors.py plans.py module.py threads.py".split(),
            *HEADERS,
        ),
    }
    for room, files in names.items():
        folder = Path(str(rooms[room])).parent
        yield from ((folder / name, f"{room}/{name}" if room else name) for name in files)
    yield EXTENSION, "runtime/dispatch.abi3.so"


__all__ = ["levels_of", "write"]
