"""Examples and guides are found from every folder; what help and errors name is part of a wheel."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leadline.core.io.shipped import shipped
from scripts.dist import shipped_files
from tests.command_line import leadline
from tests.conftest import ROOT

NAMED = re.compile(r"\b(?:examples|docs/guides)/[A-Za-z0-9_./-]*[A-Za-z0-9_]")
GUIDE = "docs/guides/simulate.md"


def test_a_file_of_the_users_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    cap = Path("examples/scenarios/iops-cap.yaml")
    assert shipped(cap).is_file() and shipped(cap) != cap
    cap.parent.mkdir(parents=True)
    cap.touch()
    assert shipped(cap) == cap
    for other in ("examples/../pyproject.toml", "pyproject.toml", "examples/none.yaml", "src/leadline", ""):
        assert shipped(Path(other)) == Path(other)


def test_every_path_that_a_text_names_is_in_a_wheel() -> None:
    files = {name.removeprefix("leadline/shipped/") for name, _ in shipped_files()}
    folders = {str(parent) for name in files for parent in Path(name).parents}
    for path in (ROOT / "src/leadline").rglob("*.py"):
        text = path.read_text()
        missing = set(NAMED.findall(text)) - files - folders - {"examples/incidents"}
        assert not missing, f"{path}: not in a wheel: {missing}"


def test_an_error_names_the_command_that_prints_its_guide(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("1")
    done = leadline("simulate", "wrong.yaml", cwd=tmp_path)
    assert f"See `leadline explain {GUIDE}`" in done.stderr
    shown = leadline("explain", GUIDE, cwd=tmp_path)
    assert shown.stdout.strip() == (ROOT / GUIDE).read_text().strip()
    assert leadline("explain", "docs/guides/none.md", cwd=tmp_path).returncode == 2


def test_examples_work_away_from_the_source_tree(tmp_path: Path) -> None:
    done = leadline("audit", "examples/easy/inventory.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
