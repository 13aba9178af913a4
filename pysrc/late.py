"""What an import puts off until it is needed: the methods of dataclasses, modules, the log, and looking for garbage.

In: a class, as `dataclasses.dataclass` takes it; names of modules. Out: the same class; stand-ins for the modules.
Python writes and compiles up to seven methods of each dataclass, which takes half a millisecond; a process that finds
its plans on disk makes objects of few of the classes that it imports, and starts no compiler. Example:

    @dataclass(frozen=True)
    class Site:
        line: int

    {Site(3)}                           # `__init__`, `__eq__`, `__hash__` and the others are written now

    if TYPE_CHECKING:
        import subprocess
    else:
        subprocess = module("subprocess")
    subprocess.run(...)                 # it is imported now

To whoever looks it is a dataclass from the start. One of another kind is made at once.
"""

from __future__ import annotations

import dataclasses
import functools
import gc
import importlib
import re
import sys
from typing import TYPE_CHECKING, Any

from .locks import lock

# ---- dataclasses ---------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
else:
    field = dataclasses.field

    def dataclass(cls: type | None = None, **options: Any) -> Any:
        if cls is None:
            return lambda cls: dataclass(cls, **options)
        special = re.search("ClassVar|InitVar|KW_ONLY", " ".join(map(str, cls.__annotations__.values())))
        known = {"eq", "frozen", "order", "repr", "slots"}
        if special or options.keys() - known or {"__eq__", "__hash__"} & vars(cls).keys():
            return dataclasses.dataclass(**options)(cls)
        return _Unwritten(cls, options).cls


_lock = lock()


class _Unwritten:
    """A class without the methods of a dataclass. Its first objects are filled field by field; whoever makes more has
    `__init__` written, and who asks for another method or for the fields all of them."""

    FEW = 20  # objects: then what is written has paid for itself

    def __init__(self, cls: type, options: dict[str, Any]):
        self.options, self.objects = options, 0
        self.given = {name: vars(cls)[name] for name in cls.__annotations__ if name in vars(cls)}
        values = {n: one.default if isinstance(one, dataclasses.Field) else one for n, one in self.given.items()}
        self.defaults = {name: value for name, value in values.items() if value is not dataclasses.MISSING}
        fields = [value for value in self.given.values() if isinstance(value, dataclasses.Field)]
        own = {name for name, value in self.given.items() if not getattr(value, "init", True)}
        self.parameters = {name: None for name in cls.__annotations__ if name not in own}
        self.cls = cls = self.slotted(cls) if options.get("slots") else self.with_defaults(cls)
        names = ["__dataclass_fields__", "__dataclass_params__", "__match_args__"]
        names += ["__repr__"] if options.get("repr", True) else []
        names += ["__getstate__", "__setstate__"] if options.get("slots") and options.get("frozen") else []
        names += ["__eq__", "__hash__"] if options.get("eq", True) else []
        names += ["__lt__", "__le__", "__gt__", "__ge__"] if options.get("order") else []
        self.names = [name for name in names if name not in vars(cls)]
        for name in self.names:
            setattr(cls, name, _Asked(self, name))
        changed: Any = cls
        if options.get("frozen"):
            changed.__setattr__ = changed.__delattr__ = _refuse
        if "__init__" not in vars(cls):
            self.names.append("__init__")
            plain = own <= self.defaults.keys() and all(one.kw_only is not True for one in fields)
            alone = not any("__dataclass_fields__" in vars(base) for base in cls.__mro__[1:])
            changed.__init__ = _Filled(self) if plain and alone else _Asked(self, "__init__")

    def with_defaults(self, cls: type) -> type:
        """The class, with the default value of a field where its declaration stands."""
        for name, value in self.given.items():
            if isinstance(value, dataclasses.Field):
                delattr(cls, name)
                if name in self.defaults:
                    setattr(cls, name, value.default)
        return cls

    def slotted(self, cls: type) -> type:
        """The class with a slot for each field, where no default may stand."""
        left_out = {"__dict__", "__weakref__", *self.given}
        body = {name: value for name, value in vars(cls).items() if name not in left_out}
        made = type(cls)(cls.__name__, cls.__bases__, body | {"__slots__": tuple(cls.__annotations__)})
        made.__qualname__ = cls.__qualname__
        return made

    def written(self) -> None:
        with _lock:
            if self.names:
                self.write()
                self.names = []

    def write_init(self, after: Any, factories: dict[str, Any]) -> None:
        """Give the class the `__init__` that the standard library writes, and nothing else."""
        put = "_put(self, {0!r}, {1})" if self.options.get("frozen") else "self.{0} = {1}"
        values = {n: n if n in self.parameters else f"_given[{n!r}]" for n in self.cls.__annotations__}
        values |= {name: f"_made[{name!r}]() if {name} is _missing else {name}" for name in factories}
        defaults = self.defaults | dict.fromkeys(factories, dataclasses.MISSING)
        parameters = [f"{name}=_given[{name!r}]" if name in defaults else name for name in self.parameters]
        rows = [put.format(name, value) for name, value in values.items()] + ["_after(self)"] * bool(after)
        known: dict[str, Any] = {"_put": object.__setattr__, "_given": defaults, "_made": factories, "_after": after}
        known["_missing"] = dataclasses.MISSING
        exec(f"def __init__({', '.join(['self', *parameters])}):\n " + "\n ".join([*rows, "pass"]), known)
        known["__init__"].__qualname__ = f"{self.cls.__qualname__}.__init__"
        with _lock:
            if "__init__" in self.names:
                self.names.remove("__init__")
                self.cls.__init__ = known["__init__"]  # type: ignore[misc]

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
        self.late.written()
        return getattr(owner if one is None else one, self.name)


