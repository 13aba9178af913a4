"""A function of a C library: its declaration, and the definition that calls the kernel.

In: the entry of a signature, whose arguments and results are trees of arrays and numbers. Out: a `CFunction`, which
says how C calls it. Example, of `gradient(params, x)` for `{'w': f64[n], 'b': f64}, f64[n]`:

    int orbits_gradient(const double *params_w, int64_t n, double params_b, const double *x,
                        double *result_0, double *result_1_w, double *result_1_b, metaphrase_error *error)

Arguments keep their order, a size stands behind the first array that has it; then the results, each at a place that the
caller has room at. What only the run can measure is allocated: `double **result, int64_t result_dims[1]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..api.plans.modules import refused
from ..api.plans.reading import read_source
from ..astpasses.emit.dialects import C
from ..astpasses.emit.spell import Printer
from ..astpasses.frontend import Listed
from ..core.dims import DimLike, product, symbols
from ..core.types import NAMES
from ..exceptions import FIRST_ROOM, Room, Site
from ..late import dataclass, field
from ..runtime import entry as abi
from .c_messages import effect_case, error_case, quoted_c

TYPES = {f"{sign}{bits}": f"{'u' if sign == 'u' else ''}int{bits}_t" for sign in "iu" for bits in (8, 16, 32, 64)}
TYPES |= {"f64": "double", "f32": "float", "f16": "uint16_t", "bf16": "uint16_t", "bool": "bool"}
TYPES |= {"c128": "metaphrase_complex128", "c64": "metaphrase_complex64"}
_RESERVED = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true "
    "false error asm typeof and or not xor new delete class private public protected template this throw try catch "
    "using namespace operator virtual friend explicit export mutable typename NULL stdin stdout stderr".split()
)


@dataclass(frozen=True)
class Parameter:
    """One of a C function's. `kind`: "number", "size", "array", "result" (there is room for it), "made" (the call
    allocates it) or "dims" (of what it allocates). `shown`: the type as Python's side writes it."""

    kind: str
    name: str
    declaration: str
    dtype: str = "i64"
    dims: tuple[DimLike, ...] = ()
    shown: str = ""
    written: bool = False


