"""Where an example runs: `--device cpu`, `gpu`, or `emulator`, which runs a GPU's kernels on the CPU at a small size.

In: the command line. Out: a context in which jitted functions run there. Example:

    device = chosen_device(__doc__)
    with placed(device): ...
"""

import argparse
import contextlib
import sys
from pathlib import Path

import metaphrase as mp

EMULATOR = Path(__file__).resolve().parents[1] / "tests" / "gpu"


def chosen_device(what: str) -> str:
    """The device that the command line names."""
    parser = argparse.ArgumentParser(description=what.partition("\n")[0])
    parser.add_argument("--device", choices=["cpu", "gpu", "emulator"], default="cpu")
    return parser.parse_args().device


@contextlib.contextmanager
def placed(device: str):
    """Within it jitted functions run on the device."""
    with contextlib.ExitStack() as stack:
        if device == "emulator":
            sys.path.insert(0, str(EMULATOR))
            import stand_in

            stack.enter_context(stand_in.installed())
        if device != "cpu":
            stack.enter_context(mp.default_device("gpu"))
        yield
