"""`leadline collect qemu`: what QEMU and this host know of running guests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import Json, Quiet

EPILOG = """\
Examples:

  sudo leadline collect qemu /run/db01.qmp /run/db02.qmp -o kvm01 --seconds 60
"""


def command(
    sockets: Annotated[list[str], typer.Argument(help="QMP sockets of guests, each held by nobody else.")],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the recording to.")],
    seconds: Annotated[float, typer.Option(help="How long.")] = 600.0,
    every: Annotated[float, typer.Option(help="Seconds from sample to sample.")] = 1.0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record vCPU run and ready time and disk statistics of guests on this KVM host.

    Together with a recording made in the guest at the same time (`collect linux`) it shows what the guest cannot see:
    time its vCPUs waited for a CPU, and what its disks did above the guest's own queues.
    """
    from leadline.faces.cli.verbs.collect._sampling import sample

    sample("qemu", ",".join(sockets), output, every, seconds, json=json, quiet=quiet)
