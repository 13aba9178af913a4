"""Saved NumPy texts as whoever was given one runs them: without us.

In: texts that define `saved`, with arguments. Out: what each gives, in a process that can't import
metaphrase; what a text imports. Example:

    run_alone({"softmax": (numpy_source(function, name="saved"), [x])})["softmax"]
    foreign(text)           # set()
"""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

RUNNER = """
import pickle, sys
sys.modules["metaphrase"] = None
import numpy as np
found = {}
for key, (text, args) in pickle.load(sys.stdin.buffer).items():
    module = {"__name__": "saved"}
    try:
        with np.errstate(all="ignore"):
            exec(compile(text, str(key), "exec"), module)
            found[key] = module["saved"](*args)
    except Exception as error:
        found[key] = type(error).__name__
sys.stdout.buffer.write(b"RESULT" + pickle.dumps(found))
"""


def run_alone(given: Mapping[Any, tuple[str, list]]) -> dict[Any, Any]:
    """The result of each text for its arguments, or the name of the exception that it raises."""
    command = [sys.executable, "-I", "-c", RUNNER]
    run = subprocess.run(command, input=pickle.dumps(dict(given)), capture_output=True, timeout=300)
    assert run.returncode == 0, run.stderr.decode()
    return pickle.loads(run.stdout.split(b"RESULT", 1)[1])


def foreign(text: str) -> set[str]:
    """The modules that a text can't do without, other than Python's own and NumPy's."""
    tree = ast.parse(text)
    spared = {
        id(node)
        for attempt in ast.walk(tree)
        if isinstance(attempt, ast.Try) and any("ImportError" in ast.dump(h) for h in attempt.handlers)
        for node in ast.walk(attempt)
    }
    needed = [node for node in ast.walk(tree) if id(node) not in spared]
    found = {alias.name for node in needed if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module or "." for node in needed if isinstance(node, ast.ImportFrom)}
    return {name for name in found if name.partition(".")[0] not in {"numpy", *sys.stdlib_module_names}}
