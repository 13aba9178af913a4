"""Everything that can be in the way of a compile, many times; the figures of each.

In: how many kills, forks, processes in a crowd, loops. Out: a line for each; status 1 when something hung,
gave a wrong answer, or failed without one clear error. Example:

    make stress
    PYTHONPATH=tests python -P -m stress.campaign --kills 10 --forks 10 --loops 20 --folder build/stress
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import corpus

from .packages import packages
from .processes import COMPILE, FORKS, HEAD, PATIENCE, Ended, ended, run, settings, start

BOUND = 0.1  # seconds from Ctrl-C to KeyboardInterrupt
GOOD = {"answer", "error", "killed"}
MOUNTED = HEAD + "answers(seed)\nprint('answer')\n"


class Tally:
    """Counts how processes ended, and keeps what the bad ones said."""

    def __init__(self) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.bad: list[str] = []

    def add(self, result: Ended) -> None:
        self.kinds[result.kind] += 1
        if result.kind not in GOOD:
            self.bad.append("\n".join(result.complained[-12:]))

    def line(self, what: str) -> str:
        return f"{what}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))


def kills(count: int, folder: Path) -> Tally:
    """Processes that are killed while they build, two at a time on one cache; then one that is not."""
    tally, draw = Tally(), random.Random(1)
    for n in range(0, count, 2):
        seeds = (str(3 * k % 40) for k in range(n, min(n + 2, count)))
        pair = [start(COMPILE, settings(folder, SEED=seed)) for seed in seeds]
        time.sleep(draw.uniform(0.3, 5.0))
        for process in pair:
            process.kill()
        for process in pair:
            tally.add(ended(process))
    tally.add(run(COMPILE, folder, SEED="3"))
    left = [path.name for path in (folder / "temporary").iterdir()]
    if len(left) > 1:  # the folder that its successor has not swept yet
        tally.bad.append(f"left behind: {left}")
    return tally


def builds(count: int, folder: Path) -> Tally:
    """Builds of packages that are killed: what is there is whole."""
    tally = Tally()
    tally.kinds, tally.bad = packages(count, folder)
    return tally


def forks(count: int, folder: Path) -> Tally:
    """Children forked while two threads compile."""
    tally = Tally()
    environment = settings(folder, SEED="1", COUNT=str(count), METAPHRASE_CACHE_SIZE="1")
    result = ended(start(FORKS, environment), PATIENCE + 20 * count)
    if result.kind != "answer":
        tally.add(result)
        return tally
    tally.kinds.update(json.loads(result.said.replace("'", '"')))
    if tally.kinds["answer"] != count:
        tally.bad.append("\n".join(result.complained[-30:]))
    return tally


def crowd(count: int, folder: Path) -> Tally:
    """Processes on one cache that keeps nothing."""
    tally = Tally()
    environment = settings(folder, SEED="1", METAPHRASE_CACHE_SIZE="0")
    for process in [start(COMPILE, environment) for _ in range(count)]:
        tally.add(ended(process))
    return tally


def disks(count: int, folder: Path) -> Tally:
    """As often as said: a disk that nothing may be run from, and disks of several sizes, for the cache, for
    temporary files and for both; each mounted for one process alone."""
    tally = Tally()
    place = folder / "disk"
    place.mkdir(parents=True, exist_ok=True)
    options = count * ["noexec", *(f"size={size}k" for size in (4, 16, 40, 100, 300))]
    usages = (("cache",), ("temporary",), ("cache", "temporary"))
    for n, (option, uses) in enumerate(itertools.product(options, usages)):
        names = {"cache": "METAPHRASE_CACHE_DIR", "temporary": "TMPDIR"}
        more = {names[use]: str(place) for use in uses}
        environment = settings(folder, SEED=str(100 + n), **more)
        mount = f'mount -t tmpfs -o {option},mode=700 none {place} && exec {sys.executable} -P -c "$0"'
        process = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", mount, MOUNTED],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        result = ended(process)
        tally.add(result)
        warnings = [line for line in result.complained if not line.startswith(" ")]
        if result.kind == "answer" and len(warnings) > 2:
            tally.bad.append(f"{option} {uses}: " + "\n".join(result.complained))
    return tally


def loops(count: int, folder: Path) -> Tally:
    """Ctrl-C in native code of the corpus that would not end."""
    tally = Tally()
    names = [name for name, _, _ in corpus.cases()]
    random.Random(2).shuffle(names)
    worst = 0.0
    for first in range(0, min(count, len(names)), 25):
        command = [sys.executable, "-P", "-m", "stress.loops", *names[first : min(first + 25, count)]]
        environment = settings(folder, PYTHONPATH=str(Path(__file__).parents[1]))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        if done.returncode or len(rows) != len(command) - 4:
            tally.kinds["crash"] += 1
            tally.bad.append(f"{command[4 + len(rows) :][:1]}: {done.stderr[-600:]}")
        for name, seconds, is_right in rows:
            kind = "ended by itself" if seconds is None else "in time" if seconds < BOUND else "late"
            tally.kinds[kind if is_right else "wrong"] += 1
            worst = max(worst, seconds or 0.0)
            if not is_right or kind == "late":
                tally.bad.append(f"{name}: {seconds} s, right: {is_right}")
    tally.kinds[f"ms at worst: {worst * 1e3:.1f}"] = 1
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("kills", 100), ("builds", 20), ("forks", 200), ("crowd", 8), ("disks", 1), ("loops", 400)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--folder", type=Path, default=Path("build/stress"))
    options = parser.parse_args()
    bad = []
    for work in (disks, crowd, kills, builds, forks, loops):
        what = work.__name__
        if count := getattr(options, what):
            folder = (options.folder / what).resolve()
            shutil.rmtree(folder, ignore_errors=True)
            begun = time.monotonic()
            tally = work(count, folder)
            print(f"{tally.line(what)} ({time.monotonic() - begun:.0f} s)", flush=True)
            bad += tally.bad
    print("\n\n".join(bad))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
