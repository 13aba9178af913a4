"""The version of this package: `__version__`, and a part of every key of the cache of compiled programs.

In: nothing. Out: the version. Example:

>>> VERSION.count(".")
2
"""

VERSION = "0.1.0"
