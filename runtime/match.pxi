# Does a call match an entry?
#
# In: a plan, the positional arguments, a frame's memory. Out: 1 with the frame filled (sizes bound, buffers
# of the parameters set), 0, or -1 with a Python error. Example: `matched = match_call(plan, args, &frame)`.
# No hash and no key: comparing the fields one by one is the fastest way to say no, and saying yes costs the
# same.

cdef struct Frame:
    Plan* plan
    PyObject** objects                       # the object of each node; borrowed, or held below
    PyObject** held                          # owned references
    Py_ssize_t held_count
    void** buffers                           # parameters, then results
    int64_t* sizes
    char* slots                              # 16 bytes each: numbers on their way in and out
    PyObject** made                          # owned: the arrays made for results
    Dynamic* dynamics


cdef inline void lay_out(Frame* frame, Plan* plan, char* memory) noexcept:
    """Cut a block of plan.frame_bytes into the frame's arrays."""
    frame.plan = plan
    frame.slots = <char*>((<size_t>memory + 15) & ~<size_t>15)
    memory = frame.slots + 16 * plan.slots
    frame.sizes = <int64_t*>memory
    memory += plan.sizes * sizeof(int64_t)
    frame.objects = <PyObject**>memory
    memory += plan.nodes * sizeof(void*)
    frame.held = <PyObject**>memory
    memory += plan.held * sizeof(void*)
    frame.buffers = <void**>memory
    memory += (plan.parameters + plan.results) * sizeof(void*)
    frame.made = <PyObject**>memory
    memory += plan.results * sizeof(void*)
    frame.dynamics = NULL
    if plan.run_time_results:
        frame.dynamics = <Dynamic*>memory
        memset(frame.dynamics, 0, plan.results * sizeof(Dynamic))
    frame.held_count = 0
    memset(frame.made, 0, plan.results * sizeof(void*))


cdef inline void hold(Frame* frame, PyObject* value) noexcept:
    """Keep a new reference until the call is over: another thread or a callback may take the value from its
    container."""
    Py_INCREF(<object>value)
    take(frame, value)


cdef inline void take(Frame* frame, PyObject* value) noexcept:
    """Keep a reference that is ours already."""
    frame.held[frame.held_count] = value
    frame.held_count += 1


cdef inline void let_go(Frame* frame) noexcept:
    cdef Py_ssize_t index
    for index in range(frame.held_count):
        Py_DECREF(<object>frame.held[index])
    frame.held_count = 0


cdef inline bint match_dim(DimPlan* dim, int64_t value, int64_t* sizes) noexcept:
    if dim.kind == DIM_CONSTANT:
        return value == dim.value
    if dim.kind == DIM_CHECK:
        return value == sizes[dim.value]
    sizes[dim.value] = value
    return value >= dim.minimum


cdef inline int match_array(NodePlan* node, PyObject* value, Frame* frame) except -1:
    cdef cnp.PyArrayObject* array = <cnp.PyArrayObject*>value
    cdef PyObject* descr
    cdef cnp.npy_intp* dims
    cdef int axis
    if Py_TYPE(value) != array_type or mp_ndim(value) != node.rank:
        return 0
    descr = mp_descr(value)
    if descr != node.type and not PyArray_EquivTypes(descr, node.type):
        return 0                             # EquivTypes: long and long long are the same, another byte order is not
    dims = mp_dims(value)
    for axis in range(node.rank):
        if not match_dim(&node.dims[axis], dims[axis], frame.sizes):
            return 0
    if node.descends and not strides_descend(value):
        return 0
    if node.written and not mp_flags(value) & NPY_ARRAY_WRITEABLE:
        return 0
    if node.buffer >= 0 or node.written:
        hold(frame, value)
    if node.buffer >= 0:
        frame.buffers[node.buffer] = mp_data(value)
        if (mp_flags(value) & NPY_ARRAY_CARRAY_RO) != NPY_ARRAY_CARRAY_RO:
            return contiguous_copy(node, value, frame)
    return 1


cdef int match_device(NodePlan* node, PyObject* value, Frame* frame) except -1:
    """An array of a GPU: what Python's attributes say of it."""
    cdef Py_ssize_t axis
    if <PyObject*>Py_TYPE(value) != node.type:
        return 0
    hold(frame, value)
    array = <object>value
    cdef tuple shape = array.shape
    dtype = array.dtype
    if PyTuple_GET_SIZE(shape) != node.rank or array.device.id != node.device:
        return 0
    if <PyObject*>dtype != node.value and not PyArray_EquivTypes(<PyObject*>dtype, node.value):
        return 0
    for axis in range(node.rank):
        if not match_dim(&node.dims[axis], shape[axis], frame.sizes):
            return 0
    return 1


