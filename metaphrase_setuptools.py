"""What setuptools asks of metaphrase when it builds a project: an entry point, outside the package.

In: a distribution that setuptools is about to build. Out: nothing, or commands that compile its modules, where
`[tool.metaphrase]` of its pyproject.toml or `metaphrase.build.extensions` in its setup.py names some. Example:

    [tool.metaphrase]
    modules = ["pkg.orbits"]

setuptools calls this for every project that is built where metaphrase is installed: those that do not name it pay for
one look at a file, and need no metaphrase that can be imported.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def finalize(distribution: Any) -> None:
    """The entry point of `setuptools.finalize_distribution_options`."""
    table = _table(Path("pyproject.toml"))
    marked = [e for e in distribution.ext_modules or () if hasattr(e, "metaphrase_options")]
    if table is not None or marked:
        from metaphrase.build import prepare

        prepare(distribution, table, marked)


def _table(path: Path) -> Any:
    """`[tool.metaphrase]`; None where there is none. What does not read is for setuptools to complain about."""
    try:
        with path.open("rb") as file:
            return tomllib.load(file).get("tool", {}).get("metaphrase")
    except (OSError, ValueError):
        return None
