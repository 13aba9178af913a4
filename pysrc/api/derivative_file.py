"""`derivative`: a function's derivative in reverse mode as a file of NumPy source, and its tests beside it.

In: a function and arguments, or text of their types. Out: the text, in `file` where one is named. Importing that makes
it the function's derivative (`derivative_of`), where metaphrase is installed; the tests compare it with differences.
Example:

    derivative(energy, "f64[n], f64", file="energy_grad.py")      # and test_energy_grad.py
"""

from __future__ import annotations

import collections
import os
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._version import VERSION
from ..core.dims import symbols
from ..digests import sha256
from ..interpreter import signature_of
from ..source import DTypeError, SourceError, Span, is_library
from ..tree_util import PyTreeDef, tree_leaves
from .arguments import Call, take_apart
from .derivative_text import DerivativeText, class_import, derivative_text, module_name
from .orders import taking_derivatives, without_rule
from .own_rules import alone, by_position, function_of
from .program import caller_span, under_way
from .rule_checks import Point, acts, derivative_at, differentiable, source_digest
from .text import literal_text
from .tracebacks import user_frames
from .transforms import program_of
from .types import ShapeDtypeStruct, given_arguments

MOST = 64  # elements of sample arguments that are written out
POINTS = 2  # that are drawn, where types are given
_MARK = "# Written by metaphrase"


def derivative(
    fun: Callable[..., Any],
    *args: Any,
    file: str | os.PathLike[str] | None = None,
    argnums: int | Sequence[int] | None = None,
    overwrite: bool = False,
    **kwargs: Any,
) -> str:
    """The NumPy source of the derivative of `fun` in reverse mode, for arguments like these, to be read and edited.

    `args` are arguments, or text of their types as `source` takes it; without any, the first types of `export`. The
    text has `<name>_forward(*arguments) -> (result, residuals)` and `<name>_backward(residuals, cotangent)`, which
    gives a tuple with one cotangent for each argument, or for those of `argnums`; None for what has none. With `file`
    it is written there, and `test_<file>` beside it, which compares it with central differences by NumPy alone.
    Importing the file gives the function its derivative by `derivative_of`.

    A file that was edited is left as it is unless `overwrite` says otherwise. Raises FileExistsError for such,
    DTypeError and SourceError for functions and arguments that have no derivative, and what `fun` raises at arguments
    that are given.
    (Griewank & Walther, Evaluating Derivatives, ch. 3 and 6.)
    """
    span = caller_span()
    with user_frames():
        function = function_of(fun, span, "derivative")
        if under_way():
            raise SourceError(
                f"derivative({function.__name__}) in a function that is being translated",
                span,
                code="own-rule",
                remedy="call it outside: it writes a file",
            )
        target = Path(file) if file is not None else None
        if target is not None and (target.suffix != ".py" or not target.stem.isidentifier()):
            raise SourceError(
                f"derivative({function.__name__}): {target.name} is no name of a module",
                span,
                code="own-rule",
                remedy="name a file that Python can import, as in energy_grad.py",
            )
        exports: Any = getattr(fun, "exports", ())
        if not args and not kwargs:
            args = exports[:1]
        args = _positional(function, *given_arguments(args, kwargs))
        call = take_apart(args, {})
        made = derivative_text(function, call, argnums, span)
        imports = _class_imports(function, call, span)
        samples = _samples(function, call, span)
        text = _module_text(function, call, made, imports, samples, target, argnums is not None)
        if target is not None:
            tests = target.with_name(f"test_{target.name}")
            written = {target: text, tests: _test_text(function, made, target)}
            for path in written if not overwrite else ():
                _refuse_edited(path)
            for path, content in written.items():
                path.write_text(content, encoding="utf-8")
        return text


def _positional(function: types.FunctionType, args: tuple, kwargs: dict) -> tuple:
    """The arguments by position, defaults filled in."""
    signature = signature_of(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"derivative({function.__name__}): {error}; its parameters are {signature}") from None
    bound.apply_defaults()
    return (*bound.args, *bound.kwargs.values())


# ---- files ---------------------------------------------------------------------------------------------------


