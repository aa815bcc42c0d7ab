"""Manual pages: every verb has one, which readers of manuals take without a warning."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from leadline.faces.cli.completion import verb_words
from scripts import dist, man


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("man") / "man1"
    man.write(written)
    return written


def test_every_verb_has_a_page_with_its_options(folder: Path) -> None:
    words = verb_words()
    assert {path.stem for path in folder.iterdir()} == {man.page_name(typed) for typed in words}
    for typed, follows in words.items():
        text = (folder / f"{man.page_name(typed)}.1").read_text(encoding="utf-8").replace(r"\-", "-")
        for option in follows.options:
            assert option in text, (typed, option)
        for name in re.findall(r"\b(leadline[a-z-]*)\(1\)", text):
            assert (folder / f"{name}.1").is_file()


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_warns_of_nothing(folder: Path) -> None:
    pages = [str(path) for path in sorted(folder.iterdir())]
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-z", *pages], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("man") is None, reason="needs man")
def test_man_shows_a_page_with_examples_as_typed(folder: Path) -> None:
    command = ["man", "--warnings", "-l", str(folder / "leadline-diagnose.1")]
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "100", "MANPAGER": "cat"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    assert done.stderr == ""
    text = re.sub(r".\x08", "", done.stdout)
    assert "leadline diagnose bundle.tar.gz --fail-on high" in text
    assert "EXIT STATUS" in text


def test_a_wheel_has_them_where_installers_put_manuals(tmp_path: Path) -> None:
    bare = tmp_path / "leadline-0.1.0-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(bare, "w") as wheel:
        wheel.writestr("leadline-0.1.0.dist-info/RECORD", "leadline-0.1.0.dist-info/RECORD,,\n")
    with zipfile.ZipFile(dist.add_files(bare, tmp_path / "full.whl")) as wheel:
        record = wheel.read("leadline-0.1.0.dist-info/RECORD").decode()
        name = "leadline-0.1.0.data/data/share/man/man1/leadline-bench-run.1"
        assert wheel.read(name).startswith(b'.TH "LEADLINE-BENCH-RUN" 1')
        assert f"{name},sha256=" in record
