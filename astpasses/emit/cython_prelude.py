"""The head of an emitted module: the ABI, the element types and the helpers that its functions use, and no
others.

In: what the functions use. Out: Cython declarations, with C in verbatim blocks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from .cython_simd import DECLARED
from .helpers import COMPLEX, FLOATS, INTEGERS, with_needs
from .spell import c_name

# Members of the context and functions of runtime/abi.h.
_CONTEXT = {
    "blas": "void** blas",
    "alloc": "void* (*alloc)(mp_ctx* c, i64 k, i64 nbytes) noexcept nogil",
    "set_dims": "void (*set_dims)(mp_ctx* c, i64 k, i64 rank, const i64* dims) noexcept nogil",
    "error_values": "i64 error_values[16]",
    "callback": "int (*callback)(mp_ctx* c, i64 site, void** args) noexcept nogil",
}
_FUNCTIONS = {
    "mp_poll": "int mp_poll(mp_ctx* c, i64 work)",
    "mp_begin": "void mp_begin(mp_ctx* c)",
    "mp_end": "int mp_end(mp_ctx* c)",
    "mp_scratch": "void* mp_scratch(mp_ctx* c, i64 nbytes)",
    "mp_times": "i64 mp_times(i64 a, i64 b)",
    "mp_grow": "void* mp_grow(mp_ctx* c, void* stack, i64* capacity, i64 needed)",
    "mp_room": "void* mp_room(mp_ctx* c, void* old, i64* room, i64 needed)",
    "mp_fail": "int mp_fail(mp_ctx* c, i64 site, i64 iteration, i64 v0, i64 v1, i64 v2, i64 v3)",
    "MP_INTERRUPTED": "const int MP_INTERRUPTED",
    "MP_NO_MEMORY": "const int MP_NO_MEMORY",
    "MP_RAISED": "const int MP_RAISED",
}
_SIMD = '#define MP_SIMD __attribute__((simd("notinbranch"), const))'


def c_type(name: str) -> str:
    """The C type behind a short name."""
    if name == "i64":
        return "int64_t"
    if name in FLOATS:
        return FLOATS[name][0]
    if name in INTEGERS:
        return INTEGERS[name][0]
    if name in COMPLEX:
        return f"{FLOATS[COMPLEX[name]][0]} _Complex"
    return {"b1": "unsigned char", "f16": "_Float16", "bf16": "unsigned short"}[name]


def _cython_type(name: str) -> str:
    """What Cython may believe the type to be: it never does arithmetic on the last three itself."""
    if name == "i64":
        return "long long"
    if name in FLOATS or name in INTEGERS:
        return c_type(name)
    return {"b1": "unsigned char", "f16": "unsigned short", "bf16": "unsigned short"}.get(name, "double")


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
    text = "\n".join([*bodies, *(h.c for h in made), *(h.declaration for h in made), *routines])
    types = {"i64"} | {c_name(data.dtype) for _, data in constants}
    types |= {
        t for t in (*FLOATS, *INTEGERS, *COMPLEX, "b1", "f16", "bf16") if re.search(rf"\b{t}(?:_p)?\b", text)
    }
    order = [
        t
        for t in (
            "f64",
            "f32",
            "f16",
            "bf16",
            "i64",
            "i32",
            "i16",
            "i8",
            "u64",
            "u32",
            "u16",
            "u8",
            "b1",
            "c128",
            "c64",
        )
        if t in types
    ]
    rows = ['cdef extern from "abi.h" nogil:']
    rows.append("    ctypedef long long int64_t")
    rows += ["", "cdef extern from * nogil:", '    """']
    rows += [f"    typedef {c_type(t)} {t};" for t in order]
    rows += [f"    typedef {t}* __restrict__ {t}_p;" for t in order]
    if any(h.c.startswith("MP_SIMD") for h in made):
        rows.append("    " + _SIMD)
    for block in [h.c for h in made] + list(routines):
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
    rows += ["    " + text for name, text in _FUNCTIONS.items() if name in abi]
    return "\n".join(rows) + "\n"


def _accumulated(operation: str) -> str:
    """The type that Cython may believe a combination's accumulator to have."""
    return operation.split("_")[0] if "_" in operation else "double"


def _elements(data: np.ndarray) -> str:
    flat = np.ascontiguousarray(data).reshape(-1)
    if flat.size == 0:
        return "0"
    name = c_name(data.dtype)
    if name in ("f64", "f32"):
        return ", ".join(_c_float(float(x), "" if name == "f64" else "f") for x in flat)
    if data.dtype.kind == "c":
        suffix = "" if name == "c128" else "f"
        return ", ".join(
            f"__builtin_complex({_c_float(float(x.real), suffix)}, {_c_float(float(x.imag), suffix)})"
            for x in flat
        )
    if name == "f16":
        return ", ".join(f"(_Float16){_c_float(float(x), '')}" for x in flat)
    if name == "bf16":
        return ", ".join(str(int(x)) for x in flat.view(np.uint16))
    suffix = {"i64": "LL", "u64": "ULL", "u32": "U"}.get(name, "")
    return ", ".join(
        f"({int(x) + 1}{suffix} - 1)" if int(x) == -(2**63) else f"{int(x)}{suffix}" for x in flat
    )


def _c_float(value: float, suffix: str) -> str:
    if value != value:
        return f'__builtin_nan{suffix}("")'
    if value in (np.inf, -np.inf):
        return f"{'-' if value < 0 else ''}__builtin_inf{suffix}()"
    return repr(value) + suffix