def _signed(text: str) -> str:
    """The text with a last line by which we know it again."""
    return f"{text}\n{_MARK} {VERSION}; as it was: {_digest(text)}\n"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _refuse_edited(path: Path) -> None:
    if not path.exists():
        return
    body, mark, last = path.read_text(encoding="utf-8").rpartition(f"\n{_MARK} ")
    if not mark or last.rpartition(" ")[2].strip() != _digest(body):
        raise FileExistsError(
            f"{path} is there, and is not as metaphrase wrote it: say overwrite=True to lose what is in it"
        )


def _importable(function: types.FunctionType) -> str | None:
    """The module that a function is found in by its name, if it is."""
    if "<" in function.__qualname__:
        return None
    return module_name(function.__module__, function.__code__.co_filename)


def _own_name(file: Path) -> str:
    """The name that tests import a file by: pytest looks from the outermost folder that is no package."""
    parts = [file.stem]
    folder = file.absolute().parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts)


# ---- samples -------------------------------------------------------------------------------------------------


def _samples(function: types.FunctionType, call: Call, span: Span | None) -> list[str]:
    """The text of sample arguments at which the function was run: those that are given, else some that are drawn."""
    drawn = any(isinstance(leaf, ShapeDtypeStruct) for leaf in call.leaves)
    texts = []
    for seed in range(POINTS if drawn else 1):
        point = Point(call.structure, call.specs, call.leaves).drawn(seed, digits=2)
        assert point.leaves is not None
        args = call.structure.unflatten(point.leaves)[0]
        try:
            with taking_derivatives(1), without_rule(function):
                program = program_of(by_position(function), point.structure, point.specs)
            if not acts(program):
                derivative_at(program, point.leaves, differentiable(program))
        except Exception as why:
            if not drawn:
                raise
            raise SourceError(
                f"{function.__name__} can't be run at arguments drawn for the types: {type(why).__name__}: {why}",
                span,
                code="own-rule",
                remedy="give arguments in place of types, as samples",
            ) from why
        texts.append(f"({', '.join(map(_sample_text, args))}{',' * (len(args) == 1)})")
    return texts


def _sample_text(value: Any) -> str:
    """An argument as text: large arrays are drawn anew."""
    leaves = tree_leaves(value)
    if len(leaves) == 1 and leaves[0] is value and isinstance(value, np.ndarray) and value.size > MOST:
        text = f"np.random.default_rng(0).uniform(0.1, 0.9, {value.shape})"
        return text if value.dtype == np.float64 else f"{text}.astype(np.{value.dtype})"
    if isinstance(value, np.generic):
        if value.dtype in (np.float64, np.int64, np.complex128):
            return repr(value.item())
        return f"np.{value.dtype}({value.item()!r})"
    names = getattr(value, "_fields", None) or getattr(type(value), "__dataclass_fields__", ())
    if names:
        return f"{type(value).__name__}({', '.join(f'{n}={_sample_text(getattr(value, n))}' for n in names)})"
    if isinstance(value, (tuple, list)):
        inner = ", ".join(map(_sample_text, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_sample_text(child)}" for key, child in value.items()) + "}"
    return literal_text(value)


def _classes(structure: PyTreeDef) -> Iterator[type]:
    """The user's classes in a structure."""
    data = structure.node_data()
    if data is not None and data[0] not in (tuple, list, dict, type(None), collections.OrderedDict):
        yield data[0]
    for child in structure.children():
        yield from _classes(child)


def _class_imports(function: types.FunctionType, call: Call, span: Span | None) -> list[str]:
    """The imports of the classes that sample arguments are made of."""
    found = []
    plain = (bool, int, float, complex, str, bytes, type(None))
    objects = [type(spec.value) for spec in call.specs if not spec.dynamic and not isinstance(spec.value, plain)]
    for cls in (*_classes(call.structure), *objects):
        if cls in objects or (line := class_import(cls)) is None:
            raise DTypeError(
                f"derivative({function.__name__}): a file can't make objects of {cls.__qualname__}",
                span,
                code="own-rule",
                remedy="pass a dict, a named tuple or a dataclass of the top level of a module",
            )
        found.append(line)
    return found


# ---- the texts -----------------------------------------------------------------------------------------------


