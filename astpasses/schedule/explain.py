"""What a schedule did that its reader should know: the loops, which lines share them, which of them threads share, and
array copies inside loops.

In: a Program. Out: a `Loop` for each loop; one line a copy. A kernel that updates its arrays in place has none.

    copies_in_loops(program) == ["out[i*n + j] = x[i*n + j] (kernel.py:12)"]
    loops_of(program)[0].text == "for i in range(n)"
"""

from __future__ import annotations

from collections.abc import Iterator

from metaphrase.late import dataclass

from .costs import Place, place_of
from .nest import CallFn, Fn, For, Load, Parts, Program, Stmt, Store, While, places
from .python_loops import PythonPrinter


@dataclass(eq=False)
class Loop:
    """`number`: among the loops of the function `fn`, in the order of its text. `own`: where the loop comes from;
    `does`: where what it does comes from, of which `alone` is in no loop inside. `around`: the loop that it stands in.
    `has_loops`: whether it has others inside. `parts`: what threads share of it."""

    fn: str
    number: int
    kind: str  # "par", "red" or "seq" as in a `For`, or "while"
    text: str
    own: Place
    around: Loop | None = None
    alone: tuple[Place, ...] = ()
    does: tuple[Place, ...] = ()
    has_loops: bool = False
    parts: Parts | None = None

    @property
    def depth(self) -> int:
        return 0 if self.around is None else self.around.depth + 1


def loops_of(program: Program) -> list[Loop]:
    """All of them, function by function, in the order of the text: of one that threads share, that of a part."""
    return _Loops(program).found


class _Loops:
    """Goes through the functions, callees first."""

    def __init__(self, program: Program):
        self.found: list[Loop] = []
        self.parts: dict[str, Parts] = {}
        self.done: dict[str, tuple[set[Place], bool]] = {}  # of a function: what it does, whether it has loops
        for fn in (*program.fns, program.entry):
            before = len(self.found)
            self.first = before
            does = self.block(fn.body, fn, None)
            self.done[fn.name] = does, len(self.found) > before
        for loop in self.found:
            if loop.around is None:
                loop.parts = self.parts.get(loop.fn)

    def block(self, block: tuple[Stmt, ...], fn: Fn, around: Loop | None) -> set[Place]:
        """The places of what a block does."""
        does: set[Place] = set()
        for stmt in block:
            here: set[Place] = {place_of(span) for span in places(stmt)}
            if isinstance(stmt, For) and stmt.parts is not None:
                (call,) = stmt.body
                assert isinstance(call, CallFn)
                self.parts[call.fn], stmt = stmt.parts, call
            if isinstance(stmt, CallFn):
                inside, has_loops = self.done.get(stmt.fn, (set(), False))
                here = inside or here
                if around is not None:
                    around.has_loops |= has_loops
            if isinstance(stmt, (For, While)):
                does |= self.loop(stmt, fn, around)
                continue
            if around is not None:
                around.alone = _sorted({*around.alone, *here})
            does |= here.union(*(self.block(inner, fn, around) for inner in stmt.blocks))
        return does

    def loop(self, stmt: For | While, fn: Fn, around: Loop | None) -> set[Place]:
        kind = stmt.kind if isinstance(stmt, For) else "while"
        own = place_of(next(iter(places(stmt)), None))
        loop = Loop(fn.name, len(self.found) - self.first, kind, head(stmt), own, around)
        self.found.append(loop)
        does: set[Place] = {own} if isinstance(stmt, While) else set()
        loop.does = _sorted(does.union(*(self.block(inner, fn, loop) for inner in stmt.blocks)))
        if around is not None:
            around.has_loops = True
        return set(loop.does)


def _sorted(found: set[Place]) -> tuple[Place, ...]:
    return tuple(sorted(place for place in found if place is not None))


def head(loop: For | While) -> str:
    """Its first row in Python."""
    if isinstance(loop, For):
        return f"for {loop.index} in range({loop.extent})"
    return f"while {PythonPrinter().text(loop.condition)}"


def copies_in_loops(program: Program) -> list[str]:
    """Whole-array copies (a nest that only moves elements from one array to another) inside a sequential
    loop."""
    functions = {fn.name: fn.body for fn in program.fns}
    return list(dict.fromkeys(_copies(program.entry.body, False, functions)))


def _copies(block: tuple[Stmt, ...], repeated: bool, functions: dict[str, tuple[Stmt, ...]]) -> Iterator[str]:
    for stmt in block:
        if isinstance(stmt, CallFn):
            yield from _copies(functions[stmt.fn], repeated, functions)
        if isinstance(stmt, For) and stmt.kind == "par" and repeated and (copy := _is_copy(stmt)):
            printer = PythonPrinter()
            target = printer.place(Load(copy.buf, copy.index))[0]
            source = printer.text(copy.value)
            yield f"{target} = {source}" + (f" ({stmt.span})" if stmt.span else "")
            continue
        inside = repeated or isinstance(stmt, While) or isinstance(stmt, For) and stmt.kind == "seq"
        for inner in stmt.blocks:
            yield from _copies(inner, inside, functions)


def _is_copy(nest: For) -> Store | None:
    body = nest.body
    while len(body) == 1 and isinstance(body[0], For):
        body = body[0].body
    if len(body) == 1 and isinstance(body[0], Store):
        store = body[0]
        if store.buf.dims and not store.monoid and isinstance(store.value, Load) and store.value.buf.dims:
            return store
    return None
