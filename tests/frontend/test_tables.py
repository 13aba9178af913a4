"""Files of handlers are imported when a program uses what they answer: the list of it is what they register."""

import re
import subprocess
import sys
from pathlib import Path

from metaphrase.astpasses.frontend.calls import call, tables

RECORDING = """
import importlib, sys

from metaphrase.astpasses.frontend.calls import call
from metaphrase.core.foreign import Filed, named

class Recording(Filed):
    def __setitem__(self, function, handler):
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        made.setdefault(frame.f_globals["__name__"].split(".")[-1], []).append(function)
        super().__setitem__(function, handler)

made = {}
call.TABLE = Recording()
from metaphrase.astpasses.frontend.calls import tables

said, late = {}, set()
for (file, home), names in tables.FILES.items():
    for name in names.split():
        if (function := named(name, home)) is not None:
            said.setdefault(file, set()).add(function)
            late |= {file} if isinstance(dict.get(call.TABLE, function), str) else set()
for file in said:
    importlib.import_module(f"{call.__package__}.{file}")
    answered = set(made[file])
    assert answered <= said[file], (file, answered - said[file])
    assert answered == said[file] or file == "operator_calls", (file, said[file] - answered)
print(*late)
"""


def test_files_answer_what_is_said():
    ran = subprocess.run([sys.executable, "-c", RECORDING], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert {"callbacks", "polynomials", "printing", "statistics"} <= set(ran.stdout.split())


def test_every_file_of_handlers_is_named():
    named = {file for file, _ in tables.FILES} | set(call._HOMES.values())
    at_once = {"builtin_calls", "dataclass_calls", "deques", "numpy_calls"}  # which `tables` imports
    files = {
        path.stem
        for path in Path(tables.__file__).parent.glob("*.py")
        if re.search(r"^ *@?(handles|answers|stands_for|of_heap)\(|TABLE\[", path.read_text(), re.MULTILINE)
    }
    assert files - {"call"} == named | at_once
