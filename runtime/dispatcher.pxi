# The callable that a user's jitted function is.
#
# In: entries, and functions of the pipeline for what entries do not serve. Out: a call in well under a
# microsecond. Example: f = Dispatcher(function, ("x",), miss=compile_and_run); f(x)

cdef enum:
    STACK_ARGUMENTS = 24

REQUIRED = object()                          # in Dispatcher's defaults: the parameter has none
cdef PyObject* required = <PyObject*>REQUIRED
cdef bint bypassed = False
cdef bint passed_over = False


def disable(bint value):
    """While true every dispatcher calls the function that it was made for; the previous setting."""
    global bypassed
    before = bypassed
    bypassed = value
    return before


def pass_over(bint value):
    """While true no dispatcher tries its entries: every call is a miss."""
    global passed_over
    passed_over = value


cdef Memory room_for_items():
    """Memory for copies of the items of tuples, where they can't be read in place; else None."""
    return Memory() if MP_MANY_PYTHONS else None


cdef PyObject** items(tuple args, Memory room) except? NULL:
    """The items of a tuple, which are valid as long as the tuple and the room are."""
    cdef Py_ssize_t index
    cdef PyObject** copies
    if room is None:
        return mp_items(args)
    copies = <PyObject**>room.take(len(args) * sizeof(void*))
    for index in range(len(args)):
        copies[index] = PyTuple_GET_ITEM(args, index)
    return copies


cdef class Referable:
    """Weak references to it are possible. (Cython 3.3 makes no class of the stable ABI that has these and a `__dict__`.)"""
    cdef object __weakref__


