"""The world outside of a program: clocks, files, settings, and the standard library's objects in globals.

In: what user code calls, and on what, while it is translated. Out: nothing, or an error: what such a call
gives would be the program's for ever, and what it does would be done once. Example:

    os.environ.get("SCALE")       # the environment: `unsteady`
    HISTORY.append(x)             # HISTORY = deque() is a global: `outer-write`

Functions whose result is made of their arguments alone run as they are.
"""

from __future__ import annotations

import enum
import io
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from metaphrase.source import UnsupportedError

from ..flow.generators import SHOWS
from ..staging.literals import elements
from ..staging.session import Session
from ..values.definitions import written_bases
from ..values.objects import is_one_of
from ..values.sources import SEQUENCES, THIS_PROCESS, Guard, ObjectSource
from ..values.staged_values import Staged

# Modules of the standard library whose functions depend on nothing but what they are given.
_STEADY = frozenset(
    """abc _abc array ast base64 binascii bisect _bisect builtins calendar cmath _codecs codecs collections
    _collections _collections_abc colorsys contextlib copy copyreg csv _csv dataclasses datetime
    _datetime decimal _decimal _pydecimal difflib dis encodings enum errno fnmatch fractions functools
    _functools genericpath graphlib hashlib _hashlib _blake2 _md5 _sha1 _sha2 _sha256 _sha512 _sha3
    heapq _heapq hmac html importlib inspect ipaddress itertools json _json keyword locale logging math
    numbers ntpath numpy operator _operator pathlib pickle _pickle platform posixpath re reprlib _sre
    stat statistics _statistics string _string struct _struct textwrap token tokenize traceback types
    typing unicodedata uuid warnings _warnings weakref _weakref zlib""".split()
)
# In steady modules, what reads or changes the world.
_UNSTEADY = {
    "builtins": "open input globals breakpoint",
    "contextlib": "redirect_stdout redirect_stderr chdir",
    "datetime": "now today utcnow",
    "genericpath": "exists isfile isdir getsize getmtime getatime getctime samefile",
    "numpy": "load save savez savez_compressed loadtxt savetxt genfromtxt fromfile memmap tofile open_memmap "
    "set_printoptions printoptions seterr seterrcall setbufsize",
    "posixpath": "abspath realpath expanduser expandvars relpath ismount lexists",
    "uuid": "uuid1 uuid4 getnode",
}
_UNSTEADY["_datetime"], _UNSTEADY["ntpath"] = _UNSTEADY["datetime"], _UNSTEADY["posixpath"]
# In others, what does not.
_ALLOWED = {"os": "fspath cpu_count", "sys": "intern exit getsizeof", "io": "StringIO BytesIO"}
_ALLOWED["posix"], _ALLOWED["_io"] = _ALLOWED["os"], _ALLOWED["io"]
# Modules and functions whose answer another process may not get: no program that asked is kept for one.
_OF_THE_PROCESS = frozenset("logging platform locale inspect weakref id hash dir geterr get_printoptions".split())
_IMMUTABLE = (
    *(bool, int, float, complex, str, bytes, tuple, frozenset, range, slice, type, type(None)),
    *(type(Ellipsis), np.generic, np.dtype, types.FunctionType, types.BuiltinFunctionType, types.MethodType),
    *(types.ModuleType, types.CodeType, types.GenericAlias, types.SimpleNamespace),
    *(property, staticmethod, classmethod, enum.Enum),
)
# By name, so that nothing is imported for them.
_IMMUTABLE_NAMES = frozenset(
    """re.Pattern re.Match fractions.Fraction decimal.Decimal pathlib.PurePath uuid.UUID datetime.date
    datetime.time datetime.timedelta datetime.tzinfo logging.Logger statistics.NormalDist string.Template
    _struct.Struct struct.Struct functools.partial operator.itemgetter operator.attrgetter""".split()
)
_CONTAINERS = (list, dict, set, np.ndarray)  # handled: read with guards, written back or refused
_STATEFUL = (*SEQUENCES, memoryview, io.IOBase)
# These look at what an object is, or at one attribute.
_LOOKS = (getattr, hasattr, setattr, delattr, vars, dir, callable, isinstance, issubclass, type, len)


def module_of(kind: type) -> str:
    """Whose code makes instances of a class, and their methods in C: of one that users wrote in Python its base's."""
    return next(str(base.__module__) for base in kind.__mro__ if base not in written_bases(kind))


