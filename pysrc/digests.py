"""SHA-256, from the module of it that Python has built in: `hashlib` loads OpenSSL first, which takes milliseconds.

>>> sha256(b"").hexdigest()[:8]
'e3b0c442'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    for _name in ("_sha2", "_sha256", "hashlib"):  # of Python 3.12, of 3.11, and of a Python that is built otherwise
        try:
            sha256 = importlib.import_module(_name).sha256
            break
        except ImportError:
            pass

__all__ = ["sha256"]