# Calls the first entry that matches, else `miss(args)`.
#
# `function`: the user's own, called when dispatching is disabled. `parameters`: its parameter names, or
# None when it has *args or **kwargs; then, and for calls with the wrong arguments, `bind(args, kwargs)` gives
# the positional tuple or raises Python's TypeError. `positional_only` of the parameters come first, `keyword_only`
# of them last; `defaults` has one value a parameter, REQUIRED where there is none. `miss(args)`
# gets the bound tuple, adds entries by `add`, and gives the call's result, usually by `run(entry, args)`.
# Before a call that finds another code or other default values in the function that is `watch`ed, `renew()`
# is called; it calls `lay_out` with what the parameters are now.
cdef class Dispatcher(Referable):
    """A function that metaphrase translates when it is called: `lower` and `source` show what became of it, `py_func` is
    the function as it was written."""
    cdef vectorcallfunc vectorcall
    cdef readonly object function
    cdef readonly tuple parameters
    cdef readonly tuple defaults
    cdef readonly Py_ssize_t keyword_only, positional_only
    cdef public object miss
    cdef public object bind
    cdef public object renew
    cdef object watched                      # a Python function, or None
    cdef tuple state                         # its code, defaults and keyword defaults
    cdef tuple compiled                      # CompiledEntry, newest first; replaced as a whole, never changed
    cdef dict index                          # by which one of many is found (find.pxi)
    cdef readonly Py_ssize_t hits, misses
    cdef dict __dict__

    def __cinit__(self, *args, **kwargs):
        self.vectorcall = <vectorcallfunc>mp_outer_call
        self.compiled, self.index = (), {}

    def __init__(self, function=None, parameters=None, *, miss=None, bind=None, defaults=None, keyword_only=0,
                 positional_only=0):
        self.function, self.miss, self.bind = function, miss, bind
        self.lay_out(parameters, defaults, keyword_only, positional_only)

    def lay_out(self, parameters, defaults=None, keyword_only=0, positional_only=0):
        """The function's parameters from now on. Entries made for other ones are forgotten."""
        before = self.parameters
        self.keyword_only, self.positional_only = keyword_only, positional_only
        self.parameters = None if parameters is None else tuple([sys.intern(name) for name in parameters])
        self.defaults = None
        if parameters is not None:
            self.defaults = tuple(defaults) if defaults is not None else (REQUIRED,) * len(self.parameters)
            if len(self.defaults) != len(self.parameters):
                raise ValueError("defaults has one value a parameter (REQUIRED for none)")
        if self.parameters != before:
            self.clear()

    def watch(self, function):
        """Call `renew` when a Python function's code or default values are replaced."""
        keywords = function.__kwdefaults__
        self.state = (function.__code__, function.__defaults__, keywords and dict(keywords))
        self.watched = function

    @property
    def entries(self):
        """The compiled entries in the order in which they are tried."""
        return self.compiled

    def add(self, entry):
        """Compile a description and put it first; the CompiledEntry."""
        compiled = entry if isinstance(entry, CompiledEntry) else CompiledEntry(entry)
        if self.parameters is not None and compiled.arity > len(self.parameters):
            raise ValueError(f"{compiled.name} takes {compiled.arity} arguments, the function {len(self.parameters)}")
        self.compiled = (compiled, *self.compiled)
        return compiled

    def remove(self, entry):
        """Forget one entry. A call that runs it now ends as ever."""
        self.compiled = tuple([one for one in self.compiled if one is not entry])
        forget(self.index, entry)

    def clear(self):
        """Forget all entries: the next call misses."""
        self.compiled, self.index = (), {}

    def run(self, CompiledEntry entry, tuple args):
        """Call `entry` with a bound tuple. LookupError when the arguments do not match it."""
        cdef bint matched = False
        cdef Memory memory = room_for_items()
        if len(args) < entry.plan.arity:
            raise TypeError(f"{entry.name} takes {entry.plan.arity} arguments, not {len(args)}")
        result = try_entry(entry, items(args, memory), &matched)
        if not matched:
            raise LookupError(f"the arguments do not match {entry.name}")
        return result

    def matches(self, CompiledEntry entry, tuple args):
        """Whether a bound tuple matches `entry`, without calling it."""
        cdef Memory memory = room_for_items()
        return len(args) >= entry.plan.arity and matches_call(entry, items(args, memory))

    def __get__(self, instance, owner):
        return self if instance is None else mp_new_method(self, instance)

    def __copy__(self):
        return self                          # as functions are

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return self.reduce()                 # set by who made it

    def __repr__(self):
        name = getattr(self, "__name__", self.function)
        if self.function is None and name is not None:
            return f"<compiled {name} of {self.__module__}>"
        return f"<jit of {name}>"

    def __call__(self, *args, **kwargs):     # only for who asks for `__call__`: calls use the vectorcall slot
        cdef Memory memory = room_for_items()
        cdef tuple given = (*args, *kwargs.values()), names = tuple(kwargs)
        return mp_outer_call(<PyObject*>self, items(given, memory), len(args), <PyObject*>names if names else NULL)

    def __metaphrase_stage__(self, args, kwargs):
        """What staged code does with a call of this function: `stage(args, kwargs)`, set by who made it."""
        return self.stage(args, kwargs)

    cdef object slow(self, tuple args, dict kwargs):
        """Bind by the pipeline's `bind`, then as ever."""
        if self.bind is None:
            raise TypeError("the arguments do not fit the function's parameters")
        cdef tuple bound = self.bind(args, kwargs)
        cdef Memory memory = room_for_items()
        return self.dispatch(items(bound, memory), len(bound), bound)

    cdef object dispatch(self, PyObject** args, Py_ssize_t count, tuple bound):
        global moment
        cdef bint matched = False
        cdef CompiledEntry entry
        cdef Py_ssize_t index
        cdef tuple entries = () if passed_over else self.compiled   # this tuple, and so its entries, live until the call is over
        cdef Py_ssize_t total = PyTuple_GET_SIZE(entries)
        for index in range(total if total < TRIED_FIRST else TRIED_FIRST):
            entry = <CompiledEntry>PyTuple_GET_ITEM(entries, index)
            if entry.plan.arity <= count:
                result = try_entry(entry, args, &matched)
                if matched:
                    moment += 1
                    entry.used = moment
                    self.hits += 1
                    return result
        if total > TRIED_FIRST:
            entry = self.find(args, count, entries)
            if entry is not None:
                result = try_entry(entry, args, &matched)
                if matched:
                    moment += 1
                    entry.used = moment
                    self.hits += 1
                    return result
        self.misses += 1
        if self.miss is None:
            raise LookupError("no entry matches the call")
        if bound is None:
            bound = tuple([<object>args[index] for index in range(count)])
        return self.miss(bound)

    cdef CompiledEntry find(self, PyObject** args, Py_ssize_t count, tuple entries):
        """The entry behind the newest ones that a call matches, or None."""
        cdef CompiledEntry entry = find_known(self.index, args, count)
        cdef Py_ssize_t index
        if entry is not None and entry.plan.arity <= count and matches_call(entry, args):
            return entry
        for index in range(TRIED_FIRST, PyTuple_GET_SIZE(entries)):
            entry = <CompiledEntry>PyTuple_GET_ITEM(entries, index)
            if entry.plan.arity <= count and matches_call(entry, args):
                if len(self.index) > 4 * PyTuple_GET_SIZE(entries):
                    self.index = {}          # calls of ever other outlines
                remember(self.index, args, count, entry, PyTuple_GET_SIZE(entries))
                return entry
        return None


