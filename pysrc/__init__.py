"""metaphrase: the NumPy program a person wrote, translated into its derivative, its batch and native code.

In: Python functions over NumPy arrays. Out: the transformations `jit grad value_and_grad jvp vjp linearize
vmap jacfwd jacrev hessian eval_shape`, derivative rules by `custom_jvp custom_vjp custom_gradient`, calls of
Python code by `pure_callback io_callback`, the readers `source stages`, the settings `config disable_jit
debug_nans debug_infs`, and the libraries `debug lax nn numpy random tree tree_util`.

>>> import metaphrase as mp
>>> mp.grad(lambda x: x * x)(3.0)
np.float64(6.0)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from numpy import ndarray as Array

from ._version import VERSION
from .api.custom import custom_gradient, custom_jvp, custom_vjp
from .api.devices import (
    Device,
    default_device,
    device_get,
    device_put,
    devices,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from .api.export import export
from .api.nonfinite import debug_infs, debug_nans
from .api.public import (
    ShapeDtypeStruct,
    config,
    disable_jit,
    eval_shape,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    linearize,
    source,
    stages,
    value_and_grad,
    vjp,
    vmap,
)
from .runtime import forks as forks  # before anything is imported late: a fork waits for imports

if TYPE_CHECKING:
    from . import aot, debug, experimental, lax, nn, numpy, random, tree, tree_util, typing
    from . import build as build
    from .api.callbacks import io_callback, pure_callback
    from .api.saved import load

__version__ = VERSION
# Imported when they are first named: `import metaphrase` does not pay for them.
_LIBRARIES = ("aot", "build", "debug", "experimental", "lax", "nn", "numpy", "random", "tree", "tree_util", "typing")
_LATER = {"load": "api.saved", "io_callback": "api.callbacks", "pure_callback": "api.callbacks"}
__all__ = [
    "Array",
    "Device",
    "ShapeDtypeStruct",
    "config",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug_infs",
    "debug_nans",
    "default_device",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "eval_shape",
    "export",
    "grad",
    "hessian",
    "io_callback",
    "jacfwd",
    "jacrev",
    "jit",
    "jvp",
    "linearize",
    "load",
    "load",
    "pure_callback",
    "source",
    "stages",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "value_and_grad",
    "vjp",
    "vmap",
    "aot",
    "debug",
    "experimental",
    "lax",
    "nn",
    "numpy",
    "random",
    "tree",
    "tree_util",
    "typing",
]


def __getattr__(name: str) -> Any:
    if name in _LIBRARIES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATER:
        found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
        return found
    from ._jax_names import missing

    raise missing(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LIBRARIES, *_LATER})
