"""Map the four rooms of the repository onto one package, and build its one extension module.

In: the folders pysrc, astpasses, runtime, cli. Out: the package `metaphrase` with its subpackages `astpasses`,
`runtime` and `cli`, the extension `metaphrase.runtime.dispatch`, and the module that setuptools asks when it builds
other projects. Example: `python -m pip install -e .`. Everything that is not this mapping stands in pyproject.toml.
"""

from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

ROOMS = {
    "metaphrase": "pysrc",
    "metaphrase.astpasses": "astpasses",
    "metaphrase.runtime": "runtime",
    "metaphrase.cli": "cli",
}


def packages() -> list[str]:
    """Each room and every package inside it, by its dotted name."""
    return [
        name
        for room, folder in ROOMS.items()
        for name in [room, *(f"{room}.{inner}" for inner in find_packages(folder))]
    ]


dispatch = Extension(
    "metaphrase.runtime.dispatch",
    ["runtime/dispatch.pyx"],
    include_dirs=[numpy.get_include(), "runtime"],
    depends=sorted(str(path) for pattern in ("*.pxi", "*.h") for path in Path("runtime").glob(pattern)),
    define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION")],
    extra_compile_args=["-O3", "-fno-math-errno"],
)

setup(
    packages=packages(),
    py_modules=["metaphrase_setuptools"],
    package_dir=dict(ROOMS),
    package_data={"metaphrase": ["py.typed"], "metaphrase.runtime": ["*.h", "*.pyx", "*.pxi", "*.pyi"]},
    ext_modules=cythonize([dispatch], language_level=3),
)