cdef bint bind_simple(Dispatcher self, PyObject** args, Py_ssize_t given, PyObject* names, PyObject** bound) noexcept:
    """Positional arguments, keywords and defaults into `bound`; False for anything that Python would
    refuse."""
    cdef Py_ssize_t total = PyTuple_GET_SIZE(self.parameters)
    cdef Py_ssize_t index, at, keywords = 0 if names == NULL else PyTuple_GET_SIZE(<object>names)
    cdef PyObject* name
    if given > total - self.keyword_only:
        return False
    for index in range(total):
        bound[index] = args[index] if index < given else NULL
    for at in range(keywords):
        name = PyTuple_GET_ITEM(<object>names, at)
        for index in range(given if given > self.positional_only else self.positional_only, total):
            if PyTuple_GET_ITEM(self.parameters, index) == name:
                break
        else:
            return False
        if bound[index] != NULL:
            return False
        bound[index] = args[given + at]
    for index in range(given, total):
        if bound[index] == NULL:
            bound[index] = PyTuple_GET_ITEM(self.defaults, index)
            if bound[index] == required:
                return False
    return True


cdef object dispatcher_vectorcall(PyObject* callable, PyObject** args, size_t flagged, PyObject* names):
    cdef Dispatcher self = <Dispatcher>callable
    cdef Py_ssize_t given = PyVectorcall_NARGS(flagged)
    cdef PyObject* bound[STACK_ARGUMENTS]
    if self.watched is not None and not function_holds(<PyObject*>self.watched, <PyObject*>self.state):
        self.renew()
    if self.parameters is not None and not bypassed:
        if names == NULL and given == PyTuple_GET_SIZE(self.parameters) and self.keyword_only == 0:
            return self.dispatch(args, given, None)
        if PyTuple_GET_SIZE(self.parameters) <= STACK_ARGUMENTS and bind_simple(self, args, given, names, bound):
            return self.dispatch(bound, PyTuple_GET_SIZE(self.parameters), None)
    positional = tuple([<object>args[index] for index in range(given)])
    keywords = {}
    if names != NULL:
        for index in range(PyTuple_GET_SIZE(<object>names)):
            keywords[<object>PyTuple_GET_ITEM(<object>names, index)] = <object>args[given + index]
    return self.function(*positional, **keywords) if bypassed else self.slow(positional, keywords)


cdef bint blas_loaded = False


