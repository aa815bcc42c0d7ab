"""What was chosen for a sweep and why, as text and plain data, with the commands that do it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from leadline.app.measure.workloads import workload_of
from leadline.core.model.sweep import size_text
from leadline.faces.cli.output import console
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from leadline.app.measure.easy import Choice, Easy

MIB = 1024**2


def show_choices(choices: Sequence[Choice], *, err: bool = False) -> None:
    """Print every choice with its reason."""
    out = console(stderr=True) if err else console()
    for choice in choices:
        out.print(f"  {choice.what}: {choice.value}", markup=False, highlight=False, soft_wrap=True)
        wrapped(out, choice.why, "      ")


def easy_document(chosen: Easy) -> dict[str, Any]:
    """Plain data for ``--json``."""
    names = ("workload", "machine_count", "disk_count", "disk_bytes", "set_bytes", "jobs", "oio_max", "folder")
    plain = {name: getattr(chosen, name) for name in names}
    return {**plain, "choices": [choice.to_dict() for choice in chosen.choices]}


def command_here(chosen: Easy) -> str:
    """The command that does it on this machine."""
    return f"leadline bench sweep {shlex.quote(chosen.workload)} --easy --on {shlex.quote(str(chosen.folder))}"


def commands_there(chosen: Easy, hosts: Path | None) -> list[str]:
    """What to do on the machines: all of them together, and the sweep of one."""
    streams = max(len(workload_of(chosen.workload).io), 1)  # each has a file of its own
    size = size_text(chosen.set_bytes // streams // MIB * MIB)
    words = shlex.quote(chosen.workload)
    sweep = f"leadline bench sweep {words} --on FOLDER --set-size {size}"
    load = f"  {sweep} --jobs {chosen.jobs} --oio 1..{chosen.oio_max}"
    if hosts is None:
        return ["On each of them, all at the same time, in a folder over its disks:", load]
    together = f"leadline bench hosts {words} --hosts {shlex.quote(str(hosts))} --in FOLDER --set-size {size}"
    return ["All of them at the workload's own load:", f"  {together}", "The sweep, on each of them:", load]
