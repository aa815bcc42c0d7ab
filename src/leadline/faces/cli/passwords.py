"""Passwords: from a file, the environment or a prompt; never an option, which other users of the machine would see."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from leadline.core.model.errors import InputError, UsageError
from leadline.core.system.secret import Secret, of_environment
from leadline.faces.visible import visible

VARIABLE = "LEADLINE_PASSWORD"


def password_of(user: str, file: Path | None = None) -> Secret:
    """The password of an account: the first line of a file when one is named, else LEADLINE_PASSWORD, else asked for.

    Raises:
        InputError: the file cannot be read or is empty.
        UsageError: there is nobody to ask.
    """
    if file is not None:
        return _from_file(file)
    known = of_environment(VARIABLE)
    if known:
        return known
    if not sys.stdin.isatty():
        raise UsageError(
            VARIABLE,
            found="not set, and nobody to ask",
            expected="a password",
            advice="Set it and run again.",
        )
    answer: str = typer.prompt(f"Password of {visible(user)}", hide_input=True, err=True)
    return Secret(answer)


def _from_file(file: Path) -> Secret:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text"
        raise InputError(str(file), found=str(why), expected="a password", advice="Name another file.") from error
    if not lines or not lines[0]:
        raise InputError(str(file), found="nothing", expected="a password in its first line", advice="Write it there.")
    return Secret(lines[0])