def _of_scipy(name):
    """An extension of scipy.linalg, without the eighty modules that importing scipy.linalg takes a tenth of a second for."""
    from importlib import import_module, machinery, util
    whole = f"scipy.linalg.{name}"
    if whole not in sys.modules:
        import scipy
        places = (os.path.join(scipy.__path__[0], "linalg", name + ending) for ending in machinery.EXTENSION_SUFFIXES)
        path = next(filter(os.path.exists, places), None)
        if path is not None:
            spec = util.spec_from_file_location(whole, path)
            try:
                module = util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
            except ImportError:  # SciPy's package prepares something first
                pass
            finally:
                sys.modules.pop(whole, None)  # whoever imports it has it from scipy.linalg, the same one
    return import_module(whole)


def load_blas():
    """Fill the table of BLAS and LAPACK routines from SciPy's; once."""
    global blas_loaded
    if blas_loaded:
        return
    lapack, blas = _of_scipy("cython_lapack"), _of_scipy("cython_blas")
    capsules = {**lapack.__pyx_capi__, **blas.__pyx_capi__}
    for index, name in enumerate(abi.BLAS_ROUTINES):
        capsule = capsules[name]
        mp_blas_table[<Py_ssize_t>index] = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    mp_find_blas_threads(os.fsencode(blas.__file__))
    blas_loaded = True


cdef bint fourier_loaded = False


def load_fourier():
    """Fill the table of Fourier transforms from NumPy's; once. Where NumPy has others than expected it stays empty: programs
    have transforms of their own."""
    global fourier_loaded
    if fourier_loaded:
        return
    fourier_loaded = True
    try:
        import numpy.fft._pocketfft_umath as numpys
        halves = {MP_rfft_even: numpys.rfft_n_even, MP_rfft_odd: numpys.rfft_n_odd, MP_irfft: numpys.irfft}
        ufuncs = {MP_fft: numpys.fft, MP_ifft: numpys.ifft, **halves}
    except (ImportError, AttributeError):
        return
    for which, ufunc in ufuncs.items():
        if isinstance(ufunc, np.ufunc) and ufunc.signature:
            mp_take_fourier(which, ufunc)
    if not fourier_is_right():
        mp_forget_fouriers()


cdef bint fourier_is_right() except -1:
    """Whether each transform gives what NumPy's functions give."""
    cdef cnp.ndarray x, y
    whole, real = np.array([1, -3 + 1j, 2, 0.5j, 4]), np.array([1, -3, 2, 0.5, 4, -1])
    for which, x, wanted in (
        (MP_fft, whole, np.fft.fft(whole)),
        (MP_ifft, whole, np.fft.ifft(whole, norm="forward")),
        (MP_rfft_even, real, np.fft.rfft(real)),
        (MP_rfft_odd, real[:5], np.fft.rfft(real[:5])),
        (MP_irfft, whole[:4], np.fft.irfft(whole[:4], 6, norm="forward")),
    ):
        y = np.zeros_like(wanted)
        if not mp_transform(which, cnp.PyArray_DATA(x), cnp.PyArray_DATA(y), x.size, y.size):
            return False
        if not np.allclose(y, wanted, 1e-12):
            return False
    return True


cdef int64_t thread_count = 1


def set_threads(int64_t count):
    """The number of threads that kernels may use, as they read it from the context."""
    global thread_count
    thread_count = count


def get_threads():
    """The number that `set_threads` has set; runtime/threads.py decides it."""
    return thread_count


def wake_from(int64_t nanoseconds):
    """The time of a loop's parts that is worth waking threads for; the time before."""
    global mp_pool_wake_from
    before = mp_pool_wake_from
    mp_pool_wake_from = nanoseconds
    return before


def called_fast(cls):
    """Decorator for subclasses of Dispatcher: Python 3.11 does not let them inherit the fast way of being
    called."""
    return mp_called_fast(cls, mp_vectorcall_offset)


mp_inner = dispatcher_vectorcall
cdef object method_type = types.MethodType
mp_method_type = <PyObject*>method_type
cdef Dispatcher sample = Dispatcher()
cdef Py_ssize_t mp_vectorcall_offset = <char*>&sample.vectorcall - <char*><PyObject*>sample
sample = None
globals()["Dispatcher"] = mp_called_fast(Dispatcher, mp_vectorcall_offset)
