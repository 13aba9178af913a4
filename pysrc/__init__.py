"""metaphrase: the NumPy program a person wrote, translated into its derivative, its batch and native code.

In: Python functions over NumPy arrays. Out: the transformations `jit grad value_and_grad jvp vjp linearize
vmap jacfwd jacrev hessian eval_shape`, derivative rules by `custom_jvp custom_vjp custom_gradient derivative
derivative_of`, what derivatives keep by `checkpoint loop_checkpoint`, errors as values by `checked`, calls of Python
code by `pure_callback io_callback`, the readers `source stages`, the settings `config disable_jit debug_nans
debug_infs`, and the libraries `ad_checkpoint custom_batching debug experimental flatten_util implicit_diff lax nn numpy
ode random tree tree_util`.

>>> import metaphrase as mp
>>> mp.grad(lambda x: x * x)(3.0)
np.float64(6.0)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy import ndarray as Array

from ._version import VERSION
from .late import imported
from .runtime import forks as forks  # before anything is imported late: a fork waits for imports

if TYPE_CHECKING:
    from . import (
        ad_checkpoint,
        aot,
        custom_batching,
        custom_derivatives,
        debug,
        experimental,
        flatten_util,
        implicit_diff,
        lax,
        nn,
        numpy,
        ode,
        random,
        test_util,
        tree,
        tree_util,
        typing,
    )
    from . import build as build
    from .api.calculus import closure_convert, fwd_and_bwd, hvp, linear_transpose
    from .api.callbacks import io_callback, pure_callback
    from .api.checkpoint import checkpoint, checkpoint_policies, loop_checkpoint, remat
    from .api.custom import custom_gradient, custom_jvp, custom_vjp
    from .api.derivative_file import derivative
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
    from .api.errors import checked
    from .api.export import export
    from .api.kept import memory_report
    from .api.matrices import hessian, jacfwd, jacobian, jacrev
    from .api.nonfinite import debug_infs, debug_nans
    from .api.own_rules import derivative_of
    from .api.public import (
        ShapeDtypeStruct,
        config,
        disable_jit,
        eval_shape,
        grad,
        jit,
        jvp,
        linearize,
        source,
        stages,
        value_and_grad,
        vjp,
        vmap,
    )
    from .api.saved import load
    from .api.taylor import jet
    from .explanation import explain
    from .test_util import check_grads

__version__ = VERSION
# Bound at once: to import a module of ours that is called `config` or `source` would bind that.
_AT_ONCE = (
    *("ShapeDtypeStruct", "config", "disable_jit", "eval_shape", "grad", "jit", "jvp"),
    *("linearize", "source", "stages", "value_and_grad", "vjp", "vmap"),
)
# Imported when they are first named.
_LIBRARIES = (
    "ad_checkpoint",
    "aot",
    "build",
    "custom_batching",
    "custom_derivatives",
    "debug",
    "experimental",
    "flatten_util",
    "implicit_diff",
    "lax",
    "nn",
    "numpy",
    "ode",
    "random",
    "test_util",
    "tree",
    "tree_util",
    "typing",
)
_WAYS = ("", "_device_to_device", "_device_to_host", "_host_to_device")
# In modules that are imported when one of these is first named.
_LATE = {
    **dict.fromkeys(("closure_convert", "fwd_and_bwd", "hvp", "linear_transpose"), "api.calculus"),
    **dict.fromkeys(("io_callback", "pure_callback"), "api.callbacks"),
    **dict.fromkeys(("checkpoint", "checkpoint_policies", "loop_checkpoint", "remat"), "api.checkpoint"),
    **dict.fromkeys(("custom_gradient", "custom_jvp", "custom_vjp"), "api.custom"),
    **dict.fromkeys(("Device", "default_device", "device_get", "device_put", "devices"), "api.devices"),
    **dict.fromkeys([f"transfer_guard{way}" for way in _WAYS], "api.devices"),
    **dict.fromkeys(("hessian", "jacfwd", "jacobian", "jacrev"), "api.matrices"),
    **dict.fromkeys(("debug_infs", "debug_nans"), "api.nonfinite"),
    "check_grads": "test_util",
    "checked": "api.errors",
    "derivative": "api.derivative_file",
    "derivative_of": "api.own_rules",
    "explain": "explanation",
    "export": "api.export",
    "jet": "api.taylor",
    "load": "api.saved",
    "memory_report": "api.kept",
}
__all__ = [
    "Array",
    "Device",
    "ShapeDtypeStruct",
    "check_grads",
    "checked",
    "checkpoint",
    "checkpoint_policies",
    "closure_convert",
    "config",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug_infs",
    "debug_nans",
    "default_device",
    "derivative",
    "derivative_of",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "eval_shape",
    "explain",
    "export",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "hvp",
    "io_callback",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jet",
    "jit",
    "jvp",
    "linear_transpose",
    "linearize",
    "load",
    "loop_checkpoint",
    "memory_report",
    "pure_callback",
    "remat",
    "source",
    "stages",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "value_and_grad",
    "vjp",
    "vmap",
    "ad_checkpoint",
    "aot",
    "custom_batching",
    "debug",
    "experimental",
    "flatten_util",
    "implicit_diff",
    "lax",
    "nn",
    "numpy",
    "ode",
    "random",
    "test_util",
    "tree",
    "tree_util",
    "typing",
]

_public = imported(f"{__name__}.api.public")
globals().update({name: getattr(_public, name) for name in _AT_ONCE})


def __getattr__(name: str) -> Any:
    if name in _LIBRARIES:
        return imported(f"{__name__}.{name}")
    if name in _LATE:
        found = globals()[name] = getattr(imported(f"{__name__}.{_LATE[name]}"), name)
        return found
    from ._jax_names import missing

    raise missing(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LIBRARIES, *_LATE})
