/* What a call reads and makes of Python's and NumPy's objects.

   In: objects. Out: their parts. Example: `mp_dims(array)[0]`, `mp_float(number)`. Those of NumPy's arrays are loads: their
   layout stays from NumPy 2.0 on. Those of Python's objects are loads, too, where the extension is for one version of
   Python; where Py_LIMITED_API says the first one of many, they are what the functions of the stable ABI give. */
#ifndef METAPHRASE_OBJECTS_H
#define METAPHRASE_OBJECTS_H

#include <stddef.h>
#include <string.h>

#define mp_fields(o) ((PyArrayObject_fields *)(o))
#define mp_descr(o) ((PyObject *)mp_fields(o)->descr)
#define mp_dims(o) (mp_fields(o)->dimensions)
#define mp_strides(o) (mp_fields(o)->strides)
#define mp_ndim(o) (mp_fields(o)->nd)
#define mp_flags(o) (mp_fields(o)->flags)
#define mp_data(o) ((void *)mp_fields(o)->data)
#define mp_itemsize(o) PyArray_ITEMSIZE((PyArrayObject *)(o))
#define mp_nbytes(o) PyArray_NBYTES((PyArrayObject *)(o))
#define mp_array_type (&PyArray_Type)
#define mp_new_from_descr(t, d, n, dims, strides, data, flags, o) \
    PyArray_NewFromDescr((t), (PyArray_Descr *)(d), (n), (dims), (strides), (data), (flags), (o))
#define mp_type_number(d) (((PyArray_Descr *)(d))->type_num)
#define mp_equivalent(a, b) PyArray_EquivTypes((PyArray_Descr *)(a), (PyArray_Descr *)(b))
#define mp_scalar(data, d, base) PyArray_Scalar((data), (PyArray_Descr *)(d), (base))
static void mp_own_data(PyObject *array) {
    Py_INCREF(PyDataMem_DefaultHandler);
    mp_fields(array)->mem_handler = PyDataMem_DefaultHandler;
    mp_fields(array)->flags |= NPY_ARRAY_OWNDATA;
}

#define mp_owned(o) (o) /* a new reference, or NULL with an error, in Cython's eyes */
static PyObject *mp_method_type; /* set by dispatcher.pxi */
/* The function of a bound method; NULL for anything else. */
#define mp_method_function(m) ((PyObject *)Py_TYPE(m) == mp_method_type ? mp_held_function(m) : NULL)

#ifndef Py_LIMITED_API
#include <frameobject.h>

#define MP_MANY_PYTHONS 0
#define mp_items(t) (((PyTupleObject *)(t))->ob_item)
#define mp_float(o) (((PyFloatObject *)(o))->ob_fval)
/* A number that is another one after each change of a class or its bases; 0 where it has none. */
#define mp_type_version(t) (((PyTypeObject *)(t))->tp_version_tag)
#define mp_or_none(o) ((o) ? (o) : Py_None)
#define mp_function_code(f) PyFunction_GET_CODE(f)
#define mp_function_defaults(f) mp_or_none(PyFunction_GET_DEFAULTS(f))
#define mp_function_keywords(f) mp_or_none(PyFunction_GET_KW_DEFAULTS(f))
#define mp_held_function(m) PyMethod_GET_FUNCTION(m)
#define mp_new_method(f, o) PyMethod_New((f), (o))
/* What a cell holds, as a new reference; NULL without an error where it is empty. */
static PyObject *mp_cell_value(PyObject *cell) { return Py_XNewRef(PyCell_GET(cell)); }
static PyObject *mp_next_entry(PyObject *entry) { return Py_XNewRef((PyObject *)((PyTracebackObject *)entry)->tb_next); }
static PyObject *mp_file_of(PyObject *entry) {
    PyCodeObject *code = PyFrame_GetCode(((PyTracebackObject *)entry)->tb_frame);
    PyObject *file = Py_NewRef(code->co_filename);
    Py_DECREF(code);
    return file;
}
/* The class as one whose calls go to the object's own function pointer, which stands at `offset`, without a tuple of
   arguments in between. */
static PyObject *mp_called_fast(PyObject *type, Py_ssize_t offset) {
    PyTypeObject *t = (PyTypeObject *)type;
    t->tp_vectorcall_offset = offset;
    t->tp_call = PyVectorcall_Call;
    t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(t);
    return Py_NewRef(type);
}

#else
#include <structmember.h>

