"""config: the environment, assignments, context managers, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from metaphrase.config import SETTINGS, Config, config, disable_jit


def test_defaults_and_context():
    fresh = Config()
    assert fresh.fuse is True and fresh.disable_jit is False
    with fresh(fuse=False, disable_jit=True):
        assert fresh.fuse is False and fresh.disable_jit is True
        with fresh(fuse=True):
            assert fresh.fuse is True and fresh.disable_jit is True
        assert fresh.fuse is False
    assert fresh.fuse is True and fresh.disable_jit is False


def test_a_context_is_undone_by_an_exception():
    with pytest.raises(KeyError), disable_jit():
        assert config.disable_jit
        raise KeyError
    assert not config.disable_jit


def test_a_context_holds_for_its_thread():
    seen = []
    with config(fuse=False):
        thread = threading.Thread(target=lambda: seen.append(config.fuse))
        thread.start()
        thread.join()
    assert seen == [True]


def test_runtime_settings_go_through_the_environment(monkeypatch):
    monkeypatch.setenv("METAPHRASE_NUM_THREADS", "3")
    assert config.num_threads == 3
    with config(num_threads=1, cache=False):
        assert os.environ["METAPHRASE_NUM_THREADS"] == "1" and os.environ["METAPHRASE_CACHE"] == "0"
    assert config.num_threads == 3


def test_the_environment_is_read_at_import():
    code = "from metaphrase.config import config; print(config.fuse, config.disable_jit)"
    environment = {**os.environ, "METAPHRASE_FUSE": "0", "METAPHRASE_DISABLE_JIT": "1"}
    out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "True"]


def test_wrong_settings():
    with pytest.raises(AttributeError, match="no setting is called 'fuze'; did you mean 'fuse'"):
        config.fuze  # noqa: B018
    with pytest.raises(TypeError, match="config.fuse is a bool"):
        config.fuse = 3
    with pytest.raises(ValueError, match="neither true nor false"):
        config.update("fuse", "perhaps")
    with pytest.raises(ValueError, match="can't be turned off"):
        config.update("jax_enable_x64", False)
    config.update("jax_enable_x64", True)
    assert len(SETTINGS) <= 25 and all(setting.doc for setting in SETTINGS.values())


def test_the_page_of_the_settings_has_each_of_them():
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    rows = [line for line in page.read_text().splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{s.name}` | `{s.variable}` | `{s.default!r}` | the {s.scope} | {s.doc} |" for s in SETTINGS.values()
    ]
