"""`leadline collect vcenter`: the inventory of a vCenter or ESXi host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.options import CaFile, Json, Quiet
from leadline.faces.cli.outputs import Force, output_file

EPILOG = """\
Examples:

  leadline explain vcenter

  LEADLINE_PASSWORD=... leadline collect vcenter vc.example -u ro@vsphere.local -o vc.parquet

  LEADLINE_PASSWORD=... leadline collect vcenter vc.example -u ro@vsphere.local --ca-file vcenter-ca.pem -o vc.parquet
"""


def command(
    ctx: typer.Context,
    host: Annotated[str, typer.Argument(help="Its name or address.")],
    *,
    user: Annotated[str, typer.Option("--user", "-u", help="A user that may only read.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Parquet file to write.")],
    port: Annotated[int, typer.Option(help="Port.")] = 443,
    insecure: Annotated[bool, typer.Option("--insecure", help="Do not check the certificate.")] = False,
    ca_file: CaFile = None,
    json: Json = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Read the inventory of a vCenter or ESXi host, without changing anything, into a file every verb reads.

    Then `leadline audit FILE`, or name it beside recordings in `leadline diagnose`. The password is read from
    LEADLINE_PASSWORD or asked for; it is stored nowhere.
    """
    from leadline.app.collecting import collect
    from leadline.core.contracts.collector import Access
    from leadline.core.io.parquet import save
    from leadline.core.system.addresses import host_name
    from leadline.faces.cli.output import print_json, say_warnings, work_progress
    from leadline.faces.cli.passwords import password_of

    file = output_file(ctx, "output", output, force=force)
    access = Access(host_name(host), user, password_of(user), port, not insecure, ca_file=str(ca_file or ""))
    with work_progress("reading", quiet=quiet) as progress:
        capture = collect("vcenter", access, progress)
    save(capture, file)
    if not quiet:
        say_warnings(capture)
    kinds: dict[str, int] = {}
    for entity in capture.inventory.facts:
        kinds[entity.kind.value] = kinds.get(entity.kind.value, 0) + 1
    if json:
        print_json("leadline.collect/1", output=str(output), entities=kinds)
    else:
        typer.echo(f"{output}: " + ", ".join(f"{count} {kind}" for kind, count in kinds.items()))
