# Descriptions (runtime/entry.py) compiled into C structures.
#
# In: an Entry. Out: a `CompiledEntry` whose nodes, sources and programs are plain memory; every Python object
# that they point to is kept alive by its list `owned`. Example: `compiled = CompiledEntry(Entry(...))`.

cdef enum NodeKind:
    NODE_ARRAY, NODE_DEVICE, NODE_SCALAR, NODE_FLOAT, NODE_INT, NODE_BOOL, NODE_COMPLEX, NODE_SIZE, NODE_STATIC, NODE_ANY
    NODE_TUPLE, NODE_LIST, NODE_DICT, NODE_RECORD, NODE_CUSTOM, NODE_RESULT, NODE_ARGUMENT

cdef enum SourceKind:
    SOURCE_POSITION, SOURCE_HELD, SOURCE_CELL, SOURCE_ITEM, SOURCE_GETTER

cdef enum DimKind:
    DIM_CONSTANT, DIM_BIND, DIM_CHECK

cdef enum Form:
    FORM_ARRAY, FORM_SCALAR, FORM_PYTHON, FORM_RUNTIME, FORM_LAUNCHED

cdef struct Program:                         # postfix, runtime/entry.py
    int64_t* code
    Py_ssize_t length                        # in int64s; two a step

cdef struct DimPlan:
    int kind
    int64_t value                            # the constant, or the symbol
    int64_t minimum                          # of a symbol that is bound here

cdef struct NodePlan:
    int kind
    int number                               # place in Frame.objects, -1: not remembered
    int buffer                               # index of the parameter, -1: none
    int slot                                 # place of a scalar's bytes
    int rank
    int element                              # result or node number that an output names
    int device                               # of an array of a GPU: which one
    bint written
    bint descends                            # an array: whether its strides must descend
    bint returned                            # an output names it: held until then
    bint plain_dtype                         # PyArray_ScalarAsCtype knows it
    PyObject* type                           # type, or descr of an array or scalar
    PyObject* value                          # static value, auxiliary data, dtype of a GPU's array
    PyObject* same                            # of a static value: whether another object can stand for it
    bint asked                               # whether the object itself must be asked too
    PyObject* key                            # gives the same for all objects that can stand for each other
    PyObject* flatten
    PyObject* unflatten
    DimPlan* dims
    Py_ssize_t count
    NodePlan* children
    PyObject** keys
    bint ordered                              # whether a dict must have its keys in this order

cdef struct StepPlan:
    bint attribute
    PyObject* key

cdef struct SourcePlan:
    int kind
    Py_ssize_t index
    PyObject* object
    PyObject* key
    Py_ssize_t count
    StepPlan* steps

cdef struct RootPlan:
    SourcePlan source
    NodePlan node

cdef enum GuardKind:
    GUARD_IS, GUARD_EQUAL, GUARD_NAMES, GUARD_METHOD, GUARD_FUNCTION, GUARD_CLASS

cdef struct GuardPlan:
    SourcePlan source
    PyObject* expected
    int kind
    unsigned int version                     # of a class: the last one that was as expected, 0: none

cdef struct ComparePlan:
    int operator
    Program left
    Program right

cdef struct SolvePlan:                       # a symbol that no dim is alone
    int64_t symbol
    int64_t minimum
    Program value

cdef struct ResultPlan:
    int form
    int rank
    int slot
    int written_from                         # node number of the array that an in-place write gives, -1: none
    int buffer                               # that array's parameter index
    PyObject* descr
    Program* dims

cdef struct WritePlan:
    int result
    int number
    bint in_place
    bint contiguous

cdef struct StorePlan:
    SourcePlan source
    PyObject* name
    bint item
    NodePlan value

cdef struct Plan:
    mp_entry address
    Py_ssize_t arity                         # positional parameters
    Py_ssize_t roots, guards, solves, compares, results, writes, stores, parameters, symbols, sames
    Py_ssize_t nodes, slots, held, sizes     # sizes of a frame's arrays
    RootPlan* root
    GuardPlan* guard
    SolvePlan* solve
    ComparePlan* compare
    ResultPlan* result
    WritePlan* write
    StorePlan* store
    int* same                                # pairs of node numbers
    int* parameter_node                      # node number of each parameter
    NodePlan output
    Program work
    bint run_time_results
    Py_ssize_t frame_bytes

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
GUARDS = {"is": GUARD_IS, "equal": GUARD_EQUAL, "names": GUARD_NAMES, "method": GUARD_METHOD, "function": GUARD_FUNCTION,
          "class": GUARD_CLASS}
