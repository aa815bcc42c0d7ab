"""`leadline bench hosts`: the same load on many machines at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.faces.cli.consent import DestroyEach, Yes
from leadline.faces.cli.options import Json, Most, Quiet, most_of
from leadline.faces.cli.verbs.bench._many import HOSTS_HELP, PASSWORD_HELP, Asked, load_many
from leadline.faces.cli.verbs.bench._workload import changed

EPILOG = """\
Examples:

  leadline bench hosts hci-8k-50-50 --hosts hosts.txt --set-size 8m --seconds 2 --rounds 1 --warm-up 0 --yes

  leadline bench hosts my.yaml --hosts hosts.txt --theoretical 24x550000 --yes
"""


def command(
    workload: Annotated[str, typer.Argument(help="A shipped workload, a file, or a fio or vdbench job file.")],
    *,
    hosts: Annotated[Path, typer.Option("--hosts", help=HOSTS_HELP)],
    folder: Annotated[str, typer.Option("--in", help="Folder on each host to make files in.")] = "/tmp",
    destroy: DestroyEach = None,
    size: Annotated[str | None, typer.Option("--set-size", help="Working set, as 4g.", show_default=False)] = None,
    seconds: Annotated[float | None, typer.Option(help="Length of a round.", show_default=False)] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds to measure.", show_default=False)] = None,
    warm_up: Annotated[
        float | None, typer.Option("--warm-up", help="Seconds before the first round.", show_default=False)
    ] = None,
    theoretical: Most = None,
    ask_password: Annotated[bool, typer.Option("--ask-password", help=PASSWORD_HELP)] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the load.", show_default=False)] = None,
    yes: Yes = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Load many hosts at once, each by its own fio: a server that runs there, or one started over SSH.

    A workload of tool vdbench is loaded by the vdbench of each host, over SSH: see docs/guides/hosts.md.

    Percentiles are of the pooled requests of all hosts; hosts far from the others are marked. One that fails is told
    and the rest kept; the exit status is then 4. The run is kept: see `leadline runs`.
    """
    from leadline.app.measure.workloads import workload_of

    most = most_of(theoretical)
    wanted = changed(workload_of(workload), "bench hosts", size, seconds, rounds, warm_up)
    asked = Asked("bench hosts", seed, ask_password, most, yes, json, quiet)
    load_many(wanted, hosts, folder, tuple(destroy or ()), asked)
