"""What differs between C, CUDA C and Cython where a scalar expression is written.

In: nothing. Out: one record for each dialect, which spell.py (expressions) and helpers.py (functions that
they call) ask; an operation's own names stand at its declaration (core/scalars.py).

    x[i] as a float       C, CUDA: (f32)x[i]                       Cython: <f32>x[i]
    exp of a double       C: f64 f64_exp(f64 x) __asm__("exp")     CUDA: f64 f64_exp(f64 x) { return exp(x); }
    infinity              C: __builtin_inf()                       Cython: f64_special_inf()
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from metaphrase.core.scalars import Scalar
from metaphrase.late import dataclass, field

FLOATS = {"f64": "", "f32": "f"}  # and the suffix of their functions in C's library
INTEGERS = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")
COMPLEX = {"c128": "f64", "c64": "f32"}
HALVES = ("f16", "bf16")


@dataclass(frozen=True, eq=False)
class Dialect:
    """`types`: what each short name stands for, and `headers` that some of them need.

    `cast`: of a type and an operand. `writes_constants`: a number of any dtype can be written, also where a
    constant is called for; otherwise a function makes those that are no plain numbers.
    `defines`: what the definition of a function begins with.
    `library`: how a function becomes one of the mathematical library, of its declaration, the library's name
    and the operands; `names` says under which facts of an operation that name is found, and `of_complex` how it
    reads for complex numbers. `maths`: the header of functions of ours, and of marks on those that vectors have.
    `instructions`: the name of an instruction or a constant, of C's name for it and the suffix of a float;
    under "" the rule for those that are not named.
    `definitions`: of instructions that no header has.
    `pair`: what makes a complex number of a type; `parts`: its parts.
    """

    name: str
    types: Mapping[str, str]
    cast: str
    writes_constants: bool
    defines: str
    library: str
    names: tuple[str, ...]
    of_complex: str
    maths: str
    instructions: Mapping[str, str]
    pair: str
    parts: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)
    definitions: Mapping[str, str] = field(default_factory=dict)

    def function(self, scalar: Scalar, dtype: str) -> str | None:
        """What the mathematical library calls an operation on a dtype, if it has it."""
        if dtype in COMPLEX and scalar.of_complex:
            return self.of_complex.format(scalar.library or scalar.builtin, FLOATS[COMPLEX[dtype]])
        known = [name for name in (getattr(scalar, fact) for fact in self.names) if name]
        return known[0] + FLOATS[dtype] if known and dtype in FLOATS else None

    def instruction(self, name: str, suffix: str) -> str:
        """The name of an instruction, of a float with that suffix."""
        return self.instructions.get(name, self.instructions[""]).format(name, suffix)

    def typedefs(self, names: Collection[str]) -> list[str]:
        """The declarations of the types `names`, and of pointers to them that nothing else points to; definitions of
        the instructions among them."""
        order = [t for t in self.types if t in names]
        headers = dict.fromkeys(f"#include <{self.headers[t]}>" for t in order if t in self.headers)
        return [
            *headers,
            *(f"typedef {self.types[t]} {t};" for t in order),
            *(f"typedef {t}* __restrict__ {t}_p;" for t in order),
            *(text for name, text in self.definitions.items() if name in names),
        ]


C = Dialect(
    name="C",
    types={
        "f64": "double",
        "f32": "float",
        "f16": "_Float16",
        "bf16": "unsigned short",
        "i64": "int64_t",
        "i32": "int",
        "i16": "short",
        "i8": "signed char",
        "u64": "unsigned long long",
        "u32": "unsigned int",
        "u16": "unsigned short",
        "u8": "unsigned char",
        "b1": "unsigned char",
        "c128": "double _Complex",
        "c64": "float _Complex",
    },
    cast="({0}){1}",
    writes_constants=True,
    defines="static inline",
    library='{0} MP_LIBRARY("{1}");',
    names=("library",),
    of_complex="c{0}{1}",
    maths="maths.h",
    instructions={"": "__builtin_{0}{1}"},
    pair="__builtin_complex",
    parts={"re": "__real__ {0}", "im": "__imag__ {0}"},
)
CYTHON = replace(C, name="Cython", cast="<{0}>{1}", writes_constants=False)  # the functions are C
CUDA = replace(
    C,
    name="CUDA C",
    types={
        **C.types,
        "f16": "__half",
        "i64": "long long",
        "c128": "cuda::std::complex<double>",
        "c64": "cuda::std::complex<float>",
    },
    defines="static __device__ inline",
    library="static __device__ inline {0} {{ return {1}({2}); }}",
    names=("cuda", "library"),
    of_complex="cuda::std::{0}",
    maths="",
    instructions={
        "": "{0}{1}",
        "inf": "mp_inf{1}",
        "nan": "nan{1}",
        "isinf": "isinf",
        "lgamma_r": "mp_lgamma_r",
        "signbit": "signbit",
        "popcountll": "__popcll",
    },
    pair="{0}",
    parts={"re": "{0}.real()", "im": "{0}.imag()"},
    headers={"f16": "cuda_fp16.h", "c128": "cuda/std/complex", "c64": "cuda/std/complex"},
    definitions={
        "mp_inf": "static __device__ inline double mp_inf() { return __longlong_as_double(0x7ff0000000000000LL); }",
        "mp_lgamma_r": "static __device__ inline double mp_lgamma_r(double x, int*) { return lgamma(x); }",
        "mp_inff": "static __device__ inline float mp_inff() { return __int_as_float(0x7f800000); }",
    },
)

__all__ = ["C", "COMPLEX", "CUDA", "CYTHON", "Dialect", "FLOATS", "HALVES", "INTEGERS"]
