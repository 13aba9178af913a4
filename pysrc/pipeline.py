"""The one ordered list of stages, and the one combinator that runs a stage: run, check, record, print.

In: what a stage takes (a Python function, a core Function, loop nests). Out: what it gives. Example:

    with recording("period") as record:
        program = run("core", stage, period, (0.3, 1.0), {})
        text = run("numpy", numpy_source, program.function)
    record.report()      # core 4.1 ms, numpy 0.9 ms

`STAGES` is data: the command line, the goldens, the documentation and the timing report go through it. A
pass is imported when it first runs: `import metaphrase` does not pay for it.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .config import config
from .interpreter import deep_calls
from .late import dataclass, field, module
from .runtime.cython_build import Library, build

if TYPE_CHECKING:
    from .astpasses.emit.cuda_text import EmittedCuda
    from .astpasses.emit.cython_text import EmittedText
    from .astpasses.emit.numpy_source import Signature
    from .astpasses.schedule.nest import Program, Target
    from .core.ir import Function

check, ir = module("metaphrase.core.check"), module("metaphrase.core.ir")


@dataclass(frozen=True)
class Stage:
    """`check(output)` raises when the stage broke its promise; `text(output)` is what a person reads."""

    name: str
    form: str
    why: str
    check: Callable[[Any], Any] | None = None
    text: Callable[[Any], str] = str


def _check_program(output: Any) -> None:
    function = getattr(output, "function", output)
    if isinstance(function, ir.Function):
        check.check(function)


def _program_text(output: Any) -> str:
    return str(getattr(output, "function", output))


def _loops_text(output: Any) -> str:
    from .astpasses.schedule.python_loops import python_loops

    return python_loops(output)


def _emitted_text(output: Any) -> str:
    return output.text


def _compiles(text: str) -> None:
    compile(text, "<numpy stage>", "exec")


STAGES: tuple[Stage, ...] = (
    Stage("source", "the user's function", "first: everything starts from what the user wrote"),
    Stage(
        "normal",
        "Python with one kind of branch, one kind of loop, one return",
        "before control: jumps must be gone before branches and loops can carry their state",
    ),
    Stage(
        "control",
        "Python whose if, while and for are calls that carry state explicitly",
        "before core: running it with staged values is what makes the core program",
    ),
    Stage(
        "core",
        "a typed functional program, one operation a line",
        "after control: types and regions are known here, and the user's Python is not needed any more",
        _check_program,
        _program_text,
    ),
    Stage(
        "transformed",
        "core after jvp, split, transpose, batch, then simplified",
        "before any code: derivatives and batches are taken of programs, never of code",
        _check_program,
        _program_text,
    ),
    Stage(
        "numpy",
        "idiomatic NumPy source that needs NumPy only",
        "from transformed core: what un-jitted transforms run, and what a person reads",
        _compiles,
    ),
    Stage(
        "loops",
        "fused loop nests over buffers",
        "after all transformations: fusion and buffers are decided once, for the final program",
        None,
        _loops_text,
    ),
    Stage("cython", "the text that is compiled", "last: it spells the loop nests and decides nothing"),
    Stage(
        "cuda",
        "kernels in CUDA C, and Python that launches them",
        "last on a GPU: it spells loop nests that were scheduled for one",
        None,
        _emitted_text,
    ),
)
BY_NAME = {stage.name: stage for stage in STAGES}


@dataclass
class Record:
    """What one compile did: (stage, seconds), in order; and the outputs, when they are kept."""

    name: str
    seconds: list[tuple[str, float]] = field(default_factory=list)
    outputs: dict[str, Any] | None = None

    def total(self) -> float:
        return sum(seconds for _, seconds in self.seconds)

    def sums(self) -> dict[str, float]:
        """The seconds of each stage, those of stages that ran several times added up."""
        sums: dict[str, float] = {}
        for name, seconds in self.seconds:
            sums[name] = sums.get(name, 0.0) + seconds
        return sums

    def report(self) -> str:
        """The time of each stage in milliseconds."""
        return ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in self.sums().items())


_local = threading.local()


def current_record() -> Record | None:
    return getattr(_local, "record", None)


@contextlib.contextmanager
def recording(name: str, keep: bool = False) -> Iterator[Record]:
    """Collect what `run` does inside the block; recordings nest, and the inner one is its own."""
    before, record = current_record(), Record(name, outputs={} if keep else None)
    _local.record = record
    try:
        yield record
    finally:
        _local.record = before


def run(name: str, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Any:
    """Run `function` as the stage `name`: time it, check what it gives, record it, print it if asked."""
    stage = BY_NAME[name]
    start = time.perf_counter()
    with deep_calls():
        output = function(*args, **keywords)
        if stage.check is not None and config.check:
            stage.check(output)
    seconds = time.perf_counter() - start
    record = current_record()
    if record is not None:
        record.seconds.append((name, seconds))
        if record.outputs is not None:
            record.outputs[name] = output
    wanted = config.print_stages
    if wanted and (wanted == "all" or name in wanted.split(",")):
        print(f"# ---- {name}: {stage.form}\n{stage.text(output)}", file=sys.stderr)
    return output


# ---- stages in a row ---------------------------------------------------------------------------------------


def _optimized(function: Function, before_transform: bool, in_haste: bool = False) -> Function:
    from .astpasses.optimize import optimize

    return optimize(function, before_transform=before_transform, in_haste=in_haste)


def cleaned(function: Function) -> Function:
    """Simplified before a derivative is taken: only by what changes no derivative."""
    return _optimized(function, True)


def finished(function: Function, in_haste: bool = False) -> Function:
    """Simplified after the last transformation. `in_haste`: for a few calls only."""
    return run("transformed", _optimized, function, False, in_haste)


def numpy_text(
    function: Function, name: str | None = None, signature: Signature | None = None, file: str = "", doc: str = ""
) -> str:
    """The NumPy stage of a finished program. `file`, `doc`: of the user's function."""
    from .astpasses.emit.numpy_source import numpy_source

    return run("numpy", numpy_source, function, name=name, signature=signature, file=file, doc=doc)


