"""The head of an emitted module: the ABI, the element types and the helpers that its functions use, and no
others.

In: what the functions use. Out: Cython declarations, with C in verbatim blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .cython_simd import DECLARED
from .dialects import COMPLEX, HALVES, C
from .helpers import with_needs
from .spell import Printer, c_name

# Members of the context and functions of runtime/abi.h.
_CONTEXT = {
    "blas": "void** blas",
    "alloc": "void* (*alloc)(mp_ctx* c, i64 k, i64 nbytes) noexcept nogil",
    "set_dims": "void (*set_dims)(mp_ctx* c, i64 k, i64 rank, const i64* dims) noexcept nogil",
    "error_values": "i64 error_values[16]",
    "mark": "char* (*mark)(mp_ctx* c) noexcept nogil",
    "release": "void (*release)(mp_ctx* c, char* mark) noexcept nogil",
    "callback": "int (*callback)(mp_ctx* c, i64 site, void** args) noexcept nogil",
}
_FUNCTIONS = {
    "mp_poll": "int mp_poll(mp_ctx* c, i64 work)",
    "mp_begin": "void mp_begin(mp_ctx* c)",
    "mp_end": "int mp_end(mp_ctx* c)",
    "mp_scratch": "void* mp_scratch(mp_ctx* c, i64 nbytes)",
    "mp_times": "i64 mp_times(i64 a, i64 b)",
    "mp_bytes": "i64 mp_bytes(i64 count, i64 size)",
    "mp_grow": "void* mp_grow(mp_ctx* c, void* stack, i64* capacity, i64 needed)",
    "mp_room": "void* mp_room(mp_ctx* c, void* old, i64* room, i64 needed)",
    "mp_share": "int mp_share(mp_ctx* c, mp_part part, void** buffers, const i64* sizes, i64 parts)",
    "mp_share_of_blas": "int mp_share_of_blas(mp_ctx* c, mp_part part, void** buffers, const i64* sizes, i64 parts)",
    "mp_fail": "int mp_fail(mp_ctx* c, i64 site, i64 iteration, i64 v0, i64 v1, i64 v2, i64 v3)",
    "MP_INTERRUPTED": "const int MP_INTERRUPTED",
    "MP_NO_MEMORY": "const int MP_NO_MEMORY",
    "MP_RAISED": "const int MP_RAISED",
}
_PART = "ctypedef int (*mp_part)(mp_ctx* c, void** buffers, const i64* sizes, i64 k) noexcept nogil"


def _cython_type(name: str) -> str:
    """What Cython may believe the type to be: it never does arithmetic on complex numbers and halves itself."""
    if name in COMPLEX:
        return "double"
    return {"i64": "long long", **dict.fromkeys(HALVES, "unsigned short")}.get(name, C.types[name])


def prelude(
    bodies: Sequence[str],
    helpers: set[str],
    abi: set[str],
    constants: Sequence[tuple[str, np.ndarray]],
    routines: Sequence[str] = (),
    declarations: Sequence[str] = (),
    simd: set[str] = frozenset(),  # type: ignore[assignment]
) -> str:
    """The text before the functions `bodies`. `routines`: C text of library calls; `declarations`: how
    Cython sees them."""
    made = with_needs(helpers)
    text = "\n".join([*bodies, *(h.text for h in made), *(h.declaration for h in made), *routines])
    types = {"i64"} | {c_name(data.dtype) for _, data in constants}
    words = set(re.findall(r"\w+", text))
    types |= {t for t in C.types if t in words or f"{t}_p" in words}
    order = [t for t in C.types if t in types]
    rows = ['cdef extern from "abi.h" nogil:']
    rows.append("    ctypedef long long int64_t")
    rows += ["", "cdef extern from * nogil:", '    """']
    rows += ["    " + line for line in C.typedefs(types)]
    rows += [f'    #include "{header}"' for header in sorted({h.header for h in made} - {""})]
    for block in [h.text for h in made] + list(routines):
        rows += ["    " + line for line in block.splitlines()]
    for operation in sorted(simd):
        if "_" in operation:
            rows.append("    " + DECLARED.format(operation, operation.split("_")[0]))
        rows.append(f"    #define mp_simd_{operation}(accumulator)")
    for name, data in constants:
        rows.append(f"    static const {c_name(data.dtype)} {name}[] = {{{_elements(data)}}};")
    rows.append('    """')
    for t in order:
        rows += [f"    ctypedef {_cython_type(t)} {t}", f"    ctypedef {t}* {t}_p"]
    rows += ["    " + h.declaration.replace("(void)", "()") for h in made]
    rows += ["    " + d for d in declarations]
    rows += [f"    void mp_simd_{o}({_accumulated(o)} accumulator)" for o in sorted(simd)]
    rows += [f"    const {c_name(data.dtype)}* {name}" for name, data in constants]
    members = [_CONTEXT[m] for m in _CONTEXT if m in abi]
    rows += ["", 'cdef extern from "abi.h" nogil:', "    ctypedef struct mp_ctx:"]
    rows += ["        " + m for m in members] or ["        pass"]
    if any(name.startswith("mp_share") for name in abi):
        rows.append(f"    {_PART}")
    rows += ["    " + text for name, text in _FUNCTIONS.items() if name in abi]
    return "\n".join(rows) + "\n"


def _accumulated(operation: str) -> str:
    """The type that Cython may believe a combination's accumulator to have."""
    return operation.split("_")[0] if "_" in operation else "double"


def _elements(data: np.ndarray) -> str:
    flat = np.ascontiguousarray(data).reshape(-1)
    if flat.size == 0:
        return "0"
    return ", ".join(Printer(C).literal(value)[0] for value in flat)
