# One call of a matched entry: results allocated, the program run, its output built.
#
# In: a frame that `match_call` filled. Out: the Python result, or the exception that the program stands for.
# Example: `result = run(entry, &frame)`. The frame's references are released by the caller.

cdef int64_t RELEASE_FROM = 5000             # ns of work from which releasing the GIL pays


cdef object new_array(PyObject* descr, int rank, cnp.npy_intp* dims):
    Py_INCREF(<object>descr)                 # NewFromDescr takes the reference
    return PyArray_NewFromDescr(array_type, descr, rank, dims, NULL, NULL, 0, NULL)


cdef object take_over(PyObject* descr, Dynamic* dynamic, int rank, Py_ssize_t index):
    """An array that owns the memory the program allocated."""
    cdef cnp.npy_intp dims[32]
    cdef int64_t nbytes
    cdef int axis
    if dynamic.rank != rank or dynamic.data == NULL:
        raise SystemError(f"the program did not make its result {index}")
    nbytes = (<object>descr).itemsize
    for axis in range(rank):
        dims[axis] = dynamic.dims[axis]
        nbytes *= dims[axis]
    if nbytes < 0 or nbytes > dynamic.nbytes:
        raise SystemError(f"the program's result {index} is larger than the memory it asked for")
    Py_INCREF(<object>descr)
    array = PyArray_NewFromDescr(array_type, descr, rank, dims, NULL, dynamic.data,
                                 NPY_ARRAY_CARRAY, NULL)
    mp_own_data(<PyObject*>array)
    dynamic.data = NULL
    return array


cdef int allocate_results(Plan* plan, Frame* frame) except -1:
    cdef Py_ssize_t index
    cdef int axis
    cdef cnp.npy_intp dims[64]
    cdef ResultPlan* result
    cdef void** buffers = frame.buffers + plan.parameters
    for index in range(plan.results):
        result = &plan.result[index]
        if result.written_from >= 0:
            buffers[index] = frame.buffers[result.buffer]
        elif result.form == FORM_RUNTIME:
            buffers[index] = NULL
            frame.dynamics[index].rank = -1
        elif result.form == FORM_ARRAY:
            for axis in range(result.rank):
                dims[axis] = evaluate(&result.dims[axis], frame.sizes)
            array = new_array(result.descr, result.rank, dims)
            Py_INCREF(array)
            frame.made[index] = <PyObject*>array
            buffers[index] = mp_data(<PyObject*>array)
        else:
            buffers[index] = frame.slots + 16 * result.slot
    return 0


cdef object number(ResultPlan* result, char* data):
    """A rank-0 result: a NumPy scalar or a Python number."""
    cdef int kind
    if result.form == FORM_PYTHON:           # what `.item()` gives, several times as fast
        kind = mp_type_number(result.descr)
        if kind == cnp.NPY_DOUBLE:
            return (<double*>data)[0]
        if kind == cnp.NPY_INT64:
            return (<int64_t*>data)[0]
    value = PyArray_Scalar(data, result.descr, NULL)
    return value.item() if result.form == FORM_PYTHON else value


cdef object result_object(Plan* plan, Frame* frame, Py_ssize_t index):
    cdef ResultPlan* result = &plan.result[index]
    if frame.made[index] == NULL:
        if result.written_from >= 0:
            return <object>frame.objects[result.written_from]
        value = number(result, <char*>frame.buffers[plan.parameters + index])
        Py_INCREF(value)                     # kept: an output that names it twice gets one object
        frame.made[index] = <PyObject*>value
    return <object>frame.made[index]


