"""What a compiled program accepts and gives: descriptions that the dispatcher compiles into C structures.

In: one `Entry` a compiled program, built by the pipeline. Out: `Dispatcher.add(entry)` makes calls that match
it run it. Example, `f(x, k)` with `x: f64[n]`, a static Python bool `k`, the result `f64[n]`:

    x = ArrayLeaf("float64", (Sym("n"),))
    entry = Entry(library.address, roots=(Root(Position(0), x), Root(Position(1), StaticLeaf(True))),
                  parameters=(x,), symbols=("n",), results=(Fresh("float64", (Sym("n"),)),), output=Result(0))

A call matches an entry when every root is found where its source says, has exactly the tree's structure, and
each leaf and guard holds. Then the parameters' buffers and the sizes are passed to `address`, and the output
is built. The description's own objects say who is who: `parameters`, `writes`, `same` and `Argument` name
leaves by identity.

Dims are ints or `core.dims.Dim`. The first bare symbol that occurs in matching order (roots in order,
containers in order of their children) binds it; every later occurrence is compared. A symbol that never stands alone
is what the first dim that is linear in it says: 3 where an array of `2*n` has six rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..core.dims import solutions
from ..late import dataclass

Number = type[float] | type[int] | type[bool] | type[complex]

# ------------------------------------------------------------------------------------------- where values are


@dataclass(frozen=True, eq=False)
class Position:
    """The index-th parameter of the call, after keywords and defaults are bound."""

    index: int


@dataclass(frozen=True, eq=False)
class Held:
    """The object itself: a constant array of the program."""

    value: Any


@dataclass(frozen=True, eq=False)
class Cell:
    """What a closure cell holds now."""

    cell: Any


@dataclass(frozen=True, eq=False)
class Item:
    """What a dict (a module's globals, say) holds under `key` now."""

    mapping: dict
    key: Any


@dataclass(frozen=True, eq=False)
class Getter:
    """What a Python callable returns now; an AttributeError, LookupError or NameError is a mismatch."""

    function: Callable[[], Any]


@dataclass(frozen=True, eq=False)
class Path:
    """A source, then steps: `("attribute", name)` or `("item", key)`. A step that fails is a mismatch."""

    source: Source
    steps: tuple[tuple[str, Any], ...]


Source = Position | Held | Cell | Item | Getter | Path

# -------------------------------------------------------------------------------------------- what values are


@dataclass(frozen=True, eq=False)
class ArrayLeaf:
    """An exact numpy.ndarray of this dtype (native byte order) and these dims, of any layout; or of one whose
    strides descend."""

    dtype: Any
    dims: tuple[Any, ...]
    ordered: bool = False


@dataclass(frozen=True, eq=False)
class DeviceLeaf:
    """An array of exactly the class `kind`, CuPy's, that lies on this GPU; for entries with a `launch`."""

    kind: type
    dtype: Any
    dims: tuple[Any, ...]
    device: int


@dataclass(frozen=True, eq=False)
class ScalarLeaf:
    """A NumPy scalar of this dtype."""

    dtype: Any


@dataclass(frozen=True, eq=False)
class NumberLeaf:
    """A Python float, int, bool or complex, exactly; passed as f64, i64 (an int that does not fit: mismatch),
    bool, c128."""

    kind: Number


@dataclass(frozen=True, eq=False)
class SizeLeaf:
    """A Python int whose value is `dim`; passed as i64 where it is a parameter."""

    dim: Any


@dataclass(frozen=True, eq=False)
class StaticLeaf:
    """A Python value that staging used: the same object, or one of the same type for which `same(object)` is
    true; without `same`, one that is equal (floats and tuples by their elements' bits and types). `asked`:
    whether `same` is asked of the same object too. `key(object)` gives something hashable that is equal for
    objects that can stand for each other."""

    value: Any
    same: Callable[[Any], bool] | None = None
    asked: bool = False
    key: Callable[[Any], Any] | None = None


@dataclass(frozen=True, eq=False)
class AnyLeaf:
    """A value that the program does not depend on."""


@dataclass(frozen=True, eq=False)
class Sequence:
    """An exact `tuple` or `list` (`kind`) of these children."""

    kind: type
    children: tuple[Any, ...]  # each a Tree, or in an output an Output


@dataclass(frozen=True, eq=False)
class Dictionary:
    """An exact `dict` with exactly these keys, in any order or, if `ordered`, in this one. As an output it is
    built in this order."""

    keys: tuple[Any, ...]
    children: tuple[Tree, ...]
    ordered: bool = False


@dataclass(frozen=True, eq=False)
class Record:
    """A NamedTuple of exactly this type."""

    type: type
    children: tuple[Tree, ...]


@dataclass(frozen=True, eq=False)
class Node:
    """A registered container: `flatten(value) -> (children, auxiliary)`, where the auxiliary data must be
    equal, and `unflatten(auxiliary, children) -> value`."""

    type: type
    flatten: Callable[[Any], tuple]
    unflatten: Callable[[Any, tuple], Any]
    auxiliary: Any
    children: tuple[Tree, ...]


Leaf = ArrayLeaf | DeviceLeaf | ScalarLeaf | NumberLeaf | SizeLeaf | StaticLeaf | AnyLeaf
Tree = Leaf | Sequence | Dictionary | Record | Node


@dataclass(frozen=True, eq=False)
class Root:
    """A source and the structure found there."""

    source: Source
    tree: Tree


@dataclass(frozen=True, eq=False)
class Guard:
    """What is at `source` is what it was. `mode` says how it is compared:

    "is"         it is the object `expected`
    "equal"      it has the type of `expected`, and equals it
    "names"      a module's globals: `expected` has the objects that names there, or builtins, stand for
    "method"     `expected` is (name, function): its attribute of this name is the function, bound or not
    "function"   a function: `expected` is its (code, default values, values of keywords alone)
    "class"      a class: `expected(class)` is true, asked once for each version of the class"""

    source: Source
    expected: Any
    mode: str = "is"


@dataclass(frozen=True, eq=False)
class Compare:
    """A condition on sizes that staging decided: `left operator right`, operator one of == != < <= > >=."""

    operator: str
    left: Any
    right: Any


# --------------------------------------------------------------------------------------------- what comes out


@dataclass(frozen=True, eq=False)
class Fresh:
    """A result allocated by the caller; its dims follow from the sizes. `form` says what rank 0 becomes:
    "scalar" (a NumPy scalar), "array" (a 0-d array) or "python" (a Python number). A rank above 0 is always
    an array."""

    dtype: Any
    dims: tuple[Any, ...] = ()
    form: str = "scalar"


@dataclass(frozen=True, eq=False)
class RunTime:
    """A result that the program allocates by `alloc` and measures by `set_dims`, of this rank."""

    dtype: Any
    rank: int


@dataclass(frozen=True, eq=False)
class Write:
    """After the call the data of result `result` goes into the caller's array at `leaf`. With `in_place` the
    result's buffer is the array's own memory, which the program may read as a parameter and overwrite when it
    is done with it."""

    result: int
    leaf: ArrayLeaf
    in_place: bool = False
    contiguous: bool = False  # an array that is not C-contiguous does not match


@dataclass(frozen=True, eq=False)
class Result:
    """In an output: the index-th result."""

    index: int


@dataclass(frozen=True, eq=False)
class Argument:
    """In an output: the very object that matched `tree` (a leaf or a container of a root)."""

    tree: Tree


@dataclass(frozen=True, eq=False)
class Constant:
    """In an output: a Python value."""

    value: Any


Output = Result | Argument | Constant | Sequence | Dictionary | Record | Node


@dataclass(frozen=True, eq=False)
class CallbackSite:
    """A Python callable for an ordered effect: called with copies of its operands, given as (dtype, rank);
    its results, of (dtype, rank), are copied back. The dims of both come with the call."""

    function: Callable[..., Any]
    operands: tuple[tuple[Any, int], ...]
    results: tuple[tuple[Any, int], ...] = ()


@dataclass(frozen=True, eq=False)
class Store:
    """After the call attribute `name` of the object at `source` becomes `value`, whatever its class does on
    stores; or item `name`, if `item`. All values are made before the first is stored."""

    source: Source
    name: Any
    value: Output
    item: bool = False


@dataclass(frozen=True, eq=False)
class Entry:
    """A compiled program and the calls that it serves."""

    address: int
    roots: tuple[Root, ...]
    parameters: tuple[Leaf, ...] = ()  # buffers[0 : len(parameters)]
    symbols: tuple[str, ...] = ()  # sizes[0 : len(symbols)]
    results: tuple[Fresh | RunTime, ...] = ()  # the buffers after the parameters
    output: Output = Constant(None)
    writes: tuple[Write, ...] = ()
    stores: tuple[Store, ...] = ()
    guards: tuple[Guard, ...] = ()
    comparisons: tuple[Compare, ...] = ()
    # The least value that a symbol may have; 2 where absent, because sizes 0 and 1 are special to NumPy.
    minimum: Mapping[str, int] | None = None
    # Pairs that are the same memory. Apart from them a written array must not overlap another.
    same: tuple[tuple[ArrayLeaf, ArrayLeaf], ...] = ()
    # Estimated nanoseconds, an int or a dim; from 5000 on the GIL is released.
    work: Any = 0
    # finish(parameters' objects, result objects) -> what the call returns; `output` is then unused.
    finish: Callable[[tuple, tuple], Any] | None = None
    # raise_site(site, iteration, 16 values) raises what the site stands for: errors.SiteTable.raise_site.
    raise_site: Callable[[int, int, tuple[int, int, int, int]], Any] | None = None
    callbacks: tuple[CallbackSite, ...] = ()
    # launch(parameters' objects, sizes) -> the results' objects, in the place of a program at `address`, which is 0.
    launch: Callable[[tuple, tuple], tuple] | None = None
    uses_blas: bool = False
    uses_fourier: bool = False
    name: str = "entry"
    keep: Any = None  # kept alive with the entry: the Library, the site table


# -------------------------------------------------------------------------------------------------- patterns


def pattern(entry: Entry) -> tuple:
    """Which values an entry compares with constants: equal for entries that differ in those constants only.

    >>> sizes = [Entry(1, (Root(Position(0), ArrayLeaf("f8", (size,))),)) for size in (3, 5)]
    >>> pattern(sizes[0]) == pattern(sizes[1])
    True
    """
    roots = tuple((_place(root.source), _form(root.tree)) for root in entry.roots)
    return roots, tuple((_place(guard.source), guard.mode) for guard in entry.guards)


def _place(source: Source) -> tuple:
    """The number of a source; one number for all that no look-up reads (find.pxi)."""
    steps: tuple[tuple[str, Any], ...] = ()
    while isinstance(source, Path):
        steps = (*source.steps, *steps)
        source = source.source
    if isinstance(source, Position):
        return "position", source.index, steps
    if isinstance(source, Cell):
        return "cell", id(source.cell), steps
    if isinstance(source, Item):
        return "item", id(source.mapping), source.key, steps
    if isinstance(source, Held) and steps:
        return "held", steps
    return ("unread",)


def _form(tree: Tree) -> tuple:
    if isinstance(tree, (ArrayLeaf, DeviceLeaf)):
        return type(tree), tuple(isinstance(dim, int) for dim in tree.dims)
    if isinstance(tree, SizeLeaf):
        return "size", isinstance(tree.dim, int)
    if isinstance(tree, StaticLeaf):
        return "static", tree.same is None, tree.key is None
    children = tuple(map(_form, getattr(tree, "children", ())))
    return type(tree), getattr(tree, "keys", None), getattr(tree, "type", None), children


# ---------------------------------------------------------------------------------------------- size programs

# A dim becomes a postfix program of (operation, operand) pairs over the sizes.
CONSTANT, SIZE, ADD, MULTIPLY, FLOORDIV, MOD, MAX, MIN = range(8)
_BINARY = {"floordiv": FLOORDIV, "mod": MOD, "max": MAX, "min": MIN}
STACK_DEPTH = 64


def size_program(dim: Any, index: Mapping[str, int]) -> list[int]:
    """The postfix program of a dim; `index` numbers the symbols. Division rounds down, as Python's does.

    >>> size_program(7, {})
    [0, 7]
    """
    program: list[int] = []
    _append(dim, index, program)
    if _depth(program) > STACK_DEPTH:
        raise ValueError(f"the size {dim} is too deep an expression")
    return program


def solved_sizes(
    names: Iterable[str], hidden: list[tuple[int, Any]], index: Mapping[str, int]
) -> list[tuple[str, list[int]]]:
    """The symbols that no dim is alone, each with its program. `hidden`: the numbers of dims that are expressions, and
    these.

    >>> from metaphrase.core.dims import Sym
    >>> solved_sizes(["n"], [(1, 2 * Sym("n") + 1)], {"n": 0})
    [('n', [1, 1, 0, -1, 2, 0, 0, 2, 4, 0])]
    """
    found = []
    for name, k, coefficient, rest in solutions(names, [dim for _, dim in hidden]):
        program = [SIZE, hidden[k][0]]
        _append(-rest, index, program)
        found.append((name, [*program, ADD, 0, CONSTANT, coefficient, FLOORDIV, 0]))
    return found


def _append(dim: Any, index: Mapping[str, int], program: list[int]) -> None:
    if isinstance(dim, int):
        program += [CONSTANT, dim]
        return
    for number, (monomial, coefficient) in enumerate(dim.terms):
        program += [CONSTANT, coefficient]
        for atom, power in monomial:
            for _ in range(power):
                if atom.kind == "sym":
                    if atom.name not in index:
                        known = ", ".join(index) or "()"
                        raise ValueError(f"the size {atom.name} is not among the symbols {known}")
                    program += [SIZE, index[atom.name]]
                else:
                    for operand in atom.operands:
                        _append(operand, index, program)
                    program += [_BINARY[atom.kind], 0]
                program += [MULTIPLY, 0]
        if number:
            program += [ADD, 0]


def _depth(program: list[int]) -> int:
    depth = deepest = 0
    for operation in program[::2]:
        depth += 1 if operation in (CONSTANT, SIZE) else -1
        deepest = max(deepest, depth)
    return deepest