cdef bint strides_descend(PyObject* value) noexcept:
    """Whether the elements lie row after row, perhaps with gaps; those of no array do."""
    cdef int axis
    cdef cnp.npy_intp step, last = 0
    for axis in range(mp_ndim(value)):
        if mp_dims(value)[axis] == 0:
            return True
    for axis in range(mp_ndim(value) - 1, -1, -1):
        step = mp_strides(value)[axis] if mp_strides(value)[axis] >= 0 else -mp_strides(value)[axis]
        if mp_dims(value)[axis] == 1:
            continue
        if step < last:
            return False
        last = step
    return True


cdef int contiguous_copy(NodePlan* node, PyObject* value, Frame* frame) except -1:
    """The program reads C-contiguous memory; any other layout is copied for the call."""
    copy = cnp.PyArray_NewCopy(<cnp.ndarray>value, cnp.NPY_CORDER)
    hold(frame, <PyObject*>copy)
    frame.buffers[node.buffer] = cnp.PyArray_DATA(copy)
    return 1


cdef int match_static(PyObject* value, PyObject* expected) except -1:
    cdef Py_ssize_t index
    cdef double a, b
    if value == expected:
        return 1
    if Py_TYPE(value) != Py_TYPE(expected):
        return 0
    if PyFloat_CheckExact(<object>value):    # by bits: 0.0 is not -0.0, and nan equals itself
        a, b = mp_float(value), mp_float(expected)
        return memcmp(&a, &b, sizeof(double)) == 0
    if PyTuple_CheckExact(<object>value):    # element by element: (1,) is not (True,)
        if PyTuple_GET_SIZE(<object>value) != PyTuple_GET_SIZE(<object>expected):
            return 0
        for index in range(PyTuple_GET_SIZE(<object>value)):
            if not match_static(PyTuple_GET_ITEM(<object>value, index), PyTuple_GET_ITEM(<object>expected, index)):
                return 0
        return 1
    try:
        return 1 if <object>value == <object>expected else 0
    except Exception:                        # an == that gives no truth value: not equal, so far as we can tell
        return 0


cdef int match_object(NodePlan* node, PyObject* value) except -1:
    if value == node.value and not node.asked:
        return 1
    if Py_TYPE(value) != Py_TYPE(node.value):
        return 0
    return 1 if (<object>node.same)(<object>value) else 0


cdef inline int match_integer(NodePlan* node, PyObject* value, Frame* frame) except -1:
    cdef int overflow = 0
    cdef int64_t integer
    if not PyLong_CheckExact(<object>value):
        return 0
    integer = PyLong_AsLongLongAndOverflow(<object>value, &overflow)
    if overflow:
        return 0
    if node.kind == NODE_SIZE and not match_dim(node.dims, integer, frame.sizes):
        return 0
    if node.buffer >= 0:
        (<int64_t*>(frame.slots + 16 * node.slot))[0] = integer
        frame.buffers[node.buffer] = frame.slots + 16 * node.slot
    return 1


cdef int match_scalar(NodePlan* node, PyObject* value, Frame* frame) except -1:
    cdef char* slot = frame.slots + 16 * node.slot
    if <PyObject*>Py_TYPE(value) != node.type:
        return 0
    if node.buffer >= 0:
        if node.plain_dtype:
            cnp.PyArray_ScalarAsCtype(<object>value, slot)
        else:                                # bfloat16 and its like know only how to become an array
            array = np.asarray(<object>value)
            memcpy(slot, cnp.PyArray_DATA(array), cnp.PyArray_NBYTES(array))
        frame.buffers[node.buffer] = slot
    return 1


cdef int match_node(NodePlan* node, PyObject* value, Frame* frame) except -1:
    cdef char* slot
    frame.objects[node.number] = value
    if node.kind == NODE_ARRAY:
        return match_array(node, value, frame)
    if node.kind == NODE_DEVICE:
        return match_device(node, value, frame)
    if node.returned:
        hold(frame, value)
    if node.kind == NODE_FLOAT or node.kind == NODE_COMPLEX or node.kind == NODE_BOOL:
        slot = frame.slots + 16 * node.slot
        if node.buffer >= 0:
            frame.buffers[node.buffer] = slot
        if node.kind == NODE_FLOAT:
            if not PyFloat_CheckExact(<object>value):
                return 0
            if node.buffer >= 0:
                (<double*>slot)[0] = mp_float(value)
        elif node.kind == NODE_COMPLEX:
            if not PyComplex_CheckExact(<object>value):
                return 0
            if node.buffer >= 0:
                (<double*>slot)[0] = PyComplex_RealAsDouble(<object>value)
                (<double*>slot)[1] = PyComplex_ImagAsDouble(<object>value)
        else:
            if value != Py_True and value != Py_False:
                return 0
            if node.buffer >= 0:
                slot[0] = value == Py_True
        return 1
    if node.kind == NODE_INT or node.kind == NODE_SIZE:
        return match_integer(node, value, frame)
    if node.kind == NODE_STATIC:
        return match_static(value, node.value) if node.same == NULL else match_object(node, value)
    if node.kind == NODE_SCALAR:
        return match_scalar(node, value, frame)
    if node.kind == NODE_ANY:
        return 1
    return match_container(node, value, frame)


