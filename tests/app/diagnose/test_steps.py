"""A capture passes the six steps once, downward: no step imports one that comes after it."""

from __future__ import annotations

import ast
from pathlib import Path

import leadline.app.diagnose as room

FOLDER = Path(room.__file__).parent
PREFIX = "leadline.app.diagnose."
# The steps in order, each with the modules that are its parts; then what calls them.
STEPS = (
    ("parting", "incidents", "feeling", "symptoms"),
    ("placing",),
    ("findings",),
    ("seconds", "spending", "account"),
    ("bystanders", "cause_terms", "who", "causes"),
    ("examine", "layers"),
    ("load_results", "near", "answer"),
    ("stretches",),
    ("diagnosing",),
    ("auditing",),
)
BESIDE = {"grouping", "spans"}  # how findings are shown together; how a time that was asked for is read


def imported(module: Path) -> set[str]:
    """The modules of the room that a module imports, for types as well."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            if node.module.startswith(PREFIX):
                names.add(node.module.removeprefix(PREFIX))
            elif f"{node.module}." == PREFIX:
                names.update(alias.name for alias in node.names)
    return names


def test_every_module_of_the_room_has_its_step() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert modules == {name for step in STEPS for name in step} | BESIDE


def test_no_step_imports_a_later_one() -> None:
    place = {name: number for number, step in enumerate(STEPS) for name in step}
    upward = {
        (name, other)
        for name, number in place.items()
        for other in imported(FOLDER / f"{name}.py")
        if place.get(other, -1) > number
    }
    assert upward == set()
    assert len(imported(FOLDER / "diagnosing.py")) > 8  # imports are seen at all
