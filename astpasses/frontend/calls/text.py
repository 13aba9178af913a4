"""Text that shows staged values: the template is known, the values are filled in when the program runs.

In: an f-string, `str(x)`, `"%d" % n`, `"{}".format(x)`, `print`'s arguments. Out: a `str` where nothing is
staged, else a `Text`, which `print`, `raise` and `assert` keep as a template and values.

    f"n is {n}, {'done':>6}"        Text("n is {}, " "  done", (n,))
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from metaphrase.late import module
from metaphrase.source import UnsupportedError

from ..flow.gathering import TABLE, Rows, expanded, is_gathered, is_short, refuse_read, snapshot
from ..staging.captured import known, make_attributes_known
from ..staging.demand import need_concrete
from ..staging.session import session
from ..values.staged_values import Maybe, Number, Poison, Staged, StagedArray

string: Any = module("string")
call: Any = module("metaphrase.astpasses.frontend.calls.call")
_PERCENT = re.compile(r"%(?:\((\w+)\))?([-+ #0]*)(\d*|\*)(?:\.(\d+|\*))?([hlL]?)([a-zA-Z%])")
_PLAIN = ("float64", "int64", "bool", "complex128")  # dtypes whose scalars are shown as Python's


class Text:
    """`template`, or each of several of which the run decides, holds a field for each of `values`. Joining
    texts makes texts; whatever else Python does with a string needs the values themselves."""

    __slots__ = ("template", "shown")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, template: Any, values: tuple):
        self.template, self.shown = template, values

    @property
    def values(self) -> tuple:
        """What is filled in: numbers and arrays. Only `print` shows lists whose length only the run knows."""
        for value in self.shown:
            if isinstance(value, Listing):
                raise UnsupportedError(
                    "the text of a list whose length is only known at run time can only be printed",
                    value.span,
                    code="gathered",
                    remedy="print it, or make an array of it: np.array(values)",
                )
        return self.shown

    def __repr__(self) -> str:
        return f"<text {self.template!r}>"

    def concrete(self) -> str:
        """The string itself, which pins the numbers it shows."""
        known = []
        for value in self.values:
            if isinstance(value, StagedArray) and value.ndim:
                known.append(need_concrete(value, "the text of an array", np.ndarray))
            else:
                kind = {"f": float, "i": int, "u": int, "b": bool, "c": complex}.get(value.dtype.kind, float)
                known.append(need_concrete(value, "the text of a number", kind))
        return self.template.format(*known)

    __str__ = concrete

    def __add__(self, other: Any) -> Any:
        return joined([self, other]) if isinstance(other, (str, Text)) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return joined([other, self]) if isinstance(other, str) else NotImplemented

    def __format__(self, spec: str) -> str:
        return format(self.concrete(), spec)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.concrete(), name)

    def __bool__(self) -> bool:
        literal = next(iter(string.Formatter().parse(self.template)))[0]
        return bool(literal) or bool(self.concrete())


class Listing:
    """Stands in a Text for a gathered list, which holds these parts."""

    def __init__(self, parts: list, span: Any):
        self.parts, self.span = parts, span


def _of_string(name: str) -> Any:
    def method(self: Text, *args: Any) -> Any:
        return getattr(self.concrete(), name)(*(a.concrete() if isinstance(a, Text) else a for a in args))

    return method


for _name in "eq ne lt le gt ge len iter contains getitem mul rmul mod".split():
    setattr(Text, f"__{_name}__", _of_string(f"__{_name}__"))


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def field_of(conversion: str | None, spec: str | None) -> str:
    """The field of a template."""
    return "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"


def joined(parts: list) -> Any:
    """Strings and texts, one after the other."""
    if not any(isinstance(p, Text) for p in parts):
        return "".join(parts)
    template = "".join(p.template if isinstance(p, Text) else escaped(p) for p in parts)
    return Text(template, tuple(v for p in parts if isinstance(p, Text) for v in p.shown))


def string_of(value: Any) -> Any:
    """`str(value)`, which for NumPy's narrow floats is shorter than what an empty format gives."""
    staged = isinstance(value, (Staged, Text, Maybe, Poison))
    plain = staged and not (isinstance(value, Staged) and value.dtype.name not in _PLAIN)
    return shown(value, "" if plain else "s")


