"""Compiled functions in files: `f.lower(...).compile().save(path)`, and `metaphrase.load(path)` in a later process.

In: the entry of a compiled function and its library. Out: one file, a zip of plan, native code and constants; and of it
a function. A file is for the machine and the version that it was made with, and says so when it is loaded elsewhere.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._version import VERSION
from ..exceptions import Site
from ..runtime import scratch
from ..runtime.compiler import machine_identity
from ..runtime.entry import Entry
from ..runtime.module import Module
from ..source import SourceError
from .plans.fingerprints import NotPortable
from .plans.modules import ModuleWriter, refused, written_defaults
from .program import caller_span

if TYPE_CHECKING:
    from .arguments import Call
    from .jit import Jit

_HEAD, _CONSTANTS, _LEVEL = "saved.json", "constants.npz", "saved"


Part = tuple[Entry | None, Sequence[Site], Path]  # native code: how it is called, what it says, its library


def save(path: Path, jitted: Jit, parts: Sequence[Part], call: Call) -> None:
    """Write the file; see `CompiledFunction.save`. `parts`: what serves the calls, in the order to try."""
    name = jitted.__name__
    constants: list[np.ndarray] = []
    texts = [_plan(name, f"{name}.{k}", part, call, constants) for k, part in enumerate(parts)]
    layout = jitted.dispatcher
    head = {
        "metaphrase": VERSION,
        "machine": machine_identity(),
        "name": name,
        "parameters": layout.parameters,
        "defaults": repr(written_defaults(name, layout)),
        "keyword_only": layout.keyword_only,
        "positional_only": layout.positional_only,
        "doc": getattr(layout, "__doc__", None),
        "parts": len(parts),
    }
    held = BytesIO()
    np.savez(held, **{str(k): array for k, array in enumerate(constants)})  # type: ignore[arg-type]
    pending = path.with_name(f"{path.name}.{os.getpid()}.pending")
    with zipfile.ZipFile(pending, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(_HEAD, json.dumps(head))
        file.writestr(_CONSTANTS, held.getvalue())
        for k, (text, (_, _, library)) in enumerate(zip(texts, parts)):
            plan, kernel = _places(name, k)
            file.writestr(plan, text)
            file.write(library, kernel)
    os.replace(pending, path)


def _places(name: str, part: int) -> tuple[str, str]:
    """Where the plan of a part and its native code stand."""
    return f"plans/{name}.{part}.py", f"kernels/{name}.{part}.{_LEVEL}.so"


def _members(head: dict[str, Any]) -> Iterator[str]:
    """What a file holds."""
    yield _CONSTANTS
    for part in range(head["parts"]):
        yield from _places(head["name"], part)


def _plan(name: str, stem: str, part: Part, call: Call, constants: list[np.ndarray]) -> str:
    """What the calls of a part do. `stem`: the name of its library."""
    entry, sites, _ = part
    if entry is None:
        raise refused(name, caller_span(), "it stores into a list, a dict or an object that it is given")
    title = f"({', '.join(spec.text() for spec in call.specs)})"
    try:
        return ModuleWriter(entry, constants).text(sites, title=title, dims=call.dims, library=stem)
    except NotPortable as why:
        raise refused(name, caller_span(), f"a file would have to name {why}") from None


def load(path: str | os.PathLike) -> Any:
    """The function that `f.lower(...).compile().save(path)` has kept: native code for the types it was lowered for.

    It takes and gives what the compiled function does, and imports nothing that translates. Loading a file is running
    it: load what you trust. Raises SourceError for what is no such file, or was saved by another machine or version.
    """
    try:
        with zipfile.ZipFile(path) as file:
            head = json.loads(file.read(_HEAD))
            if head["metaphrase"] != VERSION:
                raise _foreign(path, f"was saved by metaphrase {head['metaphrase']}, and this is {VERSION}")
            if head["machine"] != machine_identity():
                raise _foreign(path, "was saved on a machine with another processor or C library")
            missing = sorted({*_members(head)} - {*file.namelist()})
            if missing:
                raise _foreign(path, f"is no saved function: it lacks {' and '.join(missing)}")
            folder = scratch.lasting() / f"{Path(path).stem}-{os.urandom(6).hex()}"
            file.extractall(folder)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise _foreign(path, f"is no saved function: {error}") from None
    module = Module(Path(path).name, folder)
    module.levels = [_LEVEL]
    defaults = eval(head["defaults"], {"__builtins__": {}})
    only = head["keyword_only"], head["positional_only"]
    function: Any = module.function(head["name"], head["parameters"], defaults, *only, head["doc"])
    again = os.path.abspath(path)
    function.reduce = lambda: (load, (again,))
    return function


def _foreign(path: Any, why: str) -> SourceError:
    return SourceError(
        f"{path} {why}", caller_span(), code="saved", remedy="save it again here: f.lower(...).compile().save(path)"
    )


__all__ = ["load", "save"]
