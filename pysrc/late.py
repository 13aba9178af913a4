"""What an import puts off until it is needed: the methods of dataclasses, modules of the standard library, the log.

In: a class, as `dataclasses.dataclass` takes it; names of modules. Out: the same class; stand-ins for the modules.
Python writes and compiles up to seven methods of each dataclass, which takes half a millisecond; a process that finds
its plans on disk makes objects of few of the classes that it imports, and starts no compiler. Example:

    @dataclass(frozen=True)
    class Site:
        line: int

    Site(3)                             # takes longer than it will
    Site(3) == Site(4)                  # `__init__`, `__eq__`, `__hash__` and the others are written now

    if TYPE_CHECKING:
        import subprocess
    else:
        subprocess = module("subprocess")
    subprocess.run(...)                 # it is imported now

To whoever looks it is a dataclass from the start. One with slots, or of another kind, is made at once.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

# ---- dataclasses ---------------------------------------------------------------------------------------------

FEW = 8  # objects of a class that are made before its methods are written
MISSING = dataclasses.MISSING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, **options: Any) -> Any:
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        special = re.search("ClassVar|InitVar|KW_ONLY", " ".join(map(str, cls.__annotations__.values())))
        if special or options.keys() - {"eq", "frozen"} or {"__eq__", "__hash__"} & vars(cls).keys():
            return dataclasses.dataclass(**options)(cls)
        _waiting[cls] = _Unwritten(cls, options)
        return cls


_waiting: dict[type, _Unwritten] = {}
_lock = threading.RLock()


class _Unwritten:
    """A class whose methods are not written yet. Its first objects are filled here, and who asks for another method, or
    for the fields, has them written."""

    def __init__(self, cls: type, options: dict[str, Any]):
        self.cls, self.options, self.made = cls, options, 0
        self.given = {name: vars(cls)[name] for name in cls.__annotations__ if name in vars(cls)}
        for name, value in self.given.items():
            if isinstance(value, dataclasses.Field):
                if value.default is MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, value.default)
        frozen = options.get("frozen", False)
        self.methods: dict[str, Any] = {"__init__": self._init(), "__repr__": self._method("__repr__")}
        if options.get("eq", True):
            self.methods |= {"__eq__": self._method("__eq__"), "__hash__": self._method("__hash__") if frozen else None}
        if "__repr__" in vars(cls):
            del self.methods["__repr__"]
        for name in ("__dataclass_fields__", "__match_args__"):
            self.methods[name] = _Asked(self, name)
        more = {"__setattr__": _refuse, "__delattr__": _refuse} if frozen else {}
        for name, method in (self.methods | more).items():
            setattr(cls, name, method)

    def _method(self, name: str) -> Callable[..., Any]:
        def method(one: Any, *args: Any) -> Any:
            self.write()
            return vars(self.cls)[name](one, *args)

        return method

    def _init(self) -> Callable[..., None]:
        def __init__(one: Any, *args: Any, **kwargs: Any) -> None:
            self.made += 1
            if self.made > FEW or not self.fill(one, args, kwargs):
                self.write()
                vars(self.cls)["__init__"](one, *args, **kwargs)

        return __init__

    def fields(self) -> dict[str, Any]:
        """The fields of the class and of its bases: a default value, a `Field`, or MISSING."""
        found: dict[str, Any] = {}
        for cls in reversed(self.cls.__mro__):
            if (late := _waiting.get(cls)) is not None:
                found |= {name: late.given.get(name, MISSING) for name in cls.__annotations__}
            elif cls is not self.cls:
                found |= vars(cls).get("__dataclass_fields__", {})
        return found

    def fill(self, one: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
        """Set the fields of a new object; False for what `dataclasses` refuses."""
        values, rest = list(reversed(args)), dict(kwargs)
        for name, given in self.fields().items():
            field = given if isinstance(given, dataclasses.Field) else None
            default = given if field is None else field.default
            if field is not None and not field.init:
                values.append(default)
            elif not values and name in rest:
                values.append(rest.pop(name))
            elif not values:
                values.append(default)
            value = values.pop()
            if value is MISSING:
                factory: Any = MISSING if field is None else field.default_factory
                if factory is MISSING:
                    return False
                value = factory()
            object.__setattr__(one, name, value)
        if values or rest:
            return False
        if hasattr(one, "__post_init__"):
            one.__post_init__()
        return True

    def write(self) -> None:
        """Give the class the methods that `dataclasses` writes for one with the same fields; all at once, so that other
        threads may make objects meanwhile."""
        cls = self.cls
        with _lock:
            if cls not in _waiting:
                return
            names = ("__module__", "__qualname__", "__annotations__", "__post_init__")
            known = {name: value for name, value in vars(cls).items() if name in names}
            bases = tuple(base for base in cls.__bases__ if hasattr(base, "__dataclass_fields__"))
            twin: Any = dataclasses.dataclass(**self.options)(type(cls.__name__, bases, known | self.given))
            for name in self.methods:
                setattr(cls, name, vars(twin)[name])
            cls.__dataclass_params__ = vars(twin)["__dataclass_params__"]  # type: ignore[attr-defined]
            del _waiting[cls]


class _Asked:
    """Stands in a class for what is known of it when its methods are written."""

    def __init__(self, late: _Unwritten, name: str):
        self.late, self.name = late, name

    def __get__(self, one: Any, owner: type) -> Any:
        self.late.write()
        return vars(self.late.cls)[self.name]


def _refuse(one: Any, name: str, *value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


# ---- modules -------------------------------------------------------------------------------------------------


class module:
    """Stands for a module, which is imported when something of it is read."""

    def __init__(self, name: str):
        self.module_name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.module_name), name)


class _Log:
    """The logger `metaphrase`. Who has not imported `logging` has asked for no messages below warnings."""

    def __getattr__(self, name: str) -> Any:
        if name in ("debug", "info") and "logging" not in sys.modules:
            return _no_message
        return getattr(importlib.import_module("logging").getLogger("metaphrase"), name)


def _no_message(*message: Any) -> None:
    pass


log: Any = _Log()

__all__ = ["dataclass", "log", "module"]
