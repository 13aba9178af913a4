"""Every primitive with samples, by kernels on the emulated GPU: what its NumPy rule gives.

And docs/gpu.md says how each is computed; the table there is written by `pytest tests/gpu/test_registry.py
--update-golden`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated import SMALL, TARGETS
from primitives import NAMES, check_primitive
from turns import part, turn

from metaphrase.core import native
from metaphrase.core.primitive import REGISTRY

DOCUMENT = Path(__file__).parents[2] / "docs" / "gpu.md"
TARGET = part(TARGETS.values(), 2, of=4)[0]
BEGIN, END = "<!-- written by tests/gpu/test_registry.py -->", "<!-- end -->"
WAYS = {
    native.Point: "in a kernel, element by element",
    native.Move: "in the kernels that read it: no memory of its own",
    native.Iota: "in the kernels that read it: no memory of its own",
    native.Gather: "in a kernel, each index checked",
    native.Put: "in a kernel; what may meet in one place is sorted, and done in the order of the program",
    native.Reduce: "in a kernel: rows by a block each, few long sums by parts",
    native.Scan: "in a kernel, line by line",
    native.Lib: "by CuPy's libraries",
    native.Region: "around kernels, or inside one",
    native.Composite: "written out in other primitives",
}


@pytest.mark.parametrize("name", turn(NAMES, 12))
def test_primitive(name):
    check_primitive(name, TARGET)


def way(name: str) -> str:
    """How a GPU computes a primitive."""
    if SMALL.offer(name) is not None:
        return WAYS[native.Lib]
    return next((text for kind, text in WAYS.items() if isinstance(REGISTRY[name].native, kind)), "by the host")


def table() -> str:
    """Which primitives are computed how."""
    found: dict[str, list[str]] = {}
    for name in NAMES:
        found.setdefault(way(name), []).append(f"`{name}`")
    rows = [f"| {text} | {', '.join(names)} |" for text, names in sorted(found.items(), key=lambda row: -len(row[1]))]
    return "\n".join(["| how | primitives |", "|---|---|", *rows])


def test_the_document_tells_how(request):
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    told, after = rest.split(END)
    wanted = f"\n\n{table()}\n\n"
    if request.config.getoption("--update-golden"):
        DOCUMENT.write_text(f"{before}{BEGIN}{wanted}{END}{after}")
    else:
        assert told == wanted, "docs/gpu.md is not what the registry says: run with --update-golden"
