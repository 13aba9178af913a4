"""The disk cache: found again, never trusted blindly, bounded."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from metaphrase.runtime import cache, compiler, cython_build, dispatch

pytestmark = pytest.mark.turns(5)

SCRIPT = """
import sys
from metaphrase.runtime import cython_build, dispatch
library = cython_build.build(open(sys.argv[1]).read(), name="cached")
out, = dispatch.run_entry(library.address, [], [("f8", ())])
print(library.cached, float(out))
"""


@pytest.fixture
def fresh(tmp_path, text_of):
    """fresh(**environment): build and run one text in a new process with a cache of its own: its output's
    words."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "kernel.pyx").write_text(text_of("(<double*>buffers[0])[0] = 2.5\nreturn 0"))

    def run(**environment):
        environment = dict(os.environ, METAPHRASE_CACHE_DIR=str(tmp_path / "cache"), **environment)
        done = subprocess.run(
            [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "kernel.pyx")],
            timeout=60,
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        run.errors = done.stderr
        return done.stdout.split()

    run.directory = tmp_path / "cache"
    return run


def entry_of(directory: Path) -> Path:
    (entry,) = (path for path in directory.iterdir() if not path.name.startswith("."))
    return entry


def test_a_second_process_finds_it(fresh):
    assert fresh() == ["False", "2.5"] and fresh() == ["True", "2.5"]
    assert fresh.directory.stat().st_mode & 0o777 == 0o700
    assert {path.name for path in entry_of(fresh.directory).iterdir()} == {
        "library.so",
        "record",
        "kernel.pyx",
        "kernel.c",
    }


