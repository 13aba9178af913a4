"""Bad constructs are refused with a text that names the place, shows the line, and says one cause and one
remedy."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from pathlib import Path

import corpus.rejected
import pytest

from metaphrase.astpasses.frontend.staging.stage import stage

FOLDER = Path(corpus.rejected.__file__).parent
NAMES = sorted(m.name for m in pkgutil.iter_modules([str(FOLDER)]))


def refusal(name: str) -> str:
    """The text of the error, paths shortened."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        module = importlib.import_module(f"corpus.rejected.{name}")
    function, args = module.CASE
    with pytest.raises(Exception) as caught:
        stage(function, args)
    return f"{type(caught.value).__name__}: {caught.value}\n".replace(str(FOLDER) + "/", "")


@pytest.mark.parametrize("name", NAMES)
def test_refusal(name, update_golden):
    text, golden = refusal(name), FOLDER / f"{name}.txt"
    if update_golden:
        golden.write_text(text)
    assert text == golden.read_text()


def test_every_golden_has_its_construct():
    assert sorted(p.stem for p in FOLDER.glob("*.txt")) == NAMES and len(NAMES) >= 60