@dataclass
class CFunction:
    """One signature. `kernel`: the name of its native code, without the level of the processor; `cython`: the text that
    it was translated from; `usual`: what calls of the usual sizes are handed on to, which is `hidden`."""

    name: str
    kernel: str
    title: str
    doc: str
    entry: abi.Entry
    sites: Sequence[Site]
    span: Any
    names: Sequence[str] | None
    cython: str = ""
    usual: CFunction | None = None
    hidden: bool = False
    parameters: list[Parameter] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)  # definitions of arrays that it reads

    def __post_init__(self) -> None:
        entry = self.entry
        if entry.stores or entry.finish is not None:
            raise self.refused("it gives or changes lists and objects of Python")
        self.taken = set(_RESERVED) | set(entry.symbols)
        self.declared: set[str] = set()
        self.places: dict[int, str] = {}  # of a leaf: where its buffer is
        self.locals: list[str] = []  # what is declared at the head of the definition
        self.rooms: dict[str, str] = {}
        self.written = {id(write.leaf) for write in entry.writes}
        self.printer = Printer(C)
        self.copies: list[tuple[int, str, str]] = []  # (result, bytes, where it is stored behind the run)
        self.dims = "NULL"
        for name in entry.symbols:
            if name in _RESERVED or not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
                raise self.refused(f"C has no variable called {name}: give the size another name")
        for root in entry.roots:
            if isinstance(root.source, abi.Position):
                self._argument(root.tree, self._name_of(root.source.index))
            else:
                self._captured(root)
        for symbol in entry.symbols:
            self._declare_size(symbol)
        self.results: dict[int, Parameter] = {}
        self._result(entry.output, "result")

    def refused(self, why: str) -> Exception:
        return refused(self.title.partition("(")[0], self.span, f"a C library can't do it: {why}")

    # ---- names --------------------------------------------------------------------------------------------------

    def _name_of(self, index: int) -> str:
        return ("args", "")[index] if self.names is None else self.names[index]

    def _free(self, wish: str) -> str:
        name = re.sub(r"\W", "_", wish, flags=re.ASCII).strip("_") or "x"
        name = f"x{name}" if name[0].isdigit() or name.startswith("mp_") else name
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def dim(self, dim: DimLike) -> str:
        """A size as C computes it."""
        return self.printer.index_value(dim)[0]

    # ---- arguments ----------------------------------------------------------------------------------------------

    def _argument(self, tree: Any, name: str) -> None:
        """The parameters for a part of the call."""
        if isinstance(tree, abi.ArrayLeaf):
            self._array(tree, name)
        elif isinstance(tree, (abi.ScalarLeaf, abi.NumberLeaf)):
            short = NAMES[np.dtype(tree.dtype if isinstance(tree, abi.ScalarLeaf) else tree.kind)]
            own = self._free(name)
            self.parameters.append(Parameter("number", own, f"{TYPES[short]} {own}", short, shown=short))
            self.places[id(tree)] = f"&{own}"
        elif isinstance(tree, abi.SizeLeaf):
            for symbol in sorted(symbols(tree.dim)) if not isinstance(tree.dim, int) else ():
                self._declare_size(symbol)
            own = f"mp_size_{len(self.locals)}"
            self.locals.append(f"int64_t {own} = {self.dim(tree.dim)};")
            self.places[id(tree)] = f"&{own}"
        elif isinstance(tree, abi.Sequence):
            for k, child in enumerate(tree.children):
                self._argument(child, f"{name}_{k}")
        elif isinstance(tree, abi.Dictionary):
            for key, child in zip(tree.keys, tree.children):
                self._argument(child, f"{name}_{key}".strip("_"))
        elif not isinstance(tree, (abi.StaticLeaf, abi.AnyLeaf)):
            raise self.refused(f"{name} is a {tree.type.__name__}")

    def _array(self, tree: abi.ArrayLeaf, name: str) -> None:
        short, own = NAMES[np.dtype(tree.dtype)], self._free(name)
        written = id(tree) in self.written
        declaration = f"{'' if written else 'const '}{TYPES[short]} *{own}"
        shown = f"{short}[{', '.join(map(str, tree.dims))}]" if tree.dims else short
        self.parameters.append(Parameter("array", own, declaration, short, tree.dims, shown, written))
        self.places[id(tree)] = own if written else f"(void *){own}"
        for dim in tree.dims:
            for symbol in sorted(symbols(dim)) if not isinstance(dim, int) else ():
                self._declare_size(symbol)

    def _declare_size(self, symbol: str) -> None:
        if symbol not in self.declared:
            self.declared.add(symbol)
            self.parameters.append(Parameter("size", symbol, f"int64_t {symbol}"))

    def _captured(self, root: abi.Root) -> None:
        """What the function reads of its module, as it is now."""
        owner = root.source.source if isinstance(root.source, abi.Path) else root.source
        value = read_source(root.source)
        room = getattr(owner, "value", None)
        if isinstance(room, Room):
            name = f"mp_room_{len(self.rooms)}"
            self.rooms[room.name] = name
            self.places[id(root.tree)] = f"&{name}"
            return
        if not isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)):
            return  # nothing that the program is given
        array = np.asarray(value)
        if array.dtype not in NAMES:
            raise self.refused(f"it reads an array of {array.dtype}")
        name = f"{self.kernel}_constant_{len(self.constants)}"
        type_ = TYPES[NAMES[array.dtype]]
        elements = ", ".join(_element(x) for x in array.ravel()) or "0"
        self.constants.append(f"static const {type_} {name}[] = {{{elements}}};")
        self.places[id(root.tree)] = f"(void *){name}"

    # ---- results ------------------------------------------------------------------------------------------------

    def _result(self, output: Any, name: str) -> None:
        if isinstance(output, abi.Result):
            if output.index not in self.results:
                self._place(output.index, name)
        elif isinstance(output, abi.Sequence):
            for k, child in enumerate(output.children):
                self._result(child, f"{name}_{k}")
        elif isinstance(output, abi.Dictionary):
            for key, child in zip(output.keys, output.children):
                self._result(child, f"{name}_{key}")
        elif not isinstance(output, (abi.Argument, abi.Constant)):
            kind = "list whose length the run decides" if output.type is Listed else output.type.__name__
            raise self.refused(f"{name} is a {kind}")

    def _place(self, index: int, name: str) -> None:
        """The parameter for a result."""
        result, own = self.entry.results[index], self._free(name)
        short = NAMES[np.dtype(result.dtype)]
        if isinstance(result, abi.RunTime):
            dims = self._free(f"{own}_dims")
            shown = f"{short}[{', '.join(['?'] * result.rank)}]"
            made = Parameter("made", own, f"{TYPES[short]} **{own}", short, shown=shown)
            self.parameters += [made, Parameter("dims", dims, f"int64_t {dims}[{result.rank}]", dims=(result.rank,))]
            self.results[index] = made
        else:
            shown = f"{short}[{', '.join(map(str, result.dims))}]" if result.dims else short
            one = Parameter("result", own, f"{TYPES[short]} *{own}", short, result.dims, shown)
            self.parameters.append(one)
            self.results[index] = one

    # ---- text ---------------------------------------------------------------------------------------------------

    @property
    def parts(self) -> list[CFunction]:
        """Those that have kernels, in the order in which C has to read them."""
        return [self] if self.usual is None else [self.usual, self]

    @property
    def called(self) -> list[str]:
        """The declarations of what it takes."""
        return [*(p.declaration for p in self.parameters), "metaphrase_error *error"]

    @property
    def prototype(self) -> str:
        """The declaration, without its semicolon."""
        given = self.called
        head, rows, line = f"{'static ' if self.hidden else ''}int {self.name}(", [], ""
        for k, one in enumerate(given):
            text = one + (", " if k + 1 < len(given) else ")")
            if line and len(head) + len(line) + len(text) > 110:
                rows.append(line.rstrip())
                line = ""
            line += text
        return head + f"\n{' ' * len(head)}".join([*rows, line])

    @property
    def comment(self) -> str:
        """What stands above the declaration."""
        arrays = [f"{p.name}: {p.shown}" for p in self.parameters if p.shown and not (p.kind == "number")]
        rows = [*self.doc.splitlines(), f"In Python: {self.title}", *_filled(arrays)]
        rows += [f"{p.name} is stored into." for p in self.parameters if p.written]
        rows += [f"{p.name} is allocated: free(*{p.name})." for p in self.parameters if p.kind == "made"]
        rows = [row.replace("*/", "* /").rstrip() for row in rows]
        return "/* " + "\n   ".join(rows).replace("\n   \n", "\n\n") + " */"

    def definition(self, levels: Sequence[str], blas: str | None) -> str:
        """The function; `levels`: the suffixes of its kernels, best first; `blas`: the table of its routines."""
        cases, effect = self._error_cases(), self._effect()
        describe = f"{self.kernel}_error" if cases else "mp_failed"
        body = [*self._handed_on(), *self.locals, *self._conditions()]
        if self.entry.symbols:
            body.append(f"const int64_t mp_sizes[] = {{{', '.join(self.entry.symbols)}}};")
        body += self._buffers()
        body += ["mp_call mp_run;", "int mp_status;", *self._run(levels, blas, describe, effect)]
        body += [*self._afterwards(), "return mp_status;"]
        rows = list(self.constants)
        rows += [*self._error(describe, cases)] if cases else []
        rows += [effect, ""] if effect else []
        rows += [f"{self.prototype} {{", *(f"    {row}" for row in body), "}"]
        return "\n".join(rows)

    def _handed_on(self) -> Iterator[str]:
        if self.usual is not None:
            least = (f"{name} >= {self.usual.least(name)}" for name in self.usual.entry.symbols)
            given = [p.name for p in self.parameters] + ["error"]
            yield from _filled([f"if ({' && '.join(least)})", f"return {self.usual.name}({', '.join(given)});"], " ")

    def least(self, size: str) -> int:
        return (self.entry.minimum or {}).get(size, 2)

    def _conditions(self) -> Iterator[str]:
        for name in () if self.hidden else self.entry.symbols:
            least = self.least(name)
            yield f'if ({name} < {least}) return mp_refused(error, "{name} >= {least}");'
        for one in self.entry.comparisons:
            said = quoted_c(f"{one.left} {one.operator} {one.right}")
            yield f"if (!({self.dim(one.left)} {one.operator} {self.dim(one.right)})) return mp_refused(error, {said});"

    def _buffers(self) -> list[str]:
        """The buffers of the kernel: parameters, then results; which of these are copied behind the run (`copies`), and
        where the dims of others go (`dims`)."""
        places = [self.places[id(leaf)] for leaf in self.entry.parameters]
        self.copies = []
        own: list[str] = []
        written = {write.result: write for write in self.entry.writes}
        dims: list[str] = []
        for k, result in enumerate(self.entry.results):
            dims.append("NULL")
            if isinstance(result, abi.RunTime):
                places.append("NULL")
                if k in self.results:
                    dims[-1] = f"{self.results[k].name}_dims"
                else:
                    own.append(f"int64_t mp_dims_{k}[{max(result.rank, 1)}];")
                    dims[-1] = f"mp_dims_{k}"
            elif k in written and written[k].in_place:
                places.append(self.places[id(written[k].leaf)])
            elif k in self.results:
                places.append(self.results[k].name)
            else:
                size = f"{np.dtype(result.dtype).itemsize}*({self.dim(product(result.dims))})"
                own.append(f"void *mp_new_{k} = mp_aligned((size_t)({size}) + 1);")
                places.append(f"mp_new_{k}")
                self.copies.append((k, size, self.places[id(written[k].leaf)] if k in written else ""))
        self.dims = "mp_dims" if any(d != "NULL" for d in dims) else "NULL"
        own += [f"int64_t *mp_dims[] = {{{', '.join(dims)}}};"] if self.dims != "NULL" else []
        own += [f"int64_t {name} = {FIRST_ROOM}; /* items of a list that grows */" for name in self.rooms.values()]
        return own + _list("void *mp_buffers[]", places or ["NULL"])

    def _run(self, levels: Sequence[str], blas: str | None, describe: str, effect: str | None) -> Iterator[str]:
        kernel = f"{self.kernel}{levels[0]}"
        if len(levels) > 1:
            kernel = f"(mp_has_v3() ? {self.kernel}{levels[0]} : {self.kernel}{levels[1]})"
        called = f"{self.kernel}_effect" if effect else "NULL"
        run = [f"mp_open(&mp_run, mp_buffers, {len(self.entry.parameters)}, {self.dims}, {called});"]
        run += [f"mp_run.context.blas = {blas};"] if blas else []
        missing = " || ".join(f"!mp_new_{k}" for k, _, _ in self.copies)
        call = f"{kernel}(&mp_run.context, mp_buffers, {'mp_sizes' if self.entry.symbols else 'NULL'})"
        call = f"{missing} ? MP_NO_MEMORY : {call}" if missing else call
        run.append(f"mp_status = {call};")
        if not self.rooms:
            yield from (*run, f"mp_status = mp_close(&mp_run, mp_status, error, {describe});")
            return
        yield "metaphrase_error mp_error;"
        yield "for (;;) {"
        yield from (f"    {row}" for row in (*run, f"mp_status = mp_close(&mp_run, mp_status, &mp_error, {describe});"))
        for name, room in self.rooms.items():
            yield f"    if (mp_is_full(mp_status, &mp_error, {quoted_c(name)}, &{room})) continue;"
        yield "    break;"
        yield "}"
        yield "if (error && mp_status) *error = mp_error;"

    def _afterwards(self) -> Iterator[str]:
        for k, size, place in self.copies:
            if place:
                yield f"if (!mp_status) memcpy({place}, mp_new_{k}, (size_t)({size}));"
            yield f"free(mp_new_{k});"
        for k, result in enumerate(self.entry.results):
            if isinstance(result, abi.RunTime):
                buffer = f"mp_buffers[{len(self.entry.parameters) + k}]"
                if k in self.results:
                    yield f"if (mp_status) free({buffer});"
                    yield f"*{self.results[k].name} = mp_status ? NULL : {buffer};"
                else:
                    yield f"free({buffer});"

    def _error_cases(self) -> list[str]:
        """What each failing site says."""
        return [
            f"    case {k}: {error_case(site)} return;" for k, site in enumerate(self.sites) if site.kind == "check"
        ]

    def _error(self, name: str, cases: Sequence[str]) -> Iterator[str]:
        """The function that describes the error of a site."""
        yield f"static void {name}(metaphrase_error *error, int64_t site, const int64_t *v) {{"
        yield from ("    switch (site) {", *cases, "    }", "    mp_failed(error, site, v);", "}", "")

    def _effect(self) -> str | None:
        """The function that prints and warns."""
        cases = []
        for k, site in enumerate(self.sites):
            if site.kind != "check":
                text = effect_case(site, TYPES)
                if text is None:
                    what = "it calls a Python function" if site.kind == "callback" else "it prints an array"
                    raise self.refused(what)
                cases.append(f"    case {k}: {text} return 0;")
        if not cases:
            return None
        head = f"static int {self.kernel}_effect(mp_ctx *c, int64_t site, void **args) {{"
        return "\n".join(
            [head, "    (void)c, (void)args;", "    switch (site) {", *cases, "    }", "    return 1;", "}"]
        )


