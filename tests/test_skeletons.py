"""What `make new` has written is a skeleton until every WRITE ME is replaced."""

from __future__ import annotations

from tests.conftest import ROOT

MARK = "WRITE ME"
FOLDERS = ("src/leadline", "tests", "examples")
ABOUT_SKELETONS = {"tests/test_skeletons.py", "tests/test_new_unit.py", "tests/faces/test_snapshots.py"}


def test_no_unit_is_a_skeleton() -> None:
    """A failure is a list of what is still to be written, file by file."""
    places = []
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in {".py", ".yaml"} or name in ABOUT_SKELETONS:
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        places += [f"{name}:{number}: {line.strip()}" for number, line in enumerate(lines, start=1) if MARK in line]
    steps = "Replace each of these by what it asks for (docs/guides/units.md has a section for each kind):"
    assert not places, "\n".join([steps, *places])
