"""Where an example runs: `--device cpu`, `gpu`, or `emulator`, which runs a GPU's kernels on the CPU at a small size.

In: the command line. Out: the device, the size (`--size`), and a context in which jitted functions run there. Example:

    device, size = chosen(__doc__, "orbits", 100_000, emulator=500)
    with placed(device): ...
"""

import argparse
import contextlib
import sys
from pathlib import Path

import metaphrase as mp

EMULATOR = Path(__file__).resolve().parents[1] / "tests" / "gpu"


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number


def chosen(what: str, counted: str, size: int, emulator: int, **more: str) -> tuple:
    """The device and the size that the command line names. `counted`: what `--size` is the number of. Without it the
    size is `size`, and `emulator` on the emulator, where one core runs the threads of all kernels. `more`: options that
    take a text, and what they are for; those that the command line leaves out are None."""
    parser = argparse.ArgumentParser(description=what.partition("\n")[0])
    parser.add_argument("--device", choices=["cpu", "gpu", "emulator"], default="cpu")
    parser.add_argument("--size", type=positive, help=f"how many {counted}: {size:,}; on the emulator {emulator:,}")
    for name, purpose in more.items():
        parser.add_argument(f"--{name}", help=purpose)
    options = parser.parse_args()
    size = options.size or (emulator if options.device == "emulator" else size)
    return options.device, size, *(getattr(options, name) for name in more)


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