KINDS = {float: NODE_FLOAT, int: NODE_INT, bool: NODE_BOOL, complex: NODE_COMPLEX}
FORMS = {"array": FORM_ARRAY, "scalar": FORM_SCALAR, "python": FORM_PYTHON}


cdef struct MemoryBlock:
    MemoryBlock* next
    int64_t unused                           # keeps what follows aligned to 16 bytes


cdef class Memory:
    """C memory that lives as long as this object, and Python objects that live as long as the memory."""
    cdef MemoryBlock* blocks                 # no Python list: the collector may clear that before it frees this
    cdef list owned

    def __cinit__(self):
        self.owned = []

    cdef void* take(self, Py_ssize_t nbytes) except NULL:
        cdef MemoryBlock* block = <MemoryBlock*>calloc(1, <size_t>nbytes + sizeof(MemoryBlock))
        if block == NULL:
            raise MemoryError
        block.next = self.blocks
        self.blocks = block
        return block + 1

    cdef PyObject* own(self, object value):
        self.owned.append(value)
        return <PyObject*>value

    def __dealloc__(self):
        cdef MemoryBlock* block
        while self.blocks != NULL:
            block = self.blocks
            self.blocks = block.next
            free(block)


cdef class Compiler:
    """Fills the Plan of one Entry; afterwards only `memory` is kept."""
    cdef Memory memory
    cdef Plan* plan
    cdef object entry
    cdef dict symbols                        # name -> index
    cdef set bound
    cdef dict numbers                        # id(tree) -> node number
    cdef dict parameters                     # id(leaf) -> parameter index
    cdef set written
    cdef list places                         # the address of each node, by number
    cdef list hidden                         # (hidden symbol, the dim that it must equal)

    cdef int compile(self) except -1:
        entry, plan = self.entry, self.plan
        self.symbols = {name: index for index, name in enumerate(entry.symbols)}
        self.bound, self.numbers = set(), {}
        self.parameters = {id(leaf): index for index, leaf in enumerate(entry.parameters)}
        self.written = {id(write.leaf) for write in entry.writes}
        if not entry.address and entry.launch is None:
            raise ValueError(f"the entry {entry.name} has no address")
        plan.address = <mp_entry><size_t>entry.address
        plan.parameters, plan.symbols = len(entry.parameters), len(entry.symbols)
        plan.sizes, self.hidden, self.places = plan.symbols, [], []
        self.compile_roots(entry)
        self.compile_guards(entry)
        plan.parameter_node = <int*>self.memory.take(plan.parameters * sizeof(int))
        for index, leaf in enumerate(entry.parameters):
            plan.parameter_node[<Py_ssize_t>index] = self.number_of(leaf, "a parameter")
        self.compile_results(entry)
        self.compile_stores(entry)
        if entry.finish is None:
            self.compile_node(entry.output, &plan.output, True)
        self.program(entry.work, &plan.work)
        plan.frame_bytes = (plan.nodes * sizeof(void*) + plan.held * sizeof(void*)
                            + (plan.parameters + plan.results) * sizeof(void*) + plan.sizes * sizeof(int64_t)
                            + plan.slots * 16 + plan.results * sizeof(void*)
                            + (plan.results * sizeof(Dynamic) if plan.run_time_results else 0) + 64)
        return 0

    cdef int compile_roots(self, object entry) except -1:
        cdef Py_ssize_t index
        plan = self.plan
        plan.roots = len(entry.roots)
        plan.root = <RootPlan*>self.memory.take(plan.roots * sizeof(RootPlan))
        for index in range(plan.roots):
            self.source(entry.roots[index].source, &plan.root[index].source)
            self.compile_node(entry.roots[index].tree, &plan.root[index].node, False)
        self.compile_solutions([name for name in entry.symbols if name not in self.bound])
        return 0

    cdef int compile_solutions(self, list names) except -1:
        cdef Py_ssize_t index
        found = descriptions.solved_sizes(names, self.hidden, self.symbols)
        missing = [name for name in names if name not in dict(found)]
        if missing:
            raise ValueError(f"no argument of {self.entry.name} has the size {', '.join(missing)}")
        self.plan.solves = len(found)
        self.plan.solve = <SolvePlan*>self.memory.take(self.plan.solves * sizeof(SolvePlan))
        for index, (name, code) in enumerate(found):
            self.plan.solve[index].symbol = self.symbols[name]
            self.plan.solve[index].minimum = self.least(name)
            self.code(code, &self.plan.solve[index].value)
        return 0

    cdef int64_t least(self, str name) except -1:
        """The least value that a symbol may have."""
        minimum = self.entry.minimum
        return 2 if minimum is None else minimum.get(name, 2)

    cdef int compile_guards(self, object entry) except -1:
        cdef Py_ssize_t index
        plan = self.plan
        plan.guards = len(entry.guards)
        plan.guard = <GuardPlan*>self.memory.take(plan.guards * sizeof(GuardPlan))
        for index in range(plan.guards):
            guard = entry.guards[index]
            if guard.mode not in GUARDS:
                raise ValueError(f"a guard's mode is one of {', '.join(GUARDS)}, not {guard.mode!r}")
            self.source(guard.source, &plan.guard[index].source)
            plan.guard[index].expected = self.memory.own(guard.expected)
            plan.guard[index].kind = GUARDS[guard.mode]
        plan.compares = len(entry.comparisons) + len(self.hidden)
        plan.compare = <ComparePlan*>self.memory.take(plan.compares * sizeof(ComparePlan))
        for index in range(<Py_ssize_t>len(entry.comparisons)):
            comparison = entry.comparisons[index]
            plan.compare[index].operator = COMPARISONS.index(comparison.operator)
            self.program(comparison.left, &plan.compare[index].left)
            self.program(comparison.right, &plan.compare[index].right)
        for index, (symbol, dim) in enumerate(self.hidden, len(entry.comparisons)):
            self.code([descriptions.SIZE, symbol], &plan.compare[index].left)
            self.program(dim, &plan.compare[index].right)
        plan.sames = len(entry.same)
        plan.same = <int*>self.memory.take(2 * plan.sames * sizeof(int))
        for index in range(plan.sames):
            plan.same[2 * index] = self.number_of(entry.same[index][0], "an array of `same`")
            plan.same[2 * index + 1] = self.number_of(entry.same[index][1], "an array of `same`")
        return 0

    cdef int compile_results(self, object entry) except -1:
        cdef Py_ssize_t index, axis
        cdef ResultPlan* result
        plan = self.plan
        plan.results = len(entry.results)
        plan.result = <ResultPlan*>self.memory.take(plan.results * sizeof(ResultPlan))
        for index in range(plan.results):
            description = entry.results[index]
            result = &plan.result[index]
            result.descr = self.memory.own(np.dtype(description.dtype))
            result.written_from = result.buffer = -1
            if entry.launch is not None:
                result.form = FORM_LAUNCHED
                continue
            result.slot = <int>plan.slots
            plan.slots += 1
            if isinstance(description, descriptions.RunTime):
                result.form, result.rank, plan.run_time_results = FORM_RUNTIME, description.rank, True
                continue
            result.rank = len(description.dims)
            result.form = FORM_ARRAY if result.rank else FORMS[description.form]
            result.dims = <Program*>self.memory.take(result.rank * sizeof(Program))
            for axis in range(result.rank):
                self.program(description.dims[axis], &result.dims[axis])
        plan.writes = len(entry.writes)
        plan.write = <WritePlan*>self.memory.take(plan.writes * sizeof(WritePlan))
        for index in range(plan.writes):
            write = entry.writes[index]
            plan.write[index].result, plan.write[index].in_place = write.result, write.in_place
            plan.write[index].contiguous = write.contiguous
            plan.write[index].number = self.number_of(write.leaf, "a written array")
            result = &plan.result[<Py_ssize_t>write.result]
            if result.form != FORM_RUNTIME and result.rank == 0:
                result.form = FORM_ARRAY
            if write.in_place:
                result.written_from, result.buffer = plan.write[index].number, self.parameters[id(write.leaf)]
        return 0

    cdef int compile_stores(self, object entry) except -1:
        cdef Py_ssize_t index
        plan = self.plan
        plan.stores = len(entry.stores)
        plan.store = <StorePlan*>self.memory.take(plan.stores * sizeof(StorePlan))
        for index in range(plan.stores):
            store = entry.stores[index]
            self.source(store.source, &plan.store[index].source)
            if plan.store[index].source.kind == SOURCE_POSITION:
                raise ValueError(f"{entry.name} stores into an argument")
            plan.store[index].name = self.memory.own(store.name if store.item else sys.intern(store.name))
            plan.store[index].item = store.item
            self.compile_node(store.value, &plan.store[index].value, True)
        return 0

    cdef int number_of(self, object tree, str role) except -2:
        if id(tree) not in self.numbers:
            raise ValueError(f"{role} of {self.entry.name} is not a leaf of its roots: {tree}")
        return self.numbers[id(tree)]

    cdef int program(self, object dim, Program* program) except -1:
        return self.code(descriptions.size_program(dim, self.symbols), program)

    cdef int code(self, list code, Program* program) except -1:
        program.length = len(code)
        program.code = <int64_t*>self.memory.take(program.length * sizeof(int64_t))
        for index, word in enumerate(code):
            program.code[<Py_ssize_t>index] = word
        return 0

    cdef int source(self, object source, SourcePlan* plan) except -1:
        steps = ()
        while isinstance(source, descriptions.Path):
            source, steps = source.source, (*source.steps, *steps)
        plan.count = len(steps)
        plan.steps = <StepPlan*>self.memory.take(plan.count * sizeof(StepPlan))
        for index, (kind, key) in enumerate(steps):
            plan.steps[<Py_ssize_t>index].attribute = ("item", "attribute").index(kind)
            plan.steps[<Py_ssize_t>index].key = self.memory.own(key)
        self.plan.held += 2 + plan.count
        if isinstance(source, descriptions.Position):
            plan.kind, plan.index = SOURCE_POSITION, source.index
            self.plan.arity = max(self.plan.arity, plan.index + 1)
        elif isinstance(source, descriptions.Held):
            plan.kind, plan.object = SOURCE_HELD, self.memory.own(source.value)
        elif isinstance(source, descriptions.Cell):
            plan.kind, plan.object = SOURCE_CELL, self.memory.own(source.cell)
            if not isinstance(source.cell, types.CellType):
                raise TypeError(f"Cell of {source.cell!r}, which is no cell")
        elif isinstance(source, descriptions.Item):
            plan.kind, plan.object = SOURCE_ITEM, self.memory.own(<dict?>source.mapping)
            plan.key = self.memory.own(source.key)
        elif isinstance(source, descriptions.Getter):
            plan.kind, plan.object = SOURCE_GETTER, self.memory.own(source.function)
        else:
            raise TypeError(f"{source!r} is not a source")
        return 0

    cdef int dim(self, object dim, DimPlan* plan) except -1:
        if isinstance(dim, int):
            plan.kind, plan.value = DIM_CONSTANT, dim
        elif dim.is_sym:
            if dim.name not in self.symbols:
                raise ValueError(f"the size {dim.name} is not among the symbols of {self.entry.name}")
            plan.value = self.symbols[dim.name]
            plan.kind = DIM_CHECK if dim.name in self.bound else DIM_BIND
            plan.minimum = self.least(dim.name)
            self.bound.add(dim.name)
        else:
            # A hidden symbol after the entry's own: bound here, compared when all symbols are bound.
            plan.kind, plan.value, plan.minimum = DIM_BIND, self.plan.sizes, 0
            self.hidden.append((self.plan.sizes, dim))
            self.plan.sizes += 1
        return 0

    cdef int compile_node(self, object tree, NodePlan* plan, bint output) except -1:
        plan.buffer = plan.slot = plan.element = -1
        plan.number = -1
        if output:
            if isinstance(tree, descriptions.Result):
                plan.kind, plan.element = NODE_RESULT, tree.index
                if not 0 <= tree.index < self.plan.results:
                    raise ValueError(f"{self.entry.name} has no result {tree.index}")
                return 0
            if isinstance(tree, descriptions.Argument):
                plan.kind, plan.element = NODE_ARGUMENT, self.number_of(tree.tree, "an output")
                (<NodePlan*><size_t>self.places[plan.element]).returned = True
                return 0
            if isinstance(tree, descriptions.Constant):
                plan.kind, plan.value = NODE_STATIC, self.memory.own(tree.value)
                return 0
        else:
            if id(tree) in self.numbers:
                raise ValueError(f"a leaf of {self.entry.name} occurs twice in its roots: {tree}")
            plan.number = <int>self.plan.nodes
            plan.buffer = self.parameters.get(id(tree), -1)
            self.numbers[id(tree)] = plan.number
            self.places.append(<size_t>plan)
            self.memory.own(tree)            # its id stays its own
            self.plan.nodes += 1
            self.plan.held += 3
            if self.leaf(tree, plan):
                return 0
        return self.container(tree, plan, output)

    cdef bint leaf(self, object tree, NodePlan* plan) except -1:
        cdef Py_ssize_t axis
        if isinstance(tree, descriptions.ArrayLeaf):
            dtype = np.dtype(tree.dtype)
            plan.kind, plan.type, plan.rank = NODE_ARRAY, self.memory.own(dtype), len(tree.dims)
            plan.written, plan.descends = id(tree) in self.written, tree.ordered
            plan.dims = <DimPlan*>self.memory.take(plan.rank * sizeof(DimPlan))
            for axis in range(plan.rank):
                self.dim(tree.dims[axis], &plan.dims[axis])
        elif isinstance(tree, descriptions.DeviceLeaf):
            plan.kind, plan.type, plan.value = NODE_DEVICE, self.memory.own(tree.kind), self.memory.own(np.dtype(tree.dtype))
            plan.rank, plan.device = len(tree.dims), tree.device
            plan.dims = <DimPlan*>self.memory.take(plan.rank * sizeof(DimPlan))
            for axis in range(plan.rank):
                self.dim(tree.dims[axis], &plan.dims[axis])
        elif isinstance(tree, descriptions.ScalarLeaf):
            dtype = np.dtype(tree.dtype)
            self.memory.own(dtype)
            plan.kind, plan.type, plan.value = NODE_SCALAR, self.memory.own(dtype.type), <PyObject*>dtype
            plan.plain_dtype = dtype.isbuiltin == 1
        elif isinstance(tree, descriptions.NumberLeaf):
            plan.kind = KINDS[tree.kind]
        elif isinstance(tree, descriptions.SizeLeaf):
            plan.kind = NODE_SIZE
            plan.dims = <DimPlan*>self.memory.take(sizeof(DimPlan))
            self.dim(tree.dim, plan.dims)
        elif isinstance(tree, descriptions.StaticLeaf):
            plan.kind, plan.value = NODE_STATIC, self.memory.own(tree.value)
            if tree.same is not None:
                plan.same, plan.asked = self.memory.own(tree.same), tree.asked
                if tree.key is not None:
                    plan.key = self.memory.own(tree.key)
        elif isinstance(tree, descriptions.AnyLeaf):
            plan.kind = NODE_ANY
        else:
            return False
        if plan.kind in (NODE_STATIC, NODE_ANY) and plan.buffer >= 0:
            raise ValueError(f"{tree} of {self.entry.name} is no number or array, so it can't be a parameter")
        if plan.buffer >= 0 and plan.kind != NODE_ARRAY and plan.kind != NODE_DEVICE:
            plan.slot = <int>self.plan.slots
            self.plan.slots += 1
        return True

    cdef int container(self, object tree, NodePlan* plan, bint output) except -1:
        cdef Py_ssize_t index
        if isinstance(tree, descriptions.Sequence):
            plan.kind = {tuple: NODE_TUPLE, list: NODE_LIST}[tree.kind]
        elif isinstance(tree, descriptions.Dictionary):
            plan.kind = NODE_DICT
            plan.ordered = tree.ordered and (len(tree.keys) > 1 or not all([type(key) is str for key in tree.keys]))
            plan.keys = <PyObject**>self.memory.take(len(tree.keys) * sizeof(void*))
            if len(tree.keys) != len(tree.children):
                raise ValueError(f"a dictionary of {self.entry.name} has keys {tree.keys} and {len(tree.children)} children")
            for index in range(len(tree.keys)):
                plan.keys[index] = self.memory.own(tree.keys[index])
        elif isinstance(tree, descriptions.Record):
            plan.kind, plan.type = NODE_RECORD, self.memory.own(tree.type)
            if not issubclass(tree.type, tuple):
                raise TypeError(f"Record of {tree.type!r}, which is no NamedTuple")
        elif isinstance(tree, descriptions.Node):
            plan.kind, plan.type, plan.value = NODE_CUSTOM, self.memory.own(tree.type), self.memory.own(tree.auxiliary)
            plan.flatten, plan.unflatten = self.memory.own(tree.flatten), self.memory.own(tree.unflatten)
        else:
            raise TypeError(f"{tree!r} is no {'output' if output else 'argument tree'} of {self.entry.name}")
        plan.count = len(tree.children)
        plan.children = <NodePlan*>self.memory.take(plan.count * sizeof(NodePlan))
        for index in range(plan.count):
            self.compile_node(tree.children[index], &plan.children[index], output)
        return 0
