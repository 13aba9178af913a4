"""What an import puts off until it is needed: the methods of dataclasses, modules of the standard library, the log.

In: a class, as `dataclasses.dataclass` takes it; names of modules. Out: the same class; stand-ins for the modules.
Python writes and compiles up to seven methods of each dataclass, which takes half a millisecond; a process that finds
its plans on disk makes objects of few of the classes that it imports, and starts no compiler. Example:

    @dataclass(frozen=True)
    class Site:
        line: int

    Site(3)                             # `__init__`, `__eq__`, `__hash__` and the others are written now

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
from typing import TYPE_CHECKING, Any

# ---- dataclasses ---------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, **options: Any) -> Any:
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        special = re.search("ClassVar|InitVar|KW_ONLY", " ".join(map(str, cls.__annotations__.values())))
        if special or options.keys() - {"eq", "frozen"} or {"__eq__", "__hash__"} & vars(cls).keys():
            return dataclasses.dataclass(**options)(cls)
        _Unwritten(cls, options)
        return cls


_lock = threading.RLock()


class _Unwritten:
    """A class without the methods of a dataclass: whoever asks for one of them, or for the fields, has them written."""

    def __init__(self, cls: type, options: dict[str, Any]):
        self.cls, self.options = cls, options
        self.given = {name: vars(cls)[name] for name in cls.__annotations__ if name in vars(cls)}
        for name, value in self.given.items():
            if isinstance(value, dataclasses.Field):
                if value.default is dataclasses.MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, value.default)
        names = ["__init__", "__repr__", "__dataclass_fields__", "__dataclass_params__", "__match_args__"]
        names += ["__eq__", "__hash__"] if options.get("eq", True) else []
        self.names = [name for name in names if name not in vars(cls)]
        for name in self.names:
            setattr(cls, name, _Asked(self, name))
        if options.get("frozen"):
            changed: Any = cls
            changed.__setattr__ = changed.__delattr__ = _refuse

    def write(self) -> None:
        """Give the class what the standard library writes for one of the same fields, beside it: other threads may make
        objects meanwhile."""
        kept = {"__module__", "__qualname__", "__annotations__", "__post_init__"} & vars(self.cls).keys()
        known = {name: vars(self.cls)[name] for name in kept}
        bases = tuple(base for base in self.cls.__bases__ if hasattr(base, "__dataclass_fields__"))
        twin: type = dataclasses.dataclass(**self.options)(type(self.cls.__name__, bases, known | self.given))
        for name in self.names:
            setattr(self.cls, name, vars(twin)[name])


class _Asked:
    """Stands in a class for what is known of it when its methods are written."""

    def __init__(self, late: _Unwritten, name: str):
        self.late, self.name = late, name

    def __get__(self, one: Any, owner: type) -> Any:
        with _lock:
            if vars(self.late.cls)[self.name] is self:
                self.late.write()
        return getattr(owner if one is None else one, self.name)


def _refuse(one: Any, name: str, *value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


# ---- modules -------------------------------------------------------------------------------------------------


class module:
    """Stands for a module, which is imported when something of it is read or set."""

    def __init__(self, name: str):
        vars(self)["module_name"] = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.module_name), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(importlib.import_module(self.module_name), name, value)


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
