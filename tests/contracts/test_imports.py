"""tests/contracts/test_imports: imports run downward only, and importing starts nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import plumejax

PACKAGE = Path(plumejax.__file__).parent
TESTS = Path(__file__).parents[1]
BENCHMARKS = TESTS.parent / "benchmarks"

# A module may import from its own room and from those in rows above it. The face of the package,
# "", stands on the families whose ids it registers.
ORDER = [
    {"version"},
    {"base"},
    {"plumes"},
    {"search", "arms"},
    {""},
    {"policies"},
    {"learning"},
    {"evaluation"},
    {"viewing"},
    {"sweeps"},
    {"adapters"},
    {"testing"},
    {"serving"},
    {"cli"},
    {"__main__"},
]
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
MODULES = sorted(PACKAGE.rglob("*.py"))
FILES = [
    (root, path)
    for root in (PACKAGE, TESTS, BENCHMARKS)
    for path in (sorted(root.rglob("*.py")) if root.exists() else [])
]


def room_of(path):
    first = path.relative_to(PACKAGE).parts[0]
    return "" if first == "__init__.py" else first.removesuffix(".py")


def imported_rooms(path):
    """The rooms of plumejax that a module imports from, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import, line {node.lineno}"
            # `from plumejax import base` imports a room, `from plumejax import make` the face.
            names = [node.module]
            if node.module == "plumejax":
                names = [f"plumejax.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "plumejax":
                room = rest.partition(".")[0]
                yield room if room in RANK else ""


def is_downward(room, other):
    # The face hands out upper rooms by name, lazily, and so may name them all.
    return room in (other, "") or RANK[other] < RANK[room]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_downward(path):
    room = room_of(path)
    assert room in RANK, f"{path}: a room that the order of imports does not know"
    upward = {other for other in imported_rooms(path) if not is_downward(room, other)}
    assert not upward, f"{path} imports from {sorted(upward)}, which stand above or beside {room!r}"


def test_the_rule_would_notice():
    assert not is_downward("base", "search")
    assert not is_downward("search", "arms")
    assert not is_downward("adapters", "testing")
    assert not is_downward("search", "evaluation")
    assert not is_downward("search", "")
    assert is_downward("cli", "")
    assert set(imported_rooms(PACKAGE / "search" / "environment.py")) == {
        "base",
        "plumes",
        "search",
    }


@pytest.mark.parametrize(("root", "path"), FILES, ids=lambda p: p.name)
def test_the_first_line_names_the_room(root, path):
    name = path.relative_to(root).with_suffix("")
    name = name.parent if name.name == "__init__" else name
    if root == PACKAGE:
        rooms = {name.as_posix() if name.parts else "plumejax"}
    else:
        # A test may name its room alone: "viewing: ..." for tests/viewing/test_frames.
        rooms = {f"{root.name}/{name}", str(name), str(name.parent)} - {"."}
        rooms = rooms if name.parts else {root.name}
    line = path.read_text().partition("\n")[0]
    named = line.removeprefix('"""').partition(": ")[0]
    assert line.startswith('"""'), f"{path} begins with {line!r}, not with a docstring"
    assert named in rooms, f"{path} begins with {line!r}, not with one of {sorted(rooms)}"


def test_importing_starts_no_backend_and_loads_nothing_heavy():
    script = """
import sys
import plumejax
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized(), "a JAX array was made at import"
heavy = {"gymnax", "matplotlib", "optax", "orbax", "tyro", "pygame", "rejax"}
loaded = heavy & {name.partition(".")[0] for name in sys.modules}
assert not loaded, f"import plumejax loads {sorted(loaded)}"
plumejax.registered_tasks()
assert not xla_bridge.backends_are_initialized(), "listing the tasks makes a JAX array"
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