def flip_a_byte(entry):
    data = bytearray((entry / "library.so").read_bytes())
    data[len(data) // 2] ^= 0xFF
    (entry / "library.so").write_bytes(data)


def truncate(entry):
    (entry / "library.so").write_bytes((entry / "library.so").read_bytes()[:100])


def another_key(entry):
    _, digest = (entry / "record").read_text().split()
    (entry / "record").write_text(f"{'0' * 64} {digest}")


DAMAGE = [
    flip_a_byte,
    truncate,
    another_key,
    lambda entry: (entry / "library.so").unlink(),
    lambda entry: (entry / "record").unlink(),
    lambda entry: (entry / "record").write_text((entry / "record").read_text()[:70]),
    lambda entry: os.chmod(entry, 0o777),
]


@pytest.mark.parametrize(
    "damage", DAMAGE, ids=["byte", "truncated", "key", "no library", "no record", "half a record", "writable by all"]
)
def test_a_damaged_entry_is_rebuilt(fresh, damage):
    fresh()
    damage(entry_of(fresh.directory))
    assert fresh() == ["False", "2.5"] and "is rebuilt" in fresh.errors
    assert fresh() == ["True", "2.5"]


def test_an_entry_that_is_a_link_is_not_followed(fresh, tmp_path):
    fresh()
    entry = entry_of(fresh.directory)
    os.rename(entry, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", entry)
    assert fresh() == ["False", "2.5"] and not entry.is_symlink() and (tmp_path / "elsewhere").exists()


def test_without_a_cache_nothing_is_kept(fresh):
    assert fresh(METAPHRASE_CACHE="0") == ["False", "2.5"] and not fresh.directory.exists()


def test_a_directory_that_cannot_be_used_costs_a_warning(fresh):
    fresh.directory.write_text("a file, not a directory")
    assert fresh() == ["False", "2.5"] and "compiled programs are not kept" in fresh.errors


def test_permissions_are_tightened(tmp_path):
    tmp_path.chmod(0o755)
    cache.Cache(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o700


def test_a_directory_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(cache.CacheUnusable, match="belongs to another user"):
        cache.Cache(tmp_path)


def stored(store, key, size=1000):
    made = store.directory / ".made"
    made.write_bytes(os.urandom(size))
    path = store.store(key, made, {"kernel.pyx": "text"})
    made.unlink()
    return path


def test_the_least_recently_used_go_first(tmp_path):
    store = cache.Cache(tmp_path, limit=10_000)
    for index in range(8):
        stored(store, f"k{index}")
        os.utime(tmp_path / f"k{index}", (index, index))
    assert store.find("k0") is not None  # used now: the newest
    for index in range(8, 10):
        stored(store, f"k{index}")
    kept = {path.name for _, _, path in store.entries()}
    assert "k0" in kept and "k9" in kept and "k1" not in kept and len(kept) < 10
    assert sum(size for _, size, _ in store.entries()) <= 10_000


def test_a_stored_library_is_replaced_by_a_new_file(tmp_path):
    store = cache.Cache(tmp_path)
    path = stored(store, "k")
    before, inode = path.read_bytes(), path.stat().st_ino
    assert stored(store, "k") == path and path.read_bytes() == before  # whole: the first stays
    with open(path, "rb") as mapped:
        (path.parent / "record").write_text("{}")
        stored(store, "k")
        assert path.stat().st_ino != inode and mapped.read() == before


def test_clear(tmp_path):
    store = cache.Cache(tmp_path)
    stored(store, "a")
    stored(store, "b")
    store.keep_failure("c" * 64, {"kernel.pyx": "text"})
    assert store.clear() == 2 and store.entries() == [] and not (tmp_path / "failed").exists()


def test_keys():
    assert cache.key_of("ab", "c") != cache.key_of("a", "bc") != cache.key_of("abc")
    assert cache.key_of("ab") == cache.key_of("ab") and len(cache.key_of()) == 64


def test_the_key_holds_what_the_library_depends_on(monkeypatch, text_of):
    toolchain, options = compiler.find_compiler(), compiler.flags()

    def key(**changes):
        given = dict(text=text_of("return 0"), name="f", toolchain=toolchain, options=options, whole=False) | changes
        return cython_build._key(**given)

    keys = [
        key(),
        key(text=text_of("return 1")),
        key(options=compiler.flags(contract=False)),
        key(name="g"),
        key(whole=True),
        key(options=compiler.flags(fastmath=True)),
        key(toolchain=compiler.Toolchain(("gcc",), "another")),
    ]
    monkeypatch.setattr(cython_build, "machine_identity", lambda: "another machine")
    keys.append(key())
    monkeypatch.setattr(cython_build, "ABI_VERSION", 99)
    keys.append(key())
    for made_by in (("another version", "code", "3.3.1"), ("version", "other code", "3.3.1")):
        monkeypatch.setattr(cython_build, "_makers", lambda made_by=made_by: made_by)
        keys.append(key())
    monkeypatch.setattr(compiler, "LINK_FLAGS", ("-lm",))
    keys.append(key())
    assert len(set(keys)) == len(keys)


def test_the_key_tells_one_cython_from_another(tmp_path, monkeypatch):
    import Cython

    assert f'"{Cython.__version__}"' in cython_build.cython_version()
    versions = [cython_build.cython_version()]
    for version in ("3.1.0", "3.2.0"):
        package = tmp_path / version / "Cython"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "Shadow.py").write_text(f'__version__ = "{version}"\n')
        found = SimpleNamespace(origin=str(package / "__init__.py"))
        monkeypatch.setattr(importlib.util, "find_spec", lambda _, found=found: found)
        versions.append(cython_build.cython_version())
    assert len(set(versions)) == 3 and '"3.2.0"' in versions[-1]


def test_settings(monkeypatch):
    monkeypatch.setenv("METAPHRASE_CACHE_DIR", "~/somewhere")
    assert cache.cache_directory() == str(Path.home() / "somewhere")
    monkeypatch.delenv("METAPHRASE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/x")
    assert cache.cache_directory() == "/var/x/metaphrase"
    monkeypatch.setenv("METAPHRASE_CACHE_SIZE", "1.5")
    assert cache.size_limit() == 3 << 19
    for value, expected in (("0", False), ("off", False), ("1", True), ("", True)):
        monkeypatch.setenv("METAPHRASE_CACHE", value)
        assert cache.enabled() is expected


def test_a_library_found_in_memory_is_the_same(program):
    library = program("return 0")
    assert program("return 0") is library and dispatch.run_entry(library.address, [np.zeros(1)], []) == []


def test_a_text_that_another_process_removes_is_passed_by(tmp_path, caplog, monkeypatch):
    kept = cache.Cache(tmp_path)
    for text in ("first", "second"):
        kept.keep_text("ab" * 16, text, 8)
    plain = cache.read_own

    def removed(path):
        if plain(path).endswith(b"second"):
            os.unlink(path)
        return plain(path)

    monkeypatch.setattr(cache, "read_own", removed)
    assert [text for _, text in kept.texts("ab" * 16)] == ["first"]
    assert not caplog.records
