"""`io_callback` under the name by which JAX has it: `metaphrase.experimental.io_callback`."""

from typing import Any

from ._jax_names import missing
from .api.callbacks import io_callback

__all__ = ["io_callback"]


def __getattr__(name: str) -> Any:
    raise missing(__name__, name)
