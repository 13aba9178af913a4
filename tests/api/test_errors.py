"""What a mistake looks like to a person: the text of errors, held as goldens."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import pytest

from metaphrase.source import SourceError

from .error_programs import PROGRAMS

GOLDEN = Path(__file__).parent.parent / "golden" / "errors"


def shown(program) -> str:
    try:
        program()
    except Exception as error:
        text = f"{type(error).__name__}: {error}\n"
        if not isinstance(error, SourceError):  # an error of Python's own: the traceback shows the place
            text = "".join(traceback.format_tb(error.__traceback__)[-1:]) + text
        return re.sub(r"/[^\s:]*/(?=[\w<>]+\.py)", "", text)
    return "no error\n"


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_text(name, update_golden):
    path, text = GOLDEN / f"{name}.txt", shown(PROGRAMS[name])
    if update_golden:
        path.write_text(text)
    assert text == path.read_text()
    assert text != "no error\n"


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"unknown_stage"}))
def test_names_a_place_one_cause_and_one_remedy(name):
    text = shown(PROGRAMS[name])
    assert re.search(r"error_programs\.py(:|\", line )\d+", text), text
    assert "^" in text and ("remedy: " in text or text.startswith("  File ")), text
