# Which of many entries does a call match?
#
# In: the arguments of a call that the newest entries do not serve. Out: the entry that served a call like it
# before, or NULL. Example: of 1000 entries of f(x, name), one for each name, `find_known` gives the one that has
# served f(x, "tanh").
#
# What it gives is a guess, which `match_call` confirms: two calls have the same first number when their arguments
# have the same types and structure, and the same second one when all values agree that an entry compares with
# constants of its own (static values, pinned numbers, constant dims, captured values). Which values these are
# its *pattern* says (runtime/entry.py); entries of few patterns serve most functions. Nothing is computed for a
# function with few entries.

cdef enum:
    TRIED_FIRST = 4                          # entries that every call tries in their order

ctypedef unsigned long long Number


cdef inline Number mixed(Number sum, Number value) noexcept:
    sum = (sum ^ value) * <Number>0x9E3779B97F4A7C15
    return sum ^ (sum >> 29)


cdef Number outline(PyObject* value, int depth) noexcept:
    """A number for the types and structure of an argument; no Python code runs."""
    cdef PyObject* key
    cdef PyObject* child
    cdef Py_ssize_t index, place = 0
    cdef Number sum = mixed(17, <size_t>Py_TYPE(value))
    if Py_TYPE(value) == array_type:
        return mixed(sum, <Number>mp_type_number(mp_descr(value)) * 64 + <Number>mp_ndim(value))
    if value == Py_None or value == Py_True or value == Py_False:
        return mixed(sum, <size_t>value)
    if PyUnicode_CheckExact(<object>value):
        return mixed(sum, <Number>PyObject_Hash(<object>value))
    if depth == 0:
        return sum
    if PyTuple_Check(<object>value):
        for index in range(PyTuple_GET_SIZE(<object>value)):
            sum = mixed(sum, outline(PyTuple_GET_ITEM(<object>value, index), depth - 1))
    elif PyList_CheckExact(<object>value):
        for index in range(PyList_GET_SIZE(<object>value)):
            sum = mixed(sum, outline(PyList_GET_ITEM(<object>value, index), depth - 1))
    elif PyDict_CheckExact(<object>value):   # in any order
        while PyDict_Next(value, &place, &key, &child):
            if PyUnicode_CheckExact(<object>key):
                sum += mixed(mixed(19, <Number>PyObject_Hash(<object>key)), outline(child, depth - 1))
    return sum


cdef int add_value(Number* sum, PyObject* value) except -1:
    """A value that `match_static` compares; of what compares by an == of its own only the type."""
    cdef Py_ssize_t index
    cdef double number
    cdef Number bits
    sum[0] = mixed(sum[0], <size_t>Py_TYPE(value))
    if PyFloat_CheckExact(<object>value):
        number = mp_float(value)
        memcpy(&bits, &number, sizeof(bits))
        sum[0] = mixed(sum[0], bits)
    elif PyTuple_CheckExact(<object>value):
        for index in range(PyTuple_GET_SIZE(<object>value)):
            add_value(sum, PyTuple_GET_ITEM(<object>value, index))
    elif PyLong_CheckExact(<object>value) or PyUnicode_CheckExact(<object>value) or value == Py_None \
            or value == Py_True or value == Py_False or PyComplex_CheckExact(<object>value):
        sum[0] = mixed(sum[0], <Number>PyObject_Hash(<object>value))
    return 0


cdef int add_node(Number* sum, NodePlan* node, PyObject* value, Frame* frame) except -1:
    """What of a value an entry compares with constants; 0 where the value has another structure."""
    cdef Py_ssize_t index
    cdef PyObject* child
    cdef int axis
    if node.kind == NODE_ARRAY:
        if Py_TYPE(value) != array_type or mp_ndim(value) != node.rank:
            return 0
        for axis in range(node.rank):
            if node.dims[axis].kind == DIM_CONSTANT:
                sum[0] = mixed(sum[0], <Number>mp_dims(value)[axis])
    elif node.kind == NODE_DEVICE:
        if <PyObject*>Py_TYPE(value) != node.type or len((<object>value).shape) != node.rank:
            return 0
        for axis in range(node.rank):
            if node.dims[axis].kind == DIM_CONSTANT:
                sum[0] = mixed(sum[0], <Number>(<object>value).shape[axis])
    elif node.kind == NODE_SIZE:
        if node.dims.kind == DIM_CONSTANT:
            add_value(sum, value)
    elif node.kind == NODE_STATIC:
        if node.same == NULL:
            add_value(sum, value)
        elif node.key != NULL:
            sum[0] = mixed(sum[0], <Number>hash((<object>node.key)(<object>value)))
    elif node.kind == NODE_TUPLE or node.kind == NODE_RECORD:
        if not PyTuple_Check(<object>value) or PyTuple_GET_SIZE(<object>value) != node.count:
            return 0
        for index in range(node.count):
            if not add_node(sum, &node.children[index], PyTuple_GET_ITEM(<object>value, index), frame):
                return 0
    elif node.kind == NODE_LIST:
        if not PyList_CheckExact(<object>value):
            return 0
        for index in range(node.count):      # a key or flatten below may change the list
            if PyList_GET_SIZE(<object>value) != node.count:
                return 0
            if not add_node(sum, &node.children[index], PyList_GET_ITEM(<object>value, index), frame):
                return 0
    elif node.kind == NODE_DICT:
        if not PyDict_CheckExact(<object>value):
            return 0
        for index in range(node.count):
            child = PyDict_GetItemWithError(<object>value, <object>node.keys[index])
            if child == NULL or not add_node(sum, &node.children[index], child, frame):
                return 0
    elif node.kind == NODE_CUSTOM:
        if <PyObject*>Py_TYPE(value) != node.type:
            return 0
        children, auxiliary = (<object>node.flatten)(<object>value)
        children = tuple(children)
        hold(frame, <PyObject*>children)
        add_value(sum, <PyObject*>auxiliary)
        if len(children) != node.count:
            return 0
        for index in range(node.count):
            if not add_node(sum, &node.children[index], PyTuple_GET_ITEM(children, index), frame):
                return 0
    return 1


