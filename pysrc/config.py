"""Settings: one name each, as METAPHRASE_NAME in the environment, `config.name`, and a context manager.

In: the environment when the package is imported, and assignments. Out: `config`. Settings that the runtime
reads are written through to the environment, so that both see one value.

>>> config.fuse
True
>>> with config(fuse=False):
...     config.fuse
False
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .source import close_name


def _boolean(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("0", "false", "no", "off", ""):
        return False
    raise ValueError(f"{text!r} is neither true nor false; say 1 or 0")


def _tier(text: str) -> str:
    if text not in ("wait", "background"):
        raise ValueError(f"{text!r} is no tier; say wait or background")
    return text


class Setting:
    """`scope`: "thread" (a `with` holds for this thread) or "process" (read by the runtime from the
    environment)."""

    def __init__(self, name: str, default: Any, parse: Callable[[str], Any], scope: str, doc: str):
        self.name, self.default, self.parse, self.scope, self.doc = name, default, parse, scope, doc

    @property
    def variable(self) -> str:
        return f"METAPHRASE_{self.name.upper()}"

    def read(self) -> Any:
        """What the environment says."""
        text = os.environ.get(self.variable)
        if text is None:
            return self.default
        try:
            return self.parse(text)
        except ValueError as error:
            raise ValueError(f"{self.variable}: {error}") from None


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("disable_jit", False, _boolean, "process", "run jitted functions as plain Python"),
        Setting("debug_nans", False, _boolean, "process", "raise where a result has a NaN, and name what made it"),
        Setting("debug_infs", False, _boolean, "process", "raise where a result has an inf, and name what made it"),
        Setting(
            "double_where",
            False,
            _boolean,
            "thread",
            "derivatives of `where` leave out the choice that is not taken, whose slope may be infinite",
        ),
        Setting("native", True, _boolean, "thread", "compile to native code; False runs the NumPy stage"),
        Setting(
            "tier",
            "wait",
            _tier,
            "thread",
            "`wait` for native code, or compile it in the `background` while the generated NumPy source runs",
        ),
        Setting("fuse", True, _boolean, "thread", "merge loop nests; False gives one nest an operation"),
        Setting(
            "fastmath",
            False,
            _boolean,
            "thread",
            "let the C compiler reorder and assume no NaN or Inf, and threads add up in parts what loops carry",
        ),
        Setting(
            "contract",
            True,
            _boolean,
            "thread",
            "let a * b + c have one rounding; on a GPU, let sums of floats that loops carry be cut into parts",
        ),
        Setting(
            "bounds",
            True,
            _boolean,
            "thread",
            "check indices in native code; where it is False, what a wrong index does is undefined",
        ),
        Setting("check", True, _boolean, "thread", "check the program after every stage"),
        Setting(
            "residual_limit",
            0,
            int,
            "thread",
            "bytes that derivatives may keep of the steps of a loop; one that may keep more runs steps again instead; "
            "0 means no limit",
        ),
        Setting("print_stages", "", str, "thread", "stages to print as they run, separated by commas, or `all`"),
        Setting("cache", True, _boolean, "process", "keep compiled programs on disk"),
        Setting(
            "plans", True, _boolean, "process", "keep what calls do on disk, too: a later process translates nothing"
        ),
        Setting("cache_dir", "", str, "process", "where; empty means the user's cache directory"),
        Setting("cache_size", 512, int, "process", "MiB of compiled programs kept at most"),
        Setting(
            "max_programs",
            1024,
            int,
            "process",
            "programs of one function kept in memory; the least recently used goes first; 0 means all",
        ),
        Setting(
            "num_threads",
            0,
            int,
            "process",
            "threads that share the loops of a call; 0 means OMP_NUM_THREADS, or one a core",
        ),
        Setting("cc", "", str, "process", "the C compiler; empty means gcc, cc or clang"),
    )
}

# JAX's names, so that programs that set them run: 64-bit types are always on.
_FROM_JAX = {f"jax_{name}": name for name in ("disable_jit", "debug_nans", "debug_infs")}
_ALWAYS_ON = {"jax_enable_x64", "enable_x64"}


class Config:
    """Read and assign settings as attributes; call it with keywords for a context manager."""

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {name: setting.read() for name, setting in SETTINGS.items()})
        object.__setattr__(self, "_local", threading.local())
        object.__setattr__(self, "_listeners", {})

    def _overrides(self) -> dict[str, Any]:
        return self._local.__dict__.setdefault("values", {})

    def __getattr__(self, name: str) -> Any:
        setting = SETTINGS.get(name)
        if setting is None:
            raise AttributeError(_unknown(name))
        if setting.scope == "process":
            return setting.read()
        overrides = self._overrides()
        return overrides[name] if name in overrides else self._values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._set(name, value, self._values)

    def _set(self, name: str, value: Any, where: dict[str, Any]) -> None:
        setting = SETTINGS.get(name)
        if setting is None:
            raise AttributeError(_unknown(name))
        if isinstance(value, str):
            value = setting.parse(value)
        if type(value) is not type(setting.default):
            raise TypeError(f"config.{name} is a {type(setting.default).__name__}, not {value!r}")
        if setting.scope == "process":
            os.environ[setting.variable] = str(int(value)) if isinstance(value, bool) else str(value)
            self._tell(name)
        else:
            where[name] = value

    def listen(self, name: str, listener: Callable[[Any], Any]) -> None:
        """Call `listener(value)` now and whenever a setting of process scope is assigned."""
        self._listeners[name] = listener
        listener(getattr(self, name))

    def _tell(self, name: str) -> None:
        if name in self._listeners:
            self._listeners[name](getattr(self, name))

    def update(self, name: str, value: Any) -> None:
        """Assign by name; takes JAX's spelling `jax_disable_jit`, and `jax_enable_x64`, which is always
        on."""
        if name in _ALWAYS_ON:
            if not value:
                raise ValueError(f"{name} can't be turned off: float64 is NumPy's default; pass dtype=np.float32")
            return
        setattr(self, _FROM_JAX.get(name, name), value)

    @contextlib.contextmanager
    def __call__(self, **settings: Any) -> Iterator[Config]:
        """Settings for a `with` block; of thread scope they hold in this thread only."""
        overrides = self._overrides()
        local, environment = dict(overrides), {}
        for name in settings:
            if name in SETTINGS and SETTINGS[name].scope == "process":
                environment[name] = os.environ.get(SETTINGS[name].variable)
        try:
            for name, value in settings.items():
                self._set(name, value, overrides)
            yield self
        finally:
            overrides.clear()
            overrides.update(local)
            for name, text in environment.items():
                if text is None:
                    os.environ.pop(SETTINGS[name].variable, None)
                else:
                    os.environ[SETTINGS[name].variable] = text
                self._tell(name)

    def snapshot(self) -> tuple:
        """The values of the settings of thread scope: what a program that is made now is made under."""
        return tuple(getattr(self, name) for name, setting in SETTINGS.items() if setting.scope == "thread")

    def __dir__(self) -> list[str]:
        return [*SETTINGS, "update"]

    def __repr__(self) -> str:
        return "\n".join(f"{name} = {getattr(self, name)!r}    # {s.doc}" for name, s in SETTINGS.items())


def _unknown(name: str) -> str:
    close = close_name(name, SETTINGS)
    return f"no setting is called {name!r}" + (f"; did you mean {close!r}?" if close else f": {', '.join(SETTINGS)}")


config = Config()


def disable_jit(disable: bool = True):
    """A context manager: jitted functions run as plain Python inside, in all threads."""
    return config(disable_jit=disable)
