"""What another thread holds when this one forks is free in the child."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAD = """
import os, signal, threading, time
from metaphrase.late import dataclass
from metaphrase.locks import cached_property, lock

inside, go_on = threading.Event(), threading.Event()

def waits():
    inside.set()
    go_on.wait(60)

"""
TAIL = """
thread = threading.Thread(target=holds)
thread.start()
inside.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(20)
    waits = lambda: None
    os._exit(7 if free() else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
go_on.set()
thread.join()
"""
LOCK = """
it = lock()

def holds():
    with it:
        waits()

def free():
    with it:
        return True
"""
ATTRIBUTE = """
class Site:
    @cached_property
    def line(self):
        waits()
        return 3

def holds(): Site().line
def free(): return Site().line == 3
"""
DATACLASS = """
import dataclasses

@dataclass(frozen=True)
class Site:
    line: int

make = dataclasses.dataclass

def slow(*args, **options):
    waits()
    return make(*args, **options)

def holds():
    dataclasses.dataclass = slow
    Site(3) == Site(3)

def free(): return Site(3) == Site(3) and hash(Site(3)) == hash(Site(3))
"""


def told(code: str) -> str:
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("held", [LOCK, ATTRIBUTE, DATACLASS])
def test_what_another_thread_holds_is_free_in_a_child(held):
    assert told(HEAD + held + TAIL) == "7\n"


def test_what_the_thread_that_forks_holds_it_keeps():
    code = """
import os
from metaphrase.locks import lock

it = lock()
with it:
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    else:
        assert it._is_owned()
if not child:
    os._exit(7)
"""
    assert told(code) == "7\n"


def test_nothing_is_guarded_by_another_lock():
    ours = (path for room in ("pysrc", "astpasses", "runtime") for path in (ROOT / room).rglob("*.py"))
    others = {path.name for path in ours if re.search(r"\bR?Lock\(\)", path.read_text())}
    assert others == {"locks.py", "waiting.py"}  # nobody waits for the second's
