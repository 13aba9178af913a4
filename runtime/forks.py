"""A fork waits until no other thread is in the middle of an import of ours, or looks for the folder of temporary files.

In: `os.fork` in one thread while another imports one of our passes, or `json`, which happens when a function first
needs it. Out: the fork, a moment later. The child has no such thread: a module that is half imported would
stay so, and who imports it there would wait for ever; so would who asks for the folder. Modules that we never ask for
are not waited for. Example: a thread that loads data forks while the main thread calls a jitted function for the
first time.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from importlib import _bootstrap  # type: ignore[attr-defined]

from ..late import module

OURS = ("metaphrase", "numpy", "scipy", "gast", "astor", "ml_dtypes")
PATIENCE = 10.0  # seconds: the other thread may itself wait for a module that this one imports


def _others_are_at_it() -> bool:
    me = threading.get_ident()
    for name, reference in list(getattr(_bootstrap, "_module_locks", {}).items()):
        if isinstance(name, str) and name.partition(".")[0] in module.packages.union(OURS):
            lock = reference()
            if lock is not None and getattr(lock, "owner", me) not in (None, me):
                return True
    looks = getattr(sys.modules.get("tempfile"), "_once_lock", None)  # for the folder of temporary files
    return looks is not None and looks.locked()


def wait_for_imports() -> None:
    """Return when no other thread is in the middle of it, or when that takes too long."""
    patient_until = time.monotonic() + PATIENCE
    while _others_are_at_it() and time.monotonic() < patient_until:
        time.sleep(0.001)


os.register_at_fork(before=wait_for_imports)
