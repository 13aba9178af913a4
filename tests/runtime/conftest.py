"""Small native programs for the tests of the runtime.

In: the body of an entry as Cython text. Out: its `Library`. Example: `program("return 0").address`.
"""

from __future__ import annotations

import textwrap

import pytest

from metaphrase.runtime import abi, cython_build


def module_text(body: str, head: str = "", blas: bool = False) -> str:
    """The text of a module whose entry has this body."""
    return (
        abi.DECLARATIONS
        + (abi.BLAS_DECLARATIONS if blas else "")
        + textwrap.dedent(head)
        + "\ncdef int entry(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil:\n"
        + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        + "\n"
    )


@pytest.fixture(scope="session")
def program():
    """program(body, head="", blas=False) -> Library, loaded until all tests have run"""
    held = []

    def make(body: str, head: str = "", blas: bool = False) -> cython_build.Library:
        held.append(cython_build.build(module_text(body, head, blas), name="a test program"))
        return held[-1]

    return make


@pytest.fixture
def text_of():
    return module_text


ADD = """
cdef int64_t i
cdef double* x = <double*>buffers[0]
cdef double* y = <double*>buffers[1]
cdef double* out = <double*>buffers[2]
for i in range(sizes[0]):
    out[i] = x[i] + y[i]
return 0
"""


@pytest.fixture
def add(program):
    """out: f64[n] = x: f64[n] + y: f64[n]"""
    return program(ADD)