cdef int write_back(Plan* plan, Frame* frame) except -1:
    """Copy what was written into the caller's arrays; in-place results are there already, unless a copy stood
    in."""
    cdef Py_ssize_t index
    cdef PyObject* array
    cdef PyObject* stand_in
    cdef void* data
    for index in range(plan.writes):
        array = frame.objects[plan.write[index].number]
        data = frame.buffers[plan.parameters + plan.write[index].result]
        if data == mp_data(array):
            continue
        if (mp_flags(array) & NPY_ARRAY_CARRAY_RO) == NPY_ARRAY_CARRAY_RO:
            memcpy(mp_data(array), data, <size_t>mp_nbytes(array))
            continue
        stand_in = frame.made[plan.write[index].result]
        if stand_in == NULL:                 # in place, through a contiguous copy
            held = held_array(frame, data)
        else:
            held = <object>stand_in
        if cnp.PyArray_CopyInto(<cnp.ndarray>array, <cnp.ndarray>held) < 0:
            return -1
    return 0


cdef object held_array(Frame* frame, void* data):
    """The held array that starts at `data`."""
    cdef Py_ssize_t index
    for index in range(frame.held_count):
        if Py_TYPE(frame.held[index]) == array_type and mp_data(frame.held[index]) == data:
            return <object>frame.held[index]
    raise SystemError("a written array has lost its copy")


cdef object build_output(NodePlan* node, Plan* plan, Frame* frame):
    cdef Py_ssize_t index
    if node.kind == NODE_RESULT:
        return result_object(plan, frame, node.element)
    if node.kind == NODE_TUPLE:
        made = PyTuple_New(node.count)
        for index in range(node.count):
            value = build_output(&node.children[index], plan, frame)
            Py_INCREF(value)
            PyTuple_SET_ITEM(made, index, value)
        return made
    if node.kind == NODE_STATIC:
        return <object>node.value
    if node.kind == NODE_ARGUMENT:
        return <object>frame.objects[node.element]
    if node.kind == NODE_DICT:
        mapping = {}
        for index in range(node.count):
            mapping[<object>node.keys[index]] = build_output(&node.children[index], plan, frame)
        return mapping
    values = [build_output(&node.children[index], plan, frame) for index in range(node.count)]
    if node.kind == NODE_LIST:
        return values
    if node.kind == NODE_RECORD:
        return (<object>node.type)(*values)
    return (<object>node.unflatten)(<object>node.value, tuple(values))


cdef int store_attributes(Plan* plan, Frame* frame) except -1:
    """Give the attributes that the program changes their new values."""
    cdef Py_ssize_t index
    cdef PyObject* owner
    values = [build_output(&plan.store[index].value, plan, frame) for index in range(plan.stores)]
    for index in range(plan.stores):
        owner = fetch(&plan.store[index].source, NULL, frame)
        if owner == NULL:
            raise LookupError(f"the object is gone of which {<object>plan.store[index].name!r} changes")
        if plan.store[index].item:
            (<object>owner)[<object>plan.store[index].name] = values[index]
            continue
        PyObject_GenericSetAttr(<object>owner, <object>plan.store[index].name, values[index])
    return 0


cdef int fail(int status, Call* call, object raise_site, str name) except -1:
    """Turn what the program returned into the exception that it stands for."""
    cdef mp_ctx* c = &call.context
    if call.error != NULL:
        error = <object>call.error
        Py_DECREF(error)                     # `error` holds it now
        call.error = NULL
        if status <= 0:                      # 0: a signal came when the program had done its last
            raise error
    if status == MP_NO_MEMORY:
        raise MemoryError(f"no memory for the arrays of {name}")
    if status > 0:
        values = tuple([c.error_values[index] for index in range(16)])
        if raise_site is not None:
            raise_site(status - 1, c.error_iteration, values)
        raise RuntimeError(f"{name} failed at site {status - 1} in iteration {c.error_iteration} with {values}")
    raise SystemError(f"{name} returned the unknown status {status}")


cdef object run_launch(CompiledEntry entry, Frame* frame):
    """What another processor makes of the objects of a matched frame."""
    cdef Plan* plan = &entry.plan
    cdef Py_ssize_t index
    values = tuple([<object>frame.objects[plan.parameter_node[index]] for index in range(plan.parameters)])
    results = <tuple?>entry.launch(values, tuple([frame.sizes[index] for index in range(plan.symbols)]))
    if len(results) != plan.results:
        raise SystemError(f"{entry.name} gave {len(results)} results, not {plan.results}")
    for index in range(plan.results):
        value = results[index]
        Py_INCREF(value)
        frame.made[index] = <PyObject*>value
    return build_output(&plan.output, plan, frame)


