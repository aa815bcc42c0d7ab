"""Every `leadline` command that a text names has an existing verb and existing options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from leadline.core.contracts.discovery import load_units
from leadline.faces.cli.main import build_app
from tests.conftest import ROOT

APP: Any = typer.main.get_command(build_app())
CONTEXT: Any = APP.context_class
QUOTED = re.compile(r"`leadline ([^`]+)`")
LINE = re.compile(r"^\s*(?:\$ )?leadline ([a-z].*)$")
PROSE_ENDS = re.compile(r"\s+(?:[|>#;&]|&&|\|\|)(?:\s|$)|\\\\?$|\s{3,}")
TEXTS = sorted(
    path
    for folder, pattern in (("src/leadline", "*.py"), ("src/leadline", "*.csv"), ("docs", "*.md"), (".", "README.md"))
    for path in ((ROOT / folder).glob(pattern) if folder == "." else (ROOT / folder).rglob(pattern))
)


def named_commands(path: Path) -> Iterator[tuple[int, str]]:
    """Line and words of each command: what backticks hold, and lines that begin with ``leadline``."""
    is_code = path.suffix == ".py"
    text = path.read_text(encoding="utf-8")
    in_block = is_code
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            in_block = not in_block
        for match in QUOTED.finditer(line):
            yield number, match[1]
        command = LINE.match(line) if in_block else None
        if command is not None:
            yield number, command[1]


def fault_of(words: str) -> str | None:
    """What does not exist in a command; None where all does."""
    command: Any = APP  # typer has click's classes under names of its own
    tokens = PROSE_ENDS.split(words, maxsplit=1)[0].split()
    context: Any = CONTEXT(APP, info_name="leadline")
    while tokens and hasattr(command, "get_command"):
        verb = tokens[0]
        if verb.startswith("-"):
            break
        if not re.fullmatch(r"[a-z][a-z_-]*", verb):
            return None  # a placeholder stands for the verb
        below = command.get_command(context, verb)
        if below is None:
            return f"no verb {verb}"
        command, tokens = below, tokens[1:]
        context = CONTEXT(command, parent=context, info_name=verb)
    options = {name for param in command.get_params(context) for name in (*param.opts, *param.secondary_opts)}
    for token in tokens:
        option = re.match(r"--[a-z][a-z-]*", token)
        if option is not None and option[0] not in options:
            return f"no option {option[0]} of {command.name}"
    if command.name == "plan" and tokens and re.fullmatch("[a-z]+", tokens[0]) and tokens[0] not in PLANNERS:
        return f"no planner {tokens[0]}"
    return None


PLANNERS = {path.stem for path in (ROOT / "src/leadline/planners").glob("[a-z]*.py")}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("plan iops", "no planner iops"),
        ("plan cpu --example", None),
        ("simulat x.yaml", "no verb simulat"),
        ("bench nothing", "no verb nothing"),
        ("simulate x.yaml --check-reel", "no option --check-reel of simulate"),
        ("simulate x.yaml --check-real # really", None),
    ],
)
def test_faults_are_seen(words: str, fault: str | None) -> None:
    assert fault_of(words) == fault


def test_commands_in_texts_exist() -> None:
    commands = [(path, number, words) for path in TEXTS for number, words in named_commands(path)]
    assert len(commands) > 300
    faults = [
        f"{path.relative_to(ROOT)}:{number}: leadline {words}: {fault}"
        for path, number, words in commands
        if (fault := fault_of(words)) is not None
    ]
    assert faults == []


def test_commands_that_guides_give_to_type_are_whole() -> None:
    """No option that a verb cannot do without is left out."""
    lines = [line for module in load_units("guide").values() for step in module.META.steps for line in step.record]
    commands = [PROSE_ENDS.split(line.removeprefix("leadline "), maxsplit=1)[0] for line in lines if LINE.match(line)]
    assert len(commands) > 20
    assert [(command, fault) for command in commands if (fault := left_out(command.split())) is not None] == []
    assert left_out("collect vcenter VCENTER -o vc.parquet".split()) == "-u"


def left_out(tokens: list[str]) -> str | None:
    """The option that a command must have and has not."""
    command: Any = APP
    context: Any = CONTEXT(APP, info_name="leadline")
    while tokens and hasattr(command, "get_command") and not tokens[0].startswith("-"):
        command = command.get_command(context, tokens[0])
        context, tokens = CONTEXT(command, parent=context, info_name=tokens[0]), tokens[1:]
    if "--help" in tokens:
        return None
    options = [param for param in command.get_params(context) if param.required and param.opts[0].startswith("-")]
    lacking = (param for param in options if not {*param.opts, *param.secondary_opts} & set(tokens))
    return next((min(param.opts, key=len) for param in lacking), None)
