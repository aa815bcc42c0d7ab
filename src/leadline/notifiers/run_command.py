"""A command of yours, which gets the notice on its standard input.

Sends:
    The notice as one JSON object, the same as the shape `json` of a webhook: `version`, `incident`, `state`,
    `severity`, `entity`, `cause`, `title`, `text`, `opened`, `closed`, `link`, `capture`. No word of the command line
    comes from a notice.

Settings:
    `command`: the program and its arguments, a list; no shell reads them. `timeout_s`: 30 by default.
    `keep_variables`: names of further variables of the environment that it needs; by default it gets PATH, HOME, USER,
    LOGNAME, LANG, LC_ALL, TZ, TMPDIR and XDG_RUNTIME_DIR, and never those that hold passwords.

When it fails:
    An exit status other than 0 is an error, with the end of what the command wrote to its standard error. A command
    that takes too long is ended with its children, and so is what it leaves running.

    Its standard output is thrown away.

Sources:
    proc(5), /proc/pid/environ: others of this user read the environment of a process.
    Judgement: 30 s is enough to send a message, and delays no other receiver.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from typing import IO, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from leadline.core.contracts.notifier import Notice, NotifierMeta
from leadline.core.model.errors import ToolError
from leadline.core.system.processes import end, wait
from leadline.core.system.secret import VARIABLES, child_environment
from leadline.core.system.tools import require_program
from leadline.notifiers._wording import plain

META = NotifierMeta(receiver="a command")
KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "XDG_RUNTIME_DIR")
COMPLAINT_BYTES_MAX = 2000


class RunCommandSettings(BaseModel):
    """What ``watch.yaml`` may say of a command."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] = Field(min_length=1)
    timeout_s: float = Field(30.0, gt=0.0, le=600.0)
    keep_variables: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _sound(self) -> Self:
        problem = ""
        if not self.command[0] or any("\0" in word for word in self.command):
            problem = "command is a program and its arguments"
        elif set(self.keep_variables) & set(VARIABLES):
            problem = f"keep_variables without {', '.join(VARIABLES)}: they hold passwords"
        if problem:
            raise ValueError(problem)
        return self


Settings = RunCommandSettings


def send(settings: RunCommandSettings, notice: Notice) -> None:
    """Run the command with a notice on its standard input, and wait until it ends.

    Raises:
        ToolError: it cannot be started, ends with another status than 0, or takes too long.
    """
    program = require_program(settings.command[0], "the command that notices are sent by")
    where = f"command {settings.command[0]}"
    try:
        # Files, not pipes: a command that reads nothing or writes without end blocks nobody.
        with tempfile.TemporaryFile() as notice_file, tempfile.TemporaryFile() as complaints:
            notice_file.write(json.dumps(plain(notice)).encode() + b"\n")
            notice_file.seek(0)
            status = _run([program, *settings.command[1:]], settings, notice_file, complaints)
            complaint = _tail(complaints)
    except OSError as error:
        raise ToolError(
            where,
            found=f"cannot be started ({error.strerror})",
            expected="a program that may be executed",
            advice="Check its path and its rights; a script begins with #! and its interpreter.",
        ) from error
    if status is None:
        raise _failed(where, f"took longer than {settings.timeout_s:g} s", complaint)
    if status:
        raise _failed(where, f"exit status {status}", complaint)


def _run(words: list[str], settings: RunCommandSettings, notice_file: IO[bytes], complaints: IO[bytes]) -> int | None:
    """The exit status; None when it did not end in time."""
    process = subprocess.Popen(
        words,
        stdin=notice_file,
        stdout=subprocess.DEVNULL,
        stderr=complaints,
        env=_environment(settings),
        start_new_session=True,
    )
    try:
        is_over = wait(process, settings.timeout_s)
        return process.returncode if is_over else None
    finally:
        end(process)


def _environment(settings: RunCommandSettings) -> dict[str, str]:
    names = {*KEPT, *settings.keep_variables}
    return {name: value for name, value in child_environment().items() if name in names}


def _tail(stream: IO[bytes]) -> str:
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - COMPLAINT_BYTES_MAX))
    return " ".join(stream.read(COMPLAINT_BYTES_MAX).decode("utf-8", errors="replace").split())[-200:]


def _failed(where: str, problem: str, complaint: str) -> ToolError:
    return ToolError(
        where,
        found=f"{problem}{f' ({complaint})' if complaint else ''}",
        expected="exit status 0",
        advice="Run it by hand with a notice on its standard input; the notice is tried again.",
    )