def _list(declared: str, items: Sequence[str]) -> list[str]:
    """An array with these items, on one row or on several."""
    line = f"{declared} = {{{', '.join(items)}}};"
    return [line] if len(line) < 112 else [f"{declared} = {{", *(f"    {row}," for row in _filled(items, ", ")), "};"]


def _element(value: Any) -> str:
    """An element of a constant array."""
    if value.dtype.kind == "c":
        return f"{{{_element(value.real)}, {_element(value.imag)}}}"
    if value.dtype.kind == "b":
        return "true" if value else "false"
    if value.dtype.kind == "V" or value.dtype.itemsize == 2 and value.dtype.kind == "f":
        return str(int(value.view(np.uint16)))
    if value.dtype.kind == "f":
        number = float(value)
        special = '__builtin_nan("")' if number != number else "-__builtin_inf()" if number < 0 else "__builtin_inf()"
        return repr(number) if np.isfinite(number) else special
    if value.dtype.kind == "u":
        return f"{value}{'ULL' if value > 2**31 else ''}"
    if value == np.iinfo(value.dtype).min:
        return f"({int(value) + 1}{'LL' if value.dtype.itemsize == 8 else ''} - 1)"
    return f"{value}{'LL' if abs(int(value)) > 2**31 else ''}"


def _filled(parts: Sequence[str], between: str = "; ") -> list[str]:
    """Parts as rows of at most 100 characters."""
    rows: list[str] = []
    for part in parts:
        if rows and len(rows[-1]) + len(part) < 100:
            rows[-1] += between + part
        else:
            rows.append(part)
    return rows


__all__ = ["CFunction", "Parameter", "TYPES"]
