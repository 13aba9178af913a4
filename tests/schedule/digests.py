"""The native texts of part of the corpus, as digests by name: run as a program by test_repeatable.py."""

import hashlib
import json
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "native")]

from derivatives import derived_loops  # noqa: E402
from grouped import module  # noqa: E402
from stages import CASES, loops  # noqa: E402


def digests() -> dict[str, str]:
    found = {}
    for name in list(CASES)[::30]:
        text, _ = module([loops(name), *derived_loops(name).values()])
        found[name] = hashlib.sha256(text.encode()).hexdigest()
    return found


if __name__ == "__main__":
    print(json.dumps(digests()))