class _Filled(_Asked):
    """Stands for an `__init__` that nobody has written."""

    def __init__(self, late: _Unwritten):
        super().__init__(late, "__init__")
        cls, missing = late.cls, dataclasses.MISSING
        self.after = getattr(cls, "__post_init__", None)
        self.defaults = late.defaults
        factories = ((name, late.given[name]) for name in late.given.keys() - self.defaults.keys())
        self.factories = {n: one.default_factory for n, one in factories if one.default_factory is not missing}

    def __get__(self, one: Any, owner: type) -> Any:
        return super().__get__(one, owner) if one is None else functools.partial(self.fill, one)

    def fill(self, one: Any, *values: Any, **named: Any) -> None:
        late = self.late
        late.objects += 1
        names = late.cls.__annotations__
        fields = dict(zip(late.parameters, values)) | named
        made = {name: make() for name, make in self.factories.items() if name not in fields}
        complete = self.defaults | made | fields
        wrong = complete.keys() != names.keys() or len(fields) != len(values) + len(named)
        wrong = wrong or not fields.keys() <= late.parameters.keys()
        if wrong or late.objects > late.FEW:
            late.written() if wrong else late.write_init(self.after, self.factories)
            vars(late.cls)["__init__"](one, *values, **named)  # it says what is wrong, if something is
            return
        for name in names:
            object.__setattr__(one, name, complete[name])
        if self.after is not None:
            self.after(one)


def _refuse(one: Any, name: str, *value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


# ---- modules -------------------------------------------------------------------------------------------------


class module:
    """Stands for a module, which is imported when something of it is read or set."""

    packages: set[str] = set()  # what all of them are, or are in

    def __init__(self, name: str):
        vars(self)["module_name"] = name
        self.packages.add(name.partition(".")[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(imported(self.module_name), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(imported(self.module_name), name, value)


def imported(name: str) -> Any:
    """The module of a name. While it is imported Python does not look for garbage: what an import makes stays, and
    looking at it again and again takes a tenth of the time. Afterwards it is old, without having been looked at."""
    if name in sys.modules or not gc.isenabled():
        return importlib.import_module(name)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.enable()
        if not has_frozen():  # what somebody has frozen stays so
            gc.freeze()
            gc.unfreeze()


_frozen = False  # whether older objects are left out of collections while a stage runs
_kept_out = False  # whether the user was seen to have frozen objects


def has_frozen() -> bool:
    """Whether objects are frozen: for a stage, or by the user, who is asked until it was seen once, since counting goes
    through all of them."""
    global _kept_out
    _kept_out = _kept_out or not _frozen and gc.get_freeze_count() > 0
    return _frozen or _kept_out


def freeze() -> None:
    """Leave what is there out of collections. What the user has frozen stays so."""
    global _frozen
    if not has_frozen():
        _frozen = True
        gc.freeze()


def unfreeze() -> None:
    global _frozen
    if _frozen:
        _frozen = False
        gc.unfreeze()


class _Log:
    """The logger `metaphrase`. Who has not imported `logging` has asked for no messages below warnings."""

    def __getattr__(self, name: str) -> Any:
        if name in ("debug", "info") and "logging" not in sys.modules:
            return _no_message
        return getattr(importlib.import_module("logging").getLogger("metaphrase"), name)


def _no_message(*message: Any) -> None:
    pass


log: Any = _Log()

__all__ = ["dataclass", "field", "freeze", "has_frozen", "log", "module", "unfreeze"]
