"""Processes that compile: what they run, and what came of one.

In: a text, settings. Out: `Ended`: "answer", "error" (one clear message), "killed", "hang" or "wrong".
Example:

    ended = run(COMPILE, folder, seed="3")          # ended.kind == "answer"
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 240  # seconds after which a process hangs

HEAD = """
import faulthandler, os, random, signal, sys, threading, time
import numpy as np
import metaphrase as mp
folder, seed = os.environ["FOLDER"], int(os.environ["SEED"])
signal.signal(signal.SIGINT, signal.default_int_handler)

def numbered(k):
    scope = {"np": np}
    exec(compile(f"def f(x):\\n    return np.sin(x)*{k} + {k}", folder + f"/f{k}.py", "exec"), scope)
    return scope["f"]

def write(k):
    with open(folder + f"/f{k}.py", "w") as file:
        file.write(f"def f(x):\\n    return np.sin(x)*{k} + {k}")

def answers(k):
    write(k)
    x = np.arange(5.0)
    got = mp.jit(numbered(k))(x)
    np.testing.assert_allclose(got, np.sin(x)*k + k, rtol=1e-14)
"""

COMPILE = (
    HEAD
    + """
threads = [threading.Thread(target=lambda k=k: answers(k)) for k in range(seed, seed + 2)]
for thread in threads:
    thread.start()
for k in range(seed + 2, seed + 4):
    answers(k)
for thread in threads:
    thread.join()
print("answer")
"""
)

FORKS = (
    HEAD
    + """
count = int(os.environ["COUNT"])
going = True

def compile_on(first):
    k = first
    while going:
        answers(k)
        k += 1

threads = [threading.Thread(target=compile_on, args=(first,), daemon=True) for first in (10_000, 20_000)]
for thread in threads:
    thread.start()
draw = random.Random(seed)
ended = {"answer": 0, "hang": 0, "wrong": 0}
for n in range(count):
    time.sleep(draw.uniform(0, 0.3 if n else 0.05))
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(40)
        signal.alarm(60)
        try:
            answers(10_000)
            answers(30_000 + n)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    ended["answer" if status == 0 else "hang" if status == -signal.SIGALRM else "wrong"] += 1
going = False
for thread in threads:
    thread.join()
print(ended)
"""
)


@dataclass
class Ended:
    """How a process ended. `said`: what it printed; `complained`: its lines on stderr."""

    kind: str
    said: str
    complained: list[str]


def settings(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a process that keeps all that it writes under `folder`."""
    for name in ("cache", "temporary", "sources"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        "METAPHRASE_CACHE_DIR": str(folder / "cache"),
        "TMPDIR": str(folder / "temporary"),
        "FOLDER": str(folder / "sources"),
        **more,
    }


def start(text: str, environment: dict[str, str]) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", text], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def ended(process: subprocess.Popen, patience: float = PATIENCE) -> Ended:
    """Wait for a process; one that hangs is killed."""
    try:
        said, complained = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        said, complained = process.communicate()
        return Ended("hang", said, complained.splitlines())
    lines = complained.splitlines()
    if process.returncode == 0:  # a thread's exception does not end the process
        return Ended("wrong" if "Traceback" in complained else "answer", said, lines)
    if process.returncode < 0:
        return Ended("killed" if process.returncode == -9 else "wrong", said, lines)
    is_clear = bool(lines) and lines[-1].startswith("metaphrase.") and "Error" in lines[-1].split(":")[0]
    return Ended("error" if is_clear else "wrong", said, lines)


def run(text: str, folder: Path, **more: str) -> Ended:
    """Run one process to its end."""
    return ended(start(text, settings(folder, **more)))
