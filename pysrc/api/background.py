"""Native code made beside the program that waits for nothing: `config.tier = "background"`.

In: a build. Out: a thread that runs it under the settings of the caller, at most one for each core at a time; the
process may end before it does. Example:

    building = Background("period", take_over)     # returns at once
    building.wait(10.0)                            # True when it has ended
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from ..config import SETTINGS, config
from ..late import log
from ..runtime import scratch
from ..runtime.compiler import CompilerMissing
from ..runtime.cython_build import BuildError

_at_once = threading.Semaphore(max(os.cpu_count() or 1, 1))
_told: set[tuple[str, str]] = set()


class Background:
    """A build under way."""

    def __init__(self, name: str, build: Callable[[], None]):
        self.name, self.build = name, build
        self.settings = {key: getattr(config, key) for key, setting in SETTINGS.items() if setting.scope == "thread"}
        self.thread = threading.Thread(target=self._run, name=f"metaphrase builds {name}", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        start = time.perf_counter()
        with _at_once, config(**self.settings):
            try:
                self.build()
            except (BuildError, CompilerMissing) as problem:
                self._tell(problem)
            except Exception:
                if not scratch.is_over():
                    log.warning("%s is not native; its generated NumPy source runs on", self.name, exc_info=True)
            else:
                log.info("%s: native from now on (%.2f s in the background)", self.name, time.perf_counter() - start)

    def _tell(self, problem: Exception) -> None:
        """Say once why there is no native code: of a compiler that is missing for all functions."""
        told = "" if isinstance(problem, CompilerMissing) else self.name
        if not scratch.is_over() and (told, str(problem)) not in _told:
            _told.add((told, str(problem)))
            log.warning("%s; the generated NumPy source of %s runs on", problem, self.name)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has ended, or for so long; whether it has."""
        self.thread.join(seconds)
        return not self.thread.is_alive()


def _after_fork_in_child() -> None:
    global _at_once
    _at_once = threading.Semaphore(max(os.cpu_count() or 1, 1))


os.register_at_fork(after_in_child=_after_fork_in_child)

__all__ = ["Background"]
