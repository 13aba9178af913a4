"""Native code of a Program, and the entries by which the dispatcher runs it.

In: a Program and the specs of the call that it was made for. Out: `Compiled`, whose `entry_for_call` serves
the user's calls and `entry_for_leaves` the leaves alone; `Lowered` and `CompiledFunction` for `f.lower(...)`.
Example:

    compiled = compile_program(program, call.specs, "period")
    dispatcher.add(compiled.entry_for_call(jit, call.structure, call.specs))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..astpasses.frontend import Source, sizes_at_least
from ..core.dims import DimLike, product, symbols_of
from ..core.types import Array
from ..late import dataclass, field
from ..pipeline import finished, loops, native
from ..runtime import dispatch
from ..runtime import entry as abi
from ..runtime.cython_build import Library
from ..runtime.devices import CPU
from ..runtime.plans import callbacks_of, raiser, site_table
from ..source import SourceError, UnsupportedError
from ..tree_util import PyTreeDef, tree_structure
from . import memory as memory
from .arguments import Call, Spec, refuse_unknown_sizes, take_apart
from .captures import capture_roots, entry_guards, entry_source, rooms_of
from .entry import call_roots, leaf_of, output_of, result_of, size_names, slot_output, static_leaf, work_of
from .execute import finish
from .nonfinite import looked_at
from .program import Fixed, Program, caller_span
from .saved import save
from .staging import out_structs, slot_of
from .tracebacks import is_users_error, user_frames
from .transforms import parameter_names
from .types import ShapeDtypeStruct

if TYPE_CHECKING:
    from ..astpasses.emit.cython_text import EmittedText
    from ..astpasses.schedule.costs import Costs
    from .jit import Jit

R = TypeVar("R", covariant=True)


@dataclass
class Compiled:
    """A native program and the pieces of its entries."""

    program: Program
    function: Any
    library: Library
    sites: tuple
    symbols: tuple[str, ...]
    specs: Sequence[Spec]
    name: str
    uses_blas: bool
    in_place: dict[int, int]  # results made in the storage of a parameter
    least: dict[str, int] = field(default_factory=dict)
    uses_fourier: bool = False

    def __post_init__(self) -> None:
        params = self.function.params
        self.leaf_entries: list[Any] = [
            static_leaf(leaf.value)
            if isinstance(leaf, Fixed)
            else leaf_of(spec, params[leaf].type, position in self.program.ordered)
            for position, (leaf, spec) in enumerate(zip(self.program.leaves, self.specs))
        ]
        self.flat_leaves = [e for e, spec in zip(self.leaf_entries, self.specs) if spec.dynamic]

    def _common(self) -> dict[str, Any]:
        known = frozenset(self.symbols)
        forms = self.program.forms
        results = tuple(
            result_of(r.type.plain, known, form) for r, form in zip(self.function.results, forms, strict=True)
        )
        table = site_table(self.sites)
        return dict(
            address=self.library.address,
            symbols=self.symbols,
            results=results,
            raise_site=raiser(table, rooms_of(self.program)),
            callbacks=callbacks_of(self.sites),
            uses_blas=self.uses_blas,
            uses_fourier=self.uses_fourier,
            name=self.name,
            minimum=self.least or None,
            work=work_of(self.function, known),
            keep=(self.library, table, self.program),
        )

    def entry_for_leaves(self) -> abi.Entry:
        """Serves the dynamic leaves of a call as positional arguments, and gives all results."""
        captures = capture_roots(self.program, self.function)
        roots = [abi.Root(abi.Position(k), leaf) for k, leaf in enumerate(self.flat_leaves)]
        roots += [abi.Root(source, leaf) for source, leaf in captures]
        parameters: list[Any] = [leaf for _, leaf in captures]
        parameters += [self.leaf_entries[position] for position in memory.leaf_positions(self.program)]
        count = len(self.function.results)
        output = abi.Sequence(tuple, tuple(abi.Result(k) for k in range(count)))
        writes = tuple(abi.Write(k, parameters[p], in_place=True) for k, p in self.in_place.items())
        return abi.Entry(
            roots=tuple(roots), parameters=tuple(parameters), output=output, writes=writes, **self._common()
        )

    def owned_leaves(self, call: Call) -> tuple:
        """The dynamic leaves, copies of those that the program overwrites: `finish` stores into the
        caller's."""
        written = set(self.in_place.values())
        parameters = [leaf for leaf, spec in zip(self.program.leaves, self.specs) if spec.dynamic]
        return tuple(
            np.array(x) if not isinstance(p, Fixed) and p in written else x
            for p, x in zip(parameters, call.dynamic_leaves(), strict=True)
        )

    def entry_for_call(self, jit: Jit, structure: PyTreeDef, specs: Sequence[Spec]) -> abi.Entry | None:
        """Serves the user's calls directly; None for a program that writes to containers it is given."""
        if not all(map(_is_direct, self.program.writes)):
            return None
        roots = call_roots(structure, self.leaf_entries, jit.dispatcher.parameters, jit.static, jit.in_order)
        captures = capture_roots(self.program, self.function)
        roots += [abi.Root(source, leaf) for source, leaf in captures]
        guards, comparisons = entry_guards(self.program.guards)
        parameters: list[Any] = [leaf for _, leaf in captures]
        parameters += [self.leaf_entries[position] for position in memory.leaf_positions(self.program)]
        output = output_of(self.program.out, iter([self._slot(s, parameters) for s in self.program.slots]))
        writes = tuple(
            abi.Write(
                w.index,
                self.leaf_entries[w.target] if w.kind == "argument" else parameters[w.target],
                contiguous=w.contiguous,
                in_place=w.index in self.in_place,
            )
            for w in self.program.writes
            if w.kind in ("argument", "capture")
        )
        return abi.Entry(
            roots=tuple(roots),
            parameters=tuple(parameters),
            output=output,
            guards=guards,
            writes=writes,
            stores=tuple(self._store(w, parameters) for w in self.program.writes if w.kind in _STORES),
            same=tuple((self.leaf_entries[k], self.leaf_entries[j]) for k, j in memory.pairs(self.program)),
            comparisons=comparisons,
            **self._common(),
        )

    def _store(self, write: Any, captures: Sequence[Any]) -> abi.Store:
        value = output_of(write.tree, iter([self._slot(slot_of(o), captures) for o in write.outputs]))
        return abi.Store(entry_source(write.target), write.key, value, item=write.kind == "item")

    def _slot(self, slot: Any, captures: Sequence[Any]) -> Any:
        return slot_output(slot, self.leaf_entries, captures)

    def finish(self, call: Call, results: Sequence[Any]) -> Any:
        return finish(self.program, call, results)