cdef bint is_read(SourcePlan* source) noexcept:
    """Whether what stands there is part of the number: not what a Python function gives, nor a held object."""
    return source.kind != SOURCE_GETTER and (source.kind != SOURCE_HELD or source.count > 0)


cdef int constants(Number* sum, CompiledEntry entry, PyObject** args) except -1:
    """The number of all that entries of this entry's pattern compare with constants; 0 where the call can't match
    one of them."""
    cdef Frame frame
    cdef Memory memory = Memory()
    cdef Plan* plan = &entry.plan
    cdef Py_ssize_t index
    cdef PyObject* value
    sum[0] = 23
    lay_out(&frame, plan, <char*>memory.take(plan.frame_bytes))
    try:
        for index in range(plan.roots):
            if is_read(&plan.root[index].source):
                value = fetch(&plan.root[index].source, args, &frame)
                if value == NULL or not add_node(sum, &plan.root[index].node, value, &frame):
                    return 0
        for index in range(plan.guards):
            if is_read(&plan.guard[index].source) and plan.guard[index].kind in (GUARD_IS, GUARD_EQUAL):
                value = fetch(&plan.guard[index].source, args, &frame)
                if value == NULL:
                    return 0
                if plan.guard[index].kind == GUARD_IS:
                    sum[0] = mixed(sum[0], <size_t>value)
                else:
                    add_value(sum, value)
        return 1
    finally:
        release_frame(&frame, plan)


cdef class Group:
    """Entries of one pattern that have served calls of one outline."""
    cdef object pattern
    cdef CompiledEntry sample
    cdef dict known                          # number -> the entry that served a call with it


cdef Number outline_of(PyObject** args, Py_ssize_t count) noexcept:
    cdef Number sum = 0
    cdef Py_ssize_t index
    for index in range(count):
        sum = mixed(sum, outline(args[index], 8))
    return sum


cdef CompiledEntry find_known(dict index, PyObject** args, Py_ssize_t count):
    """The entry that served a call like this one, or None."""
    cdef Number sum
    cdef Group group
    groups = index.get(outline_of(args, count))
    if groups is None:
        return None
    for group in <tuple>groups:
        if constants(&sum, group.sample, args):
            entry = group.known.get(sum)
            if entry is not None:
                return <CompiledEntry>entry
    return None


cdef int remember(dict index, PyObject** args, Py_ssize_t count, CompiledEntry entry, Py_ssize_t total) except -1:
    """`entry` serves calls like this one. Called before it runs: its program may change what is compared."""
    cdef Number sum
    cdef Group group, found = None
    shape, pattern = outline_of(args, count), descriptions.pattern(entry.entry)
    groups = index.get(shape, ())
    for group in <tuple>groups:
        if group.pattern == pattern:
            found = group
    if found is None:
        found = Group()
        found.pattern, found.sample, found.known = pattern, entry, {}
        index[shape] = (*groups, found)
    if constants(&sum, found.sample, args):  # of held objects the sample's count: what is found is a guess
        if len(found.known) > 4 * total + 64:
            found.known.clear()              # numbers that no call has any more
        found.known[sum] = entry
    return 0


cdef int forget(dict index, CompiledEntry entry) except -1:
    """Take every mention of an entry out of an index."""
    cdef Group group
    for shape, groups in list(index.items()):
        for group in <tuple>groups:
            for sum in [sum for sum, known in group.known.items() if known is entry]:
                del group.known[sum]
            if group.sample is entry:        # what is known was found by its held objects
                group.known.clear()
        kept = tuple([group for group in <tuple>groups if (<Group>group).known])
        if kept:
            index[shape] = kept
        else:
            del index[shape]
    return 0