def loops(function: Function, writes: Mapping[int, int] | None = None, target: Target | None = None) -> Program:
    """The loops stage of a finished program. `writes`: {result: the parameter whose new value it is}."""
    from .astpasses.schedule.stage import schedule

    options = {"fuse": config.fuse, "bounds": config.bounds, "checked": config.check, "fastmath": config.fastmath}
    return run("loops", schedule, function, target, writes=writes, **options)


def cython(program: Program) -> EmittedText:
    """The cython stage of loop nests."""
    from .astpasses.emit.cython_text import emit

    return run("cython", emit, program)


def cuda(function: Function, writes: Mapping[int, int] | None = None) -> EmittedCuda:
    """The cuda stage of a finished program, by way of loops for a GPU."""
    from .astpasses.emit.cuda_text import emit_cuda

    return run("cuda", emit_cuda, kernel_loops(function, writes))


def kernel_loops(function: Function, writes: Mapping[int, int] | None = None) -> Program:
    """The loops stage of a finished program for a GPU, as the settings want it."""
    from .astpasses.schedule.target import CUDA, CUDA_IN_ANY_ORDER

    target = replace(CUDA_IN_ANY_ORDER if config.fastmath else CUDA, regroups=config.contract)
    return loops(function, writes, target)


def native(function: Function, name: str, writes: Mapping[int, int] | None = None) -> tuple[Library, EmittedText]:
    """A finished program compiled and loaded. Raises CompilerMissing or BuildError."""
    emitted = cython(loops(function, writes))
    start = time.perf_counter()
    library = build(emitted.text, name=name, contract=config.contract, fastmath=config.fastmath)
    record = current_record()
    if record is not None:
        record.seconds.append(("load" if library.cached else "build", time.perf_counter() - start))
    return library, emitted