def _module_text(
    function: types.FunctionType,
    call: Call,
    made: DerivativeText,
    imports: Sequence[str],
    samples: Sequence[str],
    target: Path | None,
    some: bool,
) -> str:
    name, module = function.__name__, _importable(function)
    where = f"{module or os.path.basename(function.__code__.co_filename)}, line {function.__code__.co_firstlineno}"
    sizes = sorted({n for spec in call.specs for d in spec.dims for n in symbols(d)})
    types_told = ", ".join(spec.text() for spec in call.specs)
    tests = "" if target is None else f" test_{target.name} compares them with central differences."
    for_types = f"For ({types_told}){', sizes from 2 on' if sizes else ''}."
    parts_told = f"`{made.forward}` gives the result and residuals, `{made.backward}` the cotangents of the arguments."
    about = textwrap.wrap(f"{for_types} {parts_told}{tests}", 118, break_long_words=False, break_on_hyphens=False)
    head = [
        f'"""The derivative of `{function.__qualname__}` ({where}) in reverse mode, to be edited.',
        "",
        *about,
        '"""',
    ]
    rows = [f"    {text}," for text in samples]
    parts = [
        "\n".join([*head, "", *_in_order([*imports, *made.imports])]),
        made.functions,
        "\n".join(["SAMPLES = [  # arguments that the derivative is checked at", *rows, "]"]),
    ]
    own = target.stem if target is not None else f"{name}_grad"
    parts.append(_registered(function, made, module, own, some))
    return _signed("\n\n\n".join(parts[:2]) + "\n\n\n" + "\n\n".join(parts[2:]))


def _in_order(lines: Sequence[str]) -> list[str]:
    """Imports, the user's modules last."""
    lines = sorted(dict.fromkeys(lines), key=lambda line: (line.startswith("from"), line))
    groups = [[line for line in lines if is_library(line.split()[1]) is theirs] for theirs in (True, False)]
    return [*groups[0], *([""] if all(groups) else []), *groups[1]]


def _registered(function: types.FunctionType, made: DerivativeText, module: str | None, own: str, some: bool) -> str:
    """The statements that make the functions the derivative of the user's, where metaphrase is installed."""
    digest, given = source_digest(function), [f"forward={{}}{made.forward}", "samples={}SAMPLES"]
    given += [f"argnums={made.argnums}"] * some + [f"source={digest!r}"] * bool(digest)
    if module is None:
        place = f"{own}."
        told = ", ".join(text.format(place) for text in given)
        return f"""# No module has {function.__qualname__} under its name. Give it this derivative where it is made:
#     metaphrase.derivative_of({function.__name__}, {told})(
#         {own}.{made.backward}
#     )"""
    rows = "".join(f"        {text.format('')},\n" for text in given)
    return f"""try:
    import metaphrase
except ImportError:  # the functions above run without it
    metaphrase = None

if metaphrase is not None:  # importing this module makes it the derivative of {function.__qualname__}
    import {module}

    metaphrase.derivative_of(
        {module}.{function.__qualname__},
{rows}    )({made.backward})"""


def _test_text(function: types.FunctionType, made: DerivativeText, target: Path) -> str:
    """The tests of a file, which need NumPy (and the user's module) alone."""
    module = _importable(function)
    own = _own_name(target)
    imports = f"from {own} import SAMPLES, {', '.join(sorted((made.backward, made.forward)))}"
    same = ""
    if module is not None:
        same = _SAME.format(forward=made.forward, call=f"{module}.{function.__qualname__}", given=_given(function))
        imports = f"import {module}\n{imports}"
    return _signed(
        _TESTS.format(
            file=target.name,
            name=function.__qualname__,
            imports=f"import numpy as np\n\n{imports}",
            same=same,
            forward=made.forward,
            backward=made.backward,
            argnums=made.argnums,
        )
    )


def _given(function: types.FunctionType) -> str:
    """How a test calls the function with a sample."""
    names, count = alone(function), len(signature_of(function).parameters)
    if not names:
        return "*copy.deepcopy(sample)"
    first = count - len(names)
    return ", ".join([f"*copy.deepcopy(sample[:{first}])", *(f"{n}=sample[{first + k}]" for k, n in enumerate(names))])


