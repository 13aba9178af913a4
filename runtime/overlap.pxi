# Programs that write into their arguments: which memory is whose.
#
# In: a frame whose roots match. Out: 1 when the written arrays overlap no other array except as the entry
# says. Example: f(a, a[1:]) with a written does not match an entry made for two separate arrays; it misses,
# and is compiled as such.

cdef void extent(PyObject* value, char** low, char** high) noexcept:
    """The addresses that an array's elements lie in: [low, high)."""
    cdef char* first = <char*>mp_data(value)
    cdef char* last = first
    cdef int axis
    cdef int64_t dim, stride
    for axis in range(mp_ndim(value)):
        dim, stride = mp_dims(value)[axis], mp_strides(value)[axis]
        if dim == 0:
            low[0] = high[0] = first
            return
        if stride > 0:
            last += (dim - 1) * stride
        else:
            first += (dim - 1) * stride
    low[0], high[0] = first, last + mp_itemsize(value)


cdef bint identical_memory(PyObject* a, PyObject* b) noexcept:
    cdef int axis
    if a == b:
        return True
    if mp_data(a) != mp_data(b) or mp_ndim(a) != mp_ndim(b):
        return False
    for axis in range(mp_ndim(a)):
        if mp_dims(a)[axis] != mp_dims(b)[axis] or mp_strides(a)[axis] != mp_strides(b)[axis]:
            return False
    return True


cdef bint declared_same(Plan* plan, int a, int b) noexcept:
    cdef Py_ssize_t index
    for index in range(plan.sames):
        if (plan.same[2 * index] == a and plan.same[2 * index + 1] == b) \
                or (plan.same[2 * index] == b and plan.same[2 * index + 1] == a):
            return True
    return False


cdef bint memory_is_as_declared(Plan* plan, Frame* frame) noexcept:
    cdef Py_ssize_t index, other
    cdef int written, number
    cdef char* low
    cdef char* high
    cdef char* other_low
    cdef char* other_high
    cdef PyObject* value
    for index in range(plan.sames):
        if not identical_memory(frame.objects[plan.same[2 * index]], frame.objects[plan.same[2 * index + 1]]):
            return False
    for index in range(plan.writes):
        written = plan.write[index].number
        if plan.write[index].contiguous \
                and (mp_flags(frame.objects[written]) & NPY_ARRAY_CARRAY_RO) != NPY_ARRAY_CARRAY_RO:
            return False
        extent(frame.objects[written], &low, &high)
        for other in range(plan.parameters):
            number = plan.parameter_node[other]
            value = frame.objects[number]
            if number == written or Py_TYPE(value) != array_type:
                continue
            extent(value, &other_low, &other_high)
            if low < other_high and other_low < high and not declared_same(plan, written, number):
                return False
    return True


cdef int match_call(Plan* plan, PyObject** args, Frame* frame) except -1:
    """Roots, then conditions on sizes, guards, and memory."""
    cdef Py_ssize_t index
    cdef PyObject* found
    cdef int held
    for index in range(plan.roots):
        if plan.root[index].source.kind == SOURCE_POSITION and plan.root[index].source.count == 0:
            found = args[plan.root[index].source.index]
        else:
            found = fetch(&plan.root[index].source, args, frame)
            if found == NULL:
                return 0
        if not match_node(&plan.root[index].node, found, frame):
            return 0
    for index in range(plan.solves):
        if not solves(&plan.solve[index], frame.sizes):
            return 0
    for index in range(plan.compares):
        if not compares(&plan.compare[index], frame.sizes):
            return 0
    for index in range(plan.guards):
        found = fetch(&plan.guard[index].source, args, frame)
        if found == NULL:
            return 0
        held = holds(&plan.guard[index], found)
        if held != 1:
            return held
    if (plan.writes or plan.sames) and not memory_is_as_declared(plan, frame):
        return 0
    return 1
