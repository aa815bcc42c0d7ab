"""Completion by shells: the words are those of the command line, and real shells complete them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from leadline.faces.cli.completion import SCRIPTS, bash, fish, verb_words, zsh
from leadline.faces.cli.main import build_app
from tests.command_line import leadline
from tests.conftest import ROOT

WALK = """
words=(@WORDS@)
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
source @SCRIPT@
_leadline
printf '%s\\n' "${COMPREPLY[@]}"
"""


def commands(command: TyperCommand | TyperGroup, typed: str = "") -> Iterator[tuple[str, TyperCommand | TyperGroup]]:
    """Every verb as the command line has it, by what is typed."""
    yield typed, command
    context = command.context_class(command, info_name=typed or "leadline")
    if not isinstance(command, TyperGroup):
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert isinstance(below, TyperCommand | TyperGroup)
        yield from commands(below, f"{typed} {name}".strip())


def test_the_words_are_those_of_the_command_line() -> None:
    known = verb_words()
    app = typer.main.get_command(build_app())
    assert isinstance(app, TyperGroup)
    real = dict(commands(app))
    assert set(known) == set(real)
    for typed, command in real.items():
        options = {
            word
            for parameter in command.params
            if parameter.param_type_name == "option"
            for word in (*parameter.opts, *parameter.secondary_opts)
            if word.startswith("--")
        }
        assert set(known[typed].options) == options | {"--help"}, typed
        context = command.context_class(command)
        verbs = command.list_commands(context) if isinstance(command, TyperGroup) else []
        assert list(known[typed].verbs) == verbs


def test_no_verb_is_imported_for_it() -> None:
    code = (
        "import sys; from leadline.faces.cli.completion import SCRIPTS, verb_words; words = verb_words()\n"
        "assert all(make(words) for make in SCRIPTS.values())\n"
        "print(*[name for name in sys.modules if '.verbs.' in name or name in ('numpy', 'rich.table')])"
    )
    env = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=env)
    assert done.stdout.strip() == ""


def in_bash(tmp_path: Path, *words: str) -> list[str]:
    """What bash offers for the last of some words."""
    script = tmp_path / "leadline.bash"
    script.write_text(bash(verb_words()))
    code = WALK.replace("@WORDS@", " ".join(f"'{word}'" for word in words)).replace("@SCRIPT@", str(script))
    done = subprocess.run(["bash", "--norc", "-c", code], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_offers_verbs_options_and_else_files(tmp_path: Path) -> None:
    assert {"diagnose", "bench", "plan"} <= set(in_bash(tmp_path, "leadline", ""))
    assert in_bash(tmp_path, "leadline", "dia") == ["diagnose"]
    assert in_bash(tmp_path, "leadline", "bench", "ru") == ["run"]
    assert in_bash(tmp_path, "leadline", "bench", "run", "hci-4k-read", "--set-s") == ["--set-size"]
    assert in_bash(tmp_path, "leadline", "runs", "baseline", "k") == ["keep"]
    assert in_bash(tmp_path, "leadline", "diagnose", "--htm") == ["--html"]
    assert in_bash(tmp_path, "leadline", "diagnose", "examples/inc") == []  # bash goes on with files


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_offers_verbs_and_options(tmp_path: Path) -> None:
    (tmp_path / "_leadline").write_text(zsh(verb_words()))
    code = """
    autoload -Uz compinit; fpath=(FOLDER $fpath); compinit -D
    compadd() { shift; print -l -- "$@" }; _describe() { print -l -- "${(@P)2}" }; _files() { print files }
    offer() { words=("$@"); CURRENT=$#words; _leadline }
    unfunction _leadline 2>/dev/null; source FOLDER/_leadline
    offer leadline bench ''; print -- --; offer leadline bench run --s; print -- --; offer leadline diagnose ex
    """.replace("FOLDER", str(tmp_path))
    done = subprocess.run(["zsh", "-f", "-c", code], check=True, capture_output=True, text=True)
    verbs, options, files = done.stdout.split("--\n", 2)
    assert any(line.startswith("run:") for line in verbs.splitlines())
    assert "--set-size" in options + files
    assert files.endswith("files\n")


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_offers_verbs_options_and_files(tmp_path: Path) -> None:
    (tmp_path / "leadline.fish").write_text(fish(verb_words()))

    def offered(line: str) -> list[str]:
        code = f"source {tmp_path}/leadline.fish; complete -C '{line}'"
        env = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
        done = subprocess.run(["fish", "-c", code], check=True, capture_output=True, text=True, cwd=ROOT, env=env)
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    assert offered("leadline dia") == ["diagnose"]
    assert offered("leadline bench ru") == ["run"]
    assert offered("leadline bench run x --set-s") == ["--set-size"]
    assert "examples/" in offered("leadline diagnose exam")


@pytest.mark.parametrize("shell", list(SCRIPTS))
def test_the_verb_prints_it(shell: str) -> None:
    done = leadline("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == SCRIPTS[shell](verb_words())
    assert json.loads(leadline("completion", shell, "--json").stdout)["script"] == done.stdout


def test_another_shell_is_refused() -> None:
    done = leadline("completion", "csh")
    assert done.returncode == 2
    assert "bash" in done.stderr
