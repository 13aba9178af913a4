"""Shared by all tests: one cache of compiled programs, and one name for every module.

In: a pytest session. Out: METAPHRASE_CACHE_DIR points to a directory that all workers share. It is kept
between runs, for an entry's key is all that goes into it; with METAPHRASE_TESTS=cold it is a new one that the
session removes. Bytecode is kept beside it, also where Python is told to write none: a hundred tests start processes
of their own. What is tested in turns is chosen by tests/turns.py.
Fixtures used by several rooms go at the end of this file.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from pathlib import Path

import levels
import pytest
from parallel import ByTheme, Quiet
from times import Times
from turns import takes

from metaphrase.runtime import dispatch

# The rooms as they are called on disk. Imported under these names a module would exist twice, with two
# registries.
ROOMS_ON_DISK = ("pysrc", "astpasses")
CACHES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")

sys.dont_write_bytecode = False
sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(CACHES / "metaphrase-tests-bytecode")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files from what is produced now")
    parser.addoption("--times", type=Path, help="write the CPU seconds that each file of tests takes to this file")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.times:
        config.pluginmanager.register(Times(config.option.times), "times")
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Quiet(), "quiet")
    levels.install()
    os.environ["METAPHRASE_PLANS"] = "0"  # tests look at what translating does; tests/plans/ sets it
    if "METAPHRASE_CACHE_DIR" in os.environ or hasattr(config, "workerinput"):
        return
    if "cold" in os.environ.get("METAPHRASE_TESTS", "").split():
        config._metaphrase_cache = tempfile.mkdtemp(prefix="metaphrase-test-cache-")
        os.environ["METAPHRASE_CACHE_DIR"] = config._metaphrase_cache
    else:
        os.environ["METAPHRASE_CACHE_DIR"] = str(CACHES / "metaphrase-tests")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    others = [item for item in items if not takes(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if takes(item)]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Twenty thousand tests are live objects that a collection of garbage needn't look at each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    dispatch.wake_from(0)  # threads share whatever they may


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    levels.before(item)


_modules = 0  # how many there were when they were looked at


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """No test has imported a module under a second name. A fixture that does nothing costs more than most tests."""
    global _modules
    if len(sys.modules) == _modules:
        return
    _modules = len(sys.modules)
    doubled = imported_twice(sys.modules)
    assert not doubled, f"imported under a second name: {doubled}; import them as metaphrase..."


FREEZE_EVERY = 20  # tests
_since_frozen = 0


def pytest_runtest_logfinish() -> None:
    """What tests keep for one another (staged functions, programs) is looked at by no later collection: full
    ones, for which staging asks, took longer than all else at a session's end."""
    global _since_frozen
    _since_frozen += 1
    if _since_frozen == FREEZE_EVERY:
        _since_frozen = 0
        gc.collect()
        gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByTheme:
    return ByTheme(config, log)


def pytest_unconfigure(config: pytest.Config) -> None:
    directory = getattr(config, "_metaphrase_cache", None)
    if directory is not None:
        del os.environ["METAPHRASE_CACHE_DIR"]
        shutil.rmtree(directory, ignore_errors=True)


def imported_twice(modules: dict) -> list[str]:
    """Names in `modules` that are rooms of the package imported as top-level packages."""
    return sorted(name for name in modules if name.split(".")[0] in ROOMS_ON_DISK)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    doubled = imported_twice(sys.modules)
    if doubled:
        print(f"\nimported under a second name: {', '.join(doubled)} (import them as metaphrase...)", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """True when the goldens are to be written instead of compared."""
    return request.config.getoption("--update-golden")
