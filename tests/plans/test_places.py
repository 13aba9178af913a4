"""A folder in the making: its place has all of it or none, whatever ends the process that makes it.

In: a process that fills a folder and is ended at one point. Out: what is there, and that the next one sweeps up.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from metaphrase.aot.places import Unwritable, making

MAKE = """
import os, sys
from pathlib import Path
from metaphrase.aot import places

rename, renames = os.rename, []

def counted(*names):
    renames.append(names)
    if len(renames) == {last}:
        os._exit(9)
    rename(*names)

os.rename = counted
with places.making(Path(sys.argv[1])) as folder:
    (folder / "one").write_text("new")
    if {last} == 0:
        os._exit(9)
    (folder / "two").write_text("new")
"""


def texts(place: Path) -> list[str]:
    return sorted(f"{path.name} {path.read_text()}" for path in place.iterdir()) if place.exists() else []


# It tries the new one, moves the old one away, tries the new one again.
@pytest.mark.turns(3)
@pytest.mark.parametrize(("last", "left"), [(0, "old"), (1, "old"), (2, "old"), (3, None), (4, "new")])
def test_the_place_is_whole_wherever_a_process_ends(tmp_path, last, left):
    place = tmp_path / "package"
    with making(place) as folder:
        (folder / "one").write_text("old")
        (folder / "two").write_text("old")
    done = subprocess.run([sys.executable, "-P", "-c", MAKE.format(last=last), str(place)], timeout=60)
    assert done.returncode == (0 if left == "new" else 9)
    assert texts(place) == ([f"one {left}", f"two {left}"] if left else [])
    assert len([*tmp_path.glob(".package.*")]) == (left != "new")
    with making(place) as folder:
        (folder / "one").write_text("next")
    assert texts(place) == ["one next"] and [path.name for path in tmp_path.iterdir()] == ["package"]


def test_an_error_leaves_what_was_there(tmp_path):
    place = tmp_path / "deep" / "package"
    with making(place) as folder:
        (folder / "one").write_text("old")
    with pytest.raises(ZeroDivisionError), making(place) as folder:
        (folder / "one").write_text(str(1 / 0))
    assert texts(place) == ["one old"] and [path.name for path in place.parent.iterdir()] == ["package"]


def test_two_at_once_and_the_later_is_there(tmp_path):
    place = tmp_path / "package"
    with making(place) as first:
        (first / "one").write_text("first")
        with making(place) as second:  # the first is locked: nobody sweeps it
            (second / "one").write_text("second")
        assert texts(place) == ["one second"] and first.exists()
    assert texts(place) == ["one first"] and [path.name for path in tmp_path.iterdir()] == ["package"]


def test_a_place_that_can_not_be_written(tmp_path):
    (tmp_path / "file").touch()
    with (
        pytest.raises(Unwritable, match="file/package can't be written: File exists"),
        making(tmp_path / "file/package"),
    ):
        raise AssertionError("there is no folder to fill")
