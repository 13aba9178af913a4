"""The one prebuilt extension: everything between a Python call and a native entry.

In: entries (runtime/entry.py) and calls. Out: NumPy arrays and scalars. Example:
    result, = run_entry(library.address, [x], [("f64", (3,))], [])
"""

ABI_VERSION = 1
