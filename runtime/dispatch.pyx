"""The one prebuilt extension: everything between a Python call and a native entry.

In: entries (runtime/entry.py) and calls. Out: NumPy arrays and scalars. Example:

    f = Dispatcher(function, ("x",), miss=compile_and_run)
    f.add(entry)
    f(x)                                                       # well under a microsecond over the kernel
    y, = run_entry(library.address, [x], [("float64", (3,))])  # no entry needed: for tests
"""
include "parts.pxi"
include "stack.pxi"