cdef int match_container(NodePlan* node, PyObject* value, Frame* frame) except -1:
    cdef Py_ssize_t index
    cdef PyObject* child
    cdef int matched
    if node.kind == NODE_TUPLE or node.kind == NODE_RECORD:
        if node.kind == NODE_TUPLE and not PyTuple_CheckExact(<object>value):
            return 0
        if node.kind == NODE_RECORD and <PyObject*>Py_TYPE(value) != node.type:
            return 0
        if PyTuple_GET_SIZE(<object>value) != node.count:
            return 0
        for index in range(node.count):
            matched = match_node(&node.children[index], PyTuple_GET_ITEM(<object>value, index), frame)
            if not matched:
                return 0
        return 1
    if node.kind == NODE_LIST:
        if not PyList_CheckExact(<object>value) or PyList_GET_SIZE(<object>value) != node.count:
            return 0
        for index in range(node.count):
            # A custom node's flatten may have changed the list.
            if index >= PyList_GET_SIZE(<object>value):
                return 0
            matched = match_node(&node.children[index], PyList_GET_ITEM(<object>value, index), frame)
            if not matched:
                return 0
        return 1
    if node.kind == NODE_DICT:
        if not PyDict_CheckExact(<object>value) or PyDict_Size(<object>value) != node.count:
            return 0
        for index in range(node.count):
            child = PyDict_GetItemWithError(<object>value, <object>node.keys[index])
            if child == NULL:
                return 0
            matched = match_node(&node.children[index], child, frame)
            if not matched:
                return 0
        return in_order(node, value) if node.ordered else 1
    return match_custom(node, value, frame)


cdef int in_order(NodePlan* node, PyObject* value) except -1:
    """Whether a dict, which has the keys of `node`, has them in its order."""
    cdef Py_ssize_t index = 0
    for key in <dict>value:
        if index >= node.count:
            return 0
        if <PyObject*>key != node.keys[index]:
            if Py_TYPE(<PyObject*>key) != Py_TYPE(node.keys[index]) or key != <object>node.keys[index]:
                return 0
        index += 1
    return 1


cdef int match_custom(NodePlan* node, PyObject* value, Frame* frame) except -1:
    cdef Py_ssize_t index
    if <PyObject*>Py_TYPE(value) != node.type:
        return 0
    children, auxiliary = (<object>node.flatten)(<object>value)
    children = tuple(children)
    hold(frame, <PyObject*>children)
    if len(children) != node.count or not match_static(<PyObject*>auxiliary, node.value):
        return 0
    for index in range(node.count):
        if not match_node(&node.children[index], PyTuple_GET_ITEM(children, index), frame):
            return 0
    return 1


cdef PyObject* not_there() except? NULL:
    """NULL, without an error where the pending one says that there is nothing to read."""
    if PyErr_ExceptionMatches(AttributeError) or PyErr_ExceptionMatches(LookupError) \
            or PyErr_ExceptionMatches(TypeError):
        PyErr_Clear()
    return NULL


cdef PyObject* fetch(SourcePlan* source, PyObject** args, Frame* frame) except? NULL:
    """The object at a source, borrowed or held; NULL without an error when it is not there."""
    cdef PyObject* found
    cdef Py_ssize_t index
    if source.kind == SOURCE_POSITION:
        found = args[source.index]
    elif source.kind == SOURCE_HELD:
        found = source.object
    elif source.kind == SOURCE_CELL:
        found = mp_cell_value(source.object)
        if found == NULL:
            return NULL
        take(frame, found)
    elif source.kind == SOURCE_ITEM:
        found = PyDict_GetItemWithError(<object>source.object, <object>source.key)
        if found == NULL:
            return NULL
        hold(frame, found)
    else:
        try:
            value = (<object>source.object)()
        except (AttributeError, LookupError, NameError):
            return NULL
        found = <PyObject*>value
        hold(frame, found)
    for index in range(source.count):
        if source.steps[index].attribute:
            found = mp_get_attribute(found, source.steps[index].key)
        else:
            found = mp_get_item(found, source.steps[index].key)
        if found == NULL:
            return not_there()
        take(frame, found)
    return found


