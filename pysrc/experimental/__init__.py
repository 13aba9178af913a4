"""What JAX has in `jax.experimental`: `io_callback`, and the module `checkify`."""

from typing import Any

from .._jax_names import missing
from ..api.callbacks import io_callback
from . import checkify

__all__ = ["checkify", "io_callback"]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
