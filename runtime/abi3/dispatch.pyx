"""The extension of compiled packages: ../dispatch.pyx, once for all versions of Python.

In, out: the same. Example: in a package `from ._metaphrase.runtime import dispatch`; nothing imports it from here. It calls
the stable ABI alone, so that a package and its wheel are for Python 3.11 and what comes after it.
"""
include "../parts.pxi"
