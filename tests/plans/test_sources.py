"""Which files a plan is for: those that a program comes from, and what they import, however that is written."""

from __future__ import annotations

from metaphrase.api.plans import sources

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
