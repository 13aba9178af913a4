"""The house rules that a test can hold: imports run one way, heavy dependencies have one door, files stay
readable.

In: the sources as text. Out: a list of offences, which must be empty. Example of one:
`metaphrase.core.types imports metaphrase.ops.reduce`.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from metaphrase.astpasses import frontend

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {
    "pysrc": "metaphrase",
    "astpasses": "metaphrase.astpasses",
    "runtime": "metaphrase.runtime",
    "cli": "metaphrase.cli",
}

# What each group of modules may import of ours; a module belongs to the longest prefix that fits it.
TREES = {path.stem for path in (ROOT / "pysrc").glob("*tree*.py")}  # one thing in several files
LATER = {"late", "locks"}
BASE = {"source", "exceptions", "effects", "config", "typing", "interpreter", "digests", "_version"} | LATER | TREES
PASSES = ("frontend", "transforms", "optimize", "schedule", "emit")
BELOW_PIPELINE = BASE | {"core", "ops", "runtime", "astpasses"}
MAY_IMPORT: dict[str, set[str]] = {
    **{name: BASE for name in BASE},
    "core": BASE | {"core"},
    "ops": BASE | {"core", "ops"},
    "runtime": LATER | {"source", "exceptions", "effects", "digests", "_version", "core.types", "core.dims", "runtime"},
    "astpasses": BASE | {"core", "ops"},
    **{f"astpasses.{room}": BASE | {"core", "ops", f"astpasses.{room}"} for room in PASSES},
    "astpasses.frontend": BASE | {"core", "ops", "astpasses.frontend", "astpasses.library"},
    "astpasses.library": {"astpasses.library"},
    # Python to Python: what a stager is, it does not know.
    "astpasses.frontend.rewrite": LATER | {"source", "astpasses.frontend.rewrite"},
    # The loop-nest tree is the language between the two, as core is before it: data that imports no pass.
    "astpasses.emit": BASE
    | {
        "core",
        "ops",
        "astpasses.emit",
        "astpasses.schedule.nest",
        "astpasses.schedule.expressions",
        "astpasses.schedule.work",
    },
    "pipeline": BELOW_PIPELINE | {"pipeline"},
    "staging": BELOW_PIPELINE | {"pipeline", "staging"},
    "api": BELOW_PIPELINE | {"pipeline", "staging", "api"},
}

# Who may import what is heavy or may be absent.
DOORS = {
    "gast": ("astpasses/frontend/rewrite/",),
    "astor": ("astpasses/frontend/rewrite/", "astpasses/emit/"),
    "Cython": ("runtime/cython_translate.py",),
    "cupy": ("runtime/devices.py",),
    "cupyx": ("runtime/cuda_library.py",),
    "mpi4py": (),
    "jax": (),
    "numba": (),
    "torch": (),
    "sklearn": (),
}


def source_files() -> list[Path]:
    return sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))


def module_name(path: Path) -> str:
    """pysrc/core/ir.py -> metaphrase.core.ir"""
    room, *rest = path.relative_to(ROOT).with_suffix("").parts
    return ".".join([ROOMS[room], *rest]).removesuffix(".__init__")


def only_for_types(node: ast.AST) -> bool:
    """`if TYPE_CHECKING:` - what it imports does not exist at run time."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def imports(path: Path, at_once: bool = False) -> Iterator[tuple[str, int]]:
    """The full names that a file imports, anywhere in it or (`at_once`) when it is imported, with their
    lines."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    for node, in_function in import_statements(path):
        if at_once and in_function:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            parent = ".".join(base + (node.module.split(".") if node.module else []))
            yield from ((f"{parent}.{alias.name}", node.lineno) for alias in node.names)
    if not at_once:
        yield from late_modules(path)


@functools.cache
def late_modules(path: Path) -> list[tuple[str, int]]:
    """Those that `late.module("metaphrase...")` stands for."""
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "module":
            name = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else ""
            if str(name).startswith("metaphrase."):
                found.append((name, node.lineno))
    return found


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def import_statements(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Those that run, and whether they stand in a function. Expressions hold none."""
    found, pending = [], [(node, False) for node in parsed(path).body]
    while pending:
        node, in_function = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.append((node, in_function))
        if isinstance(node, ast.expr) or only_for_types(node):
            continue
        inside = in_function or isinstance(node, ast.FunctionDef)
        pending.extend((child, inside) for child in ast.iter_child_nodes(node))
    return found


def test_no_two_modules_import_each_other():
    modules = {module_name(path): path for path in source_files()}
    needs = {
        name: {
            next(n for n in (full, full.rpartition(".")[0], "") if n in modules or not n)
            for full, _ in imports(path, at_once=True)
        }
        - {name, ""}
        for name, path in modules.items()
    }
    assert len(list(graphlib.TopologicalSorter(needs).static_order())) == len(modules)  # or a CycleError


def within(name: str, allowed: set[str]) -> bool:
    return any(name == prefix or name.startswith(prefix + ".") for prefix in allowed)


def offences(module: str, imported: str) -> bool:
    """Whether `module` must not import `imported` (both below metaphrase, without that name)."""
    fitting = [prefix for prefix in MAY_IMPORT if within(module, {prefix})]
    if not fitting:  # a library, the command line, the package itself: anything
        return False
    return not within(imported, MAY_IMPORT[max(fitting, key=len)])


