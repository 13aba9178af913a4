"""The one prebuilt extension: everything between a Python call and a native entry.

In: entries (runtime/entry.py) and calls. Out: NumPy arrays and scalars. Example:

    f = Dispatcher(function, ("x",), miss=compile_and_run)
    f.add(entry)
    f(x)                                                       # well under a microsecond over the kernel
    y, = run_entry(library.address, [x], [("float64", (3,))])  # no entry needed: for tests

Its parts are included below in the order in which they stand on each other.
"""
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
    ctypedef int (*mp_part)(mp_ctx* c, void** buffers, const int64_t* sizes, int64_t k) noexcept nogil
    ctypedef struct mp_ctx:
        int64_t abi, fuel, busy, pending, threads
        char* cursor
        char* limit
        void** blas
        int (*poll)(mp_ctx*) noexcept nogil
        void* (*alloc)(mp_ctx*, int64_t, int64_t) noexcept nogil
        void (*set_dims)(mp_ctx*, int64_t, int64_t, const int64_t*) noexcept nogil
        void* (*scratch)(mp_ctx*, int64_t) noexcept nogil
        void* (*grow)(mp_ctx*, void*, int64_t*, int64_t) noexcept nogil
        char* (*mark)(mp_ctx*) noexcept nogil
        void (*release)(mp_ctx*, char*) noexcept nogil
        int (*callback)(mp_ctx*, int64_t, void**) noexcept nogil
        int (*share)(mp_ctx*, mp_part, void**, const int64_t*, int64_t) noexcept nogil
        int64_t error_site, error_iteration
        int64_t error_values[16]
    int64_t mp_times(int64_t a, int64_t b)
    ctypedef int (*mp_entry)(mp_ctx* c, void** buffers, const int64_t* sizes) noexcept nogil
    const int MP_ABI, MP_INTERRUPTED, MP_NO_MEMORY, MP_RAISED

