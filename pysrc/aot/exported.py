"""What is exported, signature by signature: the call that a text describes, and a program for it.

In: an exported function and the text of one of its signatures. Out: `Signature`, and `Made` for what a whole module
became. Example:

    for signature in signatures("period", function):
        signature.title                                     # "(f64, f64)"
        signature.native()                                  # the texts of native code that serve it
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._version import VERSION
from ..api.arguments import Call, take_apart
from ..api.compile import Compiled, by_sizes, compile_program, for_every_size
from ..api.jit import Jit
from ..api.plans.fingerprints import NotPortable
from ..api.plans.modules import ModuleWriter, refused
from ..api.transforms import jitted_of
from ..api.types import parse_call_of
from ..astpasses.emit.cython_text import EmittedText
from ..core.dims import symbols_of
from ..late import dataclass, field
from ..pipeline import cython, loops
from ..runtime import entry as abi
from ..runtime.cython_build import Library

Progress = Callable[[str, int, int], None]


@dataclass
class Made:
    """The (types, entry) of each signature of each function."""

    rows: dict[str, list[tuple[str, abi.Entry]]] = field(default_factory=dict)
    needs_scipy: bool = False
    needs_ml_dtypes: bool = False

    def titles(self, public: str) -> list[str]:
        return [title for title, _ in self.rows[public]]

    def entries(self, public: str) -> list[abi.Entry]:
        return [entry for _, entry in self.rows[public]]


@dataclass
class Signature:
    """One text of types of one function."""

    public: str
    number: int
    title: str
    jitted: Jit
    call: Call

    def program(self, compiled: Callable[..., Compiled]) -> Compiled:
        """Compiled for sizes from 0 on; where that can't be, from 1 or 2 on."""
        return for_every_size(self._by(compiled), self._sizes())

    def native(self) -> list[Compiled]:
        """The texts of native code that serve all sizes, in the order to try."""
        return by_sizes(self._by(_as_text), self._sizes())

    def _sizes(self) -> list[str]:
        return sorted(symbols_of(dim for dims in self.call.dims for dim in dims))

    def _by(self, compiled: Callable[..., Compiled]) -> Callable[[dict[str, int]], Compiled]:
        call = self.call

        def make(least: dict[str, int]) -> Compiled:
            return compiled(self.jitted._program(call.structure, call.specs), call.specs, self.public, least)

        return make

    def plan(self, compiled: Compiled, constants: list[np.ndarray], stem: str = "") -> tuple[abi.Entry, str]:
        """What the calls do, and the text of it. `stem`: the name of its library. Raises SourceError for what has no
        meaning without metaphrase."""
        entry = compiled.entry_for_call(self.jitted, self.call.structure, self.call.specs)
        if entry is None:
            raise refused(self.public, self.jitted.span, "it stores into a list, a dict or an object that it is given")
        try:
            writer = ModuleWriter(entry, constants)
            return entry, writer.text(compiled.sites, title=self.title, dims=self.call.dims, library=stem)
        except NotPortable as why:
            raise refused(self.public, self.jitted.span, f"a package would have to name {why}") from None


def _as_text(program: Any, specs: Any, name: str, least: dict[str, int]) -> Compiled:
    """As `compile_program`, without a library that this process would load."""

    def emitted(function: Any, name: str, written: dict) -> tuple[Library, EmittedText]:
        made = cython(loops(function, written))
        return Library(name, 0, "", made.text, False, "kernel"), made

    return compile_program(program, specs, name, least, emitted)


def signatures(public: str, function: Any) -> Iterator[Signature]:
    """Of one function, in their order, with the default values of what they leave out."""
    jitted = jitted_of(function)
    assert jitted is not None
    for number, text in enumerate(function.exports):
        args, kwargs = jitted._user_call(jitted.bind(*parse_call_of(jitted.signature, text)))
        yield Signature(public, number, f"({text})", jitted, take_apart(args, kwargs, jitted.static, jitted.in_order))


def calls_export(path: Path) -> bool:
    """Whether a file calls `mp.export` or `export`, as far as its text tells."""
    text = path.read_bytes()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return b"metaphrase" in text  # importing it says what is wrong
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(getattr(called, "attr", getattr(called, "id", None)) == "export" for called in calls)


def head(module: types.ModuleType, made: str) -> str:
    """The docstring of a package, which says what it was made from. `made`: "Compiled", say."""
    by = f"{made} by metaphrase {VERSION} from {Path(module.__file__ or module.__name__).name}."
    return quoted("\n\n".join(filter(None, ((module.__doc__ or "").strip(), by))))


def quoted(text: str) -> str:
    """A docstring."""
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{text}\n"""' if "\n" in text else f'"""{text}"""'


def literal(text: str) -> str:
    """A string as Python text, in double quotes where that reads as well.

    >>> print(literal("f64[n]"), literal("{'w': f64}"), literal('say "x"'))
    "f64[n]" "{'w': f64}" 'say "x"'
    """
    written = repr(text)
    return f'"{written[1:-1]}"' if written[0] == "'" and '"' not in text and "\\'" not in written else written


def free_name(wish: str, taken: Container[str]) -> str:
    """A name that is not taken.

    >>> free_name("_module", {"_module", "period"}), free_name("_module", {"period"})
    ('_module_', '_module')
    """
    while wish in taken:
        wish += "_"
    return wish


def names_text(names: Iterable[str]) -> str:
    """`__all__` of a module."""
    parts = [literal(name) for name in sorted(names)]
    line = f"__all__ = [{', '.join(parts)}]"
    return line if len(line) <= 120 else "\n".join(["__all__ = [", *(f"    {part}," for part in parts), "]"])


__all__ = [
    "Made",
    "Progress",
    "Signature",
    "calls_export",
    "free_name",
    "head",
    "literal",
    "names_text",
    "quoted",
    "signatures",
]
