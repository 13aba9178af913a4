"""What a function became, in words: types, captured values, guards, loops, copies, kernels, what each line costs, time
of each stage.

In: a function (or a transformed one) and arguments or stand-ins for them. Out: an `Explained`, with facts by title, and
all that a page shows. Example:

    print(report(explained(lu, "f64[n, n]").told))
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..api.arguments import Call, Spec, take_apart, takes_any_keywords
from ..api.program import Captured, Fixed, Program, Slot, leaf_labels, name_of
from ..api.transforms import jitted_of, parameter_names, program_of
from ..api.types import ShapeDtypeStruct, given_arguments
from ..astpasses.emit.cython_text import EmittedText
from ..astpasses.frontend import Source
from ..astpasses.schedule import nest
from ..astpasses.schedule.costs import ONE_THREAD
from ..astpasses.schedule.explain import Loop, copies_in_loops, loops_of
from ..config import config
from ..core.ir import Function
from ..late import dataclass, field
from ..pipeline import cython, finished, loops, recording
from ..runtime.vectors import VectorReport, vector_report
from ..tree_util import keystr, tree_flatten_with_path
from .lines import costs_of_lines, duration, loops_in_words, quantities, shared_parts
from .times import NotTimed, measure, sizes_of


@dataclass(eq=False)
class Explained:
    """`told`: what the report says, by title: texts, lists of texts, numbers. The rest is what it is said of."""

    fun: Any
    program: Program
    function: Function
    scheduled: nest.Program
    emitted: EmittedText
    told: dict[str, Any]
    whole: nest.Program  # its loops are not shared by threads
    call: Call
    vectors: VectorReport | None = field(default=None)

    def ask_compiler(self) -> None:
        """Have `told` say of each loop whether the C compiler vectorises it, which takes a compilation."""
        if self.vectors is None:
            options = {"contract": config.contract, "fastmath": config.fastmath}
            self.vectors = vector_report(self.emitted.text, **options)
            self.told["loop nests"] = loops_in_words(self.scheduled, self.vectors)
            self.told["compiler"] = self.vectors.compiler

    def time(self, args: tuple = (), kwargs: dict[str, Any] | None = None) -> None:
        """Have `told` say how long each part takes, with these arguments, or with those that are explained. Costs are
        counted anew, for their sizes."""
        call = self.call
        if args or kwargs:
            call = _taken_apart(self.fun, args, kwargs or {})
            if call.structure == self.call.structure:
                leaves = [_as(wanted, leaf) for wanted, leaf in zip(self.call.specs, call.leaves)]
                call = _taken_apart(self.fun, *call.structure.unflatten(leaves))
        if any(isinstance(leaf, ShapeDtypeStruct) for leaf in call.leaves):
            raise NotTimed(f"{self.told['name']} is timed with arguments, and there are only types of them")
        if call.structure != self.call.structure or not all(map(_fits, self.call.specs, call.specs)):
            wanted, given = ", ".join(self.told["arguments"]), ", ".join(spec.text() for spec in call.specs)
            raise NotTimed(f"{self.told['name']} is explained for ({wanted}), and timed with ({given})")
        self.told["lines"], self.told["assumed"] = costs_of_lines(self.whole, sizes_of(self, call))
        measure(self, call)


def explained(fun: Any, *args: Any, **kwargs: Any) -> Explained:
    """See the head of this file."""
    args, kwargs = given_arguments(args, kwargs)
    call = _taken_apart(fun, args, kwargs)
    with recording(name_of(fun)) as record:
        program = program_of(fun, call.structure, call.specs)
        function = finished(program.function)
        scheduled = loops(function, program.new_values)
        emitted = cython(scheduled)
    whole = scheduled  # loops that threads do not share
    if any(loop.parts is not None for loop in loops_of(scheduled)):
        whole = loops(function, program.new_values, ONE_THREAD)
    lines, assumed = costs_of_lines(whole)
    names = parameter_names(fun)
    told = {
        "name": program.name,
        "arguments": _arguments(program, names),
        "output": _outputs(program),
        "stores into": _stores(program, names),
        "captured": [f"{c}: {p.type}" for c, p in zip(program.captures, program.function.params)],
        "relied on": [str(guard) for guard in program.guards],
        "operations": dict(Counter(_operations(function)).most_common()),
        **_nests(scheduled),
        "loop nests": loops_in_words(scheduled, None),
        "lines": lines,
        "assumed": assumed,
        "milliseconds": {name: 1e3 * seconds for name, seconds in record.sums().items()},
    }
    return Explained(fun, program, function, scheduled, emitted, told, whole, call)


def _taken_apart(fun: Any, args: tuple, kwargs: dict[str, Any]) -> Call:
    jitted = jitted_of(fun)
    return take_apart(args, kwargs, jitted.static if jitted else (), takes_any_keywords(fun))


def _as(wanted: Spec, leaf: Any) -> Any:
    """A number of Python's as the program takes it, where it loses nothing."""
    if wanted.dynamic and wanted.python is None and not wanted.dims and isinstance(leaf, (int, float)):
        number = np.asarray(leaf).astype(wanted.dtype)[()]
        return number if number == leaf else leaf
    return leaf


def _fits(wanted: Spec, given: Spec) -> bool:
    """Whether an argument is of the type that a program was made for, whatever its sizes are."""
    if not wanted.dynamic or not given.dynamic:
        return wanted.dynamic == given.dynamic and bool(wanted.value == given.value)
    return (wanted.dtype, wanted.python, len(wanted.dims)) == (given.dtype, given.python, len(given.dims))