def compile_program(
    program: Program,
    specs: Sequence[Spec],
    name: str,
    least: dict[str, int] | None = None,
    make: Callable[..., tuple[Library, EmittedText]] | None = None,
) -> Compiled:
    """Native code for a Program. `least`: the least sizes that it was staged for, 2 where absent. `make`: what makes
    it, in the place of `pipeline.native`."""
    function = finished(program.function)
    # A run that is begun again reads what it was given.
    written = {} if rooms_of(program) else program.new_values
    library, emitted = (make or native)(function, name, written)
    symbols = list(getattr(emitted, "sizes", None) or size_names(function))
    return Compiled(
        program,
        function,
        library,
        emitted.sites,
        tuple(symbols),
        list(specs),
        name,
        "abi_blas.h" in emitted.text,
        dict(emitted.in_place),
        least or {},
        "->fouriers" in emitted.text,
    )


USUAL = 2  # the least size that a call's program is made for, which tests no array for being empty
Make = Callable[[dict[str, int]], Compiled]  # for sizes that are not below these


def for_every_size(make: Make, sizes: Iterable[str]) -> Compiled:
    """Compiled for sizes from 0 on; where that can't be, from 1 or 2 on."""
    for smallest in (0, 1, USUAL):
        try:
            return _made(make, sizes, smallest)
        except SourceError:
            if smallest == USUAL or not sizes:
                raise
    raise AssertionError("the last try raises")


def by_sizes(make: Make, sizes: Iterable[str]) -> list[Compiled]:
    """Native code for all sizes. Before it, where it is other code, that for sizes from 2 on: it tests less, and its
    loops are put in orders that no empty array allows."""
    every = for_every_size(make, sizes)
    if min(every.least.values(), default=USUAL) == USUAL:
        return [every]
    try:
        usual = _made(make, sizes, USUAL)
    except Exception as problem:
        if not is_users_error(problem):
            raise
        return [every]  # which raises it, too: all calls of these sizes do
    return [every] if usual.library.text == every.library.text else [usual, every]


