"""The text of any stage of a function.

In: a function (or a transformed one), a stage, arguments or a Program. Out: text. For `normal`, `control` and
`numpy` it is a module whose last function is the translated one. Example: `source_text(grad(period), "numpy",
(0.3, 1.0), {})`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ..astpasses.emit.numpy_source import Signature
from ..astpasses.emit.numpy_source_names import usable
from ..astpasses.emit.numpy_source_spellings import array_text
from ..astpasses.frontend import (
    AttributeSource,
    ItemSource,
    Listed,
    NumberSource,
    ObjectSource,
    Source,
    control_stage,
    normal,
    room_of,
    sizes_at_least,
)
from ..core.dims import symbols
from ..interpreter import signature_of
from ..pipeline import BY_NAME, cuda, cython, finished, loops, run
from ..source import SourceError, caller_span
from ..tree_util import PyTreeDef, flatten_one_level, kind_of, tree_flatten_with_path, tree_structure
from .arguments import refuse_unknown_sizes, take_apart, takes_any_keywords
from .captures import read_capture
from .program import Fixed, Program, Same, Slot
from .source import Argument, Store, Text, path_text, python_source
from .transforms import Transformed, jitted_of, program_of
from .types import given_arguments


def source_text(
    fun: Any, stage: str, args: tuple = (), kwargs: dict | None = None, program: Program | None = None
) -> str:
    """See the head of this file."""
    sizes = ""
    if stage not in BY_NAME:
        raise SourceError(f"there is no stage {stage!r}", code="stage", remedy=f"say one of {', '.join(BY_NAME)}")
    user = user_function(fun)
    if stage == "source":
        return run(stage, inspect.getsource, user)
    if stage == "normal":
        return run(stage, module_text, user, lambda f: normal(f).text(), "")
    if stage == "control":
        return run(stage, module_text, user, lambda f: control_stage(f).text(), _STAGER)
    if program is None:
        program, names = program_shown(fun, args, kwargs or {})
        sizes = f"# For sizes from 2 on: {', '.join(names)}.\n" if names else ""
    if stage == "core":
        return run(stage, str, program.function)
    function = finished(program.function)
    if stage == "transformed":
        return str(function)
    if stage == "numpy":
        refuse_unknown_sizes(program.function.name, (p.type.dims for p in function.params), caller_span())
        return sizes + numpy_module(fun, program.with_function(function))
    if stage == "cuda":
        return cuda(function, program.new_values).text
    nests = loops(function, program.new_values)
    if stage == "loops":
        from ..astpasses.schedule.python_loops import python_loops

        return python_loops(nests)
    return cython(nests).text


def program_shown(fun: Any, args: tuple, kwargs: dict) -> tuple[Program, list[str]]:
    """The program for arguments, or stand-ins for them, and the names of its sizes."""
    jitted = jitted_of(fun)
    args, kwargs = given_arguments(args, kwargs)
    call = take_apart(args, kwargs, jitted.static if jitted else (), takes_any_keywords(fun))
    names = sorted({n for spec in call.specs for d in spec.dims for n in symbols(d)})
    with sizes_at_least(dict.fromkeys(names, 2)):  # as in jit: 0 and 1 have programs of their own
        return program_of(fun, call.structure, call.specs), names


def user_function(fun: Any) -> Callable[..., Any]:
    """The function that a person wrote, inside all transformations."""
    while True:
        fun = jitted_of(fun) or fun
        if isinstance(fun, Transformed):
            fun = fun.fun
        elif isinstance(fun, types.MethodType):
            fun = fun.__func__
        elif hasattr(fun, "func") and not isinstance(fun, types.FunctionType):
            fun = fun.func
        else:
            return fun


# ---- numpy ----------------------------------------------------------------------------------------------


def numpy_module(
    fun: Any,
    program: Program,
    name: str | None = None,
    reads: Callable[[Source], str | None] = lambda source: None,
    classes: Callable[[type], str | None] = lambda cls: None,
) -> str:
    """The NumPy stage with the user's parameters, and docstring, unless it is to have another `name`. `reads`: what
    reads a captured value, where that is no constant. `classes`: the import of a class of the user's, if there is one.
    """
    args, kwargs = program.structure.children()
    names = list(map(usable, _parameter_names(fun, len(args.children()))))
    arguments, leaves = [], iter(program.leaves)
    keywords = map(usable, (kwargs.node_data() or (dict, ()))[1])
    for parameter, structure in [*zip(names, args.children()), *zip(keywords, kwargs.children())]:
        taken = [next(leaves) for _ in range(structure.num_leaves)]
        arguments.append(Argument(parameter, structure, tuple(taken)))
    paths = _leaf_paths(arguments)
    captures: list[Any] = []
    for capture in program.captures:
        read = reads(capture) if isinstance(capture, Source) else None
        captures.append(
            Text(read) if read else _capture_text(capture, program, paths) if isinstance(capture, Source) else capture
        )

    def slot_of(slot: Any) -> Any:
        if isinstance(slot, (Slot, Fixed)):
            return slot
        if isinstance(slot, Same):
            return paths[slot.leaf]
        return (_Name(Signature.of_parameter(slot.index)),)

    slots = [slot_of(slot) for slot in program.slots]
    parameters = [a.name for a in arguments]
    stores = [_store(write, program, paths, parameters) for write in program.writes]
    user, own = user_function(fun), _last_name(fun, program)
    code = getattr(inspect.unwrap(user), "__code__", None)
    return python_source(
        program.function,
        name or own,
        arguments,
        captures,
        program.out,
        slots,
        stores,
        "" if code is None else code.co_filename,
        "" if name else _documentation(user, own),
        classes,
    )


def documentation(fun: Any) -> str:
    """The user's docstring; that of a transformed function begins with what it is of."""
    return _documentation(user_function(fun), getattr(fun, "__name__", ""))


