"""Random programs by the thousand: what fails is shrunk and written to a folder as a file that runs.

In: how many programs, a seed, a folder. Out: a summary; exit status 1 if anything failed. Example:

    PYTHONPATH=tests python -P -m fuzz.campaign --programs 2000 --workers 2

`Search` is also what the test suite runs, with a fixed seed. With `--gpu` native code is kernels, which the emulator of
tests/gpu runs; PYTHONPATH is then tests:tests/gpu.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample
from together import Together

from .oracle import Disagreement, Examination, Refused, check
from .programs import PLANS, Case, programs

BATCH = 40
PATIENCE = 60.0  # seconds of work that one program may take, and seconds that a shrinking may

RUNNER = """

if __name__ == "__main__":
    # {why}
    import runpy

    import metaphrase as mp

    with mp.config(contract=False), np.errstate(all="ignore"):
        for name, function in (("python", program), ("native", mp.jit(program))):
            for args in runpy.run_path(__file__)["ARGUMENTS"]:
                try:
                    print(name, function(*args), args)
                except (ArithmeticError, ValueError, IndexError, AssertionError, TypeError) as error:
                    print(name, type(error).__name__, error)
"""


class TooLong(Exception):
    """A program, or what is done with it, takes more than its time."""


@dataclass(frozen=True)
class Verdict:
    """`kind`: "agrees", "refused" or what failed; equal kinds are taken for the same fault."""

    kind: str
    detail: str = ""
    stage: str = ""

    @property
    def failed(self) -> bool:
        return self.kind != "agrees" and not self.kind.startswith("refused")


def judge(case: Case, only: str = "", gpu: bool = False) -> Verdict:
    """What the oracle says of a case; what else is raised is a fault of that place."""
    return verdict(lambda: check(case, only, gpu))


def verdict(work: Callable[[], Any]) -> Verdict:
    with limited(PATIENCE):
        try:
            work()
        except Refused as refusal:
            return Verdict(f"refused: {refusal.code}", str(refusal))
        except Disagreement as found:
            return Verdict(f"{found.stage} disagrees", str(found), found.stage)
        except TooLong as error:
            return Verdict("takes too long", str(error))
        except Exception as error:  # noqa: BLE001  an internal error of any kind is a fault
            frames = traceback.extract_tb(error.__traceback__)
            place = next((f for f in reversed(frames) if "random program" not in f.filename), frames[-1])
            where = f"{Path(place.filename).name}:{place.name}"
            return Verdict(f"{type(error).__name__} in {where}", "".join(traceback.format_exception(error)[-6:]))
    return Verdict("agrees")


class Enough(KeyboardInterrupt):
    """A shrinking has had its time: no failure of a program, and nothing that hypothesis keeps to itself."""


@contextlib.contextmanager
def limited(seconds: float, error: type[BaseException] = TooLong, clock: int = signal.ITIMER_PROF) -> Iterator[None]:
    """Seconds of work, or of time (`ITIMER_REAL`), after which `error` is raised."""
    number = {signal.ITIMER_PROF: signal.SIGPROF, signal.ITIMER_REAL: signal.SIGALRM}[clock]

    def stop(*_: Any) -> None:
        raise error(f"more than {seconds} seconds")

    before = signal.signal(number, stop)
    signal.setitimer(clock, seconds, 5.0)  # again, should the first come where exceptions are ignored
    try:
        yield
    finally:
        signal.setitimer(clock, 0)
        signal.signal(number, before)


def tidy() -> None:
    """Collect what there is to collect, and look no more at what stays."""
    gc.collect()
    gc.freeze()


@dataclass
class Search:
    """`count` different programs from one seed. `watch(case)` is called before each is run. `together`: native
    code of many programs is compiled at a time. `gpu`: kernels, which are emulated, in the place of native code."""

    seed: int
    count: int
    plans: tuple[str, ...] = PLANS
    watch: Callable[[Case], Any] = lambda case: None
    together: bool = True
    gpu: bool = False
    verdicts: dict[Case, Verdict] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Judge the batch: an eighth of the cases each by itself, with native code as `jit` makes it, the
        others with native code of many programs at a time."""
        self.replay(self.remember)
        tidy()
        turn = int(os.environ.get("METAPHRASE_TESTS_DAY", "0")) % 8
        turns = {case: zlib.crc32(case.text.encode()) // 16 % 8 for case in self.verdicts}
        alone = [case for case in self.verdicts if turns[case] == turn or not self.together or self.gpu]
        self.judge_together([case for case in self.verdicts if case not in alone])
        for case in alone:
            self.watch(case)
            self.verdicts[case] = judge(case, gpu=self.gpu)
            gc.freeze()

    def judge_together(self, cases: list[Case]) -> None:
        examinations: dict[Case, Examination] = {}
        with Together() as builds:
            for case in cases:
                self.watch(case)
                examinations[case] = Examination(case, builds=builds)
                self.verdicts[case] = verdict(examinations[case].first)
                gc.freeze()  # staging collects garbage: not that of the other cases
        for case, examination in examinations.items():
            if case in builds.broken:
                self.verdicts[case] = judge(case)
            elif self.verdicts[case].kind == "agrees":
                self.watch(case)
                self.verdicts[case] = verdict(examination.after)
            examination.close()
            gc.freeze()

    def remember(self, case: Case) -> bool:
        """Keep the first case of each program: hypothesis repeats some with other arguments."""
        if len(self.verdicts) < self.count and case.program not in self.known:
            self.known.add(case.program)
            self.verdicts[case] = Verdict("agrees")
        return False

    def replay(self, condition: Callable[[Case], bool], *phases: Phase) -> Case | None:
        """The same programs again, up to the first for which the condition holds, which is then shrunk."""
        chosen = settings(
            max_examples=3 * self.count,  # some are equal
            database=None,
            deadline=None,
            phases=[Phase.generate, *phases],
            suppress_health_check=list(HealthCheck),
        )
        try:
            return find(programs(self.plans), condition, settings=chosen, random=random.Random(self.seed))
        except NoSuchExample:
            return None

    def faults(self) -> Iterator[tuple[Case, Verdict]]:
        """A small program for each kind of fault in the batch."""
        for kind in dict.fromkeys(v.kind for v in self.verdicts.values() if v.failed):
            first = next(v for v in self.verdicts.values() if v.kind == kind)
            tried = dict(self.verdicts)
            small = next(c for c, v in self.verdicts.items() if v.kind == kind)

            def holds(case: Case, kind: str = kind, first: Verdict = first, tried: dict = tried) -> bool:
                nonlocal small
                if case not in tried:
                    self.watch(case)
                    tried[case] = judge(case, first.stage, self.gpu)
                if tried[case].kind == kind:
                    small = case if len(case.text) <= len(small.text) else small
                    return True
                return False

            with contextlib.suppress(Enough), limited(PATIENCE, Enough, signal.ITIMER_REAL):
                self.replay(holds, Phase.shrink)
            yield small, tried[small]


def written(case: Case, why: str) -> str:
    """The file of a failing case."""
    heading = "".join(f"# {line}\n" for line in why.rstrip().splitlines())
    first = why.strip().splitlines()[0] if why.strip() else ""
    mode = f"# plan: {case.plan}, {'exact' if case.exact else 'smooth'}\n"
    return heading + mode + case.text + RUNNER.format(why=first[:100])


# ---- the command ------------------------------------------------------------


def worker(options: argparse.Namespace) -> int:
    """Judge batch after batch; a line says what each has given."""
    folder = Path(options.folder)
    done, seed = 0, options.seed
    while done < options.programs:
        search = Search(
            seed,
            min(BATCH, options.programs - done),
            tuple(options.plans.split(",")),
            watch=lambda case, seed=seed: (folder / f"now-{seed}.py").write_text(written(case, "")),
            together=not options.alone,
            gpu=options.gpu,
        )
        if options.gpu:
            emulate(seed)
        gc.unfreeze()  # what the last batch has left
        search.run()
        done += len(search.verdicts)
        if options.refused:
            for number, (case, verdict) in enumerate(search.verdicts.items()):
                if verdict.kind.startswith("refused"):
                    (folder / f"refused-{seed}-{number}.py").write_text(written(case, verdict.detail))
        for number, (case, verdict) in enumerate(search.faults()):
            file = folder / f"fault-{seed}-{number}.py"
            file.write_text(written(case, verdict.detail))
            print(f"FAULT {verdict.kind}: {file}", flush=True)
        (folder / f"now-{seed}.py").unlink()
        seed += 1
        print(f"BATCH {json.dumps(collections.Counter(v.kind for v in search.verdicts.values()))}", flush=True)
    return 0


def emulate(seed: int) -> None:
    """The threads of each batch run in another order, and those of an eighth are watched for races."""
    os.environ["CUEMU_ORDER"] = ("fwd", "rev", "rand")[seed % 3]
    os.environ["CUEMU_RACES"] = str(int(seed % 8 == 0))


def share(options: argparse.Namespace, seed: int, count: int) -> tuple[collections.Counter[str], list[str]]:
    """A worker's verdicts, and what failed. A batch that brings its process down is judged again with each
    program compiled by itself; the one that does it then is the fault. Others go on behind it."""
    totals, faults, alone = collections.Counter[str](), [], False
    while count > 0:
        command = [sys.executable, "-P", "-m", "fuzz.campaign", "--worker", "--folder", options.folder]
        command += ["--programs", str(min(BATCH, count) if alone else count), "--seed", str(seed)]
        command += ["--plans", options.plans, *(["--refused"] * options.refused), *(["--alone"] * alone)]
        command += ["--gpu"] * options.gpu
        environment = {**os.environ, "METAPHRASE_CACHE": "0"}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("BATCH "):
                kinds = collections.Counter(json.loads(line[len("BATCH ") :]))
                totals, seed, count, alone = totals + kinds, seed + 1, count - sum(kinds.values()), False
            elif line.startswith("FAULT "):
                faults.append(line.rstrip())
                print(faults[-1], flush=True)
        if process.wait() != 0:
            faults.append(f"the process ended with {process.returncode}: {options.folder}/now-{seed}.py")
            print(faults[-1], flush=True)
            seed, count, alone = (seed + 1, count - BATCH, False) if alone else (seed, count, True)
    return totals, faults


def command(options: argparse.Namespace) -> int:
    """Start the workers, and add up what they say."""
    start = time.monotonic()
    Path(options.folder).mkdir(parents=True, exist_ok=True)
    print(f"seed {options.seed}; faults go to {options.folder}", flush=True)
    with ThreadPoolExecutor(options.workers) as threads:
        seeds = [options.seed + 100_000 * k for k in range(options.workers)]
        shares = list(threads.map(lambda seed: share(options, seed, options.programs // options.workers), seeds))
    totals = sum((kinds for kinds, _ in shares), collections.Counter())
    faults = [fault for _, found in shares for fault in found]
    for kind, number in totals.most_common():
        print(f"{number:6} {kind}")
    print(
        f"{sum(totals.values())} programs in {time.monotonic() - start:.0f} s, {len(faults)} faults, "
        f"seed {options.seed}"
    )
    return 1 if faults else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6) * 1000)
    parser.add_argument("--folder", default="build/fuzz")
    parser.add_argument("--plans", default=",".join(PLANS))
    parser.add_argument("--refused", action="store_true", help="also write the programs that are refused")
    parser.add_argument("--alone", action="store_true", help="compile each program by itself, as jit does")
    parser.add_argument("--gpu", action="store_true", help="emulated kernels in the place of native code")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    return worker(options) if options.worker else command(options)


if __name__ == "__main__":
    sys.exit(main())
