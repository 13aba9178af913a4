"""What compiled packages get of the extension: one file for Python 3.11 and all that comes after it.

In: nothing. Out: `EXTENSION`, the file. Example: `shutil.copyfile(EXTENSION, folder / "dispatch.abi3.so")`.
"""

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

EXTENSION = Path(__file__).with_name("dispatch" + EXTENSION_SUFFIXES[0])  # setuptools knows no other name here
FIRST = "cp311"  # the first version that it is for, as wheels name it