def _documentation(user: Any, name: str) -> str:
    text, own = inspect.getdoc(user) or "", getattr(user, "__name__", "")
    if not text or not isinstance(user, types.FunctionType | types.MethodType):
        return ""
    steps = name.removesuffix(own).strip("_")
    return text if name == own or not steps else f"{' of '.join([*steps.split('_'), own])}: {text}"


def _store(write: Any, program: Program, paths: list[tuple], names: list[str]) -> Store:
    """A write of the program as a line of the module."""
    if write.kind in ("argument", "capture"):
        path = paths[write.target] if write.kind == "argument" else (_Name(Signature.of_parameter(write.target)),)
        return Store(f"{path_text(path)}[...] = {{}}", path[0], tree_structure(0), (Slot(write.index),))
    if isinstance(write.target, Source):
        root, text = _place_of(write.target, program, paths)
    else:
        where, key, *rest = write.target  # args or kwargs, which of them, and on into it
        root = names[key.idx] if where.idx == 0 else usable(key.key)
        text = path_text((root, *rest))
    text = text.replace("{", "{{").replace("}", "}}")
    slots = tuple(
        Slot(o.index)
        if o.kind == "result"
        else Fixed(o.value)
        if o.kind == "static"
        else paths[o.index]
        if o.kind == "argument"
        else (_Name(Signature.of_parameter(o.index)),)
        for o in write.outputs
    )
    if write.kind == "attribute":
        return Store(f"{text}.{write.key} = {{}}", root, write.tree, slots)
    if write.kind == "item":
        return Store(f"{text}[{write.key!r}] = {{}}", root, write.tree, slots)
    if (write.tree.node_data() or (None,))[0] in (list, Listed):
        return Store(f"{text}[:] = {{}}", root, write.tree, slots)
    return Store(f"{text}.clear(); {text}.update({{}})", root, write.tree, slots)


def _place_of(source: Source, program: Program, paths: list[tuple]) -> tuple[str, str]:
    """The name that an object is found by, and how; in a comment where it is no argument."""
    steps = ""
    while isinstance(source, (AttributeSource, ItemSource)):
        steps = (f".{source.name}" if isinstance(source, AttributeSource) else f"[{source.index!r}]") + steps
        source = source.parent
    for leaf, path in zip(program.leaves, paths):
        if isinstance(leaf, Fixed) and isinstance(source, ObjectSource) and leaf.value is source.value:
            return path[0], path_text(path) + steps
    return str(source), f"# {source}{steps}"