#define MP_MANY_PYTHONS 1
#define PyTuple_GET_SIZE(t) PyTuple_Size(t)
#define PyTuple_GET_ITEM(t, k) PyTuple_GetItem((t), (k))
#define PyTuple_SET_ITEM(t, k, o) PyTuple_SetItem((t), (k), (o))
#define PyList_GET_SIZE(l) PyList_Size(l)
#define PyList_GET_ITEM(l, k) PyList_GetItem((l), (k))
#define mp_items(t) ((PyObject **)NULL) /* unknown: they are copied */
#define mp_float(o) PyFloat_AsDouble(o)
#define mp_type_version(t) 0
typedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t, PyObject *);
#define PyVectorcall_NARGS(n) ((Py_ssize_t)((n) & ~((size_t)1 << (8 * sizeof(size_t) - 1))))

/* An attribute; NULL without an error where there is none. */
static PyObject *mp_attribute(PyObject *o, const char *name) {
    PyObject *value = PyObject_GetAttrString(o, name);
    if (!value) PyErr_Clear();
    return value;
}
/* The same, borrowed from the object, which holds it. */
static PyObject *mp_held_attribute(PyObject *o, const char *name) {
    PyObject *value = mp_attribute(o, name);
    Py_XDECREF(value);
    return value;
}
#define mp_function_code(f) mp_held_attribute((f), "__code__")
#define mp_function_defaults(f) mp_held_attribute((f), "__defaults__")
#define mp_function_keywords(f) mp_held_attribute((f), "__kwdefaults__")
#define mp_held_function(m) mp_held_attribute((m), "__func__")
#define mp_new_method(f, o) PyObject_CallFunctionObjArgs(mp_method_type, (f), (o), NULL)
#define mp_cell_value(c) mp_attribute((c), "cell_contents")
#define mp_next_entry(entry) mp_attribute((entry), "tb_next")
static PyObject *mp_file_of(PyObject *entry) {
    PyObject *frame = mp_attribute(entry, "tb_frame"), *code = frame ? mp_attribute(frame, "f_code") : NULL;
    PyObject *file = code ? mp_attribute(code, "co_filename") : NULL;
    Py_XDECREF(frame);
    Py_XDECREF(code);
    return file;
}
/* A subclass: the stable ABI changes no class that is there. It names this flag from 3.12 on; 3.11 has it, too. */
#define MP_HAVE_VECTORCALL (1UL << 11)
static PyObject *mp_called_fast(PyObject *type, Py_ssize_t offset) {
    PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offset, READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
    PyType_Slot slots[] = {{Py_tp_members, members}, {0, NULL}};
    PyType_Spec spec = {NULL, 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | MP_HAVE_VECTORCALL, slots};
    PyObject *module = PyObject_GetAttrString(type, "__module__"), *name = PyObject_GetAttrString(type, "__name__");
    PyObject *full = module && name ? PyUnicode_FromFormat("%U.%U", module, name) : NULL;
    PyObject *doc = PyObject_GetAttrString(type, "__doc__"), *made = NULL;
    if (full && doc && (spec.name = PyUnicode_AsUTF8AndSize(full, NULL))) made = PyType_FromSpecWithBases(&spec, type);
    if (made && PyObject_SetAttrString(made, "__doc__", doc)) Py_CLEAR(made);
    Py_XDECREF(module);
    Py_XDECREF(name);
    Py_XDECREF(full);
    Py_XDECREF(doc);
    return made;
}
#endif

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

/* Whether a traceback entry stands in this extension or in runtime/errors.py, which the user has not written. */
static int mp_is_ours(PyObject *entry) {
    PyObject *name = mp_file_of(entry);
    const char *file = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const char *dot = file ? strrchr(file, '.') : NULL;
    int ours = dot && (!strcmp(dot, ".pxi") || !strcmp(dot, ".pyx")
                       || (dot - file >= 14 && !strncmp(dot - 14, "runtime/errors.py", 17)));
    if (!file) PyErr_Clear();
    Py_XDECREF(name);
    return ours;
}
/* Drop the leading entries that are ours from the traceback of the pending exception. */
static void mp_trim_traceback(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    while (traceback && PyTraceBack_Check(traceback) && mp_is_ours(traceback)) {
        PyObject *next = mp_next_entry(traceback);
        Py_DECREF(traceback);
        traceback = next;
    }
    if (traceback && !PyTraceBack_Check(traceback)) Py_CLEAR(traceback); /* None, behind the last entry */
    PyErr_Restore(type, value, traceback);
}
typedef PyObject *(*mp_inner_call)(PyObject *, PyObject **, size_t, PyObject *);
static mp_inner_call mp_inner;
static PyObject *mp_outer_call(PyObject *self, PyObject *const *args, size_t flagged, PyObject *names) {
    PyObject *result = mp_inner(self, (PyObject **)args, flagged, names);
    if (__builtin_expect(result == NULL, 0)) mp_trim_traceback();
    return result;
}

#endif