def _made(make: Make, sizes: Iterable[str], smallest: int) -> Compiled:
    least = dict.fromkeys(sizes, smallest)
    with sizes_at_least(least):
        return make(least)


_STORES = ("attribute", "item")


def _is_direct(write: Any) -> bool:
    """Whether the dispatcher can do a store: into an array, or an attribute of an object that it finds."""
    if write.kind in _STORES:
        return isinstance(write.target, Source)
    return write.kind in ("argument", "capture")


class FlatRunner:
    """Runs a call by its leaves; serves what `entry_for_call` can't."""

    def __init__(self, compiled: Compiled):
        self.compiled = compiled
        self.dispatcher = dispatch.Dispatcher(None, tuple(f"p{k}" for k in range(len(compiled.flat_leaves))))
        self.entry = self.dispatcher.add(compiled.entry_for_leaves())

    def serves(self, call: Call) -> bool:
        """Whether the leaves have the types and sizes that the program was made for."""
        return self.dispatcher.matches(self.entry, tuple(call.dynamic_leaves()))

    def __call__(self, call: Call) -> Any:
        memory.check(self.compiled.program, call)
        return self.compiled.finish(call, self.dispatcher.run(self.entry, self.compiled.owned_leaves(call)))


@dataclass(frozen=True)
class MemoryStats:
    """What a compiled function needs of memory, in bytes, by JAX's names; `alias` is what is overwritten."""

    argument_size_in_bytes: DimLike
    output_size_in_bytes: DimLike
    alias_size_in_bytes: DimLike
    temp_size_in_bytes: DimLike
    generated_code_size_in_bytes: int


def _bytes(types: Iterable[Array]) -> DimLike:
    total: DimLike = 0
    for type_ in types:
        total = total + product(type_.dims) * type_.dtype.itemsize
    return total


def _struct(spec: Spec) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(spec.dims, spec.dtype, weak_type=spec.python is not None)


class Lowered(Generic[R]):
    """A function translated for certain types; `compile()` makes native code."""

    def __init__(self, jit: Jit, call: Call, program: Program):
        self.jit, self.call, self.program = jit, call, program

    def as_text(self, stage: str = "core") -> str:
        from .text import source_text

        return source_text(self.jit, stage, program=self.program)

    @property
    def out_info(self) -> Any:
        """The output, with ShapeDtypeStructs for arrays."""
        return out_structs(self.program)

    @property
    def args_info(self) -> tuple[tuple, dict[str, Any]]:
        """The arguments that are not static, positional ones and those by name, with ShapeDtypeStructs for arrays and
        numbers."""
        leaves = [_struct(spec) if spec.dynamic else spec.value for spec in self.call.specs]
        args, kwargs = self.call.structure.unflatten(leaves)
        static = self.jit.static
        given = tuple(a for k, a in enumerate(args) if k not in static)
        return given, {name: a for name, a in kwargs.items() if name not in static}

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of `args_info`."""
        return tree_structure(self.args_info)

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the output."""
        return tree_structure(self.out_info)

    def cost_analysis(self) -> dict[str, DimLike]:
        """What the program costs: "flops", "transcendentals" (values of sin, exp and their like) and "bytes accessed",
        numbers or expressions of the sizes. It counts what the loops do after fusion; rounds that only the run knows
        count once."""
        counted = self._costs()
        return {"flops": counted.flops, "transcendentals": counted.transcendentals, "bytes accessed": counted.accessed}

    def _costs(self) -> Costs:
        from ..astpasses.schedule.costs import ONE_THREAD, costs

        return costs(loops(finished(self.program.function), self.program.new_values, ONE_THREAD))

    def compile(self) -> CompiledFunction[R]:
        place = self.jit.wanted or self.call.device
        if place is not None and place != CPU:
            raise UnsupportedError(
                f"{self.jit.__name__} is to run on {place}, and lower(...).compile() makes code for the CPU",
                caller_span(),
                code="device",
                remedy="call the jitted function: its programs for a GPU are kept, one for each kind of call",
            )
        refuse_unknown_sizes(self.jit.__name__, self.call.dims, caller_span())
        sizes = sorted(symbols_of(dim for dims in self.call.dims for dim in dims))
        return CompiledFunction(self, by_sizes(self._compiled, sizes))

    def _compiled(self, least: dict[str, int]) -> Compiled:
        """For sizes that are not below these: native code of the program, or of another where some are below 2."""
        program, call = self.program, self.call
        if min(least.values(), default=USUAL) < USUAL:
            program = self.jit._program(call.structure, call.specs)
        return compile_program(program, call.specs, self.jit.__name__, least)


