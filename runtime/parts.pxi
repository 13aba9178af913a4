# The parts of the extension in the order in which they stand on each other, and what they use of C, Python and NumPy.
#
# In: nothing. Out: the names of runtime/dispatch.pyi, but for those of stack.pxi. Example: `include "parts.pxi"`. What is
# read of Python's objects in another way where one extension is for many versions stands in objects.h.

cimport numpy as cnp
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject, PyObject_GenericSetAttr, PyTypeObject
from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

import _signal
import builtins
import os
import sys
import threading
import types

import numpy as np

from ..effects import promised
from ..exceptions import ListFull
from . import abi
from . import entry as descriptions

cnp.import_array()

cdef dict builtin_names = builtins.__dict__

cdef extern from "stdlib.h" nogil:
    int posix_memalign(void** memory, size_t alignment, size_t size)

cdef extern from "abi.h" nogil:
    ctypedef struct mp_ctx
    ctypedef void (*mp_for_blas)(int begins) noexcept nogil
    ctypedef int (*mp_sorter)(void* line, Py_ssize_t n, void* unused) noexcept nogil
    ctypedef struct mp_fourier:
        void* data
    const int MP_fft, MP_ifft, MP_rfft_even, MP_rfft_odd, MP_irfft
    ctypedef int (*mp_part)(mp_ctx* c, void** buffers, const int64_t* sizes, int64_t k) noexcept nogil
    ctypedef struct mp_ctx:
        int64_t abi, fuel, busy, pending, sorters_below, threads
        char* cursor
        char* limit
        void** blas
        mp_for_blas blas_alone
        mp_sorter* sorters
        const mp_fourier* fouriers
        int (*poll)(mp_ctx*) noexcept nogil
        void* (*alloc)(mp_ctx*, int64_t, int64_t) noexcept nogil
        void (*set_dims)(mp_ctx*, int64_t, int64_t, const int64_t*) noexcept nogil
        void* (*scratch)(mp_ctx*, int64_t) noexcept nogil
        void* (*grow)(mp_ctx*, void*, int64_t*, int64_t) noexcept nogil
        char* (*mark)(mp_ctx*) noexcept nogil
        void (*release)(mp_ctx*, char*) noexcept nogil
        int (*callback)(mp_ctx*, int64_t, void**) noexcept nogil
        int (*share)(mp_ctx*, mp_part, void**, const int64_t*, int64_t, int) noexcept nogil
        int64_t error_site, error_iteration
        int64_t error_values[16]
    int64_t mp_times(int64_t a, int64_t b)
    ctypedef int (*mp_entry)(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil
    const int MP_ABI, MP_INTERRUPTED, MP_NO_MEMORY, MP_RAISED

cdef extern from "objects.h":
    PyObject* mp_descr(PyObject*)
    cnp.npy_intp* mp_dims(PyObject*)
    cnp.npy_intp* mp_strides(PyObject*)
    int mp_ndim(PyObject*)
    int mp_flags(PyObject*)
    void* mp_data(PyObject*)
    cnp.npy_intp mp_itemsize(PyObject*)
    cnp.npy_intp mp_nbytes(PyObject*)
    const bint MP_MANY_PYTHONS
    PyObject** mp_items(object)
    double mp_float(PyObject*)
    object mp_owned(PyObject*)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    ctypedef object (*vectorcallfunc)(PyObject*, PyObject**, size_t, PyObject*)
    PyTypeObject* array_type "mp_array_type"
    object PyArray_NewFromDescr "mp_new_from_descr"(PyTypeObject*, PyObject*, int, cnp.npy_intp*, cnp.npy_intp*, void*,
                                                    int, PyObject*)
    bint PyArray_EquivTypes "mp_equivalent"(PyObject*, PyObject*)
    int mp_type_number(PyObject* descr)
    object PyArray_Scalar "mp_scalar"(void*, PyObject*, PyObject*)
    unsigned int mp_type_version(PyObject*)
    PyObject* mp_function_code(PyObject*)
    PyObject* mp_function_defaults(PyObject*)
    PyObject* mp_function_keywords(PyObject*)
    PyObject* mp_method_type
    PyObject* mp_method_function(PyObject*)
    int mp_get_method(PyObject*, PyObject*, PyObject**)
    void mp_own_data(PyObject*)
    object mp_new_method(object, object)
    PyObject* mp_cell_value(PyObject*)       # a new reference
    object mp_called_fast(object, Py_ssize_t)
    ctypedef object (*mp_inner_call)(PyObject*, PyObject**, size_t, PyObject*)
    mp_inner_call mp_inner
    object mp_outer_call(PyObject*, PyObject**, size_t, PyObject*)
    const int NPY_ARRAY_WRITEABLE, NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(PyObject*)
    PyObject* Py_None
    PyObject* Py_True
    PyObject* Py_False
    unsigned long PyThread_get_thread_ident() nogil
    bint PyComplex_CheckExact(object)
    double PyComplex_RealAsDouble(object)
    double PyComplex_ImagAsDouble(object)
    bint PyDict_CheckExact(object)
    bint PyTuple_Check(object)
    bint PyUnicode_CheckExact(object)
    Py_hash_t PyObject_Hash(object) except? -1
    Py_ssize_t PyDict_Size(object)
    PyObject* PyDict_GetItemWithError(object, object) except? NULL
    bint PyDict_Next(PyObject*, Py_ssize_t*, PyObject**, PyObject**)
    PyObject* mp_get_attribute "PyObject_GetAttr"(PyObject*, PyObject*)  # new references
    PyObject* mp_get_item "PyObject_GetItem"(PyObject*, PyObject*)
    bint PyErr_ExceptionMatches(object)
    void PyErr_Clear()
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t)
    PyObject* PyList_GET_ITEM(object, Py_ssize_t)
    long long PyLong_AsLongLongAndOverflow(object, int*)

ABI_VERSION = MP_ABI

include "context.pxi"
include "signals.pxi"
include "share.pxi"
include "plan.pxi"
include "match.pxi"
include "overlap.pxi"
include "call.pxi"
include "entries.pxi"
include "find.pxi"
include "dispatcher.pxi"
