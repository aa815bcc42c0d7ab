"""Where the program vdbench is, what it says when it fails, and which files its Java writes besides its reports.

Leadline does not ship vdbench: its licence does not allow it. The user downloads it and says where it is.

Source: Vdbench User Guide 5.04.07, "Installing Vdbench" (a folder with the script ``vdbench``; Java is needed);
HotSpot, ``perfMemory_posix.cpp`` (``/tmp/hsperfdata_USER``, whatever the temporary folder is).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from leadline.core.model.errors import ToolError
from leadline.core.system.opened import printable
from leadline.core.system.tools import VDBENCH_PAGE, VDBENCH_VARIABLE, find_program

SCRIPT = "vdbench"
_SUCCESS = "execution completed successfully"
_DISTRIBUTION = re.compile(r"Vdbench distribution: vdbench(\d)(\d\d)(\d\d)\b")
_SAYS_WHY = re.compile(r"Exception: +(\S.*)|(\S.*(?:not found|No such file|Permission denied|Unable to).*)")
_REASON_CHARS = 160


def program_path() -> str:
    """Return where the script vdbench is: in the folder that the variable names, else on the PATH.

    Raises:
        ToolError: it is nowhere, or cannot be started.
    """
    path = find_program(SCRIPT)
    if path is not None:
        return os.path.realpath(path)  # the script finds its Java classes beside itself
    named = os.environ.get(VDBENCH_VARIABLE)
    raise ToolError(
        f"{VDBENCH_VARIABLE}={printable(named)}" if named else SCRIPT,
        found="no script `vdbench` that can be started" if named else "not installed",
        expected="the program vdbench, which Leadline may not ship",
        advice=f"Download it from {VDBENCH_PAGE}, unpack it, and set {VDBENCH_VARIABLE} to its folder. It needs Java.",
    )


def version_of(talk: str) -> str | None:
    """Return the version that vdbench prints first; None where it did not.

    >>> version_of("Vdbench distribution: vdbench50407 Tue June 05  9:49:29 MDT 2018")
    '5.04.07'
    """
    match = _DISTRIBUTION.search(talk)
    return None if match is None else ".".join(match.groups())


def is_complete(talk: str) -> bool:
    """Whether vdbench says that it ended as it should."""
    return _SUCCESS in talk


def failure(talk: Path, where: str) -> ToolError:
    """Return the error of a vdbench that failed, with its reason, which stands before a Java stack."""
    text = talk.read_text(encoding="utf-8", errors="replace") if talk.exists() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("\tat ")]
    reasons = [match[1] or match[2] for match in map(_SAYS_WHY.search, lines) if match is not None]
    reason = reasons[-1] if reasons else lines[-1] if lines else "it printed nothing"
    return ToolError(
        printable(where),
        found=f"vdbench failed: {printable(reason)[:_REASON_CHARS]}",
        expected="a whole run",
        advice="Look at the target, at Java, and at what vdbench printed. "
        "Not every file system takes direct I/O (buffered: true).",
    )


def java_folder() -> Path:
    """Return the folder in which every Java program of this user keeps its counters."""
    import pwd  # noqa: PLC0415 - Windows has none

    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # a user without a name: HotSpot keeps none then
        name = str(os.geteuid())
    return Path("/tmp") / f"hsperfdata_{name}"