def shown(value: Any, conversion: str = "", spec: str = "") -> Any:
    """`format(value, spec)`, of `repr(value)` with the conversion `r`: a string or a Text."""
    if isinstance(value, (Maybe, Poison)):
        from ..staging.settling import settled

        value = settled(value)
    value = _looked_into(value)
    if isinstance(value, Text):
        return value if not spec and conversion != "r" else format_plain(value.concrete(), conversion, spec)
    if isinstance(value, Staged):
        return _staged(value, conversion, spec)
    if isinstance(value, Exception) and len(value.args) == 1 and isinstance(value.args[0], Text):
        if conversion not in ("r", "a"):  # the message of one that a handler took
            return shown(value.args[0], conversion, spec)
    if not _holds_staged(value):
        return format_plain(value, conversion, spec)
    made = _container(value, conversion)
    if not spec:
        return made
    return format_plain(made.concrete() if isinstance(made, Text) else made, "", spec)


def _looked_into(value: Any) -> Any:
    """What is shown as a whole is relied on as a whole."""
    here = session()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        make_attributes_known(here, value)
    return known(here, value)


def format_plain(value: Any, conversion: str, spec: str) -> str:
    if conversion:
        value = {"r": repr, "s": str, "a": ascii}[conversion](value)  # type: ignore[operator]
    return format(value, spec)


def _staged(value: Any, conversion: str, spec: str) -> Any:
    """The field of a staged value. Python's numbers print one way; NumPy's say their type in `repr`."""
    if conversion in ("r", "a") and not (isinstance(value, StagedArray) and value.ndim):
        strong = isinstance(value, Number) and value.python is None
        if strong and value.dtype.name in _PLAIN and not spec:
            template = "np.{}_" if value.dtype == bool else f"np.{value.dtype.name}({{}})"
            return Text(template, (value,))
        if isinstance(value, StagedArray):
            told = "" if value.dtype.name in _PLAIN else f", dtype={value.dtype}"
            return Text(f"array({{}}{told})", (value,))
        conversion = conversion if strong else ""
    return Text(field_of(conversion, spec), (value,))


def _holds_staged(value: Any, depth: int = 4) -> bool:
    if call.has_staged(value) or isinstance(value, (Text, Rows)):
        return True
    if depth and isinstance(value, (list, tuple, set, dict)):
        return any(_holds_staged(v, depth - 1) for v in (value.values() if isinstance(value, dict) else value))
    kind = type(value)
    if kind.__module__ == "builtins" or isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return False
    return depth > 0 and any(_holds_staged(v, depth - 1) for v in getattr(value, "__dict__", {}).values())


def _container(value: Any, conversion: str) -> Any:
    """A container or an object that holds staged values, as `str` or `repr` shows it."""
    kind = type(value)
    written = [getattr(kind, "__str__", None)] if conversion != "r" else []
    for method in [*written, kind.__repr__]:
        if isinstance(method, types.FunctionType) and method.__code__.co_filename != "<string>":
            if not (method.__module__ or "").startswith(("dataclasses", "collections", "reprlib")):
                return call.call_value(method, (value,), {})
    if kind is list:
        refuse_read(session(), value)
        if is_gathered(value) and not is_short(value, TABLE):
            here = session()
            return Text("{}", (Listing(snapshot(here, value), here.span()),))
        value = expanded(session(), value)
        return _with_commas("[", ([shown(item, "r")] for item in value), "]")
    if kind is tuple:
        return _with_commas("(", ([shown(item, "r")] for item in value), ",)" if len(value) == 1 else ")")
    if kind is dict:
        return _with_commas("{", ([shown(key, "r"), ": ", shown(item, "r")] for key, item in value.items()), "}")
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        return _fields(kind.__name__, zip(kind._fields, value))
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value) if f.repr]
        return _fields(kind.__qualname__, ((n, getattr(value, n)) for n in names))
    if kind.__repr__ is object.__repr__:
        return repr(value)
    raise session().dtype_error(
        f"a {kind.__name__} that holds staged values can't be shown as text", remedy="show its parts"
    )