_SAME = """
def test_the_result_is_that_of_the_function():
    for sample in SAMPLES:
        result, _ = {forward}(*copy.deepcopy(sample))
        wanted = {call}({given})
        for keys, leaf in parts(result):
            np.testing.assert_allclose(leaf, at(wanted, keys), rtol=1e-6, err_msg=str(keys))

"""

_TESTS = '''"""{file} against central differences of {name}: for pytest."""

import copy

{imports}

MOST = 50  # elements of an argument that are moved
ARGNUMS = {argnums}


def parts(tree, keys=()):
    """The arrays and numbers that a value is made of, and the keys that lead there."""
    if isinstance(tree, dict):
        children = tree.items()
    elif isinstance(tree, (list, tuple)):
        children = enumerate(tree)
    elif hasattr(tree, "__dict__"):
        children = vars(tree).items()
    else:
        return [] if tree is None else [(keys, tree)]
    return [part for key, child in children for part in parts(child, (*keys, key))]


def at(tree, keys):
    """What stands at the keys; None where nothing does."""
    for key in keys:
        tree = None if tree is None else tree[key] if hasattr(tree, "__getitem__") else getattr(tree, key)
    return tree


def put(tree, keys, leaf):
    """The value with another leaf at the keys."""
    if not keys:
        return leaf
    first, *rest = keys
    child = put(at(tree, (first,)), rest, leaf)
    if isinstance(tree, tuple):
        items = [child if k == first else old for k, old in enumerate(tree)]
        return type(tree)(*items) if hasattr(tree, "_fields") else tuple(items)
    tree = copy.copy(tree)
    if isinstance(tree, (dict, list)):
        tree[first] = child
    else:
        setattr(tree, first, child)
    return tree


def is_smooth(leaf):
    return np.asarray(leaf).dtype.kind in "fc"


def weights(result):
    """A cotangent of the result."""
    for number, (keys, leaf) in enumerate(parts(result)):
        leaf = np.asarray(leaf)
        bar = np.cos(np.arange(leaf.size) + number).reshape(leaf.shape).astype(leaf.dtype) if is_smooth(leaf) else None
        result = put(result, keys, bar if bar is None or bar.ndim else bar[()])
    return result


def weighted(sample, bar):
    """The sum over the elements of the result, each times its cotangent."""
    result, _ = {forward}(*copy.deepcopy(sample))
    return sum(np.sum(leaf * at(bar, keys)).real for keys, leaf in parts(result) if is_smooth(leaf))

{same}
def test_the_cotangents_are_central_differences():
    for sample in SAMPLES:
        result, residuals = {forward}(*copy.deepcopy(sample))
        bar = weights(result)
        cotangents = {backward}(residuals, copy.deepcopy(bar))
        for number, cotangent in zip(ARGNUMS, cotangents, strict=True):
            for keys, leaf in parts(sample[number]):
                if is_smooth(leaf):
                    check(sample, bar, (number, *keys), leaf, at(cotangent, keys))


def check(sample, bar, keys, leaf, cotangent):
    """The cotangent of one leaf, at MOST places at most."""
    leaf = np.asarray(leaf)
    cotangent = np.zeros(leaf.shape, leaf.dtype) if cotangent is None else np.asarray(cotangent)
    assert cotangent.shape == leaf.shape, f"the cotangent of {{keys}} has the shape {{cotangent.shape}}"
    precision = np.finfo(leaf.dtype).eps
    places = list(np.ndindex(leaf.shape))
    for place in places[:: max(1, len(places) // MOST)]:
        for direction in (1, 1j) if leaf.dtype.kind == "c" else (1,):
            step = precision ** (1 / 3) * max(1.0, abs(leaf[place]))
            ahead, behind = leaf.copy(), leaf.copy()
            ahead[place] += step * direction
            behind[place] -= step * direction
            moved = [put(sample, keys, one if one.ndim else one[()]) for one in (ahead, behind)]
            difference = (weighted(moved[0], bar) - weighted(moved[1], bar)) / (2 * step)
            found = (cotangent[place] * direction).real
            scale = 1 + abs(difference) + abs(weighted(sample, bar))
            assert abs(found - difference) <= 10 * precision**0.4 * scale, (
                f"the cotangent of {{keys}} at {{place}} is {{found}}, and a central difference gives {{difference}}"
            )
'''

__all__ = ["derivative"]
