"""Which files a plan is for: those that a program comes from, and what they import, however that is written."""

from __future__ import annotations

import metaphrase
from metaphrase.api.plans import disk, sources

TEXT = """
import os, sys as s
import a.b as d  # a comment, with a comma
from x import y
from . import sib
from .rel import (
    one,  # why
    two as three,
)
from ..up import z
if True: import late; import later
from w \\
    import v
def f():
    import inner.mod
from ....too.far import q
"""


def test_imports_are_found_however_they_are_written(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(TEXT)
    found = set(sources._imported("pkg.sub.m", str(path), (0, 0)))
    plain = {"os", "sys", "a", "a.b", "x", "x.y", "late", "later", "w", "w.v", "inner", "inner.mod"}
    relative = {f"pkg.sub.{name}" for name in ("sib", "rel", "rel.one", "rel.two")}
    relative |= {"pkg", "pkg.sub", "pkg.up", "pkg.up.z"}
    assert found - {"pkg.sub.rel."} == plain | relative


def test_an_installation_is_told_by_its_list_of_files(tmp_path):
    package = tmp_path / "metaphrase"
    package.mkdir()
    (package / "late.py").write_text("x = 1")
    by_files = list(disk._installation(str(package)))
    assert any(row.startswith("late.py 5:") for row in by_files)
    (tmp_path / f"metaphrase-{metaphrase.__version__}.dist-info").mkdir()
    record = tmp_path / f"metaphrase-{metaphrase.__version__}.dist-info" / "RECORD"
    record.write_text("metaphrase/late.py,sha256=abc,5")
    first = list(disk._installation(str(package)))
    assert len(first) == 1 and first[0].startswith(str(record))
    (package / "late.py").write_text("x = 10")  # no installer has done that
    assert list(disk._installation(str(package))) == first
    other = tmp_path / "RECORD"
    other.write_text("metaphrase/late.py,sha256=abd,6")
    other.replace(record)
    assert list(disk._installation(str(package))) != first
