"""Map the four rooms of the repository onto one package, and build its one extension module, twice.

In: the folders pysrc, astpasses, runtime, cli. Out: the package `metaphrase` with its subpackages `astpasses`,
`runtime` and `cli`; the extension `metaphrase.runtime.dispatch`, for this version of Python, and the one that compiled
packages get, for all versions from 3.11 on; and the module that setuptools asks when it builds other projects.
Example: `python -m pip install -e .`. Everything that is not this mapping stands in pyproject.toml.
"""

import os
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


LEVEL = [] if "-O" in os.environ.get("CFLAGS", "") else ["-O3"]  # what CFLAGS says stands further left


def dispatch(name: str, source: str, *macros: tuple[str, str]) -> Extension:
    return Extension(
        name,
        [source],
        include_dirs=[numpy.get_include(), "runtime"],
        depends=sorted(str(path) for pattern in ("*.pxi", "*.h") for path in Path("runtime").glob(pattern)),
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), *macros],
        extra_compile_args=[*LEVEL, "-g0", "-fno-math-errno", "-Werror=implicit-function-declaration"],
        extra_link_args=["-s"],  # each compiled package has a copy: a seventh of the size with debug information
    )


extensions = [
    dispatch("metaphrase.runtime.dispatch", "runtime/dispatch.pyx"),
    dispatch("metaphrase.runtime.abi3.dispatch", "runtime/abi3/dispatch.pyx", ("Py_LIMITED_API", "0x030B0000")),
]

setup(
    packages=packages(),
    py_modules=["metaphrase_setuptools"],
    package_dir=dict(ROOMS),
    package_data={
        "metaphrase": ["py.typed"],
        "metaphrase.explanation": ["*.css", "*.js"],
        "metaphrase.runtime": ["*.h", "*.pyx", "*.pxi", "*.pyi"],
        "metaphrase.runtime.abi3": ["*.pyx"],
    },
    ext_modules=cythonize(extensions, language_level=3),
    options={"build_ext": {"parallel": len(extensions)}},
)
