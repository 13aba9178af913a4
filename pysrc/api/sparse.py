"""jacobian with `sparsity`: derivatives whose matrix is sparse, in as many directions as it has colours.

In: a function and a pattern, or none: then it is found in the program (`core/sparsity.py`). Out: a function that
gives `scipy.sparse.csr_array`s. Columns of which no two have a number in one row are computed together by forward mode,
or such rows by reverse mode, whichever are fewer groups. Example:

    jacobian(lambda u: u[2:] - 2 * u[1:-1] + u[:-2], sparsity="detect")(u)      # three directions, for any size
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..astpasses.transforms.batch import batch
from ..core.build import Builder
from ..core.custom import without_rules
from ..core.ir import Function
from ..core.sparsity import dependencies
from ..core.types import Array, has_tangent, is_float
from ..late import dataclass
from ..locks import cached_property
from ..ops.arrays import zeros
from ..pipeline import cleaned
from ..source import DTypeError, ShapeError, Span, UnsupportedError
from ..tree_util import PyTreeDef, tree_structure, treedef_tuple
from . import programs as programs
from .arguments import Call, Spec, take_apart
from .captures import captures_fit, guards_hold, read_capture
from .colouring import alone_in_row, column_colours, star_colours
from .derivatives import check_argnums, differentiated, output_atoms, private_copies, split_aux, without_derivative
from .execute import MANY, pinned_fit
from .identity import shared
from .program import Fixed, Program, Slot, caller_span, marks, under_way
from .statics import static_key
from .tracebacks import user_frames
from .transformations import Grad, differentiable_program
from .transforms import Transformed, parameter_names


@dataclass(frozen=True)
class Parts:
    """What a Jacobian has to do with a Program: its function, the parameters that are differentiated, in order, the
    results (all of floats), and the structures of both and of aux."""

    program: Program
    wrt: list[int]
    outputs: list[int]
    inner: PyTreeDef
    out: PyTreeDef
    aux: PyTreeDef | None

    @property
    def types(self) -> tuple[list[Array], list[Array]]:
        """Of the arguments and of the results."""
        function = self.program.function
        return [function.params[k].type for k in self.wrt], [function.results[k].type for k in self.outputs]


def _parts(program: Program, argnums: Any, has_aux: bool, span: Span | None, names: Sequence[str]) -> Parts:
    what = "jacobian"
    program = private_copies(program, what, names)
    positions, single = check_argnums(argnums, len(program.structure.children()[0].children()), what, span)
    wrt = differentiated(program, positions, what, span, names=names)
    program = output_atoms(program)
    out, aux = split_aux(program, has_aux, what, span)
    slots = program.slots
    program = without_derivative(program, [s.index for s in slots[out.num_leaves :] if isinstance(s, Slot)])
    program = program.with_function(cleaned(program.function))
    function = program.function
    for slot in slots[: out.num_leaves]:
        type_ = function.results[slot.index].type if isinstance(slot, Slot) else None
        if type_ is None or not is_float(type_.dtype):
            raise DTypeError(
                f"{what} of {program.title}, which returns {slot.value if type_ is None else type_.plain}",
                program.result_span(slot.index) if type_ is not None else span,
                code="grad-dtype",
                remedy="return real floats, and other values as aux with has_aux=True",
            )
        if not all(isinstance(dim, int) for dim in type_.dims):
            raise UnsupportedError(
                f"{what} of {program.title}, which returns {type_.plain}, of a size that is known only when it runs",
                program.result_span(slot.index) or span,
                code="sparsity",
                remedy="leave out sparsity",
            )
    if any(not is_float(function.params[k].type.dtype) for k in wrt):
        raise DTypeError(
            f"{what} of {program.title} with respect to complex numbers",
            span,
            code="grad-dtype",
            remedy="leave out sparsity, or make the real and the imaginary part arguments",
        )
    trees = [program.argument_structure(p) for p in positions]
    inner = trees[0] if single else treedef_tuple(trees)
    return Parts(program, wrt, [s.index for s in slots[: out.num_leaves]], inner, out, aux)


# ---- compressed derivatives -----------------------------------------------------------------------------


class Compressed(Transformed):
    """Derivatives in several directions at once, as a function of (directions, *arguments): one array for each argument
    leaf in forward mode, for each leaf of the output in reverse mode, with the directions along axis 0; the products
    likewise for the other side, and with `has_aux` aux."""

    kind = "jacobian"
    compiles = True

    def __init__(self, fun: Callable[..., Any], argnums: Any, has_aux: bool, reverse: bool):
        super().__init__(fun)
        self.__dict__.pop("__wrapped__", None)
        self.argnums, self.has_aux, self.reverse = argnums, has_aux, reverse

    def _again(self) -> tuple:
        return self.fun, self.argnums, self.has_aux, self.reverse

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        positional, keywords = structure.children()
        directions, *rest = positional.children()
        count = directions.num_leaves
        own = treedef_tuple([treedef_tuple(rest), keywords])
        program = differentiable_program(self.fun, own, specs[count:])
        parts = _parts(program, self.argnums, self.has_aux, self._place(), parameter_names(self.fun))
        program = parts.program
        function = program.function
        made = (_reverse if self.reverse else _forward)(function, parts, [s.type for s in specs[:count]])
        first, captures = len(function.params), len(program.captures)
        # directions are the first leaves of the call, and their parameters stand before those of the other leaves
        order = [*range(captures), *range(first, first + count), *range(captures, first)]
        made = Function(made.name, tuple(made.params[k] for k in order), made.lets, made.results)
        leaves = [leaf if isinstance(leaf, Fixed) or leaf < captures else leaf + count for leaf in program.leaves]
        products = len(made.results) - len(function.results)
        shapes = [tree_structure((0,) * products)]
        slots: list[Any] = [Slot(len(function.results) + k) for k in range(products)]
        if parts.aux is not None:
            shapes.append(parts.aux)
            slots += program.slots[parts.out.num_leaves :]
        return program.with_function(
            made,
            structure=structure,
            leaves=(*range(captures, captures + count), *leaves),
            out=treedef_tuple(shapes),
            slots=tuple(slots),
            forms=("array",) * len(made.results),
            name=self.__name__,
        )


def _forward(function: Function, parts: Parts, types: Sequence[Array]) -> Function:
    """(*params, *directions) -> (*results, *products): the tangents of the outputs, in each direction."""
    chosen = sorted(set(parts.wrt))
    pushed = cleaned(programs.forward(function, marks(len(function.params), chosen)))
    inner, found = batch(pushed, types[0].dims[0], [False] * len(function.params) + [True] * len(chosen))
    row = {k: j for j, k in enumerate(k for k, r in enumerate(function.results) if has_tangent(r.type))}
    with Builder(f"jacobian_{function.name}") as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        given = [builder.parameter(f"{function.params[k].name}_dot", t) for k, t in zip(parts.wrt, types)]
        outs = builder.replay(inner, [*params, *(given[parts.wrt.index(k)] for k in chosen)])
        count = len(function.results)
        places = [count + row[k] for k in parts.outputs]
        products = [outs[k] if found[k] else _none(outs[k].type, types[0]) for k in places]
        return builder.function([*outs[:count], *products])


def _reverse(function: Function, parts: Parts, types: Sequence[Array]) -> Function:
    """(*params, *directions) -> (*results, *products): the cotangents of the arguments, of each direction."""
    chosen = sorted(set(parts.wrt))
    linear = programs.linear_parts(function, marks(len(function.params), chosen), cleaned)
    count = len(function.results)
    residuals = len(linear.known.results) - count
    has = [k for k, r in enumerate(function.results) if has_tangent(r.type)]
    wanted = [False] * residuals + [k in parts.outputs for k in has]
    inner, found = batch(cleaned(linear.pullback), types[0].dims[0], wanted)
    with Builder(f"jacobian_{function.name}") as builder:
        params = [builder.parameter(p.name, p.type) for p in function.params]
        given = {
            k: builder.parameter(f"result_{j}_bar", t)
            for j, (k, t) in enumerate(zip(parts.outputs, types, strict=True))
        }
        outs = builder.replay(linear.known, params)
        bars = [given[k] if k in given else zeros(function.results[k].type.plain) for k in has]
        rows = builder.replay(inner, [*outs[count:], *bars])
        products = [row if mark else _none(row.type, types[0]) for row, mark in zip(rows, found)]
        return builder.function([*outs[:count], *(products[chosen.index(k)] for k in parts.wrt)])


def _none(type_: Array, directions: Array) -> Any:
    return zeros(type_.plain.with_dims((directions.dims[0], *type_.dims)))


# ---- patterns -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """How the Jacobian of calls like one is computed: its pattern, a boolean csr_array; a colour for each column (or,
    in reverse mode, row); whether the matrix is symmetric and the colours are those of a star colouring; the program,
    and the captured integers that the pattern may depend on."""

    parts: Parts
    pattern: Any
    colours: np.ndarray
    reverse: bool
    star: bool
    captured: tuple

    def fits(self, call: Call) -> bool:
        """Whether the program is that of a call of the same types, sizes and integers."""
        program = self.parts.program
        if not (pinned_fit(program, call) and captures_fit(program) and guards_hold(program.guards)):
            return False
        return self.captured == _keys(_captured(program).values())

    @cached_property
    def directions(self) -> tuple[np.ndarray, ...]:
        """For each leaf the sums of the unit vectors of one colour, along axis 0."""
        count = int(self.colours.max(initial=0)) + 1
        found, start = [], 0
        for type_ in self.parts.types[self.reverse]:
            size = _size(type_)
            rows = np.zeros((count, size), type_.dtype)
            rows[self.colours[start : start + size], np.arange(size)] = 1
            found.append(rows.reshape((count, *map(int, type_.dims))))  # type: ignore[arg-type]
            start += size
        return tuple(found)

    def matrices(self, products: Sequence[np.ndarray]) -> list[Any]:
        """A matrix for each leaf of the output and each leaf of the arguments."""
        from scipy.sparse import csr_array

        columns, bounds = self.pattern.indices.copy(), self.pattern.indptr.copy()
        rows = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        flat = np.concatenate([np.reshape(p, (len(p), -1)) for p in products], axis=1)
        if self.star:  # where a colour is twice in the row, the mirror image has the number alone
            alone = alone_in_row(rows, self.colours[columns], len(flat))
            rows_, columns_ = np.where(alone, (rows, columns), (columns, rows))
            values = flat[self.colours[columns_], rows_]
        elif self.reverse:
            values = flat[self.colours[rows], columns]
        else:
            values = flat[self.colours[columns], rows]
        whole = csr_array((values, columns, bounds), shape=self.pattern.shape)
        ends_in, ends_out = (np.cumsum([0, *(_size(t) for t in types)]) for types in self.parts.types)
        if len(ends_in) == len(ends_out) == 2:
            return [whole]
        pairs = [(a, b, c, d) for a, b in zip(ends_out, ends_out[1:]) for c, d in zip(ends_in, ends_in[1:])]
        return [whole[a:b, c:d] for a, b, c, d in pairs]


def _size(type_: Array) -> int:
    return math.prod(map(int, type_.dims))  # type: ignore[arg-type]


def _pushed(parts: Parts) -> Function | None:
    """The tangents of the results, from those of the arguments; None where there is a backward rule alone."""
    function = parts.program.function
    try:
        made = programs.forward(function, marks(len(function.params), parts.wrt))
        return cleaned(without_rules(made))
    except UnsupportedError as error:
        if error.code != "custom-forward":
            raise
        return None


def _detected(parts: Parts, pushed: Function | None, known: dict[int, Any]) -> Any:
    """The pattern, from the program of the tangents, or else of the cotangents."""
    function = parts.program.function
    count, results = len(function.params), len(function.results)
    chosen = sorted(set(parts.wrt))
    has = [k for k, r in enumerate(function.results) if has_tangent(r.type)]
    inputs, outputs = (sum(map(_size, types)) for types in parts.types)
    if pushed is not None:
        found = dependencies(pushed, [count + chosen.index(k) for k in parts.wrt], known)
        return _pattern([found[results + has.index(k)] for k in parts.outputs], (outputs, inputs))
    pullback = programs.linear_parts(function, marks(count, chosen), cleaned).pullback
    first = len(pullback.params) - len(has)
    found = dependencies(cleaned(without_rules(pullback)), [first + has.index(k) for k in parts.outputs], {})
    return _pattern([found[chosen.index(k)] for k in parts.wrt], (inputs, outputs)).T.tocsr()


def _pattern(rows: Sequence[Sequence[frozenset[int]]], shape: tuple[int, int]) -> Any:
    from scipy.sparse import coo_array

    sets = [sorted(each) for part in rows for each in part]
    places = np.repeat(np.arange(len(sets)), [len(each) for each in sets])
    columns = np.array([k for each in sets for k in each], np.int64)
    return coo_array((np.ones(len(columns), bool), (places, columns)), shape=shape).tocsr()


class Jacobian(Transformed):
    """What `jacobian` makes."""

    kind = "jacobian"

    def __init__(self, fun: Callable[..., Any], argnums: Any, has_aux: bool, sparsity: Any, symmetric: bool = False):
        super().__init__(fun)
        self.argnums, self.has_aux, self.sparsity, self.symmetric = argnums, has_aux, sparsity, symmetric
        self.plans: dict[Any, Plan] = {}

    def _again(self) -> tuple:
        return self.fun, self.argnums, self.has_aux, self.sparsity, self.symmetric

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with user_frames():
            if under_way():
                self._refuse()
            plan = self.plan(*args, **kwargs)
            compressed = shared(Compressed, self.fun, self.argnums, self.has_aux, plan.reverse)
            products, *aux = compressed(plan.directions, *args, **kwargs)
            found = plan.parts.out.compose(plan.parts.inner).unflatten(plan.matrices(products))
            return (found, aux[0]) if self.has_aux else found

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            "jacobian with sparsity inside of a translated function: its result is an array of SciPy's",
            self._place(),
            code="sparsity",
            remedy="call it outside, or leave out sparsity: then it gives arrays of NumPy's",
        )

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """How the Jacobian at these arguments is computed: `pattern`, `colours`, and whether in reverse mode. It is
        kept for calls of the same types, sizes and integers."""
        call = take_apart(args, kwargs, in_order=self.in_order)
        fixed = [value for value, spec in zip(call.leaves, call.specs) if spec.dynamic and not has_tangent(spec.type)]
        key = call.key, call.dims, _keys(fixed)
        plan = self.plans.get(key)
        if plan is None or not plan.fits(call):
            plan = self.plans[key] = self._planned(call)
            if len(self.plans) > MANY:
                del self.plans[next(iter(self.plans))]
        return plan

    def _planned(self, call: Call) -> Plan:
        span, names = self._place(), parameter_names(self.fun)
        program = differentiable_program(self.fun, call.structure, call.specs)
        parts = _parts(program, self.argnums, self.has_aux, span, names)
        program = parts.program
        captured, pushed = _captured(program), _pushed(parts)
        if isinstance(self.sparsity, str):
            known = {
                leaf: np.asarray(value)[()]
                for leaf, value, spec in zip(program.leaves, call.leaves, call.specs)
                if not isinstance(leaf, Fixed) and not has_tangent(spec.type)
            }
            pattern = _detected(parts, pushed, known | captured)
        else:
            shape = tuple(sum(map(_size, types)) for types in reversed(parts.types))
            pattern = _given(self.sparsity, shape, program.title, span)
        keys = _keys(captured.values())
        if self.symmetric and pushed is not None:
            pattern = (pattern + pattern.T).tocsr()
            return Plan(parts, pattern, star_colours(pattern), False, True, keys)
        columns, rows = column_colours(pattern), column_colours(pattern.T)
        reverse = pushed is None or bool(rows.max(initial=0) < columns.max(initial=0))
        return Plan(parts, pattern, rows if reverse else columns, reverse, False, keys)


def _keys(values: Iterable[Any]) -> tuple:
    """The values of integers and bools, which patterns may depend on."""
    return tuple(map(static_key, values))


def _captured(program: Program) -> dict[int, Any]:
    """The captured arrays of integers and bools."""
    pairs = enumerate(zip(program.captures, program.function.params))
    return {k: np.asarray(read_capture(capture))[()] for k, (capture, p) in pairs if not has_tangent(p.type)}


def _given(sparsity: Any, shape: tuple[int, ...], title: str, span: Span | None) -> Any:
    """The user's pattern, of `shape`."""
    from scipy.sparse import coo_array

    pattern = coo_array(sparsity)
    if pattern.shape != shape:
        raise ShapeError(
            f"jacobian of {title}: the pattern is of shape {pattern.shape}, and the matrix of shape {shape}",
            span,
            code="sparsity",
            remedy="one row for each element of the output, one column for each element of the arguments",
        )
    pattern.sum_duplicates()
    keep = pattern.data != 0
    rows, columns = pattern.coords
    return coo_array((np.ones(int(keep.sum()), bool), (rows[keep], columns[keep])), shape=shape).tocsr()


def sparse_jacobian(fun: Callable[..., Any], argnums: Any, has_aux: bool, sparsity: Any) -> Jacobian:
    with user_frames():
        return shared(Jacobian, fun, argnums, has_aux, _checked(sparsity))


def sparse_hessian(fun: Callable[..., Any], argnums: Any, has_aux: bool, sparsity: Any) -> Jacobian:
    with user_frames():
        gradient = shared(Grad, fun, argnums, has_aux, False, False, False)
        return shared(Jacobian, gradient, argnums, has_aux, _checked(sparsity), True)


def _checked(sparsity: Any) -> Any:
    if isinstance(sparsity, str) and sparsity != "detect":
        raise ShapeError(
            f"sparsity is {sparsity!r}", caller_span(), code="sparsity", remedy='give a boolean matrix, or "detect"'
        )
    return sparsity


__all__ = ["Jacobian", "sparse_hessian", "sparse_jacobian"]