def refuse_unsteady(here: Session, module: str, name: str, owner: Any) -> None:
    """A native function or method that does not depend on its arguments alone."""
    for kind in (type(owner), owner) if isinstance(owner, type) else (type(owner),):
        if kind.__module__ == "os" and kind.__name__ == "_Environ":
            raise unsteady(here, "os.environ", "read it before, and pass what it holds")
        if any(m.startswith("numpy.random") for m in (module, kind.__module__)):
            raise unsteady(here, f"numpy.random.{name}", _SEED if name == "seed" else _DRAWN)
        if _top(kind) in ("datetime", "_datetime") and name in _UNSTEADY["datetime"].split():
            raise unsteady(here, f"datetime.{name}", _TIMED)
    if isinstance(owner, io.IOBase) and not isinstance(owner, (io.StringIO, io.BytesIO)):
        raise unsteady(here, f"`{name}` of a file", "read it before, and pass what it holds; `print` prints")
    top = module.partition(".")[0]
    pure = next((base for base in type(owner).__mro__ if base.__name__ == "PurePath"), None)
    if top == "pathlib" and pure is not None and not hasattr(pure, name):
        raise unsteady(here, f"`{name}` of a path", "read it before, and pass what it holds")
    known = top in _STEADY or top not in sys.stdlib_module_names
    if name in _UNSTEADY.get(top, "").split() or not known and name not in _ALLOWED.get(top, "").split():
        shown = name if top in ("builtins", "io", "_io") else f"{top}.{name}"
        before = "call it before, and pass what it gives as an argument"
        remedy = {"time": _TIMED, "random": _DRAWN, "_random": _DRAWN}.get(top, before)
        raise unsteady(here, shown, {"sleep": "call it outside", "seed": _SEED}.get(name, remedy))
    if top not in (_STEADY | {"scipy", "metaphrase"}) - _OF_THE_PROCESS or name in _OF_THE_PROCESS:
        here.guards["process"] = Guard(ObjectSource(THIS_PROCESS), "object", THIS_PROCESS)


_TIMED = "read the clock around the call, not in it, or pass the time as an argument"
_SEED = "keys of metaphrase.random take the place of seeds: random.key(0)"
_DRAWN = "draw with metaphrase.random and a key, or draw before and pass the numbers as an argument"


def unsteady(here: Session, name: str, remedy: str) -> UnsupportedError:
    """Translated once, what it gives would be frozen in silence."""
    why = "looks at or changes what is outside of the program: that would be done once, while translating"
    if remedy in (_TIMED, _DRAWN):
        why = "gives another value at each call, and the program would keep the first"
    return here.unsupported(f"{name} {why}", remedy, code="unsteady")


def is_outside(here: Session, value: Any) -> bool:
    """Whether a value is an object of the standard library, with a state, that was there before the call."""
    if isinstance(value, (*_IMMUTABLE, *_CONTAINERS, Staged)):
        return False
    if id(value) not in here.roots and id(value) not in here.given or here.is_fresh(value, 0):
        return False
    if isinstance(value, _STATEFUL):
        return True
    kind = type(value)
    if any(f"{_top(base)}.{base.__name__}" in _IMMUTABLE_NAMES for base in kind.__mro__):
        return False
    return _top(kind) in sys.stdlib_module_names and _top(kind) != "__main__"


def _top(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]


def refuse_outside(here: Session, value: Any, what: str) -> None:
    """Code that runs while translating may not read or change an object that was there before."""
    if is_outside(here, value):
        name = type(value).__name__
        article = "an" if name[0] in "aeiouAEIOU" else "a"
        other = "make a list of its items before" if _has_items(value) else "do this outside of it"
        raise here.unsupported(
            f"{what} of {article} {name} that was there before would be done once, while translating",
            f"make it in the function, or {other}",
            code="outer-write",
        )


def refuse_given(here: Session, args: tuple, keywords: dict, name: str) -> None:
    """The same for what native code is given."""
    for value in (*args, *keywords.values()):
        if _has_items(value):
            refuse_outside(here, value, f"`{name}`")


def known_items(here: Session, function: Any, value: Any) -> Any:
    """What a function of ours is given: of a sequence that was there before, its items."""
    if not is_outside(here, value) or is_one_of(function, _LOOKS):
        return value
    if isinstance(value, SEQUENCES) and not is_one_of(function, SHOWS):
        return elements(here, value)
    refuse_given(here, (value,), {}, getattr(function, "__name__", "a call"))
    return value


def outside_items(here: Session, value: Any, item: Callable[[Any, int], Any]) -> Any:
    """The items of a sequence that was there before, each made known by `item`; None for what is none."""
    if isinstance(value, SEQUENCES) and is_outside(here, value):
        return [item(value, k) for k in range(len(value))]
    return None


def _has_items(value: Any) -> bool:
    return any(hasattr(type(value), name) for name in ("__iter__", "__getitem__", "__next__"))