def _fields(name: str, pairs: Any) -> Any:
    return _with_commas(f"{name}(", ([f"{field}=", shown(value, "r")] for field, value in pairs), ")")


def _with_commas(begin: str, items: Iterable[list], end: str) -> Any:
    """The texts of items, with commas between them."""
    parts: list = []
    for item in items:
        parts += [", "] * bool(parts) + item
    return joined([begin, *parts, end])


def formatted(template: str, args: tuple, keywords: dict | None = None) -> Any:
    """`template.format(*args, **keywords)`."""
    parts: list = []
    counter = 0
    formatter = string.Formatter()
    for literal, field, spec, conversion in formatter.parse(template):
        parts.append(literal)
        if field is None:
            continue
        if field == "" or field[0] in ".[":
            field, counter = f"{counter}{field}", counter + 1
        for arg in args if "." in field else ():
            make_attributes_known(session(), arg)
        value, _ = formatter.get_field(field, args, keywords or {})
        if spec and "{" in spec:
            inner = sum(part[1] == "" for part in formatter.parse(spec))
            spec = formatted(spec, args[counter:] if inner else args, keywords)
            counter += inner
            spec = spec.concrete() if isinstance(spec, Text) else spec
        parts.append(shown(value, conversion or "", spec or ""))
    return joined(parts)


def percent(template: str, args: Any) -> Any:
    """`template % args`."""
    args = _looked_into(args)
    values = args if isinstance(args, tuple) else (args,)
    if not any(_holds_staged(v) for v in (args.values() if isinstance(args, dict) else values)):
        return template % args
    parts: list = []
    at, given = 0, iter(values)
    for found in _PERCENT.finditer(template):
        parts.append(template[at : found.start()])
        at = found.end()
        key, flags, width, precision, _, kind = found.groups()
        if kind == "%":
            parts.append("%")
            continue
        if "*" in (width, precision) or "#" in flags:
            raise session().dtype_error("this `%` format is not supported", remedy="write an f-string")
        value = args[key] if key is not None else next(given)
        if kind in "sra":
            align = "" if not width else ("<" if "-" in flags else ">") + width
            text = string_of(value) if kind == "s" else shown(value, kind)
            spec = align + (f".{precision}" if precision else "")
            if spec:
                text = format(text.concrete() if isinstance(text, Text) else text, spec)
            parts.append(text)
            continue
        if kind in "diu":
            from .builtin_calls import int_

            value, kind = int_(value), "d"
        align = "<" if "-" in flags and width else ""
        sign = "+" if "+" in flags else " " if " " in flags else ""
        zero = "0" if "0" in flags and not align else ""
        spec = f"{align}{sign}{zero}{width}" + (f".{precision}" if precision else "") + kind
        parts.append(shown(value, "", spec))
    return joined([*parts, template[at:]])


def message_parts(message: Any) -> tuple[str, tuple]:
    """A failing check's message: a template and the scalars it shows. Arrays are named by their type."""
    if not isinstance(message, Text):
        return ("" if message is None else escaped(str(message))), ()
    pieces, values, given = [], [], iter(message.values)
    for literal, field, spec, conversion in string.Formatter().parse(message.template):
        pieces.append(escaped(literal))
        if field is None:
            continue
        value = next(given)
        if isinstance(value, StagedArray) and value.ndim:
            pieces.append(escaped(f"<array {value.type}>"))
        else:
            pieces.append(field_of(conversion, spec))
            values.append(value)
    return "".join(pieces), tuple(values)