cdef int64_t evaluate(Program* program, int64_t* sizes) noexcept:
    """A size program's value; runtime/entry.py has the operations."""
    cdef int64_t stack[64]
    cdef int64_t a, b, operation
    cdef Py_ssize_t at, top = 0
    if program.length == 2:
        return program.code[1] if program.code[0] == 0 else sizes[program.code[1]]
    for at in range(0, program.length, 2):
        operation = program.code[at]
        if operation == 0:
            stack[top] = program.code[at + 1]
            top += 1
        elif operation == 1:
            stack[top] = sizes[program.code[at + 1]]
            top += 1
        else:
            top -= 1
            a, b = stack[top - 1], stack[top]
            if operation == 2:
                a = a + b
            elif operation == 3:
                a = mp_times(a, b)           # what 64 bits do not hold is a size that NumPy refuses
            elif operation == 4 or operation == 5:
                if b == 0:
                    a = 0
                elif operation == 4:
                    a = a // b               # Cython's, like Python's, rounds down
                else:
                    a = a % b
            elif operation == 6:
                a = a if a > b else b
            else:
                a = a if a < b else b
            stack[top - 1] = a
    return stack[0]


cdef bint solves(SolvePlan* solve, int64_t* sizes) noexcept:
    """A size, from others that are known; that these follow from it is compared later."""
    cdef int64_t value = evaluate(&solve.value, sizes)
    sizes[solve.symbol] = value
    return value >= solve.minimum


cdef bint compares(ComparePlan* compare, int64_t* sizes) noexcept:
    cdef int64_t left = evaluate(&compare.left, sizes), right = evaluate(&compare.right, sizes)
    if compare.operator == 0:
        return left == right
    if compare.operator == 1:
        return left != right
    if compare.operator == 2:
        return left < right
    if compare.operator == 3:
        return left <= right
    if compare.operator == 4:
        return left > right
    return left >= right


cdef inline int holds(GuardPlan* guard, PyObject* found) except -1:
    """Whether what was found is what a guard expects."""
    if guard.kind == GUARD_CLASS:
        return 1 if guard.version and mp_type_version(found) == guard.version else class_holds(guard, found)
    if guard.kind == GUARD_FUNCTION:
        return function_holds(found, guard.expected)
    if guard.kind == GUARD_NAMES:
        return names_hold(found, guard.expected)
    if guard.kind == GUARD_METHOD:
        return method_holds(found, guard.expected)
    if found == guard.expected:
        return 1
    return match_static(found, guard.expected) if guard.kind == GUARD_EQUAL else 0


cdef int class_holds(GuardPlan* guard, PyObject* kind) except -1:
    """Ask anew: the class has changed since it was found as expected, in whatever way."""
    cdef unsigned int version
    type.__getattribute__(<object>kind, "__init__")  # a lookup gives the class a version, where it has none
    version = mp_type_version(kind)
    if not (<object>guard.expected)(<object>kind):
        return 0
    guard.version = version if mp_type_version(kind) == version else 0
    return 1


cdef int names_hold(PyObject* around, PyObject* expected) except -1:
    cdef PyObject* name
    cdef PyObject* value
    cdef PyObject* found
    cdef Py_ssize_t place = 0
    while PyDict_Next(expected, &place, &name, &value):
        found = PyDict_GetItemWithError(<object>around, <object>name)
        if found == NULL:
            found = PyDict_GetItemWithError(builtin_names, <object>name)
        if found != value:
            return 0
    return 1


cdef int method_holds(PyObject* owner, PyObject* expected) except -1:
    cdef PyObject* found = NULL
    cdef PyObject* function = PyTuple_GET_ITEM(<object>expected, 1)
    cdef int held
    mp_get_method(owner, PyTuple_GET_ITEM(<object>expected, 0), &found)
    if found == NULL:
        not_there()
        return 0
    held = found == function or mp_method_function(found) == function
    Py_DECREF(<object>found)
    return held


cdef int function_holds(PyObject* function, PyObject* expected) except -1:
    cdef PyObject* keywords = mp_function_keywords(function)
    cdef PyObject* then = PyTuple_GET_ITEM(<object>expected, 2)
    cdef PyObject* key
    cdef PyObject* value
    cdef Py_ssize_t place = 0
    if mp_function_code(function) != PyTuple_GET_ITEM(<object>expected, 0):
        return 0
    if mp_function_defaults(function) != PyTuple_GET_ITEM(<object>expected, 1):
        return 0
    if keywords == then:                     # both None
        return 1
    if keywords == Py_None or then == Py_None or PyDict_Size(<object>keywords) != PyDict_Size(<object>then):
        return 0
    while PyDict_Next(then, &place, &key, &value):
        if PyDict_GetItemWithError(<object>keywords, <object>key) != value:
            return 0
    return 1