class CompiledFunction(Generic[R]):
    """Native code for certain types; a call with others is an error."""

    def __init__(self, lowered: Lowered[R], parts: list[Compiled]):
        """`parts`: what serves the calls, those of other sizes by the next."""
        self.lowered, self.compiled = lowered, parts[0]
        self._runs = [*map(FlatRunner, parts)]

    @property
    def library(self) -> Library:
        return self.compiled.library

    @property
    def out_info(self) -> Any:
        """As of what it was compiled from; so are `args_info`, `in_tree` and `out_tree`."""
        return self.lowered.out_info

    @property
    def args_info(self) -> tuple[tuple, dict[str, Any]]:
        return self.lowered.args_info

    @property
    def in_tree(self) -> PyTreeDef:
        return self.lowered.in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        return self.lowered.out_tree

    def as_text(self) -> str:
        return self.library.text

    def cost_analysis(self) -> dict[str, DimLike]:
        """As of what it was compiled from."""
        return self.lowered.cost_analysis()

    def save(self, path: str | os.PathLike) -> None:
        """Keep it in a file, from which `metaphrase.load` makes a function again, without translating anything. What it
        reads of its module is kept as it is now. Raises SourceError for what a file can't hold: objects of the user's
        classes in arguments or results."""
        lowered = self.lowered
        parts = [run.compiled for run in self._runs]
        entries = [one.entry_for_call(lowered.jit, lowered.call.structure, lowered.call.specs) for one in parts]
        rows = [(entry, one.sites, one.library.path) for entry, one in zip(entries, parts)]
        save(Path(path), lowered.jit, rows, lowered.call)

    def memory_analysis(self) -> MemoryStats:
        """Bytes of arguments, results, temporaries and code: numbers, or expressions of the sizes."""
        function = self.compiled.function
        written = {self.compiled.program.new_values.get(k) for k in self.compiled.in_place} - {None}
        return MemoryStats(
            argument_size_in_bytes=_bytes(p.type for p in function.params),
            output_size_in_bytes=_bytes(r.type for r in function.results),
            alias_size_in_bytes=_bytes(function.params[k].type for k in written if k is not None),
            temp_size_in_bytes=self.lowered._costs().temporaries,
            generated_code_size_in_bytes=self.library.path.stat().st_size,
        )

    def _with_static(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments of a call, with the static ones where the call leaves them out, as JAX's calls do."""
        static, lowered = self.lowered.jit.static, self.lowered.call
        places = [k for k in range(len(lowered.args)) if k in static]
        if places and len(args) == len(lowered.args) - len(places):
            rest = iter(args)
            args = tuple(a if k in places else next(rest) for k, a in enumerate(lowered.args))
        return args, {**{k: v for k, v in lowered.kwargs.items() if k in static}, **kwargs}

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        with user_frames():
            return self._call(*self._with_static(args, kwargs))

    def _call(self, args: tuple, kwargs: dict) -> R:
        jit = self.lowered.jit
        call = take_apart(args, kwargs, jit.static, jit.in_order)
        same = [s.key() for s in call.specs if not s.dynamic] == [
            s.key() for s in self.lowered.call.specs if not s.dynamic
        ]
        if same and call.structure == self.lowered.call.structure:
            fitting = (one for one in self._runs if memory.fits(one.compiled.program, call) and one.serves(call))
            run = next(fitting, None)
            if run is not None:
                return looked_at(lambda: run.compiled.program, run, call, parameter_names(jit.fun))
        want = ", ".join(s.text() for s in self.lowered.call.specs)
        have = ", ".join(s.text() for s in call.specs)
        raise SourceError(
            f"{self.lowered.jit.__name__} was compiled for ({want}) and called with ({have})",
            caller_span(),
            code="compiled-types",
            remedy="call the jitted function, or lower it for these",
        )


__all__ = ["Compiled", "by_sizes", "compile_program", "for_every_size", "FlatRunner", "Lowered", "CompiledFunction"]
