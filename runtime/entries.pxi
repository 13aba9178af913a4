# An entry that is compiled into C structures, and the trial of a call on it.
#
# In: an Entry (runtime/entry.py), and the arguments of a call. Out: the call's result where it matches. Example:
# `result = try_entry(entry, args, &matched)`

cdef enum:
    STACK_BYTES = 3072                       # frames up to this size live on the C stack

cdef int64_t moment = 0                      # counts the calls that entries have served


def next_moment():
    """The number of a call that no entry serves, in one row with those that entries do."""
    global moment
    moment += 1
    return moment


cdef class CompiledEntry:
    """An Entry in C structures; immutable."""
    cdef Plan plan
    cdef Memory memory
    cdef readonly object entry               # the description
    cdef readonly str name
    cdef tuple callbacks
    cdef object finish, raise_site, launch
    cdef readonly int64_t used               # what `moment` was when it last served a call

    def __cinit__(self, entry):
        cdef Compiler compiler = Compiler()
        self.memory = Memory()
        self.entry, self.name = entry, entry.name
        self.callbacks, self.finish, self.raise_site = tuple(entry.callbacks), entry.finish, entry.raise_site
        self.launch = entry.launch
        compiler.memory, compiler.plan, compiler.entry = self.memory, &self.plan, entry
        compiler.compile()
        if entry.uses_blas:
            load_blas()
        if entry.uses_fourier:
            load_fourier()

    @property
    def arity(self):
        """How many positional arguments it takes."""
        return self.plan.arity


ctypedef PyObject* (*Trial)(CompiledEntry, PyObject**, bint*) noexcept    # with the error left set: `try` costs more
cdef object list_full = ListFull             # no name is looked up where an error is set


cdef object try_entry(CompiledEntry entry, PyObject** args, bint* matched):
    """The result when the call matches; `matched` says whether it does. A run in which a list has outgrown its
    room is begun again: `raise_site` has made the room larger."""
    cdef PyObject* result
    while True:
        result = (<Trial>try_once)(entry, args, matched)
        if result == NULL and PyErr_ExceptionMatches(list_full):
            PyErr_Clear()
            continue
        return mp_owned(result)


cdef object try_once(CompiledEntry entry, PyObject** args, bint* matched):
    cdef Frame frame
    cdef char stack[STACK_BYTES]
    cdef void* memory = stack
    if entry.plan.frame_bytes > STACK_BYTES:
        memory = malloc(<size_t>entry.plan.frame_bytes)
        if memory == NULL:
            raise MemoryError
    lay_out(&frame, &entry.plan, <char*>memory)
    try:
        matched[0] = match_call(&entry.plan, args, &frame)
        return run(entry, &frame) if matched[0] else None
    finally:
        release_frame(&frame, &entry.plan)
        if memory != stack:
            free(memory)


cdef bint matches_call(CompiledEntry entry, PyObject** args) except -1:
    """Whether a call matches, without running it."""
    cdef Frame frame
    cdef Memory memory = Memory()
    lay_out(&frame, &entry.plan, <char*>memory.take(entry.plan.frame_bytes))
    try:
        return match_call(&entry.plan, args, &frame) != 0
    finally:
        release_frame(&frame, &entry.plan)