cdef object run(CompiledEntry entry, Frame* frame):
    """Call the program of a matched frame and build the output."""
    if entry.launch is not None:
        return run_launch(entry, frame)
    cdef Plan* plan = &entry.plan
    cdef Call call
    cdef int status
    cdef Py_ssize_t index
    allocate_results(plan, frame)
    context_open(&call, frame.buffers, plan.parameters, plan.results, frame.dynamics, <PyObject*>entry.callbacks)
    if evaluate(&plan.work, frame.sizes) >= RELEASE_FROM:
        call.released = True
        with nogil:
            status = mp_enter(&call.context, plan.address, frame.buffers, frame.sizes)
    else:
        status = run_program(&call, plan.address, frame.buffers, frame.sizes)
    try:
        if status != 0 or call.error != NULL:
            fail(status, &call, entry.raise_site, entry.name)
        if plan.run_time_results:
            for index in range(plan.results):
                if plan.result[index].form == FORM_RUNTIME:
                    array = take_over(plan.result[index].descr, &frame.dynamics[index], plan.result[index].rank, index)
                    Py_INCREF(array)
                    frame.made[index] = <PyObject*>array
    finally:
        context_close(&call)
    if plan.writes:
        write_back(plan, frame)
    if plan.stores:
        store_attributes(plan, frame)
    if entry.finish is not None:
        return entry.finish(tuple([<object>frame.objects[plan.parameter_node[index]] for index in range(plan.parameters)]),
                            tuple([result_object(plan, frame, index) for index in range(plan.results)]))
    return build_output(&plan.output, plan, frame)


cdef inline void release_frame(Frame* frame, Plan* plan) noexcept:
    cdef Py_ssize_t index
    let_go(frame)
    for index in range(plan.results):
        Py_XDECREF(frame.made[index])
        frame.made[index] = NULL


def run_entry(address, arrays, result_types, sizes=(), *, callbacks=(), raise_site=None):
    """Call the entry at `address` with no description: for tests and for tools.

    `arrays`: the parameters, anything np.ascontiguousarray takes (a dtype must already be right).
    `result_types`: one (dtype, dims) a result, or (dtype, rank) with an int rank for a result of run-time
    size. Gives the list of result arrays, rank 0 included.
    """
    cdef Py_ssize_t index, parameters = len(arrays), results = len(result_types)
    cdef Call call
    cdef int status
    cdef mp_entry entry = <mp_entry><size_t>address
    cdef Memory memory = Memory()
    cdef void** buffers = <void**>memory.take((parameters + results) * sizeof(void*))
    cdef int64_t* size_values = <int64_t*>memory.take(len(sizes) * sizeof(int64_t))
    cdef Dynamic* dynamics = <Dynamic*>memory.take(results * sizeof(Dynamic))
    inputs = [np.asarray(array, order="C") for array in arrays]
    for index in range(parameters):
        buffers[index] = cnp.PyArray_DATA(inputs[index])
    for index in range(<Py_ssize_t>len(sizes)):
        size_values[index] = sizes[index]
    made = [None if isinstance(dims, int) else np.empty(dims, np.dtype(dtype)) for dtype, dims in result_types]
    for index in range(results):
        dynamics[index].rank = -1
        buffers[parameters + index] = NULL if made[index] is None else cnp.PyArray_DATA(made[index])
    sites = tuple(callbacks)
    context_open(&call, buffers, parameters, results, dynamics, <PyObject*>sites)
    call.released = True
    with nogil:
        status = mp_enter(&call.context, entry, buffers, size_values)
    try:
        if status != 0 or call.error != NULL:
            fail(status, &call, raise_site, "the entry")
        for index in range(results):
            if made[index] is None:
                dtype = np.dtype(result_types[index][0])
                made[index] = take_over(<PyObject*>dtype, &dynamics[index], result_types[index][1], index)
    finally:
        context_close(&call)
    return made
