"""What an equation defines, as part of a program: `custom_root` and `linear_solve` of core, of the user's functions.

In: functions that solve an equation, say what it is, and solve the linear equation of its derivative. Out: what solves
gives; where derivatives will be taken, a Program with one `custom_root` or `linear_solve` in it. All that the functions
read of what is around them becomes operands of it, so derivatives reach it. Example, of `custom_root(f, ...)` where f
reads `a`:

    def f(captured: f64) -> f64:
        x: f64 = custom_root(captured, function=newton, residual=f, tangent=slope)
        return x
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from ..core.build import Builder
from ..core.ir import Function
from ..core.primitive import Primitive
from ..core.types import Array, has_tangent
from ..ops.implicit import custom_root, linear_solve
from ..source import DTypeError, ShapeError, UnsupportedError
from ..tree_util import PyTreeDef
from .arguments import Form, Spec
from .custom_parts import Part, staged_part, text_of
from .orders import derivatives_to_come, will_be_transposed
from .program import Fixed, Program, Slot, definition_span, name_of, under_way, user_span
from .transforms import Transformed, call_inside, program_of

_ROLES = {"function": "solve", "residual": "f", "tangent": "tangent_solve", "back": "transpose_solve"}


def _spec(part: Part, slot: Any) -> Spec:
    """What a function is given that takes a leaf of the solution."""
    type_ = part.type(slot)
    if type_ is None or not has_tangent(type_):
        shown = repr(slot.value) if type_ is None else str(type_)
        part.refuse(
            f"the solution that solve of custom_root gives has {shown} in it, and is made of floats",
            "give floats, and what else there is as aux (has_aux=True)",
        )
    form = part.form(slot)
    if form == "python":
        return Spec(Form.NUMBER, type_.dtype, python={"f": float, "c": complex}[type_.dtype.kind])
    return Spec(Form.ARRAY if type_.dims or form == "array" else Form.SCALAR, type_.dtype, type_.dims)


class _Equation(Transformed):
    """What solves an equation, called with what the solution is linear in."""

    has_aux = False
    like = ""  # what all have the structure and the types of
    matters = staticmethod(derivatives_to_come)  # whether the program is to know the equation

    @property
    def py_func(self) -> Callable[..., Any] | None:
        """What solves, where staged code calls it as if it stood there: where no derivative is taken."""
        return None if self.matters() else self.fun

    def __metaphrase_stage__(self, args: tuple, kwargs: dict) -> Any:
        return super().__metaphrase_stage__(args, kwargs) if self.matters() else None

    def _solution(self, part: Part) -> tuple[PyTreeDef, Sequence[Any]]:
        """The structure and the slots of the solution among what solves gives."""
        out, children = part.program.out, part.program.out.children()
        if not self.has_aux:
            return out, part.program.slots
        if out.node_data() is None or len(children) != 2:
            part.refuse(
                f"solve of {self.kind} with has_aux=True returns {text_of(out)}", "return the pair (solution, aux)"
            )
        return children[0], part.program.slots[: children[0].num_leaves]

    def _check(
        self, name: str, part: Part, found: tuple[PyTreeDef, Sequence[Any]], tree: PyTreeDef, types: Sequence[Array]
    ) -> None:
        """Refuse what has not the structure and the types that all have: those of the solution."""
        (out, slots), said = found, f"{_ROLES.get(name, 'matvec')} of {self.kind} returns"
        if out != tree:
            part.refuse(
                f"{said} {text_of(out)}, and {self.like} is {text_of(tree)}", f"return what {self.like} is made of"
            )
        for slot, want in zip(slots, types):
            have = part.type(slot)
            if have is None or have.plain != want.plain:
                shown = repr(slot.value) if have is None else str(have.plain)
                part.refuse(
                    f"{said} {shown} where {self.like} is {want.plain}",
                    f"return the shapes and dtypes of {self.like}",
                    ShapeError if have is not None and have.dims != want.dims else DTypeError,
                )

    def _made(
        self,
        primitive: Primitive,
        parts: dict[str, Part],
        more: dict[str, Sequence[Array]],
        structure: PyTreeDef,
        specs: Sequence[Spec],
    ) -> Program:
        """The program of the call; `more`: what each part takes, beside all that the parts read around them."""
        function = parts["function"]
        read = [p.type for part in parts.values() for p in part.program.function.params[: len(part.program.captures)]]
        first = 0
        bodies: dict[str, Function | None] = dict.fromkeys(("back", "vecmat") if "matvec" in parts else ())
        for name, part in parts.items():
            with Builder(part.name) as builder:
                captured = [builder.parameter(f"captured_{k}", t) for k, t in enumerate(read)]
                leaves = [builder.parameter(f"x{k}", t) for k, t in enumerate(more[name])]
                found = part.run(builder, captured[first : first + len(part.program.captures)], leaves)
                bodies[name] = builder.function([f for f in found if not isinstance(f, Fixed)])
            first += len(part.program.captures)
        with Builder(function.name) as builder:
            builder.span = user_span()
            operands = [builder.parameter(f"captured_{k}", t) for k, t in enumerate(read)]
            operands += [builder.parameter(f"b{k}", s.type) for k, s in enumerate(specs)]
            made = builder.function(primitive(*operands, **bodies))
        numbers = iter(range(len(made.results)))
        kept = [function.type(s) is not None for s in function.program.slots]
        return Program(
            made,
            tuple(capture for part in parts.values() for capture in part.program.captures),
            structure,
            tuple(range(len(read), len(operands))),
            function.program.out,
            tuple(Slot(next(numbers)) if k else s for s, k in zip(function.program.slots, kept)),
            tuple(function.form(s) for s, k in zip(function.program.slots, kept) if k),
            tuple({guard.key(): guard for part in parts.values() for guard in part.program.guards}.values()),
            name=self.__name__,
            place=definition_span(self.fun),
        )


class Root(_Equation):
    """`solve() -> x` with `residual(x) = 0`; `tangent_solve(x, r)` solves the linear equation of the slope at x."""

    kind, like = "custom_root", "the solution"

    def __init__(
        self, solve: Callable[[], Any], residual: Callable[..., Any], tangent_solve: Callable[..., Any], has_aux: bool
    ):
        super().__init__(solve)
        self.residual, self.tangent_solve, self.has_aux = residual, tangent_solve, has_aux
        self.__name__ = name_of(residual)

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        count = derivatives_to_come()
        function = staged_part(self.fun, (), (), 0, self.kind)
        if function.program.raises:
            return program_of(self.fun, structure, specs)
        tree, slots = self._solution(function)
        given = [_spec(function, s) for s in slots]
        types = [s.type for s in given]
        residual = staged_part(self.residual, (tree,), given, count, self.kind)
        tangent = staged_part(self.tangent_solve, (tree, tree), [*given, *given], count - 1, self.kind, transposed=True)
        parts = {"function": function, "residual": residual, "tangent": tangent}
        for name in ("residual", "tangent"):
            self._check(name, parts[name], (parts[name].program.out, parts[name].program.slots), tree, types)
        more = {"function": (), "residual": types, "tangent": [*types, *types]}
        return self._made(custom_root, parts, more, structure, specs)


class LinearSolve(_Equation):
    """`solve(b) -> x` with `matvec(x) = b`; `back` and `vecmat` are the same of the transposed map, or both None."""

    kind, like = "custom_linear_solve", "b"
    matters = staticmethod(will_be_transposed)

    def __init__(
        self,
        solve: Callable[[Any], Any],
        matvec: Callable[[Any], Any],
        back: Callable[[Any], Any] | None,
        vecmat: Callable[[Any], Any] | None,
        has_aux: bool,
    ):
        super().__init__(solve)
        self.matvec, self.back, self.vecmat, self.has_aux = matvec, back, vecmat, has_aux
        self.__name__ = name_of(matvec)

    def _program(self, structure: PyTreeDef, specs: Sequence[Spec]) -> Program:
        tree, count = structure.children()[0].children()[0], derivatives_to_come()
        types = [s.type for s in specs]
        functions = {"function": self.fun, "matvec": self.matvec, "back": self.back, "vecmat": self.vecmat}
        parts = {}
        for name, function in functions.items():
            if function is None:
                continue
            solves = name in ("function", "back")
            part = parts[name] = staged_part(function, (tree,), specs, 0 if solves else count, self.kind)
            if part.program.raises:
                return program_of(function, structure, specs)
            whole = part.program.out, part.program.slots
            self._check(name, part, self._solution(part) if name == "function" else whole, tree, types)
        return self._made(linear_solve, parts, dict.fromkeys(parts, types), structure, specs)


def root(
    solve: Callable[[], Any], residual: Callable[..., Any], tangent_solve: Callable[..., Any], has_aux: bool
) -> Any:
    """What `solve()` gives, whose derivative is that of the x with `residual(x) = 0`; see `Root`."""
    return call_inside(Root(solve, residual, tangent_solve, has_aux), (), {}) if under_way() else solve()


def solution(
    solve: Callable[[Any], Any],
    matvec: Callable[[Any], Any],
    back: Callable[[Any], Any] | None,
    vecmat: Callable[[Any], Any] | None,
    b: Any,
    has_aux: bool,
) -> Any:
    """What `solve(b)` gives, whose derivative is that of the x with `matvec(x) = b`; see `LinearSolve`."""
    made = LinearSolve(solve, matvec, back, vecmat, has_aux)
    return call_inside(made, (b,), {}) if under_way() else solve(b)


def refuse(what: str, remedy: str) -> NoReturn:
    """What has no translation, found by a library's function that is being translated."""
    raise UnsupportedError(f"{what} has no translation", user_span(), code="no-translation", remedy=remedy)


__all__ = ["refuse", "root", "solution"]