def _capture_text(source: Source, program: Program, paths: list[tuple]) -> Any:
    """What was captured: where it stands in an argument, or its value now."""
    if room_of(source) is not None:
        return int(read_capture(source))
    text = _place_of(getattr(source, "place", source), program, paths)[1]
    if not text.startswith("#"):
        return Text(text)
    value = read_capture(source)
    return Text(repr(value)) if isinstance(source, NumberSource) else value


class _Name(str):
    """A path of one step that is a name already."""


def _leaf_paths(arguments: list[Argument]) -> list[tuple]:
    paths: list[tuple] = []
    for argument in arguments:
        markers = argument.structure.unflatten(range(argument.structure.num_leaves))
        paths += [(argument.name, *path) for path, _ in tree_flatten_with_path(markers)[0]]
    return paths


def _last_name(fun: Any, program: Program) -> str:
    name = getattr(fun, "__name__", program.name)
    return name if name.isidentifier() else program.function.name


def _parameter_names(fun: Any, count: int) -> list[str]:
    if type(jitted_of(fun) or fun).__name__ == "Jvp":
        return ["primals", "tangents"]
    while isinstance(jitted_of(fun) or fun, Transformed):
        fun = (jitted_of(fun) or fun).fun
    try:
        parameters = [*signature_of(fun).parameters.values()]
    except (TypeError, ValueError):
        parameters = []
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    return [names[k] if k < len(names) else f"{rest}_{k - len(names)}" for k in range(count)]


# ---- normal and control ---------------------------------------------------------------------------------

_STAGER = """from metaphrase.astpasses.frontend.rewrite.plain import stager
"""


def module_text(function: Callable[..., Any], text_of: Callable[[Any], str], head: str) -> str:
    """The text of a function after what it needs: imports, constants, the functions that it calls."""
    module = _Needs(text_of)
    module.function(function)
    parts = ["".join(f"{line}\n" for line in dict.fromkeys(module.imports)) + head]
    if module.constants:
        parts.append("".join(f"{name} = {text}\n" for name, text in module.constants.items()))
    parts += [text.strip("\n") + "\n" for text in module.functions]
    return "\n\n".join(part for part in parts if part)


class _Needs:
    """Collects what a function refers to."""

    def __init__(self, text_of: Callable[[Any], str]):
        self.text_of = text_of
        self.imports: list[str] = []
        self.constants: dict[str, str] = {}
        self.functions: list[str] = []
        self.seen: set[Any] = set()

    def function(self, function: Callable[..., Any]) -> None:
        if function in self.seen:
            return
        self.seen.add(function)
        closure = inspect.getclosurevars(function)
        for name, value in {**closure.globals, **closure.nonlocals}.items():
            self.name(name, value)
        self.functions.append(self.text_of(function))

    def name(self, name: str, value: Any) -> None:
        value = user_function(value) if callable(value) and not isinstance(value, type) else value
        if isinstance(value, types.ModuleType):
            self.imports.append(f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}"))
        elif isinstance(value, (np.ndarray, np.generic)):
            self.imports.append("import numpy as np")
            self.constants[name] = array_text(np.asarray(value))
        elif (
            isinstance(value, types.FunctionType)
            and value.__name__ == name
            and not value.__module__.startswith(("numpy", "scipy", "metaphrase"))
        ):
            self.function(value)
        elif hasattr(value, "__module__") and hasattr(value, "__qualname__"):
            self.imports.append(
                f"from {value.__module__} import {value.__qualname__}"
                + ("" if value.__qualname__ == name else f" as {name}")
            )
        else:
            self.constants[name] = literal_text(value)


def literal_text(value: Any) -> str:
    """A captured Python value; containers of arrays are written out."""
    if isinstance(value, (np.ndarray, np.generic)):
        return array_text(np.asarray(value))
    if kind_of(value) is not None and type(value) in (tuple, list, dict):
        children, keys = flatten_one_level(value)
        texts = [literal_text(child) for child in children]
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {t}" for k, t in zip(keys, texts)) + "}"
        inner = ", ".join(texts) + ("," if isinstance(value, tuple) and len(texts) == 1 else "")
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    return repr(value)


__all__ = ["literal_text", "source_text", "user_function", "module_text", "numpy_module", "documentation", "PyTreeDef"]
