"""Consent: one place asks; every verb that changes something prints its plan on stderr and asks the same way."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from leadline.core.model.errors import UsageError
from leadline.faces.cli import consent
from tests.conftest import ROOT
from tests.faces.test_cli import VERBS

FACE = ROOT / "src/leadline/faces"


class Terminal:
    """Somebody at a keyboard."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Questions that were asked; every answer is yes."""
    asked: list[str] = []
    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(typer, "confirm", lambda question, **_: asked.append(question))
    return asked


@pytest.mark.parametrize(
    ("yes", "quiet", "shown", "asked"),
    [(False, False, True, ["Go?"]), (False, True, True, ["Go?"]), (True, False, True, []), (True, True, False, [])],
)
def test_who_is_asked_has_seen_the_plan(
    yes: bool, quiet: bool, shown: bool, asked: list[str], answers: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    consent.agree("bench run", ["Plan: one", "  two"], yes=yes, quiet=quiet)
    held = capsys.readouterr()
    assert held.out == ""
    assert held.err == ("Plan: one\n  two\n" if shown else "")
    assert answers == asked


def test_without_anybody_to_ask_the_plan_is_shown_and_nothing_begins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(UsageError, match="bench run: nobody to ask; expected --yes"):
        consent.agree("bench run", ["Plan: one"], yes=False, quiet=True)
    assert capsys.readouterr().err == "Plan: one\n"


def test_nobody_else_asks() -> None:
    """No verb asks or declares these options by itself: the texts are equal because they are the same."""
    strangers = []
    for path in sorted(FACE.rglob("*.py")):
        if path.name == "consent.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_asking = isinstance(node, ast.Attribute) and node.attr == "confirm"
            is_text = isinstance(node, ast.Constant) and node.value in ("--yes", "--destroy-data", "--dry-run")
            strangers += [path.name] if is_asking or is_text else []
    assert strangers == []


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_verb_that_may_lose_data_asks(verb: tuple[str, ...]) -> None:
    module = import_module(VERBS[verb])
    options = getattr(module, "command", lambda: None).__annotations__
    if "destroy" in options:
        assert options["yes"] == "Yes"


def test_reverting_a_guest_shows_what_it_would_put_back_and_asks(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from leadline.faces.cli.main import build_app

    (tmp_path / "etc").mkdir()
    where = ("--root", str(tmp_path))
    assert CliRunner().invoke(build_app(), ["guest", "apply", "--yes", *where]).exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    asked = CliRunner().invoke(build_app(), ["guest", "revert", *where])
    assert isinstance(asked.exception, UsageError)
    assert "  remove /etc/sysctl.d/" in asked.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert CliRunner().invoke(build_app(), ["guest", "revert", "--yes", *where]).exit_code == 0
    assert not list((tmp_path / "etc").rglob("*"))