def report(told: dict[str, Any]) -> str:
    """Facts as text."""
    loops_made = told["loops"]
    rows = [told["name"]]
    for title in ("arguments", "output", "stores into", "captured", "relied on"):
        rows += _section(title, told[title])
    rows.append("operations: " + ", ".join(f"{count} {name}" for name, count in told["operations"].items()))
    rows.append(
        f"loops: {loops_made['for']} for, {loops_made['while']} while, {loops_made['deep']} deep; "
        f"{loops_made['library calls']} library calls"
    )
    for title in ("loops that threads share", "temporary arrays", "array copies inside loops", "GPU kernels"):
        rows += _section(title, told.get(title, []))
    rows += _section(f"cost of each line{_where(told['assumed'])}", _costs(told))
    if "measured" in told:
        rows += _section(f"measured: {measured_in_words(told)}", _times(told))
    rows.append("time: " + ", ".join(f"{name} {spent:.1f} ms" for name, spent in told["milliseconds"].items()))
    return "\n".join(rows)


def _where(assumed: dict[str, int]) -> str:
    """What shares of the whole are taken for."""
    return f" (shares for {', '.join(f'{name} = {value}' for name, value in assumed.items())})" if assumed else ""


def _costs(told: dict[str, Any]) -> list[str]:
    rows = []
    for row in told["lines"]:
        place = f"{row['file']}:{row['line']}" if row["line"] else "no line"
        rows.append(f"{place}: {row['share']:.1f} %: {', '.join(quantities(row))}")
    return rows


def measured_in_words(told: dict[str, Any]) -> str:
    """The call as a whole."""
    found = told["measured"]
    on = "one thread" if found["threads"] == 1 else f"{found['threads']} threads"
    runs = f"the best of {found['runs']} runs" if found["runs"] > 1 else "one run"
    called, parts = duration(found["as called"]), duration(found["milliseconds"])
    return f"{called} on {on}; {parts} in parts, with whole loops ({runs})"


def _times(told: dict[str, Any]) -> list[str]:
    rows = []
    for row in told["measured"]["parts"]:
        lines = ", ".join(f"{file}:{line}" for file, line, _ in row["lines"]) or "no line"
        spent = f"{row['share']:.1f} % (counted {row['counted']:.1f} %), {duration(row['milliseconds'])}"
        rows.append(f"{lines}: {spent}: {row['part']}")
    return rows


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"{title}:"] + [f"  {line}" for line in lines] if lines else []


def _arguments(program: Program, names: list[str]) -> list[str]:
    lines = []
    for label, leaf in zip(leaf_labels(program.structure, names), program.leaves):
        if isinstance(leaf, Fixed):
            lines.append(f"{label}: {leaf.value!r}, fixed")
        else:
            lines.append(f"{label}: {program.function.params[leaf].type}")
    return lines


def _outputs(program: Program) -> list[str]:
    lines = []
    markers = program.out.unflatten(range(program.out.num_leaves))
    for (path, _), slot in zip(tree_flatten_with_path(markers)[0], program.slots):
        if isinstance(slot, Slot):
            text = repr(program.function.results[slot.index].type.plain)
        elif isinstance(slot, Fixed):
            text = f"{slot.value!r}, fixed"
        elif isinstance(slot, Captured):
            text = "a captured array itself"
        else:
            text = "an argument itself"
        lines.append(f"{keystr(path)}: {text}" if path else text)
    return lines


def _stores(program: Program, names: list[str]) -> list[str]:
    """What the function changes that outlives the call."""
    labels = leaf_labels(program.structure, names)
    lines = []
    for write in program.writes:
        if write.kind == "argument":
            lines.append(labels[write.target])
        elif write.kind == "capture":
            lines.append(str(program.captures[write.target]))
        elif isinstance(write.target, Source):
            step = f"[{write.key!r}]" if write.kind == "item" else f".{write.key}"
            lines.append(f"{write.target}{step}")
        else:
            lines.append("a container or object that is given")
    return list(dict.fromkeys(lines))


def _operations(function: Function) -> list[str]:
    """Names of all operations, those in regions included."""
    names = []
    for let in function.lets:
        names.append(let.primitive.name)
        for region in let.regions():
            names += _operations(region)
    return names


def _nests(program: nest.Program) -> dict[str, Any]:
    """Loops and their depth, which of them threads share, temporaries, and array copies inside loops."""
    found = loops_of(program)
    shared = {loop.fn: f"{_place(loop)}{shared_parts(loop)}" for loop in found if loop.parts is not None}
    fns = (*program.fns, program.entry)
    return {
        "loops": {
            "for": sum(loop.kind != "while" for loop in found),
            "while": sum(loop.kind == "while" for loop in found),
            "deep": max((loop.depth + 1 for loop in found), default=0),
            "library calls": sum(isinstance(stmt, nest.LibraryCall) for fn in fns for stmt in nest.walk(fn.body)),
        },
        "loops that threads share": list(shared.values()),
        "temporary arrays": [repr(buf) for fn in fns for buf in fn.temps if buf.dims],
        "array copies inside loops": copies_in_loops(program),
    }


def _place(loop: Loop) -> str:
    return "" if loop.own is None else f"{loop.own[0]}:{loop.own[1]}: "


__all__ = ["Explained", "NotTimed", "explained", "measured_in_words", "report"]