cdef extern from *:
    """
    #include <stddef.h>
    #include <string.h>
    #include <frameobject.h>
    /* Fields read directly: each is one load, and a call is made of a few dozen of them. */
    #define mp_fields(o) ((PyArrayObject_fields *)(o))
    #define mp_descr(o) ((PyObject *)mp_fields(o)->descr)
    #define mp_dims(o) (mp_fields(o)->dimensions)
    #define mp_strides(o) (mp_fields(o)->strides)
    #define mp_ndim(o) (mp_fields(o)->nd)
    #define mp_flags(o) (mp_fields(o)->flags)
    #define mp_data(o) ((void *)mp_fields(o)->data)
    #define mp_itemsize(o) PyArray_ITEMSIZE((PyArrayObject *)(o))
    #define mp_nbytes(o) PyArray_NBYTES((PyArrayObject *)(o))
    #define mp_items(t) (((PyTupleObject *)(t))->ob_item)
    #define mp_array_type (&PyArray_Type)
    #define mp_new_from_descr(t, d, n, dims, strides, data, flags, o) \\
        PyArray_NewFromDescr((t), (PyArray_Descr *)(d), (n), (dims), (strides), (data), (flags), (o))
    #define mp_type_number(d) (((PyArray_Descr *)(d))->type_num)
    #define mp_equivalent(a, b) PyArray_EquivTypes((PyArray_Descr *)(a), (PyArray_Descr *)(b))
    #define mp_scalar(data, d, base) PyArray_Scalar((data), (PyArray_Descr *)(d), (base))
    static void mp_own_data(PyObject *array) {
        Py_INCREF(PyDataMem_DefaultHandler);
        mp_fields(array)->mem_handler = PyDataMem_DefaultHandler;
        mp_fields(array)->flags |= NPY_ARRAY_OWNDATA;
    }
    /* A number that is another one after each change of a class or its bases; 0 where it has none. */
    #define mp_type_version(t) (((PyTypeObject *)(t))->tp_version_tag)
    #define mp_or_none(o) ((o) ? (o) : Py_None)
    #define mp_function_code(f) PyFunction_GET_CODE(f)
    #define mp_function_defaults(f) mp_or_none(PyFunction_GET_DEFAULTS(f))
    #define mp_function_keywords(f) mp_or_none(PyFunction_GET_KW_DEFAULTS(f))
    #define mp_method_function(m) PyMethod_GET_FUNCTION(m)
    /* The attribute of an object, without making a bound method where CPython knows how to do without. */
    #if defined(CYTHON_COMPILING_IN_CPYTHON) && CYTHON_COMPILING_IN_CPYTHON && PY_VERSION_HEX < 0x030E0000
    PyAPI_FUNC(int) _PyObject_GetMethod(PyObject *object, PyObject *name, PyObject **method);
    #define mp_get_method _PyObject_GetMethod
    #else
    static int mp_get_method(PyObject *object, PyObject *name, PyObject **method) {
        *method = PyObject_GetAttr(object, name);
        return 0;
    }
    #endif
    /* Calls go to the object's own function pointer, without a tuple of arguments in between. */
    static void mp_set_vectorcall(PyObject *type, Py_ssize_t offset) {
        PyTypeObject *t = (PyTypeObject *)type;
        t->tp_vectorcall_offset = offset;
        t->tp_call = PyVectorcall_Call;
        t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        PyType_Modified(t);
    } /* Whether a traceback entry stands in this extension or in runtime/errors.py, which the user has not
    written. */ static int mp_is_ours(PyTracebackObject *entry) {
        PyCodeObject *code = PyFrame_GetCode(entry->tb_frame);
        const char *file = PyUnicode_AsUTF8(code->co_filename);
        const char *dot = file ? strrchr(file, '.') : NULL;
        int ours = dot && (!strcmp(dot, ".pxi") || !strcmp(dot, ".pyx")
                           || (dot - file >= 14 && !strncmp(dot - 14, "runtime/errors.py", 17)));
        if (!file) PyErr_Clear();
        Py_DECREF(code);
        return ours;
    }
    /* Drop the leading entries that are ours from the traceback of the pending exception. */
    static void mp_trim_traceback(void) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        while (traceback && PyTraceBack_Check(traceback) && mp_is_ours((PyTracebackObject *)traceback)) {
            PyObject *next = (PyObject *)((PyTracebackObject *)traceback)->tb_next;
            Py_XINCREF(next);
            Py_DECREF(traceback);
            traceback = next;
        }
        PyErr_Restore(type, value, traceback);
    }
    typedef PyObject *(*mp_inner_call)(PyObject *, PyObject **, size_t, PyObject *);
    static mp_inner_call mp_inner;
    static PyObject *mp_outer_call(PyObject *self, PyObject *const *args, size_t flagged, PyObject *names) {
        PyObject *result = mp_inner(self, (PyObject **)args, flagged, names);
        if (__builtin_expect(result == NULL, 0)) mp_trim_traceback();
        return result;
    }
    """
    PyObject* mp_descr(PyObject*)
    cnp.npy_intp* mp_dims(PyObject*)
    cnp.npy_intp* mp_strides(PyObject*)
    int mp_ndim(PyObject*)
    int mp_flags(PyObject*)
    void* mp_data(PyObject*)
    cnp.npy_intp mp_itemsize(PyObject*)
    cnp.npy_intp mp_nbytes(PyObject*)
    PyObject** mp_items(object)
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
    PyObject* mp_method_function(PyObject*)
    int mp_get_method(PyObject*, PyObject*, PyObject**)
    void mp_own_data(PyObject*)
    void mp_set_vectorcall(object, Py_ssize_t)
    ctypedef object (*mp_inner_call)(PyObject*, PyObject**, size_t, PyObject*)
    mp_inner_call mp_inner
    void* mp_outer_call
    const int NPY_ARRAY_WRITEABLE, NPY_ARRAY_CARRAY, NPY_ARRAY_CARRAY_RO

cdef extern from "Python.h":
    ctypedef struct FloatObject "PyFloatObject":
        double ob_fval
    ctypedef object (*vectorcallfunc)(PyObject*, PyObject**, size_t, PyObject*)
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
    bint PyMethod_Check(PyObject*)
    PyObject* mp_get_attribute "PyObject_GetAttr"(PyObject*, PyObject*)  # new references
    PyObject* mp_get_item "PyObject_GetItem"(PyObject*, PyObject*)
    bint PyErr_ExceptionMatches(object)
    void PyErr_Clear()
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t)
    PyObject* PyList_GET_ITEM(object, Py_ssize_t)
    PyObject* PyCell_GET(PyObject*)
    long long PyLong_AsLongLongAndOverflow(object, int*)
    Py_ssize_t PyVectorcall_NARGS(size_t)
    object PyMethod_New(object, object)
    object PyVectorcall_Call(object, object, object)
    object mp_vectorcall "PyObject_Vectorcall"(PyObject*, PyObject**, size_t, PyObject*)

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
include "stack.pxi"