def test_imports_run_one_way():
    found = []
    for path in source_files():
        module = module_name(path).removeprefix("metaphrase").lstrip(".")
        for name, line in imports(path):
            if name.split(".")[0] != "metaphrase":
                continue
            inside = name.removeprefix("metaphrase").lstrip(".")
            if offences(module, inside):
                found.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert found == []


@pytest.mark.parametrize(
    "module, imported, wrong",
    [
        ("core.types", "ops.reduce", True),
        ("core.types", "core.dims.Dim", False),
        ("source", "core", True),
        ("astpasses.emit.text", "astpasses.schedule.fuse", True),
        ("astpasses.schedule.fuse", "core.facts", False),
        ("runtime.errors", "source.Span", False),
        ("runtime.errors", "core.ir", True),
        ("runtime.errors", "pipeline", True),
        ("pipeline", "api.jit", True),
        ("astpasses.frontend.rewrite.control", "astpasses.frontend.staging.session", True),
        ("astpasses.frontend.staging.stage", "astpasses.frontend.rewrite.control", False),
        ("api", "lax.scan", True),
        ("lax", "api.jit", False),
        ("cli.main", "api", False),
        ("ops.dot", "astpasses.transforms.jvp", True),
    ],
)
def test_the_rule_itself(module, imported, wrong):
    assert offences(module, imported) is wrong


# How many imports of ours stand inside functions, by room. They only fall: whoever takes one away lowers the number.
INSIDE_FUNCTIONS = {"cli": 7, "emit": 3, "frontend": 55, "optimize": 1, "pysrc": 57, "schedule": 2}


def inside_functions(path: Path) -> int:
    """The imports of ours in a file that run when a function is called."""
    at_once = {line for _, line in (*imports(path, at_once=True), *late_modules(path))}
    ours = {line for name, line in imports(path) if name.split(".")[0] == "metaphrase"}
    return len(ours - at_once)


def test_imports_inside_functions_only_fall():
    found: Counter = Counter()
    for path in source_files():
        room, *inner = path.relative_to(ROOT).parts
        found[inner[0] if room == "astpasses" else room] += inside_functions(path)
    assert +found == Counter(INSIDE_FUNCTIONS)


def test_the_front_end_has_one_door():
    """Other rooms import names of `frontend/__init__.py`, no module behind it."""
    front_end = "metaphrase.astpasses.frontend"
    modules = {module_name(path) for path in source_files()}
    behind = [
        f"{module_name(path)} imports {name}"
        for path in source_files()
        if not within(module_name(path), {front_end})
        for name, _ in imports(path)
        if within(name, {front_end}) and ({name, name.rpartition(".")[0]} & modules) - {front_end}
    ]
    assert behind == []


def test_the_door_says_the_same_to_type_checkers_and_at_run_time():
    tree = parsed(ROOT / "astpasses/frontend/__init__.py")
    block = next(node for node in tree.body if only_for_types(node))
    typed = {
        (node.module, alias.asname or alias.name)
        for node in ast.walk(block)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == {(module, name) for module, names in frontend.NAMES.items() for name in names.split()}
    assert all(getattr(frontend, name) is not None for _, name in typed)


def test_heavy_dependencies_have_one_door():
    found = []
    for path in source_files():
        place = str(path.relative_to(ROOT))
        for name, line in imports(path):
            doors = DOORS.get(name.split(".")[0])
            if doors is not None and not any(place.startswith(door) for door in doors):
                found.append(f"{place}:{line} imports {name}")
    assert found == []


BUILT = ("build", "dist", "__pycache__")
READABLE = (".py", ".pyx", ".pxi", ".h", ".md", ".toml", ".txt", ".sh")


@functools.cache
def readable_files() -> list[Path]:
    """What people wrote: not what was built, and not what lies in hidden folders or environments."""
    found = []
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [n for n in inner if not n.startswith(".") and n not in BUILT and not n.endswith(".egg-info")]
        for path in [Path(folder, name) for name in names if not name.startswith(".")]:
            if path.suffix in READABLE or path.name == "Makefile":
                found.append(path)
    return sorted(found)


def test_no_file_is_over_500_lines():
    too_long = {
        str(path.relative_to(ROOT)): count
        for path in readable_files()
        if path.suffix in (".py", ".pyx", ".pxi", ".h") and (count := len(path.read_text().splitlines())) > 500
    }
    assert too_long == {}


def test_every_module_opens_with_what_it_is():
    silent = [str(path.relative_to(ROOT)) for path in source_files() if not ast.get_docstring(parsed(path))]
    assert silent == []


def test_no_path_of_one_machine():
    machine = re.compile("/" + "(?:work|home|root|Users)/" + "|" + "/tmp" + "/w/")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in readable_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if machine.search(line)
    ]
    assert found == []


PURE = set(
    "all any callable getattr hasattr has_tangent has_walrus isinstance issubclass len list range set "
    "sorted tuple type keys values items".split()
)


def test_no_assert_does_work():
    """`python -O` leaves asserts out: what they call changes nothing, and they bind no name."""
    found = []
    for path in source_files():
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Assert):
                continue
            for part in ast.walk(node.test):
                name = getattr(part, "func", None)
                called = getattr(name, "id", getattr(name, "attr", None))
                does = isinstance(part, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom))
                if does or isinstance(part, ast.Call) and called not in PURE:
                    found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}")
    assert found == []
