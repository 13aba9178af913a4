"""What to write for the names of JAX that are not here.

In: a module and a name that it does not have. Out: the error, which says what to do instead: an
AttributeError, or for `from module import name` an ImportError, which Python would replace the other by.

>>> str(missing("metaphrase", "make_jaxpr"))
"metaphrase has no 'make_jaxpr': metaphrase.source(f, *args, stage='core') is the program's text"
"""

from __future__ import annotations

import dis
import sys

_ONE_DEVICE = "a program runs on one device: metaphrase.devices() lists them, jit(f, device=...) names one"
_READY = "leave it out: on the CPU results are there when the call returns; CuPy's wait when they are read"
_CONVOLUTION = "add up x[i:i + h, j:j + w] @ k[i, j] over the kernel (i, j)"
_INDEX = "index with arrays: x[i], x.at[i].set(v), x.at[i].add(v), or x[i] = v"
_TREE = "it is in metaphrase.tree: tree.map, tree.leaves, tree.flatten, tree.unflatten"
_SCIPY = "call SciPy's own functions: docs/limitations.md lists those that are translated"

_SAID: dict[str, dict[str, str]] = {
    "metaphrase": {
        **dict.fromkeys(
            (
                "local_devices",
                "device_count",
                "local_device_count",
                "default_backend",
                "sharding",
                "make_mesh",
                "shard_map",
                "distributed",
                "set_mesh",
            ),
            _ONE_DEVICE,
        ),
        **dict.fromkeys(("block_until_ready",), _READY),
        **dict.fromkeys(("tree_map", "tree_leaves", "tree_flatten", "tree_unflatten"), _TREE),
        **dict.fromkeys(("named_scope", "named_call", "profiler"), "it only names parts; leave it out"),
        "pmap": "it is not there yet; vmap gives the same numbers",
        "make_jaxpr": "metaphrase.source(f, *args, stage='core') is the program's text",
        "scipy": _SCIPY,
        "dtypes": "dtypes are NumPy's: np.float32, np.result_type, np.issubdtype",
        "enable_x64": "float64 is always there; ask for float32 by dtype",
        "ensure_compile_time_eval": "what is known while translating is computed then; leave it out",
        "clear_caches": "jitted functions have clear_cache(); `metaphrase cache clear` empties the disk's",
        "njit": "it is metaphrase.jit, which takes no options of Numba's and never runs Python instead",
        "prange": "write range; the loops themselves use one core",
        **dict.fromkeys(("vectorize", "guvectorize"), "write it for one element and use vmap"),
    },
    "metaphrase.debug": {**dict.fromkeys(("visualize_array_sharding", "inspect_array_sharding"), _ONE_DEVICE)},
    "metaphrase.lax": {
        **dict.fromkeys(("pvary", "pbroadcast"), "leave it out: under vmap every value may vary from lane to lane"),
        **dict.fromkeys(
            (
                "conv",
                "conv_general_dilated",
                "conv_with_general_padding",
                "conv_transpose",
                "conv_general_dilated_patches",
            ),
            _CONVOLUTION,
        ),
        **dict.fromkeys(("gather", "scatter", "scatter_add", "scatter_mul", "scatter_min", "scatter_max"), _INDEX),
        **dict.fromkeys(("reduce", "reduce_window"), "use np.sum and its like, a ufunc's reduce, or a loop"),
        **dict.fromkeys(("igamma", "igammac", "betainc", "bessel_i0e", "zeta", "polygamma"), _SCIPY),
        "linalg": "use np.linalg",
        "fft": "use np.fft",
        "pad": "use np.pad, and a strided store for gaps",
        "bitcast_convert_type": "use x.view(dtype)",
        "optimization_barrier": "leave it out",
    },
    "metaphrase.random": {
        "binomial": "sum bernoulli(key, p, (n, *shape)) along its first axis",
        "multinomial": "count categorical(key, log(p), shape=(n,)) with np.bincount",
        "f": "(X / m) / (Y / n) for chisquare samples X of m and Y of n",
        "wald": "it is not there yet; scipy.stats.invgauss draws outside of translated functions",
        "maxwell": "np.linalg.norm(normal(key, (*shape, 3)), axis=-1)",
        "double_sided_maxwell": "rademacher(key, shape) times the norm of three normal samples",
        "triangular": "put a uniform sample into the inverse of its distribution function",
        "generalized_normal": "rademacher(key, shape) * gamma(key, 1 / p, shape) ** (1 / p)",
        "ball": "x / norm(x) * uniform ** (1 / d) for d normal samples x",
        "orthogonal": "Q of np.linalg.qr(normal(key, (n, n))), columns times the signs of R's diagonal",
        "key_impl": "there is one generator, threefry2x32",
    },
}


def missing(module: str, name: str) -> AttributeError | ImportError:
    """The error for `module.name`, to be raised by the module's `__getattr__`."""
    said = _SAID.get(module, {}).get(name)
    if said is None:
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    reader = sys._getframe(2)  # beyond `__getattr__`
    imported = reader.f_code.co_code[reader.f_lasti] == dis.opmap["IMPORT_FROM"]
    return (ImportError if imported else AttributeError)(f"{module} has no {name!r}: {said}")
